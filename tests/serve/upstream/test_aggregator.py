"""Aggregation: an APIService sends requests to another API server, a real one over TLS."""

from __future__ import annotations

import asyncio
import base64
import contextlib

import pytest

from steersman.serve.credentials.front_proxy import front_proxy, published
from steersman.serve.credentials.tls import Authority
from steersman.serve.virtual import VirtualStreams
from tests.serve.harness import in_loop
from tests.serve.plane import PODS, Plane, pod
from tests.serve.test_documents import V2
from tests.serve.upstream.wardle import GROUP, ROOT, VERSION, Wardle

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
NAME = f"{VERSION}.{GROUP}"
FLUNDERS = f"{ROOT}/namespaces/default/flunders"


def api_service(bundle="", **spec):
    trust = {"caBundle": bundle} if bundle else {"insecureSkipTLSVerify": True}
    own = {"group": GROUP, "version": VERSION, "groupPriorityMinimum": 1000, "versionPriority": 15}
    service = {"name": "api", "namespace": "default", "port": 443}
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": NAME},
        "spec": {**own, **trust, "service": service, **spec},
    }


@contextlib.asynccontextmanager
async def planned(tmp_path, server_name="api.default.svc"):
    """A control plane with a pod behind the service `api`, whose port is a Wardle's."""
    front, requestheader = front_proxy(tmp_path)
    serving = Authority.create(tmp_path / "serving")
    certificate, key = serving.server_files([server_name])
    wardle = Wardle(certificate, key, requestheader.directory / "ca.crt")

    async def piped(duplex, obj):
        reader, writer = await asyncio.open_connection("127.0.0.1", wardle.port)

        async def up():
            while data := await duplex.read():
                writer.write(data)

        task = asyncio.create_task(up())
        try:
            while data := await reader.read(65536):
                await duplex.write(data)
        finally:
            task.cancel()
            writer.close()

    plane = Plane()
    plane.app.aggregator.streams = VirtualStreams(ports={8443: piped})
    plane.app.aggregator.front = front
    plane.wardle, plane.bundle = wardle, base64.b64encode(serving.pem).decode()
    try:
        yield plane
    finally:
        wardle.close()


async def deployed(plane):
    """The pod, the service and its slice."""
    await plane.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
    await plane.post(PODS, pod("a"))
    target = {"apiVersion": "v1", "kind": "Node", "name": "n1"}
    await plane.post(
        f"{PODS}/a/binding", {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": target}
    )
    await plane.merge(f"{PODS}/a/status", {"status": {"phase": "Running", "podIP": "10.0.0.9"}})
    ports = [{"name": "https", "port": 443, "targetPort": 8443}]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "api"}, "spec": {"ports": ports}}
    await plane.post("/api/v1/namespaces/default/services", service)


async def sliced(plane, port_name="https"):
    ref = {"kind": "Pod", "name": "a", "namespace": "default"}
    await plane.post(
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": f"api-{port_name}", "labels": {"kubernetes.io/service-name": "api"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.0.0.9"], "conditions": {"ready": True}, "targetRef": ref}],
            "ports": [{"name": port_name, "port": 8443, "protocol": "TCP"}],
        },
    )


async def condition(plane):
    await plane.app.aggregator.round()
    (found,) = (await plane.get(f"{SERVICES}/{NAME}")).json["status"]["conditions"]
    return found["status"], found["reason"], found["message"]


