"""Deleting many objects, and finding out which of them stay for now."""

from __future__ import annotations

from typing import Any

from steersman.api.client import Client, key_of
from steersman.api.errors import Conflict


def sweep(c: Client, found: list[Any]) -> list[Any]:
    """Asks for the deletion of all; returns those that are not gone at once."""
    for obj in found:
        meta = obj["metadata"]
        if "deletionTimestamp" in meta:
            continue
        try:
            c.delete(obj, uid=meta["uid"], propagation="Background")
        except Conflict:  # another incarnation: the next look finds it
            continue
    live = [c.get(key_of(obj), fresh=True) for obj in found]
    return [obj for obj in live if obj is not None]
