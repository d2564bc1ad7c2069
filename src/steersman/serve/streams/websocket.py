"""WebSockets (RFC 6455) on a connection that was handed over. Framing is wsproto's.

The payload of a frame is passed on as it arrives, so no frame is too large and none is held.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import AsyncIterator, Iterable
from typing import Final

from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Ping, TextMessage
from wsproto.utilities import RemoteProtocolError

from steersman.api import errors
from steersman.serve.message import Headers, Request
from steersman.serve.streams.pipe import Pipe

GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""RFC 6455 §1.3."""
NORMAL: Final = 1000
PROTOCOL_ERROR: Final = 1002
MESSAGE_BYTES: Final = 32 * 1024
"""Longest message we send: clients limit what they take (the `websockets` library: 1 MiB)."""


def offered(headers: Headers) -> list[str]:
    """The subprotocols a client offers, best first; [""] when it names none."""
    names = [name.strip() for line in headers.all("sec-websocket-protocol") for name in line.split(",")]
    return [name for name in names if name] or [""]


def chosen(headers: Headers, supported: Iterable[str]) -> str:
    """The first subprotocol offered that is supported; "" stands for none. Raises ApiError 403, as Go's server does."""
    known, names = list(supported), offered(headers)
    for name in names:
        if name in known:
            return name
    listed = ", ".join(name for name in known if name)
    message = f"unable to upgrade: WebSocket subprotocols {', '.join(names)[:200]!r} are not supported; use {listed}"
    raise errors.ApiError(403, "Forbidden", message)


def handshake(request: Request, protocol: str) -> list[tuple[str, str]]:
    """The headers that grant an upgrade. Raises ApiError 400 for a request that is no WebSocket's (RFC 6455 §4.2.1)."""
    headers = request.headers
    key = headers.get("sec-websocket-key").strip()
    try:
        valid = len(base64.b64decode(key, validate=True)) == 16
    except (binascii.Error, ValueError):
        valid = False
    if request.method != "GET" or not valid:
        raise errors.bad_request("unable to upgrade: a WebSocket begins with a GET and a Sec-WebSocket-Key of 16 bytes")
    if headers.get("sec-websocket-version").strip() != "13":
        raise errors.bad_request("unable to upgrade: the only Sec-WebSocket-Version spoken here is 13")
    accept = base64.b64encode(hashlib.sha1(key.encode() + GUID, usedforsecurity=False).digest()).decode()
    out = [("upgrade", "websocket"), ("sec-websocket-accept", accept)]
    return [*out, ("sec-websocket-protocol", protocol)] if protocol else out


class WebSocket:
    """One WebSocket, after its handshake. One task reads; any number may send."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._frames = Connection(ConnectionType.SERVER)

    async def messages(self) -> AsyncIterator[tuple[bytes, bool]]:
        """Pieces of messages as they arrive, and whether a piece is the last of its message. Ends when the client
        closes, or speaks no WebSocket; either is answered."""
        while True:
            data = await self._pipe.read()
            try:
                self._frames.receive_data(data)
                for event in self._frames.events():
                    if isinstance(event, BytesMessage):
                        yield bytes(event.data), event.message_finished
                    elif isinstance(event, TextMessage):
                        yield event.data.encode(), event.message_finished
                    elif isinstance(event, Ping):
                        if self._frames.state is ConnectionState.OPEN:
                            await self._pipe.write(self._frames.send(event.response()))
                    elif isinstance(event, CloseConnection):
                        if self._frames.state is ConnectionState.REMOTE_CLOSING:
                            await self._pipe.write(self._frames.send(event.response()))
                        else:  # what wsproto makes of frames that are none
                            await self.close(event.code)
                        return
            except RemoteProtocolError:
                await self.close(PROTOCOL_ERROR)
                return

    async def send(self, head: bytes, data: bytes) -> None:
        """Sends `data` in as many messages as it needs, each with `head` before it. Nothing after the close."""
        for start in range(0, max(1, len(data)), MESSAGE_BYTES):
            if self._frames.state is not ConnectionState.OPEN:
                return
            await self._pipe.write(self._frames.send(BytesMessage(head + data[start : start + MESSAGE_BYTES])))

    async def close(self, code: int = NORMAL) -> None:
        """Says that nothing more comes."""
        if self._frames.state in (ConnectionState.OPEN, ConnectionState.REMOTE_CLOSING):
            await self._pipe.write(self._frames.send(CloseConnection(code)))