def test_an_aggregated_api_server_is_found_trusted_and_asked(tmp_path):
    @in_loop
    async def test():
        async with planned(tmp_path) as plane:
            await plane.get(f"{ROOT}/flunders", code=404)
            await plane.post(SERVICES, api_service(plane.bundle))
            assert (await plane.get(f"{ROOT}/flunders", code=503)).body == b"service unavailable\n"
            assert (await condition(plane))[:2] == ("False", "ServiceNotFound")
            await deployed(plane)
            assert (await condition(plane))[:2] == ("False", "EndpointsNotFound")
            await sliced(plane, "other")
            assert (await condition(plane))[:2] == ("False", "MissingEndpoints")
            await sliced(plane)
            assert await condition(plane) == ("True", "Passed", "all checks passed")
            assert plane.wardle.seen[-1][2:4] == ("system:kube-aggregator", ["system:masters"])

            flunder = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Flunder", "metadata": {"name": "f"}}
            claims = {"x_remote_user": "root", "x_remote_group": "system:masters", "x_mine": "kept"}
            made = await plane.post(f"{FLUNDERS}?dryRun=&a=%2F", flunder, **claims)
            assert made.json == flunder and plane.wardle.flunders == {"f": flunder}
            method, path, user, groups, headers = plane.wardle.seen[-1]
            assert (method, path) == ("POST", f"{FLUNDERS}?dryRun=&a=%2F")
            assert user == "steersman-admin" and "system:masters" in groups and len(groups) == len(set(groups))
            assert "Authorization" not in headers and headers["x-mine"] == "kept"
            assert (await plane.get(FLUNDERS)).json["items"] == [flunder]
            assert b'"ADDED"' in (await plane.get(f"{FLUNDERS}?watch=1")).body
            assert (await plane.get(f"{ROOT}/moved", code=502)).body.endswith(b"which is not permitted")
            await plane.get(f"{ROOT}/none", code=404)

    test()


def test_discovery_and_openapi_have_it(tmp_path):
    @in_loop
    async def test():
        async with planned(tmp_path) as plane:
            await deployed(plane)
            await sliced(plane)
            await plane.post(SERVICES, api_service(plane.bundle))
            await condition(plane)
            groups = [group["name"] for group in (await plane.get("/apis")).json["groups"]]
            assert groups.index(GROUP) > groups.index("apps")
            assert (await plane.get(f"/apis/{GROUP}")).json["versions"] == [
                {"groupVersion": f"{GROUP}/{VERSION}", "version": VERSION}
            ]
            assert (await plane.get(ROOT)).json["resources"][0]["name"] == "flunders"
            items = (await plane.get("/apis", accept=V2)).json["items"]
            (version,) = next(item for item in items if item["metadata"]["name"] == GROUP)["versions"]
            (flunders,) = version["resources"]
            assert version["freshness"] == "Current" and flunders["scope"] == "Namespaced"
            assert flunders["responseKind"] == {"group": GROUP, "version": VERSION, "kind": "Flunder"}
            assert [part["subresource"] for part in flunders["subresources"]] == ["status"]
            entry = (await plane.get("/openapi/v3")).json["paths"][ROOT[1:]]
            assert (await plane.get(entry["serverRelativeURL"])).json["info"]["title"] == "Wardle"
            told = (await plane.get("/openapi/v2")).json
            path = told["paths"][f"{ROOT}/flunders"]
            assert path["parameters"] == [{"name": "pretty", "in": "query", "type": "string"}]
            meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
            of = told["definitions"]["example.Flunder"]["properties"]
            assert (
                of["metadata"] == {"$ref": f"#/definitions/{meta}_v2"} and "example.Unused" not in told["definitions"]
            )
            assert told["definitions"][f"{meta}_v2"]["description"] == "another one"
            assert told["definitions"][meta]["properties"] and "parameters" in told["paths"]["/api/v1/secrets"]
            protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
            assert b"example.Flunder" in (await plane.get("/openapi/v2", accept=protobuf)).body

            plane.wardle.healthy = False
            status, reason, message = await condition(plane)
            assert (status, reason) == ("False", "FailedDiscoveryCheck") and "bad status from https://api" in message
            assert (await plane.get(FLUNDERS, code=503)).body == b"service unavailable\n"
            items = (await plane.get("/apis", accept=V2)).json["items"]
            (version,) = next(item for item in items if item["metadata"]["name"] == GROUP)["versions"]
            assert version["freshness"] == "Stale" and version["resources"]
            await plane.delete(f"{SERVICES}/{NAME}")
            assert GROUP not in [group["name"] for group in (await plane.get("/apis")).json["groups"]]
            await plane.get(FLUNDERS, code=404)

    test()


