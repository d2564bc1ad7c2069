"""Probes: what a reconcile that nothing has asked for would do to a state at rest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from steersman.kernel.effect import Commit, Effect, Event, Request
from steersman.kernel.faults import FAULTY
from steersman.kernel.object import Key
from steersman.kernel.reexec import Node
from steersman.kernel.transition import enabled, step
from steersman.kernel.world import World

Item = tuple[int, Key]
WAITING: Final = frozenset({"fire", "user", "advance"})
"""What need not come at once after a step: timers, people, components."""
PROBE: Final = "user:probe"
"""Who changes something to see what comes of it."""
MAX_STEPS: Final = 400
"""Steps until a disturbed world is at rest again: beyond that it is taken to be restless."""


class Probe(NamedTuple):
    """One reconcile of one item, without anybody in between."""

    item: Item
    after: World
    events: tuple[Event, ...]
    """What it committed, if that makes a difference (see `kernel.identity.TABLE`)."""
    changed: bool
    """It made a difference to the store, or to an external system."""
    nodes: tuple[Node, ...]
    """Its calls, in order."""

    @property
    def calls(self) -> Iterator[Effect]:
        """What it asked for."""
        return (node.effect for node in self.nodes if node.effect is not None)


def asked(world: World, request: Request) -> World:
    """The world after somebody asked for a change, be it refused."""
    after = world.fork()
    after.request(request, PROBE)
    return after


def probe(world: World, item: Item) -> Probe:
    """Reconciles an item now, to its end."""
    after = world.fork()
    after.enqueue(*item)
    after.run(item)
    nodes: list[Node] = []
    while item in after.flights:
        flight = after.flights[item]
        if flight.waiting is None:
            nodes.append(flight.node)
            after.cont(item)
        elif isinstance(flight.waiting, Commit):
            after.commit(item)
        else:
            after.call(item)
    changed = after.contents != world.contents
    return Probe(item, after, tuple(after.events) if changed else (), changed, tuple(nodes))


def asleep(world: World) -> Iterator[Item]:
    """Items that a restart would bring back, and that nothing wakes as things are."""
    for index, loop in enumerate(world.system.loops):
        for key in () if world.is_down(index) else loop.initial(world.store):
            item = (index, key)
            if not (item in world.pending or item in world.flights or item in world.wakes):
                yield item


def rested(world: World) -> World | None:
    """The world once everybody has done what there is to do, in the order of their names, with all events on the way;
    None when that has no end. Timers, people and faults wait."""
    world = world.fork()
    for _ in range(MAX_STEPS):
        action = next((a for a in enabled(world) if a.op not in WAITING and a.op not in FAULTY), None)
        if action is None:
            return world
        step(world, action)
    return None


def unheard(world: World, done: Probe) -> list[str]:
    """What a reconcile looked at without being woken when it changes: `ConfigMap`, or `ConfigMap default/a`."""
    loop = world.system.loops[done.item[0]]
    out: dict[str, None] = {}
    for effect in done.calls:
        if effect.op not in ("get", "list"):
            continue
        gk = effect.what.gk
        if not loop.listens(gk):
            out[f"{gk[1]}s"] = None
            continue
        found: Any = world.perform(done.item[0], effect)
        for obj in found if isinstance(found, tuple) else (found,):
            if obj is not None and done.item[1] not in loop.triggers(Event(obj.rv, obj.key, obj, obj), world.store):
                out[f"this {gk[1]}"] = None
    return list(out)
