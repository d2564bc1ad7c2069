"""What the tests of the HTTP server share: a loop, raw clients, handlers."""

from __future__ import annotations

import asyncio
import functools
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from steersman.serve.http import Request, Response, Server

Test = Callable[..., Awaitable[None]]
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def in_loop(test: Test) -> Callable[..., None]:
    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), 10))

    return run


async def echo(request: Request) -> Response:
    """Tells what arrived, so that a client can compare."""
    seen = {
        "method": request.method,
        "path": request.path,
        "raw_path": request.raw_path,
        "query": list(request.query),
        "headers": list(request.headers),
        "body": request.body.decode("latin-1"),
    }
    return Response(200, {"content-type": "application/json"}, json.dumps(seen).encode())


async def connect(server: Server) -> Streams:
    return await asyncio.open_connection(*server.addresses[0])


async def read_response(reader: asyncio.StreamReader, method: str = "GET") -> tuple[int, dict[str, str], bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
    body = b""
    if "chunked" in headers.get("transfer-encoding", "") and method != "HEAD":
        while size := int(await reader.readline(), 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
    elif method != "HEAD":
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    return int(head[0].split()[1]), headers, body


async def ask(server: Server, raw: bytes, method: str = "GET") -> tuple[int, dict[str, str], bytes]:
    """One raw request on a connection of its own."""
    reader, writer = await connect(server)
    try:
        writer.write(raw)
        return await read_response(reader, method)
    finally:
        writer.close()


def is_status(answer: tuple[int, dict[str, str], bytes], code: int) -> bool:
    status = json.loads(answer[2])
    return answer[0] == code == status["code"] and status["kind"] == "Status" and status["status"] == "Failure"


async def until(condition: Callable[[], bool], seconds: float = 2.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "condition did not come true"
        await asyncio.sleep(0.01)


class Ticker:
    """A watch: yields every 10 ms for ever; counts how many are open."""

    def __init__(self) -> None:
        self.open = 0
        self.started = 0

    async def __call__(self, request: Request) -> Response:
        return Response(200, (), self.ticks())

    async def ticks(self) -> AsyncIterator[bytes]:
        self.open += 1
        self.started += 1
        try:
            while True:
                yield b'{"type":"BOOKMARK"}\n'
                await asyncio.sleep(0.01)
        finally:
            self.open -= 1
