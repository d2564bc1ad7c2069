"""Judges the properties out of the box: on states at rest, on steps that repeat, on findings.

Nothing is judged while a search goes on but findings: the states at rest are few, and each store is looked at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from steersman.check.graph import Graph
from steersman.check.properties import (
    confluence,
    convergence,
    deletions,
    fight,
    finalizer,
    idempotent,
    livelock,
    missing_watch,
    orphan,
    owners,
    same_end,
)
from steersman.check.properties.cause import FIGHT, cause, given_by
from steersman.check.properties.names import EVERY, named
from steersman.check.properties.probe import Probe, asleep, probe
from steersman.check.properties.removals import Removals
from steersman.check.properties.shape import Shape, difference, shape, unsaid
from steersman.check.rest import Ended
from steersman.check.verdict import Violation, plural
from steersman.kernel.action import Action
from steersman.kernel.effect import Event
from steersman.kernel.reexec import Finding
from steersman.kernel.world import World
from steersman.ownership.analysis import Analysis

LIVELOCK: Final = "livelock"
TIME: Final = frozenset({"fire", "advance"})
"""Actions that let time pass."""


class Judge:
    """Judges one check. A property that is broken is reported once, where it shows first."""

    def __init__(self, without: Iterable[str] = ()) -> None:
        self.off = {named(name).name for name in without}
        self.aside = ""
        """What was seen at rest and is not judged, and why: the first of it."""
        self._told: set[str] = set()
        self._seen: set[int] = set()

    def again(self) -> None:
        """Forgets what was found: the search starts again."""
        self.aside = ""
        self._told.clear()
        self._seen.clear()

    def anew(self) -> Judge:
        """One of the same properties that has judged nothing yet."""
        return Judge(self.off)

    def told(self, name: str) -> None:
        """A claim of the scenario's own has said the same."""
        self._told.add(name)

    def wants(self, name: str) -> bool:
        """Whether a property is on, and not known to be broken."""
        return name not in self.off and name not in self._told

    def ignores(self, finding: Finding) -> bool:
        """Whether the property is off that a finding reports."""
        return any(finding.kind in about.findings and about.name in self.off for about in EVERY)

    def found(
        self, name: str, text: str, way: Sequence[Action], cycle: Sequence[Action] = (), kind: str = ""
    ) -> Iterator[Violation]:
        """The violation, if there is one (`text`) and it was not told yet."""
        if text and self.wants(name):
            self._told.add(name)
            yield Violation(kind or name, name, text, tuple(way), tuple(cycle))

    # -- at rest -------------------------------------------------------------------------------------------------

    def at_rest(
        self, world: World, way: Sequence[Action], cycle: Sequence[Action] = (), ended: Iterable[Ended] = ()
    ) -> Iterator[Violation]:
        """Judges a state in which nothing changes any more. `way` leads to it; `cycle`: what still goes on in it, and
        the reconciles that `ended` there."""
        if world.contents in self._seen:
            return
        self._seen.add(world.contents)
        system, store = world.system, world.store
        if self.wants(convergence.ABOUT.name):
            yield from self.found(convergence.ABOUT.name, convergence.wrong(world, ended), way, cycle)
        if self.wants(finalizer.ABOUT.name):
            yield from self.found(finalizer.ABOUT.name, finalizer.wrong(world), way, cycle)
        if self.wants(orphan.ABOUT.name):
            left = orphan.wrong(store)
            if orphan.collects(system):
                yield from self.found(orphan.ABOUT.name, left, way, cycle)
            elif left and not self.aside:
                self.aside = f"{orphan.ABOUT.name}, since no garbage collector runs: {left}"
        yield from self._probed(world, way)

    def _probed(self, world: World, way: Sequence[Action]) -> Iterator[Violation]:
        """Asks for one more reconcile of everything that is asleep."""
        probing = (idempotent.ABOUT.name, missing_watch.ABOUT.name, livelock.ABOUT.name)
        for item in asleep(world):
            if not any(self.wants(name) for name in probing):
                return
            done = probe(world, item)
            if done.changed:
                again = idempotent.wrong(world, done)
                name = idempotent.ABOUT.name if again else missing_watch.ABOUT.name
                text = (again or missing_watch.wrong(world, done)) if self.wants(name) else ""
                yield from self.found(name, text, way)
            else:
                yield from self.found(livelock.ABOUT.name, _restless(world, done), way, kind=LIVELOCK)

    # -- for ever ------------------------------------------------------------------------------------------------

    def livelock(
        self, first: World, way: Sequence[Action], cycle: Sequence[Action], claimed: bool
    ) -> Iterator[Violation]:
        """Judges steps that repeat and write each time, from the world `first` on. `claimed`: the scenario says that
        it converges; else time may have to pass in each round."""
        why = cause(first, cycle)
        name = fight.ABOUT.name if why.kind == FIGHT else livelock.ABOUT.name
        takes_time = any(action.op in TIME for action in cycle)
        if not claimed and (name in self.off or (takes_time and why.kind != FIGHT)):
            return
        if name in self.off:
            name = "converges"
        writers = ", ".join(sorted({action.who for action in cycle}))
        steps = f"{plural(len(cycle), 'step')} repeat for ever and write each time; taking part: {writers}"
        yield from self.found(name, f"{why.text}\n  {steps}", way, cycle, LIVELOCK)

    # -- before any run ------------------------------------------------------------------------------------------

    def owners(self, declared: Analysis) -> Iterator[Violation]:
        """Judges what controllers declare."""
        yield from self.found(owners.ABOUT.name, owners.wrong(declared), ())

    # -- against the run without faults -------------------------------------------------------------------------

    def compared(self, search: Search, faulty: bool) -> Iterator[Violation]:
        """Judges a finished search that broke nothing else by one with nothing to disturb it: without lag and faults,
        or, where there are none (not `faulty`), with whole reconciles."""
        name = same_end.ABOUT.name if faulty else confluence.ABOUT.name
        stores = {end: search.world_of(end).store for end in search.last_states}
        shapes = {end: shape(store) for end, store in stores.items()}
        wholes = {end: shape(store, True) for end, store in stores.items()} if faulty else shapes
        first = next(iter(wholes.values()), {})
        differ = self.wants(name) and any(found != first for found in wholes.values())
        deleting = faulty and self.wants(deletions.ABOUT.name) and search.removed.slots()
        if not (differ or deleting):
            return
        calm = search.undisturbed(faulty)
        if calm is None:
            return
        calm_stores = [calm.world_of(end).store for end in calm.last_states]
        ends = [shape(store) for store in calm_stores]
        if differ and ends and all(end == ends[0] for end in ends):
            for state, found in shapes.items():
                if found != ends[0]:
                    calmly = "without lag and faults" if faulty else "with whole reconciles"
                    text = f"every run {calmly} ends in one state; not this one: {difference(ends[0], found)}"
                    yield from self.found(name, text, search.unfolded(search.graph.path(state), True))
                    break
            else:
                yield from self._unsaid(search, [shape(store, True) for store in calm_stores], wholes)
        if deleting:
            text, way = deletions.wrong(search, calm)
            yield from self.found(deletions.ABOUT.name, text, way)

    def _unsaid(self, search: Search, said: Sequence[Shape], wholes: Mapping[int, Shape]) -> Iterator[Violation]:
        """Judges what statuses say beside phases and conditions, where without faults (`said`) they all say the
        same."""
        for state, found in wholes.items() if all(each == said[0] for each in said) else ():
            text = unsaid(search.world_of(state), said[0], found) if found != said[0] else ""
            if text:
                text = f"every run without lag and faults ends in one state; not this one: {text}"
                way = search.unfolded(search.graph.path(state), True)
                yield from self.found(same_end.ABOUT.name, text, way)
                return


