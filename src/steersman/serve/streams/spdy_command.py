"""exec, attach and port-forward in streams of SPDY: what each stream is for stands in the headers it is opened with.

Sources: k8s.io/cri-streaming pkg/streaming/remotecommand/httpstream.go and portforward/httpstream.go, release 1.36.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from steersman.kernel.streams import Session
from steersman.serve.beside import beside
from steersman.serve.streams.command import Asked, CommandStreams, Sizes, run_command
from steersman.serve.streams.pipe import Pipe
from steersman.serve.streams.spdy import Carrier, SpdyStream, serve_spdy
from steersman.serve.streams.websocket import WebSocket

COMMAND_VERSIONS: Final = {
    "v4.channel.k8s.io": 4,
    "v3.channel.k8s.io": 3,
    "v2.channel.k8s.io": 2,
    "channel.k8s.io": 1,
}
"""Protocols of exec and attach over SPDY."""
RESIZING_VERSION: Final = 3
"""The first version with a stream for sizes of the terminal."""
FORWARD_PROTOCOL: Final = "portforward.k8s.io"
TUNNEL_PROTOCOL: Final = f"SPDY/3.1+{FORWARD_PROTOCOL}"
"""The subprotocol of a WebSocket whose messages are SPDY."""
CREATION_SECONDS: Final = 30.0
"""What a client has to open the streams that belong together."""
STREAM_TYPE: Final = "streamtype"


def command_in_spdy(session: Session, asked: Asked, version: int) -> Callable[[Pipe], Awaitable[None]]:
    """exec or attach over SPDY."""
    wanted = {"error", *(name for name in ("stdin", "stdout", "stderr") if getattr(asked, name))}
    if asked.tty and version >= RESIZING_VERSION:
        wanted.add("resize")

    async def takeover(pipe: Pipe) -> None:
        found: dict[str, SpdyStream] = {}
        complete = asyncio.Event()

        def opened(stream: SpdyStream) -> bool:
            name = stream.headers.get(STREAM_TYPE, "")
            if name in found or name not in wanted:
                return False
            found[name] = stream
            if len(found) == len(wanted):
                complete.set()
            return True

        async def work() -> None:
            try:
                await asyncio.wait_for(complete.wait(), CREATION_SECONDS)
            except TimeoutError:
                return
            sizes = Sizes()
            resize = found.get("resize")
            reading = None if resize is None else asyncio.ensure_future(_sizes(resize, sizes))
            streams = CommandStreams(
                found.get("stdin"), found.get("stdout"), found.get("stderr"), found["error"], sizes, asked.tty
            )
            try:
                await run_command(session, streams, version)
            finally:
                if reading is not None:
                    reading.cancel()
                    await asyncio.gather(reading, return_exceptions=True)

        await beside(serve_spdy(pipe, opened), work())

    return takeover


async def _sizes(stream: SpdyStream, sizes: Sizes) -> None:
    while data := await stream.read():
        await sizes.put(data)


Forward = Callable[[SpdyStream, SpdyStream, int], Awaitable[None]]
"""Carries one forwarded connection: its data, its errors, the port."""


class _Pairs:
    """The forwarded connections of one SPDY connection: a stream for data and one for errors each."""

    def __init__(self, forward: Forward) -> None:
        self._forward = forward
        self._halves: dict[str, dict[str, SpdyStream]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def opened(self, stream: SpdyStream) -> bool:
        """Takes a stream in. One without a port, or that is there already, is refused."""
        name, port = stream.headers.get(STREAM_TYPE, ""), port_of(stream.headers.get("port", ""))
        if name not in ("data", "error") or not port:
            return False
        request = stream.headers.get("requestid") or str(stream.number - 2 * (name == "data"))
        halves = self._halves.setdefault(request, {})
        if name in halves:
            return False
        halves[name] = stream
        loop = asyncio.get_running_loop()
        if len(halves) == 1:
            self._timers[request] = loop.call_later(CREATION_SECONDS, self._late, request)
        else:
            self._timers.pop(request).cancel()
            del self._halves[request]
            self._begin(self._forward(halves["data"], halves["error"], port))
        return True

    def _late(self, request: str) -> None:
        """The other stream did not come."""
        self._timers.pop(request, None)
        for stream in self._halves.pop(request, {}).values():
            self._begin(stream.reset())

    def _begin(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def end(self) -> None:
        """Cancels all."""
        for timer in self._timers.values():
            timer.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _forwarded(carrier: Carrier, forward: Forward) -> None:
    pairs = _Pairs(forward)
    try:
        await serve_spdy(carrier, pairs.opened)
    finally:
        await pairs.end()


def forward_in_spdy(forward: Forward) -> Callable[[Pipe], Awaitable[None]]:
    """Port-forward over SPDY."""

    async def takeover(pipe: Pipe) -> None:
        await _forwarded(pipe, forward)

    return takeover


def forward_in_tunnel(forward: Forward) -> Callable[[Pipe], Awaitable[None]]:
    """Port-forward over SPDY in the messages of a WebSocket."""

    async def takeover(pipe: Pipe) -> None:
        socket = WebSocket(pipe)
        await _forwarded(_Messages(socket), forward)
        await socket.close()

    return takeover


class _Messages:
    """A WebSocket as a Carrier: its messages make one stream of bytes."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._messages = socket.messages()

    async def read(self) -> bytes:
        """Some bytes; b"" at the end."""
        async for piece, _ in self._messages:
            if piece:
                return piece
        return b""

    async def write(self, data: bytes) -> None:
        """Sends a message."""
        await self._socket.send(b"", data)


def port_of(text: str) -> int:
    """A port's number; 0 for what is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 5 and 0 < int(text) < 65536 else 0
