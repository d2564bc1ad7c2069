"""Hostile requests: whatever a client sends, the only exception that comes out of the request machine is ApiError, and
what is stored afterwards can be read, rendered and stored again."""

import json

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steersman.api.errors import ApiError
from steersman.kernel.effect import MICRO, Request
from steersman.kernel.value import freeze
from tests.api.cluster import START, Cluster, crd, deployment, pod

OPEN = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {
                "size": {"type": "integer", "minimum": 1, "default": 3},
                "ratio": {"type": "number", "nullable": True},
                "items": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
                },
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "port": {"x-kubernetes-int-or-string": True},
                "matrix": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "integer"}}},
            },
        },
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
DEEP = 1_200
"""Levels of the deepest hostile body: beyond Python's recursion limit."""


def nested(levels, key=None):
    value = 1
    for _ in range(levels):
        value = [value] if key is None else {key: value}
    return value


HOSTILE = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        1 << 31,
        1 << 63,
        1 << 5000,
        1.5,
        float("nan"),
        float("inf"),
        "",
        "x",
        "x" * 5000,
        "\ud800",
        "\x00",
        "é/%",
        b"bytes",
        (1, 2),
        {1, 2},
        object,
        [],
        [None],
        [[]],
        [{}],
        [{"name": "a"}, {"name": "a"}],
        [{"name": None}],
        {},
        {"": ""},
        {"a": None},
        {1: 2},
        {None: {}},
        {("a",): 1},
        {"name": {"name": []}},
        nested(70, "a"),
        nested(DEEP, "a"),
        nested(DEEP),
        nested(400, "properties"),
    ]
)
BODIES = {
    "v1/Pod": {"metadata": {"name": "w", "labels": {"a": "b"}}, "spec": pod(volumes=[{"name": "v", "emptyDir": {}}])},
    "apps/v1/Deployment": {"metadata": {"name": "w", "annotations": {"a": "b"}}, "spec": deployment(2)},
    "v1/ConfigMap": {"metadata": {"name": "w"}, "data": {"k": "v"}, "binaryData": {"b": "AA=="}},
    "v1/Secret": {"metadata": {"name": "w"}, "stringData": {"k": "v"}, "type": "Opaque"},
    "v1/Service": {"metadata": {"name": "w"}, "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}},
    "v1/Namespace": {"metadata": {"name": "w", "finalizers": ["a.io/b"]}, "spec": {"finalizers": ["kubernetes"]}},
    "example.com/v1/Widget": {
        "metadata": {
            "name": "w",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}],
        },
        "spec": {
            "size": 2,
            "items": [{"name": "a"}],
            "tags": ["x"],
            "port": 80,
            "matrix": {"a": [1]},
            "free": {"a": 1},
        },
        "status": {"a": 1},
    },
    "apiextensions.k8s.io/v1/CustomResourceDefinition": crd(OPEN, kind="Gadget"),
}


