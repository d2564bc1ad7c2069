"""Hostile definitions: refused with a 4xx that names a field, or accepted and usable; nothing in between."""

import copy

from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.api.errors import ApiError
from steersman.kernel.effect import MICRO, Request
from steersman.kernel.object import Key
from tests.api.cluster import Cluster
from tests.serve.test_crd import FULL, definition, version

KEY = Key("apiextensions.k8s.io", "CustomResourceDefinition", "", "widgets.example.com")
NODE = {
    "type": "object",
    "properties": {
        "l": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string", "default": "a"}}},
        },
        "m": {"type": "object", "additionalProperties": {"type": "string", "enum": ["a"]}},
        "p": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        "e": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
        "s": {"type": "string", "pattern": "^a$", "not": {"maxLength": 0}, "allOf": [{"minLength": 1}]},
        "v": {"type": "integer", "default": 3, "x-kubernetes-validations": [{"rule": "self > 1"}]},
    },
    "oneOf": [{"required": ["l"]}, {"properties": {"m": {"minProperties": 1}}}],
}
KEYWORDS = ["type", "items", "properties", "additionalProperties", "default", "allOf", "not", "required", "pattern"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 70) | st.floats() | st.sampled_from(["", "object", "array", "a", "("]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=3),
    max_leaves=8,
)


def places(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        yield from places(item, (*path, name))


def document():
    made = definition(version("v1", True, **copy.deepcopy(FULL)), version("v2"))
    made["spec"]["conversion"] = {
        "strategy": "Webhook",
        "webhook": {
            "conversionReviewVersions": ["v1"],
            "clientConfig": {"service": {"name": "a", "namespace": "b", "path": "/x", "port": 1}},
        },
    }
    made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["more"] = copy.deepcopy(NODE)
    return made


PLACES = [place for place in places(document()["spec"]) if place]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PLACES), JSON), min_size=1, max_size=2))
def test_hostile_definitions(changes):
    made = document()
    for (*parents, last), value in changes:
        holder = made["spec"]
        for step in parents:
            inside = isinstance(holder, dict) and step in holder
            holder = holder[step] if inside or (isinstance(holder, list) and step in range(len(holder))) else {}
        if isinstance(holder, dict) or (isinstance(holder, list) and last in range(len(holder))):
            holder[last] = value
    cluster = Cluster()
    try:
        cluster.send(Request("create", KEY, made, "", "me", "me", cluster.now * MICRO))
    except ApiError as error:
        assert error.code in (400, 422), error
        return
    cluster.create("v1/Namespace", "shop")
    for kind in cluster.api.at(cluster.store).all():
        if kind.custom:
            body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "w"}, "spec": {"l": [{}]}}
            key = Key(kind.group, kind.kind, "shop" if kind.namespaced else "", "w")
            try:
                cluster.send(Request("create", key, body, "", "me", "me", cluster.now * MICRO))
            except ApiError as error:
                assert error.code in (400, 422), error


def test_the_document_itself_is_fine():
    cluster = Cluster()
    made = cluster.send(Request("create", KEY, document(), "", "me", "me", cluster.now * MICRO))
    assert made.code == 201
