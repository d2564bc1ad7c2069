"""Requests and responses as handlers see them, free of sockets and of asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl

import orjson

from steersman.serve.streams.pipe import Pipe

# A list with both selectors, limit, continue and the watch switches uses about ten parameters; a thousand
# is far beyond any client and bounds what one target can cost to split.
MAX_QUERY_FIELDS = 1000

# Names the connection writes itself: framing belongs to whoever knows how the body is sent.
_FRAMING = frozenset({"connection", "content-length", "date", "keep-alive", "transfer-encoding"})

# The machine-readable reasons of meta/v1 Status (apimachinery, pkg/apis/meta/v1/types.go). Codes that have
# no reason there (408, 414, 417, 431, 505) leave the field out, as a Go server does.
_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    413: "RequestEntityTooLarge",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}


class Headers:
    """The header lines of a request, in order, names in lower case.

    Values are decoded as latin-1, which maps every byte to one character: nothing a client sent is lost, and
    `value.encode("latin-1")` gives the bytes back.
    """

    __slots__ = ("_joined", "pairs")

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        self.pairs = list(pairs)
        self._joined: dict[str, str] | None = None

    def get(self, name: str, default: str = "") -> str:
        """The value of `name` (lower case); repeated lines are joined by ", " (RFC 9110 §5.2)."""
        joined = self._joined
        if joined is None:
            joined = self._joined = dict(self.pairs)
            if len(joined) < len(self.pairs):
                for key in joined:
                    joined[key] = ", ".join(self.all(key))
        return joined.get(name, default)

    def all(self, name: str) -> list[str]:
        """Every value of `name` (lower case), one for each line."""
        return [value for key, value in self.pairs if key == name]

    def __contains__(self, name: object) -> bool:
        return any(key == name for key, _ in self.pairs)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    def __repr__(self) -> str:
        # Values may be credentials, and a repr ends in logs and in test output.
        return f"Headers({[name for name, _ in self.pairs]})"


class Query:
    """The parameters of a request target: an ordered multi-dict, blank values kept.

    Raises ValueError when the query has more than MAX_QUERY_FIELDS fields.
    """

    __slots__ = ("pairs",)

    def __init__(self, raw: str = "") -> None:
        self.pairs: list[tuple[str, str]] = (
            parse_qsl(raw, keep_blank_values=True, max_num_fields=MAX_QUERY_FIELDS) if raw else []
        )

    def get(self, name: str, default: str = "") -> str:
        """The first value of `name`, as Go's url.Values.Get gives it."""
        for key, value in self.pairs:
            if key == name:
                return value
        return default

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.pairs if key == name]

    def flag(self, name: str) -> bool:
        """A Kubernetes boolean: absent, "0" and "false" in any case are false, all else is true, "" too.

        Source: apimachinery pkg/runtime/converter.go, Convert_Slice_string_To_bool. `watch=true`,
        `watch=True` and `watch=1` are all in use.
        """
        values = self.all(name)
        return bool(values) and values[0] != "0" and values[0].lower() != "false"

    def __contains__(self, name: object) -> bool:
        return any(key == name for key, _ in self.pairs)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.pairs)

    def __repr__(self) -> str:
        return f"Query({self.pairs!r})"


@dataclass(slots=True, eq=False)
class Request:
    """One complete request.

    `path` is percent-decoded, so an encoded slash in it looks like any other; a router that must tell the
    two apart splits `raw_path` first. `body` is whole: its size is bounded by Limits.body_bytes.
    `peer_certificate` is the DER of a client certificate that the TLS handshake has verified, else None.
    """

    method: str
    path: str
    raw_path: str = ""
    raw_query: str = ""
    headers: Headers = field(default_factory=Headers)
    body: bytes = field(default=b"", repr=False)
    peer: tuple[str, int] | None = None
    peer_certificate: bytes | None = field(default=None, repr=False)
    http11: bool = True
    keep_alive: bool = True
    upgrade: str = ""
    """The protocol that the client asks to change to, in lower case, where that can be granted: a Response with a
    `takeover` answers it. Such a connection serves no further request."""
    known: bool = False
    """Whether it turned out to be somebody's whom the server knows."""
    labels: tuple[str, ...] = ()
    """What the request turned out to ask for, as it is counted (`telemetry.Asked`)."""
    trail: Any = field(default=None, repr=False)
    """Where what becomes of it is noted (`audit.trail.Trail`); None when nobody writes it down."""
    audit_id: str = ""
    """What the audit log and the answer call it."""
    _query: Query | None = field(default=None, repr=False)

    @property
    def query(self) -> Query:
        """The parsed query, kept. Raises ValueError as Query does."""
        if self._query is None:
            self._query = Query(self.raw_query)
        return self._query


