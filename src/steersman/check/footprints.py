"""Footprints that are learned: what each controller was seen to read and write in a search.

What is written stands in the reconciles that a search has gone through (the read-set memo keeps them). What is read is
found out by running some of them once more, shown objects that note which of their fields are looked at. Copying an
object (`{**obj}`, `sm.thaw`) is no look at it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from steersman.check.explore import Bounds, Explorer
from steersman.check.properties.names import BY_NAME
from steersman.check.scenario import Scenario, ScenarioError
from steersman.check.shown import Shown
from steersman.check.story import QUIET
from steersman.check.watchdog import Watchdog
from steersman.kernel.effect import Effect, Refused, Request
from steersman.kernel.object import Key, Object
from steersman.kernel.reexec import Hung, Node, Reexec, Suspend
from steersman.kernel.system import System
from steersman.kernel.value import ABSENT
from steersman.ownership.analysis import Analysis, analyse
from steersman.ownership.fields import EXISTENCE, Field, FieldError, leaves
from steersman.ownership.footprint import Footprint, declared

MAX_RUNS: Final = 40
"""Reconciles of one controller that are run once more: they take a millisecond each, and soon show nothing new."""
FIRST_STATES: Final = 500
FIRST_SECONDS: Final = 10.0
"""How far the search goes that finds out what controllers do that declare nothing."""
MAX_RECONCILES: Final = 4_000
"""Reconciles whose writes are looked at."""
IDENTITY: Final = frozenset(
    {("apiVersion",), ("kind",), *[("metadata", name) for name in ("name", "namespace", "uid", "resourceVersion")]}
)
"""What names an object; no information about it."""
MADE: Final = {"": EXISTENCE, "binding": ("spec", "nodeName")}
"""What a create or delete changes, by subresource; of those that are not here nothing in the object itself."""


class Notes:
    """The fields that one controller was seen to use."""

    def __init__(self) -> None:
        self.reads: dict[Field, None] = {}
        self.writes: dict[Field, dict[Key, None]] = {}

    def read(self, gk: tuple[str, str], path: tuple[str, ...]) -> None:
        """A field was looked at."""
        if path and path not in IDENTITY:
            self.reads[Field(gk, _short(path))] = None

    def wrote(self, key: Key, path: tuple[str, ...]) -> None:
        """A field was written."""
        if path and path not in IDENTITY and ".".join(path) not in QUIET:
            self.writes.setdefault(Field(key.gk, _short(path)), {})[key] = None

    def footprint(self, name: str) -> Footprint:
        """All of it; a field below another one that is there anyway is left out."""
        objects = tuple([(field, key) for field in sorted(self.writes) for key in self.writes[field]])
        return Footprint(name, tuple(_tops(self.reads)), tuple(sorted(self.writes)), False, objects)


def _short(path: tuple[str, ...]) -> tuple[str, ...]:
    """A path up to the item of a list: what is in it belongs to whom the item belongs."""
    for at, part in enumerate(path):
        if part.startswith("["):
            return path[: at + 1]
    return path


def _tops(fields: Mapping[Field, None]) -> list[Field]:
    return [f for f in sorted(fields) if not any(Field(f.gk, f.path[:at]) in fields for at in range(len(f.path)))]


def learned(system: System) -> list[Footprint]:
    """The footprints of a system's controllers, from what it has gone through."""
    notes = {actor: Notes() for actor in system.actors}  # two instances of one controller are one owner
    runs = [0] * len(system.loops)
    for number, way in enumerate(system.reexec.reconciles()):
        if number >= MAX_RECONCILES:
            break
        loop = way[0].loop
        for before, node in enumerate(way):
            if node.effect is not None:
                _effect(notes[system.actors[loop]], node.effect, way[: before + 1])
        if runs[loop] < MAX_RUNS:
            runs[loop] += 1
            _look(system.reexec, notes[system.actors[loop]], way)
    return [note.footprint(actor) for actor, note in notes.items()]


def analysis(scenario: Scenario, system: System) -> Analysis:
    """What follows from what the controllers declare, or were seen to do where they do not."""
    said = {footprint.name: footprint for footprint in stated(scenario)}
    seen = learned(system)
    strays = tuple(
        [(each.name, field) for each in seen if each.name in said for field in said[each.name].undeclared(each)]
    )
    return analyse([said.get(footprint.name, footprint) for footprint in seen], strays)


