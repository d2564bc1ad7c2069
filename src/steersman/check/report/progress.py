"""The line on a terminal while a search goes on: how far it is, how fast, and, where it can be told, its share.

How large a graph is nobody knows before it has been searched. But breadth first, the states that wait swell and then
ebb, and in the ebb every state that is looked at leads to about the same number of new ones, fewer than one. Were it to
go on like that, the states that wait now lead to that many more each, and so on: a geometric series. The share is told
in the ebb alone: while two windows in a row, each a twelfth of what was looked at, had fewer new states than old ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from steersman.check.memory import MEGA, resident
from steersman.check.verdict import Verdict

CLEAR: Final = "\r\x1b[K"
"""Takes the last line of progress away from the terminal's line."""
MAX_SAMPLES: Final = 4_096
"""Looks that are remembered: at one a second more than an hour of search; of a longer one every other is forgotten."""
WINDOW: Final = 12
"""The part of what was looked at that a window is: short enough to see a trend turn, long enough to be one."""
LEAST: Final = 240
"""States looked at before there is a trend."""
EBB: Final = 0.98
"""New states for each one looked at, at most: closer to one, what is left is anybody's guess."""


class Sample(NamedTuple):
    """One look at a search."""

    seconds: float
    looked: int
    """States whose transitions are known."""
    waiting: int


class Progress:
    """Hears of a search now and then, and writes the line."""

    def __init__(self, write: Callable[[str], object], width: Callable[[], int]) -> None:
        self._write = write
        self._width = width
        """Columns of the terminal: a longer line would not go away."""
        self._samples: deque[Sample] = deque()
        self._verdict: Verdict | None = None

    def __call__(self, verdict: Verdict) -> None:
        """Writes where a search is."""
        self._write(CLEAR + self.line(verdict)[: max(1, self._width() - 1)])

    def line(self, verdict: Verdict) -> str:
        """Where a search is, in words."""
        sample = Sample(verdict.seconds, verdict.states - verdict.frontier, verdict.frontier)
        if verdict is not self._verdict or (self._samples and sample.looked < self._samples[-1].looked):
            self._samples.clear()
            self._verdict = verdict
        before = self._samples[-1] if self._samples else Sample(0.0, 0, 0)
        self._note(sample)
        new = sample.looked + sample.waiting - before.looked - before.waiting
        rate = new / (sample.seconds - before.seconds) if sample.seconds > before.seconds else 0
        share = estimated_share(self._samples)
        parts = [f"{verdict.states:,} states ({rate:,.0f}/s)", f"{verdict.transitions:,} transitions"]
        if verdict.depth:
            parts += [f"depth {verdict.depth:,}", f"{verdict.frontier:,} waiting"]
        if share is not None:
            parts.append(f"perhaps {100 * share:.0f} % done")
        return ", ".join([*parts, f"{resident() // MEGA:,} MB "])

    def _note(self, sample: Sample) -> None:
        if len(self._samples) >= MAX_SAMPLES:
            self._samples = deque(list(self._samples)[::2])
        self._samples.append(sample)


def estimated_share(samples: deque[Sample]) -> float | None:
    """How much of all states was looked at, from 0 to 1; None where nothing can be said."""
    now = samples[-1]
    if now.looked < LEAST or not now.waiting:
        return None
    middle, first = (_before(samples, now.looked * (WINDOW - windows) // WINDOW) for windows in (1, 2))
    growth = (_growth(first, middle), _growth(middle, now))
    if any(each is None or each > EBB for each in growth):
        return None
    last = growth[1]
    assert last is not None
    return now.looked / (now.looked + now.waiting / (1 - last))


def _before(samples: deque[Sample], looked: int) -> Sample:
    """The last look at which no more than that was looked at; the first one where there is none."""
    found = samples[0]
    for sample in samples:
        if sample.looked > looked:
            break
        found = sample
    return found


def _growth(one: Sample, other: Sample) -> float | None:
    """New states for each state that was looked at between two looks; None where that was none."""
    looked = other.looked - one.looked
    return (looked + other.waiting - one.waiting) / looked if looked > 0 else None
