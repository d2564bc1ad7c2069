"""The operators of the language, and its optionals. Every one looks at the types of its values itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from steersman.api.cel.convert import CONVERSIONS, made_duration, made_timestamp
from steersman.api.cel.faults import CelError
from steersman.api.cel.functions import Registry, functions
from steersman.api.cel.values import (
    NONE,
    Duration,
    Fields,
    Opaque,
    Optional,
    Timestamp,
    TypeName,
    Uint,
    checked_int,
    checked_text,
    checked_uint,
    equal,
    is_number,
    type_name,
)


def any_type(impl: Callable[..., Any]) -> Callable[..., Any]:
    """Marks what looks at its values' types itself."""
    impl.any_type = True  # type: ignore[attr-defined]
    return impl


def no_overload() -> CelError:
    """What values of types that do not go together give."""
    return CelError("no such overload")


@any_type
def add(a: Any, b: Any) -> Any:
    """`_+_`"""
    ta, tb = type(a), type(b)
    if ta is tb:
        if ta is int:
            return checked_int(a + b)
        if ta is str or ta is bytes:
            checked_text(len(a) + len(b))
            return a + b
        if ta is float:
            return a + b
        if ta is Uint:
            return checked_uint(int(a) + int(b))
        if ta is Duration:
            return made_duration(int(a) + int(b))
    if isinstance(a, list) and isinstance(b, list):
        joined = getattr(a, "cel_add", None)
        return joined(b) if joined is not None else [*a, *b]
    if (ta is Timestamp and tb is Duration) or (ta is Duration and tb is Timestamp):
        return made_timestamp(int(a) + int(b))
    raise no_overload()


@any_type
def subtract(a: Any, b: Any) -> Any:
    """`_-_`"""
    ta, tb = type(a), type(b)
    if ta is tb:
        if ta is int:
            return checked_int(a - b)
        if ta is float:
            return a - b
        if ta is Uint:
            return checked_uint(int(a) - int(b))
        if ta is Duration or ta is Timestamp:
            return made_duration(int(a) - int(b))
    if ta is Timestamp and tb is Duration:
        return made_timestamp(int(a) - int(b))
    raise no_overload()


@any_type
def multiply(a: Any, b: Any) -> Any:
    """`_*_`"""
    if type(a) is type(b):
        if type(a) is int:
            return checked_int(a * b)
        if type(a) is float:
            return a * b
        if type(a) is Uint:
            return checked_uint(int(a) * int(b))
    raise no_overload()


@any_type
def divide(a: Any, b: Any) -> Any:
    """`_/_`; whole numbers round toward zero."""
    if type(a) is type(b):
        if type(a) is float:
            if b:
                return a / b
            return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)
        if type(a) in (int, Uint):
            if b == 0:
                raise CelError("division by zero")
            found = abs(int(a)) // abs(int(b))
            return Uint(found) if type(a) is Uint else checked_int(found if (a < 0) == (b < 0) else -found)
    raise no_overload()


@any_type
def modulo(a: Any, b: Any) -> Any:
    """`_%_`, with the sign of the first."""
    if type(a) is type(b) and type(a) in (int, Uint):
        if b == 0:
            raise CelError("modulus by zero")
        found = abs(int(a)) % abs(int(b))
        return Uint(found) if type(a) is Uint else -found if a < 0 else found
    raise no_overload()


@any_type
def negate(a: Any) -> Any:
    """`-_`"""
    if type(a) is int:
        return checked_int(-a)
    if type(a) is float:
        return -a
    raise no_overload()


@any_type
def negation(a: Any) -> bool:
    """`!_`"""
    if type(a) is not bool:
        raise no_overload()
    return not a


def compare(a: Any, b: Any) -> int:
    """-1, 0 or 1. Raises `CelError` for values that have no order."""
    if is_number(a) and is_number(b):
        if (type(a) is float and math.isnan(a)) or (type(b) is float and math.isnan(b)):
            raise CelError("NaN values cannot be ordered")
    elif type(a) is not type(b) or type(a) not in (str, bytes, bool, Timestamp, Duration):
        raise no_overload()
    return int(a > b) - int(a < b)


@any_type
def less(a: Any, b: Any) -> bool:
    """`_<_`"""
    return compare(a, b) < 0


@any_type
def less_equal(a: Any, b: Any) -> bool:
    """`_<=_`"""
    return compare(a, b) <= 0


@any_type
def greater(a: Any, b: Any) -> bool:
    """`_>_`"""
    return compare(a, b) > 0


@any_type
def greater_equal(a: Any, b: Any) -> bool:
    """`_>=_`"""
    return compare(a, b) >= 0


equals = any_type(equal)


@any_type
def differs(a: Any, b: Any) -> bool:
    """`_!=_`"""
    return not equal(a, b)


