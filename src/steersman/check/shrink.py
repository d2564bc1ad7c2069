"""Minimisation of schedules: ddmin and drop-one over lenient replay.

Lenient replay skips labels that are not enabled, so every subsequence of a schedule is a schedule. What is kept in the
end is only what was really taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from steersman.kernel.action import Action
from steersman.kernel.transition import apply, enabled
from steersman.kernel.world import World

Reproduces = Callable[[Sequence[Action]], Sequence[Action] | None]
"""Replays a candidate leniently; the actions really taken until the fault showed, or None when it did not."""


def minimise(actions: Sequence[Action], reproduces: Reproduces, budget: int = 2_000) -> list[Action]:
    """A schedule from which no single step can be dropped (within `budget` replays) and which still reproduces."""
    kept = reproduces(actions)
    if kept is None:
        return list(actions)
    current = list(kept)
    spent = 1
    chunk = max(1, len(current) // 2)
    while spent < budget:
        smaller = None
        for start in range(0, len(current), chunk):
            candidate = current[:start] + current[start + chunk :]
            spent += 1
            taken = reproduces(candidate)
            if taken is not None and len(taken) < len(current):
                smaller = list(taken)
                break
            if spent >= budget:
                break
        if smaller is not None:
            current = smaller
            chunk = min(chunk, max(1, len(current) // 2))
        elif chunk == 1:
            break
        else:
            chunk //= 2
    return current


def replay(world: World, actions: Sequence[Action], stop: Callable[[World], bool]) -> tuple[list[Action], World, bool]:
    """Lenient replay: the actions taken, the world after them, and whether `stop` said so in it."""
    taken: list[Action] = []
    if stop(world):
        return taken, world, True
    for action in actions:
        if action in enabled(world):
            world = apply(world, action)
            taken.append(action)
            if stop(world):
                return taken, world, True
    return taken, world, False
