"""The signs of life of all virtual nodes as one Component, for where somebody listens to them.

A kubelet renews its Lease in `kube-node-lease` every ten seconds, and posts its conditions every five minutes though
nothing in them changed. Who judges nodes by that (our node life-cycle controller, or a foreign kube-controller-manager)
finds virtual nodes alive as long as this process is. Without this component, in a simulation or a check, no node has a
Lease, nothing is written for nodes at rest, and nobody times one out.

When a sign is due follows from the Lease and the Node alone, so that the state can be built anew. Leases of others are
left alone: a node is ours where a virtual kubelet posted its nodeInfo, and a Lease where its owner is the node. Source
of the facts: the kubelet of Kubernetes 1.36 (pkg/kubelet/kubelet.go, kubelet_node_status.go, pkg/kubelet/util/
nodelease.go, k8s.io/component-helpers/apimachinery/lease).
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush
from typing import Any, Final

from steersman.api.access.nodes import LEASES
from steersman.api.times import MICRO, micro_text, time_of, time_text
from steersman.kernel.effect import Event, Refused, Request
from steersman.kernel.object import Key, Object
from steersman.kernel.store import Store
from steersman.kernel.value import EMPTY, Frozen
from steersman.nodes.node import CONDITIONS, is_virtual
from steersman.nodes.stages import AT_ONCE, Draw, seeded

NODE: Final = ("", "Node")
LEASE: Final = ("coordination.k8s.io", "Lease")
LASTS: Final = 40
"""Seconds a Lease is good for (nodeLeaseDurationSeconds)."""
RENEW: Final = 10 * MICRO
"""How often it is renewed: a quarter of that (nodeLeaseRenewIntervalFraction)."""
JITTER: Final = 0.04
"""The share of RENEW by which one node is later than another."""
REPORT: Final = 300 * MICRO
"""How often conditions are posted though none has changed (nodeStatusReportFrequency)."""
AGAIN: Final = 7 * MICRO
"""After how long a refused sign is tried again, as the kubelet's own longest pause between two tries is."""
BATCH: Final = 256
"""Signs given in one step: others get their turn between two steps."""
MANAGER: Final = "kubelet"
_OURS: Final = frozenset(type_ for type_, *_ in CONDITIONS)


class Signs:
    """The newest virtual Nodes and their Leases by name; when the next sign of a key is due; and the heap of those,
    with some that were put off since."""

    __slots__ = ("due", "heap", "leases", "nodes")

    def __init__(self) -> None:
        self.nodes: dict[str, Object] = {}
        self.leases: dict[str, Object] = {}
        self.due: dict[Key, int] = {}
        self.heap: list[tuple[int, Key]] = []

    def known(self) -> Any:
        """What it amounts to, whatever the way it came about: for comparison."""
        leases = sorted((name, lease.rv) for name, lease in self.leases.items())
        return sorted((name, node.rv) for name, node in self.nodes.items()), leases, sorted(self.due.items())

    def plan(self, key: Key, due: int | None) -> None:
        """Sets or drops when an object's next sign is due."""
        if due is None:
            self.due.pop(key, None)
        elif self.due.get(key) != due:
            self.due[key] = due
            heappush(self.heap, (due, key))

    def first(self) -> int | None:
        """When the first sign is due."""
        while self.heap:
            due, key = self.heap[0]
            if self.due.get(key) == due:
                return due
            heappop(self.heap)
        return None


