"""The kubelets of all virtual nodes as one Component, for simulate and run.

It holds the next edge of each pod on a virtual node, and a heap of when these are due: an event or an edge costs
O(log n), a node or pod at rest costs nothing. Signs of life are given by `heartbeats.Heartbeats`, where somebody
listens to them. The state
follows from the objects alone (the delays too: see `stages.due_time`), so one that took in every event equals one
that is built anew. `kubelet.VirtualKubelet` is its plain twin, with the same edges and statuses.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Any, Final, NamedTuple

from steersman.api.events import EVENT, Note, Recorder
from steersman.api.times import MICRO, time_text
from steersman.kernel.effect import Event, Refused, Request
from steersman.kernel.object import Key, Object
from steersman.kernel.store import Store
from steersman.kernel.value import Frozen
from steersman.nodes.node import is_ready, node_object, ready_status
from steersman.nodes.stages import AT_ONCE, Draw, Stages, due_time, seeded
from steersman.nodes.status import READY, REMOVE, after_edge, next_edge
from steersman.nodes.told import notes

__all__ = ["NodesState", "Plan", "VirtualNodes", "node_object"]
NODE: Final = ("", "Node")
POD: Final = ("", "Pod")
BATCH: Final = 256
"""Edges taken in one step: others get their turn between two steps."""
SLACK: Final = 1_024
"""Entries of the heap beyond twice the plans before those that were dropped are swept out of it."""
MANAGER: Final = "kubelet"


class Plan(NamedTuple):
    """The next edge of a pod (or of a node: READY), and when it is due (microseconds)."""

    due: int
    edge: str
    obj: Object


class NodesState:
    """What the virtual nodes know. `pods`: by node, bound pods by key. `heap`: (due, key) of every plan, and of some
    that were dropped since. `faults`: what was refused for good, by key. `notes`: what people are yet to be told; a
    state that is built anew has forgotten it."""

    __slots__ = ("faults", "heap", "nodes", "notes", "plans", "pods")

    def __init__(self) -> None:
        self.nodes: dict[str, None] = {}
        self.pods: dict[str, dict[Key, Object]] = {}
        self.plans: dict[Key, Plan] = {}
        self.heap: list[tuple[int, Key]] = []
        self.faults: dict[Key, str] = {}
        self.notes: list[Note] = []

    def copy(self) -> NodesState:
        """An independent state with the same contents."""
        other = NodesState()
        other.nodes = self.nodes.copy()
        other.pods = {node: pods.copy() for node, pods in self.pods.items()}
        other.plans = self.plans.copy()
        other.heap = self.heap.copy()
        other.faults = self.faults.copy()
        other.notes = self.notes.copy()
        return other

    def known(self) -> Any:
        """What it amounts to, whatever the way it came about: for comparison."""
        pods = {node: sorted((key, pod.rv) for key, pod in pods.items()) for node, pods in self.pods.items() if pods}
        plans = sorted((key, plan.due, plan.edge, plan.obj.rv) for key, plan in self.plans.items())
        return sorted(self.nodes), sorted(pods.items()), plans

    def plan(self, key: Key, plan: Plan | None) -> None:
        """Sets or drops what is next for an object."""
        old = self.plans.get(key)
        if plan is None:
            if old is not None:
                del self.plans[key]
            return
        self.plans[key] = plan
        if old is None or old.due != plan.due:
            heappush(self.heap, (plan.due, key))
            if len(self.heap) > 2 * len(self.plans) + SLACK:
                self.heap = [(each.due, at) for at, each in self.plans.items()]
                heapify(self.heap)

    def first(self) -> int | None:
        """When the first plan is due."""
        heap = self.heap
        while heap:
            due, key = heap[0]
            plan = self.plans.get(key)
            if plan is not None and plan.due == due:
                return due
            heappop(heap)
        return None


class VirtualNodes:
    """`kernel.component.Component` of the virtual nodes.

    seed, stages: the delays (or `draw`, in place of the seed). virtual: which Nodes are virtual; by default all are.
    persistent: states are never changed once given out (check); else one state is changed in place. events: tell by
    Events, too, what becomes of containers; they are for people, and no program waits for them. What of them was told
    is not part of the state, so a world that is searched has none.
    """

    name = "kubelet"

    def __init__(
        self,
        seed: int = 0,
        stages: Stages = Stages(),  # noqa: B008 (immutable)
        *,
        draw: Draw | None = None,
        virtual: Callable[[Object], bool] | None = None,
        persistent: bool = False,
        events: bool = False,
    ) -> None:
        if persistent and events:
            raise ValueError("VirtualNodes(persistent=True, events=True): a world that is searched tells no Events")
        self._recorder = Recorder() if events else None
        self.stages = stages
        self._draw = draw or seeded(seed)
        self._virtual = virtual
        self._persistent = persistent

    def start(self, store: Store) -> NodesState:
        """As after a restart: nodes and pods as they are."""
        state = NodesState()
        for gk in (NODE, POD):
            for obj in store.list(gk):
                self._seen(state, obj.key, None, obj)
        return state

    def on_event(self, state: NodesState, event: Event) -> NodesState:
        """A node or pod changed."""
        if (event.key.group, event.key.kind) not in (NODE, POD):
            return state
        state = self._own(state)
        self._seen(state, event.key, event.old, event.new)
        return state

    def advance(self, state: NodesState, now: int) -> tuple[NodesState, list[Request]]:
        """Takes the edges that are due, in the order of their times and keys: one write each."""
        state = self._own(state)
        time = time_text(now // MICRO)
        requests: list[Request] = []
        while len(requests) < BATCH:
            due = state.first()
            if due is None or due > now:
                break
            key = heappop(state.heap)[1]
            requests.append(_request(key, state.plans.pop(key), time))
        if self._recorder is not None and state.notes:
            said = [self._recorder.request(note, now) for note in state.notes[:BATCH]]
            del state.notes[:BATCH]
            requests += [request for request in said if request is not None]
        return state, requests

    def on_refused(self, state: NodesState, request: Request, refusal: Refused) -> NodesState:
        """An object that changed or went meanwhile comes, or came, as an event. Anything else would be refused again
        and again: it is noted, and the edge left out until the object changes."""
        if refusal.reason in ("Conflict", "NotFound") or request.key.gk == EVENT:
            return state
        state = self._own(state)
        state.faults[request.key] = str(refusal)
        return state

    def next_deadline(self, state: NodesState) -> int | None:
        """When the next edge is due; 0 for at once."""
        return AT_ONCE if state.notes else state.first()

    def _own(self, state: NodesState) -> NodesState:
        return state.copy() if self._persistent else state

    # -- what is seen --------------------------------------------------------------------------------------------

    def _seen(self, state: NodesState, key: Key, old: Object | None, new: Object | None) -> None:
        state.faults.pop(key, None)
        if key.kind == "Node":
            self._node_seen(state, key, new)
        else:
            self._pod_seen(state, key, old, new)

    def _node_seen(self, state: NodesState, key: Key, node: Object | None) -> None:
        if node is not None and self._virtual is not None and not self._virtual(node):
            node = None
        ready = node is None or is_ready(node.value)
        state.plan(key, None if node is None or ready else Plan(AT_ONCE, READY, node))
        if (node is not None) == (key.name in state.nodes):
            return
        if node is None:
            del state.nodes[key.name]
        else:
            state.nodes[key.name] = None
        for at, pod in state.pods.get(key.name, {}).items():
            state.plan(at, None if node is None else self._next(pod))

    def _pod_seen(self, state: NodesState, key: Key, old: Object | None, new: Object | None) -> None:
        before = None if old is None else old.node
        after = None if new is None else new.node
        if before and before != after and before in state.pods:
            state.pods[before].pop(key, None)
            if not state.pods[before]:
                del state.pods[before]
        if new is None or not after:
            state.plan(key, None)
            return
        state.pods.setdefault(after, {})[key] = new
        here = after in state.nodes
        state.plan(key, self._next(new) if here else None)
        if here and self._recorder is not None and old is not None:
            state.notes += notes(old, new, self.stages, self._draw)

    def _next(self, pod: Object) -> Plan | None:
        edge = next_edge(pod.value)
        return Plan(due_time(pod, edge, self.stages, self._draw), edge, pod) if edge else None


def _request(key: Key, plan: Plan, time: str) -> Request:
    obj = plan.obj
    if plan.edge == REMOVE:
        return Request("delete", key, None, manager=MANAGER, options=Frozen(uid=obj.uid, grace=0))
    value = obj.value
    status = ready_status(value, time) if plan.edge == READY else after_edge(value, plan.edge, time)
    body = Frozen({"metadata": obj.meta.value, "status": status})  # what is left out there would be taken away
    return Request("update", key, body, "status", manager=MANAGER, options=Frozen(rv=str(obj.rv)))
