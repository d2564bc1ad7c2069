"""Lazy deliveries: an event reaches a cache when its controller acts next, not before.

A delivery moves the view of one controller and fills its work queue; nobody else can tell, and no write depends on it.
So it commutes with whatever others do (a write of theirs adds behind what waits; where that is one event too many, it
delivers the oldest itself), and may be put off until its controller acts: starts a reconcile, or goes on with one.
After a delivery, therefore, only that controller moves on: its *turn*, which is part of what the state is known by.
What is left out are the states in which views have moved on and nobody has looked yet, in all their mixtures.

A delivery that gives its controller nothing to do, with what else waits for it, and takes nothing off its hands, is put
off for longer. Where nothing is left but time and people, everything is delivered: what is judged at rest is judged
with caches that have caught up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from steersman.check.reduce.settle import FAULTS
from steersman.kernel.action import Action
from steersman.kernel.effect import Effect
from steersman.kernel.faults import AT_A_CALL, FAULTY
from steersman.kernel.flight import Flight
from steersman.kernel.identity import term
from steersman.kernel.system import System
from steersman.kernel.transition import apply
from steersman.kernel.view import View
from steersman.kernel.world import World

OUTSIDE: Final = frozenset(["fire", "advance", "user"])
"""What moves without any controller: time and people."""


class Lazy:
    """Whose turn it is in the states of one search."""

    def __init__(self, system: System, settle: Callable[[World, World], object]) -> None:
        self.system = system
        self._settle = settle
        self.unfit = self._unfit_before = False
        """Whom an event wakes depends on what its controller does not see through a cache: then it matters when it
        comes."""
        self._turns: dict[int, int] = {}
        self._loose: set[int] = set()
        """States in which events are delivered for their own sake."""

    @staticmethod
    def suits(system: System) -> bool:
        """Whether events wait, and nothing but deliveries moves a view."""
        return bool(system.lag) and system.view is View and FAULTS.issuperset([f.op for f in system.budgets.faults])

    def again(self) -> Lazy:
        """For the next search of the same system."""
        other = Lazy(self.system, self._settle)
        other.unfit = other._unfit_before = self.unfit
        return other

    @property
    def grew(self) -> bool:
        """It was found unfit since the search began: what was left out of it may matter."""
        return self.unfit and not self._unfit_before

    def turn_after(self, state: int, action: Action) -> int:
        """Whose turn it is after an action of a state; -1: everybody's."""
        if action.op != "deliver" or self.unfit or state in self._loose:
            return -1
        return self.system.loop_index(action.who)

    def begins(self, state: int, turn: int) -> None:
        """A new state is one of somebody's turn."""
        self._turns[state] = turn

    def is_a_turn(self, state: int) -> bool:
        """Whether it is somebody's turn in a state."""
        return state in self._turns

    @staticmethod
    def identity(turn: int) -> int:
        """What a turn adds to what a state is known by."""
        return 0 if turn < 0 else term("turn", turn)

    def offered(self, world: World, state: int, actions: list[Action]) -> list[Action]:
        """The actions to take in a state, of those that are possible."""
        if self.unfit:
            return actions
        turn = self._turns.get(state, -1)
        mine = self._in_turn(world, turn, actions) if turn >= 0 else []
        if mine:
            return mine
        useful = [each for each in actions if each.op != "deliver" or self._leads(world, each)]
        if all(each.op in OUTSIDE or each.op in FAULTY for each in useful):
            self._loose.add(state)
            return actions
        return useful

    def _in_turn(self, world: World, turn: int, actions: list[Action]) -> list[Action]:
        """What a controller does in its turn: look at something, or hear of more first."""
        name = self.system.loops[turn].name
        return [
            each
            for each in actions
            if each.who == name
            and (self._looks(world, turn, each) or (each.op == "deliver" and self._leads(world, each)))
        ]

    def _leads(self, world: World, action: Action) -> bool:
        """Whether a delivery is followed by something that its controller does, or keeps it from what it would have
        done, be it after more deliveries."""
        after = apply(world, action)
        self._settle(after, world)
        turn = self.system.loop_index(action.who)
        mine = [flight for item, flight in after.flights.items() if item[0] == turn]
        free = len(mine) < self.system.loops[turn].workers
        if free and any(item[0] == turn for item in after.pending if item not in after.flights):
            return True
        if any(flight.waiting is None and _reads(flight) for flight in mine):
            return True
        work = [item for item in (*world.pending, *world.flights) if item[0] == turn]
        if any(item not in after.pending and item not in after.flights for item in work):
            return True
        more = [
            Action("deliver", action.who, key)
            for (loop, _), view in after.views.items()
            if loop == turn
            for key in view.moves()
        ]
        return any(self._leads(after, each) for each in more)

    def _looks(self, world: World, loop: int, action: Action) -> bool:
        """Whether it matters to an action of a controller what has been delivered."""
        if action.op not in ("run", "cont", "turn") and action.op not in AT_A_CALL:
            return False
        flight = world.flights.get((loop, action.key))
        return flight is None or _reads(flight)

    def note(self, looked: Iterable[Effect]) -> None:
        """Hears what was looked at to tell whom an event wakes."""
        for effect in looked:
            gk = effect.what.gk
            if any(gk not in kinds for kinds in self.system.informers):
                self.unfit = True


def _reads(flight: Flight) -> bool:
    """Whether the next call of a reconcile in flight is one that its caches answer."""
    return flight.node.effect is not None and flight.node.effect.op in ("get", "list")
