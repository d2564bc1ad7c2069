"""The `Journal` port: the durable log behind a store, one protocol for every backend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from .group import Head
from .record import Commit, Entry, Key, Record

__all__ = ["Journal", "Lease", "Problem", "Report", "Snapshot"]


class Lease(NamedTuple):
    """Who may append: `holder` took the writer's role with `epoch` (0 and "" before the first)."""

    epoch: int
    holder: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The live objects at `head`: the newest commit of each key that exists, in key order."""

    head: Head
    commits: Iterator[Commit]


class Problem(NamedTuple):
    """One finding of a verification. `row` is the position it is about, or None for the whole journal."""

    where: str
    row: int | None
    what: str
    remedy: str

    def __str__(self) -> str:
        row = "" if self.row is None else f" row {self.row}:"
        return f"journal {self.where}:{row} {self.what}; {self.remedy}"


@dataclass(frozen=True, slots=True)
class Report:
    """What a verification read (`rows`, of them `commits`) and found, at most `verify.MAX_PROBLEMS`."""

    head: Head
    rows: int
    commits: int
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        return not self.problems


class Journal(Protocol):
    """An append-only log of commits, inputs and reconciles, with one writer at a time.

    Any method may be called from any thread; calls on one journal take turns. Iterators read a fixed
    state of the log, the one at the call, and are not disturbed by later appends; each belongs to the
    thread that consumes it. Use `reader()` for reads that must not wait for an append's fsync. Every
    method raises `JournalError` (and its kinds, below) and nothing else for whatever the store does.
    """

    url: str
    blocks: bool
    """Whether an append may wait for a disk, and so belongs in a thread of its own."""

    def head(self) -> Head:
        """Epoch, last revision and last position, as durable now, whichever process wrote them."""

    def lease(self) -> Lease:
        """The current writer."""

    def acquire(self, holder: str) -> int:
        """Takes the writer's role, from whoever has it, and gives the new epoch (previous + 1).

        On return every earlier epoch is fenced. `holder` is free text for the error messages of others.
        """

    def append(self, epoch: int, expected: Head, records: Sequence[Record]) -> Head:
        """Appends `records` as one group, all or nothing, and gives the new head.

        On return the group is durable and visible to every reader. No record, no write. Errors, after
        all of which nothing of the group is visible: `Fenced` (`epoch` is not current), `HeadMoved`
        (revision or position of `expected` differ), `BadRecord`, `JournalFull`. After any *other*
        `JournalError` the outcome is unknown: read `head()`, it tells.
        """

    def read(self, after_revision: int = 0, limit: int | None = None) -> Iterator[Commit]:
        """Retained commits with a revision above `after_revision`, in order, at most `limit`."""

    def entries(self, after_position: int = 0, limit: int | None = None) -> Iterator[Entry]:
        """Retained records of all three kinds in the order of their appending, at most `limit`."""

    def at(self, revision: int) -> Commit | None:
        """The commit that made `revision`; None if there was none or it was a superseded head-only one."""

    def latest(self, key: Key, revision: int | None = None) -> Commit | None:
        """The newest retained commit of `key` (at or before `revision`), a delete included."""

    def history(self, key: Key) -> Iterator[Commit]:
        """Every retained commit of `key`, oldest first, across incarnations."""

    def snapshot(self) -> Snapshot:
        """The live objects at the head. Costs the live objects, not the history."""

    def sums(self, revision: int) -> tuple[bytes, bytes | None]:
        """Digest sums of the store at `revision`, to verify law J1 against.

        The sum of full-history kinds is known at any revision, that of head-only kinds only at the head
        (else None). Zeros at revision 0; `BadRecord` for a revision the journal has not reached.
        """

    def verify(self) -> Report:
        """Reads everything and checks it: checksums, numbering, epochs, totals, indexes."""

    def reader(self) -> Journal:
        """A second handle for reading on another thread. It refuses `acquire` and `append`."""

    def close(self) -> None:
        """Releases the files. Closing twice is harmless, any other call afterwards an error."""
