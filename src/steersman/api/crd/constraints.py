"""Whether a value meets what a custom kind's schema asks beyond its type: lengths, bounds, patterns, choices, junctors.

The fast road: `crd.faults` says why not."""

from __future__ import annotations

from typing import Any, Final

from steersman.api.formats import has_format
from steersman.api.pattern import compile_pattern
from steersman.api.schema import Schema

_CONSTRAINTS: Final = (
    "format",
    "pattern",
    "minimum",
    "maximum",
    "multiple_of",
    "min_length",
    "max_length",
    "min_items",
    "max_items",
    "min_fields",
    "max_fields",
    "not_of",
)


def constrained(schema: Schema) -> bool:
    """Whether a custom kind asks more of a value than its type."""
    return bool(
        schema.enum
        or schema.all_of
        or schema.any_of
        or schema.one_of
        or schema.list_type in ("map", "set")
        or any(getattr(schema, name) not in (None, "") for name in _CONSTRAINTS)
    )


def fits(schema: Schema, value: Any) -> bool:
    """Whether one value (not its children) meets what a custom kind asks for beside its type; `crd.faults` says why
    not."""
    if schema.enum and value not in schema.enum:
        return False
    if isinstance(value, str):
        inside = _text_fits(schema, value)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        inside = _number_fits(schema, value)
    elif isinstance(value, list):
        inside = _list_fits(schema, value)
    elif isinstance(value, dict):
        inside = _between(schema.min_fields, len(value), schema.max_fields)
    else:
        inside = True
    return (
        inside
        and all(_holds(part, value) for part in schema.all_of)
        and (not schema.any_of or any(_holds(part, value) for part in schema.any_of))
        and (not schema.one_of or sum(_holds(part, value) for part in schema.one_of) == 1)
        and (schema.not_of is None or not _holds(schema.not_of, value))
    )


def _holds(part: Schema, value: Any) -> bool:
    """Whether a value, with all inside it, meets one part of a junctor."""
    if not fits(part, value):
        return False
    if isinstance(value, dict):
        if any(name not in value for name in part.required):
            return False
        return all(_holds(child, value[name]) for name, child in part.fields.items() if name in value)
    if isinstance(value, list) and part.items is not None:
        return all(_holds(part.items, item) for item in value)
    return True


def _between(least: int | None, size: int, most: int | None) -> bool:
    return (least is None or size >= least) and (most is None or size <= most)


def _text_fits(schema: Schema, value: str) -> bool:
    if schema.format and schema.format != "date-time" and not has_format(schema.format, value):
        return False
    if schema.pattern and compile_pattern(schema.pattern).search(value) is None:
        return False
    return _between(schema.min_length, len(value), schema.max_length)


def _number_fits(schema: Schema, value: float) -> bool:
    if schema.minimum is not None and (value <= schema.minimum if schema.exclusive_minimum else value < schema.minimum):
        return False
    if schema.maximum is not None and (value >= schema.maximum if schema.exclusive_maximum else value > schema.maximum):
        return False
    return not schema.multiple_of or value % schema.multiple_of == 0


def _list_fits(schema: Schema, value: list[Any]) -> bool:
    if not _between(schema.min_items, len(value), schema.max_items):
        return False
    if schema.list_type == "set":
        return not any(item in value[:index] for index, item in enumerate(value))
    if schema.list_type == "map":
        seen: list[tuple[Any, ...]] = []
        for item in value:
            if isinstance(item, dict):
                key = tuple([item.get(name, schema.key_defaults.get(name)) for name in schema.keys])
                if key in seen:
                    return False
                seen.append(key)
    return True
