"""Cost of the journal: rows appended per second by size of group, and the cost of reading them back.

    python tests/bench/bench_journal.py [--rows N] [--dir PATH]

Objects are 4 KB, keys are spread as pods are (five writes a pod), each append is durable on return.
The raw line is SQLite alone doing the same inserts into one bare table, in the same run: the ratio to
it is what this package costs. Figures of different machines or days are not comparable.
"""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from steersman.journal import NO_SUMS, Commit, Journal, open

GROUPS = (1, 10, 100, 1000)
OBJECT = bytes(range(32, 128)) * 43  # 4,128 bytes
WRITES_A_POD = 5


def commits(after: int, count: int) -> Iterator[Commit]:
    for revision in range(after + 1, after + count + 1):
        pod, write = divmod(revision - 1, WRITES_A_POD)
        key = ("", "Pod", f"ns-{pod % 100}", f"web-{pod}")
        verb = "create" if write == 0 else "update"
        yield Commit(revision, key, verb, "system:kubelet", f"uid-{pod}", OBJECT, revision, NO_SUMS)


def append_all(journal: Journal, rows: int, size: int) -> list[float]:
    """Seconds of each append. The worst ones contain a checkpoint."""
    epoch = journal.acquire("bench")
    head = journal.head()
    records = list(commits(head.revision, rows))
    spent = []
    for at in range(0, rows, size):
        start = time.perf_counter()
        head = journal.append(epoch, head, records[at : at + size])
        spent.append(time.perf_counter() - start)
    return spent


def append_raw(path: Path, rows: int, size: int) -> float:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA page_size = 4096")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE log (position INTEGER PRIMARY KEY, body BLOB)")
    start = time.perf_counter()
    for at in range(0, rows, size):
        db.execute("BEGIN IMMEDIATE")
        db.executemany("INSERT INTO log VALUES (?, ?)", [(at + n, OBJECT) for n in range(size)])
        db.execute("COMMIT")
    spent = time.perf_counter() - start
    db.close()
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--dir", default=None, help="where to put the files (a real disk, not tmpfs)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.dir) as folder:
        print("rows per append | rows/s: journal, raw SQLite, memory | ms an append: median, 99 %, worst")
        for size in GROUPS:
            rows = min(options.rows, 2000 * size) // size * size
            raw = rows / append_raw(Path(folder, f"raw-{size}.db"), rows, size)
            journal = open(f"sqlite:{folder}/{size}.db")
            spent = append_all(journal, rows, size)
            memory = rows / sum(append_all(open("memory:"), rows, size))
            rates = f"{rows / sum(spent):>16,.0f} {raw:>11,.0f} {memory:>8,.0f}"
            spent.sort()
            middle, late, worst = (1000 * spent[min(int(len(spent) * q), len(spent) - 1)] for q in (0.5, 0.99, 1))
            print(f"{size:>15} | {rates} | {middle:>20.2f} {late:>5.1f} {worst:>6.1f}")
            if size == GROUPS[-1]:
                read_back(journal)
            journal.close()


def read_back(journal: Journal) -> None:
    for name, read in (("read", journal.read), ("snapshot", lambda: journal.snapshot().commits)):
        start = time.perf_counter()
        count = sum(1 for _ in read())
        print(f"{name}: {count / (time.perf_counter() - start):,.0f} commits/s")
    start = time.perf_counter()
    report = journal.verify()
    print(f"verify: {report.rows / (time.perf_counter() - start):,.0f} rows/s, ok {report.ok}")


if __name__ == "__main__":
    main()
