"""Claims and volumes as the scheduler weighs them: VolumeRestrictions, VolumeBinding and VolumeZone.

A claim that is bound ties its pod to the nodes that reach the volume. One of a class that binds at once must be bound
already. One that waits for its first consumer is given the pod's node (the annotation
volume.kubernetes.io/selected-node), and the pod is bound once the claim is. What differs from Kubernetes: a volume that
is there already is bound to such a claim by the binder, which is told the node, not by the scheduler; storage capacity
and the number of volumes on a node are not counted.

Source of the facts: Kubernetes 1.36, pkg/scheduler/framework/plugins (volumebinding, volumezone, volumerestrictions)
and component-helpers storage/volume.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from steersman.api import quantity
from steersman.api.references import claims_of
from steersman.api.select import LabelSelector
from steersman.kernel.value import EMPTY
from steersman.sched.affinity import NodeAffinity
from steersman.sched.nodes import Bools, Ints, NodeTable, PodKey, Rows

Json = Mapping[str, Any]
ClaimKey = tuple[str, str]
CLAIM: Final = ("", "PersistentVolumeClaim")
VOLUME: Final = ("", "PersistentVolume")
CLASS: Final = ("storage.k8s.io", "StorageClass")
KINDS: Final = (CLAIM, VOLUME, CLASS)
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
COMPLETED: Final = "pv.kubernetes.io/bind-completed"
CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
ONE_POD: Final = "ReadWriteOncePod"
ZONES: Final = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)
IN_USE: Final = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
NO_REACH: Final = "node(s) didn't match PersistentVolume's node affinity"
NO_MATCH: Final = "node(s) didn't find available persistent volumes to bind"
NO_VOLUME: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
NO_ZONE: Final = "node(s) had no available volume zone"
IMMEDIATE: Final = "pod has unbound immediate PersistentVolumeClaims"
PLUGINS: Final = ("VolumeBinding", "VolumeRestrictions", "VolumeZone")


def is_bound(claim: Json) -> bool:
    """Whether a claim has its volume for good."""
    return bool((claim.get("spec") or EMPTY).get("volumeName")) and COMPLETED in _notes(claim)


class Storage:
    """Claims, volumes and classes, as last seen, and which pods on nodes mount a claim."""

    __slots__ = ("claims", "classes", "users", "volumes")

    def __init__(self) -> None:
        self.claims: dict[ClaimKey, Json] = {}
        self.volumes: dict[str, Json] = {}
        self.classes: dict[str, Json] = {}
        self.users: dict[ClaimKey, dict[PodKey, None]] = {}

    @classmethod
    def of(
        cls, claims: Iterable[Json], volumes: Iterable[Json], classes: Iterable[Json], pods: Iterable[Json]
    ) -> Storage:
        """All there is. Pods without a node, and pods that ended, mount nothing."""
        new = cls()
        for gk, listed in ((CLAIM, claims), (VOLUME, volumes), (CLASS, classes)):
            for each in listed:
                meta = each["metadata"]
                new.seen(gk, meta.get("namespace", ""), meta["name"], each)
        for pod in pods:
            ended = (pod.get("status") or EMPTY).get("phase") in ("Succeeded", "Failed")
            if (pod.get("spec") or EMPTY).get("nodeName") and not ended:
                key = (pod["metadata"].get("namespace", ""), pod["metadata"]["name"])
                new.use(key, claims_of(pod))
        return new

    def copy(self) -> Storage:
        """An independent one with the same contents."""
        other = Storage()
        other.claims, other.volumes, other.classes = self.claims.copy(), self.volumes.copy(), self.classes.copy()
        other.users = {claim: pods.copy() for claim, pods in self.users.items()}
        return other

    def seen(self, gk: tuple[str, str], namespace: str, name: str, value: Json | None) -> None:
        """Takes in the newest version of an object of KINDS; None when it is gone."""
        where: dict[Any, Json] = self.claims if gk == CLAIM else self.volumes if gk == VOLUME else self.classes
        key: Any = (namespace, name) if gk == CLAIM else name
        if value is None:
            where.pop(key, None)
        else:
            where[key] = value

    def use(self, pod: PodKey, claims: Iterable[str]) -> None:
        """A pod that mounts these claims has a node."""
        for name in claims:
            self.users.setdefault((pod[0], name), {})[pod] = None

    def release(self, pod: PodKey, claims: Iterable[str]) -> None:
        """It has none any more."""
        for name in claims:
            users = self.users.get((pod[0], name))
            if users is not None:
                users.pop(pod, None)
                if not users:
                    del self.users[pod[0], name]

    def problem(self, pod: PodKey, names: Iterable[str]) -> str:
        """Why no node can take a pod with these claims, whatever the node; "" for none."""
        immediate = False
        for name in names:
            claim = self.claims.get((pod[0], name))
            if claim is None:
                return f'persistentvolumeclaim "{name}" not found'
            if (claim.get("status") or EMPTY).get("phase") == "Lost":
                volume = claim["spec"].get("volumeName", "")
                return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
            if "deletionTimestamp" in claim["metadata"]:
                return f'persistentvolumeclaim "{name}" is being deleted'
            if not is_bound(claim):
                immediate = immediate or bool(claim["spec"].get("volumeName")) or not self._waits(claim)
        return IMMEDIATE if immediate else ""

    def unbound(self, namespace: str, names: Iterable[str]) -> tuple[str, ...]:
        """Those of the claims that wait for their pod's node, or for what is made of it."""
        found = [(name, self.claims.get((namespace, name))) for name in names]
        return tuple([name for name, claim in found if claim is not None and not is_bound(claim)])

    def rejection(
        self, pod: PodKey, names: Iterable[str], node: str, labels: Mapping[str, str]
    ) -> tuple[str, list[str]]:
        """(the first plug-in that rejects a node, its reasons); ("", []) if none does."""
        claims = [self.claims[pod[0], name] for name in names]
        for claim in claims:
            if ONE_POD in (claim["spec"].get("accessModes") or ()):
                others = self.users.get((pod[0], claim["metadata"]["name"])) or {}
                if any(user != pod for user in others):
                    return "VolumeRestrictions", [IN_USE]
        reasons = self._binding(claims, node, labels)
        if reasons:
            return "VolumeBinding", reasons
        bound = [self.volumes[claim["spec"]["volumeName"]] for claim in claims if is_bound(claim)]
        if not all(_in_zone(volume, labels) for volume in bound):
            return "VolumeZone", [NO_ZONE]
        return "", []

    def _binding(self, claims: list[Json], node: str, labels: Mapping[str, str]) -> list[str]:
        reached = exists = matched = True
        taken: dict[str, None] = {}
        for claim in sorted(claims, key=lambda each: _bytes(_asked(each))):
            if is_bound(claim):
                volume = self.volumes.get(claim["spec"]["volumeName"])
                exists = exists and volume is not None
                reached = reached and (volume is None or _reaches(volume, node, labels))
            else:
                matched = matched and self._has_room(claim, node, labels, taken)
        words = ((reached, NO_REACH), (matched, NO_MATCH), (exists, NO_VOLUME))
        return [reason for passes, reason in words if not passes]

    def _has_room(self, claim: Json, node: str, labels: Mapping[str, str], taken: dict[str, None]) -> bool:
        """Whether a claim that waits can be bound on a node: to a volume there is, or to one that will be made."""
        chosen = _notes(claim).get(SELECTED_NODE)
        if chosen and chosen != node:
            return False
        name = class_of(claim)
        fitting = [
            volume
            for volume in self.volumes.values()
            if volume["metadata"]["name"] not in taken and _fits(claim, volume, name) and _reaches(volume, node, labels)
        ]
        if fitting:
            sizes = {each["metadata"]["name"]: _bytes(each["spec"]["capacity"]["storage"]) for each in fitting}
            taken[min(sizes, key=lambda each: (sizes[each], each))] = None
            return True
        class_ = self.classes.get(name) or EMPTY
        if class_.get("provisioner") in (None, "", NO_PROVISIONER):
            return False
        topologies = class_.get("allowedTopologies") or ()
        return not topologies or any(_in_topology(term, labels) for term in topologies)

    def _waits(self, claim: Json) -> bool:
        class_ = self.classes.get(class_of(claim)) or EMPTY
        return class_.get("volumeBindingMode") == "WaitForFirstConsumer"


