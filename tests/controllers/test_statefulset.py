"""StatefulSet: order, names, claims, revisions; and small worlds explored to the end."""

import pytest

from steersman.api.names import safe_encode
from steersman.controllers import claims, history
from steersman.controllers.garbage import GarbageCollector
from steersman.controllers.statefulset import StatefulSet
from steersman.kernel.object import Key
from steersman.nodes.kubelet import VirtualKubelet
from tests.controllers.worlds import LABELS, client, explore, make, objects, one, ready_pods, settle, template, user

RUN = [StatefulSet, VirtualKubelet]
WEB = Key("apps", "StatefulSet", "default", "web")
DATA = {
    "metadata": {"name": "data", "labels": {"tier": "disk"}},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def stateful(replicas=2, image="nginx:1", node="node-1", **spec):
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "serviceName": "web",
            "selector": {"matchLabels": LABELS},
            "template": template(image, node),
            **spec,
        },
    }


def names(w, kind="Pod"):
    return [each.metadata.name for each in objects(w, kind)]


def images(w):
    return [pod.spec.containers[0].image for pod in objects(w, "Pod")]


def change(w, image):
    client(w).patch(WEB, {"spec": {"template": template(image)}})


def test_pods_come_up_in_order_with_identity_and_the_status_counts_them():
    w = settle(make(RUN, [stateful(2)]))
    first = objects(w, "Pod")[0]
    status = dict(one(w, "StatefulSet").status)
    revision = status["updateRevision"]
    assert names(w) == ["web-0", "web-1"] and names(w, "ControllerRevision") == [revision]
    assert dict(first.metadata.labels) == {
        "app": "web",
        "statefulset.kubernetes.io/pod-name": "web-0",
        "apps.kubernetes.io/pod-index": "0",
        "controller-revision-hash": revision,
    }
    assert (first.spec.hostname, first.spec.subdomain) == ("web-0", "web")
    assert status == {
        "observedGeneration": 1,
        "replicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "currentReplicas": 2,
        "updatedReplicas": 2,
        "currentRevision": revision,
        "updateRevision": revision,
        "collisionCount": 0,
    }
    assert not w.memory, "at rest nothing is remembered"


def test_in_order_a_pod_waits_for_the_one_before_it():
    w = settle(make([StatefulSet], [stateful(3)]))
    assert names(w) == ["web-0"] and one(w, "StatefulSet").status.replicas == 1
    w = settle(make([StatefulSet], [stateful(3, podManagementPolicy="Parallel")]))
    assert names(w) == ["web-0", "web-1", "web-2"]


def test_ordinals_may_start_anywhere():
    w = settle(make(RUN, [stateful(2, ordinals={"start": 5})]))
    assert names(w) == ["web-5", "web-6"]
    client(w).patch(WEB, {"spec": {"ordinals": {"start": 6}}})
    settle(w)
    assert names(w) == ["web-6", "web-7"]


def test_scaling_down_takes_the_last_first_and_waits_for_each():
    w = settle(make(RUN, [stateful(3)]))
    c = client(w)
    hold = Key("", "Pod", "default", "web-2")
    c.patch(hold, {"metadata": {"finalizers": ["example.com/hold"]}})
    c.patch(WEB, {"spec": {"replicas": 1}})
    settle(w)
    assert names(w) == ["web-0", "web-1", "web-2"]
    assert [pod.metadata.name for pod in objects(w, "Pod") if "deletionTimestamp" in pod.metadata] == ["web-2"]
    c.patch(hold, {"metadata": {"finalizers": None}})
    settle(w)
    assert names(w) == ["web-0"]


def test_a_rolling_update_goes_from_the_last_to_the_first_and_moves_the_current_revision():
    w = settle(make(RUN, [stateful(2)]))
    before = one(w, "StatefulSet").status.currentRevision
    change(w, "nginx:2")
    settle(w)
    status = one(w, "StatefulSet").status
    assert images(w) == ["nginx:2", "nginx:2"]
    assert status.currentRevision == status.updateRevision != before
    assert [each.revision for each in history.ordered(objects(w, "ControllerRevision"))] == [1, 2]


def test_a_partition_holds_the_pods_before_it_and_new_ones_there_are_of_the_current_revision():
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    w = settle(make(RUN, [stateful(2, updateStrategy=rolling)]))
    change(w, "nginx:2")
    settle(w)
    assert images(w) == ["nginx:1", "nginx:2"]
    status = one(w, "StatefulSet").status
    assert (status.currentReplicas, status.updatedReplicas) == (1, 1)
    assert status.currentRevision != status.updateRevision
    client(w).delete(Key("", "Pod", "default", "web-0"))
    settle(w)
    assert images(w) == ["nginx:1", "nginx:2"]


