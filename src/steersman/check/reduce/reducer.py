"""All reductions of one search: what it leaves out, and whether it might."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from steersman.check.graph import Graph
from steersman.check.reduce.changes import Change, Log
from steersman.check.reduce.clusters import Clusters
from steersman.check.reduce.factored import Factored
from steersman.check.reduce.lazy import Lazy
from steersman.check.reduce.paths import Way
from steersman.check.reduce.settle import Settler
from steersman.check.reduce.sleep import Sleeper, Step
from steersman.check.reduce.symmetry import Symmetry
from steersman.kernel.action import Action
from steersman.kernel.fingerprint import fingerprint
from steersman.kernel.object import MASK
from steersman.kernel.store import Store
from steersman.kernel.system import System
from steersman.kernel.transition import enabled
from steersman.kernel.world import World


class Reducer:
    """What an explorer asks: which actions of a world to take, and what a new world is the same as."""

    def __init__(
        self,
        system: System,
        *,
        settle: bool = True,
        clusters: bool = True,
        sleep: bool = True,
        symmetry: bool = True,
        lazy: bool = True,
        portable: bool = False,
    ) -> None:
        self.system = system
        self.symmetry = Symmetry(system) if symmetry and Symmetry.suits(system) else None
        self.fit = True
        """Symmetry was in force when the search began."""
        self.log = self._log()
        self.clusters = Clusters(system, self.log) if clusters and Clusters.suits(system) else None
        self.settler = Settler(system, self.log, portable) if settle and Settler.suits(system) else None
        self.sleeper = Sleeper(system, self.log) if sleep and Sleeper.suits(system) else None
        self.lazy = Lazy(system, self.settle) if lazy and Lazy.suits(system) else None
        self.proof: Factored | None = None
        """A factored search that found that all is well: it stands in the place of this one's."""
        self.known: dict[int, int] = {}
        """The state that a world led to, by its fingerprint before anything was settled in it."""
        self.rounds = 0
        self.left: tuple[str, ...] = ()
        """Reductions that were given up, and why."""

    @property
    def names(self) -> tuple[str, ...]:
        """The reductions in force."""
        if self.proof is not None:
            return ("factored",)
        parts = {"settle": self.settler, "clusters": self.clusters, "sleep": self.sleeper}
        names = [name for name, part in parts.items() if part is not None]
        if self.lazy is not None:
            names.append("lazy off (map_event looks past the caches)" if self.lazy.unfit else "lazy")
        if self.symmetry is not None:
            names.append(f"symmetry off ({self.symmetry.unfit})" if self.symmetry.unfit else "symmetry")
        return (*names, *self.left)

    @property
    def single(self) -> tuple[str, ...]:
        """The reductions in force that one process alone can make."""
        alone = {"clusters": self.clusters, "symmetry": self.symmetry and not self.symmetry.unfit}
        return tuple([name for name, on in alone.items() if on])

    @property
    def working(self) -> tuple[str, ...]:
        """Those of them that have made a difference."""
        idle = {
            "clusters": self.clusters and not self.clusters.puts_off,
            "symmetry": self.symmetry and self.symmetry.idle,
        }
        return tuple([name for name in self.single if not idle[name]])

    def leave(self) -> None:
        """Gives up what one process alone can do; the search starts again."""
        self.left = tuple([f"{name} off (several processes)" for name in self.single])
        if self.clusters is not None:
            self.clusters.stop()
        self.clusters = self.symmetry = self.system.reexec.checked = None
        self.fit = True
        self._again()

    def _log(self) -> Log:
        """A log of changes; one that takes generated names for each other, where symmetry does."""
        log = Log(self.system)
        if self.symmetry is not None and not self.symmetry.unfit:
            log.collapsed = self.symmetry.collapsed
        return log

    def identity(self, world: World, turn: int, plain: int | None = None) -> int:
        """What a world is known by; `turn`: see `turn_after`; `plain`: its fingerprint, if it is known."""
        if self.symmetry:
            found = self.symmetry.identity(world)
        else:
            found = fingerprint(world) if plain is None else plain
        return (found + Lazy.identity(turn)) & MASK

    def turn_after(self, state: int, action: Action) -> int:
        """Whose turn it is after an action of a state; -1: everybody's."""
        return -1 if self.lazy is None else self.lazy.turn_after(state, action)

    def contents(self, world: World) -> int:
        """What there is in a world is known by."""
        return self.symmetry.contents(world) if self.symmetry else world.contents

    def met(self, parent: int, state: int, new: bool, world: World, turn: int) -> None:
        """Hears by which world a state was found, and whose turn it is in it."""
        if new and turn >= 0 and self.lazy is not None:
            self.lazy.begins(state, turn)
        if self.symmetry is not None and self.fit:
            self.symmetry.met(parent, state, new, world)

    def found(self, parent: int, before: int, world: World) -> int | None:
        """The state that a world leads to when it is settled, if that is known. `before`: its fingerprint."""
        state = self.known.get(before)
        if state is not None and self.symmetry is not None and self.fit:
            self.symmetry.led(parent, before, state)
        return state

    def leads(self, before: int, state: int, new: bool) -> None:
        """Notes what a world led to."""
        self.known[before] = state
        if self.symmetry is not None and not new:
            self.symmetry.joined.add(before)

    def forget(self) -> None:
        """The system has learned something: nothing known about its reconciles counts any more."""
        self.symmetry = self.symmetry.anew() if self.symmetry is not None else None
        self.log = self._log()
        self.settler = Settler(self.system, self.log, self.settler.portable) if self.settler else None
        if self.clusters is not None:
            self.clusters = self.clusters.anew(self.log) if Clusters.suits(self.system) else None
        self.sleeper = Sleeper(self.system, self.log) if self.sleeper else None
        self.lazy = self.lazy.again() if self.lazy else None
        self.known.clear()

    def attend(self) -> None:
        """Transitions of the search follow: what was looked at until now was for something else."""
        if self.clusters:
            self.clusters.attend()

    def step(self, state: int, before: World, action: Action, after: World) -> list[Change]:
        """Hears of every transition that is executed; what it changed."""
        if not (self.settler or self.clusters or self.sleeper or self.lazy):
            return []
        changes = self.log.note(state, before, action, after)
        if self.lazy:
            self.lazy.note(self.log.looked)
        if self.clusters:
            self.clusters.learn(action, changes)
        return changes

    def spared(self, graph: Graph, state: int, action: Action) -> Step | None:
        """A transition that need not be executed; see `Sleeper.known`."""
        found = self.sleeper.known(graph, state, action) if self.sleeper else None
        if found is not None:
            self.log.again(state, found.changes)
        return found

    def done(self, state: int, before: World, action: Action, target: int, after: World, changes: list[Change]) -> None:
        """Hears where a transition led."""
        if self.sleeper:
            self.sleeper.done(state, before, action, target, after, changes)

    def deeper(self) -> None:
        """The search has come to the next depth."""
        if self.sleeper:
            self.sleeper.deeper()

    def settle(self, world: World, before: World | None = None) -> list[int]:
        """Does at once what changes nothing; see `Settler.settle`."""
        return self.settler.settle(world, before) if self.settler else []

    def note(self, state: int, settled: list[int]) -> None:
        """Notes where that was."""
        if self.settler:
            self.settler.note(state, settled)

    def actions(self, world: World, state: int) -> list[Action]:
        """The actions to take in a state."""
        if self.settler and world.flights and not (self.lazy and self.lazy.is_a_turn(state)):
            forced = self.settler.forced(world, state)
            if forced is not None:
                return [forced]
        actions = enabled(world)
        if self.lazy and (world.views or self.lazy.is_a_turn(state)):
            return self.lazy.offered(world, state, actions)
        return self.clusters.first(actions, state) if self.clusters else actions

    def claimed(self, name: str, store: Store) -> Store:
        """The store as a claim that must always hold looks at it."""
        return self.clusters.claimed(name, store) if self.clusters else store

    def neglected(self, graph: Graph) -> list[int]:
        """States of a finished graph that are to be expanded in full: see `Clusters.neglected`."""
        return self.clusters.neglected(graph) if self.clusters and self.proof is None else []

    def looked(self) -> list[Action]:
        """The steps of the reconcile that was looked at last."""
        if self.settler is None or self.settler.looked is None:
            return []
        (loop, key), first, last = self.settler.looked
        name = self.system.loops[loop].name
        run = [Action("run", name, key)] if first == 1 else []
        calls = [] if self.system.atomic else range(first, last + 1)
        return [*run, *[Action("cont", name, key, number) for number in calls]]

    def verified(self, graph: Graph) -> bool:
        """Whether everything that was left out in a finished graph might be. If not, search again."""
        if self.proof is not None:
            return True
        self.rounds += 1
        unsafe = self.settler is not None and self.settler.unsafe(graph, self.rounds)
        if self.clusters is not None:
            self.clusters.catch_up()
        unfit = self.symmetry is not None and self.fit and not self.symmetry.verified(graph)
        self.fit = self.fit and not unfit
        if not (unsafe or unfit or any(part is not None and part.grew for part in (self.clusters, self.lazy))):
            return True
        self._again()
        return False

    def _again(self) -> None:
        """For the next search: what is known stays."""
        self.log = self._log()
        if self.settler is not None:
            self.settler = self.settler.again(self.log)
        if self.clusters is not None:
            self.clusters.again(self.log)
        self.sleeper = Sleeper(self.system, self.log) if self.sleeper else None
        self.lazy = self.lazy.again() if self.lazy else None
        self.known.clear()

    def unfolded(
        self, first: World, path: Sequence[Action], cycle: Sequence[Action], at_rest: bool
    ) -> tuple[tuple[Action, ...], tuple[Action, ...]]:
        """A path through the reduced graph, and a cycle from its end, as steps of the whole graph. `at_rest`: what was
        left out on the way is taken at its end."""
        if self.proof is not None:
            return self.proof.way(path), ()
        if self.settler is None and not self.system.by_write:
            return tuple(path), tuple(cycle)
        way = Way(first, self.settle)
        with suppress(KeyError):  # a step that is none of the whole graph: shown as it is
            steps = way.go(path, at_rest or bool(cycle))
            return tuple(steps), tuple(way.go(cycle, True)) if cycle else ()
        return tuple(path), tuple(cycle)
