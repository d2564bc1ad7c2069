"""A run in detail: each step with what it read, which versions, what it changed and whom it woke.

Reports of every form are made from this: the text on the screen, causal slices, pages, code flows. A story is made by
taking the steps once more from the first world, so it costs nothing while the search goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any, Final, NamedTuple

import orjson

from steersman.check.rest import Noting
from steersman.check.rest import name_of as name_of
from steersman.check.verdict import plain, plural
from steersman.kernel.action import Action
from steersman.kernel.effect import Call, Effect, Refused
from steersman.kernel.faults import ABOUT_A_KIND, ACTS, AT_A_CALL, NO_LOOP, SAYS
from steersman.kernel.harm import undone
from steersman.kernel.object import Key, Object
from steersman.kernel.transition import step
from steersman.kernel.view import ENDS, STALLED, coalesced
from steersman.kernel.world import Item, World

QUIET: Final = ("metadata.resourceVersion", "metadata.generation", "metadata.creationTimestamp", "metadata.uid")
"""Fields that change with every write."""
MOVING: Final = frozenset(ENDS.values())
"""Actions that move a view."""
CALLS: Final = ("cont", "call", "commit")
"""Actions that take a call further: a write that webhooks are asked about needs all three."""
NAMES_SHOWN: Final = 6
"""Objects of a list that a step names."""


class Change(NamedTuple):
    """What a step did to one object. `old` is None for a create, `new` for a removal."""

    key: Key
    old: Object | None
    new: Object | None
    rev: int

    @property
    def sign(self) -> str:
        """+ (new), ~ (changed) or - (gone)."""
        return "+" if self.old is None else "-" if self.new is None else "~"

    def fields(self) -> list[tuple[str, Any, Any]]:
        """(path, old, new) of every leaf that differs, but for those that change with every write."""
        if self.old is None or self.new is None:
            return []
        return list(changed_fields(self.old.value, self.new.value))


class Seen(NamedTuple):
    """One object that a step read: the version, or None where it was not there."""

    key: Key
    rev: int | None


class Step(NamedTuple):
    """One step of a run. Numbers count from 1."""

    number: int
    action: Action
    text: str
    """In words."""
    outcome: str
    """How the reconcile ended with it; "" when it did not."""
    changes: tuple[Change, ...]
    own: Key | None
    """The object that a write names: its changes go without saying whose they are."""
    item: tuple[str, Key] | None
    """The reconcile it belongs to: controller and key."""
    effect: Effect | None
    """The call that it made."""
    seen: tuple[Seen, ...]
    """What it read."""
    missed: tuple[int, ...]
    """Revisions that had not reached the view it read from: the read was stale."""
    told: tuple[int, ...]
    """The revisions that reached a view with it."""
    woke: tuple[tuple[str, Key], ...]
    """Reconciles that it put on a work queue."""

    @property
    def stale(self) -> bool:
        """Whether it read from a view that was behind."""
        return bool(self.missed)


class Story:
    """A run from the first world on, and from `turn` on what repeats for ever."""

    def __init__(self, world: World, actions: Sequence[Action], cycle: Sequence[Action] = ()) -> None:
        self.first = world.store
        """What was there before the first step."""
        self.turn = len(actions)
        """How many steps come before the cycle."""
        self.for_ever = bool(cycle)
        self.names = {obj.uid: name_of(obj.key) for obj in world.store.objects()}
        """What uids are called: people know objects by name."""
        self.start = tuple([(world.system.loops[loop].name, key) for loop, key in world.pending])
        """Reconciles that were on a queue before the first step."""
        now = Noting.of(world)
        self.steps = tuple([self._take(now, action, at) for at, action in enumerate((*actions, *cycle), 1)])
        self.last = now.store

    def and_then(self, world: Noting, action: Action) -> Story:
        """This run and a step more, which is taken in `world`, in place."""
        longer = copy(self)
        longer.names, longer.turn = dict(self.names), self.turn + 1
        longer.steps = (*self.steps, longer._take(world, action, longer.turn))
        longer.last = world.store
        return longer

    def _take(self, world: Noting, action: Action, number: int) -> Step:
        taken = _taken(world, action, number)
        for change in taken.changes:
            if change.new is not None:
                self.names[change.new.uid] = name_of(change.key)
        return taken

    def named(self, text: str) -> str:
        """`text` with the names of objects instead of their uids, and nothing that cannot be written."""
        for uid, name in self.names.items():
            if uid in text:
                text = text.replace(uid, f"[{name}]")
        return plain(text)

    @property
    def objects(self) -> list[Key]:
        """Every object that is in it, sorted."""
        there = {obj.key: None for obj in self.first.objects()}
        there.update({change.key: None for step in self.steps for change in step.changes})
        return sorted(there)


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


# -- taking a step ---------------------------------------------------------------------------------------------------


def _taken(world: Noting, action: Action, number: int) -> Step:
    """Takes a step in place and says what happened."""
    system = world.system
    loop = system.loop_index(action.who) if action.op not in NO_LOOP else -1
    item: Item = (loop, action.key)
    effect: Effect | None = None
    missed: tuple[int, ...] = ()
    told: tuple[int, ...] = ()
    text = _plain(action, world)
    if action.op in CALLS or action.op in AT_A_CALL:
        effect = world.flights[item].node.effect
        missed = _missed(world, loop, effect)
    elif action.op in MOVING:
        text, told = _moved(world, loop, action)
    world.events, world.ended, world.given = [], [], None
    before = world.fork()
    step(world, action)
    seen: tuple[Seen, ...] = ()
    outcome = ""
    if effect is not None:
        said, seen = _call(before, world, item, effect, action.op, len(missed))
        text = f"{action.who} ({name_of(action.key)}) {said}"
        outcome = _ended(world, item, before, said) if world.ended else ""
    elif world.ended and world.ended[-1].error is not None:
        outcome = _ended(world, item, before, "")
    return Step(
        number,
        action,
        text,
        outcome,
        tuple([Change(event.key, event.old, event.new, event.rev) for event in world.events]),
        effect.what.key if effect is not None and effect.op == "write" else None,
        None if loop < 0 or not action.key.name else (action.who, action.key),
        effect,
        seen,
        missed,
        told,
        tuple([(system.loops[at].name, key) for at, key in world.pending if (at, key) not in before.pending]),
    )


def _moved(world: World, loop: int, action: Action) -> tuple[str, tuple[int, ...]]:
    """A view that moves, before it does: in words, and what reaches it."""
    who, kind = action.who, action.key.kind
    if action.op == "rewind":
        events = world.views[(loop, STALLED)].events
        first = f": {events[0].type} {name_of(events[0].key)} has not happened there, nor what came after it"
        return f"{who} restarts on the API server that stalled, {plural(len(events), 'event')} back{first}", ()
    view = world.views[(loop, action.key.gk)]
    if action.op == "deliver":
        event, _ = view.moved(action.key)
        return f"{who}'s view of {kind} catches up: {event.type} {name_of(event.key)}", (event.rev,)
    seen = coalesced(view.events, across=view.how != "slow")
    told = ", ".join([f"{event.type} {name_of(event.key)}" for event in seen]) or "nothing"
    how = "lists anew" if action.op == "relist" else "catches up"
    text = f"{who}'s watch of {kind} {how}: {plural(len(view.events), 'event')} seen as {told}"
    return text, tuple([event.rev for event in view.events])


def _plain(action: Action, world: World) -> str:
    if action.op == "run":
        return f"{action.who} starts to reconcile {name_of(action.key)}"
    if action.op == "turn":
        return f"{action.who} reconciles {name_of(action.key)} up to its next write"
    if action.op in ACTS:
        return world.system.acts[action.op].says(action.key, action.number)
    if action.op in SAYS:
        watch = f"'s watch of {action.key.kind}" if action.op in ABOUT_A_KIND else ""
        return f"{action.who}{watch} {SAYS[action.op]}"
    if action.op == "user":
        return f"user: {action.who}"
    if action.op == "fire":
        return f"time passes: {action.who} looks at {name_of(action.key)} again"
    if action.op == "advance":
        return f"{action.who} does what is due"
    return action.label


def _missed(world: World, loop: int, effect: Effect | None) -> tuple[int, ...]:
    if effect is None or effect.fresh or effect.op not in ("get", "list"):
        return ()
    view = world.views.get((loop, effect.what.gk))
    return () if view is None else tuple([event.rev for event, _ in view.waiting])


def _call(
    before: World, after: Noting, item: Item, effect: Effect, op: str, stale: int
) -> tuple[str, tuple[Seen, ...]]:
    """A call in words, and what it read."""
    if op in AT_A_CALL:
        lost = " (it was refused)" if undone(op, effect, after.events) else ""
        return f"{effect}: {SAYS[op]}{lost}", ()
    if effect.op == "write":
        if (way := _on_its_way(after, item)) is not None:
            return f"{effect}: {way}", ()
        if isinstance(after.given, Refused):
            return f"{effect}: refused, {after.given.told}", ()
        return f"{effect}{'' if after.events else ': no change'}", ()
    found = before.perform(item[0], effect)
    behind = f"  [STALE: its view is {stale} event{'s' if stale > 1 else ''} behind]" if stale else ""
    if effect.op == "get":
        there = isinstance(found, Object)
        told = f"reads {effect.what}: {'there' if there else 'not there'}{behind}"
        return told, (Seen(effect.what, found.rv if there else None),)
    if effect.op == "list":
        names = ", ".join(obj.key.name for obj in found[:NAMES_SHOWN]) + (", …" if len(found) > NAMES_SHOWN else "")
        told = f"{effect}: {len(found)} found{f' ({names})' if names else ''}{behind}"
        return told, tuple([Seen(obj.key, obj.rv) for obj in found])
    return f"{effect}: {found if not isinstance(found, dict) else orjson.dumps(found).decode()}", ()


def _on_its_way(after: World, item: Item) -> str | None:
    """What becomes of a write that has left its controller and is not done; None when it is."""
    flight = after.flights.get(item)
    if flight is None or flight.waiting is None:
        return None
    if not isinstance(flight.waiting, Call):
        return "admitted"
    hooks = flight.waiting.question if flight.waiting.kind in ("webhook", "convert") else ()
    return "goes to " + (", ".join([f"the webhook {hook.name}" for hook in hooks]) or "the signer")


def _ended(world: Noting, item: Item, before: World, told: str) -> str:
    """How a reconcile ended, after a call of which this was told."""
    error = world.ended[-1].error
    ends = "ends" if error is None else "fails with that" if error in told else f"fails: {error}"
    queued = item in world.pending and (item not in before.pending or error is not None)
    return f"… and {ends}{f'; {name_of(item[1])} is on its queue again' if queued else ''}"
