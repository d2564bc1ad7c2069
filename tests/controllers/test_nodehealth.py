"""Nodes that fall silent, their taints, and what becomes of their pods."""

import pytest

from steersman.controllers import node_zones, podgc
from steersman.controllers.node_events import NodeEvents
from steersman.controllers.node_zones import readiness
from steersman.controllers.nodehealth import NodeLifecycle
from steersman.controllers.podgc import PodGc
from steersman.controllers.tainteviction import TaintEviction
from steersman.controllers.ttl import TtlAfterFinished
from steersman.kernel.object import Key
from steersman.nodes.node import node_object
from tests.controllers.worlds import as_object, client, explore, make, objects, one, settle, template, user

NODE = Key("", "Node", "", "node-1")
ALL = (NodeLifecycle, PodGc, TaintEviction)
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def pod(name="p", **spec):
    body = as_object(template())
    meta = {**body["metadata"], "name": name, "namespace": "default"}
    return {**body, "metadata": meta, "spec": {**body["spec"], **spec}}


def world(*objects_, controllers=ALL, users=(), **options):
    """A second node is well: what fails is not everything."""
    return make(controllers, [node_object("node-1"), node_object("spare"), *objects_], users, **options)


def taints(w):
    return [(each.key, each.effect) for each in one(w, "v1/Node", "node-1").spec.get("taints") or ()]


def becomes(w, status):
    c = client(w)
    node = c.get(NODE)
    conditions = [{**each, "status": status} if each["type"] == "Ready" else each for each in node.status.conditions]
    c.patch_status(NODE, {"conditions": conditions})


def going(w, name="p"):
    found = one(w, "v1/Pod", name)
    return found is None or "deletionTimestamp" in found.metadata


def test_cordon_and_conditions_become_taints_and_others_stay():
    w = settle(world())
    assert taints(w) == []
    other = {"key": "x.io/a", "effect": "NoSchedule"}
    client(w).patch(NODE, {"spec": {"unschedulable": True, "taints": [other]}})
    settle(w)
    assert taints(w) == [("x.io/a", "NoSchedule"), ("node.kubernetes.io/unschedulable", "NoSchedule")]
    client(w).patch(NODE, {"spec": {"unschedulable": None}})
    becomes(w, "Unknown")
    settle(w)
    unreachable = "node.kubernetes.io/unreachable"
    assert sorted(taints(w)) == [(unreachable, "NoExecute"), (unreachable, "NoSchedule"), ("x.io/a", "NoSchedule")]
    assert all(each.get("timeAdded") for each in one(w, "v1/Node", "node-1").spec.taints[1:])
    becomes(w, "True")
    settle(w)
    assert taints(w) == [("x.io/a", "NoSchedule")]


