"""The scheduler as a Component: fed by events, it binds pods to nodes and writes down why it cannot.

`core.Scheduler` decides; this wires it to the world. A decision becomes what kube-scheduler sends: a Binding, or the
condition PodScheduled=False with the reason Unschedulable (pkg/scheduler/schedule_one.go, handleSchedulingFailure),
which is written only when it says something new, and, where it is wanted, an Event.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from steersman.api.events import EVENT
from steersman.api.times import time_text
from steersman.kernel.effect import MICRO, Event, Refused, Request
from steersman.kernel.identity import digest
from steersman.kernel.object import Key, Object
from steersman.kernel.store import Store
from steersman.kernel.value import Frozen, FrozenList
from steersman.sched.core import Decision, Scheduler
from steersman.sched.nodes import PodKey
from steersman.sched.notices import Notices
from steersman.sched.pods import DEFAULT_SCHEDULER
from steersman.sched.volumes import CLAIM, KINDS, SELECTED_NODE, is_bound

BATCH: Final = 256
"""Pods decided in one step: enough to make a step's own cost vanish, few enough that others get their turn."""
BIND_TIMEOUT: Final = 600 * MICRO
"""How long a pod that was given a node waits for its claims (kube-scheduler's bindTimeoutSeconds)."""
NODE: Final = ("", "Node")
POD: Final = ("", "Pod")


class Held(NamedTuple):
    """A pod with a node that waits for its claims to be bound. `since` in microseconds."""

    decision: Decision
    uid: str
    since: int

    @property
    def claims(self) -> tuple[str, ...]:
        return self.decision.claims


class SchedulerState:
    """What the scheduler knows. `waiting`: the pods without a node, as last seen. `notes`: how many pods were placed
    without regard to a constraint, by the scheduler's words for it. `faults`: objects it cannot read, and why.
    `notices`: its Events, if it tells any."""

    __slots__ = ("faults", "held", "notes", "notices", "now", "scheduler", "thrown", "waiting")

    def __init__(self, scheduler: Scheduler, notices: Notices | None = None) -> None:
        self.scheduler = scheduler
        self.notices = notices
        self.waiting: dict[PodKey, Object] = {}
        self.held: dict[PodKey, Held] = {}
        self.notes: dict[str, int] = {}
        self.faults: dict[Key, str] = {}
        self.thrown = 0
        self.now = 0

    def copy(self) -> SchedulerState:
        """An independent state with the same contents."""
        other = SchedulerState(self.scheduler.copy(), None if self.notices is None else self.notices.copy())
        other.waiting = self.waiting.copy()
        other.held = self.held.copy()
        other.notes = self.notes.copy()
        other.faults = self.faults.copy()
        other.thrown, other.now = self.thrown, self.now
        return other


