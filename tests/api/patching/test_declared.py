"""managedFields as clients send them, and the way from client-side apply to server-side apply."""

from __future__ import annotations

import json

import orjson
import pytest

from tests.api.cluster import Cluster, deployment, refused

MAP = "v1/ConfigMap"
DEPLOYMENT = "apps/v1/Deployment"
LAST = "kubectl.kubernetes.io/last-applied-configuration"


@pytest.fixture
def c():
    made = Cluster()
    made.create("v1/Namespace", "shop")
    made.create(MAP, "m", data={"a": "1"}, manager="kubectl-client-side-apply")
    return made


def sent(c, name="m", kind=MAP):
    """The object with its managedFields, as a client reads it."""
    return orjson.loads(c.read(kind, name).to_json())


def put(c, body, **options):
    return c.request("update", MAP, "m", body, manager="robot", **options)


def test_a_client_can_rename_an_entry_by_put_or_json_patch(c):
    body = sent(c)
    entry = body["metadata"]["managedFields"][0]
    entry.update(manager="kubectl", operation="Apply")
    before = c.store.rev
    put(c, body)
    assert c.store.rev == before + 1
    assert c.managed(MAP, "m") == {("kubectl", "Apply", ""): {"f:data": {".": {}, "f:a": {}}}}
    body = sent(c)
    entry = {**body["metadata"]["managedFields"][0], "manager": "other"}
    path = "/metadata/managedFields"
    version = {"op": "replace", "path": "/metadata/resourceVersion", "value": body["metadata"]["resourceVersion"]}
    c.json_patch(MAP, "m", [{"op": "replace", "path": path, "value": [entry]}, version])
    assert list(c.managed(MAP, "m")) == [("other", "Apply", "")]
    assert refused(c.json_patch, MAP, "m", [{"op": "replace", "path": path, "value": [entry]}, version]).code == 409


def test_what_is_sent_back_as_it_was_changes_nothing(c):
    before = c.store.rev
    put(c, sent(c))
    assert c.store.rev == before


def test_a_change_beside_the_list_is_recorded_on_top_of_it(c):
    body = sent(c)
    body["metadata"]["managedFields"][0]["manager"] = "renamed"
    body["data"] = {"a": "1", "b": "2"}
    put(c, body)
    assert c.managed(MAP, "m") == {
        ("renamed", "Update", ""): {"f:data": {".": {}, "f:a": {}}},
        ("robot", "Update", ""): {"f:data": {"f:b": {}}},
    }


@pytest.mark.parametrize("empty", [[], [{}]])
def test_an_empty_list_resets_and_nobody_is_recorded_until_the_first_apply(c, empty):
    put(c, {**sent(c), "metadata": {**sent(c)["metadata"], "managedFields": empty}})
    assert c.managed(MAP, "m") == {}
    c.merge(MAP, "m", {"data": {"b": "2"}})
    assert c.managed(MAP, "m") == {}
    error = refused(c.apply, MAP, "m", data={"a": "9"})
    assert 'conflict with "before-first-apply" using v1' in error.message
    c.apply(MAP, "m", data={"a": "1"})
    assert c.managed(MAP, "m") == {
        ("applier", "Apply", ""): {"f:data": {"f:a": {}}},
        ("before-first-apply", "Update", ""): {"f:data": {".": {}, "f:a": {}, "f:b": {}}},
    }


@pytest.mark.parametrize(
    "wrong",
    [
        {"operation": "Delete"},
        {"apiVersion": ""},
        {"fieldsType": "FieldsV2"},
        {"fieldsV1": {"x": {}}},
        {"manager": 5},
        "text",
    ],
)
def test_what_cannot_be_read_is_passed_over(c, wrong):
    body = sent(c)
    known = c.managed(MAP, "m")
    entry = body["metadata"]["managedFields"][0]
    body["metadata"]["managedFields"] = [wrong if isinstance(wrong, str) else {**entry, **wrong}]
    put(c, body)
    assert c.managed(MAP, "m") == known


