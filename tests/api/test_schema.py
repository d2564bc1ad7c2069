"""Schema nodes and the definitions of Kubernetes 1.36."""

import copy
import threading

import pytest

from steersman.api.schema import Definitions, Schema, SchemaError, definitions

CORE = "io.k8s.api.core.v1."
META = "io.k8s.apimachinery.pkg.apis.meta.v1."


def named(name: str) -> Schema:
    return definitions().get(name)


@pytest.mark.parametrize(
    ("definition", "field", "list_type", "keys"),
    [
        (CORE + "PodSpec", "containers", "map", ("name",)),
        (CORE + "Container", "ports", "map", ("containerPort", "protocol")),
        (CORE + "ServiceSpec", "ports", "map", ("port", "protocol")),
        (CORE + "PodStatus", "conditions", "map", ("type",)),
        (CORE + "PodStatus", "podIPs", "map", ("ip",)),
        (CORE + "PodStatus", "containerStatuses", "atomic", ()),
        (CORE + "PodSpec", "topologySpreadConstraints", "map", ("topologyKey", "whenUnsatisfiable")),
        (META + "ObjectMeta", "ownerReferences", "map", ("uid",)),
        (META + "ObjectMeta", "finalizers", "set", ()),
        (META + "ObjectMeta", "managedFields", "atomic", ()),
        (CORE + "Container", "command", "atomic", ()),
        ("io.k8s.api.authentication.v1.UserInfo", "groups", "atomic", ()),
    ],
)
def test_lists(definition, field, list_type, keys):
    node = named(definition).fields[field]
    assert (node.type, node.list_type, node.keys) == ("list", list_type, keys)


def test_untyped_list_is_atomic():
    extra = named("io.k8s.api.authentication.v1.UserInfo").fields["extra"]
    assert extra.type == "map" and extra.values.list_type == "atomic"


@pytest.mark.parametrize(
    ("definition", "field", "left_out"),
    [
        ("Container", "ports", {"containerPort": 0, "protocol": "TCP"}),
        ("EphemeralContainer", "ports", {"containerPort": 0, "protocol": "TCP"}),
        ("ServiceSpec", "ports", {"port": 0, "protocol": "TCP"}),
        ("PodSpec", "containers", {"name": ""}),
    ],
)
def test_keys_that_may_be_left_out_have_their_default(definition, field, left_out):
    assert named(CORE + definition).fields[field].key_defaults == left_out


def test_atomic_objects_and_the_one_exception():
    selector = named("io.k8s.api.apps.v1.DeploymentSpec").fields["selector"]
    assert selector.atomic and selector is named(META + "LabelSelector")
    assert named(CORE + "ObjectReference").atomic
    claim = named(CORE + "PersistentVolumeSpec").fields["claimRef"]
    assert not claim.atomic
    assert claim.fields == named(CORE + "ObjectReference").fields


@pytest.mark.parametrize(
    ("definition", "kind"),
    [
        ("io.k8s.apimachinery.pkg.api.resource.Quantity", "quantity"),
        ("io.k8s.apimachinery.pkg.util.intstr.IntOrString", "int-or-string"),
        (META + "Time", "string"),
        (META + "MicroTime", "string"),
        (META + "FieldsV1", "object"),
        ("io.k8s.apimachinery.pkg.runtime.RawExtension", "object"),
        ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON", "any"),
    ],
)
def test_definitions_with_a_form_of_their_own(definition, kind):
    node = named(definition)
    assert (node.type, node.name, node.nullable) == (kind, definition, True)
    assert node.preserve_unknown == (kind in ("object", "any"))
    assert node.format == ("date-time" if kind == "string" else "")


def test_embedded_and_opaque():
    revision = named("io.k8s.api.apps.v1.ControllerRevision")
    assert revision.fields["data"].embedded and revision.fields["data"].atomic  # owned as a whole
    props = named("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps")
    assert props.fields["default"].atomic


def test_definition_that_refers_to_itself():
    props = named("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps")
    assert props.fields["properties"].values is props
    assert props.fields["not"] is props


def test_required_formats_and_merge_keys():
    port = named(CORE + "ContainerPort")
    assert port.required == ("containerPort",)
    assert port.fields["containerPort"].format == "int32"
    assert not port.fields["containerPort"].nullable and port.fields["hostPort"].nullable
    volumes = named(CORE + "PodSpec").fields["volumes"]
    assert (volumes.merge_key, volumes.merge_strategy) == ("name", "merge,retainKeys")
    assert named(CORE + "Secret").fields["data"].values.format == "byte"
    assert named("io.k8s.api.apps.v1.DeploymentSpec").fields["strategy"].merge_strategy == "retainKeys"


def test_api_version_and_kind_are_free_text():
    assert named(CORE + "Pod").fields["kind"].enum == ()


def test_every_definition_can_be_built():
    library = definitions()
    for name in library.names():
        node = library.get(name)
        assert node.name == name
        assert list(node.fields) == sorted(node.fields)
        assert set(node.required) <= set(node.fields)
        if node.type == "list":
            assert node.items is not None


def test_equal_anonymous_nodes_are_one():
    spec, status = named(CORE + "PodSpec"), named(CORE + "PodStatus")
    assert spec.fields["nodeName"] is status.fields["hostIP"]


def test_unused_definitions_stay_unbuilt():
    library = Definitions({"a": {"type": "object", "fields": {"b": {"ref": "b"}}}, "b": {"ref": "gone"}})
    assert library.get("a").fields["b"] is library.get("b")
    with pytest.raises(SchemaError, match="no definition 'gone'"):
        _ = library.get("b").type


def test_filling_is_safe_from_several_threads():
    for _ in range(50):
        library = Definitions({"a": {"type": "object", "fields": {"b": {"type": "string"}}}})
        node, seen = library.get("a"), []
        threads = [threading.Thread(target=lambda n=node, s=seen: s.append(n.fields["b"])) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(seen) == 4 and len({id(s) for s in seen}) == 1


def test_schema_is_immutable():
    node = Schema(type="string")
    with pytest.raises(AttributeError, match="immutable"):
        node.type = "integer"
    with pytest.raises(AttributeError, match="immutable"):
        del node.type
    with pytest.raises(AttributeError, match="no attribute 'colour'"):
        _ = node.colour
    with pytest.raises(TypeError, match="colour"):
        Schema(colour="red")
    assert copy.deepcopy(node) is node and copy.copy(node) is node


def test_evolve_and_child():
    node = Schema(type="object", fields={"a": Schema(type="string")}, atomic=True)
    granular = node.evolve(atomic=False)
    assert node.atomic and not granular.atomic and granular.fields is node.fields
    assert node.child("a").type == "string" and node.child("b") is None
    assert Schema(type="map", values=node).child("anything") is node
