"""Strategic merge patch: vectors recorded from Kubernetes' own, its orders by example, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.api.errors import UNPROCESSABLE, ApiError
from steersman.api.kinds import Kinds
from steersman.api.patching.strategic import strategic_merge
from steersman.kernel.value import freeze, thaw
from tests.api.cluster import Cluster, crd, deployment, pod, refused

KINDS = Kinds.builtin()
POD = KINDS.get("", "Pod").schema
VECTORS = json.loads(Path(__file__).with_name("strategic.json").read_text())
"""Cases made at random over two dozen kinds, each with what apimachinery v0.36.0 `StrategicMergeMapPatch` made of it:
a result or the text of an error. Only cases that it answers the same every time are among them: it walks over objects
in an order of chance."""


@pytest.mark.parametrize("start", range(0, len(VECTORS), 50))
def test_what_kubernetes_makes_of_it(start):
    for case in VECTORS[start : start + 50]:
        schema = KINDS.by_api_version(case["apiVersion"], case["kind"]).schema
        try:
            made = {"result": thaw(strategic_merge(freeze(case["original"]), case["patch"], schema))}
        except ApiError as error:
            made = {"error": error.message.removeprefix(UNPROCESSABLE + ": ")}
        wanted = {part: case[part] for part in ("result", "error") if part in case} or {"result": {}}
        assert made == wanted, json.dumps(case)


def merged(before, patch, schema=POD):
    return strategic_merge(freeze(before), patch, schema)


def spec(*containers, **more):
    return {"spec": {"containers": list(containers), **more}}


A, B, C = ({"name": name, "image": f"{name}:1"} for name in "abc")


def test_lists_are_merged_by_their_key_and_the_patch_goes_first():
    assert merged(spec(A, B), spec({"name": "b", "image": "b:2"})) == spec(A, {"name": "b", "image": "b:2"})
    assert merged(spec(A), spec(C, {"name": "a", "tty": True})) == spec(C, {**A, "tty": True})


def test_items_are_deleted_and_whole_lists_replaced():
    assert merged(spec(A, B), spec({"name": "a", "$patch": "delete"})) == spec(B)
    assert merged(spec(A, B), spec({"$patch": "replace"}, C)) == spec(C)


def test_objects_are_replaced_and_emptied():
    before = {"spec": {"securityContext": {"runAsUser": 1, "fsGroup": 2}}}
    assert merged(before, {"spec": {"securityContext": {"$patch": "replace", "runAsUser": 3}}}) == {
        "spec": {"securityContext": {"runAsUser": 3}}
    }
    assert merged(before, {"spec": {"securityContext": {"$patch": "delete"}}}) == {"spec": {"securityContext": {}}}


def test_primitive_lists_are_sets_and_can_lose_items():
    before = {"metadata": {"finalizers": ["x", "y", "z"]}}
    assert merged(before, {"metadata": {"finalizers": ["y", "n"]}})["metadata"]["finalizers"] == ["x", "y", "n", "z"]
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["y"]}}
    assert merged(before, patch)["metadata"]["finalizers"] == ["x", "z"]


def test_order_is_set_and_what_only_the_server_has_keeps_its_place():
    order = [{"name": "b"}, {"name": "a"}]
    patch = {"spec": {"$setElementOrder/containers": order, "containers": [{"name": "a", "tty": True}]}}
    assert [c["name"] for c in merged(spec(A, B, C), patch)["spec"]["containers"]] == ["b", "a", "c"]


def test_retained_keys_say_which_union_member_stays():
    schema = KINDS.get("apps", "Deployment").schema
    before = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert merged(before, patch, schema) == {"spec": {"strategy": {"type": "Recreate"}}}
    wrong = {"spec": {"strategy": {"$retainKeys": ["rollingUpdate"], "type": "Recreate"}}}
    error = refused(merged, before, wrong, schema)
    assert (error.code, error.message) == (400, "invalid patch format of retainKeys")


def test_what_is_not_touched_is_shared_and_nothing_is_changed():
    before = freeze(spec(A, B, nodeSelector={"a": "b"}))
    patch = spec({"name": "b", "image": "b:2"})
    after = strategic_merge(before, patch, POD)
    assert after["spec"]["nodeSelector"] is before["spec"]["nodeSelector"]
    assert after["spec"]["containers"][0] is before["spec"]["containers"][0]
    assert (before, patch) == (spec(A, B, nodeSelector={"a": "b"}), spec({"name": "b", "image": "b:2"}))


def test_a_list_of_ten_thousand_items_is_merged_at_once():
    env = [{"name": f"V{n}", "value": "1"} for n in range(10_000)]
    patch = [{"name": f"V{n}", "value": "2"} for n in range(5_000, 15_000)]
    after = merged(spec({**A, "env": env}), spec({"name": "a", "env": patch}))["spec"]["containers"][0]["env"]
    assert len(after) == 15_000
    assert after[5_000]["value"] == "2"


# -- through the request machine -----------------------------------------------------------------------------------


def test_a_patch_of_a_stored_object_is_validated_owned_and_counted():
    c = Cluster()
    c.create("v1/Namespace", "shop")
    c.create("apps/v1/Deployment", "web", spec=deployment(1))
    body = {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": "app:2"}]}}}}
    c.request("patch", "apps/v1/Deployment", "web", body, manager="kubectl", patch="strategic")
    found = c.get("apps/v1/Deployment", "web")
    assert found["spec"]["template"]["spec"]["containers"][0]["image"] == "app:2"
    assert found["metadata"]["generation"] == 2
    owned = c.managed("apps/v1/Deployment", "web")[("kubectl", "Update", "")]
    assert owned == {"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"app"}': {"f:image": {}}}}}}}
    body["spec"]["template"]["spec"]["containers"][0]["image"] = ""
    assert refused(c.request, "patch", "apps/v1/Deployment", "web", body, patch="strategic").code == 422


def test_a_patch_of_the_status_leaves_the_spec():
    c = Cluster()
    c.create("v1/Namespace", "shop")
    c.create("v1/Pod", "p", spec=pod())
    ready = {"type": "Ready", "status": "True"}
    body = {"metadata": {"labels": {"a": "b"}}, "status": {"conditions": [ready]}}
    c.request("patch", "v1/Pod", "p", body, "status", patch="strategic")
    body["status"]["conditions"] = [{"type": "Initialized", "status": "True"}]
    c.request("patch", "v1/Pod", "p", body, "status", patch="strategic")
    found = c.get("v1/Pod", "p")
    assert {one["type"] for one in found["status"]["conditions"]} == {"Ready", "Initialized"}
    assert found["metadata"]["labels"] == body["metadata"]["labels"]  # of a pod, labels are taken


def test_custom_kinds_have_no_such_patch():
    c = Cluster(crd({"type": "object", "properties": {"spec": {"type": "object"}}}))
    c.create("v1/Namespace", "shop")
    c.create("example.com/v1/Widget", "w", spec={})
    error = refused(c.request, "patch", "example.com/v1/Widget", "w", {"spec": {}}, patch="strategic")
    assert error.code == 415
    assert "strategic" not in error.message


NAMES = [
    "$deleteFromPrimitiveList/finalizers",
    "$patch",
    "$retainKeys",
    "$setElementOrder/containers",
    "$setElementOrder/env",
    *("containers", "env", "finalizers", "labels", "metadata", "name", "spec", "volumes"),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["a", "b", "replace", "delete", "name"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(NAMES),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(["spec", "metadata", "$patch"]), JSON, max_size=3))
def test_whatever_is_sent_is_merged_or_refused(patch):
    before = freeze({"metadata": {"name": "p", "finalizers": ["a", "b"]}, **spec(A, B)})
    try:
        strategic_merge(before, patch, POD)
    except ApiError as error:
        assert error.code in (400, 422)
