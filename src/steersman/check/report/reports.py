"""The reports that a command was asked for: they are written when it ends, however it ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from steersman.check.explain import step_lines
from steersman.check.report.cause import CauseError, place, slice_of
from steersman.check.report.checked import Checked, written
from steersman.check.report.junit import junit
from steersman.check.report.regression import export
from steersman.check.report.sarif import sarif
from steersman.check.verdict import Violation


class Wanted(NamedTuple):
    """Which reports, and where they go."""

    junit: Path | None = None
    sarif: Path | None = None
    tests: Path | None = None
    """A folder for a test of each violation."""
    cause: str = ""
    """`KIND/NAME[.field]`: why that is as it is at the end of each counterexample."""


class Reports:
    """Collects what was checked."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.checked: list[Checked] = []
        self._tests: set[str] = set()

    def add(self, one: Checked) -> Iterator[str]:
        """Takes a verdict in; what is to be said of it at once, line by line. Raises `OSError`."""
        self.checked.append(one)
        for violation in one.verdict.violations:
            if self.wanted.cause:
                yield from why(violation, self.wanted.cause)
            if self.wanted.tests is not None:
                yield f"  test: {self._exported(one, violation, self.wanted.tests)}"

    def write(self) -> Iterator[str]:
        """Writes the files; says which. Raises `OSError`."""
        for path, make in ((self.wanted.junit, junit), (self.wanted.sarif, sarif)):
            if path is not None:
                written(path, make(self.checked))
                yield f"wrote {path}"

    def _exported(self, one: Checked, violation: Violation, folder: Path) -> Path:
        name, text = export(one, violation, folder)
        stem, number = name.removesuffix(".py"), 1
        while name in self._tests:
            number += 1
            name = f"{stem}_{number}.py"
        self._tests.add(name)
        written(folder / name, text)
        return folder / name


def why(violation: Violation, text: str) -> Iterator[str]:
    """The steps of a counterexample that led to the last change of an object or a field, as lines."""
    story = violation.story
    if story is None:
        return
    try:
        wanted = place(story, text)
        steps = slice_of(story, wanted)
    except CauseError as error:
        yield f"  why: {error}"
        return
    yield f"  why {wanted} is as it is: {len(steps)} of {len(story.steps)} steps"
    for step in steps:
        for line in step_lines(step):
            yield story.named(line)
