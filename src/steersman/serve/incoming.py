"""Bytes of one stream from a client, on their way to whoever reads them."""

from __future__ import annotations

import asyncio
from typing import Final

HELD_BYTES: Final = 64 * 1024
"""Bytes held for a reader that is not ready. Whoever brings more waits, and with it the client."""


class Incoming:
    """For one that puts and one that reads."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._ended = False
        self._readable = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    async def put(self, data: bytes) -> None:
        """Adds bytes; first waits until there is room. Dropped after the end."""
        await self._room.wait()
        if self._ended or not data:
            return
        self._held += data
        self._readable.set()
        if len(self._held) >= HELD_BYTES:
            self._room.clear()

    def end(self) -> None:
        """Nothing more comes, or nobody wants it."""
        self._ended = True
        self._readable.set()
        self._room.set()

    async def read(self) -> bytes:
        """What there is, at least one byte; b"" at the end."""
        await self._readable.wait()
        data = bytes(self._held)
        self._held.clear()
        if not self._ended:
            self._readable.clear()
            self._room.set()
        return data
