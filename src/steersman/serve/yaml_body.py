"""YAML request bodies, read from libyaml's events: bounded in depth and in what aliases expand to.

A loader that builds values by recursion can be made to overflow the stack by a body of brackets, and nine lines of
aliases make a billion values. Here the parser is iterative, every value counts once for each place it stands in, and
duplicate keys are told. Plain scalars are read as kubectl's YAML reader does: yes/no/on/off are booleans, times stay
text, there are no base-60 numbers.
"""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

from steersman.api.errors import ApiError, bad_request
from steersman.serve.depth import MAX_DEPTH

MAX_VALUES: Final = 200_000
"""Values after aliases are expanded; the largest objects of Kubernetes have a few ten thousand."""
MAX_DIGITS: Final = 64
"""Of a number with a base: 64 bits written out. A longer one is no number of JSON, and stays text."""
MAX_DUPLICATES: Final = 10
"""Duplicate fields told: a path can be as long as the body, and there can be as many."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE: Final = frozenset({"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"})
_FALSE: Final = frozenset({"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"})
_INTEGER: Final = re.compile(r"[-+]?(0|[1-9][0-9_]*)\Z")
_BASED: Final = re.compile(r"([-+]?)0(b[01_]+|x[0-9a-fA-F_]+|o?[0-7_]+)\Z")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_YAML: Final = "tag:yaml.org,2002:"
_PLAIN_TAGS: Final = frozenset({f"{_YAML}{name}" for name in ("bool", "float", "int", "null")})
_TAGS: Final = _PLAIN_TAGS | {None, "!", *(f"{_YAML}{name}" for name in ("map", "seq", "str", "timestamp"))}
_MERGE: Final = object()
_MISSING: Final = object()


class _Open:
    """A container being filled."""

    __slots__ = ("anchor", "items", "key", "line", "merged", "size", "value")

    def __init__(self, value: Any, anchor: str | None, line: int) -> None:
        self.value = value
        self.line = line
        self.anchor = anchor
        self.key: Any = _MISSING
        self.merged: list[Any] = []
        self.size = 1


def read_yaml(body: bytes) -> tuple[Any, list[str]]:
    """The one document of a body, and the paths of its first duplicate fields. Raises ApiError 400."""
    reader = read_lines(body)
    return reader.value, [path for path, _, _ in reader.duplicates]


def read_lines(body: bytes) -> Reader:
    """The same, with the lines of the duplicate fields. Raises ApiError 400."""
    reader = Reader()
    try:
        reader.read(body.decode())
        return reader
    except UnicodeDecodeError:
        raise bad_request("the body is not UTF-8 text") from None
    except yaml.YAMLError as error:
        raise bad_request(_fault(error)) from None


def _fault(error: yaml.YAMLError) -> str:
    """What is wrong, in the words of Kubernetes' YAML reader, which counts lines from 0 but for the scanner's."""
    marks = [getattr(error, name, None) for name in ("context_mark", "problem_mark")]
    line = next((mark.line for mark in marks if mark is not None and mark.line), 0)
    line += bool(line) and isinstance(error, yaml.scanner.ScannerError)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be read"
    return f"yaml: {f'line {line}: ' if line else ''}{problem}"


class Reader:
    """Reads one document; `value` and `duplicates` then have it."""

    def __init__(self) -> None:
        self.stack: list[_Open] = []
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.duplicates: list[tuple[str, str, int]] = []
        """The path, the key, and the line (from 1) of the value that stands there again."""
        self.root: Any = _MISSING
        self.documents = 0

    @property
    def value(self) -> Any:
        """What was read; None when there was nothing."""
        return None if self.root is _MISSING else self.root

    def read(self, text: str) -> None:
        """Takes in the text of a document. Raises ApiError 400, YAMLError."""
        for event in yaml.parse(text, Loader=_Loader):
            kind = type(event)
            if kind is yaml.ScalarEvent:
                at: Any = event.start_mark
                self._put(*self._scalar(event), at.line)
            elif kind is yaml.MappingStartEvent:
                self._open({}, event)
            elif kind is yaml.SequenceStartEvent:
                self._open([], event)
            elif kind in (yaml.MappingEndEvent, yaml.SequenceEndEvent):
                self._close()
            elif kind is yaml.AliasEvent:
                self._alias(event)
            elif kind is yaml.DocumentStartEvent:
                self.documents += 1
                if self.documents > 1:
                    raise _refuse(event, "there is a second document; send one object in a request")

    def _scalar(self, event: Any) -> tuple[Any, int]:
        value = event.value
        _check_tag(event)
        plain = (event.tag is None and event.implicit[0]) or event.tag in _PLAIN_TAGS
        made = resolve(value) if plain else value
        if plain and value == "<<":
            made = _MERGE
        if event.anchor:
            self.anchors[event.anchor] = (made, 1)
        return made, 1

    def _open(self, value: Any, event: Any) -> None:
        _check_tag(event)
        if len(self.stack) >= MAX_DEPTH:
            raise _refuse(event, f"it is nested deeper than {MAX_DEPTH} levels")
        self.stack.append(_Open(value, event.anchor, event.start_mark.line))

    def _close(self) -> None:
        done = self.stack.pop()
        for merged in done.merged:  # explicit keys win, earlier merges before later ones
            for key, item in merged.items():
                done.value.setdefault(key, item)
        if done.anchor:
            self.anchors[done.anchor] = (done.value, done.size)
        self._put(done.value, done.size, done.line)

    def _alias(self, event: Any) -> None:
        found = self.anchors.get(event.anchor)
        if found is None:
            raise _refuse(event, f"the alias *{event.anchor[:60]} has no anchor before it")
        self._put(*found, event.start_mark.line)

    def _put(self, value: Any, size: int, line: int) -> None:
        as_key = bool(self.stack) and isinstance(self.stack[-1].value, dict) and self.stack[-1].key is _MISSING
        if value is _MERGE and not as_key:
            value = "<<"
        if not self.stack:
            self.root = value
            return
        top = self.stack[-1]
        top.size += size
        if top.size > MAX_VALUES:
            raise bad_request(f"the YAML expands to more than {MAX_VALUES} values; use fewer aliases")
        if isinstance(top.value, list):
            top.value.append(value)
        elif top.key is _MISSING:
            if isinstance(value, dict | list):
                raise bad_request(f"error parsing YAML: {self._path('')} has a key that is no scalar")
            top.key = value if value is _MERGE else _key(value)
        else:
            key, top.key = top.key, _MISSING
            if key is _MERGE:
                self._merge(top, value)
                return
            if key in top.value and len(self.duplicates) < MAX_DUPLICATES:
                self.duplicates.append((self._path(key), key, line + 1))
            top.value[key] = value

    def _merge(self, top: _Open, value: Any) -> None:
        for part in value if isinstance(value, list) else [value]:
            if not isinstance(part, dict):
                raise bad_request("error parsing YAML: a merge key (<<) takes a mapping or a list of mappings")
            top.merged.append(part)

    def _path(self, key: str) -> str:
        out = ""
        for open_ in self.stack:
            if isinstance(open_.value, list):
                out += f"[{len(open_.value)}]"
            elif open_.key is not _MISSING:
                out += f".{open_.key}"
        return f"{out}.{key}".strip(".")


def resolve(text: str) -> Any:
    """The value of a plain scalar."""
    if text in _NULL:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if text[0] not in "+-.0123456789":
        return text
    if _INTEGER.match(text):
        return int(text.replace("_", "")) if len(text) < 40 else float(text.replace("_", ""))
    if match := _BASED.match(text):
        sign, digits = match.group(1), match.group(2).replace("_", "")
        base = {"b": 2, "x": 16, "o": 8}.get(digits[:1], 8)
        number = digits[1:] if digits[:1] in "box" else digits
        if len(number) > MAX_DIGITS:
            return text
        return int(f"{sign}{number}", base) if number else text
    if _FLOAT.match(text):
        return float(text)
    return text


def _key(value: Any) -> str:
    """A mapping key as JSON has it. A number is written as the shortest text that means it, as Go does (1.50 is "1.5",
    1e3 is "1000"); a key that is to stay as it is written stands in quotes."""
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return str(value)


def _check_tag(event: Any) -> None:
    if event.tag not in _TAGS:
        raise _refuse(event, f"the tag {event.tag[:60]} is not known here")


def _refuse(event: Any, problem: str) -> ApiError:
    mark = event.start_mark
    return bad_request(f"error parsing YAML at line {mark.line + 1}, column {mark.column + 1}: {problem}")
