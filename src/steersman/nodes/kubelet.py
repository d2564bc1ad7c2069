"""The kubelets of virtual nodes as one plain controller: the twin of `component.VirtualNodes` for check.

Each edge of a pod's life is a reconcile of its own, with one write, so that a search may put anything between two of
them. Delays do not count there: time is asynchronous, and any edge may come at any time.
"""

from __future__ import annotations

from typing import Final

from steersman.api.client import Client
from steersman.api.controller import Controller
from steersman.kernel.object import Key
from steersman.nodes.status import COMPLETE, REMOVE, after_edge, lifetime, next_edge, started_at

POD: Final = "v1/Pod"


class VirtualKubelet(Controller):
    """Runs every pod that is bound to a node."""

    name = "kubelet"
    kind = POD

    def reconcile(self, c: Client, key: Key) -> None:
        """Takes the pod's next edge. Raises `Conflict` where the pod it saw is no longer the newest."""
        pod = c.get(key)
        if pod is None or not pod["spec"].get("nodeName"):
            return
        edge = next_edge(pod)
        meta = pod["metadata"]
        if not edge:
            return
        if edge == REMOVE:
            c.delete(key, uid=meta["uid"], grace=0)
            return
        if edge == COMPLETE and (seconds := lifetime(pod)) and not c.after(started_at(pod), seconds):
            return
        body = {**pod, "status": after_edge(pod, edge, c.timestamp())}
        c.update_status(body)
