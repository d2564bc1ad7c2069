"""One HTTPS request to somebody else, one answer: bounded in size and time by whoever asks; redirects are not
followed."""

from __future__ import annotations

import asyncio
import ssl
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

import httptools

MAX_ANSWER: Final = 3 << 20
"""Bytes of an answer: as many as a request may have."""
MAX_HEADERS: Final = 64 << 10
"""Bytes of an answer's head: as many as a request may have."""
CHUNK: Final = 64 << 10
HTTPS: Final = 443


MANY_HEADERS: Final = "the answer has too many headers"


class Failed(Exception):
    """An exchange that came to nothing; the text says why."""


class Malformed(Failed):
    """What came is no HTTP."""


@lru_cache(maxsize=256)
def trusting(pem: str) -> ssl.SSLContext:
    """A context that trusts these authorities, or the system's for "". Raises ssl.SSLError, ValueError."""
    return ssl.create_default_context(cadata=pem or None)


async def fetched(url: str, context: ssl.SSLContext) -> tuple[int, bytes]:
    """Status and body of a GET. Raises `Failed`, and what connections raise."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    head = (
        f"GET {parts.path or '/'}{f'?{parts.query}' if parts.query else ''} HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        "Accept: application/json\r\nUser-Agent: steersman\r\nConnection: close\r\n\r\n"
    )
    return await exchanged(host, parts.port or HTTPS, head.encode("ascii"), context, host)


async def exchanged(host: str, port: int, sent: bytes, context: ssl.SSLContext, name: str) -> tuple[int, bytes]:
    """Status and body; `name` is what the certificate must be for. Raises `Failed`, and what connections raise."""
    reader, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname=name, limit=CHUNK)
    try:
        writer.write(sent)
        await writer.drain()
        return await _read(reader)
    finally:
        writer.transport.abort()


class Answer:
    """An answer as it comes in: its head, and the pieces of its body that nobody has taken yet."""

    def __init__(self) -> None:
        self.headers: list[tuple[str, str]] = []
        self.begun = False
        """The head is complete, of the answer that counts."""
        self.done = False
        self.pieces: list[bytes] = []
        self._size = 0
        self._parser = httptools.HttpResponseParser(self)

    @property
    def status(self) -> int:
        """Its status, once it has begun."""
        return int(self._parser.get_status_code())

    def feed(self, data: bytes) -> bytes:
        """Takes in what was read; gives back what came behind an upgrade. Raises `Failed`."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            return data[upgrade.args[0] :]
        except httptools.HttpParserCallbackError as error:
            raise error.__context__ if isinstance(error.__context__, Failed) else Malformed(str(error)) from None
        except httptools.HttpParserError as error:
            raise Malformed(f"malformed HTTP response: {error}") from None
        return b""

    def on_header(self, name: bytes, value: bytes) -> None:
        self._size += len(name) + len(value)
        if self._size > MAX_HEADERS:
            raise Failed(MANY_HEADERS)
        if not self.begun:
            self.headers.append((name.decode("latin-1").lower(), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        self.begun = self.status >= 200 or self.status == 101
        if not self.begun:  # an interim answer: the one that counts is still to come
            self.headers = []

    def on_body(self, data: bytes) -> None:
        self.pieces.append(data)

    def on_message_complete(self) -> None:
        self.done = self.begun


async def begun(reader: asyncio.StreamReader) -> tuple[Answer, bytes]:
    """An answer whose head has come in, and what came behind it where that is an upgrade. Raises `Failed`."""
    answer, rest, read = Answer(), b"", 0
    while not answer.begun:
        data = await reader.read(CHUNK)
        read += len(data)
        if not data:
            raise Failed("EOF")
        if read > MAX_HEADERS + CHUNK:
            raise Failed(MANY_HEADERS)
        rest = answer.feed(data)
    return answer, rest


async def _read(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """An answer as a whole. Raises `Failed`."""
    answer, _ = await begun(reader)
    body, taken = bytearray(), 0
    while True:
        body += b"".join(answer.pieces)
        answer.pieces.clear()
        if len(body) > MAX_ANSWER or taken > MAX_ANSWER + MAX_HEADERS:
            raise Failed(f"the response is longer than {MAX_ANSWER} bytes")
        if answer.done:
            break
        data = await reader.read(CHUNK)
        if not data:
            break
        taken += len(data)
        answer.feed(data)
    return answer.status, bytes(body)
