"""Who changed which field of what, to what: the raw material of causes and footprints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from steersman.check.explain import short
from steersman.check.rest import name_of
from steersman.check.story import changed_fields
from steersman.kernel.effect import Event
from steersman.kernel.object import Key, Object

THERE: Final = ""
"""The path of an object itself: that it is there."""
TELLING: Final = ("spec", "data", "metadata", "status")
"""Sections, the most telling first: what is wanted, before what is reported."""


class Slot(NamedTuple):
    """An object by what stays the same of it: a generated name by its beginning."""

    group: str
    kind: str
    namespace: str
    name: str

    @staticmethod
    def of(obj: Object) -> Slot:
        """The slot of an object."""
        prefix = obj.meta.value.get("generateName")
        name = f"{prefix}*" if prefix and obj.key.name.startswith(prefix) else obj.key.name
        return Slot(obj.key.group, obj.key.kind, obj.key.namespace, name)

    @property
    def generated(self) -> bool:
        """It stands for all objects whose names begin like this."""
        return self.name.endswith("*")

    def __str__(self) -> str:
        return name_of(Key(*self))


class Change(NamedTuple):
    """One field that one write gave another value; with path THERE a creation (old None) or a removal (new None)."""

    who: str
    slot: Slot
    path: str
    old: Any
    new: Any

    @property
    def field(self) -> str:
        """`Deployment default/web spec.replicas`."""
        return f"{self.slot} {self.path}".rstrip()

    @property
    def words(self) -> str:
        """What was done."""
        if self.path == THERE:
            return "creates it" if self.old is None else "removes it"
        return "removes it" if self.new is None else f"sets {short(self.new)}"


def changes(who: str, events: Iterable[Event]) -> Iterator[Change]:
    """What a step of somebody changed."""
    for event in events:
        slot = Slot.of(event.obj)
        if event.old is None or event.new is None:
            yield Change(who, slot, THERE, event.old and True, event.new and True)
            continue
        for path, old, new in changed_fields(event.old.value, event.new.value):
            yield Change(who, slot, path, old, new)


def telling(change: Change) -> tuple[int, str]:
    """Sorts changes: the most telling first."""
    if change.path == THERE:
        return (-1, str(change.slot))
    section = change.path.partition(".")[0].partition("[")[0]
    return (TELLING.index(section) if section in TELLING else 1, change.field)
