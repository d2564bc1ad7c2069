"""Taint eviction: pods that do not tolerate a NoExecute taint of their node are deleted, at once or in a while.

Source of the facts: Kubernetes 1.36, pkg/controller/tainteviction, component-helpers scheduling/corev1 (tolerations).
As there, the time a toleration gives counts from when the taint was first seen on the pod's node, by this process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from steersman.api.client import Client
from steersman.api.controller import Controller, Find
from steersman.controllers import owned, pods
from steersman.kernel.effect import Event
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
NODE: Final = ("", "Node")
REASON: Final = "TaintManagerEviction"
SOURCE: Final = "taint-eviction-controller"
MESSAGE: Final = "Taint manager: deleting due to NoExecute taint"


class TaintEviction(Controller):
    """Deletes pods from tainted nodes."""

    name = "taint-eviction-controller"
    kind = "v1/Pod"
    watches: ClassVar[Mapping[str, Any]] = {"v1/Node": lambda node: ()}

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """A node whose NoExecute taints changed wakes its pods; a pod that came to such a node itself."""
        old, new = event.old, event.new
        if event.key.gk == NODE:
            before = () if old is None else _taints(old.value)
            after = () if new is None else _taints(new.value)
            return [pod.key for pod in find("node", event.key.name)] if before != after else ()
        if new is None or not new.node or (old is not None and old.node == new.node and old.spec is new.spec):
            return ()
        node = next(iter(find("nodes", new.node)), None)
        return (event.key,) if node is not None and _taints(node.value) else ()

    def reconcile(self, c: Client, key: Key) -> None:
        """Deletes the pod if its time on that node is over."""
        place = f"{key.namespace}/{key.name}"
        pod = c.get(key)
        if pod is None or owned.is_terminating(pod) or not pod["spec"].get("nodeName"):
            c.memory.pop(place, None)
            return
        node = c.get(Key("", "Node", "", pod["spec"]["nodeName"]))
        seconds = _tolerated(() if node is None else _taints(node), pod["spec"].get("tolerations") or ())
        known = c.memory.get(place)
        if seconds is None:
            if known is not None:
                del c.memory[place]
                c.event(pod, "Normal", REASON, f"Cancelling deletion of Pod {place}", SOURCE)
            return
        if seconds > 0:
            if known is None or known["uid"] != pod["metadata"]["uid"]:
                known = c.memory[place] = {"uid": pod["metadata"]["uid"], "since": c.timestamp()}
            if not c.after(known["since"], seconds):
                return
        c.memory.pop(place, None)
        c.event(pod, "Normal", REASON, f"Marking for deletion Pod {place}", SOURCE)
        pods.disrupt(c, pod, "DeletionByTaintManager", MESSAGE)


def _taints(node: Json) -> tuple[Any, ...]:
    """The taints that drive pods away."""
    taints = (node.get("spec") or EMPTY).get("taints")
    return (
        tuple([(each["key"], each.get("value", "")) for each in taints if each["effect"] == "NoExecute"])
        if taints
        else ()
    )


def _tolerated(taints: tuple[Any, ...], tolerations: Iterable[Json]) -> int | None:
    """Seconds a pod may stay: 0 when one taint is not tolerated, None for ever."""
    given = list(tolerations)
    limits: list[int] = []
    for key, value in taints:
        found = [each for each in given if _tolerates(each, key, value)]
        if not found:
            return 0
        first = found[0]
        if first.get("tolerationSeconds") is not None:
            limits.append(max(0, first["tolerationSeconds"]))
    return min(limits) if limits else None


def _tolerates(toleration: Json, key: str, value: str) -> bool:
    if toleration.get("effect") not in (None, "", "NoExecute"):
        return False
    if toleration.get("key") not in (None, "", key):
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and (toleration.get("value") or "") == value
