"""Transitions: which Actions a world has, and the world after one of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from . import harm
from .action import NO_KEY, Action
from .effect import Commit
from .faults import AT_A_CALL, NO_LOOP, Left
from .object import Key
from .view import ENDS, STALLED
from .world import Item, World


def enabled(world: World) -> list[Action]:
    """Everything that can happen next, sorted."""
    system = world.system
    loops = system.loops
    out: list[Action] = []
    busy: dict[int, int] = {}
    left = system.budgets.left(world.budgets) if world.budgets else None
    for (loop, key), flight in world.flights.items():
        busy[loop] = busy.get(loop, 0) + 1
        name = loops[loop].name
        number = flight.node.depth + 1
        if flight.waiting is not None:
            out.append(Action("commit" if isinstance(flight.waiting, Commit) else "call", name, key, number))
        elif system.by_write:
            out += _turns(world, (loop, key), left)
            continue
        else:
            out.append(Action("cont", name, key, number))
        if left is not None and left.at_a_call:
            out.extend([Action(fault, name, key, number) for fault in harm.possible(world, left, flight)])
    for item in world.pending:
        if item not in world.flights and busy.get(item[0], 0) < loops[item[0]].workers:
            if system.by_write:
                out += _turns(world, item, left)
            else:
                out.append(Action("run", loops[item[0]].name, item[1]))
    for (loop, gk), view in world.views.items():
        if view.waiting or view.how == "lose-watch":
            move = ENDS[view.how]
            if move == "deliver":
                out.extend([Action(move, loops[loop].name, key) for key in view.moves()])
            else:
                out.append(Action(move, loops[loop].name, NO_KEY if gk == STALLED else Key(*gk, "", "")))
    for loop, key in world.wakes:
        out.append(Action("fire", loops[loop].name, key))
    if world.rare is not None:
        out.extend(harm.successions(world, world.rare))
    if left is not None and left.ops:
        out.extend(harm.beginnings(world, left))
    for user in world.users:
        out.append(Action("user", system.users[user].name))
    for index, component in enumerate(system.components):
        if component.next_deadline(world.components[index]) is not None:
            out.append(Action("advance", component.name))
    out.sort()
    return out


def apply(world: World, action: Action) -> World:
    """The world after an enabled Action; the given one stays as it is."""
    after = world.fork()
    step(after, action)
    return after


def step(world: World, action: Action) -> None:
    """The same, in place."""
    system = world.system
    op = action.op
    if op == "user":
        names = [user.name for user in system.users]
        world.user(names.index(action.who))
        return
    if op == "advance":
        world.advance([component.name for component in system.components].index(action.who))
        return
    loop = -1 if op in NO_LOOP else system.loop_index(action.who)
    item = (loop, action.key)
    if op == "run":
        world.run(item)
        while system.atomic and item in world.flights:
            world.cont(item)
    elif op == "cont":
        world.cont(item)
    elif op == "turn":
        _turn(world, item)
    elif op == "deliver":
        world.deliver(loop, action.key)
    elif op == "fire":
        world.fire(item)
    elif op == "call":
        world.call(item)
    elif op == "commit":
        world.commit(item)
    elif op in AT_A_CALL:
        _turn(world, item, action.number)
        harm.befall(world, item, op)
    else:
        harm.happen(world, op, loop, action)


# -- turns -----------------------------------------------------------------------------------------------------------


ENDS_A_TURN: Final = ("write", "external")
"""Calls that others can notice."""


def calls(world: World, action: Action) -> list[Action]:
    """The single calls that an enabled Action consists of, the fault that may end them included."""
    item = (-1 if action.op in NO_LOOP else world.system.loop_index(action.who), action.key)
    if action.op not in ("turn", *AT_A_CALL):
        return [action]
    after = world.fork()
    made = list(_calls(after, item, action.number if action.op in AT_A_CALL else None))
    return made if action.op == "turn" else [*made, action]


def _turn(world: World, item: Item, until: int | None = None) -> None:
    """What a reconcile does up to its next write, and that; or up to a call, which is not made."""
    for _ in _calls(world, item, until):
        pass


def _calls(world: World, item: Item, until: int | None) -> Iterator[Action]:
    """Takes a turn in place, call by call."""
    name = world.system.loops[item[0]].name
    if item not in world.flights:
        world.run(item)
        yield Action("run", name, item[1])
    while (flight := world.flights.get(item)) is not None and flight.waiting is None:
        effect, number = flight.node.effect, flight.node.depth + 1
        if number == until:
            return
        world.cont(item)
        yield Action("cont", name, item[1], number)
        if effect is not None and effect.op in ENDS_A_TURN:
            return


def _turns(world: World, item: Item, left: Left | None) -> list[Action]:
    """The turn that an item can take, and what may befall the calls in it."""
    name, flight = world.system.loops[item[0]].name, world.flights.get(item)
    out = [Action("turn", name, item[1], 0 if flight is None else flight.node.depth + 1)]
    if left is None or not left.at_a_call:
        return out
    probe = world.fork()
    if flight is None:
        probe.run(item)
    while (flight := probe.flights.get(item)) is not None and flight.waiting is None:
        out.extend([Action(op, name, item[1], flight.node.depth + 1) for op in harm.possible(probe, left, flight)])
        if flight.node.effect is None or flight.node.effect.op in ENDS_A_TURN:
            break
        probe.cont(item)
    return out
