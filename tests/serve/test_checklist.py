"""What real clients need of the server, a small test for each row of that list which no other test is about.

The rows, most used first, were each asked of a real kube-apiserver 1.36 too; what it answers is what is expected here.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.serve.harness import in_loop
from tests.serve.plane import PARTIAL, PODS, TABLE, Plane, configmap, pod

CONFIGS = "/api/v1/namespaces/default/configmaps"
ALL = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1"


async def told(plane: Plane, query: str, accept: str = "application/json") -> list[Any]:
    """The events of a short watch of ConfigMaps."""
    answer = await plane.get(f"{CONFIGS}?watch=1&{query}", accept=accept)
    return [json.loads(line) for line in answer.body.splitlines()]


@pytest.mark.parametrize("path", ["/version", "/api", "/apis", "/api/v1", "/apis/apps", "/apis/apps/v1", "/healthz"])
@in_loop
async def test_a_slash_at_the_end_changes_nothing(path):
    plane = Plane()
    assert (await plane.get(path + "/")).body == (await plane.get(path)).body


@in_loop
async def test_discovery_names_subresources_with_the_group_of_what_they_take():
    rows = {row["name"]: row for row in (await Plane().get("/apis/apps/v1")).json["resources"]}
    scale = rows["deployments/scale"]
    assert (scale["group"], scale["version"], scale["kind"]) == ("autoscaling", "v1", "Scale")
    assert rows["deployments"]["shortNames"] == ["deploy"] and rows["deployments"]["categories"] == ["all"]


@in_loop
async def test_patches_say_that_they_check_fields():
    """By this parameter kubectl knows that it need not check fields itself."""
    paths = (await Plane().get("/openapi/v3/apis/apps/v1")).json["paths"]
    patch = paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    kind = {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert patch["x-kubernetes-action"] == "patch" and patch["x-kubernetes-group-version-kind"] == kind
    assert "fieldValidation" in {parameter["name"] for parameter in patch["parameters"]}


@pytest.mark.parametrize("watch", ["1", "true", "True", "t"])
@in_loop
async def test_all_spellings_of_a_watch(watch):
    plane = Plane()
    await plane.post(CONFIGS, configmap("a"))
    answer = await plane.get(f"{CONFIGS}?watch={watch}&timeout=2s&timeoutSeconds=1&limit=500")
    assert json.loads(answer.body.splitlines()[0])["type"] == "ADDED"


@pytest.mark.parametrize("query", ["", "&resourceVersion=0"])
@in_loop
async def test_a_watch_of_negative_time_is_over_at_once(query):
    plane = Plane()
    await plane.get(f"{CONFIGS}?watch=1&timeoutSeconds=-1{query}")


@pytest.mark.parametrize(("accept", "kind"), [(TABLE, "Table"), (PARTIAL, "PartialObjectMetadata")])
@in_loop
async def test_a_streamed_list_ends_with_a_mark_in_every_form(accept, kind):
    plane = Plane()
    await plane.post(CONFIGS, configmap("a"))
    *added, mark = await told(plane, ALL, accept)
    assert [event["object"]["kind"] for event in added] == [kind] and mark["type"] == "BOOKMARK"
    shown = mark["object"]["rows"][0]["object"] if kind == "Table" else mark["object"]
    assert shown["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


@in_loop
async def test_a_bookmark_is_where_to_go_on():
    plane = Plane()
    *_, mark = await told(plane, ALL)
    await plane.post(CONFIGS, configmap("later"))
    version = mark["object"]["metadata"]["resourceVersion"]
    events = await told(plane, f"resourceVersion={version}&timeoutSeconds=1")
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [("ADDED", "later")]


@in_loop
async def test_errors_are_statuses_whatever_form_is_asked_for():
    plane = Plane()
    for accept in (TABLE, PARTIAL):
        status = (await plane.get(f"{CONFIGS}/none", 404, accept=accept)).json
        assert (status["kind"], status["reason"]) == ("Status", "NotFound")
        assert status["details"] == {"name": "none", "kind": "configmaps"}


@in_loop
async def test_metadata_alone_of_patches_and_deletes():
    plane = Plane()
    await plane.post(CONFIGS, configmap("a", k="v"))
    for answer in (
        await plane.merge(f"{CONFIGS}/a", {"data": {"k": "w"}}, accept=PARTIAL),
        await plane.ask("DELETE", f"{CONFIGS}/a?dryRun=All", None, 200, accept=PARTIAL),
    ):
        found = answer.json
        assert found["kind"] in ("PartialObjectMetadata", "Status") and "data" not in found


@in_loop
async def test_a_failed_test_of_a_json_patch_is_422():
    """kopf takes this for a write of somebody else's, and tries again."""
    plane = Plane()
    await plane.post(CONFIGS, configmap("a"))
    patch = [{"op": "test", "path": "/metadata/resourceVersion", "value": "1"}]
    media = "application/json-patch+json"
    refused = await plane.ask("PATCH", f"{CONFIGS}/a", patch, 422, content_type=media)
    assert refused.json["reason"] == "Invalid"


