"""What operators look at: health, /metrics, compressed answers, warnings, and kinds that are computed."""

import asyncio
import functools
import gzip

import pytest

from steersman.serve.app import App
from steersman.serve.encoding import FROM_BYTES, compressed, is_local, takes_gzip
from steersman.serve.message import Headers, Request, Response
from steersman.serve.telemetry import MAX_SERIES, OTHER, Asked, Telemetry
from tests.serve.plane import PODS, TABLE, Plane, configmap, pod

METRICS = "/apis/metrics.k8s.io/v1beta1"


def in_loop(test):
    @functools.wraps(test)
    def run(*args, **kwargs):
        asyncio.run(test(*args, **kwargs))

    return run


@in_loop
async def test_health_has_checks_that_can_be_asked_for_and_left_out():
    plane = Plane()
    wrong = ""
    plane.app = App(plane.backend, plane.tokens, {"journal": lambda: wrong}, lambda: [("made_total", "counter", 7.0)])
    assert "# TYPE made_total counter\nmade_total 7\n" in (await plane.get("/metrics")).body.decode()
    told = (await plane.get("/readyz?verbose")).body.decode()
    names = ["ping", "log", "etcd", "journal", "etcd-readiness", "informer-sync", "shutdown"]
    assert told == "".join([f"[+]{name} ok\n" for name in names]) + "readyz check passed\n"
    assert (await plane.get("/livez/journal")).body == b"ok"
    await plane.get("/livez/nothing", 404)
    wrong = "the disk is full"
    assert (await plane.get("/readyz", 500)).body.decode().endswith("readyz check failed\n")
    assert b"[-]journal failed: reason withheld" in (await plane.get("/readyz?verbose", 500)).body
    assert (await plane.get("/livez?exclude=journal&exclude=etcd")).body == b"ok"
    told = (await plane.get("/livez?exclude=journal&exclude=etcd&exclude=x&verbose")).body.decode()
    assert "[+]journal excluded: ok" in told and 'no matches for "x"' in told
    assert b"the disk is full" in (await plane.get("/readyz/journal", 500)).body


@in_loop
async def test_metrics_count_requests_by_what_they_asked_for():
    plane = Plane()
    await plane.post(PODS, pod("a"))
    await plane.get(PODS + "/a")
    await plane.get(PODS + "/b", 404)
    watch = await plane.watch(PODS + "?watch=1")
    await watch.next()
    text = (await plane.get("/metrics")).body.decode()
    one = 'verb="GET",group="",version="v1",resource="pods",subresource="",scope="resource"'
    assert f'apiserver_request_total{{{one},code="200"}} 1' in text
    assert f'apiserver_request_total{{{one},code="404"}} 1' in text
    assert f"apiserver_request_duration_seconds_count{{{one}}} 2" in text
    assert f'apiserver_request_duration_seconds_bucket{{{one},le="+Inf"}} 2' in text
    many = one.replace("GET", "WATCH").replace('scope="resource"', 'scope="namespace"')
    assert f"apiserver_longrunning_requests{{{many}}} 1" in text
    assert 'apiserver_storage_objects{group="",kind="Pod"} 1' in text
    await watch.close()
    assert f"apiserver_longrunning_requests{{{many}}} 0" in (await plane.get("/metrics")).body.decode()


def test_metrics_have_a_bounded_number_of_series():
    telemetry = Telemetry()
    for number in range(MAX_SERIES + 50):
        telemetry.answered(Asked("GET", resource=f"r{number}"), 200, 0.01)
    assert telemetry._codes[OTHER, 200] == 50
    assert len(telemetry._codes) == MAX_SERIES + 1


@pytest.mark.parametrize(
    ("header", "yes"),
    [("gzip", True), ("", False), ("br, gzip;q=0.5", True), ("gzip;q=0", False), ("deflate", False), ("*", False)],
)
def test_who_takes_gzip(header, yes):
    assert takes_gzip(header) is yes


