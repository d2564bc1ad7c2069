"""Why a run writes for ever: a fight, a write that is not idempotent, a circle, or a value that is always new.

The steps that repeat are taken once more, and every field that somebody changes in them is noted. Two writers that
give one field different values fight; a single one undoes or repeats itself; several that each write their own fields,
each since the other did, go round in a circle.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, Final, NamedTuple

import orjson

from steersman.api.times import MICRO
from steersman.check.properties.changes import THERE, Change, changes, telling
from steersman.check.rest import name_of
from steersman.check.story import changed_fields
from steersman.kernel.action import Action
from steersman.kernel.disturb import Stamp
from steersman.kernel.effect import Effect, Refused
from steersman.kernel.reexec import Node, Reexec, Suspend
from steersman.kernel.transition import step
from steersman.kernel.value import freeze
from steersman.kernel.world import World

FIGHT, REPEATED, CIRCLE, CHANCE = "fight", "repeated", "circle", "chance"
MAX_NAMED: Final = 3
"""Fields that a message names."""
CALLS: Final = {"now": "c.now()", "stamp": "c.timestamp()", "random": "c.random()", "external": "c.external"}
"""Calls that give something else each time, by the name of the effect."""


class Cause(NamedTuple):
    """Why steps repeat."""

    kind: str
    """FIGHT | REPEATED | CIRCLE | CHANCE"""
    text: str


def cause(world: World, cycle: Sequence[Action]) -> Cause:
    """Of steps that repeat from `world` on."""
    world = world.fork()
    seen: list[Change] = []
    for action in cycle:
        before = world.fork()
        world.events = []
        step(world, action)
        made = list(changes(action.who, world.events))
        seen += made
        if made:
            told = _by_chance(before, action)
            if told:
                return Cause(CHANCE, told)
    return _fight(seen) or _alone(seen)


def _fight(seen: Sequence[Change]) -> Cause | None:
    """Two or more who give one field different values."""
    by_field: dict[Any, list[Change]] = {}
    for change in sorted(seen, key=telling):
        by_field.setdefault((change.slot, change.path), []).append(change)
    told: list[str] = []
    writers: set[str] = set()
    for made in by_field.values():
        last = {change.who: change for change in made}
        if len(last) > 1 and len({_text(change.new) for change in last.values()}) > 1:
            told.append(f"{made[0].field}: {_each(last.values())}")
            writers.update(last)
    if not told:
        return None
    names = sorted(writers)
    return Cause(FIGHT, f"{', '.join(names[:-1])} and {names[-1]} fight over {_list(told)}")


def _alone(seen: Sequence[Change]) -> Cause:
    """Nobody contradicts another: one writer goes on by itself, or several make each other go on."""
    ordered = sorted(seen, key=telling)
    writers = list(dict.fromkeys([change.who for change in seen]))
    if len(writers) == 1:
        first = ordered[0]
        same = [change for change in ordered if (change.slot, change.path) == (first.slot, first.path)]
        if first.path == THERE:
            text = f"{writers[0]} creates and removes {first.slot} again and again"
        else:
            values = list(dict.fromkeys([_text(change.new) for change in same]))
            text = f"{writers[0]} changes {first.field} again and again: to {_list(values, ', then ')}"
        return Cause(REPEATED, f"a write that is not idempotent: {text}")
    told = [next(change for change in ordered if change.who == who) for who in writers]
    text = _list([f"{change.who} changes {change.field}" for change in told], ", so ")
    return Cause(CIRCLE, f"a circle of writes: {text}, and so on")


def _each(made: Iterable[Change]) -> str:
    return ", ".join([f"{change.who} {change.words}" for change in made])


def _list(texts: Sequence[str], between: str = "; ") -> str:
    more = f" (and {len(texts) - MAX_NAMED} more)" if len(texts) > MAX_NAMED else ""
    return between.join(texts[:MAX_NAMED]) + more


def _text(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS, default=str).decode()


# -- values that are new each time ----------------------------------------------------------------------------------


def _by_chance(before: World, action: Action) -> str:
    """Which call gave the value of a write, if it is one that gives another each time; "" if none did."""
    if action.op not in ("run", "cont"):
        return ""
    flight = before.flights.get((before.system.loop_index(action.who), action.key))
    return "" if flight is None else given_by(before, flight.node)


def given_by(world: World, node: Node) -> str:
    """The same of the write that a reconcile is about to make in a world."""
    if node.effect is None or node.effect.op != "write":
        return ""
    reexec, request = world.system.reexec, node.effect.what
    nodes = [node]
    while nodes[0].parent is not None:
        nodes.insert(0, nodes[0].parent)
    asked = {n.effect.op: n.effect for n in nodes[:-1] if n.effect is not None and n.effect.op in CALLS}
    for call in asked.values():
        outcomes = []
        for asks, gets in pairwise(nodes):
            assert asks.effect is not None and gets.outcome is not None
            value = gets.outcome.value
            outcomes.append(_other(world, value, asks.effect) if asks.effect.op == call.op else value)
        again = _write_after(reexec, node, outcomes)
        differ = [] if again is None else list(changed_fields(request.body, again.what.body))
        if differ:
            name = f"{CALLS[call.op]}({call.what[0]!r}, …)" if call.op == "external" else CALLS[call.op]
            who, what = reexec.loops[node.loop].name, name_of(request.key)
            return f"a value that is new each time: {who} writes into {what} {differ[0][0]} what {name} gave"
    return ""


def _other(world: World, value: Any, call: Effect) -> Any:
    """Another answer that the call might have given."""
    if call.op == "external":
        return world.perform(None, call)
    if call.op == "stamp":
        return Stamp(value + MICRO)
    if call.op == "now":
        return value + MICRO
    if call.op == "random":
        return "".join([f"{15 - int(digit, 16):x}" for digit in value])
    return value


def _write_after(reexec: Reexec, node: Node, outcomes: Sequence[Any]) -> Effect | None:
    """The write that a reconcile makes after these outcomes; None when it makes none."""
    at = 0
    made: list[Effect] = []

    def exchange(effect: Effect) -> Any:
        nonlocal at
        if made:
            raise Suspend
        if effect.op == "event":
            return None
        if at == len(outcomes):
            made.append(effect)
            raise Suspend
        at += 1
        if isinstance(outcomes[at - 1], Refused):
            raise outcomes[at - 1]
        return outcomes[at - 1]

    with suppress(Suspend):
        reexec.loops[node.loop].execute(node.key, node.memory, exchange)
    return made[0]._replace(what=_plain(made[0].what)) if made and made[0].op == "write" else None


def _plain(request: Any) -> Any:
    return request._replace(body=freeze(request.body))
