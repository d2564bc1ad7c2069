"""Ways through a reduced graph, as ways through the whole one.

A search that settles leaves out reconciles that change nothing, so its paths lead to worlds in which these are still on
a queue. That makes no difference but at rest, and where a cycle closes: there they are put in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from steersman.kernel.action import Action
from steersman.kernel.transition import apply, enabled
from steersman.kernel.world import Item, World

Settle = Callable[[World], object]


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
            self.real = apply(self.real, action)
            self.small = apply(self.small, action)
            self._settle(self.small)
            taken.append(action)
        return [*taken, *self._catch_up()] if to_rest else taken

    def _catch_up(self, only: Action | None = None) -> list[Action]:
        """Takes what was left out; of one item, where `only` is an action of it."""
        out: list[Action] = []
        moved = True
        while moved:
            moved = False
            for action in enabled(self.real):
                item = (self.real.system.loop_index(action.who), action.key) if action.op in ("run", "cont") else None
                ours = only is None or (action.who, action.key) == (only.who, only.key)
                if item is not None and ours and self._is_owed(item, action.op):
                    self.real = apply(self.real, action)
                    out.append(action)
                    moved = True
                    break
        return out

    def _is_owed(self, item: Item, op: str) -> bool:
        small = self.small
        if op == "cont":
            return item not in small.flights
        return item not in small.pending and item not in small.flights
