"""DaemonSet: where pods go, rolling updates, failed pods; and small worlds explored to the end."""

import pytest

from steersman.controllers import daemon_pods, history
from steersman.controllers.daemonset import DaemonSet
from steersman.kernel.effect import MICRO
from steersman.kernel.object import Key
from steersman.nodes.component import node_object
from steersman.nodes.kubelet import VirtualKubelet
from steersman.sched.twin import Scheduler
from tests.controllers.worlds import LABELS, client, explore, make, objects, one, settle, template, user

RUN = [DaemonSet, Scheduler, VirtualKubelet]
WEB = Key("apps", "DaemonSet", "default", "web")
ROLLING = "RollingUpdate"


def node(name, labels=None, taints=None):
    made = node_object(name)
    made["metadata"]["labels"] |= labels or {}
    if taints:
        made["spec"]["taints"] = [{"key": key, "effect": effect} for key, effect in taints]
    return made


def daemon(image="nginx:1", pod=None, **spec):
    made = template(image, node="")
    made["spec"] |= pod or {}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": LABELS}, "template": made, **spec},
    }


def where(w):
    return sorted(daemon_pods.target_of(pod) for pod in objects(w, "Pod"))


def images(w):
    return sorted(pod.spec.containers[0].image for pod in objects(w, "Pod"))


def status(w):
    return one(w, "DaemonSet").status


def change(w, image):
    client(w).patch(WEB, {"spec": {"template": template(image, node="")}})


def test_every_node_gets_a_pod_that_only_the_scheduler_binds():
    w = settle(make([DaemonSet], [node("a"), node("b"), daemon()]))
    assert where(w) == ["a", "b"]
    pod = objects(w, "Pod")[0]
    required = pod.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution
    field = required.nodeSelectorTerms[0].matchFields[0]
    assert (field.key, field.operator, field["values"]) == ("metadata.name", "In", ["a"]) and "nodeName" not in pod.spec
    assert {each.key.removeprefix("node.kubernetes.io/") for each in pod.spec.tolerations} == {
        "not-ready",
        "unreachable",
        "disk-pressure",
        "memory-pressure",
        "pid-pressure",
        "unschedulable",
    }
    assert pod.metadata.labels["controller-revision-hash"] and pod.metadata.generateName == "web-"


def test_the_status_counts():
    w = settle(make(RUN, [node("a"), node("b"), daemon()]))
    assert {pod.spec.nodeName for pod in objects(w, "Pod")} == {"a", "b"}
    assert dict(status(w)) == {
        "currentNumberScheduled": 2,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 2,
        "numberReady": 2,
        "observedGeneration": 1,
        "updatedNumberScheduled": 2,
        "numberAvailable": 2,
    }
    assert not w.memory


@pytest.mark.parametrize(
    ("pod", "nodes"),
    [
        ({}, ["cordoned", "plain", "ssd"]),
        ({"nodeSelector": {"disk": "ssd"}}, ["ssd"]),
        ({"tolerations": [{"operator": "Exists"}]}, ["cordoned", "evicting", "plain", "ssd", "tainted"]),
        ({"tolerations": [{"key": "t", "operator": "Exists"}]}, ["cordoned", "plain", "ssd", "tainted"]),
        (
            {"affinity": {"nodeAffinity": {daemon_pods.REQUIRED: {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}]}}}},
            ["ssd"],
        ),
    ],
)  # fmt: skip
def test_which_nodes(pod, nodes):
    there = [
        node("plain"),
        node("ssd", {"disk": "ssd"}),
        node("tainted", taints=[("t", "NoSchedule")]),
        node("evicting", taints=[("t2", "NoExecute")]),
        node("cordoned", taints=[("node.kubernetes.io/unschedulable", "NoSchedule")]),
    ]
    assert where(settle(make([DaemonSet], [*there, daemon(pod=pod)]))) == nodes


def test_nodes_that_come_and_change():
    w = settle(make(RUN, [node("a"), daemon(pod={"nodeSelector": {"go": "yes"}})]))
    c = client(w)
    assert where(w) == [] and status(w).desiredNumberScheduled == 0
    c.create(node("b", {"go": "yes"}))
    c.patch(one(w, "Node", "a"), {"metadata": {"labels": {"go": "yes"}}})
    settle(w)
    assert where(w) == ["a", "b"] and status(w).numberReady == 2
    c.patch(one(w, "Node", "a"), {"metadata": {"labels": {"go": None}}})
    settle(w)
    assert where(w) == ["b"] and status(w).desiredNumberScheduled == 1


@pytest.mark.parametrize(("effect", "stays"), [("NoSchedule", True), ("NoExecute", False)])
def test_a_taint_keeps_new_pods_out_and_maybe_throws_old_ones_out(effect, stays):
    w = settle(make(RUN, [node("a"), daemon()]))
    client(w).patch(one(w, "Node", "a"), {"spec": {"taints": [{"key": "t", "effect": effect}]}})
    client(w).patch(WEB, {"metadata": {"annotations": {"look": "again"}}})
    settle(w)
    assert where(w) == (["a"] if stays else [])
    assert (status(w).desiredNumberScheduled, status(w).numberMisscheduled) == (0, int(stays))