def places(value, path=()):
    """Every place in a body, but for the depths of hostile values."""
    yield path
    if len(path) > 8:
        return
    if isinstance(value, dict):
        for name, item in value.items():
            yield from places(item, (*path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from places(item, (*path, index))


def with_at(value, path, item):
    """A copy of a body with another value in one place."""
    if not path:
        return item
    out = dict(value) if isinstance(value, dict) else list(value)
    out[path[0]] = with_at(value[path[0]], path[1:], item)
    return out


@st.composite
def hostile_bodies(draw):
    kind = draw(st.sampled_from(sorted(BODIES)))
    body = BODIES[kind]
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(sorted(places(body), key=repr)))
        try:
            old = body
            for step in path:
                old = old[step]
        except (KeyError, IndexError, TypeError):
            continue
        item = draw(HOSTILE)
        if isinstance(old, dict) and draw(st.booleans()):
            item = {**old, draw(st.sampled_from(["extra", "", "\ud800", 5, None, "namespace"])): item}
        body = with_at(body, path, item)
    return kind, body


def assert_sound(cluster):
    for obj in cluster.store.objects():
        rendered = orjson.loads(obj.to_json())
        rendered["metadata"].pop("managedFields", None)
        assert rendered == obj.value
        assert obj.term >= 0
        for section in (obj.meta, obj.spec, obj.rest, obj.status):
            if section is not None:
                section.drop_value()
                assert orjson.loads(section.raw) == section.value


@pytest.fixture(scope="module")
def cluster():
    made = Cluster(crd(OPEN))
    made.create("v1/Namespace", "shop")
    for kind, body in BODIES.items():
        parts = {part: value for part, value in body.items() if part not in ("apiVersion", "kind", "metadata")}
        made.create(kind, "old", metadata={"finalizers": ["a.io/b"]}, **parts) if "Custom" not in kind else None
    return made


def attempt(cluster, verb, kind, body, sub, options, freezing=False):
    fork = Cluster.__new__(Cluster)
    fork.__dict__.update(cluster.__dict__)
    fork.store = cluster.store.fork()
    if freezing:
        try:
            body = freeze(body)
        except ValueError:
            return
    key = cluster.key(kind, "w" if verb in ("create", "apply") else "old")
    for _ in range(2):
        try:
            fork.send(Request(verb, key, body, sub, "someone", "fuzz", START * MICRO, options))
        except ApiError as error:
            assert error.code in range(400, 500), error
            json.dumps(error.status())
            break
    assert_sound(fork)


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "force": st.booleans(),
        "dry_run": st.sampled_from(["All", "", True]),
        "validation": st.sampled_from(["Strict", "Warn", "Ignore", "", "?"]),
        "patch": st.sampled_from(["merge", "json", "strategic"]),
        "rv": st.sampled_from([1, "2", "x", ""]),
        "uid": HOSTILE,
        "grace": HOSTILE,
        "propagation": st.sampled_from(["Background", "Foreground", 5]),
    },
)
QUICK = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@QUICK
@given(
    hostile_bodies(),
    st.sampled_from(["create", "update", "patch", "apply"]),
    st.sampled_from(["", "", "", "status", "finalize", "binding", "scale"]),
    OPTIONS,
    st.booleans(),
)
def test_hostile_bodies(cluster, body, verb, sub, options, freezing):
    attempt(cluster, verb, body[0], body[1], sub, options, freezing)


@QUICK
@given(
    st.sampled_from(sorted(BODIES)), HOSTILE, st.sampled_from(["create", "update", "patch", "apply", "delete"]), OPTIONS
)
def test_hostile_whole_bodies(cluster, kind, body, verb, options):
    attempt(cluster, verb, kind, body, "", options)
    attempt(cluster, verb, kind, {"status": body}, "status", options)
    attempt(cluster, verb, kind, {"metadata": body, "spec": body}, "", options)
    attempt(cluster, verb, kind, {"target": body, "metadata": body}, "binding", options)


POINTERS = st.sampled_from(
    [
        *("", "/", "/metadata", "/metadata/name", "/metadata/labels", "/metadata/resourceVersion", "/spec", "/spec/-"),
        *("/status", "/spec/containers/0/name", "/spec/containers/-", "/spec/containers/99", "/kind", "/apiVersion"),
        *(5, None),
    ]
)
OPERATIONS = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove", "replace", "test", "move", "copy", "?"]), "path": POINTERS},
    optional={"value": HOSTILE, "from": POINTERS},
)


@QUICK
@given(st.sampled_from(sorted(BODIES)), st.lists(OPERATIONS, max_size=3), st.sampled_from(["", "status"]))
def test_hostile_json_patches(cluster, kind, operations, sub):
    attempt(cluster, "patch", kind, operations, sub, {"patch": "json"})


@QUICK
@given(
    st.sampled_from(sorted(BODIES)),
    st.fixed_dictionaries(
        {},
        optional={
            name: HOSTILE | st.sampled_from(["a=b", "metadata.name=w", "5"])
            for name in ("labels", "fields", "limit", "continue")
        },
    ),
)
def test_hostile_lists(cluster, kind, options):
    attempt(cluster, "list", kind, None, "", options)


@pytest.mark.parametrize("verb", ["get", "list", "create", "update", "patch", "apply", "delete", "watch", "", "evict"])
def test_unknown_kinds_and_verbs(cluster, verb):
    key = cluster.key("v1/Pod", "old")
    for asked in (key._replace(kind="Pud"), key._replace(group="nowhere.io"), key):
        try:
            cluster.send(Request(verb, asked, {}, "", "", "m", 0, {"dry_run": True}))
        except ApiError as error:
            assert error.code in (404, 405, 400, 409, 422)
