"""The journal in one SQLite file: write-ahead log, an fsync per group, readers that never wait for it.

Facts used here, from sqlite.org: in WAL mode with `synchronous=FULL` a commit is on disk when it returns
(pragma.html#pragma_synchronous); readers see the state at their first read and do not block the writer
(wal.html); closing *any* descriptor of the file drops this process's locks on it (howtocorrupt.html §2.2),
hence the file is never opened here but through SQLite, save to create it.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from .errors import RESTORE, BadRecord, Corrupt, Fenced, JournalError, translate
from .group import Group, Head, State, bad_transition, plan
from .protocol import Lease, Report, Snapshot
from .record import NO_SUMS, Commit, Entry, Key, Record, Row, decode, encode, encode_key
from .verify import Verifier

__all__ = ["SqliteJournal"]

APPLICATION_ID = 0x53545253  # "STRS", so that `file` and others can tell a journal from any database
SCHEMA_VERSION = 1
PAGE_BYTES = 4096  # 8192 would leave half a page empty behind each 4 KB object (bench_journal.py)
BUSY_SECONDS = 5.0  # how long to wait for another process's transaction, which lasts milliseconds
WAL_PAGES = 4096  # checkpoint at 16 MB: the main file's fsync is paid once for thousands of writes
WAL_KEPT_BYTES = 64 << 20  # a WAL that grew beyond this while a reader held it is cut back
CACHE_KIB = 32 << 10  # index pages of a journal of some million rows stay in memory

# code: 1 full-history commit, 2 head-only commit, 3 input, 4 reconcile (record.py).
SCHEMA = """
CREATE TABLE head (
  one INTEGER PRIMARY KEY CHECK (one = 1), holder TEXT NOT NULL, epoch INTEGER NOT NULL,
  revision INTEGER NOT NULL, position INTEGER NOT NULL, ordinal INTEGER NOT NULL, pruned INTEGER NOT NULL
);
CREATE TABLE log (
  position INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, code INTEGER NOT NULL, revision INTEGER NOT NULL,
  ordinal INTEGER NOT NULL, key BLOB, fields BLOB NOT NULL, body BLOB NOT NULL, checksum INTEGER NOT NULL
);
CREATE UNIQUE INDEX commits ON log (revision) WHERE code <= 2;
CREATE UNIQUE INDEX versions ON log (key, revision) WHERE code <= 2;
CREATE UNIQUE INDEX head_only ON log (key) WHERE code = 2;
CREATE TABLE slots (key BLOB PRIMARY KEY, position INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO head VALUES (1, '', 0, 0, 0, 0, 0);
"""
COLUMNS = "log.position, epoch, code, revision, ordinal, log.key, fields, body, checksum"
STATE = "SELECT holder, epoch, revision, position, ordinal, pruned FROM head"

T = TypeVar("T")


class SqliteJournal:
    """`Journal` in the file at `path`, made if missing (mode 0600: it holds whole objects).

    One connection serves the methods under a lock and each iterator has its own, so that any thread
    may call and a slow reader never delays an append. An open iterator keeps the WAL from being reset:
    consume it, or close it. `max_bytes` bounds the main file; the WAL comes on top.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        max_bytes: int | None = None,
        cache_kib: int = CACHE_KIB,
        readonly: bool = False,
    ) -> None:
        self.path = str(Path(path).expanduser().absolute())
        self.url = f"sqlite:{self.path}"
        self.blocks = True
        self.max_bytes = max_bytes
        self._cache_kib = cache_kib
        self._readonly = readonly
        self._lock = threading.RLock()
        self._closed = False
        self._db: sqlite3.Connection | None = None
        self._check_names()
        with self._using("opening"):
            self._file = self._identity()

    # ---- writing

    def acquire(self, holder: str) -> int:
        self._writable()
        with self._using("acquiring") as db, _transaction(db, "IMMEDIATE"):
            db.execute("UPDATE head SET holder = ?, epoch = epoch + 1", (holder,))
            return self._state(db).epoch

    def append(self, epoch: int, expected: Head, records: Sequence[Record]) -> Head:
        self._writable()
        self._check_file()
        with self._using("appending") as db, _transaction(db, "IMMEDIATE"):
            group = plan(self._state(db), epoch, expected, records, self.path, encode)
            if not records:
                return group.state.head
            pruned = _prune(db, group)
            db.executemany("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", group.rows)
            self._change_slots(db, group)
            _, _, revision, position, ordinal, total = group.state
            db.execute(
                "UPDATE head SET revision = ?, position = ?, ordinal = ?, pruned = ?",
                (revision, position, ordinal, total + pruned),
            )
        return group.state.head

    def _change_slots(self, db: sqlite3.Connection, group: Group[Row]) -> None:
        """Creations must find their key free, the rest theirs live: the row counts tell at no cost."""
        born, kept, gone = [], [], []
        for key, slot in group.slots.items():
            if not slot.was_live and slot.live:
                born.append((key, slot.position))
            elif slot.live:
                kept.append((slot.position, key))
            elif slot.was_live:
                gone.append(key)
            elif db.execute("SELECT 1 FROM slots WHERE key = ?", (key,)).fetchone():
                raise bad_transition(self.path, key, slot.first)
        changed = _many(db, "INSERT OR IGNORE INTO slots VALUES (?, ?)", born)
        if changed != len(born):
            for key, position in born:
                if db.execute("SELECT 1 FROM slots WHERE key = ? AND position != ?", (key, position)).fetchone():
                    raise bad_transition(self.path, key, "create")
        if _many(db, "UPDATE slots SET position = ? WHERE key = ?", kept) != len(kept):
            for _, key in kept:
                if not db.execute("SELECT 1 FROM slots WHERE key = ?", (key,)).fetchone():
                    raise bad_transition(self.path, key, group.slots[key].first)
        for key in gone:
            if db.execute("DELETE FROM slots WHERE key = ?", (key,)).rowcount == 0:
                raise bad_transition(self.path, key, group.slots[key].first)

    # ---- reading

    def head(self) -> Head:
        with self._using("reading") as db:
            return self._state(db).head

    def lease(self) -> Lease:
        with self._using("reading") as db:
            state = self._state(db)
            return Lease(state.epoch, state.holder)

    def read(self, after_revision: int = 0, limit: int | None = None) -> Iterator[Commit]:
        sql = f"SELECT {COLUMNS} FROM log WHERE code <= 2 AND revision > ? ORDER BY revision LIMIT ?"
        return self._stream(self._commit, sql, _bound(after_revision), _limit(limit))

    def entries(self, after_position: int = 0, limit: int | None = None) -> Iterator[Entry]:
        sql = f"SELECT {COLUMNS} FROM log WHERE position > ? ORDER BY position LIMIT ?"
        return self._stream(self._entry, sql, _bound(after_position), _limit(limit))

    def history(self, key: Key) -> Iterator[Commit]:
        sql = f"SELECT {COLUMNS} FROM log WHERE code <= 2 AND key = ? ORDER BY revision"
        return self._stream(self._commit, sql, encode_key(key))

    def at(self, revision: int) -> Commit | None:
        return self._one(f"SELECT {COLUMNS} FROM log WHERE code <= 2 AND revision = ?", _bound(revision))

    def latest(self, key: Key, revision: int | None = None) -> Commit | None:
        bound = _LAST if revision is None else _bound(revision)
        sql = f"SELECT {COLUMNS} FROM log WHERE code <= 2 AND key = ? AND revision <= ?"
        return self._one(sql + " ORDER BY revision DESC LIMIT 1", encode_key(key), bound)

    def snapshot(self) -> Snapshot:
        # An outer join fixes the order of the loops (SQLite never reorders it, optimoverview.html §6.2), and an object
        # whose row is gone comes out as a row of NULLs: it must not just be missing.
        sql = f"SELECT {COLUMNS} FROM slots LEFT JOIN log ON log.position = slots.position ORDER BY slots.key"
        with self._errors("reading"):
            db = self._connect()
            db.execute("BEGIN")
            state = self._state(db)
            cursor = db.execute(sql)
        return Snapshot(state.head, self._drain(db, cursor, self._live))

    def sums(self, revision: int) -> tuple[bytes, bytes | None]:
        with self._using("reading") as db, _transaction(db, "DEFERRED"):
            reached = self._state(db).revision
            if not 0 <= revision <= reached:
                raise BadRecord(
                    f"journal {self.path}: no revision {revision}, its head is {reached}", "ask for a reached one"
                )
            # The nearest commit retained at or before it: those dropped since were head-only ones,
            # which leave the full-history sum as it is.
            sql = f"SELECT {COLUMNS} FROM log WHERE code <= 2 AND revision <= ? ORDER BY revision DESC LIMIT 1"
            nearest = self._one(sql, revision)
            full, head_only = NO_SUMS if nearest is None else nearest.sums
            return full, head_only if revision == reached else None

    def verify(self) -> Report:
        with self._errors("verifying"):
            db = self._connect()
        try:
            with self._errors("verifying"):
                db.execute("BEGIN")
                verifier = Verifier(self._state(db), self.path)
            try:
                for (line,) in db.execute("PRAGMA integrity_check(20)"):
                    if line != "ok":
                        verifier.found(None, f"SQLite finds: {line}")
                verifier.feed(map(Row._make, db.execute(f"SELECT {COLUMNS} FROM log ORDER BY position")))
                verifier.slots(db.execute("SELECT key, position FROM slots ORDER BY key"))
            except sqlite3.Error as error:
                fault = translate(error, self.path, "verifying")
                verifier.found(None, f"cannot be read any further: {error}", fault.remedy)
            return verifier.report()
        finally:
            db.close()

    def reader(self) -> SqliteJournal:
        self._alive()
        return SqliteJournal(self.path, readonly=True)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._discard()

    # ---- the file

    def _identity(self) -> tuple[int, int] | None:
        """Which file the path names now; None: none that can be looked at."""
        try:
            status = os.stat(self.path)
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _check_file(self) -> None:
        """Refuses to append to a file that was removed, renamed or replaced since it was opened: SQLite goes on with
        the one it has, and everything acknowledged would be gone with this process (howtocorrupt.html §2.4)."""
        if self._identity() != self._file:
            raise Fenced(
                f"journal {self.path}: the file was removed, renamed or replaced while it was in use",
                "put it and its -wal neighbour back, or restore it from a backup; then start again",
            )

    def _check_names(self) -> None:
        """Refuses a file with a second name (a hard link). The write-ahead log is found by the name: under the other
        one, half of the journal would be missing, and writes to both would destroy it (howtocorrupt.html §2.5)."""
        with suppress(OSError):
            status = os.stat(self.path)
            if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                raise JournalError(
                    f"journal {self.path}: the file has another name as well (a hard link)",
                    "stop whatever uses it, and copy it (cp), or remove the other name",
                )

    def _stream(self, decoded: Callable[[Any], T], sql: str, *parameters: object) -> Iterator[T]:
        with self._errors("reading"):
            db = self._connect()
            cursor = db.execute(sql, parameters)
        return self._drain(db, cursor, decoded)

    def _drain(self, db: sqlite3.Connection, cursor: sqlite3.Cursor, decoded: Callable[[Any], T]) -> Iterator[T]:
        try:
            with self._errors("reading"):
                for row in cursor:
                    yield decoded(row)
        finally:
            db.close()

    def _one(self, sql: str, *parameters: object) -> Commit | None:
        with self._using("reading") as db:
            row = db.execute(sql, parameters).fetchone()
            return None if row is None else self._commit(row)

    def _entry(self, row: Any) -> Entry:
        return decode(Row._make(row), self.path)

    def _commit(self, row: Any) -> Commit:
        record = self._entry(row).record
        assert isinstance(record, Commit)
        return record

    def _live(self, row: Any) -> Commit:
        if row[0] is None:
            raise Corrupt(f"journal {self.path}: the row of a live object is missing", RESTORE)
        return self._commit(row)

    def _state(self, db: sqlite3.Connection) -> State:
        row = db.execute(STATE).fetchone()
        if row is None:
            raise Corrupt(f"journal {self.path}: its head row is missing", "restore it from a backup")
        return State._make(row)

    def _alive(self) -> None:
        if self._closed:
            raise JournalError(f"journal {self.path} is closed", "open it again")

    def _writable(self) -> None:
        if self._readonly:
            raise JournalError(f"journal {self.path}: this handle only reads", "write through the journal itself")

    @contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise translate(error, self.path, doing) from error

    @contextmanager
    def _using(self, doing: str) -> Iterator[sqlite3.Connection]:
        """The shared connection, under the lock. After an SQLite error it is thrown away: what a failed
        write left in its caches is then of no account, and the next call sees what is on disk."""
        with self._lock:
            try:
                self._alive()
                if self._db is None:
                    self._db = self._connect()
                yield self._db
            except sqlite3.Error as error:
                self._discard()
                raise translate(error, self.path, doing) from error

    def _discard(self) -> None:
        if self._db is not None:
            with suppress(sqlite3.Error):
                self._db.close()
            self._db = None

    def _connect(self) -> sqlite3.Connection:
        self._alive()
        if not self._readonly:
            _create(self.path)
        uri = Path(self.path).as_uri() + "?mode=rw"
        db = sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            self._prepare(db)
        except BaseException:
            db.close()
            raise
        return db

    def _prepare(self, db: sqlite3.Connection) -> None:
        ours = db.execute("PRAGMA application_id").fetchone()[0]
        tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if ours != APPLICATION_ID and (tables or self._readonly):
            raise Corrupt(f"journal {self.path}: the file is not a Steersman journal", "name another file")
        if not tables:
            self._found(db)
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version != SCHEMA_VERSION:
            raise JournalError(
                f"journal {self.path}: its format is {version}, this version of Steersman knows {SCHEMA_VERSION}",
                "open it with the version that wrote it, or a newer one",
            )
        db.execute("PRAGMA synchronous = FULL")
        db.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
        db.execute(f"PRAGMA journal_size_limit = {WAL_KEPT_BYTES}")
        db.execute(f"PRAGMA cache_size = -{self._cache_kib}")
        db.execute("PRAGMA trusted_schema = OFF")
        if self.max_bytes is not None:
            size = db.execute("PRAGMA page_size").fetchone()[0]
            db.execute(f"PRAGMA max_page_count = {max(1, self.max_bytes // size)}")
        if self._readonly:
            db.execute("PRAGMA query_only = ON")

    def _found(self, db: sqlite3.Connection) -> None:
        """Makes the tables, in one transaction that also marks the file as ours; another process may win."""
        db.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise JournalError(
                f"journal {self.path}: its file system cannot hold a write-ahead log (mode {mode})",
                "put the journal on a local disk",
            )
        db.execute("PRAGMA synchronous = FULL")
        with _transaction(db, "IMMEDIATE"):
            if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                return
            for statement in SCHEMA.split(";"):
                db.execute(statement)
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


