"""Bodies in Kubernetes' protobuf encoding, read to the JSON value a Go server would write for them.

A body is the four bytes `k8s\\0` and a `runtime.Unknown` (type, raw message). Clients generated for Go send them for
the built-in kinds; answers are always JSON. Sources of facts: the protobuf wire format specification; apimachinery's
`runtime/serializer/protobuf` and the JSON forms of its types; the table in `data/` (see its README).

Everything is bounded: each byte is read once, nesting and the number of messages have limits, and a length that points
outside its message is an error. Unlike Go, text that is not UTF-8 is refused rather than kept.
"""

from __future__ import annotations

import base64
import math
import struct
from functools import cache
from typing import Any, Final

import orjson

from steersman.api import errors
from steersman.api.times import time_text
from steersman.serve.depth import MAX_DEPTH, deeper_than
from steersman.serve.protobuf_table import (
    DELIMITED,
    DOUBLE,
    INLINE,
    MAP,
    MESSAGE,
    MESSAGES,
    NUMBER,
    NUMBERS,
    PACKED,
    SPECIALS,
    STRING,
    STRINGS,
    Field,
    Message,
    small,
    table,
)

MAGIC: Final = b"k8s\0"
MAX_MESSAGES: Final = 1 << 17
"""Messages in one body: two bytes make one, and an empty one may come to some hundred bytes of memory. The largest
objects clients send (1.5 MB) have some ten thousand."""

_UNKNOWN: Final = small("Unknown", [1, "type", "raw", ""], [2, "raw", "raw", ""])
_TYPE: Final = small("TypeMeta", [1, "apiVersion", "string", ""], [2, "kind", "string", ""])
_TIME: Final = small("Timestamp", [1, "seconds", "int64", ""], [2, "nanos", "int32", ""])
_TEXT: Final = small("Quantity", [1, "text", "string", ""])
_RAW: Final = small("RawExtension", [1, "raw", "raw", ""])
_LIST: Final = small("ListOfStrings", [1, "items", "string", "r"])
_INT_OR_STRING: Final = small(
    "IntOrString", [1, "type", "int64", ""], [2, "number", "int32", ""], [3, "text", "string", ""]
)
_SECONDS: Final = range(-62_135_596_800, 253_402_300_800)
"""The years 1 to 9999; the first second is Go's zero time."""


NO_MESSAGE: Final = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"


class Malformed(Exception):
    """The bytes are no such message."""


def read_protobuf(data: bytes, default: tuple[str, str] = ("", "")) -> dict[str, Any]:
    """The object in a body. `default` is (apiVersion, kind) for a body that does not name its own.

    Raises ApiError 400.
    """
    try:
        return _Reader().envelope(data, default, 0)
    except (Malformed, IndexError, struct.error) as error:
        told = str(error) if isinstance(error, Malformed) else "it ends inside a field"
        raise errors.bad_request(
            told if told == NO_MESSAGE else f"the protobuf body cannot be decoded: {told}"
        ) from None
    except UnicodeDecodeError:
        raise errors.bad_request("the protobuf body cannot be decoded: a text in it is not UTF-8") from None


