"""The node life-cycle controller: a node that fell silent becomes Unknown, and conditions become taints.

Whether a node is silent is judged by its Lease and by the heartbeat in its status, whichever is newer, and no earlier
than some time after it was seen first: whoever comes back after a while has not heard anything. Where the node's clock
is wrong, so that a new sign is older than one seen before, or is still to come, it counts from when it was seen. A node
that never held a Lease has no heartbeat, and is as healthy as its status says. NoSchedule taints follow the conditions
at once; the NoExecute taint that drives pods away is set zone by zone, not too fast, by `node_zones.py`, and taken away
here. Source of the facts: Kubernetes 1.36, pkg/controller/nodelifecycle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from steersman.api.access.nodes import LEASES
from steersman.api.client import Client, key_of
from steersman.api.controller import Controller, Find
from steersman.api.times import time_of
from steersman.controllers import pods
from steersman.controllers.conditions import find as condition_of
from steersman.controllers.node_zones import (
    EVICTING,
    EXCLUDED,
    SPARED,
    ZONES,
    is_evicting,
    is_node_ready,
    readiness,
    throttle,
    zone_of,
)
from steersman.kernel.effect import Event
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
SOURCE: Final = "node-controller"
LEASE: Final = ("coordination.k8s.io", "Lease")
GRACE: Final = 50
"""Seconds without a sign of life (--node-monitor-grace-period)."""
HEARD: Final = "heard"
"""In memory, with a node's name: its newest signs of life, and since when they, or any, are listened to."""
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
TAINTS: Final[Mapping[str, Mapping[str, str]]] = {
    "Ready": EVICTING,
    "MemoryPressure": {"True": "node.kubernetes.io/memory-pressure"},
    "DiskPressure": {"True": "node.kubernetes.io/disk-pressure"},
    "NetworkUnavailable": {"True": "node.kubernetes.io/network-unavailable"},
    "PIDPressure": {"True": "node.kubernetes.io/pid-pressure"},
}
"""Condition → its status → the taint that says so."""
OURS: Final = (UNSCHEDULABLE, *(taint for by_status in TAINTS.values() for taint in by_status.values()))
KUBELETS: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
"""The conditions a kubelet posts: all of them are unknown when it falls silent."""


LABELS: Final = {
    "kubernetes.io/arch": "beta.kubernetes.io/arch",
    "kubernetes.io/os": "beta.kubernetes.io/os",
}
"""A label of nodes → the older one that says the same."""


class NodeLifecycle(Controller):
    """Keeps conditions of silent nodes, and taints and labels of all."""

    name = "node-lifecycle-controller"
    kind = "v1/Node"
    watches: ClassVar[Mapping[str, Any]] = {"coordination.k8s.io/v1/Lease": lambda lease: ()}

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """A node wakes itself where its taints or labels are not as they should be, and the zones where they count one
        more or less that is ready; a new Lease wakes its node, which is looked after from then on."""
        if event.key.gk == LEASE:
            first = event.old is None and event.key.namespace == LEASES
            return (Key("", "Node", "", event.key.name),) if first else ()
        was = None if event.old is None else event.old.value
        node = None if event.new is None else event.new.value
        keys: list[Key] = []
        if node is not None and (_taints(node) is not None or _labels(node)):
            keys.append(event.key)
        if _face(was) != _face(node):
            keys += [ZONES] if node is None else [event.key, ZONES]
        return keys

    def reconcile(self, c: Client, key: Key) -> None:
        """Brings a node's conditions, labels and taints up to date, and the readiness of its pods after them; or the
        NoExecute taints of all zones."""
        if key == ZONES:
            throttle(c)
            return
        node = c.get(key)
        if node is None:
            if f"{HEARD} {key.name}" in c.memory:
                del c.memory[f"{HEARD} {key.name}"]
            return
        node = _judge(c, key, node)
        taints = _taints(node)
        if taints is not None:
            for taint in taints:
                if _is_ours(taint) and "timeAdded" not in taint:
                    taint["timeAdded"] = c.timestamp()
            patch = {"spec": {"taints": taints or None}}
            node = c.patch(key, patch, rv=node["metadata"]["resourceVersion"])
        labels = _labels(node)
        if labels:
            c.patch(key, {"metadata": {"labels": labels}})
        if readiness(node) == "Unknown":  # what a kubelet says itself, it tells its pods as well
            _pods_not_ready(c, key.name)


