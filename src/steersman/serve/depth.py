"""How deep a decoded value is: a bound that holds for bodies of every encoding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

MAX_DEPTH: Final = 128
"""Levels of a body; a pod has about ten, a large CustomResourceDefinition some fifty."""


def deeper_than(value: Any, limit: int) -> bool:
    """Whether a value has more than `limit` levels; level by level, for it may have a thousand."""
    level: list[Any] = [value]
    for _ in range(limit):
        below: list[Any] = []
        for part in level:
            parts: Sequence[Any] = list(part.values()) if isinstance(part, dict) else part
            below += [item for item in parts if isinstance(item, dict | list)]
        if not below:
            return False
        level = below
    return True
