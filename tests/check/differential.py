"""An attack on fingerprints: worlds that are taken for one state must have the same futures.

An ordinary search continues with the first world that reached a state. This one keeps several that are not the same
before canonical form merges them, expands each, and compares: the same Actions must be enabled, and each must lead to
the same fingerprint.
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


def attack(scenario: Scenario, keep: int = 6, limit: int = 20_000, **bounds: Any) -> Report:
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
    ways: dict[int, set[Any]] = {fingerprint(first): {concrete(first)}}
    differences: list[Difference] = []
    while queue and len(futures) < limit:
        world, path = queue.popleft()
        here = fingerprint(world)
        future: dict[str, int] = {}
        for action in enabled(world):
            after = apply(world, action)
            there = future[action.label] = fingerprint(after)
            kept = ways.setdefault(there, set())
            if len(kept) < keep:
                picture = concrete(after)
                if picture not in kept:
                    kept.add(picture)
                    queue.append((after, [*path, action.label]))
        known = futures.setdefault(here, (future, path))
        if known[0] != future:
            differences.append(Difference(known[1], path, _what(known[0], future)))
    return Report(differences, len(futures), sum(1 for kept in ways.values() if len(kept) > 1))


def concrete(world: World) -> Any:
    """What a world is before canonical form merges anything: worlds that differ in it are worth comparing."""
    head = tuple(obj.content for obj in world.store.objects())
    nodes = tuple((item, id(flight.node)) for item, flight in sorted(world.flights.items(), key=lambda one: one[0]))
    held = [obj for flight in world.flights.values() for seen in flight.versions.values() for obj in seen]
    old = [event.old for view in world.views.values() for event, _ in view.waiting if event.old is not None]
    current = tuple(
        world.store.get(obj.key) is not None and world.store.get(obj.key).rv == obj.rv for obj in held + old
    )
    return head, nodes, current, tuple(obj.content for obj in old), world.now, tuple(sorted(world.wakes.items()))


def _what(a: dict[str, int], b: dict[str, int]) -> str:
    if a.keys() != b.keys():
        return f"enabled: only first {sorted(a.keys() - b.keys())}, only second {sorted(b.keys() - a.keys())}"
    return f"leads elsewhere: {[label for label in a if a[label] != b[label]]}"
