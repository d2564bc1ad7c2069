"""JSON as a schema means it: times where the schema says so, lists that are sets or maps, fields by escaped names.

What needs none of this (nearly everything) stays the plain value it is; the rest is converted when it is looked at.
Source of the facts: `apiserver/pkg/cel/common/values.go` of Kubernetes 1.36.
"""

from __future__ import annotations

import base64
import binascii
from functools import lru_cache
from typing import Any, Final

from steersman.api.cel.convert import to_duration, to_timestamp
from steersman.api.cel.declare import escape
from steersman.api.cel.faults import CelError
from steersman.api.cel.values import Fields, equal
from steersman.api.schema import Schema

_FORMATS: Final = frozenset({"byte", "duration", "date", "date-time"})


@lru_cache(maxsize=1 << 12)
def is_plain(schema: Schema) -> bool:
    """Whether the values of a schema are what expressions see."""
    kind = schema.type
    if kind == "string":
        return schema.format not in _FORMATS
    if kind == "number":
        return False
    if kind == "list":
        return schema.list_type not in ("set", "map") and (schema.items is None or is_plain(schema.items))
    if kind in ("object", "map"):
        if schema.values is not None:
            return is_plain(schema.values)
        return all(
            escape(name) == name and is_plain(child) for name, child in schema.fields.items() if name != "metadata"
        )
    return True


@lru_cache(maxsize=1 << 12)
def _names(schema: Schema) -> dict[str, str]:
    """Fields by the names expressions give them."""
    return {written: name for name in schema.fields if (written := escape(name)) is not None}


def seen(schema: Schema, value: Any) -> Any:
    """A value as expressions see it. Raises `CelError` where it is not what its format says."""
    if value is None or is_plain(schema):
        return value
    kind = schema.type
    if isinstance(value, dict):
        if schema.values is not None:
            inner = schema.values
            return {key: seen(inner, item) for key, item in value.items()}
        return ObjectView(schema, value)
    if isinstance(value, list):
        items = value if schema.items is None else [seen(schema.items, item) for item in value]
        if schema.list_type == "set":
            return SetList(items)
        return MapList(items, schema) if schema.list_type == "map" else items
    if kind == "number":
        return float(value) if type(value) is int else value
    return _text(schema.format, value) if isinstance(value, str) else value


def _text(form: str, value: str) -> Any:
    if form == "byte":
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            raise CelError(f"Invalid byte formatted string {value}") from None
    try:
        if form == "duration":
            return to_duration(value)
        return to_timestamp(value + "T00:00:00Z" if form == "date" else value)
    except CelError:
        raise CelError(f"Invalid {form} formatted string {value}") from None


class ObjectView(Fields):
    """An object some of whose fields are not plain."""

    __slots__ = ("_schema", "_value")
    kind = "object"

    def __init__(self, schema: Schema, value: dict[str, Any]) -> None:
        self._schema = schema
        self._value = value

    def cel_get(self, name: str) -> Any:
        """The field of an escaped name."""
        raw = _names(self._schema)[name]
        return seen(self._schema.fields[raw], self._value[raw])

    def cel_has(self, name: str) -> bool:
        """Whether it is set."""
        return _names(self._schema).get(name, "") in self._value

    def cel_plain(self) -> dict[str, Any]:
        """All its fields, converted."""
        fields = self._schema.fields
        return {name: seen(fields[name], item) if name in fields else item for name, item in self._value.items()}


def _mark(item: Any) -> Any:
    """What tells the elements of a set apart, quickly: equal elements have equal marks."""
    if type(item) is bool or item is None:
        return (item,)
    if isinstance(item, (str, int, float, bytes)):
        return item
    return repr(_sorted(item.cel_plain() if isinstance(item, Fields) else item))


def _sorted(value: Any) -> Any:
    """A value whose text does not depend on the order of its fields, or on how a whole number is written."""
    if isinstance(value, dict):
        return [(name, _sorted(item)) for name, item in sorted(value.items())]
    if isinstance(value, list):
        return [_sorted(item) for item in value]
    return float(value) if type(value) is int else value


class SetList(list[Any]):
    """A list whose order does not matter; `+` makes a union."""

    __slots__ = ()

    def cel_equal(self, other: list[Any]) -> bool:
        """The same elements, in any order."""
        return len(self) == len(other) and {_mark(item) for item in self} == {_mark(item) for item in other}

    def cel_add(self, other: list[Any]) -> SetList:
        """The elements of both."""
        mine = {_mark(item) for item in self}
        return SetList([*self, *[item for item in other if _mark(item) not in mine]])


class MapList(list[Any]):
    """A list whose elements are told apart by key fields; `+` replaces elements of the same key, in place."""

    __slots__ = ("_schema",)

    def __init__(self, items: list[Any], schema: Schema) -> None:
        super().__init__(items)
        self._schema = schema

    def _key(self, item: Any) -> tuple[Any, ...]:
        plain = item.cel_plain() if isinstance(item, Fields) else item
        found = plain if isinstance(plain, dict) else {}
        return tuple([found.get(name, self._schema.key_defaults.get(name)) for name in self._schema.keys])

    def cel_equal(self, other: list[Any]) -> bool:
        """Equal elements under equal keys, in any order."""
        theirs = {self._key(item): item for item in other}
        return len(self) == len(other) and all(
            self._key(item) in theirs and equal(item, theirs[self._key(item)]) for item in self
        )

    def cel_add(self, other: list[Any]) -> MapList:
        """This list with the elements of another merged in."""
        out = {self._key(item): item for item in self}
        out.update({self._key(item): item for item in other})
        return MapList(list(out.values()), self._schema)
