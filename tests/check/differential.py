"""An attack on fingerprints: worlds that are taken for one state must have the same futures.

An ordinary search continues with the first world that reached a state. This one keeps several, reached by different
ways, expands each, and compares: the same Actions must be enabled, and each must lead to the same fingerprint.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

from steersman.check.explore import Bounds, Explorer
from steersman.check.scenario import Scenario
from steersman.kernel.fingerprint import fingerprint
from steersman.kernel.system import Learned
from steersman.kernel.transition import apply, enabled
from steersman.kernel.world import World


class Difference(NamedTuple):
    """Two ways to one fingerprint with different futures."""

    first: list[str]
    second: list[str]
    what: str


class Report(NamedTuple):
    """What an attack saw: differences, and how many states had more than one way in."""

    differences: list[Difference]
    states: int
    joined: int


def attack(scenario: Scenario, keep: int = 4, limit: int = 20_000, **bounds: Any) -> Report:
    """Searches `scenario`, with up to `keep` worlds a state."""
    explorer = Explorer(scenario, Bounds(**bounds))
    while True:
        try:
            return _attack(explorer, keep, limit)
        except Learned as learned:
            explorer.system.learn(learned)


def _attack(explorer: Explorer, keep: int, limit: int) -> Report:
    first = explorer.scenario.world(explorer.system)
    queue: deque[tuple[World, list[str]]] = deque([(first, [])])
    futures: dict[int, tuple[dict[str, int], list[str]]] = {}
    ways: dict[int, int] = {fingerprint(first): 1}
    differences: list[Difference] = []
    while queue and len(futures) < limit:
        world, path = queue.popleft()
        here = fingerprint(world)
        future: dict[str, int] = {}
        for action in enabled(world):
            after = apply(world, action)
            there = future[action.label] = fingerprint(after)
            if ways.get(there, 0) < keep:
                ways[there] = ways.get(there, 0) + 1
                queue.append((after, [*path, action.label]))
        known = futures.setdefault(here, (future, path))
        if known[0] != future:
            differences.append(Difference(known[1], path, _what(known[0], future)))
    return Report(differences, len(futures), sum(1 for n in ways.values() if n > 1))


def _what(a: dict[str, int], b: dict[str, int]) -> str:
    if a.keys() != b.keys():
        return f"enabled: only first {sorted(a.keys() - b.keys())}, only second {sorted(b.keys() - a.keys())}"
    return f"leads elsewhere: {[label for label in a if a[label] != b[label]]}"
