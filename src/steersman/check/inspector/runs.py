"""What there is to look at in a saved run: its runs by name, and why a step is as it is. No screen is needed for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from steersman.check.report.cause import Cause, led_to
from steersman.check.report.saved_run import SavedChange, SavedCheck, SavedParting, SavedRun, SavedStep


class Named(NamedTuple):
    """A run of a check, by name."""

    name: str
    """`violation 1`, `other 1`, `end 1` or `state 12`: as `SavedPlace.run` has it."""
    title: str


def runs_of(check: SavedCheck) -> Iterator[Named]:
    """The runs of a check but for those to single states."""
    for at, violation in enumerate(check.violations, 1):
        if violation.run is not None:
            yield Named(f"violation {at}", f"violation {at}: {violation.title}")
        if violation.other is not None:
            yield Named(f"other {at}", f"  … but also, of violation {at}")
    for at, run in enumerate(check.ends, 1):
        yield Named(f"end {at}", f"end {at}: {len(run.steps)} steps")


def run_called(check: SavedCheck, name: str) -> SavedRun | None:
    """The run of a name; None where there is none."""
    kind, _, text = name.partition(" ")
    number = int(text) if text.isdecimal() and len(text) < 10 else 0
    if kind in ("violation", "other") and 0 < number <= len(check.violations):
        violation = check.violations[number - 1]
        return violation.run if kind == "violation" else violation.other
    if kind == "end" and 0 < number <= len(check.ends):
        return check.ends[number - 1]
    if kind == "state" and check.picture is not None and number < len(check.picture.spots) and text.isdecimal():
        return way_to(check, number)
    return None


def way_to(check: SavedCheck, place: int) -> SavedRun | None:
    """The run to a state of the picture; None where its steps are not known."""
    if check.picture is None or not check.branches:
        return None
    steps: list[SavedStep] = []
    while place > 0:
        step = check.branches[place]
        if step is not None:
            steps.insert(0, step)
        place = check.picture.spots[place].parent
    lanes = list(dict.fromkeys([step.lane for step in steps]))
    return SavedRun(lanes, steps, len(steps), False, 0, {})


def why(run: SavedRun, number: int) -> frozenset[int]:
    """The steps that a step rests on, and itself."""
    causes = {step.number: [Cause(*cause) for cause in step.causes] for step in run.steps}
    return frozenset(led_to(causes, number))


def change_lines(change: SavedChange) -> Iterator[tuple[str, str]]:
    """A change as (sign, text) of each line; a sign of - or + tells the colour, as in a diff."""
    yield change.sign, change.name
    for path, old, new in change.fields:
        yield " ", f"  {path}"
        yield "-", f"    {old}"
        yield "+", f"    {new}"
    for line in change.whole.splitlines():
        yield "+", f"  {line}"


def parting_of(check: SavedCheck, one: int, other: int) -> SavedParting | None:
    """Two ends side by side, by their numbers in any order."""
    return next((each for each in check.partings if {each.one, each.other} == {one, other}), None)
