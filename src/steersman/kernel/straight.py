"""Whole reconciles at once: how simulate runs a controller, where nothing can come between two of its calls."""

from __future__ import annotations

from typing import Any

from .action import Action
from .effect import Effect
from .reexec import Result
from .world import Item, World


def run_through(world: World, item: Item, labels: list[str] | None = None) -> Result:
    """Takes an item and runs its whole reconcile, in place. `labels` collects the labels of the Actions this amounts
    to: the same that check would take. Nothing is in flight meanwhile, so names and uids that only this reconcile still
    knows may be drawn again by `draw_smallest`: draw them seeded."""
    loop, key = item
    reconciler = world.system.loops[loop]
    world.take(item)
    calls = 0
    if labels is not None:
        labels.append(Action("run", reconciler.name, key).label)

    def exchange(effect: Effect) -> Any:
        nonlocal calls
        if effect.op == "event":
            return None  # see reexec: it is no Action
        calls += 1
        if labels is not None:
            labels.append(Action("cont", reconciler.name, key, calls).label)
        return world.exchange(loop, reconciler.name, effect)

    memory = world.memory.get(loop)
    result = reconciler.execute(key, memory, exchange)
    world.finish(item, result, memory)
    return result