_LAST = (1 << 63) - 1  # SQLite's largest integer: beyond every number in use


def _bound(number: int) -> int:
    return max(-1, min(number, _LAST))


def _limit(limit: int | None) -> int:
    return -1 if limit is None else _bound(max(0, limit))


def _many(db: sqlite3.Connection, sql: str, rows: list[Any]) -> int:
    return db.executemany(sql, rows).rowcount if rows else 0


def _prune(db: sqlite3.Connection, group: Group[Row]) -> int:
    """Drops the head-only rows that the group supersedes; their number."""
    return _many(db, "DELETE FROM log WHERE code = 2 AND key = ?", [(key,) for key in group.slots])


def _create(path: str) -> None:
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        raise JournalError(
            f"journal {path}: the file cannot be made ({error.strerror})",
            "name a file in an existing directory that this user may write to",
        ) from None


@contextmanager
def _transaction(db: sqlite3.Connection, kind: str) -> Iterator[None]:
    """All or nothing, whatever is raised inside, an interrupt included."""
    db.execute(f"BEGIN {kind}")
    try:
        yield
        db.execute("COMMIT")
    except sqlite3.Error:
        with suppress(sqlite3.Error):  # the first error tells more, and the connection is thrown away
            db.execute("ROLLBACK")
        raise
    except BaseException:
        db.execute("ROLLBACK")
        raise
