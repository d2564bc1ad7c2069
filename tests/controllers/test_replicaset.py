"""ReplicaSet: counts, order of deletion, adoption and release, and exactness under stale views and crashes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.controllers import owned, pods
from steersman.controllers.replicaset import ReplicaSet, ReplicationController
from steersman.kernel.object import Key
from steersman.nodes.kubelet import VirtualKubelet
from tests.controllers.worlds import (
    LABELS,
    client,
    explore,
    make,
    objects,
    one,
    put,
    ready_pods,
    replicaset,
    settle,
    template,
    user,
)

RUN = [ReplicaSet, VirtualKubelet]
WEB = Key("apps", "ReplicaSet", "default", "web")


def pod(name, labels=LABELS, **meta):
    body = template(node="node-1")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels, **meta},
        "spec": body["spec"],
    }


def test_pods_come_up_and_the_status_counts_them():
    w = settle(make(RUN, [replicaset(3)]))
    status = one(w, "ReplicaSet").status
    assert ready_pods(w) == 3
    assert dict(status) == {
        "replicas": 3,
        "fullyLabeledReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "terminatingReplicas": 0,
        "observedGeneration": 1,
    }
    made = objects(w, "Pod")[0]
    assert made.metadata.generateName == "web-" and made.metadata.ownerReferences[0].controller is True
    assert not w.memory, "at rest nothing is remembered"


def test_scaling_down_to_nothing_leaves_nothing():
    w = settle(make(RUN, [replicaset(3)]))
    client(w).patch(WEB, {"spec": {"replicas": 0}})
    settle(w)
    assert objects(w, "Pod") == []
    assert dict(one(w, "ReplicaSet").status) == {"replicas": 0, "terminatingReplicas": 0, "observedGeneration": 2}


def test_a_pod_that_failed_is_replaced_and_a_deleted_one_too():
    w = settle(make(RUN, [replicaset(2)]))
    c = client(w)
    first, second = objects(w, "Pod")
    c.update_status({**first, "status": {**first.status, "phase": "Failed"}})
    c.delete(second)
    settle(w)
    assert ready_pods(w) == 2 and len(objects(w, "Pod")) == 3  # the failed one stays, as in Kubernetes


def test_min_ready_seconds_make_a_ready_pod_available_later():
    w = settle(make(RUN, [replicaset(1, minReadySeconds=30)]))
    assert one(w, "ReplicaSet").status.readyReplicas == 1
    assert not one(w, "ReplicaSet").status.availableReplicas
    settle(w, timers=True)
    assert one(w, "ReplicaSet").status.availableReplicas == 1


def test_an_orphan_that_matches_is_adopted_whenever_it_comes():
    w = make(RUN, [pod("before"), replicaset(3)])
    settle(w)
    c = client(w)
    assert len(objects(w, "Pod")) == 3
    c.create(pod("after"))
    settle(w)
    names = [each.metadata.name for each in objects(w, "Pod")]
    assert len(names) == 3
    owners = {each.metadata.ownerReferences[0].uid for each in objects(w, "Pod")}
    assert owners == {one(w, "ReplicaSet").metadata.uid}


def test_a_pod_that_stops_matching_is_released_and_replaced():
    w = settle(make(RUN, [replicaset(1)]))
    c = client(w)
    mine = objects(w, "Pod")[0]
    c.patch(mine, {"metadata": {"labels": {"app": "debug"}}})
    settle(w)
    left = c.get(mine)
    assert not left.metadata.ownerReferences and len(objects(w, "Pod")) == 2


def test_another_controllers_pods_are_left_alone():
    owner = {"apiVersion": "v1", "kind": "Thing", "name": "x", "uid": "00000000-0000-4000-8000-000000000000"}
    theirs = pod("theirs", ownerReferences=[{**owner, "controller": True}])
    w = settle(make(RUN, [theirs, replicaset(1)]))
    assert len(objects(w, "Pod")) == 2 and one(w, "Pod", "theirs").metadata.ownerReferences[0].kind == "Thing"


def test_no_owner_that_is_going_adopts():
    held = replicaset(1)
    held["metadata"]["finalizers"] = ["example.com/hold"]
    w = settle(make(RUN, [held]))
    c = client(w)
    c.delete(WEB)
    settle(w)
    c.create(pod("late"))
    c.delete(objects(w, "Pod")[1])
    settle(w)
    assert [each.metadata.name for each in objects(w, "Pod")] == ["late"]
    assert not one(w, "Pod", "late").metadata.ownerReferences


def test_no_owner_adopts_that_went_since_it_was_read():
    w = make([], [replicaset(1), pod("orphan")])
    c = client(w)
    stale = c.get(WEB)
    c.delete(WEB)
    assert owned.claim(c, stale, "v1/Pod") == [] and not one(w, "Pod", "orphan").metadata.ownerReferences
    c.patch(one(w, "Pod", "orphan"), {"metadata": {"annotations": {"was": stale.metadata.uid}}})  # not drawn again
    put(w, replicaset(1))
    assert owned.claim(c, stale, "v1/Pod") == [], "another incarnation does not count"
    assert [each.metadata.name for each in owned.claim(c, c.get(WEB), "v1/Pod")] == ["orphan"]


def test_a_refused_create_is_told_in_the_status():
    bad = replicaset(1)
    bad["metadata"] = {**bad["metadata"], "name": "web", "namespace": "shop"}
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    w = make([ReplicaSet], [space, bad], backoff=lambda failures: 1_000_000)
    client(w).delete(Key("", "Namespace", "", "shop"))  # from here on, creates are forbidden
    settle(w)
    failure = client(w).get(Key("apps", "ReplicaSet", "shop", "web")).status.conditions[0]
    assert (failure.type, failure.status, failure.reason) == ("ReplicaFailure", "True", "FailedCreate")
    assert "because it is being terminated" in failure.message


def seen(name, node="n", phase="Running", ready="2026-01-01T00:00:10Z", restarts=0, cost="0", created=0):
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": ready}] if ready else []
    return {
        "metadata": {
            "name": name,
            "creationTimestamp": f"2026-01-01T00:00:{created:02d}Z",
            "annotations": {pods.DELETION_COST: cost},
        },
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": phase, "conditions": conditions, "containerStatuses": [{"restartCount": restarts}]},
    }


def test_who_goes_first():
    """Kubernetes' order, one criterion after the other."""
    line = [
        seen("unassigned", node=""),
        seen("pending", phase="Pending", ready=""),
        seen("unknown", phase="Unknown", ready=""),
        seen("unready", ready=""),
        seen("cheap", cost="-5"),
        seen("doubled", node="crowded"),
        seen("young-ready", ready="2026-01-01T00:00:20Z"),
        seen("restarted", restarts=3),
        seen("new", created=9),
        seen("a"),
        seen("b"),
    ]
    ranks = {"crowded": 2, "n": 1}
    line.reverse()
    ordered = sorted(line, key=lambda each: pods.deletion_order(each, ranks))[::-1]
    assert [each["metadata"]["name"] for each in ordered] == [each["metadata"]["name"] for each in line]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=6))
