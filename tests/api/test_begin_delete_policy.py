"""Propagation policies: which finalizer a deletion leaves on an object, and what a second deletion makes of it."""

import pytest

from tests.api.cluster import deployment, pod, refused

POD, DEPLOYMENT, CONFIG = "v1/Pod", "apps/v1/Deployment", "v1/ConfigMap"
JOB = {"template": {"spec": pod(restartPolicy="Never")}}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": pod()}
RC = {"selector": {"a": "b"}, "template": TEMPLATE}


def finalizers(cluster, kind, name="web"):
    """The finalizers of an object; None when it is gone."""
    obj = cluster.read(kind, name)
    return None if obj is None else list(obj.meta.value.get("finalizers", ()))


@pytest.mark.parametrize(
    ("policy", "given", "left"),
    [
        ("", [], None),
        ("Background", [], None),
        ("Foreground", [], ["foregroundDeletion"]),
        ("Orphan", [], ["orphan"]),
        ("", ["orphan"], ["orphan"]),
        ("", ["foregroundDeletion"], ["foregroundDeletion"]),
        ("Background", ["orphan"], None),
        ("Foreground", ["orphan"], ["foregroundDeletion"]),
        ("Orphan", ["foregroundDeletion"], ["orphan"]),
        ("Orphan", ["x.io/a"], ["x.io/a", "orphan"]),
        ("Background", ["x.io/a", "orphan"], ["x.io/a"]),
    ],
)
def test_the_request_goes_before_the_object(cluster, policy, given, left):
    cluster.create(CONFIG, "web", metadata={"finalizers": given} if given else {})
    cluster.delete(CONFIG, "web", **({"propagation": policy} if policy else {}))
    assert finalizers(cluster, CONFIG) == left
    if left:
        meta = cluster.get(CONFIG, "web")["metadata"]
        assert meta["deletionTimestamp"] and meta["deletionGracePeriodSeconds"] == 0


@pytest.mark.parametrize(("kind", "spec"), [("batch/v1/Job", JOB), ("v1/ReplicationController", RC)])
def test_kinds_older_than_the_collector_orphan_by_default(cluster, kind, spec):
    cluster.create(kind, "web", spec=spec)
    reply = cluster.delete(kind, "web")
    assert finalizers(cluster, kind) == ["orphan"]
    assert bool(reply.warnings) == (kind == "batch/v1/Job")
    assert not cluster.delete(kind, "web", propagation="Background").warnings
    assert finalizers(cluster, kind) is None


def test_events_are_never_held_for_the_collector(cluster):
    body = {"involvedObject": {"kind": "Pod", "name": "p", "namespace": "shop"}, "reason": "X"}
    cluster.create("v1/Event", "web", **body)
    cluster.delete("v1/Event", "web", propagation="Foreground")
    assert cluster.read("v1/Event", "web") is None


def test_another_policy_may_be_asked_for_while_it_waits(cluster):
    cluster.create(DEPLOYMENT, "web", spec=deployment())
    cluster.delete(DEPLOYMENT, "web", propagation="Foreground")
    before = cluster.read(DEPLOYMENT, "web")
    assert before.meta.value["generation"] == 2
    assert cluster.delete(DEPLOYMENT, "web", propagation="Foreground").obj is before
    cluster.now += 5
    cluster.delete(DEPLOYMENT, "web", propagation="Orphan")
    after = cluster.read(DEPLOYMENT, "web").meta.value
    assert after["finalizers"] == ["orphan"] and after["generation"] == 2
    assert after["deletionTimestamp"] == before.meta.value["deletionTimestamp"]
    cluster.delete(DEPLOYMENT, "web", propagation="Background")
    assert cluster.read(DEPLOYMENT, "web") is None


def test_a_pod_in_its_grace_takes_no_other_policy(cluster):
    cluster.create(POD, "web", spec=pod(nodeName="n1"))
    cluster.delete(POD, "web", propagation="Foreground")
    assert finalizers(cluster, POD) == ["foregroundDeletion"]
    assert cluster.get(POD, "web")["metadata"]["deletionGracePeriodSeconds"] == 30
    cluster.delete(POD, "web", propagation="Background")  # no shorter grace: nothing changes
    assert finalizers(cluster, POD) == ["foregroundDeletion"]
    cluster.delete(POD, "web", propagation="Background", grace=5)
    assert finalizers(cluster, POD) == []
    cluster.delete(POD, "web", grace=0)
    assert cluster.read(POD, "web") is None


def test_a_shorter_grace_never_ends_in_the_past(cluster):
    cluster.create(POD, "web", spec=pod(nodeName="n1", terminationGracePeriodSeconds=60))
    cluster.delete(POD, "web")
    cluster.now += 40
    cluster.delete(POD, "web", grace=20)
    meta = cluster.get(POD, "web")["metadata"]
    assert meta["deletionGracePeriodSeconds"] == 1
    assert meta["deletionTimestamp"] == "2026-05-28T20:27:20Z"  # now


def test_a_dry_run_shows_it_and_leaves_it(cluster):
    cluster.create(CONFIG, "web")
    before = cluster.read(CONFIG, "web")
    shown = cluster.delete(CONFIG, "web", propagation="Foreground", dry_run=True).obj
    assert shown.meta.value["finalizers"] == ["foregroundDeletion"]
    assert cluster.read(CONFIG, "web") is before


def test_a_policy_nobody_knows(cluster):
    cluster.create(CONFIG, "web")
    error = refused(cluster.delete, CONFIG, "web", propagation="Sideways")
    assert error.code == 400 and "Background, Foreground, Orphan" in error.message


def test_namespaces_hold_what_was_asked_for(cluster):
    cluster.delete("v1/Namespace", "shop", propagation="Foreground")
    assert finalizers(cluster, "v1/Namespace", "shop") == ["foregroundDeletion"]
