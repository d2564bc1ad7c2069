"""Claims and volumes: who gets which, when they let go of each other, and that no order of events binds two to one."""

import pytest

from steersman.controllers.protection import AttributesProtection, ClaimProtection, VolumeProtection
from steersman.controllers.volumes import VIRTUAL, VolumeBinder
from steersman.kernel.object import Key
from steersman.nodes.node import node_object
from tests.controllers.worlds import as_object, client, explore, make, objects, one, settle, template, user

ALL = (VolumeBinder, ClaimProtection, VolumeProtection, AttributesProtection)


def claim(name="c", size="1Gi", modes=("ReadWriteOnce",), **spec):
    spec = {"accessModes": list(modes), "resources": {"requests": {"storage": size}}, "storageClassName": "", **spec}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}


def volume(name="v", size="1Gi", modes=("ReadWriteOnce",), labels=None, **spec):
    spec = {"accessModes": list(modes), "capacity": {"storage": size}, "hostPath": {"path": "/x"}, **spec}
    meta = {"name": name, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": meta, "spec": spec}


def class_(name="fast", provisioner=VIRTUAL, **fields):
    meta = {"name": name, **fields.pop("metadata", {})}
    body = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": meta}
    return {**body, "provisioner": provisioner, **fields}


def pod(claimed="c", node="node-1"):
    body = as_object(template(node=node))
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claimed}}]
    meta = {**body["metadata"], "name": "p", "namespace": "default"}
    return {**body, "metadata": meta, "spec": {**body["spec"], "volumes": volumes}}


def world(*given, users=(), controllers=ALL, **options):
    return make(controllers, given, users, **options)


def pvc(w, name="c"):
    return one(w, "v1/PersistentVolumeClaim", name)


def pv(w, name="v"):
    return one(w, "v1/PersistentVolume", name)


def key(kind, name):
    return Key("", kind, "default" if kind.endswith("Claim") else "", name)


GETTING = 'error getting deleter volume plugin for volume "v"'
NEAR = {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}}
CLAIM, VOLUME = key("PersistentVolumeClaim", "c"), key("PersistentVolume", "v")


def test_a_claim_and_a_volume_find_each_other():
    w = settle(world(claim(), volume(size="2Gi")))
    bound, volume_ = pvc(w), pv(w)
    assert bound.status == {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"}}
    assert bound.spec.volumeName == "v" and bound.metadata.finalizers == ["kubernetes.io/pvc-protection"]
    notes = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
    assert bound.metadata.annotations == notes
    assert volume_.status.phase == "Bound" and volume_.spec.claimRef.uid == bound.metadata.uid
    assert volume_.metadata.annotations == {"pv.kubernetes.io/bound-by-controller": "yes"}


@pytest.mark.parametrize(
    ("asked", "offered"),
    [
        (claim(size="2Gi"), volume()),
        (claim(modes=("ReadWriteMany",)), volume()),
        (claim(storageClassName="slow"), volume()),
        (claim(), volume(storageClassName="slow")),
        (claim(volumeMode="Block"), volume()),
        (claim(selector={"matchLabels": {"a": "b"}}), volume(labels={"a": "c"})),
        (claim(), volume(claimRef={"namespace": "default", "name": "other"})),
        (claim(volumeName="elsewhere"), volume()),
    ],
)
def test_what_does_not_fit_is_not_bound(asked, offered):
    w = settle(world(asked, offered))
    assert pvc(w).status.phase == "Pending" and pv(w).status.phase == "Available"


def test_the_smallest_with_the_fewest_modes_is_taken_and_one_that_waits_for_it_before_all():
    many = volume("many", modes=("ReadWriteOnce", "ReadOnlyMany"))
    w = settle(world(claim(), many, volume("big", "9Gi"), volume("small", "2Gi")))
    assert pvc(w).spec.volumeName == "small"
    reserved = volume("mine", "9Gi", claimRef={"namespace": "default", "name": "c"})
    w = settle(world(claim(), volume("small"), reserved))
    assert pvc(w).spec.volumeName == "mine"
    assert "annotations" not in pv(w, "mine").metadata  # a person reserved it


def test_a_claim_may_name_its_volume():
    w = settle(world(claim(volumeName="v"), volume(), volume("a")))
    assert pvc(w).status.phase == "Bound" and pv(w, "a").status.phase == "Available"
    assert pvc(w).metadata.annotations == {"pv.kubernetes.io/bind-completed": "yes"}


def test_a_volume_that_comes_later_is_found():
    w = settle(world(claim()))
    client(w).create(volume())
    settle(w)
    assert pvc(w).status.phase == "Bound"


@pytest.mark.parametrize(("policy", "left"), [("Retain", "Released"), ("Delete", "Failed"), ("Recycle", "Failed")])
def test_a_volume_whose_claim_is_gone(policy, left):
    w = settle(world(claim(), volume(persistentVolumeReclaimPolicy=policy)))
    client(w).delete(CLAIM)
    settle(w)
    assert pvc(w) is None and pv(w).status.phase == left
    client(w).create(claim())
    settle(w)
    assert pvc(w).status.phase == "Pending"  # another incarnation


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ({"hostPath": {"path": "/x"}}, "host_path deleter only supports /tmp/.+ but received provided /x"),
        ({"hostPath": {"path": "/tmp/x"}}, None),
        ({"nfs": {"path": "/", "server": "s"}}, f"{GETTING}: no deletable volume plugin matched"),
        ({"local": {"path": "/x"}}, f"{GETTING}: no volume plugin matched"),
    ],
)
def test_who_deletes_a_volume_says_so(kind, message):
    body = volume(persistentVolumeReclaimPolicy="Delete")
    del body["spec"]["hostPath"]
    if "local" in kind:
        kind["nodeAffinity"] = NEAR
    w = settle(world(claim(), {**body, "spec": {**body["spec"], **kind}}))
    client(w).delete(CLAIM)
    settle(w)
    found = pv(w)
    assert (found is None and message is None) or (found.status.phase, found.status.message) == ("Failed", message)


