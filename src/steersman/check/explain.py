"""Counterexamples in words: each step, who saw what, what it changed, and which view was stale."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import orjson

from steersman.check.story import Change, Step, Story, name_of
from steersman.kernel.action import Action
from steersman.kernel.world import World

MAX_DIFF_LINES: Final = 12
"""Changed fields shown a step: more would bury the one that matters."""
MAX_VALUE: Final = 60


def explain(world: World, actions: Sequence[Action], cycle: Sequence[Action] = ()) -> str:
    """The steps from `world` on, numbered, one or more lines each."""
    return text_of(Story(world, actions, cycle))


def text_of(story: Story) -> str:
    """A story as text."""
    lines: list[str] = []
    if not story.steps:
        lines.append("    (in the starting state, before anybody has done anything)")
    for step in story.steps:
        if story.for_ever and step.number == story.turn + 1:
            lines.append("  from here on, for ever:" if story.turn else "  from the starting state on, for ever:")
        lines += step_lines(step)
    return "\n".join([story.named(line) for line in lines])


def step_lines(step: Step) -> Iterator[str]:
    """A step: its number and words, what it changed, and how the reconcile ended."""
    yield f"  {step.number:>3}. {step.text}"
    for change in step.changes:
        for line in diff(change, step.own != change.key):
            yield f"       {line}"
    if step.outcome:
        yield f"       {step.outcome}"


def diff(change: Change, name_it: bool = False) -> Iterator[str]:
    """What a step changed of an object, a line a field."""
    if change.sign != "~":
        if name_it or change.new is None:
            yield f"{change.sign} {name_of(change.key)}"
        return
    if name_it:
        yield f"~ {name_of(change.key)}"
    yield from field_lines(change.fields())


def field_lines(changes: Sequence[tuple[str, Any, Any]]) -> Iterator[str]:
    """(path, old, new) of fields, a line each."""
    for path, old, new in changes[:MAX_DIFF_LINES]:
        yield f"    {path}: {short(old)} → {short(new)}"
    if len(changes) > MAX_DIFF_LINES:
        yield f"    … and {len(changes) - MAX_DIFF_LINES} more fields"


def short(value: Any, most: int = MAX_VALUE) -> str:
    """A value on a line, of so many characters at most."""
    if value is None:
        return "(none)"
    text = orjson.dumps(value).decode()
    return text if len(text) <= most else text[: most - 1] + "…"
