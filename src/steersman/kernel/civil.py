"""The civil calendar, as arithmetic: no clock, no locale."""

from __future__ import annotations

import re

from .effect import MICRO


def micro_of(match: re.Match[str]) -> int:
    """Microseconds since the Unix epoch of a matched RFC 3339 time. Groups: year, month, day, hour, minute, second,
    fraction or None, sign of the offset or None (UTC), its hours, its minutes. Ranges are the caller's to check."""
    year, month, day, hour, minute, second = [int(match.group(number)) for number in range(1, 7)]
    y = year - (month <= 2)
    era, year_of_era = divmod(y, 400)
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    days = era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468
    seconds = days * 86_400 + hour * 3600 + minute * 60 + second
    if match.group(8):
        offset = int(match.group(9)) * 3600 + int(match.group(10)) * 60
        seconds += -offset if match.group(8) == "+" else offset
    fraction = int((match.group(7) or "0").ljust(6, "0")[:6])
    return seconds * MICRO + fraction