def test_any_series_of_sizes_ends_at_the_last_one(sizes):
    w = settle(make(RUN, [replicaset(sizes[0])]))
    for size in sizes[1:]:
        client(w).patch(WEB, {"spec": {"replicas": size}})
        settle(w)
    assert ready_pods(w) == sizes[-1] == len(objects(w, "Pod"))


def at_most(count):
    return lambda w: len(objects(w, "Pod")) <= count


@pytest.mark.parametrize(
    ("controllers", "replicas", "lag", "least"),
    [(RUN, 2, 0, 800), (RUN, 1, 1, 1_200), ([ReplicaSet], 2, 1, 100)],
    ids=["two, fresh", "one, stale", "two that nobody runs, stale"],
)
def test_every_interleaving_of_calls_ends_with_all_and_never_has_more(controllers, replicas, lag, least):
    found = explore(lambda: make(controllers, [replicaset(replicas)], lag=lag), at_most(replicas))
    assert found.states > least and not found.findings
    ready = replicas if controllers is RUN else 0
    assert {(len(objects(w, "Pod")), ready_pods(w), len(w.memory)) for w in found.terminal} == {(replicas, ready, 0)}


def test_a_crash_between_any_two_calls_does_no_harm():
    found = explore(lambda: make([ReplicaSet], [replicaset(2)], lag=1, budgets=(1, 0)), at_most(2))
    assert {len(objects(w, "Pod")) for w in found.terminal} == {2}
    assert not found.findings


def test_a_pod_that_is_made_and_deleted_unseen_is_replaced():
    """What Kubernetes' expectations wait five minutes for: the creation and the removal both precede the reconcile."""

    def delete_one(c):
        found = c.list("v1/Pod", "default")
        if found:
            c.delete(found[0], grace=0)

    users = [user("delete", delete_one)]
    found = explore(lambda: make([ReplicaSet], [replicaset(1)], users, lag=1), at_most(1))
    assert {len(objects(w, "Pod")) for w in found.terminal} == {1}


@pytest.mark.parametrize("lag", [0, 1])
def test_scaling_down_ends_with_one_whatever_comes_between(lag):
    def scale(c):
        c.patch(WEB, {"spec": {"replicas": 1}})

    found = explore(lambda: make(RUN, [replicaset(2)], [user("scale", scale)], lag=lag, atomic=True), at_most(2))
    assert {(ready_pods(w), len(objects(w, "Pod"))) for w in found.terminal} == {(1, 1)}


def replication(replicas=2):
    body = replicaset(replicas)
    return {**body, "apiVersion": "v1", "kind": "ReplicationController", "spec": {**body["spec"], "selector": LABELS}}


def test_a_replication_controller_keeps_its_pods_too():
    w = settle(make([ReplicationController, VirtualKubelet], [replication()]))
    status = one(w, "v1/ReplicationController").status
    assert dict(status) == {
        "replicas": 2,
        "fullyLabeledReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "observedGeneration": 1,
    }
    (owner,) = objects(w, "Pod")[0].metadata.ownerReferences
    assert (owner.apiVersion, owner.kind, owner.controller) == ("v1", "ReplicationController", True)
    client(w).patch(Key("", "ReplicationController", "default", "web"), {"spec": {"replicas": 1}})
    client(w).create(pod("stray"))
    settle(w)
    assert ready_pods(w) == 1 and all("ownerReferences" in each.metadata for each in objects(w, "Pod"))


def test_every_order_of_a_replication_controller_ends_in_its_pods():
    steps = [
        user("scale", lambda c: c.patch(Key("", "ReplicationController", "default", "web"), {"spec": {"replicas": 2}}))
    ]
    found = explore(lambda: make([ReplicationController], [replication(1)], steps, lag=1, budgets=(1, 0)))
    assert found.states > 10 and found.terminal and not found.findings
    assert all(len(objects(w, "Pod")) == 2 for w in found.terminal)
