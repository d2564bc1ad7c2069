"""Discovery and OpenAPI: both say what is really served, and nothing else."""

import json

import pytest

from steersman.api.kinds import Kinds
from steersman.serve.accept import discovery_of
from steersman.serve.documents.openapi_schema import Components
from steersman.serve.served import Served, parts_of
from tests.serve.harness import in_loop
from tests.serve.plane import Plane

V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
V3 = V2.replace("v=v2", "v=v3")
KUBECTL_132 = f"{V2},{V2.replace('v=v2', 'v=v2beta1')},application/json"
SERVED = Served(Kinds.builtin())


@in_loop
async def test_older_discovery():
    plane = Plane()
    assert (await plane.get("/api/")).json["versions"] == ["v1"]
    groups = (await plane.get("/apis/")).json["groups"]
    apps = next(group for group in groups if group["name"] == "apps")
    assert apps["preferredVersion"] == {"groupVersion": "apps/v1", "version": "v1"}
    assert {**apps, "kind": "APIGroup", "apiVersion": "v1"} == (await plane.get("/apis/apps")).json
    rows = {row["name"]: row for row in (await plane.get("/apis/apps/v1/")).json["resources"]}
    assert rows["deployments"] == {
        "name": "deployments",
        "singularName": "deployment",
        "namespaced": True,
        "kind": "Deployment",
        "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        "shortNames": ["deploy"],
        "categories": ["all"],
    }
    scale = rows["deployments/scale"]
    assert (scale["group"], scale["version"], scale["kind"]) == ("autoscaling", "v1", "Scale")


@pytest.mark.parametrize(
    ("accept", "version"), [(KUBECTL_132, "v2"), (V2, "v2"), (V2.replace("v=v2", "v=v2beta1"), "v2beta1")]
)
@in_loop
async def test_aggregated_discovery(accept, version):
    plane = Plane()
    answer = await plane.get("/apis", accept=accept)
    assert (
        answer.header("content-type") == f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    )
    document = answer.json
    assert document["apiVersion"] == f"apidiscovery.k8s.io/{version}"
    apps = next(item for item in document["items"] if item["metadata"]["name"] == "apps")
    deployments = next(row for row in apps["versions"][0]["resources"] if row["resource"] == "deployments")
    assert deployments["scope"] == "Namespaced" and deployments["responseKind"]["kind"] == "Deployment"
    assert [part["subresource"] for part in deployments["subresources"]] == ["scale", "status"]
    core = (await plane.get("/api", accept=accept)).json
    assert [version["version"] for version in core["items"][0]["versions"]] == ["v1"]


@pytest.mark.parametrize("accept", ["", "*/*", "application/json", f"application/json,{V2}", f"{V3},application/json"])
def test_clients_that_do_not_ask_for_it_get_the_older_form(accept):
    assert discovery_of(accept) == ""


@pytest.mark.parametrize("accept", [V3, "text/html", "application/json;as=Nothing"])
@in_loop
async def test_clients_that_take_none_of_the_forms_are_told(accept):
    for path in ("/api", "/apis", "/apis/apps", "/apis/apps/v1"):
        refused = (await Plane().get(path, 406, accept=accept)).json
        assert refused["reason"] == "NotAcceptable" and "application/json" in refused["message"]


@in_loop
async def test_what_clients_have_kept_is_not_sent_again():
    plane = Plane()
    first = await plane.get("/apis", accept=V2)
    assert (first.header("vary"), first.header("cache-control")) == ("Accept", "public")
    again = await plane.get("/apis", 304, accept=V2, if_none_match=first.header("etag"))
    assert again.body == b"" and again.header("etag") == first.header("etag")
    other = await plane.get("/api", 200, accept=V2, if_none_match=first.header("etag"))
    assert other.header("etag") != first.header("etag")


def discovered():
    return [kind for group, versions in SERVED.groups.items() for v in versions for kind in SERVED.kinds_of(group, v)]


