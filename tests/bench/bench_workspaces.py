"""A thousand workspaces in one process: milliseconds to make one, and what each costs in memory and threads.

`python tests/bench/bench_workspaces.py [COUNT]`. Once with the store in memory, once in files. Fails when the threads
are more than the crew has, or one takes more than `MAX_KB`.
"""

from __future__ import annotations

import gc
import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from steersman.run.crew import THREADS
from steersman.run.embed import Embedded
from steersman.run.workspaces import APPENDERS, MAX_WORKSPACES
from tests.run.test_workspace_crowd import MAX_KB, account, resident, until

QUIET_SECONDS = 3.0


def measure(store: str, count: int) -> bool:
    """Prints a line; whether the gates hold."""
    with Embedded(store=store) as root:
        first = root.workspace()
        until(lambda: account(first))
        gc.collect()
        memory, threads, times, crowd = resident(), threading.active_count(), [], []
        for _ in range(count - 1):
            start = time.perf_counter()
            crowd.append(root.workspace())
            times.append(time.perf_counter() - start)
        for plane in crowd:
            until(lambda plane=plane: account(plane), 60)
        gc.collect()
        each, more = (resident() - memory) / len(times), threading.active_count() - threads
        cpu = time.process_time()
        time.sleep(QUIET_SECONDS)
        idle = (time.process_time() - cpu) / QUIET_SECONDS
        files = len(os.listdir("/proc/self/fd"))
        start = time.perf_counter()
        for plane in crowd:
            plane.forget()
        gone = (time.perf_counter() - start) / len(times)
    ordered = sorted(times)
    p99 = ordered[int(len(ordered) * 0.99)] * 1000
    print(
        f"{store.partition(':')[0]:7} {count:,} workspaces: {statistics.median(ordered) * 1000:.1f} ms to make one "
        f"(99th percentile {p99:.0f}), {gone * 1000:.1f} to delete it; {each:.0f} KB each, {more} threads more in all, "
        f"{files:,} descriptors, {idle:.1%} of a core when idle"
    )
    return each < MAX_KB and more <= THREADS + APPENDERS


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else MAX_WORKSPACES - 1
    good = measure("memory:", count)
    with tempfile.TemporaryDirectory() as folder:
        good = measure(f"sqlite:{folder}/plane.db", count) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
