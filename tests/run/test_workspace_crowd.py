"""Two hundred workspaces in one process: few threads, bounded memory, and nothing is left of those that are deleted."""

from __future__ import annotations

import gc
import os
import statistics
import threading
import time
import weakref

from steersman.run.crew import THREADS
from steersman.run.embed import Embedded

CROWD = 200
MAX_KB = 1_500
"""Of memory for each; `bench_workspaces` measures less than half."""


def resident() -> int:
    """KB of this process in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def until(condition, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def account(plane) -> bool:
    """Whether its controllers have done what they do first."""
    return plane.client.get(plane.client.key("v1/ServiceAccount", "default", "default")) is not None


def test_two_hundred_at_a_time() -> None:
    with Embedded() as root:
        first = root.workspace()
        until(lambda: account(first))
        threads, memory, times, crowd = threading.active_count(), resident(), [], []
        for _ in range(CROWD):
            start = time.perf_counter()
            crowd.append(root.workspace())
            times.append(time.perf_counter() - start)
        for plane in crowd:
            until(lambda plane=plane: account(plane))
        assert threading.active_count() <= threads + THREADS
        assert (resident() - memory) / CROWD < MAX_KB
        assert statistics.median(times) < 1.0, "milliseconds, on an idle machine"

        # Each is whole: it has controllers, and uids of its own.
        last = crowd[-1].client
        uids = {plane.client.get(last.key("v1/Namespace", "default")).metadata.uid for plane in (root, *crowd)}
        assert len(uids) == CROWD + 1
        last.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "more"}})
        last.wait(lambda: last.get(last.key("v1/ServiceAccount", "default", "more")), what="its account")


def test_a_deleted_one_is_gone_without_any_collection(tmp_path) -> None:
    with Embedded(store=f"sqlite:{tmp_path}/s.db") as root:
        kept = root.workspace()
        until(lambda: account(kept))
        gone = root.workspace(virtual_nodes=1)
        until(lambda plane=gone: account(plane))
        files, threads = len(os.listdir("/proc/self/fd")), threading.active_count()
        heads = weakref.ref(gone.heads)
        gc.collect()
        gc.disable()
        try:
            gone.forget()
            del gone
            until(lambda: heads() is None)
        finally:
            gc.enable()
        until(lambda: len(os.listdir("/proc/self/fd")) <= files - 3)
        until(lambda: not list((tmp_path / "s.db.workspaces").glob("workspace-2*")))
        assert threading.active_count() <= threads + THREADS, "threads of the crew, and none of its own"
        assert account(kept)
