"""Watches that wait together: everybody is told everything once, and who cannot be told goes on alone."""

from __future__ import annotations

import asyncio
import json
import random

import pytest

from steersman.kernel.changelog import Gone
from steersman.serve import audience as audience_module
from steersman.serve.audience import Audiences
from steersman.serve.http import Limits, serve
from tests.serve.harness import in_loop
from tests.serve.plane import PODS, Plane, pod

FAR = 1e9


class News:
    """What audiences hear from: revisions, each a letter."""

    def __init__(self) -> None:
        self.head = 0
        self.grown = asyncio.Event()
        self.made = 0
        self.gone: Gone | None = None

    def tell(self, count: int = 1) -> None:
        self.head += count
        self.grown.set()
        self.grown = asyncio.Event()


class Watcher:
    """A watch of them; `full` is a client that does not read."""

    def __init__(self, news: News, rev: int = 0) -> None:
        self.news = news
        self.rev = rev
        self.full = False
        self.alone = False
        self.got: list[bytes] = []

    def send(self, chunk: bytes) -> bool:
        if not self.full:
            self.got.append(chunk)
        return not self.full

    async def changed(self, rev: int) -> None:
        while self.news.head <= rev:
            if self.news.gone is not None:
                raise self.news.gone
            await self.news.grown.wait()

    def chunk(self, head: int) -> bytes | None:
        self.news.made += 1
        return None if self.alone else b"".join(b"%d " % rev for rev in range(self.rev + 1, head + 1))


async def seated(count: int) -> tuple[News, Audiences, list[Watcher], list[asyncio.Task[None]]]:
    news = News()
    audiences = Audiences(lambda: news.head)
    watchers = [Watcher(news) for _ in range(count)]
    tasks = [asyncio.create_task(audiences.wait("pods", watcher, FAR)) for watcher in watchers]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return news, audiences, watchers, tasks


