"""SPDY/3.1, as much of it as Kubernetes' clients speak: streams in both directions over one connection.

kubectl tunnels it through a WebSocket for port-forward; older versions speak it alone for exec and attach. There is no
flow control of streams: those clients (github.com/moby/spdystream) neither send nor obey window updates, so that of the
connection is all there is. Source: the SPDY/3.1 draft, https://www.chromium.org/spdy/spdy-protocol/spdy-protocol-draft3-1.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Awaitable, Iterator, Mapping
from typing import Final, NamedTuple, Protocol

from steersman.serve.incoming import Incoming
from steersman.serve.streams.spdy_words import DICTIONARY

VERSION: Final = 3
SYN_STREAM, SYN_REPLY, RST_STREAM, SETTINGS, PING, GOAWAY, HEADERS, WINDOW_UPDATE = 1, 2, 3, 4, 6, 7, 8, 9
FIN: Final = 1
PROTOCOL_ERROR, REFUSED_STREAM, CANCEL = 1, 3, 5
CONTROL_BYTES: Final = 16 * 1024
"""Longest control frame we take; real ones have some 100 bytes."""
HEADER_BYTES: Final = 64 * 1024
"""Longest block of headers, after it is unpacked."""
MAX_STREAMS: Final = 1_000
"""Streams of one connection at a time. A forwarded connection needs two."""
DATA_BYTES: Final = 32 * 1024
"""Longest data frame we send."""
_HEAD: Final = struct.Struct(">II")


class SpdyError(Exception):
    """What a client sent is not SPDY/3.1, or over a limit."""


class Data(NamedTuple):
    """A piece of a data frame, as it arrives."""

    stream: int
    data: bytes
    fin: bool


class Control(NamedTuple):
    """A control frame that matters here. `number` is what a ping carries."""

    type: int
    stream: int
    headers: Mapping[str, str] = {}
    fin: bool = False
    number: int = 0


class Framer:
    """Bytes to frames and back. No sockets, no clock."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._left = 0  # of a data frame that has begun
        self._data = (0, False)
        self._unpack = zlib.decompressobj(zdict=DICTIONARY)
        self._pack = zlib.compressobj(zdict=DICTIONARY)

    def feed(self, data: bytes) -> Iterator[Data | Control]:
        """The frames that are there now, each once. Raises SpdyError, after which nothing more can be read."""
        self._held += data
        while True:
            if self._left:
                if not self._held:
                    return
                piece = bytes(self._held[: self._left])
                del self._held[: len(piece)]
                self._left -= len(piece)
                yield Data(self._data[0], piece, self._data[1] and not self._left)
                continue
            if len(self._held) < _HEAD.size:
                return
            first, second = _HEAD.unpack_from(self._held)
            flags, length = second >> 24, second & 0xFFFFFF
            if not first >> 31:
                del self._held[: _HEAD.size]
                self._left, self._data = length, (first, bool(flags & FIN))
                if not length:
                    yield Data(first, b"", bool(flags & FIN))
                continue
            if length > CONTROL_BYTES:
                raise SpdyError(f"a control frame of {length} bytes is over the limit of {CONTROL_BYTES}")
            if len(self._held) < _HEAD.size + length:
                return
            body = bytes(self._held[_HEAD.size : _HEAD.size + length])
            del self._held[: _HEAD.size + length]
            if frame := self._control(first >> 16 & 0x7FFF, first & 0xFFFF, flags, body):
                yield frame

    def _control(self, version: int, kind: int, flags: int, body: bytes) -> Control | None:
        if version != VERSION:
            raise SpdyError(f"version {version} of SPDY is not spoken here; use 3.1")
        if kind in (SETTINGS, WINDOW_UPDATE):
            return None
        if kind not in (SYN_STREAM, SYN_REPLY, RST_STREAM, PING, GOAWAY, HEADERS):
            return None  # a receiver ignores what it does not know (§2.2.1)
        before = {SYN_STREAM: 10, RST_STREAM: 8, GOAWAY: 8}.get(kind, 4)
        if len(body) < before:
            raise SpdyError(f"a control frame of type {kind} has only {len(body)} bytes")
        number = int.from_bytes(body[:4], "big")
        headers = self._headers(body[before:]) if kind in (SYN_STREAM, SYN_REPLY, HEADERS) else {}
        return Control(kind, number & 0x7FFFFFFF, headers, bool(flags & FIN), number)

    def _headers(self, packed: bytes) -> dict[str, str]:
        """A block of names and values (§2.6.10); every one is part of one compressed text."""
        try:
            block = self._unpack.decompress(packed, HEADER_BYTES)
            if self._unpack.unconsumed_tail:
                raise SpdyError(f"a block of headers is over the limit of {HEADER_BYTES} bytes")
            (count,) = struct.unpack_from(">I", block)
            at, out = 4, {}
            for _ in range(count):
                texts = []
                for _ in range(2):
                    (length,) = struct.unpack_from(">I", block, at)
                    if at + 4 + length > len(block):
                        raise SpdyError("a block of headers ends within a header")
                    texts.append(block[at + 4 : at + 4 + length].decode("latin-1"))
                    at += 4 + length
                out[texts[0].lower()] = texts[1].partition("\0")[0]
            return out
        except (zlib.error, struct.error) as error:
            raise SpdyError(f"a block of headers cannot be read: {error}") from None

    def reply(self, stream: int) -> bytes:
        """SYN_REPLY: a stream is accepted. It has no headers."""
        block = self._pack.compress(struct.pack(">I", 0)) + self._pack.flush(zlib.Z_SYNC_FLUSH)
        return _control(SYN_REPLY, struct.pack(">I", stream) + block)

    @staticmethod
    def data(stream: int, data: bytes, fin: bool = False) -> bytes:
        """A data frame."""
        return _HEAD.pack(stream, (FIN << 24 if fin else 0) | len(data)) + data

    @staticmethod
    def reset(stream: int, status: int) -> bytes:
        """RST_STREAM."""
        return _control(RST_STREAM, struct.pack(">II", stream, status))

    @staticmethod
    def pong(number: int) -> bytes:
        """The answer to a PING."""
        return _control(PING, struct.pack(">I", number))

    @staticmethod
    def goaway(last: int, status: int = 0) -> bytes:
        """GOAWAY: no stream after `last` will be taken."""
        return _control(GOAWAY, struct.pack(">II", last, status))


