"""One store, two shapes: Events of events.k8s.io/v1, autoscalers of autoscaling/v1."""

import asyncio
import functools
import json

from tests.serve.plane import TABLE, Plane

CORE = "/api/v1/namespaces/default/events"
NEW = "/apis/events.k8s.io/v1/namespaces/default/events"
V1 = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
V2 = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
STRATEGIC = "application/strategic-merge-patch+json"


def in_loop(test):
    @functools.wraps(test)
    def run(*args, **kwargs):
        asyncio.run(test(*args, **kwargs))

    return run


def event(name="e", **more):
    body = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name},
        "eventTime": "2026-09-21T14:13:20.000000Z",
        "reportingController": "example.com/c",
        "reportingInstance": "i",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": {"kind": "Pod", "name": "web", "namespace": "default"},
        "note": "placed",
        "type": "Normal",
    }
    return {**body, **more}


@in_loop
async def test_an_event_is_the_same_in_both_groups():
    plane = Plane()
    made = (await plane.post(NEW, event())).json
    assert made["apiVersion"] == "events.k8s.io/v1" and made["note"] == "placed" and "message" not in made
    old = (await plane.get(CORE + "/e")).json
    assert old["message"] == "placed" and old["involvedObject"]["name"] == "web"
    assert old["reportingComponent"] == "example.com/c" and old["metadata"]["uid"] == made["metadata"]["uid"]
    found = (await plane.get(NEW + "?fieldSelector=regarding.name%3Dweb,reportingController%3Dexample.com/c")).json
    assert found["kind"] == "EventList" and found["apiVersion"] == "events.k8s.io/v1" and len(found["items"]) == 1
    assert not (await plane.get(NEW + "?fieldSelector=regarding.name%3Dx")).json["items"]
    rows = [(await plane.get(path, accept=TABLE)).json["rows"][0]["cells"] for path in (NEW, CORE)]
    assert rows[0] == rows[1] and "pod/web" in rows[0]
    both = [await plane.watch(path + "?watch=1") for path in (NEW, CORE)]
    seen = [(await watch.next())["object"] for watch in both]
    assert [obj["apiVersion"] for obj in seen] == ["events.k8s.io/v1", "v1"]
    series = {"series": {"count": 2, "lastObservedTime": "2026-09-21T14:14:20.000000Z"}}
    patched = await plane.ask("PATCH", NEW + "/e", series, 200, content_type=STRATEGIC)
    assert patched.json["series"]["count"] == 2 and patched.json["regarding"]["name"] == "web"
    live = [(await watch.next())["object"] for watch in both]
    assert live[0]["note"] == live[1]["message"] == "placed" and live[0]["series"] == live[1]["series"]
    for watch in both:
        await watch.close()
    await plane.delete(NEW + "/e")
    await plane.get(CORE + "/e", 404)


@in_loop
async def test_new_events_are_judged_as_such():
    plane = Plane()
    bad = (await plane.post(NEW, event(eventTime=None, type="Bad", deprecatedCount=3), code=422)).json
    fields = {cause["field"] for cause in bad["details"]["causes"]}
    assert {"eventTime", "type", "count"} <= fields
    await plane.post(NEW, event(message="x"), code=400)
    await plane.post(NEW, {**event(), "apiVersion": "v1"}, code=400)
    await plane.post(NEW, [], code=400)
    await plane.post(NEW, event())
    changed = await plane.merge(NEW + "/e", {"note": "other"}, code=422)
    assert changed.json["details"]["causes"][0]["field"] == "message"
    wrong = await plane.merge(NEW + "/e", {"series": {"count": 1}}, code=422)
    assert {cause["field"] for cause in wrong.json["details"]["causes"]} == {"series.count", "series.lastObservedTime"}
    assert (await plane.ask("PATCH", NEW + "/nosuch", {}, 404, content_type=STRATEGIC)).json["details"]["group"]


