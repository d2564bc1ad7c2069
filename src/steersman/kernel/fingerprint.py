"""The fingerprint of a world: equal for two states exactly when no future can tell them apart (as far as we know).

A sum of terms: the store's canonical sum and the work queues' are kept running; what is small is hashed when asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import orjson

from .civil import micro_of
from .disturb import RFC3339
from .effect import MICRO, Commit
from .identity import digest, term
from .object import MASK, SORTED, Key, Object
from .store import Store
from .world import Flight, World

TIMES_LIMIT: Final = 1 << 18
"""Sections whose times are remembered; emptied when full."""


def fingerprint(world: World) -> int:
    """128 bits of everything that any future can depend on, in canonical form."""
    system = world.system
    canon = system.canon
    total = world.store.sum_canonical + world.sum_pending
    apart: dict[Key, list[Any]] = {}
    for (loop, key), flight in world.flights.items():
        where = places(world, loop, flight.versions, apart)
        total += term("flight", loop, key, flight.node.canonical, flight.wrote, where)
        if flight.waiting is not None:
            total += _waiting(world, loop, key, flight)
    for (loop, gk), view in world.views.items():
        parts: list[Any] = ["view", loop, gk, view.how] if view.how else ["view", loop, gk]
        number = 0
        for (_, key, old, new), _ in view.waiting:
            number += 1
            parts.append(key)
            if new is None:
                parts.append(0)
            else:
                found = new._canon
                parts.append(found[1] if found is not None and found[0] is canon else canon.of(new))
            if old is None:
                parts.append(0)
                continue
            found = old._canon
            if found is None or found[0] is not canon:
                found = canon.both(old)
            parts.append(found[1])
            if found[2]:
                _apart(world, key, found[2], ("view", loop, gk, number), apart)
        total += term(*parts)
    if apart:
        total += _ranks(world, apart)
    for loop, memory in world.memory.items():
        total += digest("memory", loop, orjson.dumps(memory, option=SORTED))
    if world.wakes or system.horizon is not None or not system.canon.table:
        total += _times(world)
    for index, state in enumerate(world.components):
        total += digest("component", index, _identity(system.components[index], state, world.now))
    if world.rare is not None:
        total += world.rare.identity()
    return (total + term("rest", world.budgets, world.users)) & MASK


def _waiting(world: World, loop: int, key: Key, flight: Flight) -> int:
    """A write on its way through its webhooks: what it asks or brings, and whether its slot still is as it was."""
    canon, waiting, begun = world.system.canon, flight.waiting, flight.begun
    parts: list[Any] = ["waiting", loop, key, 0 if begun is None else canon.of(begun)]
    effect = flight.node.effect
    slot = key if effect is None else effect.what.key
    if isinstance(waiting, Commit):
        slot = waiting.key
        parts += ["commit", slot, 0 if waiting.new is None else canon.of(waiting.new)]
    elif waiting is not None:
        parts += [waiting.kind, waiting.question]
    head = world.store.get(slot)
    parts.append((0 if head is None else head.rv) == (0 if begun is None else begun.rv))
    return digest(*parts)


def _identity(component: Any, state: Any, now: int) -> Any:
    """What a component's future depends on beside the store: its own word for it."""
    identity = getattr(component, "identity", None)
    if identity is None:
        raise TypeError(f"{component.name} has no identity(state, now) and cannot be searched; use its plain twin")
    return identity(state, now)


# -- versions of one slot ------------------------------------------------------------------------------------------


def places(world: World, loop: int, versions: Any, apart: dict[Key, list[Any]]) -> tuple[int, ...]:
    """Where the versions a reconcile has seen are now: 0 at the head, n at the n-th stop of its view, -1 nowhere any
    more. What it holds may still be the newest, or come to be read again; beyond that revisions mean nothing."""
    out: list[int] = []
    get = world.store.get
    for key, seen in versions.items():
        head = get(key)
        revs = [0 if head is None else head.rv]
        view = world.views.get((loop, (key.group, key.kind))) if world.views else None
        if view is not None:
            for event, _ in view.waiting:
                if event.key == key:
                    revs.append(0 if event.old is None else event.old.rv)
        for number, obj in enumerate(seen):
            where = revs.index(obj.rv) if obj.rv in revs else -1
            out.append(where)
            if where < 0:
                counters = world.system.canon.counters(obj)
                if counters:
                    _apart(world, key, counters, ("flight", loop, key, number), apart)
    return tuple(out)


def _apart(world: World, key: Key, counters: tuple[int, ...], place: Any, apart: dict[Key, list[Any]]) -> None:
    """Notes the generations of an old version, if they are not the newest's."""
    head = world.store.get(key)
    if head is None or world.system.canon.counters(head) != counters:
        apart.setdefault(key, []).append((place, counters))