def test_a_node_that_renews_no_lease_is_unknown_and_its_pods_are_not_ready():
    w = world(pod(tolerations=[{"operator": "Exists"}]))
    client(w).patch_status(Key("", "Pod", "default", "p"), READY)
    settle(w, timers=True)
    assert one(w, "v1/Node", "node-1").status.conditions[-1].status == "True"  # virtual: it never had one
    client(w).create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-node-lease"}})
    lease = {"metadata": {"name": "node-1", "namespace": "kube-node-lease"}}
    spec = {"holderIdentity": "node-1", "renewTime": "2026-01-01T00:00:00.000000Z"}
    client(w).create({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", **lease, "spec": spec})
    settle(w, timers=True)
    conditions = {each.type: each for each in one(w, "v1/Node", "node-1").status.conditions}
    assert {each.status for each in conditions.values()} == {"Unknown"}
    assert conditions["Ready"].reason == "NodeStatusUnknown"
    assert conditions["Ready"].message == "Kubelet stopped posting node status."
    assert [each.status for each in one(w, "v1/Pod", "p").status.conditions if each.type == "Ready"] == ["False"]


@pytest.mark.parametrize("year", [2020, 2026, 2090])
def test_a_node_whose_clock_is_wrong_is_alive_as_long_as_it_renews_its_lease(year):
    w = world()
    client(w).create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-node-lease"}})
    lease = Key("coordination.k8s.io", "Lease", "kube-node-lease", "node-1")
    meta = {"name": lease.name, "namespace": lease.namespace}

    def renewed(second):
        return {"holderIdentity": "node-1", "renewTime": f"{year}-01-01T00:{second // 60:02}:{second % 60:02}.000000Z"}

    client(w).create({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": renewed(0)})
    for second in range(10, 600, 10):
        pass_time(settle(w), 10)
        client(w).patch(lease, {"spec": renewed(second)})
    assert readiness(one(settle(w), "v1/Node", "node-1")) == "True"
    for _ in range(12):
        pass_time(settle(w), 10)
    assert readiness(one(settle(w), "v1/Node", "node-1")) == "Unknown"


TOLERANT = [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}]


@pytest.mark.parametrize(
    ("tolerations", "at_once", "later"),
    [
        ([], True, True),
        (TOLERANT, False, False),
        ([{**TOLERANT[0], "tolerationSeconds": 300}], False, True),
        ([{"operator": "Exists"}], False, False),
        ([{**TOLERANT[0], "tolerationSeconds": 0}], True, True),
        ([{"key": "other", "operator": "Exists"}], True, True),
    ],
)
def test_who_does_not_tolerate_a_taint_goes(tolerations, at_once, later):
    w = settle(world(pod(tolerations=tolerations)))
    becomes(w, "False")
    settle(w)
    assert going(w) == at_once
    settle(w, timers=True)
    assert going(w) == later
    if later:
        target = next(each for each in one(w, "v1/Pod", "p").status.conditions if each.type == "DisruptionTarget")
        assert target.reason == "DeletionByTaintManager"


def test_a_taint_that_goes_in_time_is_forgiven():
    w = settle(world(pod(tolerations=[{**TOLERANT[0], "tolerationSeconds": 300}])))
    becomes(w, "False")
    settle(w)
    becomes(w, "True")
    settle(w, timers=True)
    assert not going(w) and all("default/p" not in memory for memory in w.memory.values())


def test_pods_of_a_node_that_is_gone_fail_and_go():
    w = settle(world(pod()))
    client(w).delete(NODE)
    settle(w)
    assert one(w, "v1/Pod", "p")
    settle(w, timers=True)
    assert one(w, "v1/Pod", "p") is None
    assert all("node-1" not in memory for memory in w.memory.values())
    failed = next(event.old for event in w.events if event.key.kind == "Pod" and event.new is None).value
    assert failed.status.phase == "Failed" and failed.status.conditions[-1].reason == "DeletionByPodGC"


def test_a_pod_that_was_deleted_before_it_had_a_node_goes():
    w = world(pod(), controllers=[PodGc])
    c = client(w)
    free = pod("free")
    del free["spec"]["nodeName"]
    free["metadata"]["finalizers"] = ["x.io/hold"]
    c.create(free)
    c.delete(Key("", "Pod", "default", "free"), grace=0)
    settle(w)
    assert one(w, "v1/Pod", "free").status.phase == "Failed"


def test_out_of_service_ends_what_is_terminating():
    w = settle(world(pod(tolerations=[{"operator": "Exists"}])))
    client(w).delete(Key("", "Pod", "default", "p"))
    becomes(w, "False")
    settle(w)
    assert one(w, "v1/Pod", "p")
    out = {"key": podgc.OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute"}
    client(w).patch(NODE, {"spec": {"taints": [out]}})
    settle(w)
    assert one(w, "v1/Pod", "p") is None


def test_of_very_many_ended_pods_the_oldest_go(monkeypatch):
    monkeypatch.setattr(podgc, "THRESHOLD", 2)
    w = world(*[pod(f"p{number}") for number in range(4)], controllers=[PodGc])
    for number in range(4):
        status = {"phase": "Failed", "reason": "Evicted"} if number == 3 else {"phase": "Succeeded"}
        client(w).patch_status(Key("", "Pod", "default", f"p{number}"), status)
    settle(w, timers=True)
    assert [each.metadata.name for each in objects(w, "v1/Pod")] == ["p1", "p2"]


@pytest.mark.parametrize("lag", [0, 1])
def test_every_order_of_failure_and_recovery_ends_healthy(lag):
    """A node fails and comes back while its pod is looked at: at the end no taint is left, whatever came between."""
    users = [user("fail", lambda c: flip(c, "False")), user("heal", lambda c: flip(c, "True"))]

    def flip(c, status):
        node = c.get(NODE)
        conditions = [{**e, "status": status} if e["type"] == "Ready" else e for e in node.status.conditions]
        if status == "True" and node.status.conditions[-1].status == "True":
            return
        c.patch_status(NODE, {"conditions": conditions})

    watched = [NodeLifecycle] if lag else [NodeLifecycle, TaintEviction]
    found = explore(lambda: world(pod(), users=users, lag=lag, controllers=watched), limit=20_000)
    assert found.states > 10 and not found.findings
    healthy = [w for w in found.terminal if one(w, "v1/Node", "node-1").status.conditions[-1].status == "True"]
    assert healthy and all(taints(w) == [] for w in healthy)
    ill = [w for w in found.terminal if w not in healthy]
    assert all(len(taints(w)) == 2 and (lag or going(w)) for w in ill)


def test_ended_jobs_go_after_their_time():
    spec = {"template": {"spec": {**template()["spec"], "restartPolicy": "Never"}}, "ttlSecondsAfterFinished": 60}
    meta = {"name": "j", "namespace": "default"}
    w = make([TtlAfterFinished], [{"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}])
    c = client(w)
    settle(w, timers=True)
    done = {"type": "Complete", "status": "True", "lastTransitionTime": c.timestamp(), "lastProbeTime": c.timestamp()}
    times = {"startTime": c.timestamp(), "completionTime": c.timestamp(), "succeeded": 1}
    criteria = {**done, "type": "SuccessCriteriaMet"}
    c.patch_status(Key("batch", "Job", "default", "j"), {**times, "conditions": [criteria, done]})
    settle(w)
    assert "deletionTimestamp" not in one(w, "batch/v1/Job", "j").metadata
    settle(w, timers=True)
    assert one(w, "batch/v1/Job", "j").metadata.finalizers == ["foregroundDeletion"]


def plane(*sizes):
    """Zones of so many nodes, and nothing else."""
    nodes = []
    for zone, size in enumerate(sizes):
        for number in range(size):
            node = node_object(f"z{zone}-{number:02}")
            labels = {**node["metadata"]["labels"], "topology.kubernetes.io/zone": f"z{zone}"}
            nodes.append({**node, "metadata": {**node["metadata"], "labels": labels}})
    return settle(make([NodeLifecycle], nodes, persistent=False, atomic=True))


def fail(w, *names, status="Unknown"):
    c = client(w)
    for name in names:
        node = c.get(Key("", "Node", "", name))
        conditions = [
            {**each, "status": status} if each["type"] == "Ready" else each for each in node.status.conditions
        ]
        c.patch_status(node, {"conditions": conditions})
    settle(w)


def evicting(w):
    return {
        each.metadata.name
        for each in objects(w, "v1/Node")
        if any(taint.effect == "NoExecute" for taint in each.spec.get("taints") or ())
    }


def pass_time(w, seconds):
    """Everything that is due within so many seconds."""
    end = w.now + seconds * 1_000_000
    while w.wakes and min(w.wakes.values()) <= end:
        w.fire(min(w.wakes, key=lambda item: (w.wakes[item], item)))
        settle(w)
    w.now = end


def names(zone, count):
    return [f"z{zone}-{number:02}" for number in range(count)]


def test_nodes_of_a_zone_that_is_well_have_their_turn_every_ten_seconds():
    w = plane(6)
    fail(w, *names(0, 3))
    assert len(evicting(w)) == 1
    pass_time(w, 9)
    assert len(evicting(w)) == 1
    pass_time(w, 2)
    assert len(evicting(w)) == 2
    pass_time(w, 10)
    assert evicting(w) == set(names(0, 3))
    assert all(each.spec.taints[0].timeAdded for each in objects(w, "v1/Node") if each.spec.get("taints"))
    fail(w, *names(0, 3), status="True")
    pass_time(w, 60)
    assert not evicting(w)


@pytest.mark.parametrize(("size", "failed", "at_once", "later"), [(6, 4, 0, 0), (51, 40, 1, 2)])
def test_of_a_zone_of_which_much_failed_few_have_their_turn(size, failed, at_once, later):
    """A small zone keeps what it has; a large one loses a node in a hundred seconds."""
    w = plane(size, 1)
    fail(w, *names(0, failed))
    assert len(evicting(w)) == at_once
    pass_time(w, 99)
    assert len(evicting(w)) == at_once
    pass_time(w, 20)
    assert len(evicting(w)) == later


def test_when_everything_failed_nobody_is_driven_away():
    w = plane(2, 2)
    fail(w, "z0-00")
    assert evicting(w) == {"z0-00"}
    fail(w, "z0-01", "z1-00", "z1-01")
    pass_time(w, 600)
    assert evicting(w) == set()
    noted = [(taint.key, taint.effect) for each in objects(w, "v1/Node") for taint in each.spec.taints]
    assert set(noted) == {(node_zones.UNREACHABLE, "NoSchedule")}
    fail(w, "z1-00", status="True")
    pass_time(w, 600)
    assert evicting(w) == {"z0-00", "z0-01", "z1-01"}


def test_a_zone_that_failed_as_a_whole_loses_its_pods_as_fast_as_one_that_is_well():
    w = plane(3, 1)
    fail(w, *names(0, 3))
    pass_time(w, 35)
    assert evicting(w) == set(names(0, 3))


def test_the_older_labels_follow():
    w = plane(1)
    node = Key("", "Node", "", "z0-00")
    client(w).patch(node, {"metadata": {"labels": {"kubernetes.io/arch": "arm64", "beta.kubernetes.io/os": None}}})
    settle(w)
    labels = objects(w, "v1/Node")[0].metadata.labels
    assert (labels["beta.kubernetes.io/arch"], labels["beta.kubernetes.io/os"]) == ("arm64", "linux")


def test_nodes_that_come_and_go_are_told_of(monkeypatch):
    told = []
    monkeypatch.setattr("steersman.api.client.Client.event", lambda c, obj, *words: told.append((obj, *words)))
    w = settle(make([NodeEvents], [node_object("node-1")]))
    client(w).delete(NODE)
    settle(w)
    said = dict.fromkeys((reason, text) for _, _, reason, text, _ in told)  # a reconcile is executed again and again
    assert list(said) == [
        ("RegisteredNode", "Node node-1 event: Registered Node node-1 in Controller"),
        ("RemovingNode", "Node node-1 event: Removing Node node-1 from Controller"),
    ]
    assert told[0][0] == told[-1][0] and told[0][0]["metadata"]["uid"]
