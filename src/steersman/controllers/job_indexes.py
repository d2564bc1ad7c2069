"""Sets of completion indexes as intervals, and their text (`0-3,5,7,8`). Pure.

Source of the form: Kubernetes 1.36, pkg/controller/job/indexed_job_utils.go: two neighbours are written with a comma,
three and more with a dash.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

Intervals = list[tuple[int, int]]
"""(first, last), ascending, with gaps between them."""
_DIGITS: Final = 10
"""Digits of a number that is read: indexes are below 2^31."""


def parse(text: str, completions: int) -> Intervals:
    """The indexes below `completions` in a text; what cannot be read is left out, as in Kubernetes."""
    found: Intervals = []
    for part in text.split(",") if text else ():
        first, dash, last = part.partition("-")
        low, high = _number(first), _number(last) if dash else _number(first)
        if low is None or high is None:
            continue
        if low >= completions:
            break
        high = min(high, completions - 1)
        if found and found[-1][1] == low - 1:
            found[-1] = (found[-1][0], high)
        else:
            found.append((low, high))
    return found


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _DIGITS else None


def text_of(intervals: Intervals) -> str:
    """The text of a set."""
    parts = []
    for first, last in intervals:
        between = "" if first == last else "," if last == first + 1 else "-"
        parts.append(f"{first}{between}{last}" if between else str(first))
    return ",".join(parts)


def single(indexes: Iterable[int]) -> Intervals:
    """The set of these indexes."""
    return merged([(index, index) for index in sorted(indexes)], [])


def merged(a: Intervals, b: Intervals) -> Intervals:
    """The union of two sets."""
    out: Intervals = []
    for first, last in sorted([*a, *b]):
        if out and first <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], last))
        else:
            out.append((first, last))
    return out


def total(intervals: Intervals) -> int:
    """How many indexes there are."""
    return sum([last - first + 1 for first, last in intervals])


def has(intervals: Intervals, index: int) -> bool:
    """Whether an index is in a set."""
    return any(first <= index <= last for first, last in intervals)


def common(a: Intervals, b: Intervals) -> int:
    """How many indexes two sets have in common."""
    return total(a) + total(b) - total(merged(a, b))


def first_outside(intervals: Intervals, count: int, completions: int) -> list[int]:
    """The first `count` indexes below `completions` that are not in a set."""
    out: list[int] = []
    candidate = 0
    for first, last in [*intervals, (completions, completions)]:
        out.extend(range(candidate, min(first, completions, candidate + count - len(out))))
        candidate = max(candidate, last + 1)
    return out