def _control(kind: int, body: bytes) -> bytes:
    return _HEAD.pack(0x80000000 | VERSION << 16 | kind, len(body)) + body


class Carrier(Protocol):
    """What SPDY runs over: a Pipe, or a WebSocket's messages."""

    def read(self) -> Awaitable[bytes]:
        """Some bytes; b"" at the end."""

    def write(self, data: bytes) -> Awaitable[None]:
        """Sends."""


class SpdyStream:
    """One stream that the client has opened. A `Duplex` (`kernel.streams`)."""

    def __init__(self, carrier: Carrier, number: int, headers: Mapping[str, str]) -> None:
        self._carrier = carrier
        self.number = number
        self.headers = headers
        self.incoming = Incoming()
        self.closed = False
        """By us: nothing more is sent."""
        self.ended = False
        """By the client."""

    async def read(self) -> bytes:
        """Some bytes; b"" when the client has closed its direction."""
        return await self.incoming.read()

    async def write(self, data: bytes) -> None:
        """Sends bytes, unless the stream is closed."""
        for start in range(0, len(data), DATA_BYTES):
            if self.closed:
                return
            await self._carrier.write(Framer.data(self.number, data[start : start + DATA_BYTES]))

    async def close(self) -> None:
        """Closes our direction; what still comes is dropped."""
        self.incoming.end()
        if not self.closed:
            self.closed = True
            await self._carrier.write(Framer.data(self.number, b"", fin=True))

    async def reset(self, status: int = CANCEL) -> None:
        """Breaks the stream off."""
        self.incoming.end()
        if not self.closed:
            self.closed = self.ended = True
            await self._carrier.write(Framer.reset(self.number, status))


class Opened(Protocol):
    """What is told of every new stream."""

    def __call__(self, stream: SpdyStream) -> bool:
        """Whether it is taken; called in order, before any of its data."""


async def serve_spdy(carrier: Carrier, opened: Opened) -> None:
    """Reads a connection and feeds its streams, until the client goes away or breaks the rules."""
    framer = Framer()
    streams: dict[int, SpdyStream] = {}
    last = 0
    try:
        while data := await carrier.read():
            for frame in framer.feed(data):
                if isinstance(frame, Data):
                    await _deliver(streams.get(frame.stream), frame)
                elif frame.type == SYN_STREAM:
                    last = _following(last, frame.stream)
                    await _open(carrier, framer, streams, frame, opened)
                elif frame.type == PING:
                    if frame.number % 2:  # the client's; ours would be even
                        await carrier.write(Framer.pong(frame.number))
                elif frame.type == RST_STREAM:
                    if stream := streams.pop(frame.stream, None):
                        stream.closed = stream.ended = True
                        stream.incoming.end()
                elif frame.type == GOAWAY:
                    return
            for number in [number for number, stream in streams.items() if stream.closed and stream.ended]:
                del streams[number]
    except SpdyError:
        await carrier.write(Framer.goaway(last, PROTOCOL_ERROR))
    finally:
        for stream in streams.values():
            stream.incoming.end()


async def _deliver(stream: SpdyStream | None, frame: Data) -> None:
    if stream is None or stream.ended:
        return  # late data of a stream that we have closed
    await stream.incoming.put(frame.data)
    if frame.fin:
        stream.ended = True
        stream.incoming.end()


def _following(last: int, number: int) -> int:
    """The number of a new stream: odd, as a client's are, and rising (§2.3.2). Raises SpdyError."""
    if number <= last or number % 2 == 0:
        raise SpdyError(f"stream {number} cannot follow stream {last}")
    return number


async def _open(
    carrier: Carrier, framer: Framer, streams: dict[int, SpdyStream], frame: Control, opened: Opened
) -> None:
    stream = SpdyStream(carrier, frame.stream, frame.headers)
    if len(streams) >= MAX_STREAMS:
        await carrier.write(Framer.reset(frame.stream, REFUSED_STREAM))
        return
    if not opened(stream):
        await carrier.write(Framer.reset(frame.stream, CANCEL))
        return
    streams[frame.stream] = stream
    await carrier.write(framer.reply(frame.stream))
    if frame.fin:
        stream.ended = True
        stream.incoming.end()
