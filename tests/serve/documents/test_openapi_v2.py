"""/openapi/v2: everything in one document, in JSON and in protobuf; and the texts that both versions show."""

from __future__ import annotations

import json
from importlib.metadata import distribution
from typing import Any

import pytest

from steersman.serve.documents.gnostic import document_bytes
from steersman.serve.documents.openapi_v2 import PROTOBUF, converted
from steersman.serve.documents.overlay import laid_over, overlays
from tests.serve.harness import in_loop
from tests.serve.plane import Plane
from tests.serve.test_crd import planned

META = "io.k8s.apimachinery.pkg.apis.meta.v1."


def fields(data: bytes) -> list[tuple[int, Any]]:
    """The fields of a protobuf message, in order: numbers, or bytes."""
    at, out = 0, []

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            out.append((tag >> 3, varint()))
            continue
        size = {1: 8, 2: -1}[tag & 7]
        size = varint() if size < 0 else size
        assert at + size <= len(data)
        out.append((tag >> 3, data[at : at + size]))
        at += size
    return out


def pairs(data: bytes, number: int) -> dict[str, bytes]:
    """A list of (name, value)."""
    found = [dict(fields(value)) for key, value in fields(data) if key == number]
    return {one[1].decode(): one.get(2, b"") for one in found}


@in_loop
async def test_both_forms_have_every_path_and_definition_and_one_tag():
    plane = Plane()
    text = await plane.get("/openapi/v2")
    document = text.json
    assert (document["swagger"], document["info"]["title"]) == ("2.0", "Kubernetes")
    assert document["securityDefinitions"]["BearerToken"]["in"] == "header"
    index = (await plane.get("/openapi/v3")).json["paths"]
    for path in index:
        third = (await plane.get(f"/openapi/v3/{path}")).json
        assert set(third["paths"]) <= set(document["paths"]) and set(third["components"]["schemas"]) <= set(
            document["definitions"]
        )
    named = text.body.split(b'"#/definitions/')[1:]
    assert {name.split(b'"')[0].decode() for name in named} <= set(document["definitions"])
    for mark in "@.":
        packed = await plane.get("/openapi/v2", accept=PROTOBUF.replace("v2.v1", f"v2{mark}v1"))
        # Go's mime.ParseMediaType refuses an @
        assert packed.header("content-type") == PROTOBUF and packed.header("etag") == text.header("etag")
        message = dict(fields(packed.body))
        assert message[1] == b"2.0" and dict(fields(message[2]))[1] == b"Kubernetes"
        assert set(pairs(message[9], 1)) == set(document["definitions"])
        assert set(pairs(message[8], 2)) == set(document["paths"])
    same = await plane.get("/openapi/v2", code=304, if_none_match=text.header("etag"))
    assert same.body == b""
    assert (await plane.get("/openapi/v2", accept="application/yaml, application/*;q=0.1")).json == document
    assert (await plane.get("/openapi/v2", accept="text/html", code=406)).json["reason"] == "NotAcceptable"


@in_loop
async def test_a_patch_of_a_kind_is_told_as_kubectl_looks_for_it():
    plane = Plane()
    document = (await plane.get("/openapi/v2")).json
    item = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]
    patch = item["patch"]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert {"dryRun", "fieldValidation", "body"} <= {each["name"] for each in patch["parameters"]}
    body = next(each for each in patch["parameters"] if each["in"] == "body")
    assert body["schema"] == {"$ref": f"#/definitions/{META}Patch"} and body["required"]
    assert "application/strategic-merge-patch+json" in patch["consumes"]
    assert item["parameters"][0] == {"name": "name", "in": "path", "required": True, "type": "string"}
    pod = document["definitions"]["io.k8s.api.core.v1.Container"]["properties"]
    assert pod["lifecycle"]["$ref"] == "#/definitions/io.k8s.api.core.v1.Lifecycle"
    assert pod["lifecycle"]["description"].startswith("Actions that the management system")
    quantity = document["definitions"]["io.k8s.apimachinery.pkg.api.resource.Quantity"]
    assert quantity["type"] == "string" and "oneOf" not in quantity
    assert len(document["definitions"][META + "DeleteOptions"]["x-kubernetes-group-version-kind"]) > 10


@in_loop
async def test_custom_kinds_come_and_go():
    plane = await planned()
    assert "com.example.v1.Widget" in (await plane.get("/openapi/v2")).json["definitions"]
    crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com"
    versions = (await plane.get(crd)).json["spec"]["versions"]
    await plane.merge(crd, {"spec": {"versions": [{**version, "served": False} for version in versions]}})
    assert "com.example.v1.Widget" not in (await plane.get("/openapi/v2")).json["definitions"]
    await plane.get("/apis/example.com/v1/widgets", code=404)  # although it is the version that is stored


