"""What the node life-cycle controller tells of nodes that come and go.

Apart from that controller, for it needs to remember every node: only a cluster that runs has people to tell. Source of
the facts: Kubernetes 1.36, pkg/controller/nodelifecycle (classifyNodes) and util/node (RecordNodeEvent).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from steersman.api.client import Client
from steersman.api.controller import Controller, Find
from steersman.controllers.node_zones import ZONES
from steersman.controllers.nodehealth import SOURCE
from steersman.kernel.effect import Event
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY

KNOWN: Final = "nodes"
"""In memory: the uid of every node by its name."""


class NodeEvents(Controller):
    """Tells of nodes that joined or left."""

    name = "node-events"
    kind = "v1/Node"

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """One key for all nodes: which there are is read when it is reconciled."""
        same = event.old is not None and event.new is not None and event.old.uid == event.new.uid
        return () if same else (ZONES,)

    def reconcile(self, c: Client, key: Key) -> None:
        before = c.memory.get(KNOWN) or EMPTY
        after = {node["metadata"]["name"]: node["metadata"]["uid"] for node in c.list("v1/Node")}
        for name, uid in after.items():
            if before.get(name) is None:
                _tell(c, name, uid, "RegisteredNode", f"Registered Node {name} in Controller")
        for name, uid in before.items():
            if name not in after:
                _tell(c, name, uid, "RemovingNode", f"Removing Node {name} from Controller")
        if after != before:
            c.memory[KNOWN] = after


def _tell(c: Client, name: str, uid: Any, reason: str, text: str) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "uid": uid}}
    c.event(node, "Normal", reason, f"Node {name} event: {text}", SOURCE)