class VolumeFilter:
    """The claims of one pod as a filter of `filters`; after all others, as kube-scheduler has these plug-ins."""

    static = False

    def __init__(self, storage: Storage, pod: PodKey, claims: tuple[str, ...], name: str) -> None:
        self.name = name
        self._storage, self._pod, self._claims = storage, pod, claims

    def passes(self, table: NodeTable, pod: Any, rows: Rows) -> Bools:
        """See `filters.Filter`."""
        listed = range(table.size) if isinstance(rows, slice) else rows.tolist()
        verdicts = [self._rejection(table, row)[0] != self.name for row in listed]
        return np.array(verdicts, np.bool_)

    def reasons(self, table: NodeTable, pod: Any, rejected: Ints) -> Counter[str]:
        """See `filters.Filter`."""
        counts: Counter[str] = Counter()
        for row in rejected.tolist():
            counts.update(self._rejection(table, row)[1])
        return counts

    def _rejection(self, table: NodeTable, row: int) -> tuple[str, list[str]]:
        return self._storage.rejection(self._pod, self._claims, table.names[row], table.labels[row])


def volume_filters(storage: Storage, pod: PodKey, claims: tuple[str, ...]) -> tuple[VolumeFilter, ...]:
    """The three plug-ins for one pod, in kube-scheduler's order."""
    return tuple(VolumeFilter(storage, pod, claims, n) for n in ("VolumeRestrictions", "VolumeBinding", "VolumeZone"))


