"""Confirmation: a counterexample in which trees of objects overtook each other in a cache is found again with one queue
a kind, as real watches are, or it is none.

What everybody but the caches does is kept: the same steps in the same order, with the same stores after each. Only when
events are delivered is searched for again, with any lag.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from steersman.check.bounds import Bounds
from steersman.check.explore import Explorer
from steersman.check.verdict import Violation
from steersman.kernel.action import Action
from steersman.kernel.fingerprint import fingerprint
from steersman.kernel.schedule import Schedule
from steersman.kernel.system import Learned
from steersman.kernel.transition import apply, enabled
from steersman.kernel.world import World

MAX_WORLDS: Final = 20_000
"""Worlds looked at for one counterexample: deliveries in every order between some dozens of steps."""

Told = tuple[str, int]
"""A step that is no delivery, and what there is after it."""


def sort_out(explorer: Explorer) -> None:
    """Takes what is not confirmed out of the violations of a search by trees."""
    verdict = explorer.verdict
    kept: list[Violation] = []
    for violation in verdict.violations:
        found = violation.kind == "finding" or confirmed(explorer, violation) is not None
        (kept if found else verdict.unconfirmed).append(violation)
    verdict.violations[:] = kept
    if verdict.unconfirmed and not verdict.incomplete:
        names = ", ".join([violation.title for violation in verdict.unconfirmed])
        verdict.incomplete = f"only where trees of objects overtake each other: {names}"


def confirmed(explorer: Explorer, violation: Violation) -> Schedule | None:
    """A run with one queue a kind that does the same; None when none was found."""
    ways = [(*violation.actions, *violation.cycle), *([violation.other] if violation.other else [])]
    found = [_queued(explorer, way) for way in ways]
    return None if any(way is None for way in found) else found[0]


def _queued(explorer: Explorer, way: Sequence[Action]) -> Schedule | None:
    told = _told(explorer.world_at([]), way)
    bounds = Bounds(lag=max(1, len(way)), atomic=explorer.bounds.atomic, **explorer.bounds.faults)
    plain = Explorer(explorer.scenario, bounds, settle=False, clusters=False)
    plain.assume_reads(explorer.reads())
    while True:
        try:
            return _searched(plain.scenario.world(plain.system), told)
        except Learned as learned:
            plain.system.learn(learned)


def _told(world: World, way: Sequence[Action]) -> list[Told]:
    out = []
    for action in way:
        world = apply(world, action)
        if action.op != "deliver":
            out.append((action.label, world.contents))
    return out


def _searched(first: World, told: list[Told]) -> Schedule | None:
    queue: deque[tuple[int, World, tuple[str, ...]]] = deque([(0, first, ())])
    seen = {(0, fingerprint(first))}
    while queue and len(seen) < MAX_WORLDS:
        at, world, way = queue.popleft()
        if at == len(told):
            return Schedule(way)
        for action in enabled(world):
            if action.op != "deliver" and action.label != told[at][0]:
                continue
            after = apply(world, action)
            done = at + (action.op != "deliver")
            if done > at and after.contents != told[at][1]:
                continue
            place = (done, fingerprint(after))
            if place not in seen:
                seen.add(place)
                queue.append((done, after, (*way, action.label)))
    return None
