"""The stores in which runs come to rest, and where the ways to two of them part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any, Final, NamedTuple

import orjson

from steersman.check.story import Story, changed_fields
from steersman.kernel.action import Action
from steersman.kernel.object import Key
from steersman.kernel.schedule import Schedule

MAX_ENDS: Final = 1_000
"""Stores at rest that a verdict remembers the way to: nobody looks at more."""

Tell = Callable[[tuple[Action, ...]], Story]


class End:
    """A store in which nothing changes any more, and a shortest way there."""

    def __init__(self, number: int, actions: Iterable[Action], tell: Tell) -> None:
        self.number = number
        """From 1, the nearest to the start first."""
        self.actions = tuple(actions)
        self._tell = tell

    @property
    def schedule(self) -> Schedule:
        """The choices that lead there, replayable."""
        return Schedule(action.label for action in self.actions)

    @cached_property
    def story(self) -> Story:
        """The run in detail: its steps are taken again when it is first asked for."""
        return self._tell(self.actions)

    @cached_property
    def _objects(self) -> dict[Key, dict[str, Any]]:
        named, there = self.story.named, self.story.last.objects()
        return {obj.key: orjson.loads(named(orjson.dumps(obj.value).decode())) for obj in there}

    def objects(self) -> dict[Key, dict[str, Any]]:
        """What is there, with the names of objects in the place of uids; without what changes with every write."""
        return dict(self._objects)


class Difference(NamedTuple):
    """An object that two stores do not have alike."""

    key: Key
    sign: str
    """- (only in the first), + (only in the second) or ~ (in both)."""
    fields: tuple[tuple[str, Any, Any], ...]
    """(path, in the first, in the second) of each field that differs, where it is in both."""


class Parting(NamedTuple):
    """Two ends side by side."""

    step: int
    """The first step that is not the same, from 1."""
    first: str
    """That step on the way to the first end, in words; "" where the way has ended."""
    second: str
    differences: tuple[Difference, ...]


def parting(one: End, other: End) -> Parting:
    """Where the ways to two ends part, and what is different in the end."""
    at = 0
    while at < min(len(one.actions), len(other.actions)) and one.actions[at] == other.actions[at]:
        at += 1
    return Parting(at + 1, _step(one, at), _step(other, at), tuple(_differences(one, other)))


def _step(end: End, at: int) -> str:
    return end.story.named(end.story.steps[at].text) if at < len(end.story.steps) else ""


def _differences(one: End, other: End) -> Iterator[Difference]:
    mine, theirs = one.objects(), other.objects()
    for key in sorted(mine.keys() | theirs.keys()):
        if key not in theirs:
            yield Difference(key, "-", ())
        elif key not in mine:
            yield Difference(key, "+", ())
        else:
            fields = tuple(changed_fields(mine[key], theirs[key]))
            if fields:
                yield Difference(key, "~", fields)
