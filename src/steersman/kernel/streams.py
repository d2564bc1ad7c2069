"""The nouns of the port NodeStreams: which container is meant, which part of a log, the streams of a session."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import NamedTuple, Protocol

from steersman.kernel.object import Object


class Target(NamedTuple):
    """A container of a pod ("" for the pod itself). `changes` gives the later versions of this pod, one after the other
    (some may be left out), and ends when it is gone."""

    pod: Object
    container: str
    changes: Callable[[], AsyncIterator[Object]]


class Site(NamedTuple):
    """A node itself. `pods` gives those that are bound to it now."""

    node: Object
    pods: Callable[[], Iterable[Object]]


class LogQuery(NamedTuple):
    """Which part of a container's log."""

    follow: bool = False
    previous: bool = False
    """The log of the container before its last restart."""
    timestamps: bool = False
    since: int | None = None
    """Only lines from then on; microseconds since the epoch."""
    tail: int | None = None
    """Only so many of the last lines, before others come in."""
    limit: int | None = None
    """Only so many bytes, timestamps included."""


class Streams(Protocol):
    """The streams of a command, as its side sees them. Once the client has gone, the session is cancelled."""

    def read(self) -> Awaitable[bytes]:
        """Some of the input; b"" at its end, at once where the client sends none."""

    def write(self, data: bytes) -> Awaitable[None]:
        """Standard output. Returns when the client's side has room for more; not sent where it did not ask for it."""

    def error(self, data: bytes) -> Awaitable[None]:
        """Standard error; with a terminal it is the same as standard output."""

    def resized(self) -> Awaitable[tuple[int, int]]:
        """The next size of the terminal: columns, rows."""


class Duplex(Protocol):
    """Both directions of a forwarded connection."""

    def read(self) -> Awaitable[bytes]:
        """Some bytes from the client; b"" when it has closed its direction."""

    def write(self, data: bytes) -> Awaitable[None]:
        """Bytes for the client."""


Session = Callable[[Streams], Awaitable[int]]
"""Runs a command on the client's streams; returns its exit code. Cancelled when the client goes away."""

Tunnel = Callable[[Duplex], Awaitable[None]]
"""Carries a forwarded connection until the port's side closes it. Cancelled when the client goes away."""