def _judge(c: Client, key: Key, node: Json) -> Json:
    """The node, with its conditions unknown if it has been silent for too long; else it is looked at again then."""
    lease = c.get(Key(*LEASE, LEASES, key.name))
    if lease is None:
        return node
    conditions = list((node.get("status") or EMPTY).get("conditions") or ())
    ready = condition_of(conditions, "Ready") or EMPTY
    signs = [(lease.get("spec") or EMPTY).get("renewTime"), ready.get("lastHeartbeatTime")]
    last = max([time for text in signs if (time := time_of(text)) is not None], default=None)
    if last is None:
        return node
    spared = time_of(c.memory.get(SPARED))
    if not c.after(max(_heard(c, key.name, signs, last), spared or 0), GRACE):
        return node
    now = c.timestamp()
    changed = False
    for type_ in KUBELETS:
        old = condition_of(conditions, type_)
        if old is not None and old["status"] == "Unknown":
            continue
        changed = True
        if old is None:
            said = {"reason": "NodeStatusNeverUpdated", "message": "Kubelet never posted node status."}
            beat = node["metadata"]["creationTimestamp"]
            conditions.append({"type": type_, "lastHeartbeatTime": beat, **_unknown(now, said)})
        else:
            said = {"reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
            conditions[conditions.index(old)] = {**old, **_unknown(now, said)}
    if not changed:
        return node
    body = {"status": {"conditions": conditions}}
    after: Json = c.patch(key, body, "status", rv=node["metadata"]["resourceVersion"])
    if is_node_ready(node):
        _tell(c, node)
    return after


def _heard(c: Client, name: str, signs: list[Any], last: int) -> int:
    """When a node gave its last sign of life: by its own clock, unless that cannot be right. Then it was when this
    sign was seen first, as it is for a node that has just been met."""
    place = f"{HEARD} {name}"
    known = c.memory.get(place)
    if known is None or (known["signs"] != signs and last <= (time_of(known["at"]) or 0)):
        known = c.memory[place] = {"at": c.timestamp(), "signs": signs}
    elif known["signs"] != signs:
        known = c.memory[place] = {"at": known["at"] if c.elapsed(last, 0) else c.timestamp(), "signs": signs}
    at = time_of(known["at"]) or 0
    return last if last > at and c.elapsed(last, 0) else at


def _unknown(now: str, said: Mapping[str, str]) -> dict[str, str]:
    return {"status": "Unknown", "lastTransitionTime": now, **said}


def _tell(c: Client, node: Json) -> None:
    name = node["metadata"]["name"]
    c.event(node, "Normal", "NodeNotReady", f"Node {name} status is now: NodeNotReady", SOURCE)


def _face(node: Json | None) -> tuple[Any, ...] | None:
    """What of a node its zone is judged by."""
    if node is None:
        return None
    labels = node["metadata"].get("labels") or EMPTY
    return is_node_ready(node), zone_of(node), EXCLUDED in labels


def _labels(node: Json) -> dict[str, str]:
    """The labels that a node should have and has not."""
    have = node["metadata"].get("labels") or EMPTY
    return {old: have[new] for new, old in LABELS.items() if new in have and have.get(old) != have[new]}


def _taints(node: Json) -> list[dict[str, Any]] | None:
    """The taints a node should have; None when it has them. Those of others stay as they are. NoExecute is not begun
    here: a node that has one keeps it, in the words of its condition."""
    spec = node.get("spec") or EMPTY
    have = spec.get("taints") or ()
    wanted: dict[tuple[str, str], None] = {}
    evicts = any(is_evicting(each) for each in have)
    for each in (node.get("status") or EMPTY).get("conditions") or ():
        taint = TAINTS.get(each["type"], EMPTY).get(each["status"])
        if taint:
            wanted[taint, "NoSchedule"] = None
            if each["type"] == "Ready" and evicts:
                wanted[taint, "NoExecute"] = None
    if spec.get("unschedulable"):
        wanted[UNSCHEDULABLE, "NoSchedule"] = None
    mine = [(each["key"], each["effect"]) for each in have if _is_ours(each)]
    if sorted(mine) == sorted(wanted):
        return None
    kept = [dict(each) for each in have if not _is_ours(each) or (each["key"], each["effect"]) in wanted]
    return kept + [{"key": key, "effect": effect} for key, effect in wanted if (key, effect) not in mine]


def _is_ours(taint: Json) -> bool:
    """Whether a taint is one that follows from a condition: NoExecute only for readiness."""
    if taint["effect"] == "NoExecute":
        return is_evicting(taint)
    return taint["effect"] == "NoSchedule" and taint["key"] in OURS


def _pods_not_ready(c: Client, node: str) -> None:
    """The pods of a node that is not ready are not, either."""
    for pod in c.list("v1/Pod", node=node):
        if pods.ready_since(pod) is None:
            continue
        conditions = [
            {**each, "status": "False", "lastTransitionTime": c.timestamp()} if each["type"] == "Ready" else each
            for each in pod["status"]["conditions"]
        ]
        body = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": {"conditions": conditions}}
        c.patch(key_of(pod), body, "status", rv=pod["metadata"]["resourceVersion"])
        c.event(pod, "Warning", "NodeNotReady", "Node is not ready", SOURCE)
