"""Verification finds what a hand, a fault or a bad disk did to a journal's rows, and names the row."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

import steersman.journal as sj
from steersman.journal import Corrupt
from steersman.journal.record import Row, encode

from .sample import LEASE, POD, commit, draw, fill

OTHER = ("apps", "Deployment", "default", "web")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "journal.db"
    journal = sj.open(f"sqlite:{path}")
    fill(journal, [commit(1, verb="create"), draw(), commit(2, LEASE, "create", "head-only"), commit(3)])
    fill(journal, [commit(4, LEASE, retention="head-only"), commit(5, OTHER, "create"), commit(6)])
    assert journal.verify().ok and journal.head() == sj.Head(2, 6, 7)
    journal.close()
    return path


def change(path, *statements):
    with closing(sqlite3.connect(path)) as db, db:
        for sql, *parameters in statements:
            db.execute(sql, parameters)


def found(path):
    journal = sj.open(f"sqlite:{path}")
    report = journal.verify()
    journal.close()
    assert not report.ok
    texts = [str(problem) for problem in report.problems]
    for text in texts:
        assert text.startswith(f"journal {path}:") and "restore it from a backup" in text
    return report, texts


def rewrite(path, position, **changes):
    """Replaces a row by one that is sound in itself, its checksum included."""
    journal = sj.open(f"sqlite:{path}")
    (entry,) = journal.entries(position - 1, 1)
    journal.close()
    with closing(sqlite3.connect(path)) as db:
        (ordinal,) = db.execute("SELECT ordinal FROM log WHERE position = ?", (position,)).fetchone()
    numbers = {"epoch": entry.epoch, "revision": entry.revision, "ordinal": ordinal, **changes}
    row = encode(position, numbers["epoch"], numbers["revision"], numbers["ordinal"], entry.record)
    marks = ", ".join("?" * len(Row._fields))
    change(path, (f"REPLACE INTO log VALUES ({marks})", *row))


def test_an_object_whose_row_is_gone_is_not_just_missing_from_a_snapshot(path):
    """The row of the newest commit: no later digest sum would tell."""
    change(path, ("DELETE FROM log WHERE position = 7",))
    journal = sj.open(f"sqlite:{path}")
    with pytest.raises(sj.Corrupt, match="the row of a live object is missing"):
        list(journal.snapshot().commits)
    journal.close()


@pytest.mark.parametrize("position", [1, 2, 4, 5, 6, 7])
@pytest.mark.parametrize("column", ["epoch", "revision", "ordinal", "fields", "body", "checksum"])
def test_a_damaged_row_is_named_once(path, position, column):
    number = f"UPDATE log SET {column} = {column} + 10000 WHERE position = ?"
    text = f"UPDATE log SET {column} = CAST(substr({column}, 2) AS BLOB) WHERE position = ?"
    change(path, (text if column in ("fields", "body") else number, position))
    report, _ = found(path)
    assert [(p.row, p.what) for p in report.problems] == [(position, "is damaged (checksum does not match)")]
    journal = sj.open(f"sqlite:{path}")
    with pytest.raises(Corrupt, match=f"row {position} is damaged"):
        list(journal.entries())


def test_values_of_a_wrong_type_are_damage_too(path):
    change(path, ("UPDATE log SET fields = 'text', body = 7, epoch = 'x' WHERE position = 4",))
    report, _ = found(path)
    assert 4 in [problem.row for problem in report.problems]


def test_a_lost_full_history_commit_is_named_by_its_ordinal(path):
    change(path, ("DELETE FROM log WHERE position = 4",))
    _, texts = found(path)
    assert "row 6: is full-history commit 3; 2 to 2 are missing before it" in texts[0]
    assert "2 revisions are missing, but 1 rows were dropped" in texts[-1]


def test_a_lost_input_is_counted(path):
    change(path, ("DELETE FROM log WHERE position = 2",))
    report, texts = found(path)
    assert len(texts) == 1 and "2 positions are missing, but 1 rows were dropped" in texts[0]
    assert report.rows == 5


def test_a_lost_head_only_commit_is_counted_and_missed_among_the_live(path):
    change(path, ("DELETE FROM log WHERE position = 5",))
    _, texts = found(path)
    assert "Lease/kube-system/scheduler, which is at None" in texts[0]
    assert "2 revisions are missing, but 1 rows were dropped" in texts[-1]


def test_a_lost_end_is_found(path):
    change(path, ("DELETE FROM log WHERE position >= 6",))
    _, texts = found(path)
    assert any("ends at position 5, revision 4, full-history commit 2, but its head says 7, 6, 4" in t for t in texts)


def test_an_epoch_that_goes_back_or_beyond_the_lease_is_found(path):
    rewrite(path, 1, epoch=2)
    _, texts = found(path)
    assert "row 2: has epoch 1, outside 2 to 2" in texts[0]
    rewrite(path, 1, epoch=1)
    rewrite(path, 7, epoch=9)
    _, texts = found(path)
    assert len(texts) == 1 and "row 7: has epoch 9, outside 2 to 2" in texts[0]


def test_an_input_out_of_place_is_found(path):
    rewrite(path, 2, revision=0)
    _, texts = found(path)
    assert "row 2: has revision 0 after 1" in texts[0]


def test_a_changed_total_is_found(path):
    change(path, ("UPDATE head SET pruned = 0",))
    _, texts = found(path)
    assert len(texts) == 2 and "1 positions are missing, but 0 rows were dropped" in texts[0]


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM slots WHERE position = 6",
        "UPDATE slots SET position = 4 WHERE position = 7",
        "INSERT INTO slots VALUES (x'00', 3)",
    ],
)
def test_a_wrong_table_of_live_keys_is_found(path, sql):
    change(path, (sql,))
    _, texts = found(path)
    assert len(texts) == 1 and "its table of live keys is not" in texts[0]


def test_a_superseded_head_only_row_that_came_back_is_found(path):
    row = encode(3, 1, 2, 0, commit(2, LEASE, "create", "head-only"))
    change(path, ("DROP INDEX head_only",), ("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", *row))
    _, texts = found(path)
    assert "row 5: supersedes a head-only version that is still there" in texts[0]


def test_a_damaged_index_is_found(path):
    """An index that lost an entry gives wrong reads while every row is sound."""
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA writable_schema = ON")
        sql = "CREATE UNIQUE INDEX commits ON log (revision) WHERE code <= 2 AND revision != 3"
        db.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'commits'", (sql,))
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("REINDEX commits")
        db.execute("PRAGMA writable_schema = ON")
        sql = "CREATE UNIQUE INDEX commits ON log (revision) WHERE code <= 2"
        db.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'commits'", (sql,))
    _, texts = found(path)
    assert "SQLite finds: row " in texts[0] and "missing from index commits" in texts[0]


def test_findings_are_bounded(tmp_path):
    journal = sj.open(f"sqlite:{tmp_path}/journal.db")
    fill(journal, [draw() for _ in range(300)])
    change(tmp_path / "journal.db", ("UPDATE log SET checksum = 0",))
    report = journal.verify()
    assert len(report.problems) == 100 and report.rows == 300


def test_the_memory_journal_verifies_itself_too():
    journal = sj.open("memory:")
    fill(journal, [commit(1, verb="create"), commit(2, POD)])
    assert journal.verify() == sj.Report(sj.Head(1, 2, 2), 2, 2, ())
    journal._log.rows[2] = journal._log.rows[2]._replace(body=b"{}")
    assert [problem.row for problem in journal.verify().problems] == [2]
