"""Calls webhooks: HTTPS, one request a connection, with limits on time and size; redirects are not followed."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import ssl
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from steersman.api.admission.hook import MAX_TIMEOUT, Hook
from steersman.serve.asking import unanswered
from steersman.serve.outgoing import HTTPS, Failed, Malformed, exchanged, trusting
from steersman.serve.random_uuid import random_uuid

SERVICES: Final = 1024
"""Services whose turn is remembered; then all begin anew."""
SHOWN: Final = 200
"""Characters of an error page that are repeated."""


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
    except Malformed as failure:
        return unanswered(f"{where}: {failure}")
    except Failed as failure:
        return unanswered(str(failure))
    except ssl.SSLCertVerificationError as error:
        return unanswered(f"{where}: tls: failed to verify certificate: {error.verify_message}")
    except (OSError, ssl.SSLError, UnicodeError) as error:
        return unanswered(f"{where}: {error.strerror if isinstance(error, OSError) and error.strerror else error}")


async def _ask(hook: Hook, query: str, address: str) -> dict[str, Any]:
    """One exchange. Raises `Failed`, and what connections raise."""
    uid = random_uuid()
    review = {**hook.review, "request": {**hook.review["request"], "uid": uid}}
    parts = urlsplit(hook.url)
    place = urlsplit(f"//{address}") if address else parts
    body = orjson.dumps(review)
    head = (
        f"POST {parts.path or '/'}{query} HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        "Content-Type: application/json\r\nAccept: application/json, */*\r\nUser-Agent: steersman-admission\r\n"
        f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    sent = head.encode("ascii") + body
    status, answer = await exchanged(
        place.hostname or "", place.port or HTTPS, sent, _context(hook.ca_bundle), hook.host
    )
    return _checked(status, answer, "" if review["apiVersion"].endswith("/v1beta1") else uid)


def _context(ca_bundle: str) -> ssl.SSLContext:
    """A context that trusts a bundle (PEM in base64), or the system's authorities for ""."""
    try:
        return trusting(base64.b64decode(ca_bundle, validate=True).decode("ascii"))
    except (binascii.Error, UnicodeDecodeError, ssl.SSLError, ValueError) as error:
        raise Failed(f"unable to load root certificates: {error}; write PEM in base64 into caBundle") from None


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
