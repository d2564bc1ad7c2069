"""How Go turns maps and lists into structs, as it does with what a strategic merge patch makes: its words for a value
of the wrong type, and for a map as such.

Source of the facts: apimachinery `pkg/runtime/converter.go` (fromUnstructured), release 1.36; Go's `fmt`.
"""

from __future__ import annotations

from typing import Any

from steersman.api import go_json
from steersman.api.schema import Schema
from steersman.kernel.value import MAX_DEPTH


def complaint(schema: Schema | None, value: Any, depth: int = 0) -> str:
    """What is said of the first value of the wrong type, in the order of the document; "" when there is none."""
    if schema is None or value is None or depth > MAX_DEPTH:
        return ""
    if schema.type == "list":
        if not isinstance(value, list):
            return f"cannot restore slice from {_kind(value)}"
        return next(filter(None, (complaint(schema.items, item, depth + 1) for item in value)), "")
    if schema.type in ("object", "map"):
        if not isinstance(value, dict):
            return f"cannot restore struct from: {_kind(value)}" if schema.fields else _no_map(value)
        below = ((schema.fields.get(name, schema.values), item) for name, item in value.items())
        return next(filter(None, (complaint(child, item, depth + 1) for child, item in below)), "")
    return _scalar(schema, value)


def _no_map(value: Any) -> str:
    return f"cannot restore map from {_kind(value)}"


def _scalar(schema: Schema, value: Any) -> str:
    if schema.type not in ("string", "boolean", "integer", "number") or schema.format in ("date-time", "byte"):
        return go_json.complaint("", schema, "", value)
    wanted = {"string": "string", "boolean": "bool", "integer": schema.format or "int64", "number": "float64"}[
        schema.type
    ]
    given = _kind(value)
    groups = {"string": {"string"}, "bool": {"bool"}, "float64": {"int64", "float64"}}
    if given in groups.get(wanted, {"int64"}):
        return ""
    if given == "float64" and schema.type == "integer":
        return "" if value.is_integer() else f"cannot convert float64 to {wanted}"
    if given == "int64" and wanted == "string":
        return "cannot convert int64 to string"
    return f"unrecognized type: {wanted}"


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "int64" if isinstance(value, int) else "float64"
    if isinstance(value, str):
        return "string"
    return "map" if isinstance(value, dict) else "slice"


def text(value: Any) -> str:
    """A JSON value as Go's `%v` writes it."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{text(value[name])}' for name in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(text, value))}]"
    return str(value)