@in_loop
async def test_every_kind_and_part_that_is_discovered_is_served():
    plane = Plane()
    for kind in discovered():
        prefix = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
        below = "/namespaces/default" if kind.namespaced else ""
        if "get" not in kind.verbs:  # a review: it is asked, never listed
            assert (await plane.post(f"{prefix}{below}/{kind.plural}", {}, code=0)).code in (201, 400, 422)
            await plane.get(f"{prefix}/{kind.plural}", code=405)
            continue
        listed = await plane.get(f"{prefix}/{kind.plural}")
        assert listed.json["kind"] == f"{kind.kind}List"
        for part in parts_of(kind):
            named = {"metadata": {"name": "nosuch"}}
            method = {"get": "GET", "update": "PUT", "patch": "PATCH", "create": "POST"}[part.verbs[0]]
            answer = await plane.ask(method, f"{prefix}{below}/{kind.plural}/nosuch/{part.name}", named, 404)
            assert answer.json["reason"] == "NotFound" and answer.json["details"]["name"] == "nosuch"


def test_alpha_beta_and_what_nobody_acts_on_are_not_served():
    names = {(kind.group, kind.kind) for kind in discovered()}
    assert ("", "Pod") in names and ("coordination.k8s.io", "Lease") in names and ("", "Event") in names
    unstable = [kind for kind in discovered() if "alpha" in kind.version or "beta" in kind.version]
    assert ("events.k8s.io", "Event") in names
    assert {kind.group for kind in unstable} == {"metrics.k8s.io"}


# -- OpenAPI


@in_loop
async def test_the_index_leads_to_documents_that_may_be_kept_for_ever():
    plane = Plane()
    index = (await plane.get("/openapi/v3")).json["paths"]
    assert set(index) >= {"api/v1", "apis/apps/v1"}
    for entry in index.values():
        answer = await plane.get(entry["serverRelativeURL"])
        assert "immutable" in answer.header("cache-control")
    tag = answer.header("etag")
    assert (await plane.get(entry["serverRelativeURL"], code=304, if_none_match=tag)).body == b""
    moved = await plane.get("/openapi/v3/apis/apps/v1?hash=OLD", code=301)
    assert moved.header("location") == index["apis/apps/v1"]["serverRelativeURL"]
    assert "immutable" not in (await plane.get("/openapi/v3/apis/apps/v1")).header("cache-control")


@in_loop
async def test_documents_have_what_kubectl_looks_for():
    plane = Plane()
    document = (await plane.get("/openapi/v3/apis/apps/v1")).json
    patch = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert patch["x-kubernetes-action"] == "patch"
    assert patch["x-kubernetes-group-version-kind"] == {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert {"fieldValidation", "fieldManager", "dryRun", "force"} <= {p["name"] for p in patch["parameters"]}
    assert "application/apply-patch+yaml" in patch["requestBody"]["content"]
    schema = document["components"]["schemas"]["io.k8s.api.apps.v1.Deployment"]
    assert schema["x-kubernetes-group-version-kind"] == [{"group": "apps", "version": "v1", "kind": "Deployment"}]
    containers = document["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-list-type"] == "map" and containers["x-kubernetes-list-map-keys"] == ["name"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-patch-strategy"] == "merge"
    selector = document["components"]["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"]
    assert selector["x-kubernetes-map-type"] == "atomic"


@in_loop
async def test_every_reference_has_its_schema():
    plane = Plane()
    for path in (await plane.get("/openapi/v3")).json["paths"]:
        text = (await plane.get(f"/openapi/v3/{path}")).body
        schemas = json.loads(text)["components"]["schemas"]
        for name in {part.split(b'"')[0].decode() for part in text.split(b"#/components/schemas/")[1:]}:
            assert name in schemas, (path, name)


def test_a_schema_that_mentions_itself_ends():
    components = Components()
    crd = Kinds.builtin().get("apiextensions.k8s.io", "CustomResourceDefinition")
    components.add("crd", crd.schema)
    props = components.schemas["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"]
    assert props["properties"]["properties"]["additionalProperties"]["$ref"].endswith("JSONSchemaProps")


@in_loop
async def test_version():
    version = (await Plane().get("/version/")).json
    assert (version["major"], version["minor"]) == ("1", "36")
