"""Values while an expression is evaluated.

bool, int, float, str, bytes, None, lists and dicts are Python's own. What JSON does not have is here: unsigned
numbers, times, durations, optionals, names of types; and the texts that cel-go writes for values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from steersman.api.cel.faults import CelError
from steersman.api.times import time_text

INT_MIN: Final = -(1 << 63)
INT_MAX: Final = (1 << 63) - 1
UINT_MAX: Final = (1 << 64) - 1
NANO: Final = 1_000_000_000
MAX_TEXT: Final = 10 << 20
"""Bytes of the longest text an expression may make: three times the biggest request."""
MIN_TIME: Final = -62_135_596_800 * NANO
MAX_TIME: Final = 253_402_300_799 * NANO + NANO - 1
"""Years 1 to 9999, in nanoseconds from the epoch."""


class Uint(int):
    """An unsigned number."""

    __slots__ = ()


class Timestamp(int):
    """Nanoseconds since the epoch."""

    __slots__ = ()


class Duration(int):
    """Nanoseconds."""

    __slots__ = ()


class Optional:
    """A value that may be missing."""

    __slots__ = ("has", "value")

    def __init__(self, has: bool, value: Any = None) -> None:
        self.has = has
        self.value = value


NONE: Final = Optional(False)


class TypeName:
    """The name of a type, as a value."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypeName) and other.name == self.name

    def __hash__(self) -> int:
        return len(self.name)


class Opaque:
    """A value of a library. `kind` is its type's name; `cel_equal` its equality."""

    __slots__ = ()
    kind = ""

    def cel_equal(self, other: Any) -> bool:
        """Whether both are the same value."""
        return self is other


class Fields:
    """Something with fields that are found when they are asked for: the view of an object, variables of a policy."""

    __slots__ = ()

    def cel_get(self, name: str) -> Any:
        """The field. Raises `KeyError`."""
        raise KeyError(name)

    def cel_has(self, name: str) -> bool:
        """Whether the field is set."""
        return False

    def cel_plain(self) -> Any:
        """The value with nothing but plain values in it."""
        return {}

    def __len__(self) -> int:
        return 1


_NAMES: Final[Mapping[type, str]] = {
    bool: "bool", int: "int", Uint: "uint", float: "double", str: "string", bytes: "bytes", type(None): "null_type",
    Timestamp: "google.protobuf.Timestamp", Duration: "google.protobuf.Duration", TypeName: "type",
    Optional: "optional_type",
}  # fmt: skip


def type_name(value: Any) -> str:
    """The name of a value's type."""
    name = _NAMES.get(type(value))
    if name is not None:
        return name
    if isinstance(value, list):
        return "list"
    if isinstance(value, dict):
        return "map"
    return str(getattr(value, "kind", "") or "object")


def size_of(value: Any) -> int:
    """A value's size as cost counts it: of texts, lists and maps their length, else 1."""
    kind = type(value)
    if kind is int or kind is bool or value is None:
        return 1
    if isinstance(value, (str, bytes, list, dict)):
        return len(value)
    return size_of(value.value) if kind is Optional and value.has else 1


def is_number(value: Any) -> bool:
    """Whether it is int, uint or double."""
    return type(value) in (int, Uint, float)


def equal(a: Any, b: Any) -> bool:
    """CEL's `==`: numbers by amount whatever their type, lists and maps by content, other types only among equals."""
    ta, tb = type(a), type(b)
    if ta in (int, Uint, float):
        return tb in (int, Uint, float) and a == b
    if ta is str or ta is bool or a is None or ta is bytes or ta is Timestamp or ta is Duration:
        return ta is tb and bool(a == b)
    if isinstance(a, list):
        if not isinstance(b, list) or len(a) != len(b):
            return False
        special = getattr(a, "cel_equal", None) or getattr(b, "cel_equal", None)
        if special is not None:
            return bool(special(b if hasattr(a, "cel_equal") else a))
        return all(equal(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        if isinstance(b, Fields):
            b = b.cel_plain()
        if not isinstance(b, dict) or len(a) != len(b):
            return False
        return all(key in b and type(key) is not bool and equal(value, b[key]) for key, value in a.items())
    if isinstance(a, Fields):
        return equal(a.cel_plain(), b)
    if isinstance(a, Opaque):
        return type(a) is type(b) and a.cel_equal(b)
    if isinstance(a, Optional):
        return isinstance(b, Optional) and a.has == b.has and (not a.has or equal(a.value, b.value))
    return isinstance(a, TypeName) and a == b


def checked_int(value: int) -> int:
    """An int in its range. Raises `CelError`."""
    if INT_MIN <= value <= INT_MAX:
        return value
    raise CelError("integer overflow")


def checked_uint(value: int) -> Uint:
    """An unsigned number in its range. Raises `CelError`."""
    if 0 <= value <= UINT_MAX:
        return Uint(value)
    raise CelError("unsigned integer overflow")


def checked_text(size: int) -> None:
    """Refuses a text that would become too long."""
    if size > MAX_TEXT:
        raise CelError(f"the text would have more than {MAX_TEXT} characters")


def double_text(value: float) -> str:
    """As Go writes a float64 with the format 'g' and the shortest precision."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    text = repr(value)
    mantissa, _, exponent = text.partition("e")
    digits = mantissa.lstrip("-").replace(".", "")
    if exponent:
        return f"{mantissa.removesuffix('.0')}e{exponent[0]}{exponent[1:].zfill(2)}"
    whole = mantissa.lstrip("-").partition(".")[0]
    if whole != "0" and len(whole) > 21:
        stripped = digits.rstrip("0")
        shown = stripped[0] + ("." + stripped[1:] if len(stripped) > 1 else "")
        return f"{'-' if value < 0 else ''}{shown}e+{len(whole) - 1:02d}"
    return mantissa.removesuffix(".0")


def duration_text(value: int) -> str:
    """Seconds with a fraction, as CEL's string() writes a duration."""
    sign, value = ("-", -value) if value < 0 else ("", value)
    whole, rest = divmod(value, NANO)
    return f"{sign}{whole}{f'.{rest:09d}'.rstrip('0') if rest else ''}s"


def timestamp_text(value: int) -> str:
    """RFC 3339 with as many digits of the fraction as it has."""
    whole, rest = divmod(value, NANO)
    return time_text(whole)[:-1] + (f".{rest:09d}".rstrip("0") if rest else "") + "Z"


def key_text(value: Any) -> str:
    """A key in an error."""
    if type(value) is bool:
        return "true" if value else "false"
    return double_text(value) if type(value) is float else str(value)
