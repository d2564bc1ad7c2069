"""Causal slices: of a run, only the steps that led to one change.

A write was caused by what its reconcile had read before it, and by what put the reconcile on its queue; a read by the
writes that made the versions it saw (and, where its view was behind, by those it missed); an event by its write. The
slice of a change is everything that can be reached that way, across controllers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from steersman.check.story import Step, Story
from steersman.kernel.object import Key


class CauseError(ValueError):
    """The object or field that was asked for is not in the run. The text says what is."""


class Place(NamedTuple):
    """An object, or a field of it."""

    key: Key
    field: str = ""
    """A path such as `spec.replicas`; "": any change."""

    def __str__(self) -> str:
        name = self.key.name if not self.key.namespace else f"{self.key.namespace}/{self.key.name}"
        return f"{self.key.kind}/{name}{f'.{self.field}' if self.field else ''}"

    def touched(self, step: Step) -> bool:
        """Whether a step changed it."""
        for change in step.changes:
            if change.key != self.key:
                continue
            if not self.field:
                return True
            old, new = [None if obj is None else _held(obj.value, self.field) for obj in (change.old, change.new)]
            if old != new:
                return True
        return False


def _held(value: Any, field: str) -> Any:
    """What a value holds at a path such as `spec.args[0]`; None where there is nothing. Names may have dots in them."""
    if not field:
        return value
    if isinstance(value, list):
        number, _, rest = field.removeprefix("[").partition("]")
        within = field[0] == "[" and number.isdecimal() and int(number) < len(value)
        return _held(value[int(number)], rest.removeprefix(".")) if within else None
    if isinstance(value, dict):
        for name, inner in value.items():
            rest = field[len(name) :]
            if name and field.startswith(name) and (not rest or rest[0] in ".["):
                found = _held(inner, rest.removeprefix("."))
                if found is not None:
                    return found
    return None


def place(story: Story, text: str) -> Place:
    """What `Pod/web`, `Pod/default/web` or `Pod.v1/web`, with or without `.field.in.it`, means in a run. Raises
    `CauseError`."""
    best: tuple[int, Place] | None = None
    for key in story.objects:
        for name in _names(key):
            if not text.startswith(name):
                continue
            rest = text[len(name) :]
            if (not rest or rest[0] == ".") and (best is None or len(name) > best[0]):
                best = (len(name), Place(key, rest[1:]))
    if best is None:
        known = ", ".join([str(Place(key)) for key in story.objects if key.kind != "Namespace"])
        raise CauseError(f"{text}: no such object in this run; give KIND/NAME or KIND/NAMESPACE/NAME of: {known}")
    return best[1]


def _names(key: Key) -> Iterator[str]:
    kinds = [key.kind] + ([f"{key.kind}.{key.group}"] if key.group else [])
    for kind in kinds:
        yield f"{kind}/{key.name}"
        if key.namespace:
            yield f"{kind}/{key.namespace}/{key.name}"


def slice_of(story: Story, wanted: Place) -> list[Step]:
    """The steps that led to the last change of a place, in order, that one included. Raises `CauseError`."""
    last = next((step for step in reversed(story.steps) if wanted.touched(step)), None)
    if last is None:
        raise CauseError(f"{wanted}: nobody changes it in this run; steersman check without --cause shows what happens")
    causes = causes_of(story)
    return [story.steps[number - 1] for number in led_to(causes, last.number)]


class Cause(NamedTuple):
    """A step that another rests on."""

    number: int
    how: str
    """What it did: `told` a view, was `missed` by a stale one, was `read`, had `woken` the reconcile, or came `before`
    in it."""


def causes_of(story: Story) -> dict[int, tuple[Cause, ...]]:
    """What each step of a run rests on, by the numbers of steps."""
    causes = _Causes(story)
    return {step.number: causes.told(step) for step in story.steps}


def causes_of_last(story: Story) -> tuple[Cause, ...]:
    """What the last step of a run rests on."""
    return _Causes(story).told(story.steps[-1])


def led_to(causes: Mapping[int, Iterable[Cause]], last: int) -> list[int]:
    """Everything that a step rests on, and what that rests on, and itself: numbers in order."""
    found: set[int] = set()
    work = [last]
    while work:
        number = work.pop()
        if number not in found:
            found.add(number)
            work += [cause.number for cause in causes.get(number, ())]
    return sorted(found)


class _Causes:
    """What caused what in a run."""

    def __init__(self, story: Story) -> None:
        self._steps = story.steps
        self._writer = {change.rev: step for step in story.steps for change in step.changes}
        self._gone: dict[Key, list[Step]] = {}
        for step in story.steps:
            for change in step.changes:
                if change.new is None:
                    self._gone.setdefault(change.key, []).append(step)

    def told(self, step: Step) -> tuple[Cause, ...]:
        """The steps that caused one, each once, as numbers."""
        return tuple(dict.fromkeys([Cause(other.number, how) for how, other in self.of(step)]))

    def of(self, step: Step) -> Iterator[tuple[str, Step]]:
        """The steps that caused one, and how."""
        for how, revs in (("told", step.told), ("missed", step.missed)):
            for rev in revs:
                if rev in self._writer:
                    yield how, self._writer[rev]
        for seen in step.seen:
            if seen.rev is not None and seen.rev in self._writer:
                yield "read", self._writer[seen.rev]
            elif seen.rev is None:
                gone = [gone for gone in self._gone.get(seen.key, ()) if gone.number < step.number]
                yield from [("read", last) for last in gone[-1:]]
        if step.action.op in ("run", "fire"):
            yield from [("woken", other) for other in self._woken(step)]
        elif step.item is not None:
            yield from [("before", other) for other in self._reconcile(step)]

    def _woken(self, step: Step) -> Iterator[Step]:
        """What put its item on the queue, or set its timer: the last step that did."""
        item = step.item
        before = [other for other in self._steps[: step.number - 1] if item in other.woke]
        if before and step.action.op == "run":
            yield before[-1]
        elif step.action.op == "fire":
            yield from [other for other in self._steps[: step.number - 1] if other.item == item and other.outcome][-1:]

    def _reconcile(self, step: Step) -> Iterator[Step]:
        """What the same reconcile did before, from its start on."""
        for other in reversed(self._steps[: step.number - 1]):
            if other.item == step.item and other.action.op not in ("fire",):
                yield other
                if other.action.op == "run":
                    return
