"""Who owns real objects: their references name uids of another place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from steersman.kernel.object import Key
from steersman.kernel.store import Store


def keys(obj: Mapping[str, Any], owner: Mapping[str, Any]) -> tuple[Key, Key]:
    """Where an owner may be: in the namespace of what it owns, or in none."""
    group = str(owner.get("apiVersion", "")).rpartition("/")[0]
    inside = Key(group, str(owner.get("kind")), obj["metadata"].get("namespace") or "", str(owner.get("name")))
    return inside, inside._replace(namespace="")


def adopted(obj: dict[str, Any], store: Store) -> dict[str, Any]:
    """The object with the uids that its owners have here; an owner that is not here is left out, or a garbage collector
    would take the object away."""
    references = obj["metadata"].get("ownerReferences")
    if not references:
        return obj
    kept = []
    for owner in references:
        here = next((found for key in keys(obj, owner) if (found := store.get(key)) is not None), None)
        if here is not None:
            kept.append({**owner, "uid": here.uid})
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": kept}}


def in_order(objects: Mapping[Key, dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """Owners before what they own."""
    placed: dict[Key, dict[str, Any]] = {}
    for first in objects:
        work = [first]
        while work:  # an owner is met again below what it owns, and comes first
            key = work.pop()
            obj = objects.get(key)
            if obj is None or key in placed:
                continue
            owners = [k for o in obj["metadata"].get("ownerReferences") or () for k in keys(obj, o) if k in objects]
            missing = [owner for owner in owners if owner not in placed and owner not in work]
            if missing:
                work += [key, *missing]
            else:
                placed[key] = obj
    return placed.values()
