"""Sleep: of two steps that have nothing to do with each other only one order is executed.

Sleep sets leave out, after a step, what was done beside it before and commutes with it (Godefroid). Here such a
transition is not left out but known: it leads where the two steps lead in the other order, and that was executed
already. So the graph keeps every state and every transition, and what is judged on it (fairness above all) stays exact;
what is saved is taking the step, settling and fingerprinting.

Sets are kept for the states of the last two depths: the search is breadth first.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from steersman.check.graph import NONE, Graph
from steersman.check.reduce.changes import HEAD, Change, Log, Read
from steersman.kernel.action import Action
from steersman.kernel.effect import Effect, Event
from steersman.kernel.system import System
from steersman.kernel.world import Item, World

KINDS: Final = frozenset(["run", "cont", "deliver"])
"""Steps that are compared. Faults share their budgets, timers the time, people may look at anything."""


class Step(NamedTuple):
    """One executed transition."""

    target: int
    item: Item
    """Whose; for a delivery the key is the kind."""
    op: str
    read: Effect | None
    """What it asked."""
    writes: bool
    """It was a write, refused or not."""
    changes: tuple[Change, ...]
    events: tuple[Event, ...]
    looked: tuple[Effect, ...]
    """What decided whom it woke."""


class Sleeper:
    """What was executed around the states of one search."""

    def __init__(self, system: System, log: Log) -> None:
        self.system = system
        self.log = log
        self.spared = 0
        """Transitions that were known."""
        self._steps: dict[int, dict[Action, Step]] = {}
        self._old: dict[int, dict[Action, Step]] = {}

    @staticmethod
    def suits(system: System) -> bool:
        """Whether single calls are steps: whole reconciles read and write too much at once."""
        return system.by_call

    def done(self, state: int, before: World, action: Action, target: int, after: World, changes: list[Change]) -> None:
        """Notes an executed transition."""
        if action.op not in KINDS:
            return
        item = (self.system.loop_index(action.who), action.key)
        flight = before.flights.get(item) if action.op == "cont" else None
        effect = None if flight is None else flight.node.effect
        read = effect if effect is not None and effect.op in ("get", "list") else None
        writes = effect is not None and read is None
        looked = tuple(self.log.looked)
        step = Step(target, item, action.op, read, writes, tuple(changes), tuple(after.events), looked)
        self._steps.setdefault(state, {})[action] = step

    def known(self, graph: Graph, state: int, action: Action) -> Step | None:
        """Where an action leads from a state, if that is known: the same step, taken before the one that led here."""
        parent = graph.parent[state]
        if parent == NONE or action.op not in KINDS:
            return None
        steps = self._at(parent)
        came = graph.actions[graph.via[state]]
        first, other = steps.get(came), steps.get(action)
        if first is None or other is None or not self.independent(first, other):
            return None
        if self.log.collapsed is not None and (
            graph.parent[other.target] != parent or graph.actions[graph.via[other.target]] != action
        ):
            return None  # perhaps another world was taken for it, in which names stand for others
        there = self._at(other.target).get(came)
        if there is None:
            return None
        self.spared += 1
        again = other._replace(target=there.target)
        self._steps.setdefault(state, {})[action] = again
        return again

    def _at(self, state: int) -> dict[Action, Step]:
        return self._steps.get(state) or self._old.get(state) or {}

    def deeper(self) -> None:
        """The search has come to the next depth."""
        self._old, self._steps = self._steps, {}

    # -- independence --------------------------------------------------------------------------------------------

    def independent(self, a: Step, b: Step) -> bool:
        """Whether two steps that are possible in one state lead to the same one in either order."""
        if a.item[0] == b.item[0] or (a.writes and b.writes):
            return False
        return self._leaves(a, b) and self._leaves(b, a)

    def _leaves(self, a: Step, b: Step) -> bool:
        """Whether one step changes nothing about another one of another controller."""
        for change in a.changes:
            event = change.event
            if event is None:
                continue
            if change.viewer == HEAD:
                if b.writes or any(self.log.affects(effect, event) for effect in b.looked):
                    return False
                if b.op == "deliver" and event.key.gk == b.item[1].gk:
                    return False
            elif change.viewer == b.item[0]:
                return False
            if b.op == "run" and b.item in change.woken:
                return False
            if b.read is not None and self.log.visible(change, Read(b.item, b.read)):
                return False
        return True