class Search(Protocol):
    """What is compared: an `Explorer` that has finished."""

    graph: Graph
    removed: Removals

    last_states: list[int]
    """One state of each end, by store."""

    def world_of(self, state: int) -> World:
        """The world of a state."""

    def world_at(self, actions: tuple[Action, ...]) -> World:
        """The world after some actions of the whole graph."""

    def unfolded(self, path: Sequence[Action], at_rest: bool) -> tuple[Action, ...]:
        """A way through the graph in full; `at_rest`: to where nobody has anything left to do."""

    def undisturbed(self, faulty: bool) -> Search | None:
        """A finished search of the same scenario without lag and faults, or with whole reconciles; None when that has
        no end within reason, or breaks something itself."""


def _restless(world: World, done: Probe) -> str:
    """Which write of a reconcile would be another one each time, and wake its writer; "" when none would."""
    loop = world.system.loops[done.item[0]]
    for node in done.nodes:
        if node.effect is not None and node.effect.op == "write":
            obj = done.after.store.get(node.effect.what.key)
            if obj is not None and done.item[1] in loop.triggers(Event(obj.rv, obj.key, obj, obj), done.after.store):
                told = given_by(world, node)
                if told:
                    return f"{told}; that write wakes it, so it goes on for ever"
    return ""