def autoscaler(**spec):
    ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {"metadata": {"name": "web"}, "spec": {"scaleTargetRef": ref, "maxReplicas": 5, **spec}}


@in_loop
async def test_an_autoscaler_of_v1_is_stored_as_v2():
    plane = Plane()
    made = (await plane.post(V1, autoscaler(targetCPUUtilizationPercentage=60))).json
    assert made["apiVersion"] == "autoscaling/v1" and made["spec"]["minReplicas"] == 1
    assert made["spec"]["targetCPUUtilizationPercentage"] == 60
    stored = (await plane.get(V2 + "/web")).json
    target = {"type": "Utilization", "averageUtilization": 60}
    assert stored["spec"]["metrics"] == [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    await plane.merge(V1 + "/web", {"spec": {"targetCPUUtilizationPercentage": 70}})
    assert (await plane.get(V2 + "/web")).json["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 70
    plain = (await plane.post(V1, {**autoscaler(), "metadata": {"name": "plain"}})).json
    assert plain["spec"]["targetCPUUtilizationPercentage"] == 80
    assert (await plane.get(V1)).json["apiVersion"] == "autoscaling/v1"
    await plane.post(V1, autoscaler(metrics=[]), code=400)
    await plane.post(V1, {**autoscaler(maxReplicas="x"), "metadata": {"name": "bad"}}, code=400)


@in_loop
async def test_what_v1_cannot_say_is_kept_in_annotations():
    plane = Plane()
    pods = {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "10"}}
    metrics = [{"type": "Pods", "pods": pods}]
    behavior = {
        "scaleDown": {"selectPolicy": "Disabled", "policies": [{"type": "Pods", "value": 1, "periodSeconds": 9}]}
    }
    before = (await plane.post(V2, autoscaler(metrics=metrics, behavior=behavior))).json
    condition = {"type": "AbleToScale", "status": "True", "lastTransitionTime": "2026-09-21T14:13:20Z"}
    status = {"currentReplicas": 2, "desiredReplicas": 2, "conditions": [condition]}
    await plane.merge(V2 + "/web/status", {"status": status})
    seen = (await plane.get(V1 + "/web")).json
    notes = seen["metadata"]["annotations"]
    assert json.loads(notes["autoscaling.alpha.kubernetes.io/metrics"]) == [
        {"type": "Pods", "pods": {"metricName": "rps", "targetAverageValue": "10"}}
    ]
    assert "targetCPUUtilizationPercentage" not in seen["spec"] and "metrics" not in seen["spec"]
    seen["spec"]["maxReplicas"] = 9
    await plane.put(V1 + "/web", seen)
    after = (await plane.get(V2 + "/web")).json
    assert after["spec"] == {**before["spec"], "maxReplicas": 9}
    assert after["status"]["conditions"] == [condition] and "annotations" not in after["metadata"]


@in_loop
async def test_a_replication_controller_is_scaled_too():
    plane = Plane()
    path = "/api/v1/namespaces/default/replicationcontrollers"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await plane.post(path, {"metadata": {"name": "rc"}, "spec": {"replicas": 2, "template": template}})
    scale = (await plane.get(path + "/rc/scale")).json
    assert scale["spec"]["replicas"] == 2 and scale["status"]["selector"] == "a=b"
    await plane.merge(path + "/rc/scale", {"spec": {"replicas": 5}})
    assert (await plane.get(path + "/rc")).json["spec"]["replicas"] == 5


# -- whose fields are whose, as a kube-apiserver 1.36 records it -----------------------------------------------------


def owners(answer):
    """(manager, operation, apiVersion, fields outside metadata) of every entry."""
    return [
        (entry["manager"], entry["operation"], entry["apiVersion"], sorted(set(entry["fieldsV1"]) - {"f:metadata"}))
        for entry in answer.json["metadata"].get("managedFields", ())
    ]


@in_loop
async def test_a_writer_of_one_group_is_on_record_by_the_names_of_that_group_alone():
    plane = Plane()
    made = await plane.post(NEW, event())
    mine = [f"f:{name}" for name in ("action", "eventTime", "note", "reason", "regarding", "reportingController")]
    mine += ["f:reportingInstance", "f:type"]
    assert owners(made) == [("pytest", "Update", "events.k8s.io/v1", mine)]
    series = {"count": 2, "lastObservedTime": "2026-09-21T14:14:20.000000Z"}
    again = await plane.put(f"{NEW}/e", {**made.json, "series": series})
    assert owners(again) == [("pytest", "Update", "events.k8s.io/v1", sorted([*mine, "f:series"]))]
    core = (await plane.get(f"{CORE}/e")).json
    core = await plane.put(f"{CORE}/e", {**core, "message": "said otherwise", "count": 4})
    assert owners(core) == [("pytest", "Update", "v1", ["f:count", "f:message"])]
    back = await plane.merge(f"{NEW}/e", {"metadata": {"labels": {"a": "b"}}})
    assert owners(back) == [("pytest", "Update", "events.k8s.io/v1", [])]


@in_loop
async def test_an_apply_says_nothing_of_what_it_leaves_out():
    plane = Plane()
    await plane.post(NEW, event())
    config = {"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e", "labels": {"a": "b"}}}
    versions = set()
    for _ in range(2):
        done = await plane.apply(f"{NEW}/e?fieldManager=me", config)
        assert done.json["regarding"]["name"] == "web" and len(owners(done)) == 2
        assert ("me", "Apply", "events.k8s.io/v1", []) in owners(done)
        versions.add(done.json["metadata"]["resourceVersion"])
    assert len(versions) == 1  # the second one changed nothing
    taken = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "count": 5}
    assert owners(await plane.apply(f"{CORE}/e?fieldManager=other", taken)) == [("other", "Apply", "v1", ["f:count"])]
    gone = await plane.apply(f"{CORE}/e?fieldManager=other", {**taken, "count": None})
    assert "count" not in gone.json


