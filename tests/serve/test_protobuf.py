"""Protobuf bodies: what Go encoded comes out as Go writes it in JSON, and nothing that is sent breaks the reader.

The vectors are one randomly filled object per kind, encoded and written by the Kubernetes 1.36 modules themselves
(scripts/compile_protobuf.py).
"""

import asyncio
import base64
import json
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.api.begin import Api
from steersman.api.errors import ApiError
from steersman.api.kinds import Kinds
from steersman.serve.protobuf import MAX_MESSAGES, read_protobuf
from steersman.serve.protobuf_table import table
from steersman.serve.served import why_unserved
from tests.serve.plane import DEPLOYMENTS, PODS, Plane, deployment, pod

VECTORS = json.loads(zlib.decompress((Path(__file__).parent / "data/protobuf.json.z").read_bytes()))
BODIES = {gvk: base64.b64decode(body) for gvk, body, _ in VECTORS}
PROTOBUF = "application/vnd.kubernetes.protobuf"


def varint(value: int) -> bytes:
    value &= 0xFFFF_FFFF_FFFF_FFFF
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def block(number: int, *parts: bytes) -> bytes:
    """A field with a length."""
    data = b"".join(parts)
    return varint(number << 3 | 2) + varint(len(data)) + data


def enveloped(api_version: str, kind: str, *parts: bytes) -> bytes:
    return b"k8s\0" + block(1, block(1, api_version.encode()), block(2, kind.encode())) + block(2, *parts)


def config_map(*parts: bytes) -> bytes:
    return enveloped("v1", "ConfigMap", *parts)


@pytest.mark.parametrize(("gvk", "wanted"), [(gvk, wanted) for gvk, _, wanted in VECTORS])
def test_what_go_encoded_is_read_as_go_writes_it(gvk, wanted):
    assert read_protobuf(BODIES[gvk]) == wanted


def test_every_served_kind_can_be_sent():
    kinds = Kinds.builtin()
    wanted = {f"{kind.api_version}/{kind.kind}" for kind in kinds.all() if why_unserved(kind) is None}
    wanted |= {f"{kind.api_version}/{kind.kind}" for kind in kinds.virtual()}
    assert wanted <= set(BODIES) and wanted <= set(table().kinds)


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(sorted(BODIES)), st.data())
def test_a_spoilt_body_is_read_or_refused(gvk, data):
    body = bytearray(BODIES[gvk])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(4, len(body) - 1))
        body[at] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(body)) | st.just(len(body)))
    try:
        read_protobuf(bytes(body[:end]))
    except ApiError as error:
        assert error.code == 400


@given(st.binary(max_size=200))
def test_noise_is_read_or_refused(noise):
    for body in (noise, b"k8s\0" + noise, enveloped("v1", "Pod", noise)):
        try:
            read_protobuf(body)
        except ApiError as error:
            assert error.code == 400


META = block(1, block(1, b"a"))
DATA = block(2, block(1, b"k"), block(2, b"v"))


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "expected prefix [107 56 115 0]"),
        (b"{}", "expected prefix"),
        (b"k8s\0", "no built-in kind"),
        (enveloped("example.com/v1", "Thing"), "example.com/v1/Thing"),
        (config_map(META + b"\x12\x05\x0a"), "longer than"),
        (config_map(META[:-1]), "longer than"),
        (config_map(b"\x0a" + b"\xff" * 10 + b"\x01"), "ten bytes"),
        (config_map(b"\x08\x01"), "wire type 0"),
        (config_map(b"\x0b\x00"), "wire type 3"),
        (config_map(b"\x9b\x06\x08"), "ends inside"),
        (config_map(b"\x7c"), "wire type 4"),
        (config_map(b"\x02\x00"), "number 0"),
        (config_map(block(1, block(1, b"\xff"))), "UTF-8"),
        (config_map(block(1, block(8, b"\x08" + varint(1 << 60)))), "years 1 to 9999"),
        (enveloped("apps/v1", "ControllerRevision", block(2, block(1, b"{"))), "JSON inside"),
        (enveloped("v1", "Service", block(2, block(1, block(4, b"\x08\x02")))), "IntOrString"),
    ],
)
def test_what_is_malformed_is_refused_with_its_fault(body, told):
    with pytest.raises(ApiError) as caught:
        read_protobuf(body)
    assert caught.value.code == 400 and told in str(caught.value)


def test_unknown_fields_are_skipped_and_later_ones_win():
    group = b"\x9b\x06" + b"\x08\x01" + block(3, b"x") + b"\x9c\x06"
    again = block(1, block(3, b"shop"), block(11, block(1, b"a"), block(2, b"1")))
    out = read_protobuf(config_map(META, DATA, block(77, b"x"), group, b"\xe8\x07\x01", again, b"\xed\x07abcd"))
    assert out["metadata"] == {"name": "a", "namespace": "shop", "labels": {"a": "1"}}
    assert out["data"] == {"k": "v"}
    assert read_protobuf(config_map(META, block(1, block(1, b""))))["metadata"] == {}


def test_an_object_within_an_object():
    inner = config_map(META, DATA)
    out = read_protobuf(enveloped("apps/v1", "ControllerRevision", META, block(2, block(1, inner)), b"\x18\x05"))
    assert out["data"] == {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, "data": {"k": "v"}}
    assert out["revision"] == 5
    for _ in range(70):
        inner = enveloped("apps/v1", "ControllerRevision", META, block(2, block(1, inner)))
    with pytest.raises(ApiError, match="levels"):
        read_protobuf(inner)


