"""Pods with claims: which nodes their volumes allow, what is said when none does, and that both schedulers agree."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.sched.core import Scheduler
from steersman.sched.plain import plain_schedule
from steersman.sched.volumes import CLAIM, CLASS, KINDS, VOLUME, Storage
from tests.sched.clusters import node, pod

Json = dict[str, Any]


def claim(name="c", bound="", class_="late", modes=("ReadWriteOnce",), size="1Gi", notes=None, **status):
    spec = {"storageClassName": class_, "accessModes": list(modes), "resources": {"requests": {"storage": size}}}
    done = {"pv.kubernetes.io/bind-completed": "yes"} if bound else {}
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "annotations": {**done, **(notes or {})}}
    return {"metadata": meta, "spec": {**spec, "volumeName": bound} if bound else spec, "status": status}


def volume(name="v", zone="", class_="late", size="1Gi", phase="Available", ref=None, labels=None):
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}
    spec = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": class_}
    if zone:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    if ref:
        spec["claimRef"] = {"namespace": "default", "name": ref}
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": spec, "status": {"phase": phase}}


def class_(name="late", mode="WaitForFirstConsumer", provisioner="x.io/p", **more):
    return {"metadata": {"name": name}, "volumeBindingMode": mode, "provisioner": provisioner, **more}


def mounting(name, *claims, **spec):
    volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]
    return pod(name, volumes=volumes, **spec)


NODES = [node("n1", labels={"zone": "a"}), node("n2", labels={"zone": "b"})]


def both(wanted, *storage, pods=()):
    """What both schedulers decide, which is the same."""
    scheduler = Scheduler()
    listed: dict[Any, list[Json]] = {gk: [] for gk in KINDS}
    for each in storage:
        gk = CLAIM if "namespace" in each["metadata"] else VOLUME if "spec" in each else CLASS
        listed[gk].append(each)
        scheduler.storage_seen(gk, each["metadata"].get("namespace", ""), each["metadata"]["name"], each)
    for each in NODES:
        scheduler.node_upsert(each)
    for each in (*pods, wanted):
        scheduler.pod_upsert(each)
    (decision,) = scheduler.schedule(0, 9)
    known = Storage.of(listed[CLAIM], listed[VOLUME], listed[CLASS], pods)
    assert plain_schedule(wanted, NODES, pods, storage=known) == decision
    return decision


def test_a_bound_claim_ties_its_pod_to_the_volume():
    decision = both(mounting("p", "c"), claim(bound="v"), volume(zone="b"))
    assert (decision.node, decision.claims) == ("n2", ())
    none = both(mounting("p", "c"), claim(bound="v"), volume(zone="z"))
    assert none.message == "0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity."


@pytest.mark.parametrize(
    ("storage", "why"),
    [
        ((), 'persistentvolumeclaim "c" not found'),
        ((claim(phase="Lost", bound="v"),), 'persistentvolumeclaim "c" bound to non-existent persistentvolume "v"'),
        ((claim(class_="now"), class_("now", "Immediate")), "pod has unbound immediate PersistentVolumeClaims"),
        ((claim(class_="none"),), "pod has unbound immediate PersistentVolumeClaims"),
        ((claim(bound="gone"),), "2 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"),
        (
            (claim(), class_(provisioner="kubernetes.io/no-provisioner")),
            "2 node(s) didn't find available persistent volumes to bind",
        ),
    ],
)
def test_why_not(storage, why):
    assert both(mounting("p", "c"), *storage).message == f"0/2 nodes are available: {why}."


def test_a_claim_that_waits_is_told_the_node():
    decision = both(mounting("p", "c"), claim(), class_())
    assert (decision.node, decision.claims) == ("n1", ("c",))
    told = claim(notes={"volume.kubernetes.io/selected-node": "n2"})
    assert both(mounting("p", "c"), told, class_()).node == "n2"
    term = {"matchLabelExpressions": [{"key": "zone", "values": ["b"]}]}
    assert both(mounting("p", "c"), claim(), class_(allowedTopologies=[term])).node == "n2"


def test_volumes_that_are_there_count_once():
    local = class_(provisioner="kubernetes.io/no-provisioner")
    assert both(mounting("p", "c"), claim(), local, volume(zone="b")).node == "n2"
    two = (claim("c"), claim("d"))
    assert both(mounting("p", "c", "d"), *two, local, volume(zone="b")).node is None
    assert both(mounting("p", "c", "d"), *two, local, volume("v", "b"), volume("w", "b")).node == "n2"
    assert both(mounting("p", "c"), claim(), local, volume(zone="b", ref="other")).node is None
    assert both(mounting("p", "c"), claim(size="2Gi"), local, volume(zone="b")).node is None


def test_one_pod_at_a_time_and_zones():
    alone = claim(bound="v", modes=("ReadWriteOncePod",))
    first = mounting("first", "c", nodeName="n1")
    assert both(mounting("p", "c"), alone, volume()).node == "n1"
    refused = both(mounting("p", "c"), alone, volume(), pods=[first])
    assert "ReadWriteOncePod access mode already in-use by another pod" in refused.message
    zoned = volume(labels={"topology.kubernetes.io/zone": "a"})
    assert both(mounting("p", "c"), claim(bound="v"), zoned).node == "n1"  # nodes without zones are not asked


storages = st.tuples(
    st.builds(claim, bound=st.sampled_from(("", "v", "w")), class_=st.sampled_from(("late", "now"))),
    st.builds(volume, zone=st.sampled_from(("", "a", "b", "z")), size=st.sampled_from(("1Gi", "1Mi"))),
    st.builds(class_, provisioner=st.sampled_from(("x.io/p", "kubernetes.io/no-provisioner"))),
)


@given(storages, st.sampled_from(("100m", "5")))
def test_both_schedulers_agree(storage, cpu):
    wanted = mounting("p", "c")
    wanted["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    both(wanted, *storage)
