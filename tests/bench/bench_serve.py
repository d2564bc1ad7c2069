"""What an answer costs: the app over a store in memory, without sockets, and a fan-out over real ones.

    .venv/bin/python tests/bench/bench_serve.py [--pods N] [--watchers N] [--events N]

Times are means of one process; compare ratios, not machines.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from steersman.kernel.effect import Request as Write
from steersman.kernel.object import Key
from steersman.serve import http
from steersman.serve.http import Limits
from tests.serve.plane import PODS, TABLE, Plane, pod


def a_pod(index: int) -> dict[str, Any]:
    """A pod of some 4 KB with its managedFields."""
    body = pod(f"pod-{index:05d}", labels={"app": "bench", "tier": "web"}, annotations={"note": "x" * 200})
    container = body["spec"]["containers"][0]
    container["env"] = [{"name": f"VARIABLE_{n}", "value": "value" * 4} for n in range(20)]
    container["resources"] = {"requests": {"cpu": "100m", "memory": "128Mi"}}
    return body


def fill(plane: Plane, count: int) -> None:
    for index in range(count):
        body = a_pod(index)
        key = Key("", "Pod", "default", body["metadata"]["name"])
        plane.backend.write_now(Write("create", key, body, actor="bench", manager="bench", now=plane.time))


async def mean(times: int, ask: Any) -> float:
    """Mean microseconds of `await ask()`."""
    await ask()
    start = time.perf_counter()
    for _ in range(times):
        await ask()
    return (time.perf_counter() - start) / times * 1e6


async def reads_and_writes(plane: Plane) -> None:
    one = f"{PODS}/pod-00000"
    size = len((await plane.get(one)).body)
    print(f"GET of a pod ({size} B)             {await mean(3000, lambda: plane.send('GET', one)):9.1f} us")
    print(
        f"GET as a table row                 {await mean(3000, lambda: plane.send('GET', one, accept=TABLE)):9.1f} us"
    )
    count = plane.backend.store.count(("", "Pod"))
    for name, accept in (("list", "application/json"), ("list as a table", TABLE)):
        cost = await mean(10, lambda accept=accept: listed(plane, accept))
        print(f"{name + f' of {count} pods, after a write':34} {cost / 1000:9.2f} ms")
    cost = await mean(10, lambda: plane.ask("GET", PODS))
    print(f"{f'list of {count} pods, again':34} {cost / 1000:9.2f} ms")
    cost = await mean(50, lambda: plane.ask("GET", PODS + "?limit=500"))
    print(f"page of 500 pods, again            {cost / 1000:9.2f} ms")
    flip = [0]

    async def patch() -> None:
        flip[0] += 1
        await plane.merge(one + "/status", {"status": {"message": f"m{flip[0]}"}})

    print(f"PATCH of a status                  {await mean(2000, patch):9.1f} us")
    for name, new in (("known", False), ("new", True)):
        cost = await mean(1000, lambda new=new: made(plane, flip, new))
        print(f"{f'POST of a pod, its spec {name}':34} {cost:9.1f} us")


async def listed(plane: Plane, accept: str) -> None:
    """A list after something in it has changed."""
    key = Key("", "Pod", "default", "pod-00000")
    body = {"metadata": {"annotations": {"at": str(plane.backend.store.rev)}}}
    plane.backend.write_now(Write("patch", key, body, "", "bench", "bench", plane.time, {"patch": "merge"}))
    await plane.ask("GET", PODS, accept=accept)


async def made(plane: Plane, flip: list[int], new: bool) -> None:
    """A pod is made: one of a template, or one whose spec nobody sent before."""
    flip[0] += 1
    body = a_pod(flip[0] + 100_000)
    if new:
        body["spec"]["containers"][0]["image"] = f"nginx:{flip[0]}"
    await plane.post(PODS, body)


async def fan_out(plane: Plane, watchers: int, events: int, table: bool) -> None:
    """Watchers over sockets; events in groups of ten, as group commit gives them."""
    server = await http.serve(plane.app, limits=Limits(connections=watchers + 8))
    rev = plane.backend.store.rev
    accept = TABLE if table else "application/json"
    head = (
        f"GET {PODS}?watch=1&resourceVersion={rev} HTTP/1.1\r\nhost: x\r\naccept: {accept}\r\n"
        f"authorization: Bearer {plane.token}\r\n\r\n"
    )

    async def watch() -> int:
        reader, writer = await asyncio.open_connection(*server.addresses[0], limit=1 << 20)
        writer.write(head.encode())
        seen = 0
        while seen < events:
            data = await reader.read(1 << 20)
            if not data:
                break
            seen += data.count(b'{"type":"')
        writer.close()
        return seen

    tasks = [asyncio.create_task(watch()) for _ in range(watchers)]
    while plane.app.audiences.waiting < watchers:
        await asyncio.sleep(0.01)
    made = plane.app.frames.made
    start = time.perf_counter()
    key = Key("", "Pod", "default", "pod-00000")
    for index in range(events):
        body = {"status": {"message": f"event {index}"}}
        options = {"patch": "merge"}
        plane.backend.write_now(Write("patch", key, body, "status", "bench", "bench", plane.time, options))
        if index % 10 == 9:
            await asyncio.sleep(0)
    seen = sum(await asyncio.gather(*tasks))
    seconds = time.perf_counter() - start
    name = "rows" if table else "objects"
    print(
        f"{watchers} watchers x {events} {name}: {seen / seconds:9.0f} deliveries/s, {seen} of {watchers * events}, "
        f"{plane.app.frames.made - made} frames made"
    )
    await server.close(0)


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--watchers", type=int, default=50)
    parser.add_argument("--events", type=int, default=2000)
    given = parser.parse_args()
    plane = Plane()
    fill(plane, given.pods)
    await reads_and_writes(plane)
    for table in (False, True):
        await fan_out(plane, given.watchers, given.events, table)


if __name__ == "__main__":
    asyncio.run(main())
