"""What can go wrong with a journal. Every error says what happened, where, and what to do about it."""

from __future__ import annotations

import sqlite3

__all__ = ["BadRecord", "Corrupt", "Fenced", "HeadMoved", "JournalError", "JournalFull", "translate"]


class JournalError(Exception):
    """A journal cannot do what was asked. `problem` says what and where, `remedy` what to do."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem, remedy)
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.problem}; {self.remedy}"


class Fenced(JournalError):
    """The epoch given is not the current one: another writer took the journal. Nothing was written."""


class HeadMoved(JournalError):
    """The expected head is not the journal's head. Nothing was written."""


class BadRecord(JournalError):
    """A record of the group is malformed or out of sequence: a fault of the caller. Nothing was written."""


class JournalFull(JournalError):
    """No room for the group. Nothing of it was written; the journal goes on once there is room."""


class Corrupt(JournalError):
    """The stored bytes are not what was written, or the file is not a journal at all."""


# How a file-size limit or a quota comes back: as an I/O error, not as "full". No commit mark was written.
# A failed fsync is not among them: what it was to secure may yet turn up after a restart.
REFUSED = (sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_TRUNCATE)
RESTORE = (
    "stop every process that uses it, keep a copy of the file with its -wal and -shm neighbours, "
    "and restore it from a backup"
)


def translate(error: sqlite3.Error, path: str, doing: str) -> JournalError:
    """Gives the `JournalError` for an SQLite error met at `path` while `doing` ("appending", …).

    Codes: https://www.sqlite.org/rescode.html; the low byte is the primary code.
    """
    code = getattr(error, "sqlite_errorcode", None) or 0
    where = f"journal {path}: {doing} failed ({error})"
    primary = code & 0xFF
    if primary == sqlite3.SQLITE_FULL:
        return JournalFull(where, "free space on its file system or raise its max_bytes, then try again")
    if code in REFUSED:
        return JournalFull(where, "check the free space, the quota and the file-size limit, then try again")
    if primary == sqlite3.SQLITE_IOERR:
        return JournalError(where, "check the health of the disk, then read the head: it tells what was written")
    if primary == sqlite3.SQLITE_CORRUPT:
        return Corrupt(where, RESTORE)
    if primary == sqlite3.SQLITE_NOTADB:
        return Corrupt(f"journal {path}: the file is not a Steersman journal", "name another file")
    if primary in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN):
        return JournalError(where, "make the file and its directory exist and writable by this user")
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return JournalError(where, "another process holds the file; stop it or try again")
    if isinstance(error, sqlite3.ProgrammingError):
        return JournalError(where, "the journal is closed: open it again")
    return JournalError(where, "read the head again and retry; if it persists, run a verification")