class Heartbeats:
    """`kernel.component.Component` of the signs of life. seed: of the jitter, or a `draw` in its place. The state is
    changed in place."""

    name = "kubelet-heartbeats"

    def __init__(self, seed: int = 0, *, draw: Draw | None = None) -> None:
        self._draw = draw or seeded(seed)

    def start(self, store: Store) -> Signs:
        """As after a restart: nodes and Leases as they are."""
        state = Signs()
        for lease in store.list(LEASE, LEASES):
            self._lease_seen(state, lease.key.name, lease)
        for node in store.list(NODE):
            self._node_seen(state, node.key.name, node)
        return state

    def on_event(self, state: Signs, event: Event) -> Signs:
        """A Node or a Lease changed."""
        key = event.key
        if key.kind == "Lease" and key.namespace == LEASES and key.gk == LEASE:
            self._lease_seen(state, key.name, event.new)
        elif key.kind == "Node" and not key.group:
            self._node_seen(state, key.name, event.new)
        return state

    def advance(self, state: Signs, now: int) -> tuple[Signs, list[Request]]:
        """Gives the signs that are due, in the order of their times and keys."""
        requests: list[Request] = []
        while len(requests) < BATCH:
            due = state.first()
            if due is None or due > now:
                break
            key = heappop(state.heap)[1]
            state.plan(key, now + AGAIN)  # in case nothing comes of it; the event says better
            node = state.nodes[key.name]
            requests.append(_beat(node, now) if key.gk == NODE else _renewal(node, state.leases.get(key.name), now))
        return state, requests

    def on_refused(self, state: Signs, request: Request, refusal: Refused) -> Signs:
        """It is tried again after a while: a kubelet does not give up."""
        return state

    def next_deadline(self, state: Signs) -> int | None:
        """When the next sign is due; 0 for at once."""
        return state.first()

    def _node_seen(self, state: Signs, name: str, node: Object | None) -> None:
        key = Key(*NODE, "", name)
        if node is None or not is_virtual(node.value):
            if state.nodes.pop(name, None) is not None:
                state.plan(key, None)
                state.plan(_lease_key(name), None)
            return
        new = name not in state.nodes or state.nodes[name].uid != node.uid
        state.nodes[name] = node
        state.plan(key, _reported(node.value) + REPORT)
        if new:
            self._lease_planned(state, name)

    def _lease_seen(self, state: Signs, name: str, lease: Object | None) -> None:
        if lease is None:
            state.leases.pop(name, None)
        else:
            state.leases[name] = lease
        self._lease_planned(state, name)

    def _lease_planned(self, state: Signs, name: str) -> None:
        node, lease = state.nodes.get(name), state.leases.get(name)
        if node is None or (lease is not None and not _is_owned(lease.value, node.uid)):
            state.plan(_lease_key(name), None)
        elif lease is None:
            state.plan(_lease_key(name), AT_ONCE)
        else:
            late = JITTER * self._draw(node.uid, f"lease {lease.rv}")
            state.plan(
                _lease_key(name), _time((lease.value.get("spec") or EMPTY).get("renewTime")) + round(RENEW * (1 + late))
            )


def _lease_key(name: str) -> Key:
    return Key(*LEASE, LEASES, name)


def _is_owned(lease: Mapping[str, Any], uid: str) -> bool:
    return any(each.get("uid") == uid for each in lease["metadata"].get("ownerReferences") or ())


def _time(text: str | None) -> int:
    """Microseconds; the distant past where nothing that can be read is there."""
    return time_of(text) or 0


def _reported(node: Mapping[str, Any]) -> int:
    """When the node's conditions were posted last."""
    conditions = (node.get("status") or EMPTY).get("conditions") or ()
    return min([_time(each.get("lastHeartbeatTime")) for each in conditions if each["type"] in _OURS], default=0)


def _beat(node: Object, now: int) -> Request:
    """The conditions once more, with the time."""
    at = time_text(now // MICRO)
    conditions = [
        {**each, "lastHeartbeatTime": at} if each["type"] in _OURS else each
        for each in node.value["status"].get("conditions") or ()
    ]
    body = Frozen(metadata=Frozen(uid=node.uid), status=Frozen(conditions=conditions))
    return Request("patch", node.key, body, "status", manager=MANAGER, options=Frozen(patch="merge", rv=str(node.rv)))


def _renewal(node: Object, lease: Object | None, now: int) -> Request:
    """The node's first Lease, or its renewal."""
    name, at = node.key.name, micro_text(now)
    if lease is not None:
        body = Frozen(spec=Frozen(holderIdentity=name, leaseDurationSeconds=LASTS, renewTime=at))
        options = Frozen(patch="merge", rv=str(lease.rv))
        return Request("patch", lease.key, body, manager=MANAGER, options=options)
    owner = Frozen(apiVersion="v1", kind="Node", name=name, uid=node.uid)
    return Request(
        "create",
        _lease_key(name),
        Frozen(
            apiVersion="coordination.k8s.io/v1",
            kind="Lease",
            metadata=Frozen(name=name, namespace=LEASES, ownerReferences=[owner]),
            spec=Frozen(holderIdentity=name, leaseDurationSeconds=LASTS, renewTime=at),
        ),
        manager=MANAGER,
    )