@any_type
def contained(item: Any, holder: Any) -> bool:
    """`in`"""
    if isinstance(holder, list):
        return any(equal(item, other) for other in holder)
    if isinstance(holder, Fields):
        return isinstance(item, str) and holder.cel_has(item)
    if isinstance(holder, dict):
        if type(item) is bool:
            return any(key is item for key in holder)
        return type(item) in (str, int, Uint, float) and item in holder
    raise no_overload()


@any_type
def size(value: Any) -> int:
    """Characters, bytes, elements or entries."""
    if isinstance(value, (str, bytes, list, dict)):
        return len(value)
    if isinstance(value, Fields):
        return len(value.cel_plain())
    raise no_overload()


@any_type
def type_of_value(value: Any) -> TypeName:
    """`type()`"""
    return TypeName(type_name(value))


@any_type
def itself(value: Any) -> Any:
    """`dyn()`"""
    return value


@any_type
def of(value: Any) -> Optional:
    """`optional.of()`"""
    return Optional(True, value)


@any_type
def of_non_zero(value: Any) -> Optional:
    """`optional.ofNonZeroValue()`"""
    return NONE if value is None or (not isinstance(value, (Opaque, Optional)) and not value) else Optional(True, value)


def _value_of(value: Optional) -> Any:
    if not value.has:
        raise CelError("optional.none() dereference")
    return value.value


def _unused(*values: Any) -> Any:
    raise no_overload()  # planned as a step of its own


_ORDERED: Final = ("bool bool", "int int", "int uint", "int double", "uint uint", "uint int", "uint double",
                   "double double", "double int", "double uint", "string string", "bytes bytes",
                   "timestamp timestamp", "duration duration")  # fmt: skip
_COMPARISONS: Final = (("_<_", less), ("_<=_", less_equal), ("_>_", greater), ("_>=_", greater_equal))


def _arithmetic() -> Sequence[tuple[str, str, Any]]:
    table: list[tuple[str, str, Any]] = []
    for kind in ("int", "uint", "double"):
        for op, impl in (("+", add), ("-", subtract), ("*", multiply), ("/", divide)):
            table.append((f"_{op}_", f"{kind} {kind} -> {kind}", impl))
    for kind in ("int", "uint"):
        table.append(("_%_", f"{kind} {kind} -> {kind}", modulo))
    for kind in ("string", "bytes", "list(A)", "duration"):
        table.append(("_+_", f"{kind} {kind} -> {kind}", add))
    table += [
        ("_+_", "duration timestamp -> timestamp", add),
        ("_+_", "timestamp duration -> timestamp", add),
        ("_-_", "duration duration -> duration", subtract),
        ("_-_", "timestamp timestamp -> duration", subtract),
        ("_-_", "timestamp duration -> timestamp", subtract),
        ("-_", "int -> int", negate),
        ("-_", "double -> double", negate),
    ]
    return table


def standard() -> Registry:
    """The language's own functions."""
    sized = [
        ("size", f"{dot}{kind} -> int", size)
        for kind in ("string", "bytes", "list(A)", "map(A,B)")
        for dot in ("", ". ")
    ]
    indexed = [
        (
            name,
            f"{wrap.format(source)} {key} -> {'optional(' + out + ')' if 'opt' in wrap or '?' in name else out}",
            _unused,
        )
        for name, wrap in (("_[_]", "{}"), ("_[_]", "optional({})"), ("_[?_]", "{}"), ("_[?_]", "optional({})"))
        for source, key, out in (("list(A)", "int", "A"), ("map(A,B)", "A", "B"))
    ]
    return functions(
        [
            ("_?_:_", "bool A A -> A", _unused),
            ("_&&_", "bool bool -> bool", _unused),
            ("_||_", "bool bool -> bool", _unused),
            ("!_", "bool -> bool", negation),
            ("_==_", "A A -> bool", equals),
            ("_!=_", "A A -> bool", differs),
            *[(name, f"{pair} -> bool", impl) for name, impl in _COMPARISONS for pair in _ORDERED],
            *_arithmetic(),
            *indexed,
            ("@in", "A list(A) -> bool", contained),
            ("@in", "A map(A,B) -> bool", contained),
            *sized,
            ("type", "A -> type(A)", type_of_value),
            ("dyn", "A -> dyn", itself),
            *CONVERSIONS,
            ("optional.of", "A -> optional(A)", of),
            ("optional.ofNonZeroValue", "A -> optional(A)", of_non_zero),
            ("optional.none", "-> optional(A)", lambda: NONE),
            ("value", ". optional(A) -> A", _value_of),
            ("hasValue", ". optional(A) -> bool", lambda value: value.has),
            ("or", ". optional(A) optional(A) -> optional(A)", _unused),
            ("orValue", ". optional(A) A -> A", _unused),
        ]
    )