@dataclass(slots=True, eq=False)
class Response:
    """What a handler answers.

    An iterator as `body` is sent chunked, one chunk for each item (yield several watch events at once: that
    is worth more than anything else, reference measurements 4-7x), and is always closed by `aclose()`:
    at its end, when the client goes away, and at shutdown. A generator that was never started runs no
    `finally`, so what it must release is acquired inside it.

    `endless` tells what shutdown does to an iterator: an endless one (a watch) is ended at once and cleanly,
    which its clients take for an ordinary timeout; a finite one may finish within the grace and is broken
    off visibly after it.
    """

    status: int = 200
    headers: Iterable[tuple[str, str]] | Mapping[str, str] = ()
    body: bytes | AsyncIterator[bytes] = b""
    endless: bool = True
    length: int | None = None
    """Bytes of an iterator's items in all, where that is known: they are sent as they are, not chunked."""
    offer: Callable[[Callable[[bytes], bool]], None] | None = None
    """Told, before an iterator begins, how it may send an item that it has not been asked for, while it is waiting to
    give one: what that answers is whether the client has read enough for it to be sent. Not told where it may not."""
    takeover: Callable[[Pipe], Awaitable[None]] | None = None
    """With status 101: the session that the connection's bytes are handed over to. It is cancelled when the client goes
    away and at shutdown; as with iterators, what it must release is acquired inside it."""
    _head: bytes | None = field(default=None, init=False, repr=False)


def status_response(code: int, message: str, *, headers: Iterable[tuple[str, str]] = ()) -> Response:
    """An error as a Kubernetes `Status` object (failure), the only form clients parse."""
    status: dict[str, object] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "code": code,
    }
    if reason := _REASONS.get(code):
        status["reason"] = reason
    body = orjson.dumps(status)
    return Response(code, (("content-type", "application/json"), *headers), body)


def response_head(response: Response) -> bytes:
    """Status line and the handler's own headers, without the framing ones and without the blank line; kept, because it
    is asked for twice: before anything is sent, and to be sent.

    Raises ValueError for a status outside 200..599, or a header that would break out of its line.
    """
    if response._head is None:
        headers = response.headers
        items = headers if type(headers) is tuple or not isinstance(headers, Mapping) else headers.items()
        lines = [_line(name, value) for name, value in items]
        response._head = _status_line(response.status) + b"".join(lines)
    return response._head


@lru_cache(maxsize=64)
def _status_line(status: int) -> bytes:
    if not 200 <= status <= 599 and status != 101:
        raise ValueError(f"response status {status} is neither 101 nor in 200..599")
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Unknown"
    return f"HTTP/1.1 {status} {phrase}\r\n".encode()


@lru_cache(maxsize=256)  # answers repeat few lines; their ids, ETags and the like fall out at the old end
def _line(name: str, value: str) -> bytes:
    is_ours = _is_framing(name)
    if not value.isprintable() and not _FORBIDDEN.isdisjoint(value):
        raise ValueError(f"response header {name} has a control character in its value")
    return b"" if is_ours else f"{name}: {value}\r\n".encode()


@lru_cache(maxsize=256)
def _is_framing(name: str) -> bool:
    if not name or not set(name) <= TOKEN:
        raise ValueError(f"response header name {name!r} is not a token")
    return name.lower() in _FRAMING


# RFC 9110 §5.6.2 and §5.5.
TOKEN = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_FORBIDDEN = frozenset("\r\n\0")