def class_of(obj: Json) -> str:
    """The storage class of a claim or volume; "" for none."""
    return str(_notes(obj).get(CLASS_ANNOTATION) or obj["spec"].get("storageClassName") or "")


def _notes(obj: Json) -> Json:
    return obj["metadata"].get("annotations") or EMPTY


def _bytes(amount: Any) -> int:
    return quantity.value(amount)


def _asked(claim: Json) -> str:
    return str(((claim["spec"].get("resources") or EMPTY).get("requests") or EMPTY).get("storage", "0"))


def _reaches(volume: Json, node: str, labels: Mapping[str, str]) -> bool:
    required = (volume["spec"].get("nodeAffinity") or EMPTY).get("required")
    if required is None:
        return True
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return NodeAffinity.of({"affinity": affinity}).admits(labels, node)


def _fits(claim: Json, volume: Json, name: str) -> bool:
    """Whether a volume can be bound to a claim, on whatever node."""
    spec, wanted = volume["spec"], claim["spec"]
    meta, ref = claim["metadata"], spec.get("claimRef")
    if "deletionTimestamp" in volume["metadata"] or class_of(volume) != name:
        return False
    if (wanted.get("volumeMode") or "Filesystem") != (spec.get("volumeMode") or "Filesystem"):
        return False
    if not set(wanted.get("accessModes") or ()) <= set(spec.get("accessModes") or ()):
        return False
    if _bytes(spec["capacity"]["storage"]) < _bytes(_asked(claim)):
        return False
    if ref is not None:
        same = (ref.get("namespace"), ref.get("name")) == (meta["namespace"], meta["name"])
        return same and ref.get("uid") in (None, "", meta["uid"])
    if (volume.get("status") or EMPTY).get("phase") != "Available":
        return False
    selector = wanted.get("selector")
    return selector is None or LabelSelector.compile(selector).matches(volume["metadata"].get("labels"))


def _in_zone(volume: Json, labels: Mapping[str, str]) -> bool:
    wanted = {key: value for key, value in (volume["metadata"].get("labels") or EMPTY).items() if key in ZONES}
    if not wanted or not any(key in labels for key in ZONES):
        return True
    return all(labels.get(key) in str(value).split("__") for key, value in wanted.items())


def _in_topology(term: Json, labels: Mapping[str, str]) -> bool:
    needs = term.get("matchLabelExpressions") or ()
    return bool(needs) and all(labels.get(each["key"]) in (each.get("values") or ()) for each in needs)
