"""The stored form of an object gives the object back, digest and all."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steersman.api import stored
from steersman.api.begin import Api
from steersman.api.errors import ApiError
from steersman.api.kinds import Kinds
from steersman.api.stored import Loader, StoredError, dump, load
from steersman.kernel.effect import Call, Commit, Request
from steersman.kernel.fieldset import from_json
from steersman.kernel.object import Key, Manager, Object, Section
from steersman.kernel.store import Store
from steersman.kernel.value import Frozen, freeze
from tests.api.values import value

API = Api(Kinds.builtin())
TEXT = st.text(st.characters(codec="utf-8"), max_size=6)
NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
SECTION = st.none() | st.dictionaries(TEXT, JSON, max_size=4)
ELEMENT = st.sampled_from(["f:a", "f:b", 'k:{"name":"web"}', 'v:"x"'])
FIELDS = st.recursive(
    st.just({}), lambda inner: st.dictionaries(ELEMENT | st.just("."), inner, min_size=1, max_size=3), max_leaves=6
)
MANAGER = st.builds(
    Manager,
    st.sampled_from(["kubectl", "kubelet"]),
    st.sampled_from(["Apply", "Update"]),
    st.sampled_from(["", "status"]),
    st.just("v1"),
    st.just("2026-11-30T00:00:00Z"),
    FIELDS.map(lambda fields: from_json(_pruned(fields))),
)


def _pruned(fields):
    return {name: {} if name == "." else _pruned(below) for name, below in fields.items()}


@st.composite
def objects(draw):
    kind, api_version = draw(st.sampled_from([("Pod", "v1"), ("Deployment", "apps/v1"), ("Node", "v1")]))
    namespace = "" if kind == "Node" else "default"
    meta = {"name": "web", "uid": "u", **({"namespace": namespace} if namespace else {})}
    meta |= draw(st.dictionaries(st.sampled_from(["labels", "annotations"]), st.dictionaries(TEXT, TEXT, max_size=2)))
    spec, rest, status = draw(SECTION), draw(SECTION), draw(SECTION)
    if spec is not None:
        spec.pop("nodeName", None)
    rest = {name: value for name, value in (rest or {}).items() if name not in stored.NOT_REST} or None
    node = draw(st.none() | st.just("node-1")) if kind == "Pod" and spec is not None else None
    parts = [None if value is None else Section(freeze(value)) for value in (spec, rest, status)]
    key = Key(api_version.rpartition("/")[0], kind, namespace, "web")
    managers = tuple(draw(st.lists(MANAGER, max_size=2)))
    return Object(
        key, api_version, draw(st.integers(1, 1 << 40)), Section(Frozen(freeze(meta))), *parts, managers, node
    )


@settings(max_examples=300, deadline=None)
@given(objects())
def test_what_is_stored_comes_back(obj):
    again = load(dump(obj))
    assert (again.key, again.rv, again.node, again.api_version) == (obj.key, obj.rv, obj.node, obj.api_version)
    assert again.term == obj.term and again.content == obj.content
    assert again.managers == obj.managers and again.value == obj.value
    assert dump(again) == dump(obj)


def test_what_the_request_machine_makes_comes_back():
    store = Store()
    namespace = {"metadata": {"name": "default"}}
    pod = {
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": 1.5}}}]}
    }
    for kind, name, body in (
        ("v1/Namespace", "default", namespace),
        ("v1/Pod", "p", pod),
        ("v1/Secret", "s", {"stringData": {"a": "b"}}),
        ("v1/Service", "svc", {"spec": {"ports": [{"port": 80}]}}),
        ("rbac.authorization.k8s.io/v1/ClusterRole", "r", {"rules": []}),
    ):
        found = API.kinds.find(kind)
        key = Key(*found.gk, "default" if found.namespaced else "", name)
        body = {"metadata": {"name": name}, **body}
        obj = _commit(store, Request("create", key, body))
        assert load(dump(obj)).term == obj.term
        assert orjson.loads(dump(obj)) == orjson.loads(obj.to_json())


KINDS = [kind for kind in API.kinds.all() if kind.gk != ("", "Namespace")]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(st.sampled_from(KINDS), st.data())
def test_any_object_that_is_accepted_comes_back(kind, data):
    """Whatever passes validation: values of the kind's own schema, mostly odd ones."""
    store = Store()
    body = data.draw(value(kind.schema))
    body |= {"metadata": {"name": "a"}, "apiVersion": kind.api_version, "kind": kind.kind}
    key = Key(*kind.gk, "default" if kind.namespaced else "", "a")
    if kind.namespaced:
        _commit(store, Request("create", Key("", "Namespace", "", "default"), {"metadata": {"name": "default"}}))
    try:
        obj = _commit(store, Request("create", key, body))
    except ApiError:
        return
    assert load(dump(obj)).term == obj.term


def _commit(store, request):
    outcome = API.begin(store, request._replace(actor="ann", now=1_780_000_000_000_000))
    while isinstance(outcome, Call):
        outcome = outcome.resume("uid")
    assert isinstance(outcome, Commit)
    return store.commit(outcome).new


def test_equal_sections_are_shared():
    obj = Object(Key("", "Pod", "a", "b"), "v1", 1, Section(Frozen(name="b")), Section(freeze({"x": 1})), None, None)
    loader = Loader()
    first, second = loader.load(dump(obj)), loader.load(dump(obj))
    assert first.spec is second.spec and first is not second


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"{", "cannot be read"),
        (b"[]", "cannot be read"),
        (b"{}", "lacks 'metadata'"),
        (b'{"metadata":{"name":"a"}}', "lacks 'resourceVersion'"),
        (b'{"metadata":{"name":"a","resourceVersion":"x"},"apiVersion":"v1","kind":"Pod"}', "cannot be read"),
    ],
)
def test_other_bytes_are_refused(data, told):
    with pytest.raises(StoredError, match=told):
        load(data)


def test_rendered_field_sets_are_bounded():
    stored._rendered.update(dict.fromkeys(range(stored.RENDERED_LIMIT), b"{}"))
    manager = Manager("m", "Update", "", "v1", "2026-11-30T00:00:00Z", from_json({"f:only": {"f:here": {}}}))
    dump(Object(Key("", "Pod", "a", "b"), "v1", 1, Section(Frozen(name="b")), None, None, None, (manager,)))
    assert len(stored._rendered) == 1