def test_an_outside_provisioner_deletes_its_volumes_itself():
    body = volume(persistentVolumeReclaimPolicy="Delete")
    body["metadata"]["annotations"] = {"pv.kubernetes.io/provisioned-by": "example.com/disk"}
    w = settle(world(claim(), body))
    client(w).delete(CLAIM)
    assert pv(settle(w)).status.phase == "Released"


def test_a_claim_whose_volume_is_gone_is_lost():
    w = settle(world(claim(), volume()))
    client(w).delete(VOLUME)
    settle(w)
    assert pv(w).metadata.deletionTimestamp  # protected: it is bound
    client(w).patch(VOLUME, {"metadata": {"finalizers": None}})
    settle(w)
    assert pv(w) is None and pvc(w).status == {"phase": "Lost"}


def test_virtual_volumes_are_made_grow_and_go():
    w = settle(world(claim(storageClassName="fast"), class_(allowVolumeExpansion=True)))
    bound = pvc(w)
    assert bound.status.phase == "Bound" and bound.spec.volumeName == f"pvc-{bound.metadata.uid}"
    made = pv(w, bound.spec.volumeName)
    assert made.spec.csi.driver == VIRTUAL and made.spec.storageClassName == "fast"
    client(w).patch(CLAIM, {"spec": {"resources": {"requests": {"storage": "5Gi"}}}})
    settle(w)
    assert pvc(w).status.capacity.storage == "5Gi"
    client(w).delete(CLAIM)
    settle(w)
    assert objects(w, "v1/PersistentVolume") == [] and pvc(w) is None


def test_the_volumes_of_others_are_waited_for():
    w = settle(world(claim(storageClassName="fast"), class_(provisioner="ebs.csi.aws.com")))
    assert pvc(w).status.phase == "Pending"
    assert pvc(w).metadata.annotations["volume.kubernetes.io/storage-provisioner"] == "ebs.csi.aws.com"


def test_a_claim_without_a_class_gets_the_default_one_when_there_is_one():
    w = world(claim())
    c = client(w)
    free = claim("free")
    del free["spec"]["storageClassName"]
    c.create(free)
    settle(w)
    assert pvc(w, "free").status.phase == "Pending"
    c.create(class_(metadata={"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}))
    settle(w)
    assert pvc(w, "free").spec.storageClassName == "fast" and pvc(w, "free").status.phase == "Bound"
    assert pvc(w).status.phase == "Pending"  # it asked for none


@pytest.mark.parametrize("static", [False, True])
def test_the_first_consumer_is_waited_for(static):
    provisioner = "kubernetes.io/no-provisioner" if static else VIRTUAL
    zone = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-1"]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}}
    volumes = [volume(storageClassName="late", nodeAffinity=affinity)] if static else []
    late = class_("late", provisioner, volumeBindingMode="WaitForFirstConsumer")
    nodes = [node_object("node-1"), node_object("node-2")]
    w = settle(world(claim(storageClassName="late"), late, *volumes, *nodes))
    assert pvc(w).status.phase == "Pending"
    client(w).create(pod())
    settle(w)
    assert pvc(w).status.phase == "Bound"
    assert pvc(w).metadata.annotations["volume.kubernetes.io/selected-node"] == "node-1"


def test_a_claim_that_a_pod_uses_stays():
    w = settle(world(claim(), volume(), pod()))
    client(w).delete(CLAIM)
    settle(w)
    assert pvc(w).metadata.deletionTimestamp and pv(w).status.phase == "Bound"
    client(w).delete(Key("", "Pod", "default", "p"), grace=0)
    settle(w)
    assert pvc(w) is None and pv(w).status.phase == "Released"


def test_a_class_of_attributes_stays_while_it_is_named():
    meta = {"name": "gold"}
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttributesClass", "metadata": meta}
    kind |= {"driverName": "d.io", "parameters": {"iops": "5"}}
    w = settle(world(claim(volumeAttributesClassName="gold"), kind))
    gold = Key("storage.k8s.io", "VolumeAttributesClass", "", "gold")
    client(w).delete(gold)
    settle(w)
    assert client(w).get(gold)
    client(w).delete(CLAIM)
    settle(w)
    assert client(w).get(gold) is None


@pytest.mark.parametrize("lag", [0, 1])
def test_no_order_of_events_gives_one_volume_to_two_claims(lag):
    """Two claims, one volume, and a person who deletes the first: at the end one of them has it, or it is released."""
    users = [user("delete", lambda c: c.delete(CLAIM))]
    some = [VolumeBinder, ClaimProtection]

    def once(w):
        bound = [each for each in objects(w, "v1/PersistentVolumeClaim") if each.status.phase == "Bound"]
        return len(bound) <= 1

    def start():
        return world(claim(), claim("d"), volume(), users=users, controllers=some, lag=lag, atomic=True)

    found = explore(start, once, limit=50_000, skip=("fire",))
    assert found.states > 10 and not found.findings
    for w in found.terminal:
        mine = pv(w).spec.get("claimRef")
        holder = pvc(w, mine.name) if mine else None
        assert pv(w).status.phase == ("Bound" if holder else "Released"), (pv(w), holder)
        assert holder is None or holder.status.phase == "Bound"
