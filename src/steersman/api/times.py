"""RFC 3339 text and microseconds since the epoch. Pure: civil-date arithmetic, no clock, no locale."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from steersman.kernel.civil import micro_of
from steersman.kernel.effect import MICRO as MICRO

_TEXT: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):(\d\d))\Z",
    re.ASCII,
)
_DAYS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class TimeError(ValueError):
    """A text that is no RFC 3339 time."""


@lru_cache(maxsize=1 << 10)
def time_text(second: int) -> str:
    """RFC 3339 of a whole second since the epoch, in UTC."""
    days, rest = divmod(second, 86_400)
    z = days + 719_468
    era, day_of_era = divmod(z, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    year = year_of_era + era * 400 + (month <= 2)
    hour, rest = divmod(rest, 3600)
    return f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{rest // 60:02d}:{rest % 60:02d}Z"


def micro_text(micro: int) -> str:
    """RFC 3339 with microseconds, as Kubernetes' MicroTime is written."""
    second, fraction = divmod(micro, MICRO)
    return f"{time_text(second)[:-1]}.{fraction:06d}Z"


@lru_cache(maxsize=1 << 12)
def parse_time(text: str) -> int:
    """Microseconds since the epoch of an RFC 3339 text. Raises `TimeError`."""
    match = _TEXT.match(text)
    if match is None:
        raise TimeError(f"{text!r} is not a time; write RFC 3339, such as 2026-01-31T12:00:00Z")
    year, month, day, hour, minute, second = (int(match.group(n)) for n in range(1, 7))
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    valid = 1 <= month <= 12 and 1 <= day <= _DAYS[month - 1] and (leap or (month, day) != (2, 29))
    if not (valid and hour < 24 and minute < 60 and second <= 60):
        raise TimeError(f"{text!r} is not a time: a part is out of its range")
    return micro_of(match)


def time_of(text: str | None) -> int | None:
    """The same; None where nothing that can be read is there."""
    try:
        return parse_time(text) if text else None
    except TimeError:
        return None
