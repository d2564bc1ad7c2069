"""The reports that a command was asked for: they are written when it ends, however it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from steersman.check.ends import parting
from steersman.check.explain import field_lines, step_lines
from steersman.check.report import run_file
from steersman.check.report.cause import CauseError, place, slice_of
from steersman.check.report.checked import Checked, written
from steersman.check.report.junit import junit
from steersman.check.report.page import page
from steersman.check.report.regression import export
from steersman.check.report.sarif import sarif
from steersman.check.report.saved_run import saved
from steersman.check.story import name_of
from steersman.check.verdict import Verdict, Violation, plural

MAX_TOLD: Final = 20
"""Ends that are told of with what is there: each is a run that is taken once more."""


class Wanted(NamedTuple):
    """Which reports, and where they go."""

    junit: Path | None = None
    sarif: Path | None = None
    tests: Path | None = None
    """A folder for a test of each violation."""
    html: Path | None = None
    save: Path | None = None
    """A file for `steersman inspect`."""
    ends: bool = False
    """List the stores in which runs come to rest, with the steps to each."""
    diff_ends: tuple[int, int] | None = None
    """Two of them to be compared."""
    cause: str = ""
    """`KIND/NAME[.field]`: why that is as it is at the end of each counterexample."""

    @property
    def pictures(self) -> bool:
        """Whether something shows graphs of states."""
        return self.html is not None or self.save is not None


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
        if self.wanted.ends or self.wanted.diff_ends:
            yield from listed(one.verdict)
        if self.wanted.diff_ends:
            yield from compared(one.verdict, *self.wanted.diff_ends)

    def write(self) -> Iterator[str]:
        """Writes the files; says which. Raises `OSError` for the last that could not be written, after all the
        others."""
        failed: OSError | None = None
        for path, write in self._files():
            try:
                write()
            except OSError as error:
                error.filename = str(path)
                if failed is not None:
                    yield f"{failed.filename}: {failed.strerror}; the report was not written"
                failed = error
                continue
            yield f"wrote {path}{f'; look at it with steersman inspect {path}' if path == self.wanted.save else ''}"
        if failed is not None:
            raise failed

    def _files(self) -> Iterator[tuple[Path, Callable[[], None]]]:
        wanted = self.wanted
        for path, make in ((wanted.junit, junit), (wanted.sarif, sarif), (wanted.html, _html)):
            if path is not None:
                yield path, partial(lambda path, make: written(path, make(self.checked)), path, make)
        if wanted.save is not None:
            yield wanted.save, partial(lambda path: run_file.save(saved(self.checked), path), wanted.save)

    def _exported(self, one: Checked, violation: Violation, folder: Path) -> Path:
        name, text = export(one, violation, folder)
        stem, number = name.removesuffix(".py"), 1
        while name in self._tests:
            number += 1
            name = f"{stem}_{number}.py"
        self._tests.add(name)
        written(folder / name, text)
        return folder / name


def _html(checked: Sequence[Checked]) -> str:
    return page(saved(checked))


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


def listed(verdict: Verdict) -> Iterator[str]:
    """The stores in which runs come to rest, as lines: how far away each is; of the nearest the last step on the way,
    and what is there."""
    if not verdict.ends:
        yield "  ends: none: no run was found that comes to rest"
    for end in verdict.ends:
        line = f"  end {end.number}: {plural(len(end.actions), 'step')} from the start"
        if end.number > MAX_TOLD:
            yield line
            continue
        steps = end.story.steps
        yield f"{line}; the last: {end.story.named(steps[-1].text)}" if steps else line
        yield f"    there: {', '.join(name_of(key) for key in sorted(end.objects()))}"


def compared(verdict: Verdict, one: int, other: int) -> Iterator[str]:
    """What differs between two ends, and the first step where the ways to them part, as lines."""
    count = len(verdict.ends)
    if not (0 < one <= count and 0 < other <= count):
        yield f"  ends {one} and {other} are not compared: there {'is' if count == 1 else 'are'} {plural(count, 'end')}"
        return
    if one == other:
        yield f"  end {one} is itself"
        return
    found = parting(verdict.ends[one - 1], verdict.ends[other - 1])
    yield f"  the ways to the ends {one} and {other} part at step {found.step}:"
    yield f"    to {one}: {found.first or '(has ended)'}"
    yield f"    to {other}: {found.second or '(has ended)'}"
    yield f"  from end {one} to end {other}:"
    for each in found.differences:
        yield f"    {each.sign} {name_of(each.key)}"
        for line in field_lines(each.fields):
            yield f"    {line}"
