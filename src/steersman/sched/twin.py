"""The scheduler as a plain controller, for check: the twin of `component.SchedulerComponent`.

Each pod is a reconcile of its own: nodes and pods are listed, `plain.plain_schedule` decides, and a binding or the
condition PodScheduled=False is written. What it has bound and its view does not show yet is remembered, as
kube-scheduler's cache assumes it (pkg/scheduler/backend/cache), so no room is given away twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from steersman.api.client import Client
from steersman.api.controller import Controller, Find
from steersman.api.references import claims_of
from steersman.kernel.effect import Event
from steersman.kernel.object import Key, Object
from steersman.kernel.value import EMPTY
from steersman.sched.plain import plain_schedule
from steersman.sched.pods import DEFAULT_SCHEDULER
from steersman.sched.volumes import CLAIM, KINDS, SELECTED_NODE, Storage

Json = Mapping[str, Any]
POD: Final = ("", "Pod")
WAITING: Final = Key("", "Node", "", "any")
"""The item that stands for every pod without a node: it is woken when there may be room."""


class Scheduler(Controller):
    """Binds pods to nodes, one at a time."""

    name = "scheduler"
    kind = "v1/Pod"
    watches: ClassVar[Mapping[str, Any]] = {
        "v1/Node": lambda node: (),
        "v1/PersistentVolumeClaim": lambda claim: (),
        "v1/PersistentVolume": lambda volume: (),
        "storage.k8s.io/v1/StorageClass": lambda class_: (),
    }

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """A pod without a node wakes itself, and once more when it got one; a node that changed, or a pod that leaves
        one, wakes all that wait."""
        old, new = event.old, event.new
        if event.key.gk in KINDS:
            return () if new is None else (WAITING,)
        if event.key.gk != POD:
            same = old is not None and new is not None and old.meta is new.meta and old.spec is new.spec
            return () if new is None or (same and _offers(old) == _offers(new)) else (WAITING,)
        if new is not None and (not new.node or (old is not None and not old.node)):
            return (event.key,)
        left = old is not None and old.node and not _ended(old) and (new is None or _ended(new))
        return (WAITING,) if left else ()

    def reconcile(self, c: Client, key: Key) -> None:
        """Places the pod of `key`, or every pod that waits. Raises `Conflict` where a pod changed meanwhile."""
        if key != WAITING:
            pod = c.get(key)
            if pod is not None and _waits(pod):
                _place(c, pod, c.list("v1/Pod"))
            else:
                _confirm(c, key)
            return
        pods = c.list("v1/Pod")
        for pod in [pod for pod in pods if _waits(pod)]:
            _place(c, pod, pods)


def _offers(node: Object | None) -> Any:
    return None if node is None else (node.status_value or EMPTY).get("allocatable")


def _ended(pod: Object) -> bool:
    return (pod.status_value or EMPTY).get("phase") in ("Succeeded", "Failed")


def _waits(pod: Json) -> bool:
    spec = pod["spec"]
    mine = spec.get("schedulerName", DEFAULT_SCHEDULER) == DEFAULT_SCHEDULER
    return mine and not (spec.get("nodeName") or spec.get("schedulingGates") or "deletionTimestamp" in pod["metadata"])


def _place(c: Client, pod: Json, pods: list[Any]) -> None:
    """Decides on one pod. An unreadable quantity, of the pod or of a node, leaves it where it is."""
    meta = pod["metadata"]
    assumed = _assumed(c, pods)
    if meta["uid"] in assumed:
        return
    seen = [_on(each, assumed.get(each["metadata"]["uid"])) for each in pods]
    try:
        decision = plain_schedule(pod, c.list("v1/Node"), seen, storage=_storage(c, pod, seen))
    except ValueError:
        return
    if decision.node is None:
        _say_why(c, pod, decision.message)
        return
    if decision.claims:
        _tell(c, meta["namespace"], decision.claims, decision.node)
        return
    c.bind(pod, decision.node)
    c.memory[f"{meta['namespace']}/{meta['name']}"] = {"uid": meta["uid"], "node": decision.node}


def _storage(c: Client, pod: Json, pods: list[Any]) -> Storage | None:
    """Claims, volumes and classes, for a pod that mounts any."""
    if not claims_of(pod):
        return None
    claims = c.list("v1/PersistentVolumeClaim", pod["metadata"]["namespace"])
    return Storage.of(claims, c.list("v1/PersistentVolume"), c.list("storage.k8s.io/v1/StorageClass"), pods)


def _tell(c: Client, namespace: str, claims: tuple[str, ...], node: str) -> None:
    """Tells claims the node of their pod; the pod is placed once they are bound."""
    for name in claims:
        claim = c.get(Key(*CLAIM, namespace, name))
        notes = EMPTY if claim is None else claim["metadata"].get("annotations") or EMPTY
        if claim is not None and notes.get(SELECTED_NODE) != node:
            patch = {"metadata": {"annotations": {SELECTED_NODE: node}}}
            c.patch(claim, patch, rv=claim["metadata"]["resourceVersion"])


def _confirm(c: Client, key: Key) -> None:
    """A pod is seen to be bound, or is gone: there is nothing to assume about it any more."""
    place = f"{key.namespace}/{key.name}"
    if place in c.memory:
        del c.memory[place]


def _assumed(c: Client, pods: list[Any]) -> dict[str, str]:
    """Nodes by the uids of pods that were bound and are not yet seen to be; the rest is forgotten."""
    if not c.memory:
        return {}
    unbound = {pod["metadata"]["uid"] for pod in pods if not pod["spec"].get("nodeName")}
    for place in list(c.memory):
        if c.memory[place]["uid"] not in unbound:
            del c.memory[place]
    return {each["uid"]: each["node"] for each in c.memory.values()}


def _on(pod: Json, node: str | None) -> Json:
    return pod if node is None else {**pod, "spec": {**pod["spec"], "nodeName": node}}


def _say_why(c: Client, pod: Json, message: str) -> None:
    """PodScheduled=False, where that says something new."""
    conditions = list((pod.get("status") or EMPTY).get("conditions") or ())
    at = next((i for i, each in enumerate(conditions) if each["type"] == "PodScheduled"), len(conditions))
    old: Json = conditions[at] if at < len(conditions) else EMPTY
    says = {"status": "False", "reason": "Unschedulable", "message": message}
    if all(old.get(field) == value for field, value in says.items()):
        return
    since = old.get("lastTransitionTime") if old.get("status") == "False" else None
    new = {"type": "PodScheduled", **says, "lastTransitionTime": since or c.timestamp()}
    if "generation" in pod["metadata"]:
        new["observedGeneration"] = pod["metadata"]["generation"]
    conditions[at:] = [new, *conditions[at + 1 :]]
    c.patch_status(pod, {"conditions": conditions}, rv=pod["metadata"]["resourceVersion"])