async def stop(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@in_loop
async def test_news_is_made_once_and_sent_to_everybody() -> None:
    before = asyncio.all_tasks()
    news, audiences, watchers, tasks = await seated(600)
    assert audiences.waiting == 600
    for _ in range(3):
        news.tell()
        await asyncio.sleep(audience_module.MAX_GAP * 2)
    assert {tuple(watcher.got) for watcher in watchers} == {(b"1 ", b"2 ", b"3 ")}
    assert all(watcher.rev == 3 for watcher in watchers) and not any(task.done() for task in tasks)
    assert news.made <= 3 * (1 + 600 // audience_module.TURN)
    await stop(tasks)
    await asyncio.sleep(0)
    assert audiences.waiting == 0 and asyncio.all_tasks() == before


@in_loop
async def test_a_burst_goes_out_together() -> None:
    news, _, watchers, tasks = await seated(100)
    for _ in range(50):
        news.tell()
        await asyncio.sleep(0)
    await asyncio.sleep(audience_module.MAX_GAP * 3)
    for watcher in watchers:
        assert b"".join(watcher.got).split() == [b"%d" % rev for rev in range(1, 51)]
        assert len(watcher.got) <= 4
    await stop(tasks)


@pytest.mark.parametrize("why", ["full", "alone"])
@in_loop
async def test_who_cannot_be_told_goes_on_alone(why: str) -> None:
    news, audiences, watchers, tasks = await seated(3)
    setattr(watchers[1], why, True)
    if why == "alone":  # nobody makes news for all then: each sees to it, as one of another kind would
        watchers[0].alone = watchers[2].alone = True
    news.tell()
    await asyncio.wait_for(tasks[1], 1)
    assert watchers[1].got == [] and watchers[1].rev == 0
    assert [watcher.got for watcher in (watchers[0], watchers[2])] == [[b"1 "] if why == "full" else []] * 2
    if why == "full":
        await asyncio.wait_for(audiences.wait("pods", watchers[1], FAR), 1)  # it is behind: it need not wait
        watchers[1].rev, watchers[1].full = 1, False
        tasks[1] = asyncio.create_task(audiences.wait("pods", watchers[1], FAR))
        await asyncio.sleep(0)
        news.tell()
        await asyncio.sleep(audience_module.MAX_GAP * 2)
        assert watchers[1].got == [b"2 "] and watchers[0].got == [b"1 ", b"2 "]
    await stop(tasks)


@in_loop
async def test_time_is_over_for_one_and_the_end_is_for_all() -> None:
    news, audiences, _, tasks = await seated(2)
    loop = asyncio.get_running_loop()
    await asyncio.wait_for(audiences.wait("pods", Watcher(news), loop.time() + 0.02), 1)
    assert audiences.waiting == 2
    news.gone = Gone("deleted")
    news.tell(0)
    assert [type(error) for error in await asyncio.gather(*tasks, return_exceptions=True)] == [Gone, Gone]
    assert audiences.waiting == 0


async def read_watch(reader: asyncio.StreamReader, seed: random.Random | None) -> list[int]:
    """The revisions that a watch tells, until it ends; with a seed, its client reads a little now and then."""
    await reader.readuntil(b"\r\n\r\n")
    body = b""
    while True:
        if seed is not None and seed.random() < 0.3:
            await asyncio.sleep(seed.random() * 0.1)
        size = int(await reader.readline(), 16)
        body += await reader.readexactly(size)
        await reader.readline()
        if not size:
            return [int(json.loads(line)["object"]["metadata"]["resourceVersion"]) for line in body.splitlines()]


@in_loop
async def test_slow_and_quick_clients_of_one_server_see_every_event_once() -> None:
    plane = Plane()
    await plane.post(PODS, pod("a", annotations={"n": "x" * 20_000}))
    rev = plane.backend.store.rev
    async with await serve(plane.app, limits=Limits(connections=50)) as server:

        async def client(number: int) -> list[int]:
            reader, writer = await asyncio.open_connection(*server.addresses[0], limit=1 << 12)
            query = f"?watch=1&resourceVersion={rev}&timeoutSeconds=3"
            writer.write(
                f"GET {PODS}{query} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {plane.token}\r\n\r\n".encode()
            )
            try:
                return await read_watch(reader, random.Random(number) if number % 4 == 0 else None)
            finally:
                writer.close()

        clients = [asyncio.create_task(client(number)) for number in range(12)]
        while plane.app.audiences.waiting < 12:
            await asyncio.sleep(0.01)
        for number in range(300):
            await plane.merge(PODS + "/a", {"metadata": {"annotations": {"n": "x" * 20_000, "i": str(number)}}})
            if number % 7 == 0:
                await asyncio.sleep(0.005)
        expected = list(range(rev + 1, rev + 301))
        for seen in await asyncio.gather(*clients):
            assert seen == expected
        assert plane.app.audiences.waiting == 0


@in_loop
async def test_for_a_client_that_reads_nothing_little_is_kept() -> None:
    plane = Plane()
    await plane.post(PODS, pod("a"))
    async with await serve(plane.app) as server:
        reader, writer = await asyncio.open_connection(*server.addresses[0], limit=1 << 12)
        writer.write(f"GET {PODS}?watch=1 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {plane.token}\r\n\r\n".encode())
        while not plane.app.audiences.waiting:
            await asyncio.sleep(0.01)
        (connection,) = server._hub.connections
        most = 0
        for number in range(400):  # of which the sockets' own buffers take a part
            await plane.merge(PODS + "/a", {"metadata": {"annotations": {"n": "x" * 50_000, "i": str(number)}}})
            await asyncio.sleep(0)
            if connection._transport is not None:
                most = max(most, connection._transport.get_write_buffer_size())
        assert 0 < most < 1 << 20
        assert plane.app.audiences.waiting == 0
        writer.close()
        del reader
