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


class Failed(Exception):
    """An exchange that came to nothing; the text says why."""


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


class _Response:
    """Collects a response, up to its limits."""

    def __init__(self) -> None:
        self.body = bytearray()
        self.headers = 0
        self.done = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers += len(name) + len(value)
        if self.headers > MAX_HEADERS:
            raise Failed("the response has too many headers")

    def on_body(self, data: bytes) -> None:
        self.body += data
        if len(self.body) > MAX_ANSWER:
            raise Failed(f"the response is longer than {MAX_ANSWER} bytes")

    def on_message_complete(self) -> None:
        self.done = True


async def _read(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    response = _Response()
    parser = httptools.HttpResponseParser(response)
    taken = 0
    while not response.done:
        data = await reader.read(CHUNK)
        if not data:
            break
        taken += len(data)
        if taken > MAX_ANSWER + MAX_HEADERS:
            raise Failed(f"the response is longer than {MAX_ANSWER} bytes")
        try:
            parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:
            raise error.__context__ if isinstance(error.__context__, Failed) else error from None
    if not taken:
        raise Failed("EOF")
    return parser.get_status_code(), bytes(response.body)
