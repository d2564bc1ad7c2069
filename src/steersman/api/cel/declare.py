"""Schemas as types of the language, and how names of fields are written in it.

Source of the facts: `apiserver/pkg/cel/common/schemas.go` and `escaping.go` of Kubernetes 1.36.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from steersman.api.cel.lexer import RESERVED as WORDS
from steersman.api.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    Type,
    list_of,
    map_of,
    object_of,
)
from steersman.api.schema import Schema

MAX_REQUEST: Final = 3 << 20
"""Bytes of a request, by which lengths without a limit are bounded."""
RESERVED: Final = frozenset({"true", "false", "null", "in", *WORDS})
"""Words that cannot be fields as they are."""
_STARTS: Final = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*")
_ESCAPED: Final = re.compile(r"__|[-./]")
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_WRITTEN: Final = re.compile(r"__[^_]+__")
_PLAIN: Final = {written: text for text, written in _ESCAPES.items()}
_TIMES: Final = {"duration": (DURATION, 3, 32), "date": (TIMESTAMP, 12, 12), "date-time": (TIMESTAMP, 22, 40)}
"""Formats: their types, the fewest bytes of their JSON and the most characters."""


@lru_cache(maxsize=1 << 12)
def escape(name: str) -> str | None:
    """The field as expressions write it; None when they cannot."""
    if name in RESERVED:
        return f"__{name}__"
    if not _STARTS.fullmatch(name):
        return None
    return _ESCAPED.sub(lambda match: _ESCAPES[match[0]], name)


@lru_cache(maxsize=1 << 12)
def unescape(written: str) -> str | None:
    """The field that expressions write so; None when they write none so."""
    for part in _WRITTEN.findall(written):
        if part not in _PLAIN and (part != written or part[2:-2] not in RESERVED):
            return None
    return _WRITTEN.sub(lambda match: _PLAIN.get(match[0], match[0][2:-2]), written)


@lru_cache(maxsize=1 << 12)
def declared(schema: Schema, root: bool = False, above: tuple[str, ...] = ()) -> Type | None:
    """The type of a schema's values; None when expressions may not see them. `root`: of a resource. `above`: the
    definitions it is a part of; of one that is a part of itself no fields are seen there."""
    kind = schema.type
    if schema.name:
        if schema.name in above:
            return _sized(object_of("object", {}), None, 2)
        above = (*above, schema.name)
    if kind in ("object", "map"):
        return _object(schema, root or schema.embedded, above)
    if kind == "list":
        items = None if schema.items is None else declared(schema.items, schema.items.embedded, above)
        if items is None:
            return None
        most = (MAX_REQUEST - 2) // (items.least + 1) if schema.max_items is None else max(schema.max_items, 0)
        return _sized(list_of(items), most, 2)
    if kind == "string":
        return _string(schema)
    if kind == "int-or-string":
        return _sized(DYN, MAX_REQUEST - 2 if schema.max_length is None else schema.max_length * 4, 1)
    known = {"integer": (INT, 1), "number": (DOUBLE, 1), "boolean": (BOOL, 4)}.get(kind)
    return None if known is None else _sized(known[0], None, known[1])


def _sized(t: Type, bound: int | None, least: int) -> Type:
    return Type(t.kind, t.params, t.name, t.fields, bound, least)


def _string(schema: Schema) -> Type:
    if schema.format in _TIMES:
        t, least, most = _TIMES[schema.format]
        return _sized(t, most, least)
    length = schema.max_length
    if schema.format == "byte":
        return _sized(BYTES, MAX_REQUEST - 2 if length is None else length, 2)
    if length is not None:
        return _sized(STRING, length * 4, 2)
    texts = [len(choice.encode()) for choice in schema.enum if isinstance(choice, str)]
    return _sized(STRING, max(texts) if schema.enum and texts else MAX_REQUEST - 2, 2)


def _object(schema: Schema, root: bool, above: tuple[str, ...]) -> Type | None:
    if schema.values is not None and not root:
        if schema.values.type != "any":
            values = declared(schema.values, schema.values.embedded, above)
            if values is None:
                return None
            most = (MAX_REQUEST - 2) // (values.least + 6) if schema.max_fields is None else max(schema.max_fields, 0)
            return _sized(map_of(STRING, values), most, 2)
        return _sized(object_of("object", {}), None, 2)
    fields: dict[str, Type] = {}
    least = 2
    for name, child in schema.fields.items():
        if root and name == "metadata":
            t: Type | None = _METADATA
        else:
            t = declared(child, child.embedded, above)
        if t is None:
            continue
        written = escape(name)
        if written is not None:
            fields[written] = t
        if name in schema.required and child.default is None:
            least += len(name) + t.least + 4
    return _sized(object_of("object", fields), None, least)


_TEXT: Final = Type("string", bound=MAX_REQUEST - 2, least=2)
_METADATA: Final = Type("object", (), "object", {"name": _TEXT, "generateName": _TEXT}, None, 2)
"""All that rules see of metadata."""
