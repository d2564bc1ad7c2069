"""POST pods/NAME/eviction, and deletions with a policy: what kubectl drain and delete see on the wire."""

from tests.serve.harness import in_loop
from tests.serve.plane import DEPLOYMENTS, PODS, Plane, deployment, pod

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
EVICT = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a", "namespace": "default"}}
STATUS = {"currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1, "disruptionsAllowed": 0, "observedGeneration": 1}


async def plane_with(status=None):
    """A running, ready pod `a`, and a budget of that status."""
    plane = Plane()
    body = pod()
    body["metadata"]["labels"] = {"app": "web"}
    await plane.post(PODS, body)
    await plane.post(PODS + "/a/binding", {"target": {"name": "n1"}})
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await plane.merge(PODS + "/a/status", {"status": ready})
    if status is not None:
        spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
        budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": spec}
        await plane.post(BUDGETS, budget)
        await plane.merge(BUDGETS + "/b/status", {"status": status})
    return plane


@in_loop
async def test_an_eviction():
    plane = await plane_with()
    managed = (await plane.get(PODS + "/a")).json["metadata"]["managedFields"]
    done = await plane.post(PODS + "/a/eviction", {**EVICT, "deleteOptions": {"gracePeriodSeconds": 7}})
    assert done.code == 201
    assert done.json == {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    going = (await plane.get(PODS + "/a")).json
    assert going["metadata"]["deletionGracePeriodSeconds"] == 7
    assert going["status"]["conditions"][-1]["reason"] == "EvictionByEvictionAPI"
    assert going["metadata"]["managedFields"] == managed
    await plane.post(PODS + "/b/eviction", {**EVICT, "metadata": {"name": "b"}}, code=404)


@in_loop
async def test_a_budget_forbids_it():
    plane = await plane_with(STATUS)
    answer = await plane.post(PODS + "/a/eviction", EVICT, code=429)
    assert answer.json["reason"] == "TooManyRequests" and answer.header("retry-after") == ""
    assert answer.json["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    text = "The disruption budget b needs 1 healthy pods and has 1 currently"
    assert answer.json["details"]["causes"] == [{"reason": "DisruptionBudget", "message": text}]
    assert "deletionTimestamp" not in (await plane.get(PODS + "/a")).json["metadata"]
    await plane.merge(BUDGETS + "/b/status", {"status": {"observedGeneration": 0}})
    answer = await plane.post(PODS + "/a/eviction", EVICT, code=429)
    assert answer.header("retry-after") == "10"
    assert answer.json["details"]["retryAfterSeconds"] == 10


@in_loop
async def test_a_dry_run_counts_and_leaves_everything():
    plane = await plane_with({**STATUS, "disruptionsAllowed": 1})
    before = [(await plane.get(path)).json for path in (PODS + "/a", BUDGETS + "/b")]
    await plane.post(PODS + "/a/eviction?dryRun=All", EVICT)
    await plane.post(PODS + "/a/eviction", {**EVICT, "deleteOptions": {"dryRun": ["All"]}})
    assert [(await plane.get(path)).json for path in (PODS + "/a", BUDGETS + "/b")] == before
    await plane.merge(BUDGETS + "/b/status", {"status": {"disruptionsAllowed": 0}})
    await plane.post(PODS + "/a/eviction?dryRun=All", EVICT, code=429)


@in_loop
async def test_preconditions_and_bad_bodies():
    plane = await plane_with()
    url = PODS + "/a/eviction"
    other = await plane.post(url, {**EVICT, "deleteOptions": {"preconditions": {"uid": "u"}}}, code=409)
    assert 'Operation cannot be fulfilled on Pod "a": the UID in the precondition (u)' in other.json["message"]
    await plane.post(url, {**EVICT, "deleteOptions": {"preconditions": {"resourceVersion": "1"}}}, code=409)
    for body in (
        {**EVICT, "metadata": {"name": "b"}},
        {**EVICT, "metadata": 3},
        {**EVICT, "apiVersion": "apps/v1"},
        {**EVICT, "kind": "Pod"},
        {**EVICT, "deleteOptions": 3},
    ):
        await plane.post(url, body, code=400)
    assert "deletionTimestamp" not in (await plane.get(PODS + "/a")).json["metadata"]


@in_loop
async def test_discovery_offers_it():
    plane = Plane()
    found = {each["name"]: each for each in (await plane.get("/api/v1")).json["resources"]}["pods/eviction"]
    assert (found["kind"], found["group"], found["version"]) == ("Eviction", "policy", "v1")
    assert found["verbs"] == ["create"]


@in_loop
async def test_deletions_with_a_policy():
    plane = Plane()
    await plane.post(DEPLOYMENTS, deployment())
    name = (await plane.get(DEPLOYMENTS)).json["items"][0]["metadata"]["name"]
    held = (await plane.delete(f"{DEPLOYMENTS}/{name}", {"propagationPolicy": "Foreground"})).json
    assert held["metadata"]["finalizers"] == ["foregroundDeletion"] and held["metadata"]["deletionTimestamp"]
    held = (await plane.delete(f"{DEPLOYMENTS}/{name}", {"orphanDependents": True})).json
    assert held["metadata"]["finalizers"] == ["orphan"]
    assert (await plane.delete(f"{DEPLOYMENTS}/{name}", {"orphanDependents": False})).json["status"] == "Success"
    await plane.get(f"{DEPLOYMENTS}/{name}", code=404)


@in_loop
async def test_a_collection_is_deleted_by_policy_selector_and_in_a_dry_run():
    plane = Plane()
    url = "/api/v1/namespaces/default/configmaps"
    for number in range(5):
        meta = {"name": f"c{number}", "labels": {"odd": str(number % 2)}}
        await plane.post(url, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
    await plane.delete(url + "?labelSelector=odd%3D0&dryRun=All")
    await plane.delete(url + "?labelSelector=odd%3D1", {"propagationPolicy": "Orphan"})
    left = {
        each["metadata"]["name"]: each["metadata"].get("finalizers") for each in (await plane.get(url)).json["items"]
    }
    assert left == {"c0": None, "c1": ["orphan"], "c2": None, "c3": ["orphan"], "c4": None}
    await plane.delete(url + "?limit=2&labelSelector=odd%3D0")
    assert len((await plane.get(url)).json["items"]) == 3