@pytest.mark.parametrize(
    ("third", "second"),
    [
        ({"type": "integer", "nullable": True, "default": 1, "minimum": 0}, {"minimum": 0}),
        (
            {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            {"x-kubernetes-preserve-unknown-fields": True},
        ),
        (
            {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True},
            {"x-kubernetes-int-or-string": True},
        ),
        (
            {
                "type": "object",
                "required": ["a", "b"],
                "properties": {"a": {"type": "string", "nullable": True}, "b": {"type": "string"}},
            },
            {"type": "object", "required": ["b"], "properties": {"a": {}, "b": {"type": "string"}}},
        ),
        ({"type": "array", "nullable": True, "items": {"type": "string"}}, {}),
    ],
)
def test_schemas_lose_what_kubectl_cannot_read(third, second):
    """As a real kube-apiserver 1.36 converted them."""
    assert converted(third) == second


def test_numbers_and_extensions_in_protobuf():
    schema = {"type": "number", "maximum": 1.5, "maxLength": 300, "uniqueItems": True, "enum": ["a", "b"]}
    schema |= {"x-kubernetes-list-map-keys": ["name"], "example": [1, 2], "unknown": 1}
    message = dict(fields(document_bytes({"definitions": {"n": schema}})))
    found = fields(pairs(message[9], 1)["n"])
    assert (7, b"\0\0\0\0\0\0\xf8?") in found and (11, 300) in found and (16, 1) in found
    assert [json.loads(dict(fields(value))[2]) for number, value in found if number == 20] == ["a", "b"]
    assert [json.loads(dict(fields(value))[2]) for number, value in found if number == 30] == [[1, 2]]
    extension = dict(fields(next(value for number, value in found if number == 31)))
    assert extension[1] == b"x-kubernetes-list-map-keys" and json.loads(dict(fields(extension[2]))[2]) == ["name"]


# -- texts


@in_loop
async def test_documents_say_what_fields_are_for():
    plane = await planned()
    core = (await plane.get("/openapi/v3/api/v1")).json["components"]["schemas"]
    container = core["io.k8s.api.core.v1.Container"]["properties"]
    assert container["image"]["description"].startswith("Container image name.")
    assert container["imagePullPolicy"]["enum"] == ["Always", "IfNotPresent", "Never"]
    assert core["io.k8s.api.core.v1.ContainerPort"]["properties"]["protocol"]["default"] == "TCP"
    resources = container["resources"]
    assert resources["allOf"] == [{"$ref": "#/components/schemas/io.k8s.api.core.v1.ResourceRequirements"}]
    assert resources["default"] == {} and resources["description"]
    assert core["io.k8s.api.core.v1.PodList"]["description"] == "PodList is a list of Pods."
    widgets = (await plane.get("/openapi/v3/apis/example.com/v1")).json["components"]["schemas"]
    assert widgets["com.example.v1.WidgetList"]["description"] == "WidgetList is a list of Widget"
    kind = widgets["com.example.v1.Widget"]["properties"]["kind"]
    assert kind["description"].startswith("Kind is a string value")


def test_the_texts_are_those_of_the_official_definitions():
    """Held against another copy of them, word by word but for the enums that only a running server lists."""
    told = distribution("kubernetes-validate").locate_file(
        "kubernetes_validate/kubernetes-json-schema/v1.36.0-local/_definitions.json"
    )
    official = json.loads(told.read_text(encoding="utf-8"))["$defs"]
    count = 0
    for name, overlay in overlays().items():
        for field, told in overlay.get("properties", {}).items():
            text = official[name]["properties"][field].get("description", "")
            assert told.get("description", "").split("\n\nPossible enum values")[0].strip() == text.strip(), (
                name,
                field,
            )
            count += 1
    assert count > 2400


def test_an_overlay_wraps_references_and_removes_what_is_null():
    node = {"type": "object", "properties": {"a": {"$ref": "#/x"}, "b": {"type": "string", "format": "f"}}}
    overlay = {"properties": {"a": {"description": "d"}, "b": {"format": None, "default": {}}, "gone": {"x": 1}}}
    assert laid_over(node, overlay)["properties"] == {
        "a": {"allOf": [{"$ref": "#/x"}], "description": "d"},
        "b": {"type": "string", "default": {}},
    }
    assert laid_over({"$ref": "#/x"}, {}) == {"$ref": "#/x"}