def test_on_delete_waits_for_a_person():
    w = settle(make(RUN, [stateful(2, updateStrategy={"type": "OnDelete"})]))
    change(w, "nginx:2")
    settle(w)
    assert images(w) == ["nginx:1", "nginx:1"]
    client(w).delete(Key("", "Pod", "default", "web-1"))
    settle(w)
    assert images(w) == ["nginx:1", "nginx:2"]


def test_going_back_renumbers_the_old_revision_and_the_history_is_limited():
    w = settle(make(RUN, [stateful(1, revisionHistoryLimit=1)]))
    first = one(w, "StatefulSet").status.updateRevision
    change(w, "nginx:2")
    settle(w)
    change(w, "nginx:1")
    settle(w)
    assert one(w, "StatefulSet").status.updateRevision == first and images(w) == ["nginx:1"]
    assert one(w, "ControllerRevision", first).revision == 3
    change(w, "nginx:3")
    settle(w)
    assert [each.revision for each in history.ordered(objects(w, "ControllerRevision"))] == [3, 4]


def test_the_hash_of_a_revision_is_the_one_of_kubernetes():
    """FNV-1 of 32 bits, which Go's hash/fnv calls New32, of JSON as Go writes it; in the safe alphabet."""
    assert history.fnv_hash({}, 0) == safe_encode(str(fnv1(b"{}0")))
    assert history.fnv_hash({"b": 1, "a": "<&>"}, 7) == safe_encode(str(fnv1(rb'{"a":"\u003c\u0026\u003e","b":1}7')))
    assert fnv1(b'{"spec":{"template":{"$patch":"replace"}}}0') == 1_459_418_616  # as Go computes it


def fnv1(text):
    number = 2_166_136_261
    for byte in text:
        number = number * 16_777_619 % 2**32 ^ byte
    return number


def test_a_revision_of_the_same_name_counts_a_collision():
    w = make(RUN, [stateful(1)])
    name = history.named(stateful(1), history.fnv_hash(history.data_of(one(w, "StatefulSet")), 0))
    meta = {"name": name, "namespace": "default"}
    client(w).create(
        {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": meta, "revision": 1, "data": {}}
    )
    settle(w)
    status = one(w, "StatefulSet").status
    assert status.collisionCount == 1 and status.updateRevision != name and ready_pods(w) == 1


def test_min_ready_seconds_hold_the_next_pod_back():
    w = settle(make(RUN, [stateful(2, minReadySeconds=30)]))
    status = one(w, "StatefulSet").status
    assert names(w) == ["web-0"] and (status.readyReplicas, status.availableReplicas) == (1, 0)
    settle(w, timers=True)
    assert names(w) == ["web-0", "web-1"] and one(w, "StatefulSet").status.availableReplicas == 2


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_pod_that_ended_is_made_anew(phase):
    w = settle(make(RUN, [stateful(1)]))
    before = objects(w, "Pod")[0]
    client(w).update_status({**before, "status": {**before.status, "phase": phase}})
    settle(w)
    after = objects(w, "Pod")[0]
    assert ready_pods(w) == 1 and after.metadata.uid != before.metadata.uid


def test_an_orphan_of_its_name_is_adopted_and_another_is_not():
    w = settle(make(RUN, [stateful(2)]))
    c = client(w)
    c.delete(WEB)  # nobody collects: the pods are left
    for pod in objects(w, "Pod"):
        c.patch(pod, {"metadata": {"ownerReferences": None}})
    other = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "else", "namespace": "default", "labels": LABELS}}
    c.create({**other, "spec": template()["spec"]})
    uids = [pod.metadata.uid for pod in objects(w, "Pod")]
    c.create(stateful(2))
    settle(w)
    owners = {pod.metadata.name: bool(pod.metadata.get("ownerReferences")) for pod in objects(w, "Pod")}
    assert owners == {"else": False, "web-0": True, "web-1": True}
    assert [pod.metadata.uid for pod in objects(w, "Pod")] == uids


def test_claims_are_made_of_templates_and_mounted():
    w = settle(make(RUN, [stateful(1, volumeClaimTemplates=[DATA])]))
    claim = one(w, "PersistentVolumeClaim", "data-web-0")
    assert dict(claim.metadata.labels) == {"tier": "disk", "app": "web"} and not claim.metadata.get("ownerReferences")
    assert claim.spec.resources.requests.storage == "1Gi"
    volume = one(w, "Pod", "web-0").spec.volumes[0]
    assert (volume.name, volume.persistentVolumeClaim.claimName) == ("data", "data-web-0")


