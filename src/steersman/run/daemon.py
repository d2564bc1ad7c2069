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

from steersman.api.admission.standard import standard
from steersman.api.begin import Api
from steersman.api.controller import Controller, Loop, controller_name
from steersman.api.errors import AlreadyExists
from steersman.api.kinds import Kinds
from steersman.api.policy import default_policy, reconciled
from steersman.controllers.builtin import ALL, CLUSTER, remaining
from steersman.controllers.root_ca import SOURCE, SOURCE_FIELD
from steersman.journal import JournalError
from steersman.kernel.component import Component
from steersman.kernel.effect import Request
from steersman.kernel.object import Key
from steersman.kernel.value import Frozen
from steersman.nodes.component import VirtualNodes
from steersman.run import garbage
from steersman.run.address import Address, parse_address
from steersman.run.exchange import Driver
from steersman.run.head import Heads
from steersman.run.load import StartError
from steersman.run.loops import Loops
from steersman.run.place import Place
from steersman.run.virtual import make_nodes
from steersman.sched.component import SchedulerComponent
from steersman.serve.app import App
from steersman.serve.files import FileError
from steersman.serve.hooks import Hooks
from steersman.serve.http import ListenError, Server, serve
from steersman.serve.kubeconfig import admin_token, load_tokens, save_tokens, write_kubeconfig
from steersman.serve.memory import APISERVER, FIRST_OBJECTS
from steersman.serve.signer import Signer
from steersman.serve.tls import Authority, renew, server_context

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
    without: Sequence[str] = ()
    """Components that somebody else runs: `kube-scheduler`, `kubelet`."""


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
        admission = standard(controllers=[controller_name(each) for each in settings.controllers])
        api = Api(Kinds.builtin(), admission=admission)
        self.heads = Heads(api, place.journal, holder=f"process {os.getpid()}")
        self.heads.on_stop = self._stop_for
        self.heads.questions.asking = Hooks()
        self.loaded = (self.heads.store.rev, sum(1 for _ in self.heads.store.objects()))
        self.heads.start()
        stack.push_async_callback(self.heads.close)
        await self._bootstrap()
        garbage.freeze()
        loops = Loops(
            self.heads, [Loop(c, self.heads.api) for c in settings.controllers], _components(settings), settings.drivers
        )
        tokens = load_tokens(place.tokens)
        authority = Authority.open(place.pki)
        token = admin_token(tokens, settings.kubeconfig)
        save_tokens(place.tokens, tokens)
        self.heads.signer = Signer.open(place.pki, authority)
        await self._publish(authority)
        context = server_context(authority, address.names())
        app = App(self.heads, tokens, {"journal": self.heads.trouble}, self.heads.numbers)
        self.server = await self._listen(address, app, context)
        self.url = app.url = self._url(address)
        write_kubeconfig(settings.kubeconfig, self.url, authority.pem, token)
        loops.start()
        stack.push_async_callback(self._stop_loops, loops)
        stack.push_async_callback(self.server.close, GRACE_SECONDS)
        for task in (garbage.collect_quietly(lambda: self.heads.store.rev), self._renew(context, authority, address)):
            stack.callback(asyncio.get_running_loop().create_task(task).cancel)

    def _address(self) -> Address:
        address = parse_address(self.settings.listen or DEFAULT_LISTEN)
        if not self.settings.allow_remote and not address.loopback():
            raise StartError(
                f"--listen {address}: other machines could reach it and try its credentials; "
                f"write 127.0.0.1:{address.port}, or add --allow-remote if that is what you want"
            )
        return address

    async def _listen(self, address: Address, app: App, context: ssl.SSLContext) -> Server:
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

    async def _bootstrap(self) -> None:
        """Namespaces, classes, roles and bindings that every cluster has, and the virtual nodes asked for."""
        for key, body in FIRST_OBJECTS:
            if self.heads.store.get(key) is None:
                with contextlib.suppress(AlreadyExists):
                    await self.heads.write(Request("create", key, body, actor=APISERVER, manager="steersman"))
        await asyncio.gather(*[self._bootstrap_policy(key, body) for key, body in default_policy()])
        await make_nodes(self.heads, self.settings.virtual_nodes)

    async def _publish(self, authority: Authority) -> None:
        """The authority's certificate where clients and controllers look for it, as kube-apiserver publishes it."""
        data = {SOURCE_FIELD: authority.pem.decode("ascii")}
        found = self.heads.store.get(SOURCE)
        if found is None:
            meta = {"name": SOURCE.name, "namespace": SOURCE.namespace}
            body: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
            await self.heads.write(Request("create", SOURCE, body, actor=APISERVER, manager="steersman"))
        elif found.value.get("data", {}).get(SOURCE_FIELD) != data[SOURCE_FIELD]:
            request = Request("patch", SOURCE, {"data": data}, actor=APISERVER, manager="steersman")
            await self.heads.write(request)

    async def _bootstrap_policy(self, key: Key, body: Mapping[str, Any]) -> None:
        """Makes a default role or binding that is missing, or adds what is missing in it."""
        found = self.heads.store.get(key)
        verb, options = "create", Frozen({})
        if found is not None:
            patch = reconciled(found.value, body)
            if patch is None:
                return
            verb, body, options = "patch", patch, Frozen({"patch": "merge"})
        with contextlib.suppress(AlreadyExists):
            await self.heads.write(Request(verb, key, body, actor=APISERVER, manager="steersman", options=options))

    async def _stop_loops(self, loops: Loops) -> None:
        for name in await asyncio.to_thread(loops.stop, GRACE_SECONDS):
            log.warning("%s did not stop within %.0f s and is left behind", name, GRACE_SECONDS)

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


SCHEDULER: Final = "kube-scheduler"
KUBELET: Final = "kubelet"


def _components(settings: Settings) -> list[Component]:
    made: list[Component] = [] if SCHEDULER in settings.without else [SchedulerComponent(events=True)]
    return made if KUBELET in settings.without else [*made, VirtualNodes()]


def disabling(text: str) -> tuple[list[type[Controller]], list[str]]:
    """(the controllers that are left, the components that are not run) without those a text names, with commas between
    them. Raises `StartError`."""
    names = [name for name in (part.strip() for part in text.split(",")) if name]
    components = [name for name in names if name in (SCHEDULER, KUBELET)]
    try:
        return remaining(name for name in names if name not in components), components
    except LookupError as error:
        raise StartError(f"--disable-controllers: {error}, {KUBELET}, {SCHEDULER}") from None


def run(settings: Settings, tell: Callable[[str], None]) -> int:
    """Runs a control plane until SIGINT or SIGTERM; the exit code. `tell` prints a line for people."""
    garbage.switch_off()
    sys.setswitchinterval(SWITCH_SECONDS)
    return asyncio.run(_run(settings, tell))


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
