"""Ages and durations as kubectl shows them: `5m20s`, `3d4h`, `<unknown>`.

The steps are those of apimachinery's `duration.HumanDuration`.
"""

from __future__ import annotations

from typing import Any

from steersman.api.times import MICRO, TimeError, parse_time


def age(time: Any, now: int) -> str:
    """How long ago an RFC 3339 text was; `now` in microseconds."""
    if not time or not isinstance(time, str):
        return "<unknown>"
    try:
        return human((now - parse_time(time)) / MICRO)
    except TimeError:
        return "<unknown>"


def between(start: Any, end: Any) -> str:
    """From one RFC 3339 text to another."""
    try:
        return human((parse_time(end) - parse_time(start)) / MICRO)
    except (TimeError, TypeError):
        return "<unknown>"


def human(duration: float) -> str:
    """Seconds, in the two units that matter."""
    seconds = int(duration)
    if seconds < -1:
        return "<invalid>"
    if seconds < 120:
        return f"{max(0, seconds)}s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86_400
    if minutes < 10:
        return _pair(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return _pair(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    if days < 2920:
        return _pair(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _pair(large: int, unit: str, small: int, small_unit: str) -> str:
    return f"{large}{unit}{small}{small_unit}" if small else f"{large}{unit}"
