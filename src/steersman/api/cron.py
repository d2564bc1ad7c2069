"""Cron schedules: whether a text is one, and when it is due. Pure.

Source of the facts (fields, ranges, descriptors, what happens when clocks are set forward or back): the cron page of
crontab(5) and the library Kubernetes uses, robfig/cron v3 (`ParseStandard`, `SpecSchedule.Next`).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from steersman.api.zones import offset

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: Final[tuple[tuple[int, int, dict[str, int]], ...]] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    (0, 6, {name: number for number, name in enumerate(_DAYS)}),
)
_DESCRIPTORS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY: Final = re.compile(r"@every ([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+")
_UNITS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_AMOUNT: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?)(ns|us|µs|ms|s|m|h)")
MAX_EVERY: Final = 292 * 365 * 86_400
"""Seconds: the longest interval Go can tell of."""
YEARS: Final = 5
"""How far ahead a next time is looked for: the 30th of February never comes."""
MINUTE, HOUR, DAY = 60, 3_600, 86_400
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


class Schedule(NamedTuple):
    """When something is due. `every`: seconds between two times; 0 for a schedule of five fields. The fields are the
    values that match; `any_day`: only one of the days (of month, of week) was restricted, so both must match."""

    every: int
    minutes: frozenset[int] = frozenset()
    hours: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    any_day: bool = False

    def next(self, after: int, zone: ZoneInfo) -> int | None:
        """The first time (seconds since the epoch) after another; None when there is none within five years. Local
        times that are left out when clocks go forward are left out here, and those that come twice are due twice."""
        if self.every:
            return after + self.every
        at = _Moment(after + 1, zone)
        last = at.year + YEARS
        while at.year <= last:
            if self._advance(at):
                return at.second
        return None

    def _advance(self, at: _Moment) -> bool:
        """Moves to the next match within the current year, month, day and hour; False where it left one of these, so
        that those before must be looked at again."""
        begun = False
        while at.month not in self.months:
            if not begun:
                at.set(at.year, at.month, 1)
            begun = True
            at.add(months=1)
            if at.month == 1:
                return False
        while not self._day_matches(at):
            if not begun:
                at.set(at.year, at.month, at.day)
            begun = True
            at.add(days=1)
            if at.hour:  # a day without midnight: its first hour, or back from the last one of the day before
                at.move((24 - at.hour if at.hour > 12 else -at.hour) * HOUR)
            if at.day == 1:
                return False
        while at.hour not in self.hours:
            if not begun:
                at.move(-(at.minute * MINUTE + at.in_minute))
            begun = True
            at.move(HOUR)
            if at.hour == 0:
                return False
        while at.minute not in self.minutes:
            if not begun:
                at.move(-at.in_minute)
            begun = True
            at.move(MINUTE)
            if at.minute == 0:
                return False
        if at.in_minute and not begun:
            at.move(MINUTE - at.in_minute)
            return False
        return True

    def _day_matches(self, at: _Moment) -> bool:
        day, weekday = at.day in self.days, at.weekday in self.weekdays
        return (day and weekday) if self.any_day else (day or weekday)


class _Moment:
    """A second since the epoch and its local time; moves."""

    __slots__ = ("day", "hour", "in_minute", "minute", "month", "second", "weekday", "year", "zone")

    def __init__(self, second: int, zone: ZoneInfo) -> None:
        self.zone = zone
        self._at(second)

    def _at(self, second: int) -> None:
        self.second = second
        local = datetime.fromtimestamp(second + offset(self.zone, second), UTC)
        self.year, self.month, self.day = local.year, local.month, local.day
        self.hour, self.minute, self.in_minute = local.hour, local.minute, local.second
        self.weekday = (local.weekday() + 1) % 7

    def move(self, seconds: int) -> None:
        """Real time passes."""
        self._at(self.second + seconds)

    def set(self, year: int, month: int, day: int, clock: int = 0) -> None:
        """A local date, at so many seconds of its day; where clocks skip that, the time Go's `time.Date` takes for it.
        Months and days beyond their ends count on."""
        year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
        local = int(datetime(year, month, 1, tzinfo=UTC).timestamp()) + (day - 1) * DAY + clock
        guess = offset(self.zone, local)
        self._at(local - (offset(self.zone, local - guess) if guess else 0))

    def add(self, months: int = 0, days: int = 0) -> None:
        """Another date at the same local time."""
        clock = self.hour * HOUR + self.minute * MINUTE + self.in_minute
        self.set(self.year, self.month + months, self.day + days, clock)


@lru_cache(maxsize=1 << 10)
def parse(text: str) -> Schedule:
    """The schedule of a text without `problems`."""
    if text.startswith("@every"):
        seconds = sum(float(number) * _UNITS[unit] for number, unit in _AMOUNT.findall(text))
        return Schedule(max(1, int(min(seconds, MAX_EVERY))))
    fields = _DESCRIPTORS.get(text, text).split()
    values = [_values(field, low, high, words) for field, (low, high, words) in zip(fields, _FIELDS, strict=True)]
    (minutes, _), (hours, _), (days, any_month_day), (months, _), (weekdays, any_weekday) = values
    return Schedule(0, minutes, hours, days, months, weekdays, any_month_day or any_weekday)


def _values(field: str, low: int, high: int, words: dict[str, int]) -> tuple[frozenset[int], bool]:
    """(what matches, whether it is a star without a step)."""
    found: set[int] = set()
    star = False
    for part in field.split(","):
        span, slash, step = part.partition("/")
        first, dash, last = span.partition("-")
        size = int(step) if slash else 1
        if first in ("*", "?"):
            start, end = low, high
            star = star or size == 1
        else:
            start = words[first.lower()] if first.lower() in words else int(first)
            end = (words[last.lower()] if last.lower() in words else int(last)) if dash else high if slash else start
        found.update(range(start, end + 1, size))
    return frozenset(found), star
