"""ttl-controller: tells kubelets, by an annotation of their node, how long they may keep what they read.

The more nodes, the longer; between two sizes it stays as it is, so that one node more or less changes nothing. Source
of the facts: Kubernetes 1.36, pkg/controller/ttl.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from steersman.api.client import Client, key_of
from steersman.api.controller import Controller, Find
from steersman.kernel.effect import Event
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY

ANNOTATION: Final = "node.alpha.kubernetes.io/ttl"
COUNT: Final = Key("", "Node", "", "")
"""Stands for the number of nodes."""
STEP: Final = "step"
STEPS: Final = ((0, 100, 0), (90, 500, 15), (450, 1000, 30), (900, 2000, 60), (1800, 2**31 - 1, 300))
"""(fewest nodes, most nodes, seconds)."""


class NodeTtl(Controller):
    """Keeps the annotation of all nodes."""

    name = "ttl-controller"
    kind = "v1/Node"

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """A node that came or was written to wakes itself, but for its status; one that came or went, the count of all.
        What its annotation was before does not count: a watch may have missed that it was another in between."""
        old, new = event.old, event.new
        if old is None or new is None:
            return (COUNT,) if new is None else (event.key, COUNT)
        return () if old.meta is new.meta else (event.key,)

    def reconcile(self, c: Client, key: Key) -> None:
        """Sets the annotation of one node, or of all when their number says something else than before."""
        was = c.memory.get(STEP, 0)
        if key != COUNT:
            node = c.get(key)
            if node is not None:
                _tell(c, node, was)
            return
        nodes = c.list("v1/Node")
        step = was
        while len(nodes) > STEPS[step][1]:
            step += 1
        while len(nodes) < STEPS[step][0]:
            step -= 1
        if step != was:
            c.memory[STEP] = step
            for node in nodes:
                _tell(c, node, step)


def _tell(c: Client, node: Any, step: int) -> None:
    wanted = str(STEPS[step][2])
    if _said(node["metadata"]) != wanted:
        c.patch(key_of(node), {"metadata": {"annotations": {ANNOTATION: wanted}}})


def _said(meta: Any) -> Any:
    return (meta.get("annotations") or EMPTY).get(ANNOTATION)
