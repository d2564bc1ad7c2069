"""Time zones: the offset from UTC at a moment. Pure: the zones of the package `tzdata`, never the machine's own, so
that a schedule runs alike wherever it is checked, simulated or run."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from importlib.resources import files
from typing import Final
from zoneinfo import ZoneInfo

MAX_NAME: Final = 64
"""Letters of a zone's name: the longest known ones have half of that."""


@lru_cache(maxsize=1 << 10)
def zone(name: str) -> ZoneInfo | None:
    """A zone of the IANA database ("" is UTC); None for an unknown one."""
    parts = (name or "UTC").split("/")
    sound = len(name) <= MAX_NAME and all(
        part.replace("-", "").replace("+", "").replace("_", "").isalnum() for part in parts
    )
    if not sound or not name.isascii():
        return None
    place = files("tzdata").joinpath("zoneinfo", *parts)
    if not place.is_file():
        return None
    with place.open("rb") as data:
        try:
            return ZoneInfo.from_file(data, name or "UTC")
        except ValueError:  # a list of zones, not a zone
            return None


def problem(name: str) -> str:
    """What is wrong with a zone's name in a CronJob; "" when nothing is. The words are kube-apiserver's."""
    if not name:
        return "timeZone must be nil or non-empty string"
    if name.lower() == "local":
        return "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
    return "" if zone(name) is not None else f"unknown time zone {name}"


def offset(zone: ZoneInfo, second: int) -> int:
    """Seconds east of UTC at a second since the epoch."""
    passed = datetime.fromtimestamp(second, UTC).astimezone(zone).utcoffset()
    assert passed is not None
    return passed.days * 86_400 + passed.seconds


def local_text(zone: ZoneInfo, second: int) -> str:
    """RFC 3339 of a second since the epoch, in a zone."""
    moment = datetime.fromtimestamp(second, UTC).astimezone(zone)
    text = moment.isoformat(timespec="seconds")
    return text[: -len("+00:00")] + "Z" if text.endswith("+00:00") else text