@in_loop
async def test_the_same_selector_twice():
    plane = Plane()
    await plane.post(CONFIGS, configmap("a"))
    await plane.post(CONFIGS, configmap("b"))
    found = await plane.get(f"{CONFIGS}?fieldSelector=metadata.name%3Da,metadata.name%3Da")
    assert [item["metadata"]["name"] for item in found.json["items"]] == ["a"]


@in_loop
async def test_names_that_are_made_are_of_letters_that_spell_nothing():
    plane = Plane()
    made = (await plane.post(CONFIGS, {"metadata": {"generateName": "g-"}})).json["metadata"]["name"]
    assert made.startswith("g-") and len(made) == 7


@pytest.mark.parametrize("precondition", [{"uid": "other"}, {"resourceVersion": "1"}])
@in_loop
async def test_a_delete_of_something_else_is_a_conflict(precondition):
    plane = Plane()
    await plane.post(CONFIGS, configmap("a"))
    refused = await plane.delete(f"{CONFIGS}/a", {"preconditions": precondition}, 409)
    assert refused.json["reason"] == "Conflict"


@in_loop
async def test_a_lease_is_written_by_one_of_two():
    plane, leases = Plane(), "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    lease = (await plane.post(leases, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}})).json
    await plane.put(f"{leases}/l", {**lease, "spec": {"holderIdentity": "b"}})
    refused = (await plane.put(f"{leases}/l", {**lease, "spec": {"holderIdentity": "c"}}, 409)).json
    assert refused["reason"] == "Conflict" and "please apply your changes to the latest version" in refused["message"]


@in_loop
async def test_both_groups_of_events_are_one_store():
    plane = Plane()
    regarding = {"kind": "Pod", "namespace": "default", "name": "p"}
    body = {"metadata": {"name": "e"}, "involvedObject": regarding, "reason": "R", "type": "Normal"}
    await plane.post("/api/v1/namespaces/default/events", body)
    newer = "/apis/events.k8s.io/v1/namespaces/default/events"
    found = (await plane.get(f"{newer}?fieldSelector=regarding.name%3Dp")).json["items"]
    assert [event["regarding"]["name"] for event in found] == ["p"]
    older = "/api/v1/events?fieldSelector=involvedObject.name%3Dp,involvedObject.kind%3DPod&limit=500"
    assert len((await plane.get(older)).json["items"]) == 1


@in_loop
async def test_a_dry_run_stores_nothing():
    plane = Plane()
    made = await plane.post(f"{CONFIGS}?dryRun=All&fieldManager=kubectl-client-side-apply", configmap("a"))
    assert made.json["metadata"]["uid"] and "resourceVersion" not in made.json["metadata"]
    await plane.get(f"{CONFIGS}/a", 404)


@pytest.mark.parametrize("part", ["", "/status"])
@in_loop
async def test_a_put_says_what_it_is_about(part):
    plane = Plane()
    await plane.post(PODS, pod("a"))
    refused = (await plane.put(f"{PODS}/a{part}", {"metadata": {}}, 400)).json
    assert refused["message"] == ("the name of the object (a based on URL) was undeterminable: name must be provided")
