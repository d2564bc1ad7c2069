"""The SQLite journal's file: what it refuses to open, a full disk, torn ends, threads and processes."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

import steersman.journal as sj
from steersman.journal import Corrupt, Fenced, Head, JournalError, JournalFull
from steersman.journal.errors import translate

from .sample import LEASE, POD, commit, draw, fill


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.db"


def reopened(path, **options):
    return sj.open(f"sqlite:{path}", **options)


def test_what_was_appended_is_there_after_reopening(path):
    journal = reopened(path)
    head = fill(journal, [commit(1, verb="create"), draw(), commit(2)])
    entries = list(journal.entries())
    journal.close()
    again = reopened(path)
    assert again.head() == head and list(again.entries()) == entries and again.lease() == (1, "test")
    assert again.verify().ok


def test_every_commit_is_synchronous_in_wal_mode(path):
    journal = reopened(path)
    db = journal._db
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert db.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
    journal.close()
    journal = reopened(path)  # set on every connection, not only by the one that made the file
    assert journal._db.execute("PRAGMA synchronous").fetchone() == (2,)


def test_only_its_owner_may_read_the_file(path):
    journal = reopened(path)
    fill(journal, [commit(1, verb="create")])
    modes = {p.name: oct(p.stat().st_mode & 0o777) for p in path.parent.iterdir()}
    assert modes == dict.fromkeys(("journal.db", "journal.db-wal", "journal.db-shm"), "0o600")


def test_a_path_with_odd_characters(tmp_path):
    path = tmp_path / "a b?mode=memory#%20é.db"
    fill(reopened(path), [commit(1, verb="create")])
    assert path.exists() and reopened(path).head().revision == 1


# ---- files that are not sound journals


def test_a_file_of_another_kind(path):
    path.write_bytes(b"just some text\n" * 100)
    with pytest.raises(Corrupt, match=rf"{path}: the file is not a Steersman journal; name another file"):
        reopened(path)
    assert path.read_bytes() == b"just some text\n" * 100


def test_a_database_of_another_program(path):
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE kine (id INTEGER)")
    before = path.read_bytes()
    with pytest.raises(Corrupt, match="not a Steersman journal; name another file"):
        reopened(path)
    assert path.read_bytes() == before


def test_a_newer_format(path):
    reopened(path).close()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA user_version = 2")
    with pytest.raises(JournalError, match=rf"{path}: its format is 2, .* knows 1; open it with the version"):
        reopened(path)


def test_a_lost_head_row(path):
    reopened(path).close()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM head")
    with pytest.raises(Corrupt, match="head row is missing; restore"):
        reopened(path).head()


@pytest.mark.parametrize("name", ["missing/journal.db", "."])
def test_a_path_that_cannot_be_a_file(tmp_path, name):
    with pytest.raises(JournalError, match=r"name a file in an existing|exist and writable"):
        reopened(tmp_path / name)


def test_a_file_that_may_not_be_written(path):
    """Opened read-only rather than made so by its mode, which does not bind root."""
    reopened(path).close()
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    with closing(db), pytest.raises(sqlite3.OperationalError) as refused:
        db.execute("UPDATE head SET epoch = 1")
    error = translate(refused.value, str(path), "acquiring")
    assert str(path) in error.problem and "writable by this user" in error.remedy


def test_an_empty_file_becomes_a_journal(path):
    path.touch()
    assert fill(reopened(path), [commit(1, verb="create")]) == Head(1, 1, 1)


@pytest.mark.parametrize("kept", [0.1, 0.5, 0.9])
def test_a_truncated_file_is_an_error_and_verification_reports_it(path, kept):
    journal = reopened(path)
    for at in range(0, 300, 100):
        fill(journal, [commit(n + 1, ("", "Pod", "x", str(n)), "create", size=3000) for n in range(at, at + 100)])
    journal.close()
    os.truncate(path, int(path.stat().st_size * kept))
    with pytest.raises(Corrupt, match=r"malformed.*; stop every process .* restore it from a backup"):
        broken = reopened(path)
        report = broken.verify()
        assert not report.ok and "restore" in str(report.problems[-1])
        list(broken.entries())


def test_flipped_bytes_anywhere_are_an_error_or_change_nothing(path):
    journal = reopened(path)
    fill(journal, [commit(n + 1, ("", "Pod", "x", str(n)), "create", size=900) for n in range(40)])
    entries = list(journal.entries())
    journal.close()
    whole = path.read_bytes()
    for at in range(0, len(whole), 997):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :])
        try:
            broken = reopened(path)
            report = broken.verify()
            assert list(broken.entries()) == entries or not report.ok
            broken.close()
        except JournalError as error:
            assert str(path) in str(error) and error.remedy


def test_a_torn_wal_gives_whole_groups_and_nothing_after_the_tear(path, tmp_path):
    """A power cut leaves any part of what was not yet synced: of each group all is seen, or nothing."""
    journal = reopened(path)
    epoch, head, ends = journal.acquire("me"), Head(1, 0, 0), [0]
    for size in (3, 1, 7, 2, 5, 4):
        records = [commit(head.revision + n + 1, ("", "Pod", "x", f"{head.revision + n}"), "create", size=3000)
                   for n in range(size)]  # fmt: skip
        head = journal.append(epoch, head, records)
        ends.append(head.revision)
    wal = Path(f"{path}-wal").read_bytes()
    seen = set()
    for cut in range(0, len(wal), 4099):
        copy = tmp_path / f"copy-{cut}.db"
        shutil.copyfile(path, copy)
        Path(f"{copy}-wal").write_bytes(wal[:cut] + b"\xff" * min(500, len(wal) - cut))
        torn = reopened(copy)
        revision = torn.head().revision
        assert revision in ends and torn.verify().ok
        assert [c.revision for c in torn.read()] == list(range(1, revision + 1))
        seen.add(revision)
        torn.close()
    assert seen == set(ends) - {ends[-1]}


# ---- a full disk


def test_a_full_journal_loses_nothing_and_goes_on_with_more_room(path):
    journal = reopened(path, max_bytes=400_000)
    epoch, head, made = journal.acquire("me"), journal.head(), 0
    with pytest.raises(JournalFull, match=rf"{path}: appending failed .*full.*; free space .* or raise its max_bytes"):
        while True:
            first = head.revision + 1
            group = [commit(n, ("", "Pod", "x", str(n)), "create", size=3000) for n in range(first, first + 7)]
            head = journal.append(epoch, head, group)
            made += 7
    assert made > 70 and journal.head() == head == Head(1, made, made)
    assert len(list(journal.read())) == made and journal.verify().ok
    with pytest.raises(JournalFull):
        journal.append(epoch, head, group)
    journal.close()
    more = reopened(path, max_bytes=800_000)
    assert more.append(epoch, more.head(), group).revision == made + 7
    assert more.verify().ok


LIMITED = """
import resource, sys
import steersman.journal as sj
from tests.journal.sample import commit

