"""The replay of a trace as a Component: it does at each recorded moment what was done then, and tells each new pod how
long it is to run.

The latter is what SimKube's webhook does: here the pod gets an annotation, and the virtual nodes heed it. A pod with
restartPolicy Always gets none: such a pod ends only when somebody deletes it, and that somebody is simulated, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from steersman.kernel.effect import Event, Refused, Request
from steersman.kernel.object import Key, Object
from steersman.kernel.store import Store
from steersman.kernel.value import EMPTY
from steersman.nodes.status import LIFETIME
from steersman.sim.lives import Lives, Owner
from steersman.sim.script import MANAGER, Script, namespace_request
from steersman.trace.gvk import GVK

MAX_OWNERS: Final = 16
"""A chain of owners is two or three long; an endless one is a loop."""


class ReplayState:
    """How far a replay has got."""

    __slots__ = ("at", "dealt", "endless", "namespaces", "owners", "refused", "told")

    def __init__(self) -> None:
        self.at = 0
        """The next step of the script."""
        self.namespaces: dict[str, None] = {}
        self.owners: dict[Key, tuple[tuple[Owner, Key], ...]] = {}
        self.dealt: dict[tuple[Owner, int | None], int] = {}
        """How many lives of a deck have been dealt."""
        self.told: list[Request] = []
        """Annotations that are to be written at once."""
        self.endless = 0
        """Pods that have a recorded end and restartPolicy Always."""
        self.refused: dict[tuple[str, str], tuple[int, str]] = {}
        """(what, reason) → how often, and the first message."""

    def copy(self) -> ReplayState:
        """An independent state with the same contents."""
        other = ReplayState()
        for name in ReplayState.__slots__:
            value = getattr(self, name)
            setattr(other, name, value if isinstance(value, int) else value.copy())
        return other


class Replay:
    """`kernel.component.Component` that follows a script. persistent: states given out are never changed (check)."""

    name = "trace"

    def __init__(self, script: Script, lives: Lives, *, persistent: bool = False) -> None:
        self.script = script
        self._lives = lives
        self._persistent = persistent

    def start(self, store: Store) -> ReplayState:
        """Before the first step."""
        state = ReplayState()
        for obj in store.objects():
            self._seen(state, Event(obj.rv, obj.key, obj, obj))
        return state

    def on_event(self, state: ReplayState, event: Event) -> ReplayState:
        """Keeps track of namespaces and owners, and deals lives to new pods."""
        if not self._lives and event.key.kind != "Namespace":
            return state
        state = self._own(state)
        self._seen(state, event)
        return state

    def advance(self, state: ReplayState, now: int) -> tuple[ReplayState, list[Request]]:
        """Tells new pods how long they run; else does the next step of the script."""
        state = self._own(state)
        steps = self.script.steps
        if state.told:
            told, state.told = state.told, []
            return state, told
        if state.at == len(steps) or steps[state.at].at > now:
            return state, []
        step = steps[state.at]
        state.at += 1
        missing = [namespace_request(name) for name in step.namespaces if name not in state.namespaces]
        return state, [*missing, *step.requests]

    def on_refused(self, state: ReplayState, request: Request, refusal: Refused) -> ReplayState:
        """Noted, but for what is to happen to something that is not there: whatever made it go was faster here."""
        if refusal.reason == "NotFound" and request.verb in ("delete", "patch"):
            return state
        state = self._own(state)
        kind = f"{request.key.kind}.{request.key.group}" if request.key.group else request.key.kind
        what = (f"{request.verb} {kind}", refusal.reason)
        count, first = state.refused.get(what, (0, f"{request.key.namespace}/{request.key.name}: {refusal}"))
        state.refused[what] = (count + 1, first)
        return state

    def next_deadline(self, state: ReplayState) -> int | None:
        """The next step of the script; 0 while a pod is to be told something."""
        if state.told:
            return 0
        steps = self.script.steps
        return steps[state.at].at if state.at < len(steps) else None

    def _own(self, state: ReplayState) -> ReplayState:
        return state.copy() if self._persistent else state

    def _seen(self, state: ReplayState, event: Event) -> None:
        _, key, old, new = event
        gk = (key.group, key.kind)
        if gk == ("", "Namespace"):
            if new is None:
                state.namespaces.pop(key.name, None)
            else:
                state.namespaces[key.name] = None
        elif gk == ("", "Pod"):
            if old is None and new is not None and self._lives:
                self._deal(state, key, new)
        elif self._lives:
            _note_owners(state, key, new)

    def _deal(self, state: ReplayState, key: Key, pod: Object) -> None:
        owners = tuple(_owners_of(pod))
        chain = _chain(state, owners) if owners else iter([("v1.Pod", f"{key.namespace}/{key.name}")])
        spec: Any = pod.spec_value or EMPTY
        deck = self._lives.deck(chain, spec)
        if deck is None:
            return
        place = (deck.owner, deck.hash)
        turn = state.dealt.get(place, 0)
        state.dealt[place] = turn + 1
        seconds = deck.lives[turn % len(deck.lives)].seconds
        if seconds is None:
            return
        if spec.get("restartPolicy", "Always") == "Always":
            state.endless += 1
            return
        body = {"metadata": {"uid": pod.uid, "annotations": {LIFETIME: str(seconds)}}}
        state.told.append(Request("patch", key, body, manager=MANAGER, options={"patch": "merge"}))


def _owners_of(obj: Object) -> Iterator[tuple[Owner, Key]]:
    namespace = obj.key.namespace
    for owner in obj.meta.value.get("ownerReferences") or ():
        gvk, name = GVK.of(owner), owner["name"]
        yield (str(gvk), f"{namespace}/{name}"), Key(gvk.group, gvk.kind, namespace, name)


def _note_owners(state: ReplayState, key: Key, obj: Object | None) -> None:
    owners = () if obj is None else tuple(_owners_of(obj))
    if owners:
        state.owners[key] = owners
    else:
        state.owners.pop(key, None)


def _chain(state: ReplayState, owners: tuple[tuple[Owner, Key], ...]) -> Iterator[Owner]:
    """Owners, theirs, and so on: nearest first."""
    for _ in range(MAX_OWNERS):
        yield from [owner for owner, _ in owners]
        owners = tuple(above for _, key in owners for above in state.owners.get(key, ()))
        if not owners:
            return
