"""Fields of kinds: what a controller says, or was seen, to read and write.

A `Field` is a kind and a path in it, such as `apps/v1/Deployment:spec.replicas`. A path that ends early stands for
everything below it; `EXISTENCE` for whether objects are there at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from steersman.api.kinds import GK, Kinds

EXISTENCE: Final = ("exists",)
"""The path of a create, a delete and a list: whether an object is there."""
KEYED_BY: Final = ("type", "name")
"""Fields that tell the items of a list apart, where all items have one: conditions, containers."""
PART: Final = re.compile(r"[^.\[\]]+|\[[^\]]*\]")


class FieldError(ValueError):
    """A declared field that cannot be read; the text says what is wrong with it."""


class Field(NamedTuple):
    """A kind and a path in its objects; () is the whole object."""

    gk: GK
    path: tuple[str, ...] = ()

    @staticmethod
    def parse(text: str, kinds: Kinds) -> Field:
        """`apps/v1/Deployment:spec.replicas`, `v1/Pod:status.conditions[Ready]`, `v1/Pod`. Raises `FieldError`."""
        kind, _, path = text.partition(":")
        try:
            gk = kinds.find(kind).gk
        except LookupError as error:
            raise FieldError(f"{text!r}: {error.args[0]}") from None
        parts = tuple(PART.findall(path))
        if "".join(parts).replace("[", "").replace("]", "") != re.sub(r"[.\[\]]", "", path):
            raise FieldError(f"{text!r}: not a path; write apps/v1/Deployment:spec.replicas")
        return Field(gk, parts)

    def overlaps(self, other: Field) -> bool:
        """Whether one is the other or a part of it. Whether an object is there is no part of its contents."""
        if self.gk != other.gk or (EXISTENCE in (self.path, other.path) and self.path != other.path):
            return False
        short = min(len(self.path), len(other.path))
        return self.path[:short] == other.path[:short]

    def __str__(self) -> str:
        group, kind = self.gk
        name = f"{kind}.{group}" if group else kind
        path = "".join([part if part.startswith("[") else f".{part}" for part in self.path]).lstrip(".")
        return f"{name}:{path}" if path else name


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """(path, value) of every leaf of a JSON value; items of a keyed list by their keys, other lists as a whole."""
    if isinstance(value, Mapping) and value:
        for name in sorted(value):
            yield from leaves(value[name], (*path, name))
        return
    key = key_of(value)
    if key is None:
        yield path, value
        return
    for item in value:
        rest = {name: part for name, part in item.items() if name != key}
        yield from leaves(rest or item[key], (*path, f"[{item[key]}]"))


def key_of(value: Any) -> str | None:
    """What tells the items of a list apart; None when nothing does."""
    if not isinstance(value, list) or not value or not all(isinstance(item, Mapping) for item in value):
        return None
    return next((key for key in KEYED_BY if all(isinstance(item.get(key), str) for item in value)), None)
