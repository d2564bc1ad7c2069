"""Lists and sets: Kubernetes' list library, cel-go's list extension version 3 and its sets."""

from __future__ import annotations

from functools import cmp_to_key
from itertools import pairwise
from typing import Any, Final

from steersman.api.cel.faults import CelError
from steersman.api.cel.functions import Registry, functions
from steersman.api.cel.operators import add, any_type, compare
from steersman.api.cel.values import Duration, Uint, equal

MAX_RANGE: Final = 1_000_000
"""Longest list that `lists.range` makes: more could not be walked within the cost limit of a call."""
COMPARABLE: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
SUMMABLE: Final = {"int": 0, "uint": Uint(0), "double": 0.0, "duration": Duration(0)}


def is_sorted(items: list[Any]) -> bool:
    """Whether no element is less than the one before."""
    return all(compare(a, b) <= 0 for a, b in pairwise(items))


def best(items: list[Any], sign: int, name: str) -> Any:
    """The largest (1) or smallest (-1) element."""
    if not items:
        raise CelError(f"{name} called on empty list")
    found = items[0]
    for item in items[1:]:
        if compare(item, found) * sign > 0:
            found = item
    return found


def largest(items: list[Any]) -> Any:
    """`max()`"""
    return best(items, 1, "max")


def smallest(items: list[Any]) -> Any:
    """`min()`"""
    return best(items, -1, "min")


@any_type
def index_of(items: list[Any], wanted: Any) -> int:
    """Where an element is first, -1 when nowhere."""
    return next((index for index, item in enumerate(items) if equal(item, wanted)), -1)


@any_type
def last_index_of(items: list[Any], wanted: Any) -> int:
    """Where an element is last, -1 when nowhere."""
    return next((index for index in range(len(items) - 1, -1, -1) if equal(items[index], wanted)), -1)


def slice_of(items: list[Any], start: int, end: int) -> list[Any]:
    """The elements from `start` up to, not including, `end`."""
    if start < 0 or end < 0:
        raise CelError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise CelError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if end > len(items):
        raise CelError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


def flatten(items: list[Any], depth: int = 1) -> list[Any]:
    """Lists within the list, so deep, written out."""
    if depth < 0:
        raise CelError("level must be non-negative")
    out: list[Any] = []
    for item in items:
        if isinstance(item, list) and depth > 0:
            out += flatten(item, depth - 1)
        else:
            out.append(item)
    return out


def sorted_by(items: list[Any], keys: list[Any]) -> list[Any]:
    """The elements in the order of their keys. Raises `CelError` for keys that have none."""
    if keys and any(type(key) is not type(keys[0]) for key in keys):
        raise CelError("list elements must have the same type")

    def by_key(a: int, b: int) -> int:
        return compare(keys[a], keys[b])

    try:
        order = sorted(range(len(items)), key=cmp_to_key(by_key))
    except CelError:
        raise CelError("list elements must be comparable") from None
    return [items[index] for index in order]


def _sort(items: list[Any]) -> list[Any]:
    return sorted_by(items, items)


def distinct(items: list[Any]) -> list[Any]:
    """Every element once, where it was first."""
    out: list[Any] = []
    for item in items:
        if not any(equal(item, other) for other in out):
            out.append(item)
    return out


def numbers(count: int) -> list[int]:
    """0 up to count - 1."""
    if count > MAX_RANGE:
        raise CelError(f"lists.range({count}) is longer than {MAX_RANGE}")
    return list(range(count))


def has_all(items: list[Any], wanted: list[Any]) -> bool:
    """Whether every wanted element is there."""
    return all(any(equal(item, other) for other in items) for item in wanted)


def _reverse(items: list[Any]) -> list[Any]:
    return items[::-1]


def _summer(zero: Any) -> Any:
    def total(items: list[Any]) -> Any:
        found = zero
        for item in items:
            found = add(found, item)
        return found

    return total


def lists() -> Registry:
    """The library."""
    table: list[tuple[str, str, Any]] = []
    for kind in COMPARABLE:
        table += [
            ("isSorted", f". list({kind}) -> bool", is_sorted),
            ("max", f". list({kind}) -> {kind}", largest),
            ("min", f". list({kind}) -> {kind}", smallest),
            ("sort", f". list({kind}) -> list({kind})", _sort),
        ]
    for kind, zero in SUMMABLE.items():
        table.append(("sum", f". list({kind}) -> {kind}", _summer(zero)))
    return functions(
        [
            *table,
            ("indexOf", ". list(A) A -> int", index_of),
            ("lastIndexOf", ". list(A) A -> int", last_index_of),
            ("slice", ". list(A) int int -> list(A)", slice_of),
            ("flatten", ". list(list(A)) -> list(A)", flatten),
            ("flatten", ". list(dyn) int -> list(dyn)", flatten),
            ("reverse", ". list(A) -> list(A)", _reverse),
            ("distinct", ". list(A) -> list(A)", distinct),
            ("lists.range", "int -> list(int)", numbers),
            ("sets.contains", "list(A) list(A) -> bool", has_all),
            ("sets.equivalent", "list(A) list(A) -> bool", lambda a, b: has_all(a, b) and has_all(b, a)),
            ("sets.intersects", "list(A) list(A) -> bool", lambda a, b: any(equal(x, y) for x in a for y in b)),
        ]
    )