def stated(scenario: Scenario) -> list[Footprint]:
    """The footprints that controllers declare; one that is upgraded says it in two ways, and is looked at instead.
    Raises `ScenarioError`."""
    out = []
    for name, cls in scenario.controllers().items():
        if name in scenario.newer:
            continue
        try:
            footprint = declared(name, cls, scenario.kinds)
        except FieldError as error:
            raise ScenarioError(f"controller {name!r}: {error}") from None
        if footprint is not None:
            out.append(footprint)
    return out


def first_look(scenario: Scenario) -> Analysis:
    """The analysis before any run: from declarations and, where they are missing, from what the controllers do in the
    first states, whole reconciles one after the other. Raises `ScenarioError`."""
    said = stated(scenario)
    if len(said) == len(scenario.controllers()):
        return analyse(said)
    bounds = Bounds(atomic=True, max_states=FIRST_STATES, max_seconds=FIRST_SECONDS)
    explorer = Explorer(scenario, bounds, without=BY_NAME, comparing=False)
    with Watchdog(explorer):
        explorer.run()
        if explorer.verdict.failed is not None:
            raise explorer.verdict.failed
        return analysis(scenario, explorer.system)


# -- what a call touches ---------------------------------------------------------------------------------------------


def _effect(notes: Notes, effect: Effect, way: list[Node]) -> None:
    if effect.op in ("get", "list"):
        notes.read(effect.what.gk, EXISTENCE)
    elif effect.op == "write":
        request: Request = effect.what
        if request.verb in ("create", "delete"):
            path = MADE.get(request.subresource)
            if path is not None:
                notes.wrote(request.key, path)
            return
        for path in _changed(request, _last_seen(request.key, way)):
            notes.wrote(request.key, path)


def _last_seen(key: Key, way: list[Node]) -> Any:
    """The newest version of an object that a reconcile has met; EMPTY-like when it has met none."""
    for node in reversed(way):
        if node.outcome is not None:
            value = node.outcome.value
            for obj in value if isinstance(value, tuple) else (value,):
                if isinstance(obj, Object) and obj.key == key:
                    return obj.value
    return {}


def _changed(request: Request, old: Any) -> Iterator[tuple[str, ...]]:
    """The paths to which a write gives another value than its object had."""
    body = request.body
    if isinstance(body, list):
        for operation in body:
            if isinstance(operation, Mapping) and operation.get("op") not in ("test", None):
                yield tuple([part for part in str(operation.get("path", "")).split("/") if part])
        return
    if not isinstance(body, Mapping):
        return
    before = dict(leaves(old))
    for path, value in leaves(body):
        if path and (request.subresource == "status") <= (path[0] == "status") and before.get(path, ABSENT) != value:
            yield path
    if request.verb == "update":
        after = dict(leaves(body))
        part = ("status",) if request.subresource == "status" else ()
        for path in before:
            if path[: len(part)] == part and path not in after and (part or path[0] not in ("status", "metadata")):
                yield path


# -- what is looked at -----------------------------------------------------------------------------------------------


def _look(reexec: Reexec, notes: Notes, way: list[Node]) -> None:
    """Runs a reconcile once more and notes what it looks at."""
    outcomes = [node.outcome.value for node in way if node.outcome is not None]
    at = 0

    def exchange(effect: Effect) -> Any:
        nonlocal at
        if effect.op == "event":
            return None
        if at == len(outcomes):
            raise Suspend
        at += 1
        value = outcomes[at - 1]
        if isinstance(value, Refused):
            raise value
        if isinstance(value, tuple):
            return tuple([Shown(obj, notes.read) if isinstance(obj, Object) else obj for obj in value])
        return Shown(value, notes.read) if isinstance(value, Object) else value

    if any(found.kind == "hangs" and found.key == way[0].key for found in reexec.findings.values()):
        return  # what hung once would do so again
    reexec.executions, reexec.running = reexec.executions + 1, way[0]  # so that the watchdog looks after it
    try:
        with suppress(Suspend, Hung):
            reexec.loops[way[0].loop].execute(way[0].key, way[0].memory, exchange)
    finally:
        reexec.running = None
