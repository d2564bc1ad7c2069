"""Streams of the HTTP server, its shutdown, and what connections leave behind: nothing."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import http.client
import logging
import socket
import time
import weakref
from collections.abc import AsyncIterator

import pytest

from steersman.serve import http as http_server
from steersman.serve.connection import Connection
from steersman.serve.http import Limits, Request, Response, serve

from .harness import Ticker, ask, connect, echo, in_loop, read_response, until

# -- streams


@in_loop
async def test_a_stream_ends_with_its_iterator_and_the_connection_lives_on() -> None:
    async def handler(request: Request) -> Response:
        async def count() -> AsyncIterator[bytes]:
            for number in range(3):
                yield b"%d\n" % number
                await asyncio.sleep(0)

        return Response(200, (), count())

    async with await serve(handler) as server:
        reader, writer = await connect(server)
        for _ in range(2):
            writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            assert (await read_response(reader))[2] == b"0\n1\n2\n"
        writer.close()


@pytest.mark.parametrize("how", ["close", "reset"])
@in_loop
async def test_a_stream_is_closed_at_once_when_the_client_goes(how: str) -> None:
    quiet = asyncio.Event()
    finished: list[float] = []

    async def handler(request: Request) -> Response:
        async def silent() -> AsyncIterator[bytes]:
            try:
                yield b"first\n"
                await quiet.wait()  # a watch without events: no write will ever fail
            finally:
                finished.append(time.monotonic())

        return Response(200, (), silent())

    async with await serve(handler) as server:
        sock = socket.create_connection(server.addresses[0])
        sock.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        await asyncio.to_thread(sock.recv, 1000)
        if how == "reset":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        gone = time.monotonic()
        sock.close()
        await until(lambda: bool(finished))
        assert finished[0] - gone < 0.5
        await until(lambda: server.connections == 0)


@in_loop
async def test_a_client_that_resets_before_its_refusal_is_written_is_nobodys_fault(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The connection is reset while the server has not looked: shutting its half down says ENOTCONN."""
    async with await serve(echo) as server:
        for _ in range(20):
            sock = socket.create_connection(server.addresses[0])
            await until(lambda: server.connections == 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            sock.sendall(b"GET / HTTP/1.1\r\n\r\n")  # without a Host
            sock.close()
            await until(lambda: server.connections == 0)
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == []


@in_loop
async def test_a_handler_is_cancelled_when_the_client_goes() -> None:
    cancelled = asyncio.Event()

    async def handler(request: Request) -> Response:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return Response()

    async with await serve(handler) as server:
        _, writer = await connect(server)
        writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        await until(lambda: server.connections == 1)
        await asyncio.sleep(0.05)
        writer.close()
        await asyncio.wait_for(cancelled.wait(), 3)  # within the grace of a half-closed connection
        await until(lambda: server.connections == 0)


@in_loop
async def test_a_stream_waits_for_a_slow_reader_and_gives_up_on_a_dead_one() -> None:
    produced = 0
    finished = asyncio.Event()

    async def handler(request: Request) -> Response:
        async def flood() -> AsyncIterator[bytes]:
            nonlocal produced
            try:
                while True:
                    produced += 1
                    yield b"x" * 65536
            finally:
                finished.set()

        return Response(200, (), flood())

    async with await serve(handler, limits=Limits(stall_seconds=0.5)) as server:
        sock = socket.create_connection(server.addresses[0])
        sock.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        await asyncio.sleep(0.3)
        level = produced
        assert level < 1000  # kernel buffers and one of ours, not an ever growing queue
        await asyncio.sleep(0.1)
        assert produced == level
        await asyncio.wait_for(finished.wait(), 3)
        sock.close()


@in_loop
async def test_a_stream_that_never_pauses_leaves_others_their_turn() -> None:
    had_turn: list[bool] = []

    async def handler(request: Request) -> Response:
        async def backlog() -> AsyncIterator[bytes]:
            others: list[None] = []
            asyncio.get_running_loop().call_soon(others.append, None)
            for _ in range(256):  # 1 MiB, which the kernel takes without a pause
                yield b"x" * 4096
            had_turn.append(bool(others))

        return Response(200, (), backlog())

    async with await serve(handler) as server:
        assert len((await ask(server, b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"))[2]) == 256 * 4096
    assert had_turn == [True]


class Items:
    """An iterator that is no generator, so that nothing but the server closes it."""

    def __init__(self, count: int) -> None:
        self.left = count
        self.closed = 0

    def __aiter__(self) -> Items:
        return self

    async def __anext__(self) -> bytes:
        if self.left == 0:
            raise StopAsyncIteration
        self.left -= 1
        await asyncio.sleep(0.005)
        return b"item\n"

    async def aclose(self) -> None:
        self.closed += 1


@pytest.mark.parametrize("ending", ["exhausted", "head", "old", "no content", "client gone", "shutdown", "refused"])
@in_loop
async def test_every_iterator_is_closed_once_however_it_ends(ending: str) -> None:
    items = Items(3 if ending in ("exhausted", "old") else 10**9)

    async def handler(request: Request) -> Response:
        headers = {"bad name": "x"} if ending == "refused" else {}
        return Response(204 if ending == "no content" else 200, headers, items)

    server = await serve(handler)
    reader, writer = await connect(server)
    method, version = "HEAD" if ending == "head" else "GET", "1.0" if ending == "old" else "1.1"
    writer.write(f"{method} / HTTP/{version}\r\nHost: h\r\n\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    if ending == "client gone":
        await reader.readline()
        writer.close()
    if ending != "shutdown":
        await until(lambda: items.closed > 0)
    await server.close()
    assert items.closed == 1
    writer.close()


@in_loop
async def test_a_failing_stream_is_visibly_broken_off(caplog: pytest.LogCaptureFixture) -> None:
    async def handler(request: Request) -> Response:
        async def broken() -> AsyncIterator[bytes]:
            yield b"some"
            raise RuntimeError("no more")

        return Response(200, (), broken())

    async with await serve(handler) as server:

        def client() -> None:
            link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
            link.request("GET", "/")
            with pytest.raises(http.client.IncompleteRead) as error:
                link.getresponse().read()
            assert error.value.partial == b"some"
            link.close()

        await asyncio.to_thread(client)
    assert "no more" in caplog.text


# -- shutdown


@in_loop
async def test_200_watches_end_cleanly_within_a_second_at_shutdown() -> None:
    ticker = Ticker()
    before = asyncio.all_tasks()
    server = await serve(ticker)
    links = [await connect(server) for _ in range(200)]
    for _, writer in links:
        writer.write(b"GET /watch HTTP/1.1\r\nHost: h\r\n\r\n")
    await until(lambda: ticker.open == 200)
    reading = [asyncio.create_task(reader.read()) for reader, _ in links]
    started = time.monotonic()
    await server.close()
    assert time.monotonic() - started < 1.0
    assert (ticker.open, ticker.started, server.connections) == (0, 200, 0)
    for body in await asyncio.gather(*reading):
        assert body.endswith(b"\r\n0\r\n\r\n")  # an ordinary end to the client
    assert asyncio.all_tasks() == before  # nothing of the server runs on
    for _, writer in links:
        writer.close()


@in_loop
async def test_shutdown_does_not_wait_for_a_watcher_that_reads_nothing() -> None:
    async def handler(request: Request) -> Response:
        async def flood() -> AsyncIterator[bytes]:
            while True:
                yield b"x" * 65536

        return Response(200, (), flood())

    server = await serve(handler)
    sock = socket.create_connection(server.addresses[0])
    sock.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    await asyncio.sleep(0.2)
    started = time.monotonic()
    await server.close()
    assert time.monotonic() - started < 1.0 and server.connections == 0
    sock.close()


@in_loop
async def test_shutdown_lets_requests_finish_and_cuts_what_outlives_the_grace() -> None:
    async def handler(request: Request) -> Response:
        async def finite() -> AsyncIterator[bytes]:
            for _ in range(20):
                yield b"line\n"
                await asyncio.sleep(0.01)

        if request.path == "/finite":
            return Response(200, (), finite(), endless=False)
        await asyncio.sleep(0.2 if request.path == "/short" else 60)
        return Response(200, (), b"done")

    server = await serve(handler)
    asked = [
        asyncio.create_task(ask(server, b"GET %s HTTP/1.1\r\nHost: h\r\n\r\n" % path))
        for path in (b"/short", b"/finite", b"/long")
    ]
    idle = await connect(server)
    await until(lambda: server.connections == 4)
    await asyncio.sleep(0.05)
    address = server.addresses[0]
    started = time.monotonic()
    closing = asyncio.create_task(server.close(grace=0.8))
    assert await asyncio.wait_for(idle[0].read(), 0.3) == b""
    with pytest.raises(OSError):
        socket.create_connection(address, timeout=1)
    await closing
    assert 0.7 < time.monotonic() - started < 1.8
    short, finite, long = await asyncio.gather(*asked, return_exceptions=True)
    assert not isinstance(short, BaseException) and short[2] == b"done" and short[1]["connection"] == "close"
    assert not isinstance(finite, BaseException) and finite[2] == b"line\n" * 20
    assert isinstance(long, asyncio.IncompleteReadError | ConnectionError)
    await server.close()  # once more does no harm


@in_loop
async def test_shutdown_is_bounded_even_with_a_handler_that_will_not_be_cancelled(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "ABORT_SECONDS", 0.2)
    stop = asyncio.Event()

    async def stubborn(request: Request) -> Response:
        while not stop.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await stop.wait()
        return Response()

    server = await serve(stubborn)
    _, writer = await connect(server)
    writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    await until(lambda: server.connections == 1)
    await asyncio.sleep(0.05)
    await server.close(grace=0.1)
    assert "1 connections did not end" in caplog.text
    stop.set()
    writer.close()
    await until(lambda: server.connections == 0)


@in_loop
async def test_a_closed_connection_leaves_no_cycle() -> None:
    """Automatic collection is off in a running control plane: what is dropped must go by itself."""
    seen: list[weakref.ref[Connection]] = []

    async def handler(request: Request) -> Response:
        frame = next(iter(server._hub.connections))
        seen.append(weakref.ref(frame))
        if request.path == "/bad":
            raise RuntimeError
        return await Ticker()(request) if request.path == "/watch" else Response()

    server = await serve(handler)
    gc.collect()
    gc.disable()
    logging.disable()  # pytest keeps the records, and they keep the traceback
    try:
        for raw in (
            b"GET / HTTP/1.1\r\nHost: h\r\n\r\n",
            b"GET /bad HTTP/1.1\r\nHost: h\r\n\r\n",
            b"GET /watch HTTP/1.1\r\nHost: h\r\n\r\n",
        ):
            reader, writer = await connect(server)
            writer.write(raw)
            await reader.readuntil(b"\r\n\r\n")
            if b"watch" not in raw:
                writer.write(b"GET / HTTP/1.1\r\nnonsense\r\n\r\n")
                await reader.read()
            writer.close()
            await until(lambda: server.connections == 0)
            await asyncio.sleep(0.01)
        assert len(seen) == 3 and [ref() for ref in seen] == [None] * 3
    finally:
        gc.enable()
        logging.disable(logging.NOTSET)
        await server.close()