def test_depth_and_number_of_messages_are_bounded():
    not_field = next(tag >> 3 for tag, f in _schema_fields().items() if f.name == "not")
    schema = b""
    for _ in range(200):
        schema = block(not_field, schema)
    crd = enveloped("apiextensions.k8s.io/v1", "CustomResourceDefinition", _in_schema(schema))
    with pytest.raises(ApiError, match="levels"):
        read_protobuf(crd)
    containers = block(2, b"\x12\x00" * (MAX_MESSAGES // 2))
    with pytest.raises(ApiError, match="messages"):
        read_protobuf(enveloped("v1", "Pod", containers))


def _schema_fields():
    props = next(m for m in table().messages if m.name.endswith("v1.JSONSchemaProps"))
    return props.ready().fields


def _in_schema(schema: bytes) -> bytes:
    """A CustomResourceDefinition's spec.versions[0].schema.openAPIV3Schema."""
    crd = table().messages[table().kinds["apiextensions.k8s.io/v1/CustomResourceDefinition"]]
    path, message = [], crd
    for name in ("spec", "versions", "schema", "openAPIV3Schema"):
        tag, field = next((tag, f) for tag, f in message.ready().fields.items() if f.name == name)
        path.append(tag >> 3)
        message = field.message
    for number in reversed(path):
        schema = block(number, schema)
    return schema


def test_numbers_in_one_block_are_read():
    security = next(f for f in _pod_fields().values() if f.name == "securityContext")
    assert security.message is not None
    groups = next(t >> 3 for t, f in security.message.ready().fields.items() if f.name == "supplementalGroups")
    number = next(t >> 3 for t, f in _pod_fields().items() if f.name == "securityContext")
    spec = block(2, block(number, block(groups, varint(5) + varint(-1))))
    out = read_protobuf(enveloped("v1", "Pod", META, spec))
    assert out["spec"]["securityContext"]["supplementalGroups"] == [5, -1]


def _pod_fields():
    message = next(m for m in table().messages if m.name == "v1.PodSpec")
    return message.ready().fields


def test_clients_create_update_and_delete_in_protobuf():
    async def main():
        plane = Plane()
        path = "/api/v1/namespaces/default/configmaps"
        made = await plane.ask("POST", path, config_map(META, DATA), 201, content_type=PROTOBUF)
        assert made.json["data"] == {"k": "v"} and made.json["metadata"]["name"] == "a"
        nameless = b"k8s\0" + block(2, META, block(2, block(1, b"k"), block(2, b"w")))
        put = await plane.ask("PUT", path + "/a", nameless, 200, content_type=PROTOBUF)
        assert put.json["data"] == {"k": "w"}
        wrong = enveloped("v1", "DeleteOptions", block(2, block(1, b"another")))
        await plane.ask("DELETE", path + "/a", wrong, 409, content_type=PROTOBUF)
        options = enveloped("apps/v1", "DeleteOptions", b"\x08\x00", block(4, b"Background"))
        await plane.ask("DELETE", path + "/a", options, 200, content_type=PROTOBUF)
        await plane.get(path + "/a", 404)

    asyncio.run(main())


def test_subresources_in_protobuf():
    async def main():
        plane = Plane()
        await plane.post(PODS, pod("a"))
        binding = enveloped("v1", "Binding", META, block(2, block(1, b"Node"), block(3, b"n1")))
        await plane.ask("POST", PODS + "/a/binding", binding, 201, content_type=PROTOBUF)
        assert (await plane.get(PODS + "/a")).json["spec"]["nodeName"] == "n1"
        await plane.post(DEPLOYMENTS, deployment("web"))
        scale = enveloped(
            "autoscaling/v1", "Scale", block(1, block(1, b"web"), block(3, b"default")), block(2, b"\x08\x04")
        )
        await plane.ask("PUT", DEPLOYMENTS + "/web/scale", scale, 200, content_type=PROTOBUF)
        assert (await plane.get(DEPLOYMENTS + "/web")).json["spec"]["replicas"] == 4

    asyncio.run(main())


def test_what_has_no_protobuf_form_is_415_with_what_has():
    async def main():
        plane = Plane()
        path = _custom(plane)
        refused = await plane.ask("POST", path, config_map(META), 415, content_type=PROTOBUF)
        assert PROTOBUF not in refused.json["message"].partition(";")[0]
        patched = await plane.ask("PATCH", PODS + "/a", config_map(META), 415, content_type=PROTOBUF)
        assert patched.json["kind"] == "Status"
        bad = await plane.ask("POST", PODS, b"k8s\0\x0a\xff", 400, content_type=PROTOBUF)
        assert bad.json["reason"] == "BadRequest"

    asyncio.run(main())


def _custom(plane):
    """A custom kind is served; the path of its objects."""
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    names = {"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec}
    crd["metadata"] = {"name": "things.example.com"}
    kind = Kinds.custom_from_yaml_dict(crd, "test")
    plane.backend.api = Api(plane.backend.api.kinds.with_custom(kind))
    return "/apis/example.com/v1/namespaces/default/things"


@pytest.mark.interop
def test_committed_files_are_fresh():
    script = Path(__file__).parents[2] / "scripts/compile_protobuf.py"
    subprocess.run([sys.executable, str(script), "--check"], check=True)