@in_loop
async def test_large_answers_are_compressed_for_those_who_ask():
    plane = Plane()
    for number in range(4):
        await plane.post("/api/v1/namespaces/default/configmaps", configmap(f"c{number}", k="x" * (FROM_BYTES // 3)))
    path = "/api/v1/namespaces/default/configmaps"
    plain = await plane.get(path)
    packed = await plane.get(path, accept_encoding="gzip")
    assert packed.header("content-encoding") == "gzip" and packed.header("vary") == "Accept-Encoding"
    assert gzip.decompress(packed.body) == plain.body and len(packed.body) < len(plain.body) // 10
    small = await plane.get(path + "/c0", accept_encoding="gzip")
    assert not small.header("content-encoding")


@pytest.mark.parametrize(
    ("address", "local"),
    [("127.0.0.1", True), ("127.8.9.1", True), ("::1", True), ("::ffff:127.0.0.1", True), ("192.0.2.1", False),
     ("::ffff:192.0.2.1", False), ("fe80::1%eth0", False), ("", False), ("name", False)],
)  # fmt: skip
def test_clients_on_the_same_machine_get_answers_as_they_are(address, local):
    assert is_local(address) is local
    request = Request("GET", "/", headers=Headers([("accept-encoding", "gzip")]), peer=(address, 1))
    packed = compressed(request, Response(200, (), b"x" * FROM_BYTES))
    assert isinstance(packed.body, bytes) is local


@in_loop
async def test_deprecated_kinds_are_told():
    plane = Plane()
    assert "EndpointSlice" in (await plane.get("/api/v1/endpoints")).header("warning")
    assert not (await plane.get("/api/v1/services")).header("warning")


@in_loop
async def test_top_sees_what_virtual_nodes_say_is_used():
    plane = Plane()
    await plane.post("/api/v1/nodes", {"metadata": {"name": "n1"}})
    used = {"kwok.x-k8s.io/usage-cpu": "250m", "kwok.x-k8s.io/usage-memory": "64Mi"}
    await plane.post(PODS, pod("a", annotations=used, labels={"app": "a"}))
    await plane.post(PODS, pod("b"))
    assert (await plane.get(METRICS + "/pods")).json["items"] == []
    for name in "ab":
        await plane.post(
            f"{PODS}/{name}/binding", {"metadata": {"name": name}, "target": {"kind": "Node", "name": "n1"}}
        )
        await plane.merge(f"{PODS}/{name}/status", {"status": {"phase": "Running"}})
    listed = (await plane.get(METRICS + "/namespaces/default/pods?labelSelector=app%3Da")).json
    assert listed["kind"] == "PodMetricsList" and len(listed["items"]) == 1
    assert listed["items"][0]["containers"][0]["usage"] == {"cpu": "250000000n", "memory": "65536Ki"}
    one = (await plane.get(METRICS + "/namespaces/default/pods/b")).json
    assert one["kind"] == "PodMetrics" and one["containers"][0]["usage"] == {"cpu": "1000000n", "memory": "1024Ki"}
    node = (await plane.get(METRICS + "/nodes/n1")).json
    assert node["usage"] == {"cpu": "251000000n", "memory": "66560Ki"} and node["window"]
    await plane.get(METRICS + "/nodes/n2", 404)
    await plane.post(METRICS + "/nodes", {"metadata": {"name": "x"}}, 405)


@in_loop
async def test_api_services_are_the_groups_that_are_served():
    plane = Plane()
    listed = (await plane.get("/apis/apiregistration.k8s.io/v1/apiservices")).json["items"]
    names = {item["metadata"]["name"]: item for item in listed}
    groups = (await plane.get("/apis")).json["groups"]
    told = {f"{v['version']}.{g['name']}" for g in groups for v in g["versions"]}
    assert set(names) == {"v1."} | told - {"v1.apiregistration.k8s.io"}
    assert [group["name"] for group in groups][:3] == ["apiregistration.k8s.io", "apps", "events.k8s.io"]
    assert groups[-1]["name"] == "metrics.k8s.io"
    assert names["v1.apps"]["spec"]["groupPriorityMinimum"] == 17800
    await plane.app.aggregator.round()
    table = (await plane.get("/apis/apiregistration.k8s.io/v1/apiservices/v1.apps", accept=TABLE)).json
    assert table["rows"][0]["cells"][:3] == ["v1.apps", "Local", "True"]
    parts = (await plane.get("/api/v1/componentstatuses", accept=TABLE)).json
    assert ["ping", "Healthy", "ok", ""] in [row["cells"] for row in parts["rows"]]
    await plane.delete("/api/v1/componentstatuses/ping", code=405)
