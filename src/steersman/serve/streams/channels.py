"""Streams in the channels of a WebSocket: the first byte of a message is the number of the channel it belongs to.

Sources: k8s.io/streaming pkg/httpstream/wsstream, k8s.io/apiserver pkg/util/proxy/websocket.go, release 1.36. The forms
in base64, for clients that could send only text, are not spoken.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol

from steersman.kernel.streams import Session
from steersman.serve.beside import beside
from steersman.serve.incoming import Incoming
from steersman.serve.streams.command import Asked, CommandStreams, Sizes, run_command
from steersman.serve.streams.pipe import Pipe
from steersman.serve.streams.websocket import NORMAL, PROTOCOL_ERROR, WebSocket

STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
COMMAND_VERSIONS: Final = {"v5.channel.k8s.io": 5, "v4.channel.k8s.io": 4, "channel.k8s.io": 1, "": 1}
"""Subprotocols of exec and attach."""
FORWARD_PROTOCOLS: Final = ("v4.channel.k8s.io", "")
"""Subprotocols of port-forward with channels."""
GOODBYE_SECONDS: Final = 1.0
"""What a client has to answer our close; then the connection is closed anyway."""


class Inlet(Protocol):
    """Where what the client sends in a channel goes."""

    async def put(self, data: bytes) -> None:
        """Takes bytes; may wait."""

    def end(self) -> None:
        """The client has closed the channel."""


class Channel:
    """One channel, as a Duplex and an Outlet."""

    def __init__(self, socket: WebSocket, number: int) -> None:
        self._socket = socket
        self._head = bytes([number])
        self.incoming = Incoming()

    async def read(self) -> bytes:
        """Some bytes; b"" at the end."""
        return await self.incoming.read()

    async def write(self, data: bytes) -> None:
        """Sends bytes; none is a message, too."""
        await self._socket.send(self._head, data)

    async def close(self) -> None:
        """There is no message for it: the whole connection is closed, in the end. What still comes is dropped."""
        self.incoming.end()


async def _sort(socket: WebSocket, inlets: Mapping[int, Inlet], closable: bool) -> None:
    """Reads until the client closes. A channel that is not known is passed over; `closable`: v5's close message."""
    channel: int | None = None
    closing = b""
    async for piece, last in socket.messages():
        data = piece
        if channel is None and data:
            channel, data = data[0], data[1:]
        if channel == CLOSE and closable:
            closing += data[: 2 - len(closing)]
            if last:
                if len(closing) != 1 or closing[0] > RESIZE:
                    await socket.close(PROTOCOL_ERROR)
                    return
                if (inlet := inlets.get(closing[0])) is not None:
                    inlet.end()
        elif channel is not None and data and (inlet := inlets.get(channel)) is not None:
            await inlet.put(data)
        if last:
            channel, closing = None, b""


async def _run(socket: WebSocket, inlets: Mapping[int, Inlet], closable: bool, work: Awaitable[None]) -> None:
    """Works while the client is read; says goodbye when the work is done."""

    async def to_the_end() -> None:
        await work
        for inlet in inlets.values():
            inlet.end()
        await socket.close(NORMAL)
        await asyncio.sleep(GOODBYE_SECONDS)  # ended sooner by the client's answer

    await beside(_sort(socket, inlets, closable), to_the_end())


def command_in_channels(session: Session, asked: Asked, version: int) -> Callable[[Pipe], Awaitable[None]]:
    """exec or attach over a WebSocket."""

    async def takeover(pipe: Pipe) -> None:
        socket = WebSocket(pipe)
        stdin, stdout, stderr, failure = (Channel(socket, number) for number in (STDIN, STDOUT, STDERR, ERROR))
        sizes = Sizes()
        inlets: dict[int, Inlet] = {RESIZE: sizes}
        if asked.stdin:
            inlets[STDIN] = stdin.incoming
        await (stdout if asked.stdout else stderr if asked.stderr else failure).write(b"")  # "it is established"
        streams = CommandStreams(
            stdin if asked.stdin else None,
            stdout if asked.stdout else None,
            stderr if asked.stderr else None,
            failure,
            sizes,
            asked.tty,
        )
        await _run(socket, inlets, version >= 5, run_command(session, streams, version))

    return takeover


Forward = Callable[[Channel, Channel, int], Awaitable[None]]
"""Carries one forwarded connection: its data, its errors, the port."""


def forward_in_channels(forward: Forward, ports: list[int]) -> Callable[[Pipe], Awaitable[None]]:
    """Port-forward over a WebSocket: two channels for each port, which begin with its number."""

    async def takeover(pipe: Pipe) -> None:
        socket = WebSocket(pipe)
        pairs = [(Channel(socket, 2 * at), Channel(socket, 2 * at + 1), port) for at, port in enumerate(ports)]
        for data, failure, port in pairs:
            for channel in (data, failure):
                await channel.write(struct.pack("<H", port))
        inlets = {2 * at: data.incoming for at, (data, _, _) in enumerate(pairs)}

        async def work() -> None:
            await asyncio.gather(*[forward(*pair) for pair in pairs])

        await _run(socket, inlets, False, work())

    return takeover
