"""Rest: where nothing changes any more. Controllers may go on there for ever, reading, or failing every time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, Self

from steersman.check.graph import Graph
from steersman.kernel.action import Action
from steersman.kernel.faults import FAULTY
from steersman.kernel.flight import Flight
from steersman.kernel.object import Key
from steersman.kernel.reexec import Result
from steersman.kernel.transition import enabled, step
from steersman.kernel.world import World

MAX_STATES: Final = 2_000
"""States of one rest whose reconciles are looked at: who fails every time fails in the first of them too."""
MAX_SHOWN: Final = 3
"""Failing reconciles that a message names."""

Item = tuple[int, Key]


class Ended(NamedTuple):
    """A reconcile that ended on a step."""

    item: Item
    error: str | None


class Attentive(World):
    """A world that notes something of what happens in it."""

    __slots__ = ()

    @classmethod
    def of(cls, world: World) -> Self:
        """A private copy of a world."""
        fork = world.fork()
        out = cls.__new__(cls)
        for name in World.__slots__:
            setattr(out, name, getattr(fork, name))
        out.attend()
        return out

    def attend(self) -> None:
        """Has noted nothing yet."""


class Noting(Attentive):
    """A world that notes which reconciles end in it, and how, and what their calls give."""

    __slots__ = ("ended", "given")
    ended: list[Ended]
    given: Any
    """What the last call gave: a value or a `Refused`."""

    def attend(self) -> None:
        """Has noted nothing yet."""
        self.ended, self.given = [], None

    def answered(self, item: Item, flight: Flight, value: Any, wrote: bool) -> None:
        """As a World does it."""
        self.given = value
        super().answered(item, flight, value, wrote)

    def finish(self, item: Item, result: Result, started: object = None) -> None:
        """As a World does it."""
        self.ended.append(Ended(item, result.error))
        super().finish(item, result, started)  # type: ignore[arg-type]


def noted(world: World, action: Action) -> tuple[World, list[Ended]]:
    """The world after an action, and the reconciles that ended on it."""
    after = Noting.of(world)
    step(after, action)
    return after, after.ended


def failing(world: World, ended: Iterable[Ended]) -> str:
    """Who, of the reconciles that ended at rest, always ends in an error: `k on ConfigMap default/c fails every time:
    Invalid: …`; "" when nobody does."""
    errors: dict[Item, list[str | None]] = {}
    for item, error in ended:
        errors.setdefault(item, []).append(error)
    told = []
    for item in sorted(errors):
        texts = [text for text in errors[item] if text is not None]
        if texts:
            often = "every time" if len(texts) == len(errors[item]) else "again and again"
            told.append(f"{world.system.loops[item[0]].name} on {name_of(item[1])} fails {often}: {texts[0]}")
    more = f"; and {len(told) - MAX_SHOWN} more" if len(told) > MAX_SHOWN else ""
    return "; ".join(told[:MAX_SHOWN]) + more


def name_of(key: Key) -> str:
    """`Deployment default/web`."""
    return f"{key.kind} {key.namespace}/{key.name}" if key.namespace else f"{key.kind} {key.name}"


class Rest(NamedTuple):
    """What goes on in a recurrence that changes nothing."""

    failing: str
    """See `failing`."""
    cycle: tuple[Action, ...]
    """What repeats there, from its first state: with a failure when there is one; empty when nobody moves."""
    ended: tuple[Ended, ...] = ()
    """The reconciles that end there."""


def look(graph: Graph, states: tuple[int, ...], first: World, settle: Callable[[World], object]) -> Rest:
    """Goes through a recurrence without writes; `first` is the world of its first state. `settle`: what the search did
    at once in every new world."""
    inside = set(states)
    worlds = {states[0]: first}
    ended: list[Ended] = []
    through: tuple[int, int, int] | None = None
    failed = False
    queue = [states[0]]
    for state in queue:
        world = worlds[state]
        possible = set(enabled(world))
        for number, target in graph.edges(state):
            action = graph.actions[number]
            if target not in inside or action.op in FAULTY or action not in possible:
                continue
            after, finished = noted(world, action)
            settle(after)
            ended += finished
            fails = any(end.error is not None for end in finished)
            if through is None or (fails and not failed):
                through, failed = (state, number, target), fails
            if target not in worlds and len(worlds) < MAX_STATES:
                worlds[target] = after
                queue.append(target)
    cycle = () if through is None else tuple(graph.cycle_through(states, *through))
    return Rest(failing(first, ended), cycle, tuple(ended))
