"""Ways through a reduced graph, as ways through the whole one.

A search that settles leaves out reconciles that change nothing, so its paths lead to worlds in which these are still on
a queue. That makes no difference but at rest, and where a cycle closes: there they are put in. Turns (see
`kernel.transition`) become the calls they consist of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from steersman.check.scenario import Scenario
from steersman.kernel.action import Action
from steersman.kernel.system import System
from steersman.kernel.transition import apply, calls, enabled
from steersman.kernel.world import Item, World

GOING_ON: Final = ("run", "cont", "turn")
"""Steps of a reconcile that can be left out."""

Settle = Callable[[World], object]


def in_calls(scenario: Scenario, system: System, actions: Iterable[Action]) -> tuple[Action, ...]:
    """A way from the first world on, with the single calls in the place of turns."""
    if not system.by_write:
        return tuple(actions)
    world, out = scenario.world(system), list[Action]()
    for action in actions:
        out += calls(world, action)
        world = apply(world, action)
    return tuple(out)


class Way:
    """A real world and its reduced one, side by side."""

    def __init__(self, first: World, settle: Settle) -> None:
        self.real = first
        self.small = first.fork()
        self._settle = settle
        settle(self.small)

    def go(self, actions: Iterable[Action], to_rest: bool) -> list[Action]:
        """Takes steps of the reduced graph, then, with `to_rest`, whatever was left out; all of it."""
        taken: list[Action] = []
        for action in actions:
            if action.op == "fire":  # the timer may have been set by what was left out
                taken += self._catch_up(action)
            taken += calls(self.real, action)
            self.real = apply(self.real, action)
            self.small = apply(self.small, action)
            self._settle(self.small)
        return [*taken, *self._catch_up()] if to_rest else taken

    def _catch_up(self, only: Action | None = None) -> list[Action]:
        """Takes what was left out; of one item, where `only` is an action of it."""
        out: list[Action] = []
        moved = True
        while moved:
            moved = False
            for action in enabled(self.real):
                item = (self.real.system.loop_index(action.who), action.key) if action.op in GOING_ON else None
                ours = only is None or (action.who, action.key) == (only.who, only.key)
                if item is not None and ours and self._is_owed(item):
                    out += calls(self.real, action)
                    self.real = apply(self.real, action)
                    moved = True
                    break
        return out

    def _is_owed(self, item: Item) -> bool:
        small = self.small
        begun = item in self.real.flights
        return item not in small.flights and (begun or item not in small.pending)
