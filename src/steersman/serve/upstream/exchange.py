"""One HTTP/1.1 exchange with whoever answers: a request written, its answer streamed back, or the bytes handed over.

The answer is never held as a whole: its client sets the pace. Headers that belong to one connection stay on it
(RFC 9110 §7.6.1). Source of what else a proxy does with headers: Go's net/http/httputil ReverseProxy and apimachinery
pkg/util/proxy/upgradeaware.go, release 1.36.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Final, NamedTuple

from steersman.serve.message import TOKEN, Request, Response
from steersman.serve.outgoing import CHUNK, Answer, begun
from steersman.serve.streams.pipe import Pipe
from steersman.serve.upstream.line import Line

HOP_BY_HOP: Final = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_OURS: Final = HOP_BY_HOP | {"host", "content-length", "expect"}
"""Headers of a request that are written anew."""
_CLAIMS: Final = ("x-remote-", "impersonate-")
"""What headers begin with that say who asks: no client may say it to others in our name."""
Headers = list[tuple[str, str]]


class Sent(NamedTuple):
    """What is asked: `target` is path and query as they are sent."""

    method: str
    target: str
    host: str
    headers: Headers
    body: bytes = b""
    upgrade: str = ""


def forwarded(request: Request, dropped: Iterable[str] = ()) -> Headers:
    """The headers of a client's request that go on, without `dropped`, and whose request it was."""
    gone = _OURS | {name.strip().lower() for name in request.headers.get("connection").split(",")} | set(dropped)
    kept = [pair for pair in request.headers if pair[0] not in gone and not pair[0].startswith(_CLAIMS)]
    if request.peer is not None:
        before = request.headers.get("x-forwarded-for")
        kept = [(name, value) for name, value in kept if name != "x-forwarded-for"]
        kept.append(("x-forwarded-for", f"{before}, {request.peer[0]}" if before else request.peer[0]))
    return kept


async def exchanged(line: Line, sent: Sent) -> Response:
    """The answer, as its head came in; the line is closed with it. Raises `Failed` and OSError, the line closed."""
    try:
        return await _exchanged(line, sent)
    except BaseException:
        await line.close()
        raise


async def _exchanged(line: Line, sent: Sent) -> Response:
    line.writer.write(_written(sent))
    await line.writer.drain()
    answer, rest = await begun(line.reader)
    if answer.status == 101:
        kept = [(name, value) for name, value in answer.headers if name != "content-length"]
        return Response(101, _safe(kept), takeover=_takeover(line, rest))
    headers = _kept(answer.headers)
    if sent.method == "HEAD" or answer.status in (204, 304):
        await line.close()
        return Response(answer.status, headers)
    return Response(answer.status, headers, _body(line, answer))


def _written(sent: Sent) -> bytes:
    lines = [f"{sent.method} {sent.target} HTTP/1.1", f"Host: {sent.host}"]
    lines += [f"{name}: {value}" for name, value in sent.headers]
    lines += ["Connection: Upgrade", f"Upgrade: {sent.upgrade}"] if sent.upgrade else ["Connection: close"]
    if sent.body or sent.method in ("POST", "PUT", "PATCH"):
        lines.append(f"Content-Length: {len(sent.body)}")
    return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + sent.body


async def _body(line: Line, answer: Answer) -> AsyncIterator[bytes]:
    try:
        while True:
            if answer.pieces:
                yield b"".join(answer.pieces)
                answer.pieces.clear()
            if answer.done:
                return
            data = await line.reader.read(CHUNK)
            if not data:  # its end, where the answer did not say how long it is
                if any(name in ("content-length", "transfer-encoding") for name, _ in answer.headers):
                    raise ConnectionResetError("the answer broke off")
                return
            answer.feed(data)
    finally:
        await line.close()


def _kept(headers: Headers) -> Headers:
    listed = {part.strip().lower() for name, value in headers if name == "connection" for part in value.split(",")}
    return _safe([(name, value) for name, value in headers if name not in HOP_BY_HOP and name not in listed])


def _safe(headers: Headers) -> Headers:
    """Those that can be passed on: a name is a token, and a value has no line breaks."""
    return [(name, value) for name, value in headers if name and set(name) <= TOKEN and not set(value) & set("\r\n\0")]


def _takeover(line: Line, rest: bytes) -> Callable[[Pipe], Awaitable[None]]:
    async def carried(pipe: Pipe) -> None:
        async def up() -> None:
            while True:
                line.writer.write(await pipe.read())
                await line.writer.drain()

        async def down() -> None:
            data = rest or await line.reader.read(CHUNK)
            while data:
                await pipe.write(data)
                data = await line.reader.read(CHUNK)

        upward = asyncio.create_task(up())
        try:
            await down()
        finally:
            upward.cancel()
            await asyncio.gather(upward, return_exceptions=True)
            await line.close()

    return carried
