"""A connection to whoever answers: over TCP, or through the tunnel that the node of a pod carries; with TLS or not."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from typing import Final

from steersman.api.errors import ApiError
from steersman.kernel.streams import Tunnel

CONNECT_SECONDS: Final = 10.0
"""For a connection and its TLS handshake."""
HELD_BYTES: Final = 128 << 10
"""Bytes held of an answer whose reader is slow; then its sender waits."""
log = logging.getLogger("steersman.serve.upstream")


class Line:
    """Two directions; `close` ends both, and what carries them."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, carrier: asyncio.Task[None] | None = None
    ) -> None:
        self.reader = reader
        self.writer = writer
        self._carrier = carrier

    async def close(self) -> None:
        """Ends it at once; may be called twice."""
        _cut(self.writer)
        if self._carrier is not None:
            self._carrier.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._carrier
            self._carrier = None


class _Far:
    """The far end of a line, as a node's tunnel sees it (`kernel.streams.Duplex`)."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self) -> bytes:
        return await self._reader.read(HELD_BYTES)

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()


async def dialed(host: str, port: int, context: ssl.SSLContext | None = None, name: str = "") -> Line:
    """A TCP connection; `name` is what the certificate must be for. Raises OSError, ssl.SSLError and TimeoutError."""
    async with asyncio.timeout(CONNECT_SECONDS):
        reader, writer = await asyncio.open_connection(
            host, port, limit=HELD_BYTES, ssl=context, server_hostname=(name or host) if context else None
        )
    return Line(reader, writer)


async def tunnelled(tunnel: Tunnel, context: ssl.SSLContext | None = None, name: str = "") -> Line:
    """A connection that `tunnel` carries. Raises as `dialed` does."""
    near, far = socket.socketpair()
    carrier = asyncio.create_task(_carried(tunnel, far))
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            reader, writer = await asyncio.open_connection(
                sock=near, limit=HELD_BYTES, ssl=context, server_hostname=name or "localhost" if context else None
            )
    except BaseException:
        near.close()
        carrier.cancel()
        raise
    return Line(reader, writer, carrier)


async def _carried(tunnel: Tunnel, far: socket.socket) -> None:
    reader, writer = await asyncio.open_connection(sock=far, limit=HELD_BYTES)
    try:
        await tunnel(_Far(reader, writer))
        writer.close()
        await writer.wait_closed()
    except ApiError as error:
        log.info("a connection through a node ended: %s", error.message)
    except OSError:
        pass  # the near end has gone
    except Exception:
        log.exception("what serves a port failed")
    finally:
        _cut(writer)


def _cut(writer: asyncio.StreamWriter) -> None:
    if not writer.transport.is_closing():
        writer.transport.abort()