class _Reader:
    """One body being read; `left` messages may still come."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MAX_MESSAGES

    def envelope(self, data: bytes, default: tuple[str, str], depth: int) -> dict[str, Any]:
        """An object with the magic and the type in front."""
        if not data.startswith(MAGIC):
            raise Malformed(NO_MESSAGE)
        unknown: dict[str, bytes] = {}
        self.fields(data, 4, len(data), _UNKNOWN, unknown, depth)
        typed, raw = unknown.get("type", b""), unknown.get("raw", b"")
        named: dict[str, str] = {}
        self.fields(typed, 0, len(typed), _TYPE, named, depth)
        api_version, kind = named.get("apiVersion") or default[0], named.get("kind") or default[1]
        message = table().find(api_version, kind)
        if message is None:
            shown = errors.quote(f"{api_version}/{kind}"[:200])
            raise Malformed(f"there is no built-in kind {shown}; send custom and beta kinds as JSON")
        return {"kind": kind, "apiVersion": api_version, **self.message(raw, 0, len(raw), message, {}, depth + 1)}

    def message(
        self, data: bytes, pos: int, end: int, message: Message, out: dict[str, Any], depth: int
    ) -> dict[str, Any]:
        """A message with the fields that JSON has even when they are zero."""
        self.fields(data, pos, end, message, out, depth)
        for name, value, empty in message.zeros:
            if name not in out:
                out[name] = value if empty is None else self.message(b"", 0, 0, empty, {}, depth + 1)
        return out

    def fields(self, data: bytes, pos: int, end: int, message: Message, out: dict[str, Any], depth: int) -> None:
        """Reads fields into `out`, where those that came before may already be: later ones replace or extend them."""
        self.left -= 1
        if depth > MAX_DEPTH or self.left < 0:
            raise Malformed(f"more than {MAX_DEPTH} levels or {MAX_MESSAGES} messages")
        known = message.fields if message.lines is None else message.ready().fields
        while pos < end:
            tag = data[pos]
            pos += 1
            if tag > 127:
                tag, pos = _varint(data, pos - 1)
            field = known.get(tag)
            if field is None:
                pos = _skipped(data, pos, end, tag, message)
                continue
            op, name, omit, form, part = field
            size = data[pos]
            if op > DELIMITED:
                if op == NUMBER and size < 128:  # most numbers have one byte
                    pos += 1
                    if size or not omit:
                        out[name] = size if form != "bool" else size != 0
                    elif name in out:
                        del out[name]
                    continue
                pos = _number(data, pos, field, out)
                continue
            pos += 1
            if size > 127:
                size, pos = _varint(data, pos - 1)
            stop = pos + size
            if stop > end:
                raise Malformed(f"{message.name}.{name} is longer than what is around it")
            if op == STRING:
                if size or not omit:
                    out[name] = data[pos:stop].decode()
                elif name in out:
                    del out[name]
            elif op == MESSAGE and part is not None:
                self.message(data, pos, stop, part, _dict(out, name), depth + 1)
            elif op == STRINGS:
                _list(out, name).append(data[pos:stop].decode())
            elif op == MESSAGES and part is not None:
                _list(out, name).append(self.message(data, pos, stop, part, {}, depth + 1))
            elif op == MAP and part is not None:
                entry = self.message(data, pos, stop, part, {}, depth + 1)
                _dict(out, name)[entry["key"]] = entry["value"]
            elif op == INLINE and part is not None:
                self.fields(data, pos, stop, part, out, depth + 1)
            elif op == PACKED:
                _packed(data, pos, stop, form, _list(out, name))
            elif op == SPECIALS:
                _list(out, name).append(self.special(data, pos, stop, form, part, depth + 1))
            else:
                value = self.special(data, pos, stop, form, part, depth + 1)
                if omit and not value:
                    out.pop(name, None)
                else:
                    out[name] = value
            pos = stop
        if pos != end:
            raise Malformed(f"{message.name} ends inside a field")

    def special(self, data: bytes, pos: int, end: int, form: str, part: Message | None, depth: int) -> Any:
        """A value whose JSON is not that of its fields."""
        if form == "bytes":
            return base64.b64encode(data[pos:end]).decode()
        if form == "raw":
            return data[pos:end]
        if form == "json":
            return self.json(data, pos, end, depth)
        if form in ("time", "microtime"):
            return self.time(data, pos, end, form == "microtime", depth)
        read: dict[str, Any] = {}
        if form == "strings":
            self.fields(data, pos, end, _LIST, read, depth)
            return read.get("items", [])
        if form == "quantity":
            self.fields(data, pos, end, _TEXT, read, depth)
            return read.get("text") or "0"
        if form == "intorstring":
            self.fields(data, pos, end, _INT_OR_STRING, read, depth)
            if read.get("type", 0) not in (0, 1):
                raise Malformed(f"an IntOrString has type {read['type']}, which is neither 0 nor 1")
            return read.get("text", "") if read.get("type") else read.get("number", 0)
        assert part is not None
        return self.union(data, pos, end, form, part, depth)

    def json(self, data: bytes, pos: int, end: int, depth: int) -> Any:
        """JSON in a message of its own; a RawExtension may hold an object in this encoding instead."""
        read: dict[str, bytes] = {}
        self.fields(data, pos, end, _RAW, read, depth)
        raw = read.get("raw", b"")
        if raw.startswith(MAGIC):
            return self.envelope(raw, ("", ""), depth + 1)
        if not raw:
            return None
        try:
            value = orjson.loads(raw)
        except (orjson.JSONDecodeError, RecursionError):
            raise Malformed("JSON inside it cannot be read") from None
        limit = MAX_DEPTH - depth
        if raw.count(b"{") + raw.count(b"[") > limit and deeper_than(value, limit):
            raise Malformed(f"more than {MAX_DEPTH} levels")
        return value

    def time(self, data: bytes, pos: int, end: int, micro: bool, depth: int) -> str | None:
        """A Timestamp; no bytes at all are Go's zero time, which JSON has as null."""
        if pos == end:
            return None
        if end - pos == 8 and data[pos] == 8 and data[pos + 6] == 16 and data[pos + 7] == 0:
            # What Go writes for nearly every time: whole seconds of this century, in five bytes.
            second, last = _varint(data, pos + 1)
            if last == pos + 6 and second in _SECONDS:
                return f"{time_text(second)[:-1]}.000000Z" if micro else time_text(second)
        read: dict[str, int] = {}
        self.fields(data, pos, end, _TIME, read, depth)
        nanos = read.get("nanos", 0)
        if micro:
            nanos = math.trunc(nanos / 1000) * 1000
        second, nanos = divmod(read.get("seconds", 0) * 1_000_000_000 + nanos, 1_000_000_000)
        if second not in _SECONDS:
            raise Malformed(f"a time {second} seconds from 1970 is not in the years 1 to 9999")
        if second == _SECONDS.start and not nanos:
            return None
        text = time_text(second)
        return f"{text[:-1]}.{nanos // 1000:06d}Z" if micro else text

    def union(self, data: bytes, pos: int, end: int, form: str, schema: Message, depth: int) -> Any:
        """The unions of JSONSchemaProps: a schema, or a boolean, a list of schemas, a list of names."""
        shape = _unions(schema)[form]
        read: dict[str, Any] = {}
        self.fields(data, pos, end, shape, read, depth)
        if form == "orbool":
            return read["schema"] if "schema" in read else read.get("allows", False)
        return read.get("list") or read.get("schema")


