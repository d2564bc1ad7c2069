"""The fingerprint of a world: equal for two states exactly when no future can tell them apart (as far as we know).

A sum of terms: the store's canonical sum and the work queues' are kept running; what is small is hashed when asked.
"""

from __future__ import annotations

from typing import Any

import orjson

from .identity import digest, term
from .object import MASK, SORTED
from .world import Flight, World


def fingerprint(world: World) -> int:
    """128 bits of everything that any future can depend on, in canonical form."""
    total = world.store.sum_canonical + world.sum_pending
    for (loop, key), flight in world.flights.items():
        total += term("flight", loop, key, flight.node.canonical, flight.wrote, _relations(world, flight))
    for (loop, gk), view in world.views.items():
        canon = world.system.canon.of
        parts: list[Any] = ["view", loop, gk]
        for event, _ in view.waiting:
            parts.append(event.key)
            parts.append(0 if event.old is None else canon(event.old))
            parts.append(0 if event.new is None else canon(event.new))
        total += term(*parts)
    if world.wakes:
        order = sorted(set(world.wakes.values()))
        for item, at in world.wakes.items():
            total += term("wake", item, order.index(at), at <= world.now)
    for loop, memory in world.memory.items():
        total += digest("memory", loop, orjson.dumps(memory, option=SORTED))
    for index, state in enumerate(world.components):
        total += digest("component", index, world.system.components[index].next_deadline(state) is None)
    return (total + term("rest", world.budgets, world.users)) & MASK


def _relations(world: World, flight: Flight) -> tuple[Any, ...]:
    """How the versions a reconcile has seen relate to the ones it may still meet: the head's and its views'."""
    out: list[Any] = []
    for key, seen in flight.versions.items():
        head = world.store.get(key)
        revs = [0 if head is None else head.rv]
        view = world.views.get((flight.node.loop, (key.group, key.kind)))
        if view is not None:
            for event, before in view.waiting:
                if event.key == key:
                    behind = before.get(key)
                    revs.append(0 if behind is None else behind.rv)
        generation = None if head is None else head.meta.value.get("generation")
        for obj in seen:
            where = revs.index(obj.rv) if obj.rv in revs else -1
            out.append((where, where < 0 and obj.meta.value.get("generation") == generation))
    return tuple(out)
