"""Footprints: which fields one controller reads and writes, and how that is known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from steersman.api.controller import Controller
from steersman.api.kinds import Kinds
from steersman.kernel.object import Key
from steersman.ownership.fields import Field


class Footprint(NamedTuple):
    """What one controller reads and writes."""

    name: str
    """The controller's."""
    reads: tuple[Field, ...]
    writes: tuple[Field, ...]
    declared: bool
    """Its class says so; else it was seen to."""
    objects: tuple[tuple[Field, Key], ...] = ()
    """Of what was learned: whose field each write was."""

    def reading(self, fields: Iterable[Field]) -> list[Field]:
        """Those of `fields` that it reads."""
        return [field for field in fields if any(field.overlaps(read) for read in self.reads)]

    def undeclared(self, seen: Footprint) -> list[Field]:
        """What it was seen to write although it declares other things."""
        return [field for field in seen.writes if not any(field.overlaps(own) for own in self.writes)]


def declared(name: str, cls: type[Controller], kinds: Kinds) -> Footprint | None:
    """The footprint that a class declares; None when it does not say both what it reads and what it writes. Raises
    `FieldError`."""
    if not (cls.reads and cls.writes):
        return None
    reads = tuple([Field.parse(text, kinds) for text in cls.reads])
    return Footprint(name, reads, tuple([Field.parse(text, kinds) for text in cls.writes]), True)
