"""The kubelets of virtual nodes as one plain controller: the twin of `component.VirtualNodes` for check.

Each edge of a pod's life is a reconcile of its own, with one write, so that a search may put anything between two of
them. Delays do not count there: time is asynchronous, and any edge may come at any time. Only a stated lifetime is
waited for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from steersman.api.client import Client
from steersman.api.controller import Controller, Find
from steersman.kernel.effect import Event
from steersman.kernel.object import Key
from steersman.nodes.node import is_ready, ready_status
from steersman.nodes.status import COMPLETE, REMOVE, after_edge, lifetime, next_edge, started_at

NODE: Final = ("", "Node")


class VirtualKubelet(Controller):
    """Runs every pod that is bound to a node, and makes every node ready."""

    name = "kubelet"
    kind = "v1/Pod"
    watches: ClassVar[Mapping[str, Any]] = {"v1/Node": lambda node: ()}

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """What has an edge before it wakes itself."""
        new = event.new
        if new is None:
            return ()
        if event.key.gk == NODE:
            return () if is_ready(new.value) else (event.key,)
        return (event.key,) if new.node and next_edge(new.value) else ()

    def reconcile(self, c: Client, key: Key) -> None:
        """Takes the next edge of a pod or node. Raises `Conflict` where what it saw is no longer the newest."""
        seen = c.get(key)
        if seen is None:
            return
        if key.gk == NODE:
            if not is_ready(seen):
                c.update_status({**seen, "status": ready_status(seen, c.timestamp())})
            return
        edge = next_edge(seen) if seen["spec"].get("nodeName") else ""
        if not edge:
            return
        if edge == REMOVE:
            c.delete(key, uid=seen["metadata"]["uid"], grace=0)
            return
        if edge == COMPLETE and (seconds := lifetime(seen)) and not c.after(started_at(seen), seconds):
            return
        c.update_status({**seen, "status": after_edge(seen, edge, c.timestamp())})