@cache
def _unions(schema: Message) -> dict[str, Message]:
    """Field 1 and 2 of each union around JSONSchemaProps."""
    one, many = Field(MESSAGE, "schema", False, "message", schema), Field(MESSAGES, "list", False, "message", schema)
    out = {name: small(name) for name in ("orbool", "orarray", "orstrings")}
    out["orbool"].fields = {1 << 3: Field(NUMBER, "allows", False, "bool", None), 2 << 3 | 2: one}
    out["orarray"].fields = {1 << 3 | 2: one, 2 << 3 | 2: many}
    out["orstrings"].fields = {1 << 3 | 2: one, 2 << 3 | 2: Field(STRINGS, "list", False, "string", None)}
    for message in out.values():
        message.numbers = frozenset((1, 2))
    return out


def _dict(out: dict[str, Any], name: str) -> dict[str, Any]:
    """The object in a field that may be new, or null so far."""
    found = out.get(name)
    if found is None:
        found = out[name] = {}
    return found


def _list(out: dict[str, Any], name: str) -> list[Any]:
    """The list in a field that may be new, or null so far."""
    found = out.get(name)
    if found is None:
        found = out[name] = []
    return found


def _varint(data: bytes, pos: int) -> tuple[int, int]:
    """(unsigned 64-bit number, the place after it)."""
    value = shift = 0
    while True:
        byte = data[pos]
        pos += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFF_FFFF_FFFF_FFFF, pos
        shift += 7
        if shift >= 70:
            raise Malformed("a number has more than ten bytes")


def _number(data: bytes, pos: int, field: Field, out: dict[str, Any]) -> int:
    """Reads a field without a length; returns the place after it."""
    op, name, omit, form, _ = field
    value: Any
    if op == DOUBLE:
        (value,) = struct.unpack_from("<d", data, pos)
        if not math.isfinite(value):
            raise Malformed(f"{name} is not a number that JSON has")
        value, pos = int(value) if value.is_integer() and abs(value) < 1e21 else value, pos + 8
    else:
        value, pos = _varint(data, pos)
        value = _signed(value, form)
    if op == NUMBERS:
        _list(out, name).append(value)
    elif value or not omit:
        out[name] = value
    else:
        out.pop(name, None)
    return pos


def _signed(value: int, form: str) -> int | bool:
    """A varint as bool, int32 (its low 32 bits, as Go takes them) or int64."""
    if form == "bool":
        return value != 0
    bits = 32 if form == "int32" else 64
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _packed(data: bytes, pos: int, end: int, form: str, out: list[Any]) -> None:
    """Numbers one after the other."""
    while pos < end:
        value, pos = _varint(data, pos)
        out.append(_signed(value, form))
    if pos != end:
        raise Malformed("a list of numbers ends inside one")


def _skipped(data: bytes, pos: int, end: int, tag: int, message: Message) -> int:
    """The place after a field nobody knows; groups, which are no longer written, included."""
    if tag >> 3 == 0 or tag >> 32:
        raise Malformed(f"{message.name} has a field with the number {tag >> 3}")
    if tag >> 3 in message.numbers:
        raise Malformed(f"field {tag >> 3} of {message.name} has wire type {tag & 7}")
    open_groups = 0
    while True:
        wire = tag & 7
        if wire == 0:
            _, pos = _varint(data, pos)
        elif wire == 2:
            size, pos = _varint(data, pos)
            pos += size
        elif wire in (1, 5):
            pos += 8 if wire == 1 else 4
        elif wire == 3:
            open_groups += 1
        elif wire == 4 and open_groups:
            open_groups -= 1
        else:
            raise Malformed(f"wire type {wire} in {message.name}")
        if pos > end:
            raise Malformed(f"{message.name} ends inside a field")
        if not open_groups:
            return pos
        tag, pos = _varint(data, pos)