def _ranks(world: World, apart: dict[Key, list[Any]]) -> int:
    """How the generations of old versions that somebody still holds relate to each other's and to the newest's: a
    status written from an old version is told from the next one by nothing else."""
    total = 0
    for key, held in apart.items():
        head = world.store.get(key)
        newest = () if head is None else world.system.canon.counters(head)
        order = sorted({counter for _, counters in held for counter in counters} | set(newest))
        ranks = tuple([order.index(counter) for counter in newest])
        for place, counters in held:
            total += term("ranks", key, place, tuple([order.index(counter) for counter in counters]), ranks)
    return total


# -- time ------------------------------------------------------------------------------------------------------------


def _times(world: World) -> int:
    """Timers and, where times are compared, how long ago each of them was.

    Nobody compares times: when a timer rings makes no difference, only that it may. Else every time counts by its
    distance from now, up to the longest delay that anybody compares with (what is older is just old; the second now is
    in is told from the past, since an object made now has the same time), and by its place in the order of times. With
    the table switched off everything counts as it is.
    """
    system, now = world.system, world.now
    if not system.canon.table:
        return digest("now", now) + sum(term("wake", item, at) for item, at in world.wakes.items())
    if system.horizon is None:
        return sum(term("wake", item) for item in world.wakes)
    total = sum(term("wake", item, max(0, at - now)) for item, at in world.wakes.items())
    total += term("fraction", now % MICRO)
    clip = max(system.horizon, MICRO)
    distinct = _distinct(world)
    if len(distinct) <= 1:  # the usual case; which fields hold it is in the canonical digests
        return total + sum(term("one time", min(now - time, clip)) for time in distinct)
    rank = {time: number for number, time in enumerate(sorted(distinct))}
    for place, times in _held(world):
        total += term("times", place, tuple([(min(now - time, clip), rank[time]) for time in times]))
    return total


def _distinct(world: World) -> set[int]:
    """Every time that anything in the world holds."""
    distinct = set(_times_of_store(world.store)[0])
    for view in world.views.values():
        for event, _ in view.waiting:
            if event.old is not None:
                distinct.update(_times_of(event.old))
    for flight in world.flights.values():
        for seen in flight.versions.values():
            for obj in seen:
                distinct.update(_times_of(obj))
        distinct.update(flight.node.stamps)
    for memory in world.memory.values():
        distinct.update(_parsed(orjson.dumps(memory, option=SORTED)))
    return distinct


def _held(world: World) -> Iterator[tuple[Any, tuple[int, ...]]]:
    """Every place that holds times, and its times in the order in which they stand there."""
    yield from _times_of_store(world.store)[1]
    for (loop, gk), view in world.views.items():
        for number, (event, _) in enumerate(view.waiting):
            if event.old is not None:
                yield ("view", loop, gk, number, event.key), _times_of(event.old)
    for item, flight in world.flights.items():
        for key, seen in flight.versions.items():
            for number, obj in enumerate(seen):
                yield ("flight", item, key, number), _times_of(obj)
        if flight.node.stamps:
            yield ("stamps", item), flight.node.stamps
    for loop, memory in world.memory.items():
        yield ("memory", loop), _parsed(orjson.dumps(memory, option=SORTED))


def _times_of_store(store: Store) -> tuple[tuple[int, ...], list[tuple[Any, tuple[int, ...]]]]:
    """(distinct times, times by object) of a store; kept with it, for most actions do not write."""
    found: tuple[tuple[int, ...], list[tuple[Any, tuple[int, ...]]]] | None = store.times
    if found is None:
        held = [(("head", obj.key), times) for obj in store.objects() if (times := _times_of(obj))]
        found = store.times = (tuple({time: None for _, times in held for time in times}), held)
    return found


def _times_of(obj: Object) -> tuple[int, ...]:
    times = obj.times
    if times is None:
        times = ()
        for section in (obj.meta, obj.spec, obj.rest, obj.status):
            if section is not None:
                found = _known.get(section.digest)
                if found is None:
                    if len(_known) >= TIMES_LIMIT:
                        _known.clear()
                    found = _known[section.digest] = _parsed(section.raw)
                times += found
        obj.times = times
    return times


_known: dict[int, tuple[int, ...]] = {}


def _parsed(raw: bytes) -> tuple[int, ...]:
    """The times in a JSON text, in its order, in microseconds since the epoch (as `api.times` counts them)."""
    return tuple([micro_of(match) for match in RFC3339.finditer(raw.decode())])
