"""The journal that forgets: the same rows and rules as the durable ones, kept in this process. What was committed is
kept as the object it is, which shares its parts with others, and becomes bytes when somebody reads it."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from .errors import BadRecord, JournalError
from .group import EMPTY, Group, Head, State, bad_transition, plan
from .protocol import Lease, Report, Snapshot
from .record import FULL, HEAD_ONLY, NO_SUMS, Commit, Entry, Key, Late, Record, Row, decode, encode_key, encode_late
from .verify import Verifier

__all__ = ["MemoryJournal"]


class _Log:
    """What the handles of one journal share. Sorted lists of numbers stand in for a database's indexes."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.state: State = EMPTY
        self.rows: dict[int, Row | Late] = {}
        self.positions: list[int] = []
        self.revisions: list[int] = []  # of retained commits, and…
        self.commits: list[int] = []  # …their positions, in step
        self.versions: dict[bytes, list[int]] = {}  # key -> positions of its retained commits
        self.head_only: dict[bytes, int] = {}  # key -> position of its retained head-only commit
        self.slots: dict[bytes, int] = {}  # live key -> position of its newest commit
        self.names: list[bytes] = []  # live keys, sorted

    def apply(self, group: Group[Row | Late]) -> None:
        pruned = 0
        for key in group.slots:
            position = self.head_only.pop(key, None)
            if position is not None:
                self._drop(key, position)
                pruned += 1
        for row in group.rows:
            if type(row) is Row:
                # A right-sized copy: what the serialiser returns holds its whole buffer, of 4 KB and more.
                row = row._replace(body=memoryview(row.body).tobytes())
            self.rows[row.position] = row
            self.positions.append(row.position)
            if row.code in (FULL, HEAD_ONLY):
                assert row.key is not None
                self.revisions.append(row.revision)
                self.commits.append(row.position)
                self.versions.setdefault(row.key, []).append(row.position)
                if row.code == HEAD_ONLY:
                    self.head_only[row.key] = row.position
        for key, slot in group.slots.items():
            if slot.live:
                if key not in self.slots:
                    insort(self.names, key)
                self.slots[key] = slot.position
            elif key in self.slots:
                del self.slots[key]
                del self.names[bisect_left(self.names, key)]
        self.state = group.state._replace(pruned=group.state.pruned + pruned)

    def _drop(self, key: bytes, position: int) -> None:
        del self.rows[position]
        del self.positions[bisect_left(self.positions, position)]
        index = bisect_left(self.commits, position)
        del self.commits[index], self.revisions[index]
        self.versions[key].remove(position)


class MemoryJournal:
    """`Journal` in memory. See the protocol for every method; `reader()` shares the log."""

    def __init__(self, log: _Log | None = None, readonly: bool = False) -> None:
        self.url = "memory:"
        self.blocks = False
        self._log = log or _Log()
        self._readonly = readonly
        self._closed = False

    def head(self) -> Head:
        with self._open().lock:
            return self._log.state.head

    def lease(self) -> Lease:
        with self._open().lock:
            return Lease(self._log.state.epoch, self._log.state.holder)

    def acquire(self, holder: str) -> int:
        with self._writable().lock:
            state = self._log.state
            self._log.state = state._replace(holder=holder, epoch=state.epoch + 1)
            return self._log.state.epoch

    def append(self, epoch: int, expected: Head, records: Sequence[Record]) -> Head:
        with self._writable().lock:
            group = plan(self._log.state, epoch, expected, records, self.url, encode_late)
            for key, slot in group.slots.items():
                if (key in self._log.slots) != slot.was_live:
                    raise bad_transition(self.url, key, slot.first)
            self._log.apply(group)
            return self._log.state.head

    def read(self, after_revision: int = 0, limit: int | None = None) -> Iterator[Commit]:
        log = self._open()
        with log.lock:
            start = bisect_right(log.revisions, after_revision)
            return self._commits(_slice(log.commits, start, limit))

    def entries(self, after_position: int = 0, limit: int | None = None) -> Iterator[Entry]:
        log = self._open()
        with log.lock:
            start = bisect_right(log.positions, after_position)
            rows = [log.rows[position] for position in _slice(log.positions, start, limit)]
        return (decode(_encoded(row), self.url) for row in rows)

    def at(self, revision: int) -> Commit | None:
        found = list(self.read(revision - 1, 1))
        return found[0] if found and found[0].revision == revision else None

    def latest(self, key: Key, revision: int | None = None) -> Commit | None:
        newest = None
        for commit in self.history(key):
            if revision is None or commit.revision <= revision:
                newest = commit
        return newest

    def history(self, key: Key) -> Iterator[Commit]:
        log = self._open()
        with log.lock:
            return self._commits(log.versions.get(encode_key(key), ()))

    def snapshot(self) -> Snapshot:
        log = self._open()
        with log.lock:
            return Snapshot(log.state.head, self._commits(log.slots[name] for name in log.names))

    def sums(self, revision: int) -> tuple[bytes, bytes | None]:
        log = self._open()
        with log.lock:
            reached = log.state.revision
            if not 0 <= revision <= reached:
                raise BadRecord(
                    f"journal {self.url}: no revision {revision}, its head is {reached}", "ask for a reached one"
                )
            index = bisect_right(log.revisions, revision)
            sums = NO_SUMS
            if index:
                (commit,) = self._commits([log.commits[index - 1]])
                sums = commit.sums
            return sums[0], sums[1] if revision == reached else None

    def verify(self) -> Report:
        log = self._open()
        with log.lock:
            verifier = Verifier(log.state, self.url)
            verifier.feed(_encoded(log.rows[position]) for position in log.positions)
            verifier.slots(log.slots.items())
            return verifier.report()

    def reader(self) -> MemoryJournal:
        return MemoryJournal(self._open(), readonly=True)

    def close(self) -> None:
        self._closed = True

    def _commits(self, positions: Iterable[int]) -> Iterator[Commit]:
        """Takes the rows now, so that later appends cannot change what the iterator gives."""
        rows = [self._log.rows[position] for position in positions]
        return (_commit(row, self.url) for row in rows)

    def _open(self) -> _Log:
        if self._closed:
            raise JournalError(f"journal {self.url} is closed", "open it again")
        return self._log

    def _writable(self) -> _Log:
        if self._readonly:
            raise JournalError(f"journal {self.url}: this handle only reads", "write through the journal itself")
        return self._open()


def _slice(numbers: list[int], start: int, limit: int | None) -> Iterable[int]:
    return islice(numbers, start, None if limit is None else start + max(0, limit))


def _encoded(row: Row | Late) -> Row:
    return row.row() if isinstance(row, Late) else row


def _commit(row: Row | Late, where: str) -> Commit:
    record = decode(_encoded(row), where).record
    assert isinstance(record, Commit)
    return record
