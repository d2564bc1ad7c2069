"""The control plane as one process: store, controllers, components and the API server, started and stopped in order."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import signal
import ssl
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import uvloop

from steersman.api.controller import Controller
from steersman.controllers.builtin import ALL, CLUSTER, remaining
from steersman.controllers.node_ipam import NodeIpam, allocating
from steersman.journal import JournalError
from steersman.kernel.ports import NodeStreams
from steersman.nodes.stages import USUAL, Stages
from steersman.run import garbage
from steersman.run.address import Address, parse_address
from steersman.run.believed import Believed
from steersman.run.exchange import Driver
from steersman.run.front import announce, publish
from steersman.run.load import StartError
from steersman.run.place import Place
from steersman.run.workspace import KUBELET, SCHEDULER, Audit, Shared, Workspace
from steersman.run.workspaces import Workspaces
from steersman.serve.audit.log import AuditLog
from steersman.serve.audit.policy import EVERYTHING, read_policy
from steersman.serve.credentials.front_proxy import front_proxy
from steersman.serve.credentials.kubeconfig import admin_token, load_tokens, save_tokens, write_kubeconfig
from steersman.serve.credentials.signer import Signer
from steersman.serve.credentials.tls import Authority, renew, server_context
from steersman.serve.files import FileError, read_file
from steersman.serve.http import Handler, ListenError, Server, serve

log = logging.getLogger("steersman.run")

DEFAULT_LISTEN: Final = "127.0.0.1:6443"
DEFAULT_STORE: Final = "sqlite:steersman.db"
DEFAULT_KUBECONFIG: Final = Path("steersman.kubeconfig")
GRACE_SECONDS: Final = 5.0
"""What requests and reconciles in flight get at a stop, each."""
RENEW_SECONDS: Final = 24 * 3600.0
"""How often the server's certificate is looked at; it is renewed a month before it ends."""
SWITCH_SECONDS: Final = 0.0005
"""How long a thread may keep the interpreter when another wants it: the journal's thread comes back from an fsync ten
times sooner than with Python's 5 ms, which is the better half of a write's latency under load."""
FAULTS: Final = (StartError, JournalError, FileError, ListenError)
"""What keeps a control plane from starting, each with a text for people."""


@dataclass(frozen=True)
class Settings:
    """What to run. `listen` "" means the default address, or a free port where that one is taken."""

    listen: str = ""
    kubeconfig: Path = DEFAULT_KUBECONFIG
    store: str = DEFAULT_STORE
    virtual_nodes: int = 0
    allow_remote: bool = False
    controllers: Sequence[type[Controller]] = (*ALL, *CLUSTER)
    drivers: Mapping[str, Driver] = field(default_factory=dict)
    definitions: Sequence[Mapping[str, Any]] = ()
    """CustomResourceDefinitions of the kinds that `controllers` are about; somebody applies them."""
    elsewhere: Sequence[str] = ()
    """Names of controllers that somebody else runs: admission may count on them."""
    without: Sequence[str] = ()
    """Components that somebody else runs: `kube-scheduler`, `kubelet`."""
    streams: NodeStreams | None = None
    """Who answers logs, exec and port-forward; what virtual nodes say (`serve.virtual`), if nobody is named."""
    stages: Stages = USUAL
    """How long the life of a pod on a virtual node takes."""
    audit_log: Path | None = None
    """Where requests are written down; nowhere by default."""
    audit_policy: Path | None = None
    """Which requests, and how much of them; Metadata of all, by default."""
    authentication: Path | None = None
    """Whose tokens are believed besides: an AuthenticationConfiguration."""
    embedded: bool = False
    """It shares its process with other work, and so leaves the process' garbage collection alone."""


