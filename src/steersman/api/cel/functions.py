"""What a function is: its signatures, what it does, what it costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from steersman.api.cel.types import Type, read_type
from steersman.api.cel.values import Duration, Fields, Opaque, Optional, Timestamp, TypeName, Uint, size_of

Impl = Callable[..., Any]
Cost = Callable[[Sequence[Any], Any], int]
TRAVERSAL: Final = 0.1
"""Cost of one character or element that is looked at."""
REGEX: Final = 0.25
"""Cost of one character of a regular expression, for each piece of text it is held against."""
LIST_COST: Final = 10
MAP_COST: Final = 30
STRUCT_COST: Final = 40


class Overload(NamedTuple):
    """One signature of a function. `impl` takes the values; a method's target comes first."""

    name: str
    member: bool
    params: tuple[Type, ...]
    result: Type
    impl: Impl

    def fits(self, values: Sequence[Any]) -> bool:
        """Whether these values may be given to it."""
        if len(values) != len(self.params):
            return False
        return all(_is(t, value) for t, value in zip(self.params, values, strict=True))


Registry = dict[str, list[Overload]]


def functions(table: Iterable[tuple[str, str, Impl]]) -> Registry:
    """A library: (name, signature, what it does). Signatures: `int int -> bool`; `. string -> int` is a method."""
    out: Registry = {}
    for name, signature, impl in table:
        given, _, result = signature.partition("->")
        words = given.split()
        member = words[:1] == ["."]
        params = tuple([read_type(word) for word in (words[1:] if member else words)])
        out.setdefault(name, []).append(Overload(name, member, params, read_type(result.strip()), impl))
    return out


def merged(*registries: Registry) -> Registry:
    """All functions of several libraries."""
    out: Registry = {}
    for registry in registries:
        for name, overloads in registry.items():
            out[name] = [*out.get(name, ()), *overloads]
    return out


_PYTHON: Final[dict[str, type]] = {
    "null": type(None), "bool": bool, "int": int, "uint": Uint, "double": float, "string": str, "bytes": bytes,
    "timestamp": Timestamp, "duration": Duration, "type": TypeName, "optional": Optional,
}  # fmt: skip


def _is(t: Type, value: Any) -> bool:
    kind = t.kind
    known = _PYTHON.get(kind)
    if known is not None:
        return type(value) is known
    if kind == "list":
        return isinstance(value, list)
    if kind == "map":
        return isinstance(value, (dict, Fields))
    if kind == "opaque":
        return isinstance(value, Opaque) and value.kind == t.name
    return True


# -- costs -----------------------------------------------------------------------------------------------------


def walked(size: float, factor: float = TRAVERSAL) -> int:
    """The cost of walking over so many characters."""
    return math.ceil(size * factor)


def traversal(value: Any) -> int:
    """Elements of a value and of all below it."""
    if isinstance(value, list):
        return 1 + sum([traversal(item) for item in value])
    if isinstance(value, dict):
        return 1 + sum([traversal(key) + traversal(item) for key, item in value.items()])
    return walked(len(value)) if isinstance(value, (str, bytes)) else 1


def _first(args: Sequence[Any], result: Any) -> int:
    return walked(size_of(args[0]))


def _twice(args: Sequence[Any], result: Any) -> int:
    return walked(2 * size_of(args[0]))


def _compared(args: Sequence[Any], result: Any) -> int:
    a, b = args
    if type(a) is int:
        return 1
    if isinstance(a, (list, dict)) and isinstance(b, (list, dict)):
        return min(traversal(a), traversal(b))
    return walked(min(size_of(a), size_of(b)))


def _added(args: Sequence[Any], result: Any) -> int:
    return walked(len(args[0]) + len(args[1])) if isinstance(result, (str, bytes)) else 1


def _matched(args: Sequence[Any], result: Any) -> int:
    return walked(1 + size_of(args[0])) * walked(size_of(args[1]), REGEX)


def _selected(args: Sequence[Any], result: Any) -> int:
    return walked(size_of(args[1])) * 2


def _in(args: Sequence[Any], result: Any) -> int:
    return size_of(args[1]) if isinstance(args[1], list) else 1


def _sorted(args: Sequence[Any], result: Any) -> int:
    size = size_of(args[0])
    return size * max(1, size.bit_length()) + LIST_COST


def _pairs(args: Sequence[Any], result: Any) -> int:
    return max(1, size_of(args[0])) * max(1, size_of(args[1]))


COSTS: Final[dict[str, Cost]] = {
    **dict.fromkeys(("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"), _compared),
    "_+_": _added,
    "@in": _in,
    "matches": _matched, "find": _matched, "findAll": _matched,
    "contains": lambda args, result: walked(size_of(args[0])) * walked(size_of(args[1])),
    **dict.fromkeys(("startsWith", "endsWith", "url", "isURL", "lowerAscii", "upperAscii", "substring", "trim",
                     "jsonpatch.escapeKey", "cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver",
                     "strings.quote", "format", "charAt", "bytes"), _first),
    "ip": lambda args, result: walked(size_of(args[0])) if type(args[0]) is str else 1,
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _twice),
    "join": lambda args, result: walked(2 * size_of(result)),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"),
                    lambda args, result: traversal(args[0])),
    **dict.fromkeys(("fieldSelector", "labelSelector"), _selected),
    "check": lambda args, result: 350_000,
    "validate": lambda args, result: walked(1 + size_of(args[1])) * walked(getattr(args[0], "length", 60), REGEX),
    "containsIP": lambda args, result: walked(34 + (size_of(args[1]) if type(args[1]) is str else 0)),
    "containsCIDR": lambda args, result: 1 + walked(51 + (size_of(args[1]) if type(args[1]) is str else 0)),
    **dict.fromkeys(("sets.contains", "sets.intersects", "sets.equivalent"), _pairs),
    **dict.fromkeys(("sort", "@sortBy"), _sorted),
    "distinct": lambda args, result: size_of(args[0]) ** 2 + LIST_COST,
    **dict.fromkeys(("slice", "flatten", "reverse", "lists.range"),
                    lambda args, result: LIST_COST + size_of(result)),
}  # fmt: skip
"""Functions that cost something else than 1."""
BY_RESULT: Final = frozenset({"_+_", "join", "slice", "flatten", "reverse", "lists.range"})
"""Those whose cost depends on what they give; all others are paid for before they do anything."""
