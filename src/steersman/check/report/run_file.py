"""Files of saved runs: written by `steersman check --save`, read by `steersman inspect`.

A file is the JSON of a `SavedCommand`. Whoever wrote it may be anybody: what is read has exactly the fields and types
of the document, and every number that points somewhere points into it.
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, get_args, get_origin, get_type_hints

import orjson

from steersman.check.report.saved_run import FORMAT, VERSION, SavedCheck, SavedCommand, SavedRun, SavedStep, dumped

MAX_BYTES: Final = 128 << 20
"""Of a file: ten times what the largest picture with all its steps has taken."""
REMEDY: Final = "write it with steersman check FILE --save RUN"


class RunFileError(ValueError):
    """A file that is no saved run. The text names the file, the place in it and what to do."""


def save(command: SavedCommand, path: Path) -> None:
    """Writes a file, by way of another one, so that what was there is there until the new one is whole. Raises
    `OSError`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():  # a device or a pipe is written to, never taken away
        with path.open("wb") as file:
            file.write(dumped(command))
        return
    new = path.with_name(f".{path.name}.new")
    try:
        new.write_bytes(dumped(command))
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def read(path: Path) -> SavedCommand:
    """Reads a file. Raises `RunFileError`."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise RunFileError(f"{path}: {error.strerror}; {REMEDY}") from None
    if len(data) > MAX_BYTES:
        raise RunFileError(f"{path}: larger than {MAX_BYTES >> 20} MB, so it is no saved run; {REMEDY}")
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise RunFileError(f"{path}: no JSON ({error}); {REMEDY}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise RunFileError(f"{path}: no saved run (its format is not {FORMAT!r}); {REMEDY}")
    if document.get("version") != VERSION:
        raise RunFileError(
            f"{path}: version {str(document.get('version'))[:20]} of the format; this steersman reads {VERSION}; "
            f"{REMEDY} of this steersman"
        )
    try:
        command: SavedCommand = _typed(SavedCommand, document, "")
        _points_inside(command)
    except _Wrong as error:
        raise RunFileError(f"{path}: {error}; {REMEDY}") from None
    return command


class _Wrong(Exception):
    """What is not as it must be, and where."""


# -- types -----------------------------------------------------------------------------------------------------------


def _typed(kind: Any, value: Any, where: str) -> Any:
    """A value as one of a type: a dataclass, a list, tuple or dict of such, `X | None`, or str, int or bool."""
    if is_dataclass(kind):
        return _dataclass(kind, value, where)
    origin, inside = get_origin(kind), get_args(kind)
    if origin is types.UnionType:
        return None if value is None else _typed(inside[0], value, where)
    if origin is list:
        return [_typed(inside[0], each, f"{where}[{at}]") for at, each in enumerate(_is(list, value, where))]
    if origin is tuple:
        if len(_is(list, value, where)) != len(inside):
            raise _Wrong(f"{where} must have {len(inside)} parts, and has {len(value)}")
        return tuple([_typed(part, each, where) for part, each in zip(inside, value, strict=True)])
    if origin is dict:
        return {key: _typed(inside[1], each, f"{where}.{key[:40]}") for key, each in _is(dict, value, where).items()}
    return _is(kind, value, where)


def _dataclass(kind: Any, value: Any, where: str) -> Any:
    hints = _hints(kind)
    given = _is(dict, value, where).keys()
    for name in [*(hints.keys() - given), *(given - hints.keys())][:1]:
        raise _Wrong(
            f"{where or 'the document'} {'has no' if name in hints else 'must not have a'} field {name[:40]!r}"
        )
    return kind(**{name: _typed(hint, value[name], f"{where}.{name}".lstrip(".")) for name, hint in hints.items()})


@cache
def _hints(kind: Any) -> dict[str, Any]:
    types_of = get_type_hints(kind)
    return {field.name: types_of[field.name] for field in fields(kind)}


def _is(kind: type, value: Any, where: str) -> Any:
    if type(value) is not kind:
        raise _Wrong(f"{where or 'the document'} must be a {kind.__name__}, not a {type(value).__name__}")
    return value


# -- numbers ---------------------------------------------------------------------------------------------------------


def _points_inside(command: SavedCommand) -> None:
    for at, check in enumerate(command.checks):
        where = f"checks[{at}]"
        runs = [run for each in check.violations for run in (each.run, each.other) if run is not None]
        for run in [*runs, *check.ends]:
            _run(run, where)
        for parting in check.partings:
            _within(parting.one, 1, len(check.ends), f"{where}.partings one")
            _within(parting.other, 1, len(check.ends), f"{where}.partings other")
        _picture(check, f"{where}.picture")
    if command.place is not None:
        _within(command.place.check, 0, len(command.checks) - 1, "place.check")


def _run(run: SavedRun, where: str) -> None:
    lanes = frozenset(run.lanes)
    for at, step in enumerate(run.steps, 1):
        _within(step.number, at, at, f"{where} number of step {at}")
        _step(step, where)
        if step.lane not in lanes:
            raise _Wrong(f"{where} step {at} is in no lane of its run")
    _within(run.turn, 0, len(run.steps) + run.omitted, f"{where} turn")


def _step(step: SavedStep, where: str) -> None:
    for number, _ in step.causes:
        _within(number, 1, step.number - 1, f"{where} cause of step {step.number}")


def _picture(check: SavedCheck, where: str) -> None:
    spots: Sequence[Any] = () if check.picture is None else check.picture.spots
    if check.branches and len(check.branches) != len(spots):
        raise _Wrong(f"{where} has {len(spots)} states, but {len(check.branches)} steps lead to them")
    if check.picture is None:
        return
    actions = len(check.picture.actions)
    for at, spot in enumerate(spots):
        least, depth = (0, spots[spot.parent].depth + 1) if 0 <= spot.parent < at else (-1, 0)
        _within(spot.parent, 0 if at else -1, at - 1, f"{where} state before state {at}")
        _within(spot.via, least, actions - 1, f"{where} step to state {at}")
        _within(spot.depth, depth, depth, f"{where} depth of state {at}")
        step = check.branches[at] if check.branches else None
        if check.branches and (step is None) != (at == 0):
            raise _Wrong(f"{where} step to state {at} is {'missing' if step is None else 'one too many'}")
        if step is not None:
            _within(step.number, depth, depth, f"{where} number of the step to state {at}")
            _step(step, where)
    for start, end, action in check.picture.edges:
        _within(start, 0, len(spots) - 1, f"{where} edge")
        _within(end, 0, len(spots) - 1, f"{where} edge")
        _within(action, 0, actions - 1, f"{where} edge")


def _within(number: int, least: int, most: int, where: str) -> None:
    if not least <= number <= most:
        raise _Wrong(f"{where} is {number}, and must be {least} to {most}")
