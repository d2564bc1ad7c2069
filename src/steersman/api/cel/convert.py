"""Conversions between types: `int()`, `string()`, `timestamp()` and their like."""

from __future__ import annotations

import math
import re
from typing import Any, Final

from steersman.api.cel.faults import CelError
from steersman.api.cel.values import (
    INT_MAX,
    INT_MIN,
    MAX_TIME,
    MIN_TIME,
    NANO,
    UINT_MAX,
    Duration,
    Timestamp,
    Uint,
    checked_int,
    checked_uint,
    double_text,
    duration_text,
    timestamp_text,
)
from steersman.api.times import TimeError, parse_time

_DURATION: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_UNITS: Final = {"ns": 1, "us": 1000, "µs": 1000, "μs": 1000, "ms": 10**6, "s": NANO, "m": 60 * NANO, "h": 3600 * NANO}
_FRACTION: Final = re.compile(r"\.(\d{1,9})\d*")
_DOUBLE: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(?:inf(?:inity)?|nan)", re.I | re.A)


def made_duration(value: int) -> Duration:
    """A duration in its range."""
    if not INT_MIN <= value <= INT_MAX:
        raise CelError("integer overflow")
    return Duration(value)


def made_timestamp(value: int) -> Timestamp:
    """A time from year 1 to 9999."""
    if not MIN_TIME <= value <= MAX_TIME:
        raise CelError("timestamp overflow")
    return Timestamp(value)


def to_int(value: Any) -> int:
    """`int()`"""
    kind = type(value)
    if kind is float:
        if math.isnan(value) or not INT_MIN < value < INT_MAX:
            raise CelError("integer overflow")
        return int(value)
    if kind is Timestamp:
        return int(value) // NANO
    if kind is str:
        if re.fullmatch(r"[+-]?\d{1,19}", value, re.ASCII) and INT_MIN <= int(value) <= INT_MAX:
            return int(value)
        raise CelError("type conversion error from 'string' to 'int'")
    return checked_int(int(value))


def to_uint(value: Any) -> Uint:
    """`uint()`"""
    if type(value) is float:
        if math.isnan(value) or not 0 <= value < UINT_MAX:
            raise CelError("unsigned integer overflow")
    elif type(value) is str and (not re.fullmatch(r"\d{1,20}", value, re.ASCII) or int(value) > UINT_MAX):
        raise CelError("type conversion error from 'string' to 'uint'")
    return checked_uint(int(value))


def to_double(value: Any) -> float:
    """`double()`"""
    if type(value) is str and not _DOUBLE.fullmatch(value):
        raise CelError("type conversion error from 'string' to 'double'")
    return float(value)


def to_bool(value: Any) -> bool:
    """`bool()`"""
    if type(value) is str:
        if value in ("1", "t", "T", "true", "TRUE", "True"):
            return True
        if value in ("0", "f", "F", "false", "FALSE", "False"):
            return False
        raise CelError("type conversion error from 'string' to 'bool'")
    return bool(value)


def to_bytes(value: Any) -> bytes:
    """`bytes()`"""
    return value.encode("utf-8", "surrogatepass") if type(value) is str else value


def to_string(value: Any) -> str:
    """`string()`"""
    kind = type(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is float:
        return double_text(value)
    if kind is bytes:
        try:
            return str(value.decode())
        except UnicodeDecodeError:
            raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None
    if kind is Timestamp:
        return timestamp_text(value)
    if kind is Duration:
        return duration_text(value)
    return str(int(value)) if kind in (int, Uint) else str(value)


def to_timestamp(value: Any) -> Timestamp:
    """`timestamp()`"""
    if type(value) is int:
        return made_timestamp(value * NANO)
    if type(value) is str:
        fraction = _FRACTION.search(value)
        try:
            micro = parse_time(_FRACTION.sub("", value, count=1))
        except (TimeError, ValueError):
            raise CelError("type conversion error from 'string' to 'google.protobuf.Timestamp'") from None
        return made_timestamp(micro * 1000 + (int(fraction[1].ljust(9, "0")) if fraction else 0))
    return Timestamp(value)


def to_duration(value: Any) -> Duration:
    """`duration()`: Go's text, such as 1h30m, or nanoseconds."""
    if type(value) is not str:
        return made_duration(int(value))
    text = value[1:] if value[:1] in ("+", "-") else value
    total, at = 0, 0
    for match in _DURATION.finditer(text):
        if match.start() != at or len(match[1]) > 40:
            break
        whole, _, part = match[1].partition(".")
        unit = _UNITS[match[2]]
        total += int(whole or 0) * unit + (int(part) * unit // 10 ** len(part) if part else 0)
        at = match.end()
    if (text != "0" and (not text or at != len(text))) or total > INT_MAX:
        raise CelError("type conversion error from 'string' to 'google.protobuf.Duration'")
    return made_duration(-total if value.startswith("-") else total)


CONVERSIONS: Final = [
    (name, f"{source} -> {name}", impl)
    for name, impl, sources in (
        ("int", to_int, "int double duration string timestamp uint"),
        ("uint", to_uint, "uint double int string"),
        ("double", to_double, "double int string uint"),
        ("bool", to_bool, "bool string"),
        ("bytes", to_bytes, "bytes string"),
        ("string", to_string, "string bool bytes double duration int timestamp uint ip cidr"),
        ("timestamp", to_timestamp, "timestamp int string"),
        ("duration", to_duration, "duration int string"),
    )
    for source in sources.split()
]