def test_a_status_write_cannot_touch_the_list_and_an_apply_must_not_bring_one(c):
    c.create(DEPLOYMENT, "web", spec=deployment(1))
    body = sent(c, "web", DEPLOYMENT)
    known = c.managed(DEPLOYMENT, "web")
    body["metadata"]["managedFields"] = []
    body["status"] = {"replicas": 1}
    c.request("update", DEPLOYMENT, "web", body, "status", manager="robot")
    assert c.managed(DEPLOYMENT, "web") == {
        **known,
        ("robot", "Update", "status"): {"f:status": {"f:replicas": {}}},
    }
    for given in ([], [{}]):
        error = refused(c.apply, MAP, "m", data={}, metadata={"managedFields": given})
        assert (error.code, error.message) == (400, "metadata.managedFields must be nil")


# -- kubectl apply, then kubectl apply --server-side -----------------------------------------------------------------


def client_side(c, data, **more):
    """What `kubectl apply` makes."""
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "k", "namespace": "shop"}, "data": data}
    notes = {LAST: json.dumps(config) + "\n", **more}
    c.create(MAP, "k", data=data, metadata={"annotations": notes}, manager="kubectl-client-side-apply")


def test_kubectl_takes_over_what_it_applied_before_without_force(c):
    client_side(c, {"a": "1", "b": "2"})
    c.apply(MAP, "k", data={"a": "9", "b": "2"}, manager="kubectl")
    assert c.get(MAP, "k")["data"] == {"a": "9", "b": "2"}
    record = json.loads(c.get(MAP, "k")["metadata"]["annotations"][LAST])
    assert record["data"] == {"a": "9", "b": "2"}
    assert ("kubectl", "Apply", "") in c.managed(MAP, "k")


def test_others_do_not_and_what_somebody_changed_since_is_a_conflict(c):
    client_side(c, {"a": "1", "b": "2"})
    assert refused(c.apply, MAP, "k", data={"a": "9"}, manager="flux").code == 409
    c.merge(MAP, "k", {"data": {"a": "5"}}, manager="robot")
    error = refused(c.apply, MAP, "k", data={"a": "9", "b": "8"}, manager="kubectl")
    assert [cause.field for cause in error.causes] == [".data.a"]


def test_the_record_is_written_as_go_writes_it(c):
    client_side(c, {"a": "1"})
    c.apply(MAP, "k", data={"a": "<&>"}, manager="kubectl")
    text = c.get(MAP, "k")["metadata"]["annotations"][LAST]
    assert text.endswith('"data":{"a":"\\u003c\\u0026\\u003e"},"kind":"ConfigMap","metadata":{"name":"k"}}\n')


# -- field validation of patches -----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["merge", "strategic", "json"])
def test_unknown_fields_of_a_patch_are_told_as_kubernetes_tells_them(c, form):
    body = {"nosuch": 1} if form != "json" else [{"op": "add", "path": "/nosuch", "value": 1}]
    error = refused(c.request, "patch", MAP, "m", body, patch=form, validation="Strict")
    assert (error.code, error.reason) == (422, "Invalid")
    assert error.causes[0].field == "patch"
    shown = "map[nosuch:1]" if form == "strategic" else "{"  # which Kubernetes applies to maps, not to JSON
    assert error.message.startswith(f' "" is invalid: patch: Invalid value: "{shown}')
    assert error.message.endswith('strict decoding error: unknown field "nosuch"')
    assert c.request("patch", MAP, "m", body, patch=form).warnings == ('unknown field "nosuch"',)
    assert c.request("patch", MAP, "m", body, patch=form, validation="Ignore").warnings == ()


@pytest.mark.parametrize("form", ["merge", "strategic", "json", "apply", "update"])
def test_a_dry_run_of_any_verb_changes_nothing(c, form):
    before = c.store.rev
    if form == "apply":
        reply = c.apply(MAP, "m", data={"a": "1", "z": "1"}, options={"dry_run": True})
    elif form == "update":
        reply = c.update(MAP, "m", data={"z": "1"}, options={"dry_run": True})
    else:
        body = {"data": {"z": "1"}} if form != "json" else [{"op": "add", "path": "/data/z", "value": "1"}]
        reply = c.request("patch", MAP, "m", body, patch=form, dry_run=True)
    assert reply.obj.value["data"]["z"] == "1"
    assert c.store.rev == before