class ControlPlane:
    """A running control plane; `async with ControlPlane(settings) as plane`. Raises one of FAULTS on entry."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.notes: list[str] = []
        """What a person should know about how it started."""
        self.stopping = asyncio.Event()
        self.fault: JournalError | None = None
        """Why it has to stop, when it does not by itself."""
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> ControlPlane:
        try:
            await self._start()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    async def _start(self) -> None:
        """Each part is stopped in the reverse of this order."""
        settings, stack = self.settings, self._stack
        address = self._address()
        place = stack.enter_context(Place(settings.store))
        self.place = place
        assert place.journal is not None
        tokens = load_tokens(place.tokens)
        authority = self.authority = Authority.open(place.pki)
        token = admin_token(tokens, settings.kubeconfig)
        save_tokens(place.tokens, tokens)
        signer = Signer.open(place.pki, authority)
        believed = Believed(settings.authentication)
        shared = Shared(
            tokens,
            authority,
            signer,
            settings.controllers,
            settings.drivers,
            settings.definitions,
            settings.virtual_nodes,
            settings.without,
            settings.elsewhere,
            settings.streams,
            settings.stages,
            self._audit(),
            issuers=believed.issuers,
            stopping=self.stopping.is_set,
            front=front_proxy(place.pki),
        )
        stack.callback(shared.crew.close)
        root = self.root = Workspace(place.journal, shared)
        self.heads, self.loaded = root.heads, root.loaded
        self.heads.on_stop = self._stop_for
        stack.push_async_callback(root.close)
        await root.open()
        context = server_context(authority, address.names())
        self.workspaces = Workspaces(root, place, shared)
        self.server = await self._listen(address, self.workspaces, context)
        self.url = self._url(address)
        write_kubeconfig(settings.kubeconfig, self.url, authority.pem, token)
        if not settings.embedded:
            garbage.freeze()
        await announce(self.heads, address, self.server.port)
        await publish(self.heads, self.url, authority.pem)
        root.start(self.url)
        stack.push_async_callback(root.stop)
        stack.push_async_callback(self.workspaces.close)
        await self.workspaces.open(self.url)
        stack.push_async_callback(self.server.close, GRACE_SECONDS)
        tasks = [self._renew(context, authority, address), believed.follow()]
        if not settings.embedded:
            tasks.append(garbage.collect_quietly(lambda: self.heads.store.rev))
        for task in tasks:
            stack.callback(asyncio.get_running_loop().create_task(task).cancel)

    def _audit(self) -> Audit | None:
        """Raises `FileError`, `StartError`."""
        path, policy = self.settings.audit_log, self.settings.audit_policy
        if path is None:
            if policy is not None:
                raise StartError(f"--audit-policy {policy}: there is no log that it is for; add --audit-log PATH")
            return None
        try:
            chosen = EVERYTHING if policy is None else read_policy(read_file(policy), str(policy))
        except FileNotFoundError:
            raise StartError(f"--audit-policy {policy}: there is no such file") from None
        log = AuditLog(path)
        self._stack.callback(log.close)
        return Audit(log, chosen)

    def _address(self) -> Address:
        address = parse_address(self.settings.listen or DEFAULT_LISTEN)
        if not self.settings.allow_remote and not address.loopback():
            raise StartError(
                f"--listen {address}: other machines could reach it and try its credentials; "
                f"write 127.0.0.1:{address.port}, or add --allow-remote if that is what you want"
            )
        return address

    async def _listen(self, address: Address, app: Handler, context: ssl.SSLContext) -> Server:
        host = address.host or ["0.0.0.0", "::"]
        try:
            server = await serve(app, host, address.port, context)
        except ListenError as error:
            if self.settings.listen or error.errno != errno.EADDRINUSE:
                raise
            server = await serve(app, host, 0, context)
            self.notes.append(f"port {address.port} is taken, so the server listens on {server.port} instead")
        self._stack.push_async_callback(server.close, 0.0)
        return server

    def _url(self, address: Address) -> str:
        host = "127.0.0.1" if address.everywhere else address.host
        return f"https://{Address(host, self.server.port)}"

    async def _renew(self, context: ssl.SSLContext, authority: Authority, address: Address) -> None:
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            try:
                renew(context, authority, address.names())
            except FileError as error:
                log.error("the certificate was not renewed: %s", error)

    def _stop_for(self, error: JournalError) -> None:
        self.fault = error
        self.stopping.set()


def disabling(text: str) -> tuple[list[type[Controller]], list[str]]:
    """(the controllers that are left, the components that are not run) without those a text names, with commas between
    them. Raises `StartError`."""
    names = [name for name in (part.strip() for part in text.split(",")) if name]
    components = [name for name in names if name in (SCHEDULER, KUBELET)]
    try:
        return remaining(name for name in names if name not in components), components
    except LookupError as error:
        raise StartError(f"--disable-controllers: {error}, {KUBELET}, {SCHEDULER}") from None


def sharing_out(controllers: list[type[Controller]], text: str) -> list[type[Controller]]:
    """The controllers, with nodes given blocks of the networks that a text names, with a comma between them. Raises
    `StartError`."""
    if not text:
        return controllers
    if NodeIpam not in controllers:
        raise StartError(f"--cluster-cidr: somebody else runs the {NodeIpam.name}; leave one of the two options out")
    try:
        chosen = allocating([part.strip() for part in text.split(",")])
    except ValueError as error:
        raise StartError(f"--cluster-cidr: {error}") from None
    return [chosen if cls is NodeIpam else cls for cls in controllers]


def run(settings: Settings, tell: Callable[[str], None]) -> int:
    """Runs a control plane until SIGINT or SIGTERM; the exit code. `tell` prints a line for people."""
    garbage.switch_off()
    sys.setswitchinterval(SWITCH_SECONDS)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_run(settings, tell))


async def _run(settings: Settings, tell: Callable[[str], None]) -> int:
    plane = ControlPlane(settings)
    loop = asyncio.get_running_loop()

    def asked_to_stop() -> None:
        if plane.stopping.is_set():  # a second signal: what is durable is durable
            os._exit(130)
        plane.stopping.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, asked_to_stop)
    try:
        async with plane:
            for line in greeting(plane):
                tell(line)
            await plane.stopping.wait()
            tell("stopping" if plane.fault is None else f"stopping: {plane.fault}")
    except FAULTS as error:
        tell(f"steersman run: {error}")
        return 2
    if plane.fault is not None:
        return 1
    tell("stopped; everything acknowledged is in the store" if plane.place.lasting else "stopped")
    return 0


def greeting(plane: ControlPlane) -> list[str]:
    """What a person is told once it runs."""
    settings, (revision, objects) = plane.settings, plane.loaded
    path = settings.kubeconfig.absolute()
    lasting = (
        f"revision {revision:,}, {objects:,} objects at the start" if plane.place.lasting else "gone when it stops"
    )
    nodes = plane.heads.store.count(("", "Node"))
    return [
        *plane.notes,
        f"The API server is ready at {plane.url} (Ctrl-C stops it).",
        f"  store       {settings.store} ({lasting})",
        f"  nodes       {nodes} virtual" if nodes else "  nodes       none; --virtual-nodes 3 would run pods",
        f"  kubeconfig  {path}",
        "In another terminal:",
        f"  export KUBECONFIG={path}",
        "  kubectl get namespaces",
    ]
