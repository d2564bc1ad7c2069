"""Filling: edits of frozen values that copy only the path they change.

Every function gives the very object it was given when there is nothing to add, so that a value that is
complete stays shared, with its cached section.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from steersman.kernel.value import Frozen, FrozenList


def lacking(value: Frozen, defaults: Mapping[str, Any]) -> Frozen:
    """Adds the defaults of fields that are not there: for Go's pointers, where zero is a choice."""
    added = {name: default for name, default in defaults.items() if name not in value}
    return Frozen({**value, **added}) if added else value


def unset(value: Frozen, defaults: Mapping[str, Any]) -> Frozen:
    """Adds the defaults of fields that are not there, empty or zero: for Go's plain strings and numbers."""
    added = {name: default for name, default in defaults.items() if not value.get(name)}
    return Frozen({**value, **added}) if added else value


def put(value: Frozen, name: str, item: Any) -> Frozen:
    """Sets one field."""
    return value if value.get(name) is item else Frozen({**value, name: item})


def inside(value: Frozen, name: str, fill: Callable[[Frozen], Frozen]) -> Frozen:
    """Fills the object in field `name`, if there is one."""
    child = value.get(name)
    if not isinstance(child, dict):
        return value
    filled = fill(child)  # type: ignore[arg-type]  # children of a frozen value are frozen
    return value if filled is child else Frozen({**value, name: filled})


def each(value: Frozen, name: str, fill: Callable[[Frozen], Frozen]) -> Frozen:
    """Fills every object of the list in field `name`, if there is one."""
    items = value.get(name)
    if not isinstance(items, list):
        return value
    filled = elements(items, fill)
    return value if filled is items else Frozen({**value, name: filled})


def elements(items: Any, fill: Callable[[Frozen], Frozen]) -> Any:
    """The list with every object in it filled; the same list when none changed."""
    filled = [fill(item) if isinstance(item, dict) else item for item in items]  # type: ignore[arg-type]
    changed = any(new is not old for new, old in zip(filled, items, strict=True))
    return FrozenList(filled) if changed else items
