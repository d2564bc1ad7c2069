"""Pruning: a value without what its custom schema does not declare.

Source of the facts: apiextensions-apiserver 0.36, pkg/apiserver/schema/pruning.
"""

from __future__ import annotations

from typing import Any

from steersman.api.schema import Schema
from steersman.kernel.value import Frozen, FrozenList


def prune(schema: Schema, value: Any) -> Any:
    """`value`, frozen, without what a custom schema does not declare; the very value when all is declared."""
    if isinstance(value, list):
        if schema.items is None:
            return value
        items = [prune(schema.items, item) for item in value]
        return value if all(a is b for a, b in zip(items, value, strict=True)) else FrozenList(items)
    if not isinstance(value, dict) or schema.type not in ("object", "map", "any"):
        return value
    changed: dict[str, Any] = {}
    gone = False
    for name, item in value.items():
        child = schema.child(name)
        if child is None:
            gone = gone or not schema.preserve_unknown
            continue
        kept = prune(child, item)
        if kept is not item:
            changed[name] = kept
    if not gone and not changed:
        return value
    if gone:
        return Frozen({n: changed.get(n, item) for n, item in value.items() if schema.child(n) is not None})
    return Frozen({**value, **changed})