@pytest.mark.parametrize(
    ("deleted", "scaled", "kept", "condemned"),
    [
        ("Retain", "Retain", [], []),
        ("Delete", "Retain", ["StatefulSet"], ["StatefulSet"]),
        ("Retain", "Delete", [], ["Pod"]),
        ("Delete", "Delete", ["StatefulSet"], ["Pod"]),
    ],
)
def test_claims_are_owned_as_the_retention_policy_says(deleted, scaled, kept, condemned):
    policy = {"whenDeleted": deleted, "whenScaled": scaled}
    w = settle(make(RUN, [stateful(2, volumeClaimTemplates=[DATA], persistentVolumeClaimRetentionPolicy=policy)]))
    c = client(w)
    last = one(w, "Pod", "web-1")
    c.patch(last, {"metadata": {"finalizers": ["example.com/hold"]}})
    c.patch(WEB, {"spec": {"replicas": 1}})
    settle(w)

    def owners(name):
        refs = one(w, "PersistentVolumeClaim", name).metadata.get("ownerReferences") or ()
        assert all(ref.controller for ref in refs)
        return [ref.kind for ref in refs]

    assert owners("data-web-0") == kept and owners("data-web-1") == condemned
    c.patch(WEB, {"spec": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"}}})
    settle(w)
    assert owners("data-web-0") == [] == owners("data-web-1")


def test_a_claim_that_a_pod_waits_for_is_made_again():
    """Kubernetes does it when something else happens to wake the StatefulSet."""
    w = settle(make([StatefulSet], [stateful(1, volumeClaimTemplates=[DATA])]))
    client(w).delete(one(w, "PersistentVolumeClaim", "data-web-0"))
    settle(w)
    assert names(w, "PersistentVolumeClaim") == ["data-web-0"]


def test_a_pod_waits_for_the_claim_of_its_predecessor_to_go():
    policy = {"whenDeleted": "Retain", "whenScaled": "Delete"}
    claims_ = {"volumeClaimTemplates": [DATA], "persistentVolumeClaimRetentionPolicy": policy}
    w = settle(make(RUN, [stateful(1, **claims_)]))
    c = client(w)
    c.patch(WEB, {"spec": {"replicas": 0}})
    settle(w)
    assert names(w) == [] and names(w, "PersistentVolumeClaim") == ["data-web-0"], "nobody collects it yet"
    c.patch(WEB, {"spec": {"replicas": 1}})
    settle(w)
    assert names(w) == []
    c.delete(one(w, "PersistentVolumeClaim", "data-web-0"))
    settle(w)
    assert names(w) == ["web-0"]


def test_a_claim_that_somebody_else_manages_is_left_to_them():
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": DATA["spec"]}
    owner = {"apiVersion": "v1", "kind": "Thing", "name": "x", "uid": "00000000-0000-4000-8000-000000000000"}
    claim["metadata"] = {
        "name": "data-web-0",
        "namespace": "default",
        "ownerReferences": [{**owner, "controller": True}],
    }
    policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    made = stateful(1, volumeClaimTemplates=[DATA], persistentVolumeClaimRetentionPolicy=policy)
    w = settle(make(RUN, [claim, made]))
    refs = one(w, "PersistentVolumeClaim", "data-web-0").metadata.ownerReferences
    assert [ref.kind for ref in refs] == ["Thing"] and ready_pods(w) == 1


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("web-0", ("web", 0)),
        ("a-b-12", ("a-b", 12)),
        ("web", ("", -1)),
        ("web-x", ("", -1)),
        ("web-99999999999", ("", -1)),
    ],
)
def test_names_and_ordinals(name, parsed):
    assert claims.ordinal_of(name) == parsed


# -- every interleaving ------------------------------------------------------------------------------------------


def in_order(w):
    """A pod is there only when all before it are, and never two of a name (which the store sees to)."""
    there = names(w)
    return there == [f"web-{n}" for n in range(len(there))]


@pytest.mark.parametrize(("lag", "crashes"), [(0, 1), (1, 0)])
def test_every_interleaving_brings_two_pods_up_in_order(lag, crashes):
    found = explore(lambda: make(RUN, [stateful(2)], lag=lag, budgets=(crashes, 0), atomic=lag > 0), in_order)
    assert not found.findings and found.terminal
    assert {(ready_pods(w), one(w, "StatefulSet").status.availableReplicas) for w in found.terminal} == {(2, 2)}
    assert all(not w.memory for w in found.terminal)


def test_every_interleaving_of_a_new_template_and_a_scaling():
    users = [
        user("change", lambda c: c.patch(WEB, {"spec": {"template": template("nginx:2")}})),
        user("scale", lambda c: c.patch(WEB, {"spec": {"replicas": 1}})),
    ]
    found = explore(lambda: make(RUN, [stateful(2)], users, atomic=True), lambda w: len(names(w)) <= 2)
    assert not found.findings
    assert {tuple(images(w)) for w in found.terminal} == {("nginx:2",)}


def test_volumes_go_with_the_set_where_the_policy_says_so():
    policy = {"whenDeleted": "Delete", "whenScaled": "Retain"}
    made = stateful(1, volumeClaimTemplates=[DATA], persistentVolumeClaimRetentionPolicy=policy)
    w = settle(make([*RUN, GarbageCollector], [made]))
    client(w).delete(WEB)
    settle(w)
    assert {obj.key.kind for obj in w.store.objects()} == {"Namespace"}
