"""An OpenAPI 2.0 document in protobuf, the form in which kubectl and others ask for it.

A table names the fields of each message by the keys of the JSON document; keys that begin with `x-` go into its list of
extensions, whose values are texts in YAML, which JSON is too. Keys that are in neither place are not written. Source of
numbers and types: gnostic-models 0.7, openapiv2/OpenAPIv2.proto (Apache-2.0).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

Write = Callable[[Any], bytes]
"""From a value of the JSON document to the content of a field."""
Fields = Mapping[str, tuple[int, Write]]

_VARINT, _DOUBLE, _DELIMITED = 0, 1, 2


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _delimited(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | _DELIMITED) + _varint(len(data)) + data


def _scalar(number: int, value: Any) -> bytes:
    """A number or truth value; nothing for what a reader takes for granted."""
    if not value:
        return b""
    if isinstance(value, float):
        return _varint(number << 3 | _DOUBLE) + struct.pack("<d", value)
    return _varint(number << 3 | _VARINT) + _varint(int(value) & (1 << 64) - 1)


def _text(value: Any) -> bytes:
    return str(value).encode()


def _any(value: Any) -> bytes:
    """Any: 2 yaml."""
    return _delimited(2, orjson.dumps(value))


def _value(value: Any) -> bytes:
    """An Any that may be a list and is still one."""
    return _any(value)


def _values(value: Any) -> bytes:
    """TypeItem and StringArray: 1 value, repeated."""
    return b"".join(_delimited(1, _text(each)) for each in (value if isinstance(value, list) else [value]))


def _named(number: int, write: Write) -> Write:
    """A map, as a list of pairs: 1 name, 2 value."""

    def written(value: Any) -> bytes:
        pairs = (_delimited(1, _text(key)) + _delimited(2, write(each)) for key, each in value.items())
        return b"".join(_delimited(number, pair) for pair in pairs)

    return written


def _message(value: Mapping[str, Any], fields: Fields, extensions: int) -> bytes:
    """The fields of one message, a repeated one as often as there are elements."""
    out = []
    for key, each in value.items():
        field = fields.get(key)
        if field is None:
            if key.startswith("x-") and extensions:
                out.append(_delimited(extensions, _delimited(1, _text(key)) + _delimited(2, _any(each))))
            continue
        number, write = field
        if write is _double:
            out.append(_scalar(number, float(each)))
        elif write is _plain:
            out.append(_scalar(number, each))
        elif isinstance(each, list) and write not in (_value, _values):
            out += [_delimited(number, write(one)) for one in each]
        else:
            out.append(_delimited(number, write(each)))
    return b"".join(out)


def _plain(value: Any) -> bytes:
    raise AssertionError("a mark: whole numbers and truth values have no length")


def _double(value: Any) -> bytes:
    raise AssertionError("a mark: numbers have no length")


def _schema(value: Any) -> bytes:
    return _message(value, _SCHEMA, 31)


def _items(value: Any) -> bytes:
    """ItemsItem: 1 schema."""
    return _delimited(1, _schema(value))


def _additional(value: Any) -> bytes:
    """AdditionalPropertiesItem: 1 schema, 2 boolean."""
    return _scalar(2, value) if isinstance(value, bool) else _delimited(1, _schema(value))


def _bounds(first: int) -> dict[str, tuple[int, Write]]:
    """The validations that schemas and parameters have in common, numbered in this order."""
    order = ["maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength", "minLength", "pattern"]
    order += ["maxItems", "minItems", "uniqueItems"]
    writes = {"maximum": _double, "minimum": _double, "pattern": _text}
    return {key: (first + place, writes.get(key, _plain)) for place, key in enumerate(order)}


_SCHEMA: Final[dict[str, tuple[int, Write]]] = {
    "$ref": (1, _text),
    "format": (2, _text),
    "title": (3, _text),
    "description": (4, _text),
    "default": (5, _value),
    "multipleOf": (6, _double),
    **_bounds(7),
    "maxProperties": (17, _plain),
    "minProperties": (18, _plain),
    "required": (19, _text),
    "enum": (20, _any),
    "additionalProperties": (21, _additional),
    "type": (22, _values),
    "items": (23, _items),
    "allOf": (24, _schema),
    "properties": (25, _named(1, _schema)),
    "example": (30, _value),
}
_BODY: Final[Fields] = {
    "description": (1, _text),
    "name": (2, _text),
    "in": (3, _text),
    "required": (4, _plain),
    "schema": (5, _schema),
}


def _outside(first: int) -> Fields:
    """A parameter that is not in the body; `first` is the number of its type, from which on the two kinds differ."""
    return {
        "required": (1, _plain),
        "in": (2, _text),
        "description": (3, _text),
        "name": (4, _text),
        "type": (first, _text),
        "format": (first + 1, _text),
        "default": (first + 4, _value),
        **_bounds(first + 5),
        "enum": (first + 15, _any),
    }


_QUERY: Final = _outside(6)
_PATH: Final = _outside(5)


def _parameter(value: Any) -> bytes:
    """ParametersItem: 1 parameter (1 body, 2 other: 3 query, 4 path), 2 reference (1 _ref)."""
    if "$ref" in value:
        return _delimited(2, _delimited(1, _text(value["$ref"])))
    if value["in"] == "body":
        return _delimited(1, _delimited(1, _message(value, _BODY, 6)))
    place, fields, extensions = (3, _QUERY, 23) if value["in"] == "query" else (4, _PATH, 22)
    return _delimited(1, _delimited(2, _delimited(place, _message(value, fields, extensions))))


def _response(value: Any) -> bytes:
    """ResponseValue: 1 response; its schema is a SchemaItem: 1 schema."""
    fields: Fields = {"description": (1, _text), "schema": (2, lambda schema: _delimited(1, _schema(schema)))}
    return _delimited(1, _message(value, fields, 5))


_OPERATION: Final[Fields] = {
    "tags": (1, _text),
    "summary": (2, _text),
    "description": (3, _text),
    "operationId": (5, _text),
    "produces": (6, _text),
    "consumes": (7, _text),
    "parameters": (8, _parameter),
    "responses": (9, _named(1, _response)),
    "schemes": (10, _text),
    "deprecated": (11, _plain),
}
METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch")


def _operation(value: Any) -> bytes:
    return _message(value, _OPERATION, 13)


_ITEM: Final[Fields] = {
    **{method: (2 + place, _operation) for place, method in enumerate(METHODS)},
    "parameters": (9, _parameter),
}


def _item(value: Any) -> bytes:
    return _message(value, _ITEM, 10)


def _security(value: Any) -> bytes:
    """SecurityDefinitionsItem: 2 api_key_security."""
    key: Fields = {"type": (1, _text), "name": (2, _text), "in": (3, _text), "description": (4, _text)}
    return _delimited(2, _message(value, key, 5))


_DOCUMENT: Final[Fields] = {
    "swagger": (1, _text),
    "info": (2, lambda info: _message(info, {"title": (1, _text), "version": (2, _text)}, 7)),
    "paths": (8, _named(2, _item)),
    "definitions": (9, _named(1, _schema)),
    "security": (12, _named(1, _values)),
    "securityDefinitions": (13, _named(1, _security)),
}


def document_bytes(document: Mapping[str, Any]) -> bytes:
    """The message `openapi.v2.Document` of a document in JSON."""
    return _message(document, _DOCUMENT, 16)
