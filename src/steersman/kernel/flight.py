"""A reconcile in flight, as a world holds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from .effect import Call, Commit
from .object import Key, Object
from .reexec import Node


class Flight(NamedTuple):
    """A reconcile in flight."""

    node: Node
    versions: Mapping[Key, tuple[Object, ...]]
    """The versions it has read or written, by slot, in the order it met them."""
    wrote: bool = False
    waiting: Call | Commit | None = None
    """A write that has left the controller and is not yet committed (webhooks)."""
    begun: Object | None = None
    """The version that this write is to replace."""


def with_versions(versions: Mapping[Key, tuple[Object, ...]], value: Any) -> Mapping[Key, tuple[Object, ...]]:
    """The versions that a reconcile has met, after the outcome of its next call."""
    objects = value if isinstance(value, tuple) else (value,)
    out: dict[Key, tuple[Object, ...]] | None = None
    for obj in objects:
        if isinstance(obj, Object):
            seen = versions.get(obj.key, ())
            if all(known.rv != obj.rv for known in seen):
                if out is None:
                    out = dict(versions)
                out[obj.key] = (*seen, obj)
    return versions if out is None else out
