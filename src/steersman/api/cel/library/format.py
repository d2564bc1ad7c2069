"""`"…".format([…])` of cel-go's string extension."""

from __future__ import annotations

import math
import re
from typing import Any, Final

from steersman.api.cel.faults import CelError
from steersman.api.cel.values import (
    Duration,
    Fields,
    Timestamp,
    TypeName,
    Uint,
    checked_text,
    double_text,
    duration_text,
    timestamp_text,
    type_name,
)

_CLAUSE: Final = re.compile(r"%(%|(?:\.(\d*))?(.?))", re.S)
MAX_PRECISION: Final = 1000
"""Digits behind the point: more than any number has."""


def format_text(text: str, args: list[Any]) -> str:
    """The text with its clauses filled in. Raises `CelError`."""
    at = -1
    total = len(text)

    def clause(match: re.Match[str]) -> str:
        nonlocal at, total
        if match[1] == "%":
            return "%"
        if not match[3]:
            raise CelError("unexpected end of string")
        at += 1
        if at >= len(args):
            raise CelError(f"index {at} out of range")
        precision = None if match[2] is None else int(match[2] or 0)
        if precision is not None and precision > MAX_PRECISION:
            raise CelError("error while converting precision to integer: it is too large")
        shown = _shown(match[3], args[at], precision)
        total += len(shown)
        checked_text(total)
        return shown

    return _CLAUSE.sub(clause, text)


def _shown(form: str, value: Any, precision: int | None) -> str:
    kind = type(value)
    if form == "s":
        return string_of(value)
    if form == "d":
        if kind is int or kind is Uint:
            return str(int(value))
        if kind is float and not math.isfinite(value):
            return _special(value)
        raise CelError(f"decimal clause can only be used on integers, was given {type_name(value)}")
    if form in "fe":
        if kind not in (int, Uint, float):
            name = "fixed-point" if form == "f" else "scientific"
            raise CelError(f"{name} clause can only be used on doubles, was given {type_name(value)}")
        if not math.isfinite(value):
            return _special(value)
        return f"{float(value):.{6 if precision is None else precision}{form}}"
    if form == "b":
        if kind in (int, Uint, bool):
            return f"{int(value):b}"
        raise CelError(f"only integers and bools can be formatted as binary, was given {type_name(value)}")
    if form in "xX":
        if kind in (int, Uint):
            return f"{int(value):{form}}"
        if kind is str or kind is bytes:
            found = (value.encode() if kind is str else value).hex()
            return str(found.upper() if form == "X" else found)
        raise CelError(
            f"only integers, byte buffers, and strings can be formatted as hex, was given {type_name(value)}"
        )
    if form == "o":
        if kind in (int, Uint):
            return f"{int(value):o}"
        raise CelError(f"octal clause can only be used on integers, was given {type_name(value)}")
    raise CelError(f'could not parse formatting clause: unrecognized formatting clause "{form}"')


def _special(value: float) -> str:
    return "NaN" if math.isnan(value) else "∞" if value > 0 else "-∞"


def string_of(value: Any) -> str:
    """A value as `%s` writes it. Raises `CelError`."""
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if value is None:
        return "null"
    if kind is int or kind is Uint:
        return str(int(value))
    if kind is float:
        return double_text(value) if math.isfinite(value) else _special(value)
    if kind is bytes:
        return str(value.decode("utf-8", "replace"))
    if kind is Timestamp:
        return timestamp_text(value)
    if kind is Duration:
        return duration_text(value)
    if kind is TypeName:
        return str(value.name)
    if isinstance(value, list):
        return "[" + ", ".join([string_of(item) for item in value]) + "]"
    if isinstance(value, Fields):
        value = value.cel_plain()
    if isinstance(value, dict):
        pairs = sorted([(string_of(key), string_of(item)) for key, item in value.items()])
        return "{" + ", ".join([f"{key}: {item}" for key, item in pairs]) + "}"
    known = "strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
    raise CelError(f"string clause can only be used on {known}, was given {type_name(value)}")
