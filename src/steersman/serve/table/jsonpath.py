"""JSONPath as kubectl and printer columns write it: `.status.conditions[?(@.type=="Ready")].status`.

A path is compiled once to steps; `find` gives the values it reaches, none where a key is missing. Supported: fields
(`.a`, `['a.b']`, `a\\.b`), indices and slices, wildcards, `..`, unions and filters that compare with ==, !=, <, <=, >
and >= or ask for existence. Facts: client-go util/jsonpath and "JSONPath Support" in the kubectl reference.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

MAX_PATH: Final = 4096
"""Characters of a path: a page of text. Longer ones reach nothing."""
MAX_FOUND: Final = 10_000
"""Values that one path may reach: `..` of a large object must not take a server's time."""
Step = Callable[[Any], Iterator[Any]]
_FIELD: Final = re.compile(r"(?:\\.|[^.\[\]\\{}()\s])+")
_SLICE: Final = re.compile(r"(-?\d*):(-?\d*)(?::(-?\d+))?")
_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_OPERATOR: Final = re.compile(r"\s*(==|!=|<=|>=|<|>)\s*")


class PathError(ValueError):
    """A path that cannot be read, or values that it cannot compare."""


@lru_cache(1 << 12)
def compile_path(text: str) -> tuple[Step, ...]:
    """The steps of a path, `{.a.b}` or `.a.b`. Raises `PathError`."""
    path = text.strip()
    if path.startswith("{") and path.endswith("}"):
        path = path[1:-1].strip()
    if len(path) > MAX_PATH:
        raise PathError(f"a path of more than {MAX_PATH} characters")
    steps: list[Step] = []
    at = 1 if path[:1] in ("$", "@") else 0
    while at < len(path):
        if path.startswith("..", at):
            steps.append(_descend)
            at += 2
            if path[at : at + 1] == "[":
                continue
        elif path[at] == ".":
            at += 1
            if at == len(path) or path[at] == "[":
                continue
        elif path[at] == "[":
            end = _closing(path, at)
            steps.append(_bracket(path[at + 1 : end].strip()))
            at = end + 1
            continue
        match = _FIELD.match(path, at)
        if match is None:
            raise PathError(f"{path!r} cannot be read at character {at + 1}")
        steps.append(_wild if match[0] == "*" else _field(re.sub(r"\\(.)", r"\1", match[0])))
        at = match.end()
    return tuple(steps)


def find(text: str, value: Any) -> list[Any]:
    """The values a path reaches in `value`. Raises `PathError`."""
    return _walk(compile_path(text), value)


def _walk(steps: tuple[Step, ...], value: Any) -> list[Any]:
    found = [value]
    for step in steps:
        found = [inner for item in found for inner in step(item)]
        if len(found) > MAX_FOUND:
            raise PathError(f"more than {MAX_FOUND} values")
    return found


def _closing(path: str, start: int) -> int:
    """Where the bracket that opens at `start` is closed; quotes and inner brackets are skipped."""
    depth, quoted, at = 0, "", start
    while at < len(path):
        char = path[at]
        if char == "\\":
            at += 1
        elif quoted:
            quoted = "" if char == quoted else quoted
        elif char in "'\"":
            quoted = char
        elif char in "[]":
            depth += 1 if char == "[" else -1
            if not depth:
                return at
        at += 1
    raise PathError(f"{path!r} has an open bracket")


def _bracket(text: str) -> Step:
    if text == "*":
        return _wild
    if text.startswith("?(") and text.endswith(")"):
        return _filter(text[2:-1].strip())
    parts = _split(text)
    if len(parts) > 1:
        inner = [_bracket(part) for part in parts]
        return lambda value: (found for step in inner for found in step(value))
    if text[:1] in ("'", '"') and text[-1:] == text[0] and len(text) > 1:
        return _field(re.sub(r"\\(.)", r"\1", text[1:-1]))
    if re.fullmatch(r"-?\d+", text):
        return _index(int(text))
    match = _SLICE.fullmatch(text)
    if match is None:
        raise PathError(f"[{text}] is no index, slice, name or filter")
    start, stop, step = [int(part) if part else None for part in match.groups()]
    if step is not None and step <= 0:
        raise PathError("the step of a slice must be 1 or more")
    return lambda value: iter(value[start:stop:step] if isinstance(value, list) else ())


def _split(text: str) -> list[str]:
    """The parts of a union, at commas outside of quotes."""
    parts, quoted, start = [], "", 0
    for at, char in enumerate(text):
        if quoted:
            quoted = "" if char == quoted else quoted
        elif char in "'\"":
            quoted = char
        elif char == ",":
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()]


def _field(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _index(number: int) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= number < len(value):
            yield value[number]

    return step


def _wild(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _descend(value: Any) -> Iterator[Any]:
    """A value and everything in it."""
    work = [value]
    for _ in range(MAX_FOUND):
        if not work:
            return
        item = work.pop()
        yield item
        work.extend(reversed(list(_wild(item))))
    raise PathError(f"more than {MAX_FOUND} values")


def _filter(text: str) -> Step:
    match = _OPERATOR.search(text)
    if match is None:
        steps = compile_path(text)
        return lambda value: (item for item in _wild(value) if _walk(steps, item))
    left, right = _operand(text[: match.start()].strip()), _operand(text[match.end() :].strip())
    compare = _COMPARE[match[1]]

    def step(value: Any) -> Iterator[Any]:
        for item in _wild(value):
            a, b = left(item), right(item)
            if a and b:
                if not _comparable(a[0], b[0]):
                    raise PathError("incompatible types for comparison")
                if compare(a[0], b[0]):
                    yield item

    return step


def _comparable(a: Any, b: Any) -> bool:
    if isinstance(a, bool) or isinstance(b, bool):
        return isinstance(a, bool) and isinstance(b, bool)
    return (isinstance(a, str) and isinstance(b, str)) or (isinstance(a, int | float) and isinstance(b, int | float))


def _operand(text: str) -> Callable[[Any], list[Any]]:
    """One side of a comparison: a path from the item, or a constant."""
    if text[:1] in ("@", "."):
        steps = compile_path(text)
        return lambda item: _walk(steps, item)
    constant: Any
    if text[:1] in ("'", '"') and text[-1:] == text[0] and len(text) > 1:
        constant = re.sub(r"\\(.)", r"\1", text[1:-1])
    elif text in ("true", "false"):
        constant = text == "true"
    else:
        try:
            constant = float(text) if "." in text else int(text)
        except ValueError:
            raise PathError(f"{text!r} is no path, text in quotes, number, true or false") from None
    return lambda item: [constant]
