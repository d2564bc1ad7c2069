"""`kill -9` of the writer at any time: what was acknowledged is there, a group is there whole or not at all.

20 rounds on one file, each opening what the last kill left. STEERSMAN_KILLS=200 is the soak. This covers
the death of the process; the death of the machine is covered by the torn WAL of test_sqlite.py.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import steersman.journal as sj

from .killed_writer import body

ROUNDS = int(os.environ.get("STEERSMAN_KILLS", "20"))
SEED = int(os.environ.get("STEERSMAN_SEED", "1"))
LONGEST = 0.12  # seconds of writing before the kill
ROOT = Path(__file__).parents[2]


def write_and_kill(path: Path, seed: int, chance: random.Random) -> list[str]:
    """Runs a writer, kills it, gives its lines. One round in five kills it while it is still opening."""
    command = [sys.executable, "-m", "tests.journal.killed_writer", str(path), str(seed)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as writer:
        assert writer.stdout is not None and writer.stderr is not None
        start = []
        if seed % 5:
            start = [writer.stdout.readline()]
        time.sleep(chance.random() * LONGEST)
        early = writer.poll()
        writer.kill()
        lines = start + writer.stdout.readlines()
        assert early is None, f"the writer ended by itself: {writer.stderr.read().decode()}"
    return [line.decode().strip() for line in lines if line.endswith(b"\n")]


def check(path: Path, acknowledged: sj.Head) -> sj.Head:
    journal = sj.open(f"sqlite:{path}")
    report = journal.verify()
    assert report.ok, report.problems[0]
    head = journal.head()
    assert head.revision >= acknowledged.revision and head.position >= acknowledged.position
    last = 0
    for commit in journal.read():
        revision, first, end = map(int, commit.object.split(b" ", 3)[:3])
        assert commit.revision == revision and commit.object == body(revision, first, end)
        assert end <= head.revision, f"revision {revision} is of a group up to {end}, the head is {head}"
        last = end
    assert last == head.revision
    inputs = [entry for entry in journal.entries() if isinstance(entry.record, sj.Input)]
    assert [entry.record.at for entry in inputs] == list(range(5, head.revision + 1, 5))
    journal.close()
    return head


def test_nothing_acknowledged_is_lost_and_no_part_of_a_group_is_seen(tmp_path):
    chance, path = random.Random(SEED), tmp_path / "journal.db"
    head, groups, beyond = sj.Head(0, 0, 0), 0, 0
    for seed in range(ROUNDS):
        lines = [line for line in write_and_kill(path, seed, chance) if line != "ready"]
        acknowledged = sj.Head(*map(int, lines[-1].split())) if lines else head
        groups += len(lines)
        head = check(path, acknowledged)
        beyond += head.revision > acknowledged.revision
        if head.position > 60_000:  # keep each check short
            path.unlink()
            head = sj.Head(0, 0, 0)
    assert groups > ROUNDS, "the kills came before any work: nothing was tested"
    print(f"{ROUNDS} kills, {groups} groups acknowledged; {beyond} more were whole but not yet acknowledged")


def test_a_second_writer_fences_a_living_first(tmp_path):
    path = tmp_path / "journal.db"
    command = [sys.executable, "-m", "tests.journal.killed_writer", str(path), "1"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as writer:
        assert writer.stdout is not None and writer.stderr is not None
        lines = [writer.stdout.readline() for _ in range(3)]
        journal = sj.open(f"sqlite:{path}")
        epoch, head = journal.acquire("second"), journal.head()
        lines += writer.stdout.readlines()
        assert "Fenced" in writer.stderr.read().decode()
    assert lines[-1].split()[1:] == [b"%d" % head.revision, b"%d" % head.position]
    assert journal.append(epoch, head, [sj.Input("clock", "", b"", 0)]) == (2, head.revision, head.position + 1)