journal = sj.open("sqlite:" + sys.argv[1])
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), hard))
epoch, head, refused = journal.acquire("me"), journal.head(), 0
while head.revision < 600:
    first = head.revision + 1
    group = [commit(n, ("", "Pod", "x", str(n)), "create", size=3000) for n in range(first, first + 6)]
    try:
        head = journal.append(epoch, head, group)
    except sj.JournalFull as error:
        refused += 1
        assert "file-size limit" in error.remedy or "free space" in error.remedy, error
        before = journal.head()
        assert before == head, (before, head)
        assert sum(1 for _ in journal.read()) == head.revision
        if refused == 3:
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
assert refused == 3, refused
assert journal.verify().ok
print(head.revision)
"""


@pytest.mark.parametrize("limit", [50_000, 300_000, 1_000_000])
def test_a_refused_write_of_the_system_loses_nothing_and_the_same_journal_goes_on(path, limit):
    """RLIMIT_FSIZE refuses writes at any point of the WAL, in the middle of a page as well."""
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", LIMITED, str(path), str(limit)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.returncode) == ("600\n", 0), done.stderr
    assert reopened(path).verify().ok


def test_a_failed_fsync_is_not_called_a_refused_write():
    """Its outcome is unknown until the head is read: the error must not promise that nothing was written."""
    failed = sqlite3.OperationalError("disk I/O error")
    failed.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
    error = translate(failed, "journal.db", "appending")
    assert type(error) is JournalError and "read the head" in error.remedy


@pytest.mark.parametrize("how", ["removed", "renamed", "replaced"])
def test_a_file_that_is_not_there_any_more_is_not_appended_to(path, how, tmp_path):
    """SQLite would go on with the file it has open, acknowledging what nobody will ever find."""
    journal = reopened(path)
    epoch = journal.acquire("server")
    head = journal.append(epoch, journal.head(), [commit(1, verb="create")])
    if how == "removed":
        path.unlink()
    elif how == "renamed":
        path.rename(tmp_path / "other.db")
    else:
        shutil.copy(path, tmp_path / "copy.db")
        (tmp_path / "copy.db").rename(path)
    with pytest.raises(Fenced, match="removed, renamed or replaced"):
        journal.append(epoch, head, [commit(2)])


# ---- several threads, handles and processes


def test_two_handles_of_one_file_fence_each_other(path):
    one, two = reopened(path), reopened(path)
    first = one.acquire("one")
    head = one.append(first, one.head(), [commit(1, verb="create")])
    second = two.acquire("two")
    with pytest.raises(Fenced, match="two holds epoch 2"):
        one.append(first, head, [commit(2)])
    assert two.append(second, two.head(), [commit(2)]).revision == 2
    assert one.head() == two.head()


def test_a_foreign_lock_is_waited_for_and_then_an_error(path, monkeypatch):
    monkeypatch.setattr("steersman.journal.sqlite.BUSY_SECONDS", 0.05)
    journal = reopened(path)
    epoch = journal.acquire("me")
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        with pytest.raises(JournalError, match="another process holds the file"):
            journal.append(epoch, journal.head(), [draw()])
    assert journal.append(epoch, journal.head(), [draw()]).position == 1


def test_a_failure_inside_an_append_leaves_no_open_transaction(path, monkeypatch):
    journal = reopened(path)
    epoch = journal.acquire("me")

    def interrupted(db, group):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("steersman.journal.sqlite._prune", interrupted)
        with pytest.raises(KeyboardInterrupt):
            journal.append(epoch, journal.head(), [draw()])
    assert journal.append(epoch, journal.head(), [draw()]).position == 1


def test_readers_on_other_threads_see_whole_groups_only(path):
    """A writer that did not make the journal appends; two readers, one of them on the same handle."""
    journal = reopened(path)
    reader, stop, bad, seen = journal.reader(), threading.Event(), [], set()
    size = 5

    def write():
        epoch, head = journal.acquire("writer"), journal.head()
        for group in range(60):
            records = [commit(head.revision + n + 1, ("", "Pod", "x", f"{group}-{n}"), "create") for n in range(4)]
            verb = "create" if group == 0 else "update"
            records.append(commit(head.revision + size, LEASE, verb, "head-only"))
            head = journal.append(epoch, head, records)
        stop.set()

    def look(handle):
        try:
            while not stop.is_set():
                snapshot = handle.snapshot()
                live = sum(1 for _ in snapshot.commits)
                groups = snapshot.head.revision // size
                seen.add(groups)
                if snapshot.head.revision % size or live != groups * 4 + (groups > 0):
                    bad.append((snapshot.head, live))
                handle.latest(POD), handle.at(3)
        except Exception as error:
            bad.append(error)

    threads = [threading.Thread(target=look, args=(handle,)) for handle in (journal, reader)]
    threads.append(threading.Thread(target=write))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert bad == [] and len(seen) > 2
    assert journal.verify().ok and journal.head().revision == 300


def test_an_iterator_may_be_left_unfinished(path):
    journal = reopened(path)
    fill(journal, [commit(1, verb="create"), *[commit(n) for n in range(2, 50)]])
    unfinished = journal.read()
    next(unfinished)
    journal.entries()
    fill(journal, [commit(50)])
    journal.close()
    assert len(list(unfinished)) == 48
    assert reopened(path).head().revision == 50
