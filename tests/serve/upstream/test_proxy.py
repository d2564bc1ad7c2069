"""/proxy: what pods, services and nodes answer, through the node, over real connections."""

from __future__ import annotations

import asyncio
import json

import pytest

from steersman.serve.http import Response, serve
from steersman.serve.virtual import VirtualStreams
from tests.serve.harness import connect, in_loop, read_response
from tests.serve.plane import PODS, Plane, pod

SERVICES = "/api/v1/namespaces/default/services"


async def web(duplex, obj):
    """A small web server on a pod's port."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += await duplex.read()
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines[1:])
    while len(body) < int(headers.get("content-length", 0)):
        body += await duplex.read()
    method, target, _ = lines[0].split(" ")
    if headers.get("upgrade") == "websocket":
        await duplex.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nhi ")
        while text := await duplex.read():
            await duplex.write(text.upper())
        return
    if target == "/moved":
        await duplex.write(b"HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n")
    elif target == "/big":
        await duplex.write(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(64):
            await duplex.write(b"x" * 65536)
    elif target == "/chunks":
        await duplex.write(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        await duplex.write(b"2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n")
    elif target == "/silent":
        return
    elif target == "/broken":
        await duplex.write(b"this is no HTTP\r\n\r\n")
    elif target == "/huge":
        await duplex.write(b"HTTP/1.1 200 OK\r\n" + b"X-A: %s\r\n" % (b"a" * 1000) * 500 + b"\r\n")
    else:
        told = json.dumps([method, target, obj.key.name, headers, body.decode()]).encode()
        await duplex.write(b"HTTP/1.1 201 Created\r\nX-Own: yes\r\nConnection: x-hop\r\nX-Hop: no\r\n")
        await duplex.write(b"Content-Length: %d\r\n\r\n%s" % (len(told), told))


async def planned():
    plane = Plane()
    plane.app.streams = VirtualStreams(ports={8080: web})
    await plane.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
    body = pod("a", labels={"app": "a"})
    body["spec"]["containers"][0]["ports"] = [{"containerPort": 8080, "name": "http"}]
    await plane.post(PODS, body)
    target = {"apiVersion": "v1", "kind": "Node", "name": "n1"}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": target}
    await plane.post(f"{PODS}/a/binding", binding)
    status = {"phase": "Running", "podIP": "10.0.0.9", "podIPs": [{"ip": "10.0.0.9"}]}
    await plane.merge(f"{PODS}/a/status", {"status": status})
    ports = [{"name": "http", "port": 80, "targetPort": 8080}]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": ports}}
    await plane.post(SERVICES, service)
    address = {"ip": "10.0.0.9", "targetRef": {"kind": "Pod", "name": "a", "namespace": "default"}}
    subsets = [{"addresses": [address], "ports": [{"name": "http", "port": 8080}]}]
    endpoints = {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "s"}, "subsets": subsets}
    await plane.post("/api/v1/namespaces/default/endpoints", endpoints)
    return plane


@pytest.mark.parametrize("what", ["pods/a", "pods/a:8080", "pods/http:a:8080", "services/s:http", "services/s:80"])
@in_loop
async def test_a_request_goes_to_the_pod_and_its_answer_comes_back(what):
    plane = await planned()
    target = f"/api/v1/namespaces/default/{what}/proxy/deep/er/pa%2Fth/1/2/3/4/5?q=1&q=2"
    answer = await plane.ask("POST", target, {"a": 1}, 201, x_mine="kept")
    method, path, name, headers, body = answer.json
    assert (method, path, name) == ("POST", "/deep/er/pa%2Fth/1/2/3/4/5?q=1&q=2", "a")
    assert json.loads(body) == {"a": 1} and headers["x-mine"] == "kept"
    assert "authorization" not in headers  # a pod must not learn who its users are
    assert answer.header("x-own") == "yes" and not answer.header("x-hop")


@in_loop
async def test_answers_of_all_sorts():
    plane = await planned()
    root = f"{PODS}/a:8080/proxy"
    assert (await plane.get(root, code=301)).header("location") == f"{root}/"
    assert (await plane.get(f"{root}/moved", code=302)).header("location") == f"{root}/there"
    assert len((await plane.get(f"{root}/big")).body) == 64 * 65536
    assert (await plane.get(f"{root}/chunks")).body == b"abcde"
    assert (await plane.ask("HEAD", f"{root}/any", None, 201)).body == b""
    assert (await plane.ask("DELETE", f"{root}/any", None, 201)).json[0] == "DELETE"
    for bad in ("silent", "broken", "huge"):
        refused = (await plane.get(f"{root}/{bad}", code=503)).json
        assert refused["reason"] == "ServiceUnavailable" and "error trying to reach service" in refused["message"]


@pytest.mark.parametrize(
    ("path", "code", "message"),
    [
        (f"{PODS}/none/proxy/", 404, 'pods "none" not found'),
        (f"{PODS}/a:9/proxy/", 503, "port 9"),
        (f"{PODS}/ftp:a:80/proxy/", 400, 'invalid pod request "ftp:a:80"'),
        (f"{SERVICES}/none/proxy/", 404, 'endpoints "none" not found'),
        (f"{SERVICES}/s:other/proxy/", 503, 'no endpoints available for service "s:other"'),
        (f"{SERVICES}/s:81/proxy/", 503, 'no service port 81 found for service "s"'),
        ("/api/v1/nodes/none/proxy/", 404, 'nodes "none" not found'),
        ("/api/v1/nodes/n1:9100/proxy/", 503, "n1 is a virtual node"),
    ],
)
@in_loop
async def test_what_is_not_there_says_so(path, code, message):
    assert message in (await (await planned()).get(path, code=code)).json["message"]


@in_loop
async def test_the_kubelet_of_a_virtual_node():
    plane = await planned()
    node = "/api/v1/nodes/n1/proxy"
    assert (await plane.get(f"{node}/healthz")).body == b"ok"
    assert [item["metadata"]["name"] for item in (await plane.get(f"{node}/pods")).json["items"]] == ["a"]
    summary = (await plane.get("/api/v1/nodes/n1:10250/proxy/stats/summary")).json
    assert summary["node"]["nodeName"] == "n1" and summary["pods"][0]["podRef"]["name"] == "a"
    assert (await plane.get(f"{node}/none", code=404)).body == b"404 page not found\n"
    assert (await plane.ask("POST", f"{node}/pods", None, 405)).body


@in_loop
async def test_it_needs_the_right_to_the_subresource():
    plane = await planned()
    plane.token = plane.tokens.issue("nobody", ())
    refused = (await plane.get(f"{PODS}/a/proxy/x", code=403)).json
    assert 'cannot get resource "pods/proxy"' in refused["message"]
    assert (
        'cannot create resource "nodes/proxy"'
        in (await plane.ask("POST", "/api/v1/nodes/n1/proxy/", code=403)).json["message"]
    )


@in_loop
async def test_an_upgrade_hands_the_bytes_over():
    plane = await planned()

    async def handler(request) -> Response:
        return await plane.app(request)

    async with await serve(handler) as server:
        reader, writer = await connect(server)
        lines = [f"GET {PODS}/a:8080/proxy/socket HTTP/1.1", "Host: h", f"Authorization: Bearer {plane.token}"]
        lines += ["Connection: Upgrade", "Upgrade: websocket", "", ""]
        writer.write("\r\n".join(lines).encode())
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101") and b"websocket" in head.lower()
        assert await reader.readexactly(3) == b"hi "
        writer.write(b"hello")
        assert await asyncio.wait_for(reader.readexactly(5), 5) == b"HELLO"
        writer.close()
        reader, writer = await connect(server)
        writer.write(
            f"GET {PODS}/a/proxy/big HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {plane.token}\r\n\r\n".encode()
        )
        assert len((await read_response(reader))[2]) == 64 * 65536
        writer.close()
