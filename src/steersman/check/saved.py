"""Saved schedules: the file of a violation, and what its header says about where it comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, NamedTuple

from steersman.check.options import BOUNDS, OPTIONS
from steersman.check.verdict import Verdict, Violation
from steersman.kernel.schedule import Schedule, ScheduleError

MAX_NAME: Final = 200
"""Characters of a file's name: file systems allow 255 bytes."""
NUMBERS: Final = {o.shown: o.name for o in OPTIONS if o.part == BOUNDS and o.kind is int and not o.cuts}
"""What may happen a number of times, by the name the header of a schedule tells it under."""


class Saved(NamedTuple):
    """A schedule as it was read from its file."""

    path: Path
    schedule: Schedule
    bounds: dict[str, Any]
    """What may happen on it: within these bounds it was found."""
    reads: tuple[str, ...]
    """See `Verdict.reads`."""
    target: str
    """`labels.py::test_fixed`: the check it was found in; "" when it does not say."""

    def belongs_to(self, file: str | Path, function: str) -> bool:
        """Whether it was found in this function of this file (wherever the file is now)."""
        recorded, _, name = self.target.partition("::")
        return not self.target or (Path(recorded).stem == Path(file).stem and name == function)

    def refuse(self, file: str | Path, function: str) -> ScheduleError:
        """The error of a schedule that belongs somewhere else."""
        return ScheduleError(
            f"{self.path}: was recorded in {self.target}, not in {Path(file).name}::{function}; name that one, or give "
            "a schedule of this one"
        )


def save(
    violation: Violation, verdict: Verdict, folder: Path, file: str | Path, function: str, taken: set[Path]
) -> Path:
    """Writes the schedule of a violation to `folder/<file>-<function>-<violation>.schedule`; a name in `taken` (and
    this one is added) gets a number. Raises `OSError`."""
    stem = _words(f"{Path(file).stem}-{function}-{violation.name.lower()}")[:MAX_NAME].strip("-")
    path, number = folder / f"{stem}.schedule", 1
    while path in taken:
        number += 1
        path = folder / f"{stem}-{number}.schedule"
    taken.add(path)
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(text_of(violation, verdict, f"{Path(file).name}::{function}"))
    return path


def text_of(violation: Violation, verdict: Verdict, target: str) -> str:
    """The schedule of a violation, with a header that says where it comes from and within which bounds."""
    notes = [f"target: {target}"]
    notes += [f"{verdict.scenario or 'scenario'}: {violation.title}", violation.message]
    notes += [f"{key}: {value}" for key, value in verdict.bounds.items()]
    notes += [f"reads: {text}" for text in verdict.reads]
    return violation.schedule.dumps([" ".join(note.splitlines()) for note in notes])


def _words(text: str) -> str:
    return "".join(char if char.isalnum() or char == "_" else "-" for char in text)


def read(path: Path) -> Saved:
    """Reads a schedule file. Raises `ScheduleError`."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise ScheduleError(f"{path}: {why}; give a file of --schedules") from None
    return parse(text, path)


def parse(text: str, path: Path) -> Saved:
    """A schedule from its text; `path` is what errors call it. Raises `ScheduleError`."""
    schedule = Schedule.loads(text, str(path))
    bounds: dict[str, Any] = {}
    reads: list[str] = []
    target = ""
    for line in text.splitlines():
        name, _, value = line.removeprefix("# ").partition(": ")
        if not line.startswith("# "):
            continue
        if name in NUMBERS and value.isdecimal():
            bounds[NUMBERS[name]] = int(value)
        elif name == "cursors":
            bounds["trees"] = True
        elif name == "granularity" and value == "whole reconciles":
            bounds["atomic"] = True
        elif name == "reads":
            reads.append(value)
        elif name == "target" and not target:
            target = value
    return Saved(path, schedule, bounds, tuple(reads), target)
