"""The HTTP server: listens, accepts, keeps deadlines, shuts down. One call: `serve`."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import socket
import ssl as tls
from collections.abc import Sequence
from types import TracebackType

from steersman.serve.connection import Connection
from steersman.serve.hub import Handler, Hub
from steersman.serve.limits import Limits
from steersman.serve.message import Headers, Query, Request, Response, status_response

__all__ = [
    "Handler",
    "Headers",
    "Limits",
    "ListenError",
    "Query",
    "Request",
    "Response",
    "Server",
    "serve",
    "status_response",
]

log = logging.getLogger("steersman.serve.http")

# Pending connections the kernel holds between two turns of the loop; it cuts this to its own maximum.
BACKLOG = 1024
# Connections over the limit that are told so by a 503; with TLS each costs a handshake. Beyond, just closed.
REFUSALS = 64
# Deadlines are looked at this often: finer than any limit, and 5,000 connections take about 1 ms.
SWEEP_SECONDS = 0.2
# Without file descriptors, accepting again at once would only spin.
ACCEPT_RETRY_SECONDS = 0.5
HANDSHAKE_SECONDS = 10.0
# With port 0 and several addresses, the port free on the first may be taken on the second.
FREE_PORT_ATTEMPTS = 10
# Tasks of aborted connections still in their `finally` at shutdown.
ABORT_SECONDS = 1.0
# Dead peers of a quiet watch are noticed by TCP probes, as kube-apiserver does it: after 3 minutes.
KEEPALIVE = {"TCP_KEEPIDLE": 90, "TCP_KEEPINTVL": 30, "TCP_KEEPCNT": 3}


class ListenError(OSError):
    """An address cannot be listened on. The text names the address and what to do."""

    def __init__(self, text: str, code: int | None = None) -> None:
        super().__init__(text)  # one argument: the text stays free of "[Errno 98]"
        self.errno = code


class Server:
    """A running server, made by `serve`. As a context manager it closes at the end of the block."""

    def __init__(self, hub: Hub, sockets: list[socket.socket], ssl: tls.SSLContext | None) -> None:
        self._hub = hub
        self._sockets = sockets
        self._ssl = ssl
        self._handshakes: set[asyncio.Task[None]] = set()
        self._closed: asyncio.Task[None] | None = None
        self.addresses: list[tuple[str, int]] = [sock.getsockname()[:2] for sock in sockets]
        create = hub.loop.create_task
        self._tasks = [create(self._accept(sock)) for sock in sockets] + [create(self._sweep())]

    @property
    def port(self) -> int:
        return self.addresses[0][1]

    @property
    def url(self) -> str:
        host, port = self.addresses[0]
        scheme = "https" if self._ssl else "http"
        return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"

    @property
    def connections(self) -> int:
        """Open connections, those in their TLS handshake included."""
        return len(self._hub.connections)

    async def close(self, grace: float | None = None) -> None:
        """Stop accepting, end endless streams at once, let requests finish for `grace` seconds, cut the rest.

        Returns when no connection and no task of the server is left, at the latest ABORT_SECONDS after the
        grace (default Limits.grace_seconds). Safe to call more than once; a cancelled caller does not stop it.
        """
        if self._closed is None:
            seconds = self._hub.limits.grace_seconds if grace is None else grace
            self._closed = self._hub.loop.create_task(self._shut_down(seconds))
        await asyncio.shield(self._closed)

    async def _shut_down(self, grace: float) -> None:
        hub = self._hub
        hub.draining = True
        accepting, sweeping = self._tasks[:-1], self._tasks[-1]
        for task in [*accepting, *self._handshakes]:
            task.cancel()
        await asyncio.gather(*accepting, *self._handshakes, return_exceptions=True)
        for sock in self._sockets:
            sock.close()
        for connection in list(hub.connections):
            connection.drain()
        if not await self._emptied(grace):
            log.info("cutting %d connections that outlived the grace of %.1f s", self.connections, grace)
            for connection in list(hub.connections):
                connection.abort()
            if not await self._emptied(ABORT_SECONDS):
                log.warning("%d connections did not end when cut; their handlers hang", self.connections)
        sweeping.cancel()
        await asyncio.gather(sweeping, return_exceptions=True)

    async def _emptied(self, seconds: float) -> bool:
        if not self._hub.connections:
            return True
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._hub.empty.wait(), seconds)
        return not self._hub.connections

    async def __aenter__(self) -> Server:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                sock, _ = await self._hub.loop.sock_accept(listener)
            except OSError as error:
                if error.errno != errno.ECONNABORTED:  # that one died before it was accepted
                    remedy = "; raise the limit on open files (ulimit -n)" if error.errno == errno.EMFILE else ""
                    log.warning("cannot accept connections: %s%s", error.strerror, remedy)
                    await asyncio.sleep(ACCEPT_RETRY_SECONDS)
                continue
            if len(self._hub.connections) >= self._hub.limits.connections + REFUSALS:
                sock.close()
            else:
                self._attach(sock)
            await asyncio.sleep(0)  # a full backlog is taken without a pause otherwise

    def _attach(self, sock: socket.socket) -> None:
        """Begin a connection on an accepted socket; with TLS the handshake comes first."""
        hub = self._hub
        refusal = None
        if len(hub.strangers) >= hub.limits.strangers:
            hub.make_room()
        if len(hub.connections) >= hub.limits.connections:
            message = f"the server has its {hub.limits.connections} connections; try again later"
            refusal = status_response(503, message, headers=[("retry-after", "1")])
        connection = Connection(hub, refusal)
        hub.add(connection)

        def attached(task: asyncio.Task[None]) -> None:
            self._handshakes.discard(task)
            error = None if task.cancelled() else task.exception()
            if error is None and not task.cancelled():
                return
            # A failed handshake is the client's affair: another CA, plain HTTP, a port scan.
            log.debug("handshake failed: %s", error)
            if error is not None and not isinstance(error, OSError):
                log.error("a connection could not be set up", exc_info=error)
            sock.close()
            hub.forget(connection)

        task = hub.loop.create_task(self._shake_hands(sock, connection))
        connection.handshake = task
        self._handshakes.add(task)
        task.add_done_callback(attached)

    async def _shake_hands(self, sock: socket.socket, connection: Connection) -> None:
        _keep_alive(sock)
        timeout = HANDSHAKE_SECONDS if self._ssl else None
        await self._hub.loop.connect_accepted_socket(
            lambda: connection,
            sock,
            ssl=self._ssl,
            ssl_handshake_timeout=timeout,
            ssl_shutdown_timeout=timeout,  # never reached: the connection aborts sooner
        )

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            now = self._hub.loop.time()
            for connection in list(self._hub.connections):
                connection.sweep(now)


async def serve(
    handler: Handler,
    host: str | Sequence[str] = "127.0.0.1",
    port: int = 0,
    ssl: tls.SSLContext | None = None,
    limits: Limits = Limits(),  # noqa: B008 - frozen
) -> Server:
    """Listen and answer with `handler` until the Server is closed.

    Several hosts (or a name with several addresses) share one port; port 0 takes a free one. The handler is
    a coroutine function from Request to Response and runs once at a time for each connection. Its task is
    cancelled when the client goes away. Raises ListenError.
    """
    loop = asyncio.get_running_loop()
    hosts = [host] if isinstance(host, str) else list(host)
    sockets = await _listen(loop, hosts, port)
    hub = Hub(handler, limits, loop, screen=getattr(handler, "screen", None))
    return Server(hub, sockets, ssl)


async def _listen(loop: asyncio.AbstractEventLoop, hosts: list[str], port: int) -> list[socket.socket]:
    groups: list[list[tuple[int, str]]] = []
    for host in hosts:  # "127.0.0.1" and "localhost" are one address
        known = {address for group in groups for address in group}
        groups.append([address for address in await _resolve(loop, host, port) if address not in known])
    attempts = 1 if port else FREE_PORT_ATTEMPTS
    while True:
        attempts -= 1
        sockets: list[socket.socket] = []
        try:
            for group in groups:
                _bind_group(group, port, sockets)
            return sockets
        except ListenError as error:
            for sock in sockets:
                sock.close()
            if error.errno != errno.EADDRINUSE or attempts <= 0:
                raise


async def _resolve(loop: asyncio.AbstractEventLoop, host: str, port: int) -> list[tuple[int, str]]:
    try:
        found = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        raise ListenError(f"cannot listen on {host!r}: {error.strerror}; use an address of this host") from None
    return list(dict.fromkeys((family, str(address[0])) for family, _, _, _, address in found))


def _bind_group(group: list[tuple[int, str]], port: int, sockets: list[socket.socket]) -> None:
    """Bind the addresses of one host name, adding to `sockets`. One that this machine lacks (`localhost` often
    names ::1 where IPv6 is off) is passed over if another is there."""
    missing: ListenError | None = None
    bound = len(sockets)
    for family, address in group:
        try:
            chosen = port or (sockets[0].getsockname()[1] if sockets else 0)
            sockets.append(_bind(family, address, chosen))
        except ListenError as error:
            if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                raise
            missing = error
    if missing is not None and len(sockets) == bound:
        raise missing


def _bind(family: int, address: str, port: int) -> socket.socket:
    remedies = {
        errno.EADDRINUSE: "stop the other program or choose another port",
        errno.EACCES: "choose a port above 1023 or run with the right to use this one",
        errno.EADDRNOTAVAIL: "use an address of this host",
    }
    sock = None
    try:
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind((address, port))
        sock.listen(BACKLOG)
        return sock
    except OSError as error:
        if sock is not None:
            sock.close()
        remedy = remedies.get(error.errno or 0, "choose another address")
        text = f"cannot listen on {address} port {port}: {os.strerror(error.errno or 0)}; {remedy}"
        raise ListenError(text, error.errno) from None


def _keep_alive(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE.items():
        if hasattr(socket, name):  # the names differ outside Linux
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
