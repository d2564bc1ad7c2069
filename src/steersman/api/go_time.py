"""Times as Go reads and writes them: why a text is none, and the one form in which Kubernetes stores it.

metav1.Time is written in whole seconds, metav1.MicroTime with six digits after them and read in no other form, both in
UTC. Source of the facts: Go's `time.Parse`; apimachinery `pkg/apis/meta/v1/time.go` and `micro_time.go`, release 1.36.
"""

from __future__ import annotations

import re
from typing import Final

from steersman.api.errors import quote
from steersman.api.times import MICRO, TimeError, micro_text, parse_time, time_text

SECONDS: Final = "2006-01-02T15:04:05Z07:00"
MICROS: Final = "2006-01-02T15:04:05.000000Z07:00"
_ELEMENTS: Final = (
    *(("", "2006", r"\d{4}"), ("-", "01", r"\d\d"), ("-", "02", r"\d\d"), ("T", "15", r"\d\d?")),
    *((":", "04", r"\d\d"), (":", "05", r"\d\d")),
)
"""What stands before each part, its name in a layout, and what it is."""
_MOST: Final = {"01": (1, 12, "month"), "15": (0, 23, "hour"), "04": (0, 59, "minute"), "05": (0, 59, "second")}
_ZONE: Final = re.compile(r"Z|[+-]\d\d:\d\d")
_FRACTION: Final = re.compile(r"[.,]\d+")


def fault(text: str, layout: str) -> str:
    """Why Go cannot read a text by `SECONDS` or `MICROS`; "" when it can."""
    rest = text
    for before, name, form in _ELEMENTS:
        if not rest.startswith(before):
            return _unparsed(text, layout, rest, before)
        rest = rest[len(before) :]
        found = re.match(form, rest, re.ASCII)
        if found is None:
            return _unparsed(text, layout, rest, name)
        least, most, what = _MOST.get(name, (0, 9999, ""))
        if not least <= int(found[0]) <= most:
            return f"parsing time {quote(text)}: {what} out of range"
        rest = rest[found.end() :]
    if layout == MICROS:
        if re.match(r"[.,]\d{6}", rest, re.ASCII) is None:
            return _unparsed(text, layout, rest, ".000000")
        rest = rest[7:]
    elif fraction := _FRACTION.match(rest):
        rest = rest[fraction.end() :]
    zone = _ZONE.match(rest)
    if zone is None:
        return _unparsed(text, layout, rest, "Z07:00")
    if rest[zone.end() :]:
        return f"parsing time {quote(text)}: extra text: {quote(rest[zone.end() :])}"
    try:
        parse_time(text)
    except TimeError:
        return f"parsing time {quote(text)}: day out of range"
    return ""


def canonical(text: str, layout: str) -> str:
    """The form in which a text without `fault` is kept."""
    micro = parse_time(text)
    return micro_text(micro) if layout == MICROS else time_text(micro // MICRO)


def _unparsed(text: str, layout: str, rest: str, name: str) -> str:
    return f"parsing time {quote(text)} as {quote(layout)}: cannot parse {quote(rest)} as {quote(name)}"