@in_loop
async def test_rules_of_events_are_told_without_a_group():
    plane = Plane()
    made = (await plane.post(NEW, event())).json
    refused = (await plane.put(f"{NEW}/e", {**made, "note": "other"}, code=422)).json
    assert refused["message"] == 'Event "e" is invalid: message: Invalid value: "other": field is immutable'
    assert "group" not in refused["details"]


@in_loop
async def test_an_autoscaler_is_owned_in_the_version_that_each_wrote():
    plane = Plane()
    made = (await plane.post(f"{V1}?fieldManager=one", autoscaler(targetCPUUtilizationPercentage=60))).json
    path = made["metadata"]["name"]

    def owners(answer):
        entries = answer.json["metadata"]["managedFields"]
        return {each["manager"]: (each["apiVersion"], each["fieldsV1"].get("f:spec", {})) for each in entries}

    version, spec = owners(await plane.get(f"{V2}/{path}"))["one"]
    assert version == "autoscaling/v1" and "f:targetCPUUtilizationPercentage" in spec and "f:metrics" not in spec
    metrics = [{"type": "Resource", "resource": {"name": "cpu", "target": {
        "type": "Utilization", "averageUtilization": 70
    }}}]  # fmt: skip
    after = owners(await plane.merge(f"{V2}/{path}?fieldManager=two", {"spec": {"metrics": metrics}}))
    assert after["two"] == ("autoscaling/v2", {"f:metrics": {}})
    assert after["one"][0] == "autoscaling/v1" and "f:targetCPUUtilizationPercentage" not in after["one"][1]
    last = owners(
        await plane.merge(f"{V1}/{path}?fieldManager=three", {"spec": {"targetCPUUtilizationPercentage": 80}})
    )
    assert last["three"] == ("autoscaling/v1", {"f:targetCPUUtilizationPercentage": {}}) and "two" not in last
