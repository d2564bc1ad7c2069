"""What Go's JSON does with the fields of Kubernetes' structs: which are left out when zero or empty, and of which
type they are.

The table, data/structs.json, is made by scripts/compile_structs.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import orjson

from steersman.api.schema import Schema, packaged

_NOTHING: Final[Mapping[str, Any]] = {}


@cache
def _table() -> Mapping[str, Mapping[str, Any]]:
    found: Mapping[str, Mapping[str, Any]] = orjson.loads(packaged("structs.json"))
    return found


def omitted(schema: Schema) -> frozenset[str]:
    """Fields of an object of this definition that are left out when they are "", 0 or false."""
    return frozenset(_table().get(schema.name, _NOTHING).get("omit", ()))


def kept(schema: Schema) -> frozenset[str]:
    """Lists and maps of an object of this definition that stay when they are empty."""
    return frozenset(_table().get(schema.name, _NOTHING).get("keep", ()))


def told_type(schema: Schema, field: str) -> str:
    """The Go type of a field, as messages show it; "": it follows from the field's schema."""
    text: str = _table().get(schema.name, _NOTHING).get("types", _NOTHING).get(field, "")
    return text
