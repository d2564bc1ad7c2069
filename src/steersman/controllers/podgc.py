"""Pod garbage collection: pods that nobody else will end.

Those of nodes that are gone, those that were deleted before they had a node, those that cannot end on a node that is
out of service, and the oldest of very many ended ones. Source of the facts: Kubernetes 1.36, pkg/controller/podgc.
What differs: it acts on events rather than every 20 seconds, and counts ended pods at most every ten minutes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from steersman.api.client import Client, key_of
from steersman.api.controller import Controller, Find
from steersman.controllers import owned, pods
from steersman.controllers.node_zones import is_node_ready
from steersman.kernel.effect import Event
from steersman.kernel.object import Key, Object
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
NODE: Final = ("", "Node")
OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
QUARANTINE: Final = 40
"""Seconds a node has to be missing before its pods are lost."""
THRESHOLD: Final = 12_500
"""Ended pods that may lie about (kube-controller-manager's --terminated-pod-gc-threshold)."""
SWEEP_SECONDS: Final = 600
ENDED: Final = Key("", "Pod", "", "ended")
"""Stands for all ended pods: no pod is without a namespace."""


class PodGc(Controller):
    """Deletes pods by force."""

    name = "pod-garbage-collector"
    kind = "v1/Pod"
    watches: ClassVar[Mapping[str, Any]] = {"v1/Node": lambda node: ()}

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """A pod wakes itself or its node where it is one of these; a node that goes, or is out of service, itself."""
        old, new = event.old, event.new
        if event.key.gk == NODE:
            return (event.key,) if new is None or _out_of_service(new.value) else ()
        if new is None:
            return ()
        keys = [ENDED] if _has_ended(new) and (old is None or not _has_ended(old)) else []
        terminating = "deletionTimestamp" in new.meta.value
        if not new.node:
            return [*keys, event.key] if terminating else keys
        node = next(iter(find("nodes", new.node)), None)
        if node is None or (terminating and _out_of_service(node.value)):
            keys.append(Key("", "Node", "", new.node))  # an ended pod, too: somebody may have stopped half-way
        return keys

    def reconcile(self, c: Client, key: Key) -> None:
        """Ends what is to be ended of a pod, of a node's pods, or of all ended pods."""
        if key == ENDED:
            _sweep(c)
        elif key.gk == NODE:
            _of_node(c, key)
        else:
            pod = c.get(key)
            if pod is not None and owned.is_terminating(pod) and not pod["spec"].get("nodeName"):
                _end(c, pod)


def _has_ended(pod: Object) -> bool:
    return pod.status is not None and pod.status.peek().get("phase") in pods.ENDED


def _out_of_service(node: Json) -> bool:
    taints = (node.get("spec") or EMPTY).get("taints") or ()
    return any(each["key"] == OUT_OF_SERVICE for each in taints) and not is_node_ready(node)


def _of_node(c: Client, key: Key) -> None:
    node = c.get(key, fresh=True)
    if node is not None:
        c.memory.pop(key.name, None)
        if _out_of_service(node):
            for pod in c.list("v1/Pod", node=key.name):
                if owned.is_terminating(pod):
                    _end(c, pod)
        return
    lost = c.list("v1/Pod", node=key.name)
    if not lost:
        c.memory.pop(key.name, None)
        return
    if key.name not in c.memory:
        c.memory[key.name] = c.timestamp()
    if c.after(c.memory[key.name], QUARANTINE):
        for pod in lost:
            _end(c, pod, "PodGC: node no longer exists")
        del c.memory[key.name]


def _sweep(c: Client) -> None:
    """Deletes the oldest ended pods beyond the threshold, evicted ones first."""
    if "swept" in c.memory and not c.after(c.memory["swept"], SWEEP_SECONDS):
        return
    c.memory["swept"] = c.timestamp()
    ended = [pod for pod in c.list("v1/Pod") if pods.phase(pod) in pods.ENDED]
    if len(ended) > THRESHOLD:
        ended.sort(key=_age)
        for pod in ended[: len(ended) - THRESHOLD]:
            _end(c, pod)


def _age(pod: Json) -> tuple[bool, str, str]:
    status, meta = pod.get("status") or EMPTY, pod["metadata"]
    evicted = status.get("phase") == "Failed" and status.get("reason") == "Evicted"
    return not evicted, meta["creationTimestamp"], meta["name"]


def _end(c: Client, pod: Json, lost: str = "") -> None:
    """Marks a pod as failed, for nobody is there to say how it ended, and deletes it."""
    if pods.phase(pod) not in pods.ENDED:
        status: dict[str, Any] = {"phase": "Failed", "observedGeneration": pod["metadata"].get("generation", 0)}
        if lost:
            status["conditions"] = pods.with_condition(c, pod, "DisruptionTarget", "True", "DeletionByPodGC", lost)
        body = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
        c.patch(key_of(pod), body, "status", rv=pod["metadata"]["resourceVersion"])
    c.delete(key_of(pod), uid=pod["metadata"]["uid"], grace=0)
