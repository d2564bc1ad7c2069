"""The journal: every committed write, every input and every reconcile, durable and in order.

A journal is named by a URL, `memory:` or `sqlite:PATH`, and opened with `open`. The store is what the
journal's commits rebuild; history is the journal read by key.

    journal = open("sqlite:/var/lib/steersman/journal.db")
    epoch = journal.acquire("api-1")
    head = journal.append(epoch, journal.head(), [commit, ...])      # durable on return
"""

from __future__ import annotations

from .errors import BadRecord, Corrupt, Fenced, HeadMoved, JournalError, JournalFull
from .group import Head
from .memory import MemoryJournal
from .protocol import Journal, Lease, Problem, Report, Snapshot
from .record import (
    NO_SUMS,
    SUM_BYTES,
    Commit,
    Entry,
    External,
    Input,
    Key,
    Read,
    Reconcile,
    Record,
    Sums,
    Write,
)
from .sqlite import CACHE_KIB, SqliteJournal

__all__ = [
    "NO_SUMS",
    "SUM_BYTES",
    "BadRecord",
    "Commit",
    "Corrupt",
    "Entry",
    "External",
    "Fenced",
    "Head",
    "HeadMoved",
    "Input",
    "Journal",
    "JournalError",
    "JournalFull",
    "Key",
    "Lease",
    "Problem",
    "Read",
    "Reconcile",
    "Record",
    "Report",
    "Snapshot",
    "Sums",
    "Write",
    "open",
]


def open(url: str, *, max_bytes: int | None = None, cache_kib: int = CACHE_KIB) -> Journal:
    """The journal at `url`: `memory:` (gone with the process) or `sqlite:PATH` (made if missing).

    `max_bytes` bounds an SQLite journal's file; when it is reached appends raise `JournalFull` and
    reads go on. `cache_kib` of its pages stay in memory. Raises `JournalError`, which names the URL
    or file and a remedy.
    """
    scheme, _, path = url.partition(":")
    if scheme == "memory" and not path:
        return MemoryJournal()
    if scheme == "sqlite" and path.strip() and not path.startswith((":", "//")):
        return SqliteJournal(path, max_bytes=max_bytes, cache_kib=cache_kib)
    if scheme in ("postgresql", "postgres"):
        raise JournalError(f"store {url}: postgresql is not built in this version", "use sqlite:PATH")
    raise JournalError(f"store {url!r} is not a store URL", "use memory: or sqlite:PATH, as in sqlite:journal.db")
