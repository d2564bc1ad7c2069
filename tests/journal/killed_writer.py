"""A writer to be killed: appends groups as fast as it can and prints each head once it is acknowledged.

    python -m tests.journal.killed_writer PATH SEED

Every object says which group it is of and how many commits that group has; its bytes follow from its
revision, so that a reader can tell a whole group, and an intact one, without having seen the writer.
Also a model of the server: commits of both classes, creations and deletions, inputs in between.
"""

from __future__ import annotations

import random
import sys

import steersman.journal as sj
from steersman.journal import NO_SUMS, Commit, Input, Record

SLOTS = 40
MOST = 24  # commits in a group


def body(revision: int, first: int, last: int) -> bytes:
    """Between 40 bytes and 4 KB, so that rows end anywhere on a page."""
    return b"%d %d %d " % (revision, first, last) + b"x" * (revision * 7919 % 4096)


def group(chance: random.Random, first: int, live: set[int]) -> list[Record]:
    count = chance.randint(1, MOST)
    records: list[Record] = []
    for revision in range(first, first + count):
        slot = chance.randrange(SLOTS)
        verb = "create" if slot not in live else chance.choice(("update", "update", "delete"))
        live.symmetric_difference_update(() if verb == "update" else (slot,))
        key = ("", "Pod", "default", str(slot)) if slot % 4 else ("", "Lease", "default", str(slot))
        data = body(revision, first, first + count - 1)
        retention = "full" if slot % 4 else "head-only"
        records.append(Commit(revision, key, verb, "writer", str(slot), data, revision, NO_SUMS, retention))
        if revision % 5 == 0:
            records.append(Input("random", str(revision), b"%d" % revision, revision))
    return records


def main() -> None:
    path, seed = sys.argv[1], int(sys.argv[2])
    chance = random.Random(seed)
    journal = sj.open(f"sqlite:{path}")
    epoch, head = journal.acquire(f"writer-{seed}"), journal.head()
    live = {int(commit.key[3]) for commit in journal.snapshot().commits}
    print("ready", flush=True)
    while True:
        head = journal.append(epoch, head, group(chance, head.revision + 1, live))
        print(*head, flush=True)


if __name__ == "__main__":
    main()