def test_a_certificate_that_is_not_vouched_for_is_refused(tmp_path):
    @in_loop
    async def test():
        async with planned(tmp_path, "other.example.com") as plane:
            await deployed(plane)
            await sliced(plane)
            await plane.post(SERVICES, api_service(plane.bundle))
            status, reason, message = await condition(plane)
            assert (status, reason) == ("False", "FailedDiscoveryCheck") and "tls: failed to verify" in message
            await plane.merge(f"{SERVICES}/{NAME}", {"spec": {"caBundle": None, "insecureSkipTLSVerify": True}})
            assert (await condition(plane))[0] == "True"
            plane.app.aggregator.front = None  # who has no certificate is nobody there
            assert (await condition(plane))[0] == "False"

    test()


def test_a_service_may_name_a_host(tmp_path):
    @in_loop
    async def test():
        async with planned(tmp_path) as plane:
            spec = {"type": "ExternalName", "externalName": "localhost"}
            service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "api"}, "spec": spec}
            await plane.post("/api/v1/namespaces/default/services", service)
            where = {"name": "api", "namespace": "default", "port": plane.wardle.port}
            await plane.post(SERVICES, api_service(plane.bundle, service=where))
            assert (await condition(plane))[0] == "True"
            assert (await plane.get(FLUNDERS)).json["items"] == []

    test()


def test_it_needs_the_rights_here_first(tmp_path):
    @in_loop
    async def test():
        async with planned(tmp_path) as plane:
            await deployed(plane)
            await sliced(plane)
            await plane.post(SERVICES, api_service(plane.bundle))
            await condition(plane)
            plane.token = plane.tokens.issue("nobody", ())
            before = len(plane.wardle.seen)
            refused = (await plane.get(FLUNDERS, code=403)).json
            assert "cannot list resource" in refused["message"] and len(plane.wardle.seen) == before

    test()


@in_loop
async def test_local_ones_are_objects_like_others():
    plane = Plane()
    await plane.app.aggregator.round()
    found = {item["metadata"]["name"]: item for item in (await plane.get(SERVICES)).json["items"]}
    assert {"v1.", "v1.apps", "v1beta1.metrics.k8s.io"} <= set(found) and "v1.apiregistration.k8s.io" not in found
    assert found["v1.apps"]["spec"]["groupPriorityMinimum"] == 17800
    (told,) = found["v1.apps"]["status"]["conditions"]
    assert (told["type"], told["status"], told["reason"]) == ("Available", "True", "Local")
    rev = plane.backend.store.rev
    await plane.app.aggregator.round()
    assert plane.backend.store.rev == rev  # nothing to say twice


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"group": "other.example.com"}, 'must be `spec.version+"."+spec.group`'),
        ({"groupPriorityMinimum": 0}, "must be positive and less than 20000"),
        ({"versionPriority": 2000}, "must be positive and less than 1000"),
        ({"caBundle": "YQ=="}, "may not be true if caBundle is present"),
        ({"service": {"name": "", "namespace": "default"}}, "spec.service.name: Required value"),
        ({"service": {"name": "a", "namespace": "b", "port": 70000}}, "port is not valid"),
        ({"service": None}, "local APIServices may not have insecureSkipTLSVerify"),
    ],
)
@in_loop
async def test_what_an_api_service_must_be(change, message):
    plane = Plane()
    refused = await plane.post(SERVICES, api_service(**change), code=422)
    assert message in refused.json["message"]


@in_loop
async def test_the_port_is_that_of_https():
    plane = Plane()
    where = {"name": "a", "namespace": "b"}
    made = await plane.post(SERVICES, api_service(service=where))
    assert made.json["spec"]["service"] == {**where, "port": 443}


def test_what_other_servers_read_about_us(tmp_path):
    _, authority = front_proxy(tmp_path)
    data = published(authority)
    assert data["requestheader-allowed-names"] == '["front-proxy-client"]'
    assert data["requestheader-client-ca-file"].startswith("-----BEGIN CERTIFICATE")
    assert data["requestheader-username-headers"] == '["X-Remote-User"]'
