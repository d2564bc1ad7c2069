"""Cron schedules: whether a text is one.

Source of the facts (fields, ranges, descriptors): the cron page of crontab(5) and the parser Kubernetes uses,
robfig/cron v3 `ParseStandard`.
"""

from __future__ import annotations

import re
from typing import Final

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: Final[tuple[tuple[int, int, dict[str, int]], ...]] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    (0, 6, {name: number for number, name in enumerate(_DAYS)}),
)
_DESCRIPTORS: Final = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})
_EVERY: Final = re.compile(r"@every ([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+")
MAX_LENGTH: Final = 1024  # of a schedule: longer ones are no text that a person writes


def problems(text: str) -> list[str]:
    """What is wrong with a schedule of five fields, or with a descriptor such as `@daily`."""
    if len(text) > MAX_LENGTH:
        return [f"must be no more than {MAX_LENGTH} characters"]
    if text.startswith(("TZ=", "CRON_TZ=")):
        return ["cannot use TZ or CRON_TZ in schedule, use timeZone field instead"]
    if text.startswith("@"):
        known = text in _DESCRIPTORS or _EVERY.fullmatch(text)
        return [] if known else [f"unrecognized descriptor: {text}"]
    fields = text.split()
    if len(fields) != len(_FIELDS):
        return [f"expected exactly {len(_FIELDS)} fields, found {len(fields)}: [{' '.join(fields)}]"]
    for field, (low, high, words) in zip(fields, _FIELDS, strict=True):
        for part in field.split(","):
            problem = _part(part, low, high, words)
            if problem:
                return [problem]
    return []


def _part(text: str, low: int, high: int, words: dict[str, int]) -> str:
    """The problem of one range such as `*/5`, `1-5` or `mon`; "" when it is sound."""
    span, slash, step = text.partition("/")
    first, dash, last = span.partition("-")
    if "/" in step:
        return f"too many slashes: {text}"
    if "-" in last:
        return f"too many hyphens: {text}"
    if slash and not (step.isascii() and step.isdecimal()):
        return f"failed to parse number {step}: use a whole number after the slash"
    if slash and int(step) == 0:
        return f"step of range should be a positive number: {text}"
    if first in ("*", "?"):
        return f"range {text} has an end but no beginning" if dash else ""
    numbers = []
    for word in (first, last) if dash else (first,):
        number = words.get(word.lower(), int(word) if word.isascii() and word.isdecimal() else -1)
        if number < 0:
            return f"failed to parse number {word}: use a number of {low} to {high}"
        numbers.append(number)
    if numbers[0] < low:
        return f"beginning of range ({numbers[0]}) below minimum ({low}): {text}"
    if numbers[-1] > high:
        return f"end of range ({numbers[-1]}) above maximum ({high}): {text}"
    return (
        f"beginning of range ({numbers[0]}) beyond end of range ({numbers[-1]}): {text}"
        if numbers[0] > numbers[-1]
        else ""
    )
