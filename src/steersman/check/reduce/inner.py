"""What controllers do by themselves: everything but a write that changes something.

The *inner state* of a controller is its queue, its reconciles in flight, its memory and its views, beside a store. Its
inner steps (a delivery, a start, a read, a write that is refused or changes nothing) touch nothing of anybody else's,
and nobody else's inner steps touch it. So what matters of a controller at a store is only which inner states it may be
in by now: a set that is closed under inner steps. A world is known by the store and one such set a controller.

Everything here is kept for good and known by a number: inner states, changes of the store, sets. What follows from
one was found out once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from steersman.check.reduce.lineage import Lineage, Timers, Unfit
from steersman.kernel.action import Action
from steersman.kernel.effect import MICRO, Event
from steersman.kernel.faults import FAULTY
from steersman.kernel.fingerprint import fingerprint
from steersman.kernel.identity import digest, term
from steersman.kernel.object import Object
from steersman.kernel.system import System
from steersman.kernel.transition import apply, enabled
from steersman.kernel.world import World

MAX_INNER: Final = 500_000
"""Inner states after which it is given up: a minute or two, and about 1.5 GB."""
LOOK_EVERY: Final = 256
"""Inner states between two looks at the clock and at memory."""
NO_CHANGE: Final = -1


class Change(NamedTuple):
    """One event, and the stores around it."""

    event: Event
    before: Lineage
    after: Lineage
    drawn: dict[str, None]


class Outer(NamedTuple):
    """A step of one inner state that somebody else may notice, or that spends a budget."""

    action: Action
    op: str
    """The fault it is; "" for none."""
    change: int
    target: int


class Steps(NamedTuple):
    """What one inner state can do."""

    inner: tuple[tuple[Action, int], ...]
    outer: tuple[Outer, ...]


class Move(NamedTuple):
    """What a controller may do next as far as others can tell."""

    action: Action
    op: str
    change: int
    target: int
    """The set of inner states that it may be in afterwards."""


class Possible(NamedTuple):
    """The inner states that a controller may be in."""

    loop: int
    members: tuple[int, ...]
    canonical: int
    rests: bool
    """In one of them it has nothing left to do."""


class Inner:
    """The inner states of all controllers of one system."""

    def __init__(self, system: System, timers: bool, stop: Callable[[], bool]) -> None:
        self.system = system
        self.worlds: list[World] = []
        self.sets: list[Possible] = []
        self.changes: list[Change] = []
        self._stop = stop
        self.timers = timers
        """There are timers, which ring at any time."""
        self._prints: list[int] = []
        self._steps: dict[int, Steps] = {}
        self._ids: dict[Any, int] = {}
        self._heard: dict[tuple[int, int], int] = {}
        self._closed: dict[Any, int] = {}
        self._hearing: dict[tuple[int, int], int] = {}
        self._moves: dict[int, tuple[Move, ...]] = {}
        self._finite: dict[int, bool] = {}

    # -- inner states ------------------------------------------------------------------------------------------------

    def only(self, world: World, loop: int) -> World:
        """Takes from a private world whatever is not this controller's. (Budgets and people are everybody's.)"""
        for item in [item for item in world.pending if item[0] != loop]:
            del world.pending[item]
            world.sum_pending -= term("pending", *item)
        for item in [item for item in world.flights if item[0] != loop]:
            del world.flights[item]
        if world.views:
            world.views = {place: view for place, view in world.views.items() if place[0] == loop}
        if world.memory:
            world.memory = {other: memory for other, memory in world.memory.items() if other == loop}
        world.budgets, world.users, world.events = self.system.budgets.full, (), []
        return world

    def number(self, world: World, loop: int) -> int:
        """The number of an inner state; the world has nothing else."""
        if world.wakes and not self.timers:
            raise Timers
        if any(flight.waiting is not None for flight in world.flights.values()):
            raise Unfit("there are webhooks")
        canonical = fingerprint(world)
        flights = [
            (item, flight.node, *[obj.rv for seen in flight.versions.values() for obj in seen])
            for item, flight in sorted(world.flights.items(), key=lambda pair: pair[0])
        ]
        views = [(gk, *[event.rev for event in view.events]) for gk, view in sorted(world.views.items())]
        assert isinstance(world.store, Lineage)
        here = (world.store.place, tuple(sorted(world.drawn)), tuple(sorted(world.wakes.items())))
        place = (loop, canonical, tuple(flights), tuple(views), *here)
        found = self._ids.get(place)
        if found is None:
            found = self._ids[place] = len(self.worlds)
            if found % LOOK_EVERY == 0:
                self.look()
            self.worlds.append(world)
            self._prints.append(canonical)
        return found

    def look(self) -> None:
        """Raises `Unfit` when there are too many, or there is no time or memory left."""
        if len(self.worlds) > MAX_INNER or self._stop():
            raise Unfit("it has grown too large")

    def print_of(self, number: int) -> int:
        """The fingerprint of an inner state."""
        return self._prints[number]

    def steps(self, number: int, loop: int) -> Steps:
        """What an inner state can do."""
        found = self._steps.get(number)
        if found is None:
            found = self._steps[number] = self._taken(self.worlds[number], loop)
        return found

    def _taken(self, world: World, loop: int) -> Steps:
        inner: list[tuple[Action, int]] = []
        outer: list[Outer] = []
        every = [found for action in enabled(world) for found in self._afterwards(world, loop, action)]
        for action, after in every:
            if after.now != world.now:
                after.now = world.now
            op = action.op if action.op in FAULTY else ""
            change = NO_CHANGE
            if after.events:
                change = self._changed(world, after)
                after.store = self.changes[change].after
            target = self.number(self.only(after, loop), loop)
            if op or change != NO_CHANGE:
                outer.append(Outer(action, op, change, target))
            else:
                inner.append((action, target))
        return Steps(tuple(inner), tuple(outer))

    def _afterwards(self, world: World, loop: int, action: Action) -> list[tuple[Action, World]]:
        """What an action leads to. Time stands still; with timers it may have passed, and a write that has a time in it
        and changes nothing else may, or may not, have changed that."""
        after = apply(world, action)
        out = [(action, after)]
        flight = world.flights.get((loop, action.key)) if self.timers and action.op == "cont" else None
        effect = None if flight is None else flight.node.effect
        if flight is None or effect is None or effect.op != "write" or not flight.node.stamps:
            return out
        canon = self.system.canon
        if not after.events:
            later = world.fork()
            later.now += MICRO
            after = apply(later, action)
            if after.events:
                out.append((action, after))
        elif (old := after.events[0].old) and (new := after.events[0].new) and canon.of(old) == canon.of(new):
            still = world.fork()
            still.answered((loop, action.key), flight, world.store.get(effect.what.key), True)
            out.append((action, still))
        return out

    def _changed(self, before: World, after: World) -> int:
        if len(after.events) > 1:
            raise Unfit("one step changes several objects")
        return self.change(after.events[0], before.store, after.store, after.drawn)

    def change(self, event: Event, before: Any, after: Any, drawn: dict[str, None]) -> int:
        """The number of a change."""
        place = ("change", event.key, _text(event.old), _text(event.new), before.place, after.place, tuple(drawn))
        found = self._ids.get(place)
        if found is None:
            found = self._ids[place] = len(self.changes)
            self.changes.append(Change(event, before, after, drawn))
        return found

    def hears(self, number: int, loop: int, change: int) -> int:
        """The inner state that one becomes by a change somebody else made."""
        found = self._heard.get((number, change))
        if found is None:
            made = self.changes[change]
            world = self.worlds[number].fork()
            world.store, world.drawn = made.after, made.drawn
            world.hear(loop, made.event, made.before)
            found = self._heard[(number, change)] = self.number(world, loop)
        return found

    # -- sets of them ------------------------------------------------------------------------------------------------

    def closed(self, loop: int, seeds: Iterable[int]) -> int:
        """The set of inner states that these lead to."""
        place = (loop, frozenset(seeds))
        found = self._closed.get(place)
        if found is None:
            members: dict[int, None] = {}
            work = sorted(place[1])
            while work:
                number = work.pop()
                if number not in members:
                    members[number] = None
                    work.extend([target for _, target in self.steps(number, loop).inner])
            found = self._closed[place] = self._set(loop, tuple(sorted(members)))
        return found

    def _set(self, loop: int, members: tuple[int, ...]) -> int:
        place = ("set", loop, members)
        found = self._ids.get(place)
        if found is None:
            quiet = False
            for number in members:
                world = self.worlds[number]
                if not world.views:
                    quiet = quiet or rests(world)
                    self._ends(number, loop)
            found = self._ids[place] = len(self.sets)
            canonical = digest(loop, *sorted([self._prints[number] for number in members]))
            self.sets.append(Possible(loop, members, canonical, quiet))
        return found

    def _ends(self, start: int, loop: int) -> None:
        """Inner steps come to an end once everything is delivered; otherwise what goes on for ever has to be looked at
        in the graph of all states. (Before that nothing goes on for ever: some time it is delivered.)"""
        work = [(start, iter(self.steps(start, loop).inner))] if start not in self._finite else []
        if work:
            self._finite[start] = False
        while work:
            number, rest = work[-1]
            target = next((target for _, target in rest), None)
            if target is None:
                self._finite[number] = True
                work.pop()
            elif target not in self._finite:
                self._finite[target] = False
                work.append((target, iter(self.steps(target, loop).inner)))
            elif not self._finite[target]:
                raise Unfit("a controller goes on without writing")

    def moves(self, which: int) -> tuple[Move, ...]:
        """What a controller may do next that others may notice: the same change is one move, whoever of its inner
        states it is made by."""
        found = self._moves.get(which)
        if found is None:
            loop = self.sets[which].loop
            made: dict[tuple[str, int], tuple[Action, dict[int, None]]] = {}
            for number in self.sets[which].members:
                for action, op, change, target in self.steps(number, loop).outer:
                    made.setdefault((op, change), (action, {}))[1][target] = None
            found = self._moves[which] = tuple(
                [Move(action, op, change, self.closed(loop, to)) for (op, change), (action, to) in made.items()]
            )
        return found

    def hearing(self, which: int, change: int) -> int:
        """The set that one becomes by a change somebody else made. A view that is as far behind as it may be gets its
        oldest event first, and the inner state that it has then is a member as well."""
        found = self._hearing.get((which, change))
        if found is None:
            loop, members = self.sets[which][:2]
            place = (loop, self.changes[change].event.key.gk)
            heard = dict.fromkeys(
                [self.hears(number, loop, change) for number in members if self._may_wait(number, place)]
            )
            found = self._hearing[(which, change)] = self.closed(loop, heard)
        return found

    def _may_wait(self, number: int, place: Any) -> bool:
        view = self.worlds[number].views.get(place)
        return view is None or len(view.waiting) < self.system.lag


def rests(world: World) -> bool:
    """Whether a controller has nothing left to do, now and at any time."""
    return world.quiescent and not world.wakes


def _text(obj: Object | None) -> tuple[Any, ...]:
    """What an object is, as it is."""
    if obj is None:
        return ()
    parts = (obj.meta, obj.spec, obj.rest, obj.status)
    return (obj.rv, obj.api_version, *[None if part is None else part.digest for part in parts])
