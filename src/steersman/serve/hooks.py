"""Calls webhooks: HTTPS, one request a connection, with limits on time and size; redirects are not followed."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import ssl
import uuid
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

import httptools
import orjson

from steersman.api.admission.hook import MAX_TIMEOUT, Hook
from steersman.serve.asking import unanswered

MAX_ANSWER: Final = 3 << 20
"""Bytes of an answer: as many as a request may have."""
MAX_HEADERS: Final = 64 << 10
CHUNK: Final = 64 << 10
HTTPS: Final = 443
SERVICES: Final = 1024
"""Services whose turn is remembered; then all begin anew."""
SHOWN: Final = 200
"""Characters of an error page that are repeated."""


class Failed(Exception):
    """A call that came to nothing; the text says why."""


class Hooks:
    """Answers the Calls "webhook" and "convert": a list, an answer for each Hook of the question."""

    def __init__(self) -> None:
        self._turns: dict[str, int] = {}

    async def call(self, kind: str, question: tuple[Hook, ...]) -> list[dict[str, Any]]:
        """The answers, in the order of the question."""
        return list(await asyncio.gather(*[_answer(kind, hook, self._next(hook)) for hook in question]))

    def _next(self, hook: Hook) -> str:
        """HOST:PORT to connect to, where that is not the URL's own: the endpoints of a service take turns."""
        if len(hook.addresses) < 2:
            return hook.addresses[0] if hook.addresses else ""
        turn = self._turns.get(hook.host, -1) + 1
        if len(self._turns) >= SERVICES:
            self._turns.clear()
        self._turns[hook.host] = turn
        return hook.addresses[turn % len(hook.addresses)]


async def _answer(kind: str, hook: Hook, address: str) -> dict[str, Any]:
    if hook.fault:
        return unanswered(hook.fault)
    seconds = min(max(hook.timeout, 1), MAX_TIMEOUT)
    query = "" if kind == "convert" else f"?timeout={seconds}s"  # a conversion is not told its time
    where = f'Post "{hook.url}{query}"'
    try:
        async with asyncio.timeout(seconds):
            return await _ask(hook, query, address)
    except TimeoutError:
        return unanswered(f"{where}: context deadline exceeded", True)
    except Failed as failure:
        return unanswered(str(failure))
    except ssl.SSLCertVerificationError as error:
        return unanswered(f"{where}: tls: failed to verify certificate: {error.verify_message}")
    except (OSError, ssl.SSLError, UnicodeError, httptools.HttpParserError) as error:
        return unanswered(f"{where}: {error.strerror if isinstance(error, OSError) and error.strerror else error}")


async def _ask(hook: Hook, query: str, address: str) -> dict[str, Any]:
    """One exchange. Raises `Failed`, and what connections raise."""
    uid = str(uuid.uuid4())
    review = {**hook.review, "request": {**hook.review["request"], "uid": uid}}
    parts = urlsplit(hook.url)
    place = urlsplit(f"//{address}") if address else parts
    host, port = place.hostname or "", place.port or HTTPS
    reader, writer = await asyncio.open_connection(
        host, port, ssl=_context(hook.ca_bundle), server_hostname=hook.host, limit=CHUNK
    )
    try:
        body = orjson.dumps(review)
        head = (
            f"POST {parts.path or '/'}{query} HTTP/1.1\r\nHost: {parts.netloc}\r\n"
            "Content-Type: application/json\r\nAccept: application/json, */*\r\nUser-Agent: steersman-admission\r\n"
            f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode("ascii") + body)
        await writer.drain()
        status, answer = await _read(reader)
    finally:
        writer.transport.abort()
    return _checked(status, answer, "" if review["apiVersion"].endswith("/v1beta1") else uid)


@lru_cache(maxsize=256)
def _context(ca_bundle: str) -> ssl.SSLContext:
    """A context that trusts a bundle (PEM in base64), or the system's authorities for ""."""
    if not ca_bundle:
        return ssl.create_default_context()
    try:
        pem = base64.b64decode(ca_bundle, validate=True).decode("ascii")
        return ssl.create_default_context(cadata=pem)
    except (binascii.Error, UnicodeDecodeError, ssl.SSLError, ValueError) as error:
        raise Failed(f"unable to load root certificates: {error}; write PEM in base64 into caBundle") from None


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
    """Status and body."""
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


def _checked(status: int, body: bytes, uid: str) -> dict[str, Any]:
    """The review of an answer; `uid`: what it must repeat, "" for reviews of old that need not. Raises `Failed`."""
    if status == 404:
        raise Failed("the server could not find the requested resource")
    if not 200 <= status < 300:
        shown = json.dumps(body[:SHOWN].decode("utf-8", "replace").strip() or "unknown")
        raise Failed(f"an error on the server ({shown}) has prevented the request from succeeding")
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Failed(f"couldn't get version/kind; json parse error: {error}") from None
    if not isinstance(answer, dict):
        raise Failed("couldn't get version/kind; json parse error: the answer is no object")
    response = answer.get("response")
    if uid and isinstance(response, Mapping) and response.get("uid") != uid:
        raise Failed(f"expected response.uid={json.dumps(uid)}, got {json.dumps(response.get('uid') or '')}")
    return answer
