"""Verification of stored rows: everything that the numbering and the running totals make checkable.

Dropped head-only rows leave gaps in positions and revisions. That a gap is one of these, and no loss,
follows from two counts: full-history commits carry their own gapless ordinal, which names any lost one,
and the number of missing positions, like that of missing revisions, must be the `pruned` total.
"""

from __future__ import annotations

from collections.abc import Iterable

from .errors import RESTORE, Corrupt
from .group import State
from .protocol import Problem, Report
from .record import FULL, HEAD_ONLY, Commit, Row, decode

__all__ = ["Verifier"]

MAX_PROBLEMS = 100  # a damaged file can have millions; the first hundred say what happened


class Verifier:
    """Takes the rows in the order of position, then the slots, and gives a `Report`."""

    def __init__(self, state: State, where: str) -> None:
        self.state = state
        self.where = where
        self.problems: list[Problem] = []
        self.rows = 0
        self.commits = 0
        self._position = 0
        self._revision = 0
        self._ordinal = 0
        self._epoch = 0
        self._newest: dict[bytes, tuple[int, bool]] = {}  # key -> (position, is it live)
        self._damaged: set[int] = set()
        self._head_only: set[bytes] = set()  # keys whose newest row is a head-only one

    def found(self, row: int | None, what: str, remedy: str = RESTORE) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Problem(self.where, row, what, remedy))

    def feed(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self.rows += 1
            try:
                record = decode(row, self.where).record
            except Corrupt as error:
                what = error.problem.partition(f" row {row.position} ")[2]
                self.found(row.position, what, error.remedy)
                self._damaged_row(row)
                continue
            self._sequence(row)
            if isinstance(record, Commit):
                self._commit(row, record)

    def _damaged_row(self, row: Row) -> None:
        """Counts it as what it seems to be, so that one damage is reported once and not as many losses."""
        self._damaged.add(row.position)
        self._position = max(self._position, row.position)
        if row.code in (FULL, HEAD_ONLY):
            self.commits += 1
            self._ordinal += row.code == FULL

    def _sequence(self, row: Row) -> None:
        if row.position <= self._position:
            self.found(row.position, f"follows position {self._position}")
        if row.epoch < self._epoch or row.epoch > self.state.epoch:
            bounds = f"{self._epoch} to {self.state.epoch}"
            self.found(row.position, f"has epoch {row.epoch}, outside {bounds}")
        if row.revision < self._revision:
            self.found(row.position, f"has revision {row.revision} after {self._revision}")
        self._position, self._epoch = row.position, max(row.epoch, self._epoch)

    def _commit(self, row: Row, commit: Commit) -> None:
        assert row.key is not None
        self.commits += 1
        if row.revision == self._revision:
            self.found(row.position, f"repeats revision {row.revision}")
        self._revision = max(row.revision, self._revision)
        if row.key in self._head_only:
            self.found(row.position, "supersedes a head-only version that is still there")
        self._head_only.discard(row.key)
        if row.code == HEAD_ONLY:
            self._head_only.add(row.key)
        else:
            self._ordinal += 1
            if row.ordinal != self._ordinal:
                lost = f"{self._ordinal} to {row.ordinal - 1}"
                self.found(row.position, f"is full-history commit {row.ordinal}; {lost} are missing before it")
                self._ordinal = row.ordinal
        self._newest[row.key] = (row.position, commit.verb != "delete")

    def slots(self, slots: Iterable[tuple[bytes, int]]) -> None:
        """Compares the table of live keys with the one that follows from the rows."""
        remedy = "the log is sound but its table of live keys is not: " + RESTORE
        live = {key: position for key, (position, alive) in self._newest.items() if alive}
        for key, position in slots:
            wanted = live.pop(key, None)
            if wanted != position and position not in self._damaged:
                self.found(position, f"is given as newest of {_name(key)}, which is at {wanted}", remedy)
        for key, position in live.items():
            self.found(position, f"is newest of {_name(key)}, which is not among the live keys", remedy)

    def report(self) -> Report:
        state = self.state
        ends = (self._position, self._revision, self._ordinal)
        if state.position in self._damaged:  # the last row is there, whatever its numbers have become
            ends = (self._position, state.revision, state.ordinal)
        if ends != (state.position, state.revision, state.ordinal):
            self.found(
                None,
                f"ends at position {ends[0]}, revision {ends[1]}, full-history commit {ends[2]}, but its head "
                f"says {state.position}, {state.revision}, {state.ordinal}: rows at its end are missing",
            )
        for noun, missing in (
            ("positions", state.position - self.rows),
            ("revisions", state.revision - self.commits),
        ):
            if missing != state.pruned:
                self.found(None, f"{missing} {noun} are missing, but {state.pruned} rows were dropped")
        return Report(state.head, self.rows, self.commits, tuple(self.problems))


def _name(key: bytes) -> str:
    return bytes(key).decode(errors="replace").replace("\0", "/")
