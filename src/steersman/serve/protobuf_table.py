"""The protobuf messages of the built-in kinds, ready for decoding: what each tag on the wire means.

The table is `data/protobuf.json.z`; a message is prepared when it is first met.
"""

from __future__ import annotations

import importlib.resources
import zlib
from functools import cache
from typing import Any, Final, NamedTuple

import orjson

# What a field's bytes are, in the order the decoder tries: the length-delimited ones first.
STRING: Final = 0
MESSAGE: Final = 1
STRINGS: Final = 2
MESSAGES: Final = 3
MAP: Final = 4
INLINE: Final = 5
SPECIAL: Final = 6
SPECIALS: Final = 7
PACKED: Final = 8
DELIMITED: Final = 8
"""Operations up to this one have a length."""
NUMBER: Final = 9
NUMBERS: Final = 10
DOUBLE: Final = 11

NUMERIC: Final = ("bool", "int32", "int64")
_ZEROS: Final[dict[str, Any]] = {"string": "", "bool": False, "int32": 0, "int64": 0, "double": 0, "quantity": "0"}
_ZEROS["intorstring"] = 0


class Field(NamedTuple):
    """What to do with a tag. `omit` tells that a zero value is left out of the JSON."""

    op: int
    name: str
    omit: bool
    form: str
    message: Message | None


class Zero(NamedTuple):
    """A field that is in the JSON also when it is not on the wire: with a constant, or an empty message."""

    name: str
    value: Any
    message: Message | None


class Message:
    """One message type. `fields` is by tag (number and wire type), `numbers` are the known field numbers."""

    __slots__ = ("_table", "fields", "lines", "name", "numbers", "zeros")

    def __init__(self, name: str, lines: list[list[Any]], table: Table | None) -> None:
        self.name = name.rpartition("/")[2]
        self.lines: list[list[Any]] | None = lines
        self._table = table
        self.fields: dict[int, Field] = {}
        self.numbers: frozenset[int] = frozenset()
        self.zeros: tuple[Zero, ...] = ()

    def ready(self) -> Message:
        """This message, its fields worked out."""
        lines, self.lines = self.lines, None
        if lines is not None:
            self.numbers = frozenset(line[0] for line in lines)
            zeros: list[Zero] = []
            for line in lines:
                zeros += self._add(*line)
            self.zeros = tuple(zeros)
        return self

    def _add(self, number: int, name: str, form: str, flags: str, ref: int | None = None) -> list[Zero]:
        message = None
        if ref is not None and self._table is not None:
            message = self._table.messages[ref]
        if "i" in flags and message is not None:
            self.fields[number << 3 | 2] = Field(INLINE, name, False, form, message)
            return list(message.ready().zeros)
        omit = "e" in flags
        if "m" in flags:
            entry = Message(f"{self.name}.{name}", [[1, "key", "string", ""]], None).ready()
            entry.fields |= _entries(2, "value", form, "", message)
            self.fields[number << 3 | 2] = Field(MAP, name, omit, form, entry)
            entry.numbers = frozenset((1, 2))
            empty = Zero("value", "", None) if form == "bytes" else _zero("value", form, "", message)
            entry.zeros = (Zero("key", "", None), empty)
            return [] if omit else [Zero(name, None, None)]
        self.fields |= _entries(number, name, form, flags, message)
        # omitempty says nothing of structs: those without a pointer are always there.
        struct = form not in ("string", "bytes", "strings", "double", *NUMERIC) and not set("pr") & set(flags)
        if "z" in flags or (omit and not struct):
            return []
        return [_zero(name, form, flags, message)]


def _zero(name: str, form: str, flags: str, message: Message | None) -> Zero:
    if set("pr") & set(flags):
        return Zero(name, None, None)
    return Zero(name, _ZEROS.get(form), message if form == "message" else None)


def _entries(number: int, name: str, form: str, flags: str, message: Message | None) -> dict[int, Field]:
    """The tags of a field, each with what to do."""
    repeated, omit = "r" in flags, "e" in flags and "p" not in flags
    if form in NUMERIC:
        number_op = Field(NUMBERS if repeated else NUMBER, name, omit, form, None)
        packed = {number << 3 | 2: Field(PACKED, name, omit, form, None)} if repeated else {}
        return {number << 3: number_op, **packed}
    if form == "double":
        return {number << 3 | 1: Field(DOUBLE, name, omit, form, None)}
    if form == "string":
        op = STRINGS if repeated else STRING
    elif form == "message":
        op = MESSAGES if repeated else MESSAGE
    else:
        op = SPECIALS if repeated else SPECIAL
    # Among the special forms only empty bytes are left out, and structs that say omitzero: omitempty is not for them.
    omit = "z" in flags or (omit and form in ("string", "bytes"))
    return {number << 3 | 2: Field(op, name, omit, form, message)}


class Table:
    """Every message, and which one a kind has."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.kinds: dict[str, int] = data["kinds"]
        self.messages = [Message(name, lines, self) for name, lines in data["messages"]]

    def find(self, api_version: str, kind: str) -> Message | None:
        """The message of a kind; options are the same in every group version."""
        place = self.kinds.get(f"{api_version}/{kind}")
        if place is None and kind.endswith("Options"):
            place = self.kinds.get(f"meta.k8s.io/v1/{kind}")
        return None if place is None else self.messages[place]


@cache
def table() -> Table:
    """The table of this process."""
    packed = (importlib.resources.files("steersman.serve") / "data/protobuf.json.z").read_bytes()
    return Table(orjson.loads(zlib.decompress(packed)))


def small(name: str, *lines: list[Any]) -> Message:
    """A message of the encoding itself rather than of a kind."""
    return Message(name, list(lines), None).ready()
