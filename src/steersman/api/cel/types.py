"""CEL types: what the checker reasons about, how they are written in errors, and which assignments they allow."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final


class Type:
    """One type. `kind` is its family, `params` its parameters, `fields` (of an object) its declared fields.

    `bound` is the most elements (of a string: characters) a value can have, `least` the fewest bytes of its JSON: for
    cost estimates. They do not take part in comparisons of types.
    """

    __slots__ = ("bound", "fields", "kind", "least", "name", "params")

    def __init__(
        self,
        kind: str,
        params: tuple[Type, ...] = (),
        name: str = "",
        fields: Mapping[str, Type] | None = None,
        bound: int | None = None,
        least: int = 0,
    ) -> None:
        self.kind = kind
        self.params = params
        self.name = name or kind
        self.fields = fields
        self.bound = bound
        self.least = least

    def __str__(self) -> str:
        if self.kind == "param":
            return self.name.partition("%")[0]
        if self.params:
            return f"{self.name}({', '.join(map(str, self.params))})"
        return self.name

    __repr__ = __str__


DYN: Final = Type("dyn")
ANY: Final = Type("dyn", (), "any")
"""As dyn, but nobody knows whether it is a list: no comprehension may go over it."""
NULL: Final = Type("null")
BOOL: Final = Type("bool")
INT: Final = Type("int")
UINT: Final = Type("uint")
DOUBLE: Final = Type("double")
STRING: Final = Type("string")
BYTES: Final = Type("bytes")
TIMESTAMP: Final = Type("timestamp")
DURATION: Final = Type("duration")
TYPE: Final = Type("type")
SIMPLE: Final = {t.kind: t for t in (DYN, NULL, BOOL, INT, UINT, DOUBLE, STRING, BYTES, TIMESTAMP, DURATION, TYPE)}
OPAQUE: Final = {
    short: Type("opaque", (), name)
    for short, name in {
        "quantity": "kubernetes.Quantity",
        "url": "kubernetes.URL",
        "ip": "net.IP",
        "cidr": "net.CIDR",
        "semver": "kubernetes.Semver",
        "format": "kubernetes.NamedFormat",
        "authorizer": "kubernetes.authorization.Authorizer",
        "pathcheck": "kubernetes.authorization.PathCheck",
        "groupcheck": "kubernetes.authorization.GroupCheck",
        "resourcecheck": "kubernetes.authorization.ResourceCheck",
        "decision": "kubernetes.authorization.Decision",
    }.items()
}
"""Types of the libraries, by the short name signatures use."""
NULLABLE: Final = frozenset({"opaque", "optional", "duration", "timestamp", "object", "null", "dyn"})
"""Kinds that null may be assigned to."""
_WORD: Final = re.compile(r"\s*([A-Za-z_.]+|[(),])")


def list_of(item: Type, bound: int | None = None) -> Type:
    """list(item)"""
    return Type("list", (item,), bound=bound)


def map_of(key: Type, value: Type, bound: int | None = None) -> Type:
    """map(key, value)"""
    return Type("map", (key, value), bound=bound)


def optional_of(inner: Type) -> Type:
    """optional_type(inner)"""
    return Type("optional", (inner,), "optional_type")


def type_of(inner: Type) -> Type:
    """type(inner), the type of a type's name."""
    return Type("type", (inner,), "type")


def object_of(name: str, fields: Mapping[str, Type]) -> Type:
    """An object with declared fields."""
    return Type("object", (), name, fields)


def read_type(text: str) -> Type:
    """A type from its text in a signature: `list(A)`, `map(string,B)`, `optional(quantity)`."""
    words = [match[1] for match in _WORD.finditer(text)]
    found, at = _read(words, 0)
    assert at == len(words), text
    return found


def _read(words: list[str], at: int) -> tuple[Type, int]:
    word = words[at]
    at += 1
    params: list[Type] = []
    if at < len(words) and words[at] == "(":
        while words[at] != ")":
            param, at = _read(words, at + 1)
            params.append(param)
        at += 1
    if word == "optional":
        return optional_of(*params), at
    if word in ("list", "map", "type") and params:
        return Type(word, tuple(params)), at
    if len(word) == 1:
        return Type("param", (), word), at
    return SIMPLE.get(word) or OPAQUE[word], at


Subst = dict[str, Type]


def resolve(subst: Subst, t: Type) -> Type:
    """What a type parameter stands for, if it is known."""
    while t.kind == "param" and t.name in subst:
        t = subst[t.name]
    return t


def settle(subst: Subst, t: Type) -> Type:
    """A type with its parameters filled in; what is still open becomes dyn."""
    t = resolve(subst, t)
    if t.kind == "param":
        return DYN
    if not t.params:
        return t
    return Type(t.kind, tuple([settle(subst, p) for p in t.params]), t.name, t.fields, t.bound, t.least)


def _occurs(subst: Subst, name: str, t: Type) -> bool:
    t = resolve(subst, t)
    return t.name == name if t.kind == "param" else any(_occurs(subst, name, p) for p in t.params)


def assign(subst: Subst, want: Type, got: Type) -> bool:
    """Whether `got` may stand where `want` is asked for; binds parameters in `subst`."""
    open_ends = [t.name for t in (want, got) if t.kind == "param"]
    want, got = resolve(subst, want), resolve(subst, got)
    if want is got:
        return True
    if open_ends and "dyn" in (want.kind, got.kind) and "param" not in (want.kind, got.kind):
        for name in open_ends:  # of what it may be, the most general
            subst[name] = want if want.kind == "dyn" else got
        return True
    for one, other in ((want, got), (got, want)):
        if one.kind == "param":
            if other.kind == "param" and other.name == one.name:
                return True
            if _occurs(subst, one.name, other):
                return False
            subst[one.name] = other
            return True
    if want.kind == "dyn" or got.kind == "dyn":
        return True
    if got.kind == "null" or want.kind == "null":
        return (want.kind if got.kind == "null" else got.kind) in NULLABLE
    if want.kind != got.kind or want.name != got.name:
        return False
    if want.kind == "type":
        return True
    if len(want.params) != len(got.params):
        return False
    return all(assign(subst, a, b) for a, b in zip(want.params, got.params, strict=True))


def same(a: Type, b: Type) -> bool:
    """Whether two types are one."""
    return (
        a.kind == b.kind
        and a.name == b.name
        and len(a.params) == len(b.params)
        and all(same(x, y) for x, y in zip(a.params, b.params, strict=True))
    )


class Fresh:
    """Gives the parameters of a signature names of their own, once for every use."""

    __slots__ = ("_count",)

    def __init__(self) -> None:
        self._count = 0

    def rename(self, types: list[Type]) -> list[Type]:
        """The types with renamed parameters."""
        self._count += 1
        return [self._rename(t) for t in types]

    def variable(self) -> Type:
        """A new open type: of the elements of an empty list, say."""
        self._count += 1
        return Type("param", (), f"_var{self._count}")

    def _rename(self, t: Type) -> Type:
        if t.kind == "param":
            return Type("param", (), f"{t.name}%{self._count}")
        return Type(t.kind, tuple([self._rename(p) for p in t.params]), t.name, t.fields) if t.params else t