def test_a_rolling_update_replaces_node_by_node():
    w = settle(make(RUN, [node("a"), node("b"), daemon()]))
    change(w, "nginx:2")
    settle(w)
    assert images(w) == ["nginx:2"] * 2 and status(w).updatedNumberScheduled == 2
    assert [each.revision for each in history.ordered(objects(w, "ControllerRevision"))] == [1, 2]
    change(w, "nginx:1")
    settle(w)
    assert [each.revision for each in history.ordered(objects(w, "ControllerRevision"))] == [2, 3]
    assert images(w) == ["nginx:1"] * 2


@pytest.mark.parametrize(("limit", "gone"), [(1, 1), (2, 2), ("50%", 2), ("34%", 2)])
def test_how_many_are_replaced_at_a_time(limit, gone):
    rolling = {"type": ROLLING, "rollingUpdate": {"maxUnavailable": limit}}
    w = settle(make([DaemonSet], [*[node(name) for name in "abcd"], daemon(updateStrategy=rolling)]))
    ready = [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    for pod in objects(w, "Pod"):
        client(w).update_status({**pod, "status": {"phase": "Running", "conditions": ready}})
    change(w, "nginx:2")
    settle(w)
    assert images(w).count("nginx:2") == gone, "new pods do not get ready here"


def test_a_surge_starts_new_pods_before_old_ones_go():
    rolling = {"type": ROLLING, "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    w = settle(make(RUN, [node("a"), node("b"), daemon(updateStrategy=rolling, minReadySeconds=10)]))
    settle(w, timers=True)
    change(w, "nginx:2")
    settle(w)
    assert images(w) == ["nginx:1", "nginx:1", "nginx:2"], "the new one is not available for long enough"
    settle(w, timers=True)
    assert images(w) == ["nginx:2", "nginx:2"] and status(w).numberAvailable == 2


def test_on_delete_waits_for_a_person():
    w = settle(make(RUN, [node("a"), daemon(updateStrategy={"type": "OnDelete"})]))
    change(w, "nginx:2")
    settle(w)
    assert images(w) == ["nginx:1"] and not status(w).get("updatedNumberScheduled")
    client(w).delete(objects(w, "Pod")[0])
    settle(w)
    assert images(w) == ["nginx:2"]


def test_a_failed_pod_is_replaced_and_the_next_one_later():
    w = settle(make([DaemonSet], [node("a"), daemon()]))

    def fail():
        pod = objects(w, "Pod")[0]
        client(w).update_status({**pod, "status": {**pod.status, "phase": "Failed"}})
        settle(w)
        return pod.metadata.uid

    assert fail() != objects(w, "Pod")[0].metadata.uid
    assert fail() == objects(w, "Pod")[0].metadata.uid, "it waits a second now"
    begun = w.now
    uid = objects(w, "Pod")[0].metadata.uid
    settle(w, timers=True)
    assert objects(w, "Pod")[0].metadata.uid != uid and w.now - begun == 1 * MICRO


def test_unused_revisions_go_beyond_the_limit():
    w = settle(make(RUN, [node("a"), daemon(revisionHistoryLimit=1)]))
    for number in (2, 3, 4):
        change(w, f"nginx:{number}")
        settle(w)
    assert [each.revision for each in history.ordered(objects(w, "ControllerRevision"))] == [3, 4]


def test_a_pod_for_a_node_that_is_gone_goes_too():
    w = settle(make([DaemonSet], [node("a"), node("b"), daemon()]))
    client(w).delete(one(w, "Node", "b"))
    settle(w)
    assert where(w) == ["a"]


# -- every interleaving ------------------------------------------------------------------------------------------


def one_a_node(w):
    there = where(w)
    return len(there) == len(set(there))


@pytest.mark.parametrize(("lag", "crashes", "atomic"), [(0, 1, False), (1, 1, True)])
def test_every_interleaving_puts_one_pod_on_a_node(lag, crashes, atomic):
    run = [DaemonSet, VirtualKubelet]

    def world():
        return make(run, [node("a"), node("b"), daemon()], lag=lag, budgets=(crashes, 0), atomic=atomic)

    found = explore(world, one_a_node)
    assert not found.findings and found.terminal
    assert {tuple(where(w)) for w in found.terminal} == {("a", "b")} and all(not w.memory for w in found.terminal)


def test_every_interleaving_of_a_new_template_keeps_one_pod_a_node():
    users = [user("change", lambda c: c.patch(WEB, {"spec": {"template": template("nginx:2", node="")}}))]
    found = explore(lambda: make([DaemonSet], [node("a"), daemon()], users, lag=1, atomic=True), one_a_node)
    assert not found.findings
    assert {tuple(images(w)) for w in found.terminal} == {("nginx:2",)}
