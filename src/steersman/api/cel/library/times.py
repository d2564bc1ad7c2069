"""Parts of times and durations."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo

from steersman.api.cel.faults import CelError
from steersman.api.cel.functions import Registry, functions
from steersman.api.cel.values import NANO

_OFFSET: Final = re.compile(r"([+-]?)(\d\d):(\d\d)")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _zone(name: str) -> tzinfo:
    match = _OFFSET.fullmatch(name)
    if match:
        minutes = int(match[2]) * 60 + int(match[3])
        if minutes < 24 * 60:
            return timezone(timedelta(minutes=-minutes if match[1] == "-" else minutes))
    try:
        return ZoneInfo(name or "UTC")
    except (ValueError, OSError, LookupError):  # ZoneInfoNotFoundError is a KeyError
        raise CelError(f"unknown time zone {name}") from None


def _civil(value: int, zone: str) -> datetime:
    try:
        return (_EPOCH + timedelta(microseconds=int(value) // 1000)).astimezone(_zone(zone))
    except OverflowError:
        raise CelError("timestamp overflow") from None


_PARTS: Final[dict[str, Any]] = {
    "getFullYear": lambda t: t.year,
    "getMonth": lambda t: t.month - 1,
    "getDayOfYear": lambda t: t.timetuple().tm_yday - 1,
    "getDayOfMonth": lambda t: t.day - 1,
    "getDate": lambda t: t.day,
    "getDayOfWeek": lambda t: (t.weekday() + 1) % 7,
    "getHours": lambda t: t.hour,
    "getMinutes": lambda t: t.minute,
    "getSeconds": lambda t: t.second,
    "getMilliseconds": lambda t: t.microsecond // 1000,
}
_UNITS: Final = {"getHours": 3600 * NANO, "getMinutes": 60 * NANO, "getSeconds": NANO, "getMilliseconds": NANO // 1000}


def _part(read: Any) -> Any:
    return lambda value, zone="UTC": read(_civil(value, zone))


def _whole(unit: int) -> Any:
    return lambda value: abs(int(value)) // unit * (-1 if value < 0 else 1)


def times() -> Registry:
    """The library."""
    table: list[tuple[str, str, Any]] = []
    for name, read in _PARTS.items():
        part = _part(read)
        table += [(name, ". timestamp -> int", part), (name, ". timestamp string -> int", part)]
    for name, unit in _UNITS.items():
        table.append((name, ". duration -> int", _whole(unit)))
    return functions(table)
