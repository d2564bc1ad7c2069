"""Settle: what changes nothing is done at once.

An item on a queue is *settled* when its reconcile, run now and on its own view, would only read, would end well, and
everything it read wakes it again when it changes: then being on the queue makes no difference, for it is put there
again by whatever could make one. (Eager execution of confluent silent steps: Groote and van de Pol, MFCS 2000.) Neither
do such reconciles in flight. And a reconcile in flight whose next read nobody can change any more reads at once, before
anything else happens (a persistent set of one).

Both are guesses about what can still happen, so both are verified (`unsafe`), by what did happen in the finished graph:

- an answer that a settled item had changes later without waking it: a missing watch, and it is not settled then;
- what its controller remembers changes, under a name that it looked at;
- between two of its reads: with calls as steps, a reconcile that began before a change of its first answer can read the
  second after it. What is done at once never does. So no answer but the last may change later;
- the answer of a read that was taken at once changes later.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import orjson

from steersman.check.graph import Graph
from steersman.check.reduce.changes import Change, Log
from steersman.kernel.action import Action
from steersman.kernel.effect import Effect
from steersman.kernel.identity import digest
from steersman.kernel.object import SORTED, Key, Object
from steersman.kernel.reexec import Node, Result, outcome_of
from steersman.kernel.system import System
from steersman.kernel.view import View
from steersman.kernel.world import Flight, Item, World, with_versions

ROUNDS: Final = 8
"""Searches after which a guess that is wrong once is not made again for that item at all: so that few follow."""


FAULTS: Final = frozenset(["crash", "conflict", "error", "throttle", "timeout", "lose-reply"])
"""Faults that this is right for: those that befall a call that is not left out, and crashes. Others move views."""


Place = Any
"""A node of the trie of outcomes, or, where the trie is not kept, a digest of the way there."""


class Settled(NamedTuple):
    """A reconcile that changes nothing: its end in the trie of outcomes, and what it read on its way there."""

    item: Item
    end: Place
    first: int
    """The reads but the last, as a set of bits."""
    all: int
    """All reads, and the names it looked at in its memory."""


class Settler:
    """What may be done at once in the worlds of one search."""

    def __init__(self, system: System, log: Log, portable: bool = False) -> None:
        self.system = system
        self.log = log
        self.portable = portable
        """Places are to mean the same in other processes."""
        self._places: dict[Node, int] = {}
        self.wrong: set[Place] = set()
        """Ends and places of reads that are not to be guessed again."""
        self.stubborn: set[Item] = set()
        """Items that are never settled again."""
        self.looked: tuple[Item, int, int] | None = None
        """Whose reconcile was looked at last, from which call to which: where a finding showed."""
        self._listed: tuple[object, dict[int, frozenset[Key]]] = (None, {})
        self._known: dict[Place, tuple[int, Settled]] = {}
        self._list: list[Settled] = []
        self._forced: dict[Place, int] = {}
        self._nodes: list[tuple[Place, int]] = []
        self._states, self._settled = array("I"), array("I")
        self._read_states, self._reads = array("I"), array("I")

    @staticmethod
    def suits(system: System) -> bool:
        """Whether settling is right for the faults that a system may have."""
        return system.view is View and FAULTS.issuperset([fault.op for fault in system.budgets.faults])

    # -- settle --------------------------------------------------------------------------------------------------

    def settle(self, world: World, before: World | None = None) -> list[int]:
        """Settles everything there is, in place, on a private world; the numbers of what was settled, for `note`.

        before: the world one step earlier, in which nothing was left to settle. What has waited there already and whose
        controller sees now what it saw then is not looked at again."""
        out = []
        known = frozenset() if before is None or not self.system.lag else self._looked_at(before, world)
        for item, flight in list(world.flights.items()):
            if item not in known and flight.waiting is None and not flight.wrote:
                found = self._judged(world, item, flight)
                if found is not None:
                    number, end = found
                    del world.flights[item]
                    world.finish(item, _result(end), end.memory)
                    out.append(number)
        for item in list(world.pending):
            if item not in known and item not in world.flights:
                found = self._judged(world, item, None)
                if found is not None:
                    number, end = found
                    world.take(item)
                    world.finish(item, _result(end), end.memory)
                    out.append(number)
        return out

    def _looked_at(self, before: World, world: World) -> frozenset[Item]:
        """What waited one step earlier as it does now, for controllers to which nothing looks otherwise."""
        alike = self._alike(before, world)
        items = [item for item, flight in world.flights.items() if before.flights.get(item) is flight]
        idle = [item for item in world.pending if item not in world.flights and item not in before.flights]
        items += [item for item in idle if item in before.pending]
        return frozenset([item for item in items if item[0] in alike])

    def _alike(self, before: World, world: World) -> frozenset[int]:
        """The controllers that remember and see in a world what they did one step earlier: their caches are as they
        were, or have only more events on their way."""
        if world.now != before.now or world.budgets != before.budgets:
            return frozenset()
        differ = {
            loop
            for loop in (world.memory.keys() | before.memory.keys() if world.memory is not before.memory else ())
            if world.memory.get(loop) is not before.memory.get(loop)
        }
        if world.views is not before.views:
            for place, view in before.views.items():
                after = world.views.get(place)
                if after is not view and (after is None or after.waiting[:1] != view.waiting[:1]):
                    differ.add(place[0])
            for place, view in world.views.items():
                if place not in before.views and view.waiting[0][1].rev != before.store.rev:
                    differ.add(place[0])  # more happened at once than may wait: some of it is seen already
        return frozenset(range(len(self.system.loops))) - differ

    def note(self, state: int, settled: list[int]) -> None:
        """Notes what was settled where."""
        for number in settled:
            self._states.append(state)
            self._settled.append(number)

    def _place(self, node: Node) -> Place:
        """What stands for a node, in this search and in those that follow it."""
        if not self.system.reexec.memo:
            return _way_to(node)
        if not self.portable:
            return node
        found = self._places.get(node)
        if found is None:
            found = self._places[node] = _way_to(node)
        return found

    def _judged(self, world: World, item: Item, flight: Flight | None) -> tuple[int, Node] | None:
        """The reconcile of an item, if it changes nothing from here and may be settled: its number and its end."""
        if item in self.stubborn or not self._comes_back(world, item):
            return None
        system, loop = self.system, item[0]
        node = system.reexec.root(loop, item[1], world.memory.get(loop))
        wanted = None if flight is None else self._place(flight.node)
        through = wanted is None or self._place(node) == wanted
        versions: dict[Key, tuple[Object, ...]] = {}
        effects: list[Effect] = []
        due: int | None = None
        while (effect := node.effect) is not None:
            self.looked = (item, 1 if flight is None else flight.node.depth + 1, node.depth + 1)
            if effect.op in ("get", "list") and not (effect.fresh and (system.lag or self._left(world))):
                effects.append(effect)
            elif effect.op == "after":
                pass
            elif effect.op != "stamp" or system.horizon is not None:
                return None
            value = world.perform(loop, effect)
            if value is False:
                due = min(sum(effect.what), due) if due is not None else sum(effect.what)
            outcome = outcome_of(value, system.canon, versions)
            node = system.reexec.advance(node, outcome)
            versions = with_versions(versions, value)  # type: ignore[assignment]
            through = through or self._place(node) == wanted
        place = self._place(node)
        if not through or place in self.wrong or not self._is_nothing(world, item, _result(node), node, due):
            return None
        found = self._known.get(place)
        if found is None:
            found = self._known[place] = self._keep(item, node, place, effects)
        return found[0], node

    def _keep(self, item: Item, node: Node, place: Place, effects: list[Effect]) -> tuple[int, Settled]:
        reads = [1 << self.log.read(item, effect) for effect in effects]
        first = 0
        for bit in reads[:-1] if self.system.by_call else ():
            first |= bit
        everything = 0
        for bit in (*reads, *[1 << self.log.read(item, None, name) for name in _result(node).names]):
            everything |= bit
        found = Settled(item, place, first, everything)
        self._list.append(found)
        return len(self._list) - 1, found

    def _is_nothing(self, world: World, item: Item, result: Result, node: Node, due: int | None) -> bool:
        """Whether a reconcile that wrote nothing leaves nothing behind but, perhaps, the same timer as at any time."""
        if result.error is not None or result.requeue or result.memory != node.memory:
            return False
        if due is not None and (result.requeue_at is None or result.requeue_at > due):
            return False  # it looked at a time and does not ask to be woken then
        if self.system.horizon is None:
            return True
        before = world.wakes.get(item)
        return result.requeue_after is None and before in (None, result.requeue_at)

    def _comes_back(self, world: World, item: Item) -> bool:
        """With crashes left: whether a restart would put the item on its queue again. One of a key that is gone makes
        a crash noticeable, so it stays."""
        if "crash" not in self._left(world):
            return True
        if self._listed[0] is not world.store:
            self._listed = (world.store, {})
        listed = self._listed[1].get(item[0])
        if listed is None:
            listed = self._listed[1][item[0]] = frozenset(self.system.loops[item[0]].initial(world.store))
        return item[1] in listed

    def _left(self, world: World) -> frozenset[str]:
        """The faults that may still happen."""
        return self.system.budgets.left(world.budgets).ops if world.budgets else frozenset()

    # -- reads at once -------------------------------------------------------------------------------------------

    def forced(self, world: World, state: int) -> Action | None:
        """A read in flight that is to be taken before anything else; None when there is none."""
        system = self.system
        if system.by_write:
            return None
        for item in sorted(world.flights):
            flight = world.flights[item]
            node, effect = flight.node, flight.node.effect
            if effect is None or flight.waiting is not None:
                continue
            place = self._place(node)
            if place in self.wrong:
                continue
            if flight.wrote and "crash" in self._left(world):
                continue  # its end would hide a crash
            if effect.op in ("get", "list"):
                if effect.fresh and (system.lag or self._left(world)):
                    continue
                number = self._forced.get(place)
                if number is None:
                    number = self._forced[place] = len(self._nodes)
                    self._nodes.append((place, 1 << self.log.read(item, effect)))
                self._read_states.append(state)
                self._reads.append(number)
            elif not self._fixed(world, effect):
                continue
            return Action("cont", system.loops[item[0]].name, item[1], node.depth + 1)
        return None

    def _fixed(self, world: World, effect: Effect) -> bool:
        """Whether an answer about time is the same for ever."""
        if effect.op == "after":
            return bool(world.now >= sum(effect.what))
        return effect.op == "stamp" and self.system.horizon is None

    # -- verification --------------------------------------------------------------------------------------------

    def unsafe(self, graph: Graph, rounds: int) -> bool:
        """Verifies all guesses in a finished graph. What was wrong is not guessed again; whether anything was."""
        log = self.log
        count = len(log.reads)
        masks = []
        for number, change in enumerate(log.changes):
            (tears, misses), (more, still) = self.masks(change), log.elsewhere.get(number, (0, 0))
            masks.append(tears | more | ((misses | still) << count))
        futures = log.futures(graph, masks)
        before = len(self.wrong)
        for state, number in zip(self._states, self._settled, strict=True):
            settled = self._list[number]
            if futures[state] & (settled.first | (settled.all << count)):
                self.wrong.add(settled.end)
                if rounds >= ROUNDS:
                    self.stubborn.add(settled.item)
        for state, number in zip(self._read_states, self._reads, strict=True):
            place, bit = self._nodes[number]
            if futures[state] & bit:
                self.wrong.add(place)
        return len(self.wrong) > before

    def masks(self, change: Change, first: int = 0) -> tuple[int, int]:
        """The reads, from a number on, as sets of bits, whose answer a change makes another one; and those of them that
        it does not wake."""
        log, tears, misses = self.log, 0, 0
        for number, read in enumerate(log.reads[first:]):
            if read is not None and log.visible(change, read):
                loop = read.item[0]
                if read.effect is not None and not (change.actor == loop and self.system.loops[loop].workers == 1):
                    tears |= 1 << number
                if not log.woken(change, read.item):
                    misses |= 1 << number
        return tears, misses

    # -- several processes ---------------------------------------------------------------------------------------

    @property
    def notes(self) -> tuple[array[int], ...]:
        """States and the numbers of what was settled in them; states and the numbers of reads taken at once there."""
        return self._states, self._settled, self._read_states, self._reads

    @property
    def size(self) -> tuple[int, int]:
        """How many reconciles and how many reads have numbers."""
        return len(self._list), len(self._nodes)

    def since(self, size: tuple[int, int]) -> tuple[list[Settled], list[tuple[Place, int]]]:
        """Those that have got one since."""
        return self._list[size[0] :], self._nodes[size[1] :]

    def join(self, settled: Iterable[Settled], nodes: Iterable[tuple[Place, int]]) -> None:
        """Gives numbers to those of another process."""
        self._list += settled
        self._nodes += nodes

    def again(self, log: Log) -> Settler:
        """For the next search of the same system: with what is known by now."""
        other = Settler(self.system, log, self.portable)
        other.wrong, other.stubborn = self.wrong, self.stubborn
        return other


def _way_to(node: Node) -> int:
    start = orjson.dumps(node.memory, option=SORTED)
    return digest(node.loop, node.key, start, *[outcome.concrete for outcome in node.journal()])


def _result(node: Node) -> Result:
    assert node.result is not None
    return node.result
