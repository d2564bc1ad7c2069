"""A run to look at later: what a command found, in one document that pages and the inspector are made from.

Everything in it is text or a number, ready to be shown: no controller has to be there when it is read. Files come from
other people, so a reader believes nothing: the size is bounded, every value has its type, every number is in range.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import combinations
from typing import Any, Final

import orjson

from steersman.check.ends import End, Parting, parting
from steersman.check.explain import short
from steersman.check.picture import Picture
from steersman.check.report.cause import Cause, Place, causes_of, causes_of_last
from steersman.check.report.checked import Checked
from steersman.check.story import CALLS, Change, Step, Story, name_of
from steersman.kernel.faults import ABOUT_A_KIND, AT_A_CALL, FAULTY
from steersman.kernel.object import Object

FORMAT: Final = "steersman run"
VERSION: Final = 1
MAX_STEPS: Final = 2_000
"""Steps of a run that are kept: nobody reads more, and a walk may have ten thousand."""
MAX_ENDS: Final = 12
"""Ends that are kept, each with its run: all pairs of them are compared."""
MAX_OBJECTS: Final = 200
"""Objects of a store that are kept whole."""
MAX_TEXT: Final = 20_000
"""Characters of one text: an object of a megabyte is nothing to read."""
MAX_FIELDS: Final = 200
"""Changed fields of one object."""

KEPT_AS_THEY_ARE: Final = frozenset("\n\t\u00a0")

Field = tuple[str, str, str]
"""(path, old, new)"""


@dataclass(frozen=True, slots=True)
class SavedChange:
    """What a step did to an object, or how two stores differ in it."""

    sign: str
    """+, ~ or -"""
    name: str
    """`Pod default/web`"""
    place: str
    """`Pod/default/web`, as `--cause` takes it."""
    fields: list[Field]
    whole: str
    """A new object as JSON; "" where it is not new."""


@dataclass(frozen=True, slots=True)
class SavedStep:
    """One step; see `story.Step`."""

    number: int
    label: str
    lane: str
    """Who: a controller, its view of a kind, the users."""
    mark: str
    """start | read | write | fault | view | user | other"""
    text: str
    outcome: str
    stale: bool
    call: str
    """The call that was made; "" for none."""
    seen: list[str]
    """What was read, each with its version."""
    causes: list[tuple[int, str]]
    """The steps it rests on and how: see `cause.Cause`."""
    woke: list[str]
    changes: list[SavedChange]


@dataclass(frozen=True, slots=True)
class SavedRun:
    """A run; see `story.Story`."""

    lanes: list[str]
    steps: list[SavedStep]
    turn: int
    """Steps before the cycle."""
    for_ever: bool
    omitted: int
    """Steps at its end that are not kept."""
    last: dict[str, str]
    """The objects in the end, as JSON; as many as are kept."""


@dataclass(frozen=True, slots=True)
class SavedViolation:
    """See `verdict.Violation`."""

    title: str
    message: str
    schedule: str
    run: SavedRun | None
    other: SavedRun | None
    """Where two runs end differently, the second one."""


@dataclass(frozen=True, slots=True)
class SavedParting:
    """Two ends side by side; see `ends.Parting`."""

    one: int
    other: int
    step: int
    first: str
    second: str
    differences: list[SavedChange]


@dataclass(frozen=True, slots=True)
class SavedCheck:
    """One verdict."""

    target: str
    title: str
    word: str
    """COMPLETE or BOUNDED"""
    holds: bool
    outcome: str
    summary: str
    violations: list[SavedViolation]
    ends: list[SavedRun]
    all_ends: int
    partings: list[SavedParting]
    picture: Picture | None
    branches: list[SavedStep | None]
    """The step to each state of the picture from the one before it; None for the first, [] where they are not known."""


@dataclass(frozen=True, slots=True)
class SavedPlace:
    """Where somebody was in it."""

    check: int
    """Which of the checks, from 0."""
    run: str
    """`violation 1`, `other 1`, `end 1` or `state 12`."""
    step: int
    """The step, from 1; 0: none."""


@dataclass(frozen=True, slots=True)
class SavedCommand:
    """Everything that a command checked."""

    format: str
    version: int
    made_by: str
    checks: list[SavedCheck]
    place: SavedPlace | None
    """Where the inspector was left."""
    marks: list[SavedPlace]
    """What was marked there."""


def saved(checked: Sequence[Checked]) -> SavedCommand:
    """What was checked, as a document."""
    return SavedCommand(
        FORMAT, VERSION, f"steersman {version('steersman')}", [_check(one) for one in checked], None, []
    )


def dumped(command: SavedCommand) -> bytes:
    """As JSON."""
    return orjson.dumps(command)


# -- making one ------------------------------------------------------------------------------------------------------


def _check(one: Checked) -> SavedCheck:
    verdict = one.verdict
    ends = verdict.ends[:MAX_ENDS]
    return SavedCheck(
        _text(one.target),
        _text(verdict.title),
        verdict.word,
        verdict.holds,
        _text(verdict.outcome),
        _text(verdict.summary()),
        [
            SavedViolation(
                _text(violation.title),
                _text(violation.message),
                _text(violation.schedule.dumps()),
                None if violation.story is None else _run(violation.story),
                None if violation.other_story is None else _run(violation.other_story),
            )
            for violation in verdict.violations
        ],
        [_run(end.story) for end in ends],
        len(verdict.ends),
        [_parting(one, other) for one, other in combinations(ends, 2)],
        verdict.picture,
        [_last_step(story) if story.steps else None for story in verdict.branches],
    )


def _parting(one: End, other: End) -> SavedParting:
    found: Parting = parting(one, other)
    differences = [
        SavedChange(each.sign, name_of(each.key), str(Place(each.key)), _fields(each.fields), "")
        for each in found.differences[:MAX_OBJECTS]
    ]
    return SavedParting(one.number, other.number, found.step, _text(found.first), _text(found.second), differences)


def _run(story: Story) -> SavedRun:
    causes = causes_of(story)
    writers = _writers(story)
    kept = story.steps[:MAX_STEPS]
    steps = [_step(story, step, causes[step.number], writers) for step in kept]
    return SavedRun(
        list(dict.fromkeys([step.lane for step in steps])),
        steps,
        story.turn,
        story.for_ever,
        len(story.steps) - len(kept),
        {name_of(obj.key): _whole(story, obj) for obj in list(story.last.objects())[:MAX_OBJECTS]},
    )


def _last_step(story: Story) -> SavedStep:
    return _step(story, story.steps[-1], causes_of_last(story), _writers(story))


def _writers(story: Story) -> dict[int, int]:
    """Revision → number of the step that wrote it."""
    return {change.rev: step.number for step in story.steps for change in step.changes}


def _step(story: Story, step: Step, causes: Sequence[Cause], writers: Mapping[int, int]) -> SavedStep:
    seen = []
    for one in step.seen:
        writer = writers.get(one.rev or 0)
        made = f", written in step {writer}" if writer else ""
        seen.append(name_of(one.key) + (": not there" if one.rev is None else f": version {one.rev}{made}"))
    return SavedStep(
        step.number,
        _text(step.action.label),
        _text(_lane(step)),
        mark(step),
        _text(story.named(step.text)),
        _text(story.named(step.outcome)),
        step.stale,
        "" if step.effect is None else _text(story.named(str(step.effect))),
        seen[:MAX_OBJECTS],
        [(cause.number, cause.how) for cause in causes],
        [_text(f"{who} on {name_of(key)}") for who, key in step.woke],
        [_change(story, change) for change in step.changes],
    )


def _lane(step: Step) -> str:
    if step.action.op in ABOUT_A_KIND:
        return f"{step.action.who}: view of {step.action.key.kind}"
    return "users" if step.action.op == "user" else step.action.who


def mark(step: Step) -> str:
    """What kind of step it is."""
    op = step.action.op
    if op in FAULTY or op in AT_A_CALL:
        return "fault"
    if step.effect is not None and op in CALLS:
        return "write" if step.effect.op == "write" else "read" if step.effect.op in ("get", "list") else "other"
    if op in ("deliver", "merge", "relist"):
        return "view"
    return {"run": "start", "user": "user"}.get(op, "other")


def _change(story: Story, change: Change) -> SavedChange:
    fields = _fields(change.fields(), story)
    whole = _whole(story, change.new) if change.old is None and change.new is not None else ""
    return SavedChange(change.sign, name_of(change.key), str(Place(change.key)), fields, whole)


def _fields(fields: Iterable[tuple[str, Any, Any]], story: Story | None = None) -> list[Field]:
    def shown(value: Any) -> str:
        text = short(value, MAX_TEXT)
        return visible(text if story is None else story.named(text))

    return [(path, shown(old), shown(new)) for path, old, new in fields][:MAX_FIELDS]


def _whole(story: Story, obj: Object) -> str:
    return _text(story.named(json.dumps(obj.value, indent=2, ensure_ascii=False)))


def _text(text: str) -> str:
    """Bounded and visible."""
    return visible(text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…")


def visible(text: str) -> str:
    """With what moves the cursor, the colours or the direction of writing as an escape: names may hold anything."""
    if text.isprintable():
        return text
    return "".join([char if char.isprintable() or char in KEPT_AS_THEY_ARE else repr(char)[1:-1] for char in text])
