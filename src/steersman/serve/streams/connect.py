"""exec, attach and port-forward: from a request to a connection that is handed over to a session.

kubectl speaks WebSockets since 1.31 (v5.channel.k8s.io; SPDY in a tunnel for port-forward) and SPDY before; libraries
for Python speak v4.channel.k8s.io. Whatever is wrong is told as a Status before the upgrade, as long as it is known by
then. Source: kubernetes pkg/registry/core/pod/rest/subresources.go, release 1.36.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

from steersman.api import errors
from steersman.api.errors import ApiError
from steersman.kernel.object import Object
from steersman.kernel.ports import NodeStreams
from steersman.kernel.streams import Duplex, Session, Target
from steersman.serve.backend import Backend
from steersman.serve.change import Change
from steersman.serve.message import Headers, Request, Response
from steersman.serve.streams import channels, spdy_command
from steersman.serve.streams.command import Asked, Outlet, streams_of
from steersman.serve.streams.options import MAX_PORT, Wanted, admitted
from steersman.serve.streams.pipe import Pipe
from steersman.serve.streams.target import container_of, existing_pod, on_its_node
from steersman.serve.streams.websocket import chosen, handshake, offered

log = logging.getLogger("steersman.serve.streams")

SPDY: Final = "spdy/3.1"
SPDY_VERSION: Final = "x-stream-protocol-version"
MAX_PORTS: Final = 127
"""Ports of one WebSocket: two channels each, whose numbers are one byte."""

Takeover = Callable[[Pipe], Awaitable[None]]


async def connect(change: Change, streams: NodeStreams) -> Response:
    """The answer to a GET or POST of pods/NAME/exec, attach or portforward. Raises ApiError."""
    wanted = await admitted(change)
    try:
        return await _connected(change, streams, wanted)
    except ApiError as error:
        error.warnings = (*wanted.warnings, *error.warnings)
        raise


async def _connected(change: Change, streams: NodeStreams, wanted: Wanted) -> Response:
    backend, request, route = change.backend, change.http, change.route
    assert route.part is not None
    pod, ports = existing_pod(backend, route.namespace, route.name), route.part.name == "portforward"
    target = _target(backend, pod, "" if ports else container_of(pod, wanted.options.get("container") or ""))
    if not request.upgrade:
        raise errors.bad_request("Upgrade request required")
    if ports:
        return _port_forward(streams, request, target, wanted)
    asked = streams_of(wanted)
    session: Session
    if route.part.name == "exec":
        command = list(wanted.options.get("command") or ())
        if not command or not command[0]:
            raise errors.bad_request("you must specify at least one command for the container")
        headers, version = _protocol_of_command(request)
        session = await streams.execute(target, command, asked.tty)
    else:
        headers, version = _protocol_of_command(request)
        session = await streams.attach(target, asked.tty)
    return Response(101, headers, takeover=_command(request, session, asked, version))


def _target(backend: Backend, pod: Object, container: str) -> Target:
    if not pod.node:
        raise errors.bad_request(f"pod {pod.key.name} does not have a host assigned")
    return on_its_node(backend, pod, container)


def _protocol_of_command(request: Request) -> tuple[list[tuple[str, str]], int]:
    """The headers that grant the upgrade, and the version of the protocol. Raises ApiError 400, 403."""
    if request.upgrade == SPDY:
        name = _spdy_protocol(request.headers, list(spdy_command.COMMAND_VERSIONS))
        return _spdy_headers(name), spdy_command.COMMAND_VERSIONS[name]
    name = chosen(request.headers, channels.COMMAND_VERSIONS)
    return handshake(request, name), channels.COMMAND_VERSIONS[name]


def _command(request: Request, session: Session, asked: Asked, version: int) -> Takeover:
    carried = spdy_command.command_in_spdy if request.upgrade == SPDY else channels.command_in_channels
    return carried(session, asked, version)


def _port_forward(streams: NodeStreams, request: Request, target: Target, wanted: Wanted) -> Response:
    async def forward(data: Duplex, failure: Outlet, port: int) -> None:
        await _forward(streams, target, data, failure, port)

    if request.upgrade == SPDY:
        headers = _spdy_headers(_spdy_protocol(request.headers, [spdy_command.FORWARD_PROTOCOL]))
        return Response(101, headers, takeover=spdy_command.forward_in_spdy(forward))
    if spdy_command.TUNNEL_PROTOCOL in offered(request.headers):
        headers = handshake(request, spdy_command.TUNNEL_PROTOCOL)
        return Response(101, headers, takeover=spdy_command.forward_in_tunnel(forward))
    ports = _ports(wanted)
    headers = handshake(request, chosen(request.headers, channels.FORWARD_PROTOCOLS))
    return Response(101, headers, takeover=channels.forward_in_channels(forward, ports))


async def _forward(streams: NodeStreams, target: Target, data: Duplex, failure: Outlet, port: int) -> None:
    """One forwarded connection, and on the stream for errors what became of it."""
    told = ""
    try:
        tunnel = await streams.forward(target, port)
        await tunnel(data)
    except ApiError as error:
        told = error.message
    except ConnectionError:
        return  # the client has gone
    except Exception as error:
        log.exception("port %d of pod %s failed", port, target.pod.key)
        told = type(error).__name__
    if told:
        name, uid = target.pod.key.name, target.pod.uid
        await failure.write(f"error forwarding port {port} to pod {name}, uid {uid}: {told}".encode())
    for outlet in (data, failure):
        await outlet.close()  # type: ignore[union-attr]


def _ports(wanted: Wanted) -> list[int]:
    """The ports of a WebSocket with channels. Raises ApiError 400."""
    ports = list(wanted.options.get("ports") or ())
    if not ports:
        raise errors.bad_request('query parameter "ports" is required')
    if not all(0 < port <= MAX_PORT for port in ports):
        raise errors.bad_request("0 is not a port; ports are 1 to 65535")
    if len(ports) > MAX_PORTS:
        raise errors.bad_request(f"more than {MAX_PORTS} ports in one connection; use several")
    return ports


def _spdy_protocol(headers: Headers, supported: list[str]) -> str:
    """The first protocol a client offers that is supported. Raises ApiError 400, 403."""
    names = [name.strip() for line in headers.all(SPDY_VERSION) for name in line.split(",") if name.strip()]
    if not names:
        raise errors.bad_request("unable to upgrade: header X-Stream-Protocol-Version is not in the request")
    for name in names:
        if name in supported:
            return name
    message = f"unable to negotiate protocol: client supports {names[:10]}, server accepts {supported}"
    raise ApiError(403, "Forbidden", f"unable to upgrade: {message}")


def _spdy_headers(protocol: str) -> list[tuple[str, str]]:
    return [("upgrade", "SPDY/3.1"), (SPDY_VERSION, protocol)]
