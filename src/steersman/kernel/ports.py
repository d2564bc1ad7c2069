"""Ports: the only seams between the kernel and the outside. Faces and tests bring the other side.

| | Clock | Nodes | Journal | Caller |
|---|---|---|---|---|
| check | asynchronous: part of the World | Actions | the Schedule of a failure | models |
| simulate | virtual, jumps to the next deadline | virtual kubelets | the Schedule | models |
| run | wall | virtual kubelets; real ones later | durable log | webhooks and drivers |
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from typing import Any, Protocol

from steersman.kernel.streams import LogQuery, Session, Site, Target, Tunnel


class Clock(Protocol):
    """Where `now` comes from."""

    def now(self) -> int:
        """Microseconds since the Unix epoch; never goes back."""


class Caller(Protocol):
    """Answers the Calls that are not the kernel's own: webhooks, conversions, external systems."""

    def call(self, kind: str, question: Any) -> Any:
        """The answer; an exception is the failure of the call."""


class Signer(Protocol):
    """Signs what must be signed: certificate requests, service account tokens."""

    def sign(self, kind: str, payload: bytes) -> str:
        """The signed document as text. `kind` "token": claims as JSON, to a token; "certificate": a request as JSON
        (`api.certificates`), to PEM. Raises `ApiError` for what it cannot sign."""


class Nodes(Protocol):
    """Runs pods on nodes."""

    def observe(self, node: str) -> Sequence[Any]:
        """What changed on a node since the last call, as status edges in order."""


class NodeStreams(Protocol):
    """What the node of a pod answers: logs, exec, attach, port-forward; and what it answers on its own ports.

    Every call has two steps, as an HTTP upgrade has: awaiting it raises `Refused` (`api.errors`) while the client can
    still be told so by a status code; what it returns is the session itself.
    """

    def logs(self, target: Target, query: LogQuery) -> Awaitable[AsyncIterator[bytes]]:
        """A container's output, chosen by `query`. With `follow` it goes on until the container ends."""

    def execute(self, target: Target, command: Sequence[str], tty: bool) -> Awaitable[Session]:
        """Starts a command in a container."""

    def attach(self, target: Target, tty: bool) -> Awaitable[Session]:
        """Joins the streams of a container's first process."""

    def forward(self, target: Target, port: int) -> Awaitable[Tunnel]:
        """A connection to a port of a pod; `target.container` is ""."""

    def dial(self, site: Site, port: int) -> Awaitable[Tunnel]:
        """A connection to a port of the node itself; its kubelet listens on 10250."""


class Host(Protocol):
    """A guest controller beside the World: it can only be restarted and driven again."""

    def restart(self) -> None:
        """Kills it and starts it from nothing."""


class Journal(Protocol):
    """The durable log. Appending is conditional on (epoch, head): there is one writer at a time."""

    def acquire(self, holder: str) -> int:
        """Takes the writer's lease; returns its epoch. Writers of older epochs are fenced from now on."""

    def append(self, epoch: int, expected_head: int, records: Sequence[Any]) -> int:
        """Appends a group and makes it durable; returns the new head. Raises when fenced or when the head moved."""

    def read(self, after: int, limit: int | None = None) -> Iterator[Any]:
        """Records behind a revision, oldest first."""
