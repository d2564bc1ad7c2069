"""The reading half of a connection: bytes in, whole requests or a refusal out. No sockets, no clock.

Parsing is llhttp's, through httptools, in its strict mode.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Protocol
from urllib.parse import unquote

import httptools

from steersman.serve.limits import Limits
from steersman.serve.message import MAX_QUERY_FIELDS, Headers, Request, Response, status_response

# What is being read. FRESH (a new connection) and IDLE have no byte of a request yet.
FRESH, IDLE, HEAD, BODY = "fresh", "idle", "head", "body"

# Protocols that a connection can be handed over to, as the Upgrade header names them in lower case. Others (Java's h2c)
# are passed over.
UPGRADES = frozenset({"websocket", "spdy/3.1"})


class Sink(Protocol):
    """Who takes what the Reader finds."""

    def take(self, item: Request | Response) -> None:
        """A request; or the error response to input that is none, after which nothing is read."""

    def reading(self, phase: str) -> None:
        """The phase has changed to HEAD or BODY."""

    def expects_continue(self) -> None:
        """The client waits for a 100 before it sends the body."""


Screen = Callable[[Request], Response | None]
"""Judges a request by its head, before its body is read: the refusal, or None."""


class _Breach(Exception):
    """Raised in a parser callback to stop the parser; carries the answer."""

    def __init__(self, response: Response) -> None:
        self.response = response


def _breach(code: int, message: str) -> _Breach:
    return _Breach(status_response(code, message))


@lru_cache(maxsize=256)  # clients use few names; with the limit on a head these are some megabytes at most
def _name(name: bytes) -> str:
    return name.decode("latin-1").lower()


class Reader:
    """`on_*` are called by the parser, within `feed`.

    The parser holds them and is not seen by the cycle collector, so whoever is done with a Reader calls
    `release`.
    """

    def __init__(
        self,
        limits: Limits,
        sink: Sink,
        peer: tuple[str, int] | None = None,
        certificate: bytes | None = None,
        screen: Screen | None = None,
    ) -> None:
        self._limits = limits
        self._screen = screen
        self._sink = sink
        self._peer = peer
        self._certificate = certificate
        self._parser: httptools.HttpRequestParser | None = httptools.HttpRequestParser(self)
        self.phase = FRESH
        self.closed = False
        self.held = False
        """A request asked to change protocols. What follows it is not parsed: it may be another protocol's, and so is
        no request even if the change is refused."""
        self._serial = 0
        self._body_only = False
        self._reset()

    def _reset(self) -> None:
        self._target = b""
        self._headers: list[tuple[str, str]] = []
        self._header_size = 0
        self._header_lines = 0
        self._head_fed = 0
        self._head_done = False
        self._body: bytes | bytearray = b""
        self._body_size = 0

    def release(self) -> None:
        self.closed = True
        self._parser = None

    def refuse(self, response: Response) -> None:
        """Stop reading; `response` is the last thing the sink gets."""
        if not self.closed:
            self.closed = True
            self._sink.take(response)

    def feed(self, data: bytes) -> bytes:
        """Parse. Returns input that was left, to be fed again before anything else."""
        if self.closed or self._parser is None:
            return b""
        if self.held:
            return data
        unfinished, serial = self.phase == HEAD, self._serial
        left = b""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            left = self._take_upgrade(data[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            cause = error.__context__
            if isinstance(cause, _Breach):
                self.refuse(cause.response)
            elif isinstance(error, httptools.HttpParserCallbackError) and cause is not None:
                raise cause from None
            else:
                self.refuse(status_response(400, f"malformed HTTP request: {error}"))
        if unfinished and self.phase == HEAD and self._serial == serial:
            # A header line still without its end is invisible to the callbacks and to their exact limit.
            self._head_fed += len(data)
            if self._head_fed > self._limits.header_bytes + self._limits.target_bytes:
                self.refuse(status_response(431, self._too_many_headers()))
        return left

    def _take_upgrade(self, rest: bytes) -> bytes:
        """A request that asked to change protocols, and what came behind it. One with a body, or that asks for what we
        do not speak, is treated as an ordinary one, as RFC 9110 §7.8 lets us.

        llhttp leaves the body of such a request unparsed. Java's clients put one on `Upgrade: h2c`, so a
        stand-in head makes the parser read it.
        """
        headers = Headers(self._headers)
        length, coding = headers.get("content-length"), headers.get("transfer-encoding")
        if coding or length not in ("", "0"):
            framing = f"transfer-encoding: {coding}" if coding else f"content-length: {length}"
            self._body_only = True
            return f"POST / HTTP/1.1\r\n{framing}\r\n\r\n".encode("latin-1") + rest
        asked = headers.all("upgrade")
        if len(asked) == 1 and asked[0].lower() in UPGRADES and self._http11 and self._keep_alive:
            self.held = True
            self._complete(asked[0].lower())
        else:
            self._complete()
        return rest

    # -- parser callbacks

    def on_message_begin(self) -> None:
        if not self._body_only:
            self._reset()
            self._serial += 1
            self._enter(HEAD)

    def on_url(self, url: bytes) -> None:
        if self._body_only:
            return
        self._target += url
        if len(self._target) > self._limits.target_bytes:
            raise _breach(414, f"the request target is over {self._limits.target_bytes} bytes")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_size += len(name) + len(value) + 4  # ": " and CRLF
        self._header_lines += 1
        if self._header_size > self._limits.header_bytes or self._header_lines > self._limits.header_lines:
            raise _breach(431, self._too_many_headers())
        if not self._head_done:  # a trailer after a chunked body must never pass for a header
            self._headers.append((_name(name), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        if self._body_only:
            self._body_only = False
            return
        assert self._parser is not None
        version = self._parser.get_http_version()
        if version not in ("1.1", "1.0"):
            raise _breach(505, f"HTTP/{version} is not spoken here; use HTTP/1.1")
        self._http11 = version == "1.1"
        self._keep_alive = self._parser.should_keep_alive()
        self._method = self._parser.get_method().decode("latin-1")
        self._head_done = True
        self._check_target()
        self._check_headers()
        self._enter(BODY)

    def on_body(self, body: bytes) -> None:
        self._body_size += len(body)
        if self._body_size > self._limits.body_bytes:
            raise _breach(413, self._too_large())
        if not self._body:
            self._body = body
        else:
            if isinstance(self._body, bytes):
                self._body = bytearray(self._body)
            self._body += body

    def on_message_complete(self) -> None:
        assert self._parser is not None
        if not self._parser.should_upgrade():  # otherwise feed does it, which knows where the rest begins
            self._complete()

    # -- steps

    def _enter(self, phase: str) -> None:
        self.phase = phase
        self._sink.reading(phase)

    def _check_target(self) -> None:
        target = self._target
        if not target.startswith(b"/"):
            scheme, found, after = target.partition(b"://")  # the form proxies use, RFC 9112 §3.2.2
            if not found or scheme.lower() not in (b"http", b"https"):
                raise _breach(400, "the request target must be a path")
            self._target = b"/" + after.partition(b"/")[2]
        if target.count(b"&") >= MAX_QUERY_FIELDS:
            raise _breach(400, f"the query has over {MAX_QUERY_FIELDS} parameters")

    def _check_headers(self) -> None:
        hosts = announced = 0
        expected = ""
        for name, value in self._headers:
            if name == "host":
                hosts += 1
            elif name == "content-length":
                announced = int(value.lstrip("0") or "0")  # only digits; with any number of zeros before them
                if announced > self._limits.body_bytes:
                    raise _breach(413, self._too_large())
            elif name == "transfer-encoding":
                announced = self._limits.body_bytes
                if value.strip().lower() != "chunked":  # RFC 9112 §6.1
                    raise _breach(501, "the only transfer coding understood is chunked")
            elif name == "expect":
                expected = value.lower()
        if announced > self._limits.unscreened_bytes and self._screen is not None:
            refusal = self._screen(self._request(""))
            if refusal is not None:
                raise _Breach(refusal)
        if not self._http11:
            return
        if hosts != 1:  # RFC 9112 §3.2
            raise _breach(400, "an HTTP/1.1 request needs exactly one Host header")
        if expected == "100-continue":
            self._sink.expects_continue()
        elif expected:
            raise _breach(417, "the only expectation understood is 100-continue")

    def _complete(self, upgrade: str = "") -> None:
        request = self._request(upgrade)
        self.phase = IDLE
        self._body = b""
        if not self._keep_alive:
            self.closed = True
        self._sink.take(request)

    def _request(self, upgrade: str) -> Request:
        raw_path, _, raw_query = self._target.decode("ascii", "replace").partition("?")
        return Request(
            method=self._method,
            path=unquote(raw_path) if "%" in raw_path else raw_path,
            raw_path=raw_path,
            raw_query=raw_query,
            headers=Headers(self._headers),
            body=bytes(self._body),
            peer=self._peer,
            peer_certificate=self._certificate,
            http11=self._http11,
            keep_alive=self._keep_alive,
            upgrade=upgrade,
        )

    def _too_large(self) -> str:
        return f"the request body is over {self._limits.body_bytes} bytes"

    def _too_many_headers(self) -> str:
        return f"the request headers are over {self._limits.header_bytes} bytes or {self._limits.header_lines} lines"
