"""Counterexamples in words: each step, who saw what, what it changed, and which view was stale."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import orjson

from steersman.check.rest import Noting
from steersman.check.verdict import plural
from steersman.kernel.action import Action
from steersman.kernel.effect import Commit, Effect, Event, Refused
from steersman.kernel.faults import ABOUT_A_KIND, AT_A_CALL, BY_OP
from steersman.kernel.harm import undone
from steersman.kernel.object import Key, Object
from steersman.kernel.transition import step
from steersman.kernel.view import ENDS, STALLED, coalesced
from steersman.kernel.world import World

MAX_DIFF_LINES: Final = 12
"""Changed fields shown a step: more would bury the one that matters."""
MAX_VALUE: Final = 60
MOVING: Final = frozenset(ENDS.values())
"""Actions that move a view."""
QUIET: Final = ("metadata.resourceVersion", "metadata.generation", "metadata.creationTimestamp", "metadata.uid")
"""Fields that change with every write."""


def explain(world: World, actions: Sequence[Action], cycle: Sequence[Action] = ()) -> str:
    """The steps from `world` on, numbered, one or more lines each."""
    world = Noting.of(world)
    lines: list[str] = []
    named = {obj.uid: _name(obj.key) for obj in world.store.objects()}
    if not (actions or cycle):
        lines.append("    (in the starting state, before anybody has done anything)")
    for number, action in enumerate((*actions, *cycle), 1):
        if cycle and number == len(actions) + 1:
            lines.append("  from here on, for ever:" if actions else "  from the starting state on, for ever:")
        for at, text in enumerate(_step(world, action)):
            lines.append(f"  {number:>3}. {text}" if at == 0 else f"       {text}")
        named.update({event.new.uid: _name(event.key) for event in world.events if event.new is not None})
    return "\n".join([_without_uids(line, named) for line in lines])


def _without_uids(line: str, named: dict[str, str]) -> str:
    """Names instead of uids: people know objects by name."""
    for uid, name in named.items():
        if uid in line:
            line = line.replace(uid, f"[{name}]")
    return line


def _step(world: Noting, action: Action) -> Iterator[str]:
    """Takes a step and says what happened."""
    system = world.system
    loop = system.loop_index(action.who) if action.op not in ("user", "advance") else -1
    item = (loop, action.key)
    effect: Effect | None = None
    stale = 0
    if action.op == "cont" or action.op in AT_A_CALL:
        effect = world.flights[item].node.effect
        stale = _behind(world, loop, effect)
    if action.op in MOVING:
        yield _moved(world, loop, action)
        step(world, action)
        return
    world.events, world.ended = [], []
    before = world.fork()
    step(world, action)
    told = ""
    if effect is None:
        yield _plain(action, world)
    else:
        told = _call(before, world, item, effect, action.op, stale)
        yield f"{action.who} ({_name(action.key)}) {told}"
    for event in world.events:
        yield from diff(event, effect is None or effect.what.key != event.key)
    if world.ended and (effect is not None or world.ended[-1].error is not None):
        yield _ended(world, item, before, told)


def _moved(world: World, loop: int, action: Action) -> str:
    """A view that moves, before it does."""
    who, kind = action.who, action.key.kind
    if action.op == "rewind":
        events = world.views[(loop, STALLED)].events
        first = f": {events[0].type} {_name(events[0].key)} has not happened there, nor what came after it"
        return f"{who} restarts on the API server that stalled, {plural(len(events), 'event')} back{first}"
    view = world.views[(loop, action.key.gk)]
    if action.op == "deliver":
        return f"{who}'s view of {kind} catches up: {view.events[0].type} {_name(view.events[0].key)}"
    seen = coalesced(view.events, across=view.how != "slow")
    told = ", ".join([f"{event.type} {_name(event.key)}" for event in seen]) or "nothing"
    how = "lists anew" if action.op == "relist" else "catches up"
    return f"{who}'s watch of {kind} {how}: {plural(len(view.events), 'event')} seen as {told}"


def _plain(action: Action, world: World) -> str:
    if action.op == "run":
        return f"{action.who} starts to reconcile {_name(action.key)}"
    if action.op in BY_OP:
        watch = f"'s watch of {action.key.kind}" if action.op in ABOUT_A_KIND else ""
        return f"{action.who}{watch} {BY_OP[action.op].says}"
    if action.op == "user":
        return f"user: {action.who}"
    if action.op == "fire":
        return f"time passes: {action.who} looks at {_name(action.key)} again"
    if action.op == "advance":
        return f"{action.who} does what is due"
    return action.label


def _call(before: World, after: World, item: tuple[int, Key], effect: Effect, op: str, stale: int) -> str:
    if op in BY_OP:
        lost = " (it was refused)" if undone(op, effect, after.events) else ""
        return f"{effect}: {BY_OP[op].says}{lost}"
    if effect.op == "write":
        refused = _outcome(before, after, item)
        if isinstance(refused, Refused):
            return f"{effect}: refused, {refused.reason}: {refused}"
        return f"{effect}{'' if after.events else ': no change'}"
    seen = before.perform(item[0], effect)
    behind = f"  [STALE: its view is {stale} event{'s' if stale > 1 else ''} behind]" if stale else ""
    if effect.op == "get":
        return f"reads {effect.what}: {'there' if isinstance(seen, Object) else 'not there'}{behind}"
    if effect.op == "list":
        names = ", ".join(obj.key.name for obj in seen[:6]) + (", …" if len(seen) > 6 else "")
        return f"{effect}: {len(seen)} found{f' ({names})' if names else ''}{behind}"
    return f"{effect}: {seen if not isinstance(seen, dict) else orjson.dumps(seen).decode()}"


def _outcome(before: World, after: World, item: tuple[int, Key]) -> Any:
    """What the last call gave, from the trie."""
    flight = after.flights.get(item)
    if flight is not None:
        return None if flight.node.outcome is None else flight.node.outcome.value
    node = before.flights[item].node
    trial = before.fork()
    effect = node.effect
    assert effect is not None
    request = trial.request_of(node, trial.flights[item], effect.what)
    value = trial.write(request)
    return value if not isinstance(value, Commit) else None


def _ended(world: Noting, item: tuple[int, Key], before: World, told: str) -> str:
    """How a reconcile ended, after a call of which this was told."""
    error = world.ended[-1].error
    ends = "ends" if error is None else "fails with that" if error in told else f"fails: {error}"
    queued = item in world.pending and (item not in before.pending or error is not None)
    return f"… and {ends}{f'; {_name(item[1])} is on its queue again' if queued else ''}"


def _behind(world: World, loop: int, effect: Effect | None) -> int:
    if effect is None or effect.fresh or effect.op not in ("get", "list"):
        return 0
    view = world.views.get((loop, effect.what.gk))
    return 0 if view is None else len(view.waiting)


def _name(key: Key) -> str:
    return f"{key.kind} {key.namespace}/{key.name}" if key.namespace else f"{key.kind} {key.name}"


def diff(event: Event, name_it: bool = False) -> Iterator[str]:
    """What a commit changed, a line a field."""
    if event.old is None or event.new is None:
        if name_it or event.new is None:
            yield f"{'+' if event.old is None else '-'} {_name(event.key)}"
        return
    if name_it:
        yield f"~ {_name(event.key)}"
    changes = list(changed_fields(event.old.value, event.new.value))
    for path, old, new in changes[:MAX_DIFF_LINES]:
        yield f"    {path}: {_short(old)} → {_short(new)}"
    if len(changes) > MAX_DIFF_LINES:
        yield f"    … and {len(changes) - MAX_DIFF_LINES} more fields"


def changed_fields(old: Any, new: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """(path, old, new) of every leaf that differs."""
    if old == new or path in QUIET:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted(old.keys() | new.keys()):
            yield from changed_fields(old.get(name), new.get(name), f"{path}.{name}" if path else name)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (a, b) in enumerate(zip(old, new, strict=True)):
            yield from changed_fields(a, b, f"{path}[{index}]")
    else:
        yield path, old, new


def _short(value: Any) -> str:
    if value is None:
        return "(none)"
    text = orjson.dumps(value).decode()
    return text if len(text) <= MAX_VALUE else text[: MAX_VALUE - 1] + "…"
