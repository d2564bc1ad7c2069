"""Custom kinds whose schema changes under their objects: pruning, later defaults, ratcheting, storage versions."""

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.api.crd.pruning import prune
from steersman.api.crd.structural import from_trusted
from steersman.api.errors import Invalid
from steersman.kernel.effect import MICRO, Request
from steersman.kernel.object import Key
from steersman.kernel.value import freeze, thaw
from tests.api.cluster import Cluster

CRD = "apiextensions.k8s.io/v1/CustomResourceDefinition"
NAME = "widgets.example.com"
KEY = Key("example.com", "Widget", "shop", "w")


def version(spec, name="v1", storage=True, **more):
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}
    return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}, **more}


def spec_of(*versions):
    names = {"kind": "Widget", "plural": "widgets"}
    return {"group": "example.com", "scope": "Namespaced", "names": names, "versions": list(versions)}


@pytest.fixture
def cluster():
    made = Cluster()
    made.create("v1/Namespace", "shop")
    return made


def define(cluster, *versions):
    spec = copy.deepcopy(spec_of(*versions))
    if cluster.store.count(("apiextensions.k8s.io", "CustomResourceDefinition")):
        return cluster.merge(CRD, NAME, {"spec": spec})
    return cluster.create(CRD, NAME, spec=spec)


def send(cluster, verb, body=None, api="v1", **options):
    if verb == "create":
        body = {"apiVersion": f"example.com/{api}", "kind": "Widget", "metadata": {"name": "w"}, **body}
    options = {"version": api, **options}
    return cluster.send(Request(verb, KEY, body, "", "me", "me", cluster.now * MICRO, options))


def read(cluster, api="v1"):
    return thaw(send(cluster, "get", api=api).obj.value)


def test_unchanged_faults_pass_and_changed_ones_do_not(cluster):
    keyed = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "items": {
            "type": "object",
            "required": ["k"],
            "properties": {"k": {"type": "string"}, "n": {"type": "integer"}},
        },
    }
    define(cluster, version({"a": {"type": "string"}, "b": {"type": "string"}, "l": keyed}))
    send(cluster, "create", {"spec": {"a": "long", "b": "x", "l": [{"k": "one", "n": 9}, {"k": "two", "n": 1}]}})
    strict = copy.deepcopy(keyed)
    strict["items"]["properties"]["n"]["maximum"] = 5
    define(cluster, version({"a": {"type": "string", "maxLength": 2}, "b": {"type": "string"}, "l": strict}))
    send(cluster, "patch", {"spec": {"b": "y"}})
    assert read(cluster)["spec"]["a"] == "long"
    with pytest.raises(Invalid, match=r"spec\.a"):
        send(cluster, "patch", {"spec": {"a": "longer"}})
    changed = [{"k": "one", "n": 9}, {"k": "two", "n": 2}]  # the fault of item one is an old one
    send(cluster, "patch", {"spec": {"l": changed}})
    with pytest.raises(Invalid, match=r"spec\.l\[1\]\.n"):
        send(cluster, "patch", {"spec": {"l": [{"k": "one", "n": 9}, {"k": "two", "n": 7}]}})
    send(cluster, "patch", {"spec": {"a": "ok", "l": []}})
    with pytest.raises(Invalid, match=r"spec\.a"):  # once mended, it stays so
        send(cluster, "patch", {"spec": {"a": "long"}})


def test_what_was_let_pass_is_no_template_for_others(cluster):
    define(cluster, version({"a": {"type": "string"}, "b": {"type": "string"}}))
    send(cluster, "create", {"spec": {"a": "long"}})
    define(cluster, version({"a": {"type": "string", "maxLength": 2}, "b": {"type": "string"}}))
    kept = send(cluster, "patch", {"spec": {"b": "y"}}).obj
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w2"}, "spec": kept.spec.value}
    with pytest.raises(Invalid, match=r"spec\.a"):
        cluster.send(Request("create", KEY._replace(name="w2"), body, "", "me", "me", cluster.now * MICRO))


def test_a_new_storage_version_is_written_when_objects_are(cluster):
    one, two = {"a": {"type": "string"}}, {"a": {"type": "string"}, "b": {"type": "string", "default": "x"}}
    define(cluster, version(one), version(two, "v2", False))
    send(cluster, "create", {"spec": {"a": "1"}})
    assert cluster.store.get(KEY).api_version == "example.com/v1"
    assert read(cluster, "v2")["spec"] == {"a": "1"}  # defaults are those of the version that is stored
    define(cluster, version(one, storage=False), version(two, "v2"))
    before = cluster.store.get(KEY)
    send(cluster, "patch", {}, api="v2")
    after = cluster.store.get(KEY)
    assert (before.api_version, after.api_version) == ("example.com/v1", "example.com/v2")
    assert read(cluster, "v2")["spec"] == {"a": "1", "b": "x"}
    assert send(cluster, "patch", {}, api="v2").obj.rv == after.rv


def test_managers_of_one_name_are_told_apart_by_version(cluster):
    fields = {"a": {"type": "string"}, "b": {"type": "string"}}
    define(cluster, version(fields), version(fields, "v2", False))
    send(cluster, "create", {"spec": {"a": "1"}})
    send(cluster, "patch", {"spec": {"b": "2"}}, api="v2")
    managers = cluster.store.get(KEY).managers
    assert [(m.name, m.api_version) for m in managers] == [("me", "example.com/v1"), ("me", "example.com/v2")]


def test_junctors_look_inside(cluster):
    either = {"a": {"type": "string"}, "b": {"type": "string"}}
    found = version(either)
    root = found["schema"]["openAPIV3Schema"]["properties"]["spec"]
    root["oneOf"] = [{"required": ["a"]}, {"required": ["b"]}]
    define(cluster, found)
    with pytest.raises(Invalid, match=r"must validate one and only one schema \(oneOf\)"):
        send(cluster, "create", {"spec": {"a": "1", "b": "2"}})
    send(cluster, "create", {"spec": {"a": "1"}})


def test_a_store_without_definitions_has_the_built_in_kinds_only():
    cluster = Cluster()
    assert cluster.api.at(cluster.store) is cluster.api.kinds


SCHEMA = {
    "type": "object",
    "properties": {
        "a": {"type": "string"},
        "m": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "string"}}}},
        "l": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer"}}}},
        "free": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"a": {"type": "object"}},
        },
        "none": {"type": "object"},
    },
}
NAMES = st.sampled_from(["a", "m", "l", "free", "none", "x"])
VALUES = st.recursive(
    st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)


def naive(schema, value):
    """Pruning, written without sharing: what is not declared goes, unless it is preserved."""
    if isinstance(value, list) and "items" in schema:
        return [naive(schema["items"], item) for item in value]
    if not isinstance(value, dict) or schema.get("type") != "object":
        return value
    out = {}
    for name, item in value.items():
        child = schema.get("properties", {}).get(name) or schema.get("additionalProperties")
        if child is not None:
            out[name] = naive(child, item)
        elif schema.get("x-kubernetes-preserve-unknown-fields"):
            out[name] = item
    return out


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_pruning_is_what_the_naive_way_gives_and_shares_the_rest(value):
    schema = from_trusted({"type": "object", "properties": {"spec": SCHEMA}}).fields["spec"]
    frozen = freeze(value)
    pruned = prune(schema, frozen)
    assert thaw(pruned) == naive(SCHEMA, value)
    assert (pruned is frozen) == (thaw(pruned) == value)
    assert prune(schema, pruned) is pruned
