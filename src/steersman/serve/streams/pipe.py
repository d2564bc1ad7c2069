"""The bytes of a connection that was handed over: what comes after an HTTP upgrade."""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable
from typing import Final

HELD_BYTES: Final = 256 * 1024
"""Input held for a session that does not read; then the client has to wait."""
_GONE: Final = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR
"""What the kernel knows of a peer that went, while its input is not being read."""


class Pipe:
    """Both directions, with back-pressure. The session on it is cancelled when the connection is lost, so reading has
    no end of its own. For one reader; any number may write."""

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        full: Callable[[], asyncio.Future[None] | None],
    ) -> None:
        """`full` gives what to wait for while the transport has more to send than it should hold."""
        self._transport = transport
        self._loop = loop
        self._full = full
        self._held = bytearray()
        self._paused = False
        self._arrived: asyncio.Future[None] | None = None
        self.active = loop.time()
        """When bytes last went either way."""

    def fed(self, data: bytes | bytearray) -> None:
        """Bytes have arrived."""
        self.active = self._loop.time()
        self._held += data
        if len(self._held) > HELD_BYTES and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)

    async def read(self) -> bytes:
        """What has arrived, at least one byte."""
        while not self._held:
            self._arrived = self._loop.create_future()
            await self._arrived
        data = bytes(self._held)
        self._held.clear()
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        return data

    async def write(self, data: bytes) -> None:
        """Sends; returns when there is room for more. The stall limit of the connection bounds the wait."""
        if self._transport.is_closing():
            raise ConnectionResetError("the client has gone")
        self.active = self._loop.time()
        self._transport.write(data)
        if (full := self._full()) is not None:
            await asyncio.shield(full)

    def peer_gone(self) -> bool:
        """Whether the peer has closed, although its input waits to be read: else nobody would notice."""
        if not self._paused or (sock := self._transport.get_extra_info("socket")) is None:
            return False
        try:
            poll = select.poll()
            poll.register(sock.fileno(), _GONE)
            return bool(poll.poll(0))
        except (OSError, ValueError):  # closed meanwhile
            return True
