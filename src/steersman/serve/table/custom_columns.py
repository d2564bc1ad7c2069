"""The columns of custom kinds: name, then what the definition says, or the age if it says nothing.

Cells are those of apiextensions-apiserver 0.36 (pkg/registry/customresource/tableconvertor): a cell whose path reaches
nothing, or a value of another type, is null.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from steersman.api.crd.custom import Column, Origin
from steersman.api.times import TimeError, parse_time
from steersman.serve.table.ages import age
from steersman.serve.table.column import DESCRIPTIONS, Columns, definition
from steersman.serve.table.jsonpath import PathError, find

AGE: Final = Column("Age", "date", "", DESCRIPTIONS["Age"], 0, ".metadata.creationTimestamp")


def custom_columns(origin: Origin) -> Columns:
    """The columns of one version of a custom kind."""
    columns = origin.columns or (AGE,)
    given = [definition("Name")]
    for column in columns:
        told = column.description or f"Custom resource definition column (in JSONPath format): {column.path}"
        given.append(
            {
                "name": column.name,
                "type": column.type,
                "format": column.format,
                "description": told,
                "priority": column.priority,
            }
        )

    def row(obj: Any, now: int) -> list[Any]:
        return [obj["metadata"]["name"], *[_cell(column, obj, now) for column in columns]]

    return Columns((), row, tuple(given))


def _cell(column: Column, obj: Any, now: int) -> Any:
    try:
        found = find(column.path, obj)
    except (PathError, RecursionError):
        return None
    value = found[0] if found else None
    if value is None:
        return None
    if column.type == "string":
        return _text(value)
    if column.type == "date":
        return _age(value, now)
    if column.type == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if column.type == "integer" else float(value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _age(value: Any, now: int) -> Any:
    if not isinstance(value, str):
        return None
    try:
        parse_time(value)
    except TimeError:
        return "<invalid>"
    return age(value, now)
