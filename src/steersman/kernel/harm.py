"""What faults do to a world: the transitions of the catalogue (`kernel.faults`), in place, for whoever holds a fork."""

from __future__ import annotations

from typing import Any, Final

from .effect import GK, Call, Commit, Effect
from .faults import Left
from .object import Key
from .world import Flight, Item, World

CHANGING: Final = ("update", "patch", "apply")
"""Verbs whose write can lose against another writer's."""


# -- at a call of a reconcile ----------------------------------------------------------------------------------------


def possible(left: Left, flight: Flight) -> list[str]:
    """Which of the faults left can befall the next call of a reconcile in flight."""
    effect = flight.node.effect
    assert effect is not None
    if flight.waiting is not None:
        fits = "lose-reply" if isinstance(flight.waiting, Commit) else "timeout"
        return [op for op in left.at_a_call if op == fits]
    if effect.op == "write":
        changing = effect.what.verb in CHANGING
        return [op for op in left.at_a_call if op != "conflict" or changing]
    if effect.fresh and effect.op in ("get", "list"):
        return [op for op in left.at_a_call if op not in ("conflict", "lose-reply")]
    return []


def befall(world: World, item: Item, op: str) -> None:
    """A fault takes the place of the next call's answer."""
    flight = world.flights[item]
    effect = flight.node.effect
    refuse = world.system.refuse
    assert effect is not None and refuse is not None
    world.budgets = world.system.budgets.spend(world.budgets, op)
    what = world.request_of(flight.node, flight, effect.what) if effect.op == "write" else effect.what
    if op == "lose-reply":
        _do(world, flight, what)
    wrote = op in ("conflict", "lose-reply")
    world.answered(item, flight._replace(waiting=None, begun=None), refuse(op, what), wrote)


def _do(world: World, flight: Flight, request: Any) -> None:
    """The write whose answer nobody will hear, webhooks included."""
    if isinstance(flight.waiting, Commit):
        world.commit_now(flight.waiting)
        return
    value = world.write(request)
    while isinstance(value, Call):
        value = world.resumed(value)


def undone(op: str, effect: Effect, events: list[Any]) -> bool:
    """Whether a reply that was lost was a refusal: nothing was done."""
    return op == "lose-reply" and effect.op == "write" and not events


# -- crashes ---------------------------------------------------------------------------------------------------------


def losers(world: World) -> set[int]:
    """Controllers whose crash can be noticed: half done work, memory, or the news that something is gone would be
    lost. Everything else a restart brings back: its first list puts every key there is on the queue."""
    out = {loop for (loop, _), flight in world.flights.items() if flight.wrote}
    out.update(world.memory)
    listed: dict[int, set[Key]] = {}
    for loop, key in (*world.pending, *world.flights, *world.wakes):
        if loop not in out:
            if loop not in listed:
                listed[loop] = set(world.system.loops[loop].initial(world.store))
            if key not in listed[loop]:
                out.add(loop)
    for (loop, _), view in world.views.items():
        if loop not in out and any(event.new is None for event, _ in view.waiting):
            out.add(loop)
    return out


def end(world: World, loop: int) -> None:
    """A controller's process ends: what was in flight, queued or remembered is lost, and so are its views."""
    for item in [item for item in world.flights if item[0] == loop]:
        del world.flights[item]
    for item in [item for item in world.pending if item[0] == loop]:
        world.take(item)
    for item in [item for item in world.wakes if item[0] == loop]:
        world.forget_wake(item)
    if loop in world.memory:
        world.memory = world.own(world.memory)
        del world.memory[loop]
    if any(place[0] == loop for place in world.views):
        world.views = {place: view for place, view in world.views.items() if place[0] != loop}


def crash(world: World, loop: int) -> None:
    """A controller's process ends and starts again: its first list is of what there is now."""
    end(world, loop)
    for key in world.system.loops[loop].initial(world.store):
        world.enqueue(loop, key)


# -- watches ---------------------------------------------------------------------------------------------------------


def relist(world: World, loop: int, gk: GK) -> None:
    """A view that fell off the log (410) jumps to the head; every key it may have missed is reconciled."""
    world.views = {place: view for place, view in world.views.items() if place != (loop, gk)}
    for key in world.system.loops[loop].initial(world.store):
        world.enqueue(loop, key)
