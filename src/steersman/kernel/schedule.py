"""Schedules: the choices of a Policy, as text; and the Policy port.

A Schedule is what makes any run repeatable: the labels of the Actions taken, in order, under a header that names what
they were taken in. Strict replay refuses an Action that is not enabled; lenient replay skips it, which makes every
subsequence of a schedule a schedule (minimisation rests on that).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from .action import Action
from .world import World

HEADER: Final = "# steersman schedule 1"
MAX_LABELS: Final = 1_000_000
"""Labels in a schedule file: a bound on hostile input; a simulated day has fewer."""


class ScheduleError(ValueError):
    """A schedule that cannot be read or replayed; the text names the line and the remedy."""


class Schedule(Sequence[str]):
    """An immutable list of Action labels."""

    __slots__ = ("labels",)

    def __init__(self, labels: Iterable[str] = ()) -> None:
        self.labels = tuple(labels)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        return Schedule(self.labels[index]) if isinstance(index, slice) else self.labels[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schedule) and self.labels == other.labels

    def __hash__(self) -> int:
        return hash(self.labels)

    def __repr__(self) -> str:
        return f"Schedule({list(self.labels)!r})"

    def dumps(self, notes: Iterable[str] = ()) -> str:
        """The text form: a header, notes as comments, one label a line."""
        return "\n".join([HEADER, *[f"# {note}" for note in notes], *self.labels]) + "\n"

    @staticmethod
    def loads(text: str, where: str = "the schedule") -> Schedule:
        """Parses the text form. Raises `ScheduleError`."""
        lines = text.splitlines()
        if not lines or lines[0].strip() != HEADER:
            raise ScheduleError(f"{where}, line 1: expected {HEADER!r}; is this a file written by steersman check?")
        labels = [line for line in lines[1:] if line.strip() and not line.startswith("#")]
        if len(labels) > MAX_LABELS:
            raise ScheduleError(f"{where}: more than {MAX_LABELS:,} steps; cut it into parts")
        return Schedule(labels)


class Policy(Protocol):
    """Chooses the next Action: the only thing that differs between exploring, simulating and replaying."""

    def choose(self, world: World, enabled: Sequence[Action]) -> Action | None:
        """One of `enabled`, or None to stop."""


class Replay:
    """The Policy that follows a Schedule. `skipped` counts labels that were not enabled (lenient only)."""

    def __init__(self, schedule: Schedule, lenient: bool = False) -> None:
        self.schedule = schedule
        self.lenient = lenient
        self.at = 0
        self.skipped = 0

    def choose(self, world: World, enabled: Sequence[Action]) -> Action | None:
        """The next label's Action. Strict replay raises `ScheduleError` when it is not enabled."""
        by_label = {action.label: action for action in enabled}
        while self.at < len(self.schedule):
            label = self.schedule[self.at]
            self.at += 1
            if label in by_label:
                return by_label[label]
            if not self.lenient:
                near = ", ".join(sorted(by_label)[:5]) or "nothing"
                raise ScheduleError(
                    f"step {self.at} of the schedule, {label!r}, is not enabled here (enabled: {near}); the code or "
                    "the scenario changed since it was recorded: run check again"
                )
            self.skipped += 1
        return None
