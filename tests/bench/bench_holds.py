"""How long one request holds the event loop among many objects: what every other client waits meanwhile.

    .venv/bin/python tests/bench/bench_holds.py [--objects 100000]

The app over a store in memory, without sockets. A task that sleeps a millisecond at a time notes the longest time
between two of its turns, while a request is answered and its body, or the beginning of its stream, is read. Exits with
1 when the gate is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import time
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from steersman.kernel.effect import Request as Write
from steersman.kernel.object import Key
from steersman.run.daemon import SWITCH_SECONDS
from tests.serve.plane import TABLE, Plane

MAPS: Final = "/api/v1/namespaces/default/configmaps"
TICK: Final = 0.001
GATE: Final = 50.0
"""Milliseconds."""
STREAM_SECONDS: Final = 2.0
"""How long the beginning of a watch is read."""
ASKED: Final = {
    "list": (MAPS, ""),
    "list as a table": (MAPS, TABLE),
    "first page of 500": (MAPS + "?limit=500", ""),
    "list, label selector for 1 %": (MAPS + "?labelSelector=part%3D7", ""),
    "list, label selector for nothing": (MAPS + "?labelSelector=part%3Dnone", ""),
    "list, field selector for one name": (MAPS + "?fieldSelector=metadata.name%3Dmap-000007", ""),
    "list, field selector for all but one": (MAPS + "?fieldSelector=metadata.name!%3Dmap-000007", ""),
    "watch from the start": (MAPS + "?watch=1", ""),
    "watch from the start, selector for 1 %": (MAPS + "?watch=1&labelSelector=part%3D7", ""),
    "watch from the start, selector for nothing": (MAPS + "?watch=1&labelSelector=part%3Dnone", ""),
}


class Ticks:
    """The longest time between two turns of a task that asks for one every millisecond."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def run(self) -> None:
        """Until it is cancelled."""
        before = time.perf_counter()
        while True:
            await asyncio.sleep(TICK)
            now = time.perf_counter()
            self.longest, before = max(self.longest, now - before - TICK), now


def fill(plane: Plane, count: int) -> None:
    for number in range(count):
        name = f"map-{number:06d}"
        meta = {"name": name, "namespace": "default", "labels": {"part": str(number % 100)}}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"number": str(number)}}
        key = Key("", "ConfigMap", "default", name)
        plane.backend.write_now(Write("create", key, body, actor="bench", manager="bench", now=plane.time))


async def read(plane: Plane, path: str, accept: str) -> None:
    """An answer to its end, or what a watch begins with."""
    response = await plane.send("GET", path, **({"accept": accept} if accept else {}))
    assert response.status == 200, response
    if isinstance(response.body, bytes):
        return
    try:
        async with asyncio.timeout(STREAM_SECONDS):
            async for _ in response.body:
                await asyncio.sleep(0)  # as a connection does between two chunks that a client reads
    except TimeoutError:
        pass


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--objects", type=int, default=100_000)
    objects = parser.parse_args().objects
    plane = Plane()
    fill(plane, objects)
    gc.collect()
    gc.freeze()
    gc.disable()  # this and the next as `run` has them
    sys.setswitchinterval(SWITCH_SECONDS)
    missed = 0
    print(f"{objects} ConfigMaps: longest hold of the event loop, ms")
    for name, (path, accept) in ASKED.items():
        ticks = Ticks()
        ticking = asyncio.create_task(ticks.run())
        await asyncio.sleep(0)
        await read(plane, path, accept)
        await asyncio.sleep(2 * TICK)
        ticking.cancel()
        held = ticks.longest * 1e3
        missed += held > GATE
        print(f"{name:44}{held:8.1f}   gate {GATE:.0f} ms{': MISSED' if held > GATE else ''}")
        gc.collect()
    raise SystemExit(1 if missed else 0)


if __name__ == "__main__":
    asyncio.run(main())