class _Dice:
    """Breaks ties: the n-th throw of a seed is always the same. The count belongs to the state that throws."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.thrown = 0

    def throw(self, sides: int) -> int:
        self.thrown += 1
        return digest("tie", self.seed, self.thrown) % sides


class SchedulerComponent:
    """`kernel.component.Component` around `Scheduler`.

    seed: decides between nodes of equal score; None takes the first by name.
    persistent: states are never changed once given out (check); else one state is changed in place.
    scheduler_name, ignore_unsupported: as `Scheduler` has them.
    events: tell by Events, too, why pods find no node; they are for people, and no program waits for them.
    """

    name = "scheduler"

    def __init__(
        self,
        seed: int | None = None,
        *,
        persistent: bool = False,
        scheduler_name: str = DEFAULT_SCHEDULER,
        ignore_unsupported: bool = False,
        events: bool = False,
    ) -> None:
        self._dice = None if seed is None else _Dice(seed)
        self._persistent = persistent
        self._scheduler_name = scheduler_name
        self._ignore_unsupported = ignore_unsupported
        self._events = events

    def start(self, store: Store) -> SchedulerState:
        """As after a restart: nodes and pods as they are; back-offs are forgotten."""
        scheduler = Scheduler(
            None if self._dice is None else self._dice.throw,
            scheduler_name=self._scheduler_name,
            ignore_unsupported=self._ignore_unsupported,
        )
        state = SchedulerState(scheduler, Notices(self._scheduler_name) if self._events else None)
        for gk in (*KINDS, NODE, POD):
            for obj in store.list(gk):
                _seen(state, obj.key, obj)
        if state.notices is not None:
            for obj in store.list(POD):
                state.notices.pod_seen(None, obj)
            for obj in store.list(EVENT):
                state.notices.event_seen(None, obj)
        return state

    def on_event(self, state: SchedulerState, event: Event) -> SchedulerState:
        """A node, a pod or an event of its own changed."""
        gk = (event.key.group, event.key.kind)
        if gk not in (NODE, POD, *KINDS) and (gk != EVENT or state.notices is None):
            return state
        state = self._own(state)
        if state.notices is not None and gk == POD:
            state.notices.pod_seen(event.old, event.new)
        if state.notices is not None and gk == EVENT:
            state.notices.event_seen(event.old, event.new)
        else:
            _seen(state, event.key, event.new)
        return state

    def advance(self, state: SchedulerState, now: int) -> tuple[SchedulerState, list[Request]]:
        """Decides for pods whose turn it is: bindings, and conditions (and events) that say why not."""
        state = self._own(state)
        state.now = now
        if self._dice is not None:
            self._dice.thrown = state.thrown
        first = _held_on(state)
        decisions = state.scheduler.schedule(now, BATCH)
        if self._dice is not None:
            state.thrown = self._dice.thrown
        requests: list[Request | None] = [*first]
        for decision in decisions:
            requests += _hold(state, decision) if decision.claims else [_request(state, decision)]
        if state.notices is not None:
            failed = [decision for decision in decisions if decision.node is None]
            requests += [state.notices.failed(state.waiting[each.pod], each.message, now) for each in failed]
            requests += [*state.notices.scheduled(BATCH, now), *state.notices.swept(BATCH)]
        return state, [request for request in requests if request is not None]

    def on_refused(self, state: SchedulerState, request: Request, refusal: Refused) -> SchedulerState:
        """A binding failed: the room is given back, and the pod, if it is still there, tried again after a back-off."""
        if request.key.gk == CLAIM:
            state = self._own(state)
            for pod, held in list(state.held.items()):
                if pod[0] == request.key.namespace and request.key.name in held.claims:
                    _let_go(state, pod)
            return state
        if request.subresource != "binding":
            return state  # a condition or an event: it is written with the next attempt, if it still holds
        state = self._own(state)
        state.scheduler.forget((request.key.namespace, request.key.name), state.now)
        return state

    def next_deadline(self, state: SchedulerState) -> int | None:
        """When a pod is to be tried; 0 for at once."""
        if state.notices is not None and (state.notices.stale or state.notices.bound):
            return 0
        due = [0 if _is_settled(state, pod, held) else held.since + BIND_TIMEOUT for pod, held in state.held.items()]
        tried = state.scheduler.next_deadline()
        return min([*due, *([] if tried is None else [tried])], default=None)

    def _own(self, state: SchedulerState) -> SchedulerState:
        return state.copy() if self._persistent else state


def _seen(state: SchedulerState, key: Key, obj: Object | None) -> None:
    """Takes in the newest version of a node or pod; None when it is gone. What cannot be read is as good as gone."""
    try:
        if key.gk in KINDS:
            state.scheduler.storage_seen(key.gk, key.namespace, key.name, None if obj is None else obj.value)
        elif key.kind == "Node":
            if obj is None:
                state.scheduler.node_delete(key.name)
            else:
                state.scheduler.node_upsert(obj.value)
        else:
            _pod_seen(state, (key.namespace, key.name), obj)
        state.faults.pop(key, None)
    except ValueError as error:
        state.faults[key] = str(error)
        _seen(state, key, None)
        state.faults[key] = str(error)


def _pod_seen(state: SchedulerState, pod: PodKey, obj: Object | None) -> None:
    if obj is None or obj.node or (pod in state.held and state.held[pod].uid != obj.uid):
        state.held.pop(pod, None)
    if obj is None:
        state.waiting.pop(pod, None)
        state.scheduler.pod_delete(pod)
        return
    if obj.node:
        state.waiting.pop(pod, None)
    else:
        state.waiting[pod] = obj
    state.scheduler.pod_upsert(obj.value)


def _hold(state: SchedulerState, decision: Decision) -> list[Request | None]:
    """Tells the claims that wait the node of their pod, which is bound once they are."""
    namespace, _ = decision.pod
    assert decision.node is not None
    state.held[decision.pod] = Held(decision, state.waiting[decision.pod].uid, state.now)
    requests: list[Request | None] = []
    for name in decision.claims:
        claim = state.scheduler.storage.claims[namespace, name]
        meta = claim["metadata"]
        if (meta.get("annotations") or {}).get(SELECTED_NODE) == decision.node:
            continue
        body = Frozen(metadata=Frozen(annotations=Frozen({SELECTED_NODE: decision.node})))
        options = Frozen(patch="merge", rv=meta["resourceVersion"])
        requests.append(Request("patch", Key(*CLAIM, namespace, name), body, manager="kube-scheduler", options=options))
    return requests


def _held_on(state: SchedulerState) -> list[Request | None]:
    """Binds pods whose claims are bound; gives up those whose claims will not be."""
    requests: list[Request | None] = []
    for pod, held in list(state.held.items()):
        if _is_settled(state, pod, held):
            del state.held[pod]
            requests.append(_request(state, held.decision))
        elif state.now >= held.since + BIND_TIMEOUT:
            _let_go(state, pod)
    return requests


def _is_settled(state: SchedulerState, pod: PodKey, held: Held) -> bool:
    claims = [state.scheduler.storage.claims.get((pod[0], name)) for name in held.claims]
    return all(claim is not None and is_bound(claim) for claim in claims)


def _let_go(state: SchedulerState, pod: PodKey) -> None:
    del state.held[pod]
    state.scheduler.forget(pod, state.now)


def _request(state: SchedulerState, decision: Decision) -> Request | None:
    namespace, name = decision.pod
    key = Key("", "Pod", namespace, name)
    pod = state.waiting[decision.pod]
    if decision.node is None:
        return _unschedulable(key, pod, decision.message, state.now)
    if decision.message:
        state.notes[decision.message] = state.notes.get(decision.message, 0) + 1
    body = Frozen(target=Frozen(apiVersion="v1", kind="Node", name=decision.node))
    return Request("create", key, body, "binding", manager="kube-scheduler", options=Frozen(uid=pod.uid))


def _unschedulable(key: Key, pod: Object, message: str, now: int) -> Request | None:
    """The condition PodScheduled=False as a status patch; None when the pod says the same already."""
    status: Mapping[str, Any] = pod.status_value or {}
    conditions = list(status.get("conditions") or ())
    at = next((i for i, found in enumerate(conditions) if found.get("type") == "PodScheduled"), len(conditions))
    old: Mapping[str, Any] = conditions[at] if at < len(conditions) else {}
    says = ("False", "Unschedulable", message)
    if (old.get("status"), old.get("reason"), old.get("message")) == says:
        return None
    since = old.get("lastTransitionTime") if old.get("status") == "False" else None
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": message,
        "lastTransitionTime": since or time_text(now // MICRO),
    }
    if "generation" in pod.meta.value:  # as kube-scheduler does since 1.34
        condition["observedGeneration"] = pod.meta.value["generation"]
    conditions[at:] = [Frozen(condition), *conditions[at + 1 :]]
    body = Frozen(status=Frozen(conditions=FrozenList(conditions)))
    options = Frozen(patch="merge", rv=str(pod.rv))
    return Request("patch", key, body, "status", manager="kube-scheduler", options=options)
