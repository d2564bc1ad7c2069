"""A control plane in a thread of this process, for tests and tools: the real one, with a socket and kubeconfigs."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from steersman.api.controller import Controller
from steersman.controllers.builtin import BY_NAME, EVERY, named, remaining
from steersman.kernel.ports import NodeStreams
from steersman.nodes.stages import INSTANT, USUAL
from steersman.run.daemon import SWITCH_SECONDS, ControlPlane, Settings
from steersman.run.exchange import Driver
from steersman.run.head import Heads
from steersman.run.load import StartError
from steersman.run.local import LocalClient
from steersman.run.scratch import Scratch
from steersman.run.workspace import KUBELET, SCHEDULER, Workspace
from steersman.run.workspaces import GROUP, PREFIX, ROOT
from steersman.serve.credentials.kubeconfig import read_token, write_kubeconfig

log = logging.getLogger("steersman.run")

START_SECONDS: Final = 60.0
STOP_SECONDS: Final = 30.0
ACTOR: Final = "steersman-admin"


class _Haste:
    """The interpreter's switch interval while control planes run in this process, which may end in any order."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._planes = 0
        self._before = 0.0

    def begin(self) -> None:
        with self._lock:
            if not self._planes:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(SWITCH_SECONDS)
            self._planes += 1

    def end(self) -> None:
        with self._lock:
            self._planes -= 1
            if not self._planes:
                sys.setswitchinterval(self._before)


_HASTE: Final = _Haste()


def choose(words: Sequence[type[Controller] | str]) -> tuple[list[type[Controller]], list[str], list[str]]:
    """(the controllers that run, the names of those somebody else runs, the components somebody else runs) for classes
    and names as kube-controller-manager's `--controllers` takes them: "*", "NAME", "-NAME". Raises `StartError`."""
    classes: list[type[Controller]] = []
    wanted: list[str] = []
    away: list[str] = []
    for word in words:
        if isinstance(word, type) and issubclass(word, Controller):
            classes.append(word)
        elif not isinstance(word, str):
            raise StartError(f"controllers: {word!r} is neither a subclass of Controller nor a built-in one's name")
        elif word.startswith("-"):
            away.append(word[1:])
        else:
            wanted.append(word)
    without = [name for name in away if name in (SCHEDULER, KUBELET)]
    try:
        left = remaining(name for name in away if name not in without)
        ours = left if EVERY in wanted else [cls for cls in map(named, wanted) if cls in left]
    except LookupError as error:
        raise StartError(f"controllers: {error}") from None
    elsewhere = [name for name, cls in BY_NAME.items() if cls not in left]
    return [*ours, *classes], elsewhere, without


class Plane:
    """One workspace of it, as a program is given it."""

    def __init__(self, owner: Embedded, name: str, workspace: Workspace, url: str, kubeconfig: Path) -> None:
        self._owner = owner
        self.name = name
        self.heads: Heads = workspace.heads
        self.url = url
        """The address of its API server, with the workspace's prefix."""
        self.kubeconfig = kubeconfig
        """A file for kubectl and every other client: `KUBECONFIG=…`; mode 0600."""
        self.client = LocalClient(workspace.heads, ACTOR, "steersman-client")
        """In this process: no socket. `client.wait(lambda: …)` waits for what controllers do."""

    def __repr__(self) -> str:
        return f"<control plane {self.url}>"

    @property
    def token(self) -> str:
        """The bearer token of the administrator."""
        return self._owner.token

    @property
    def ca(self) -> bytes:
        """The certificate authority, PEM."""
        return self._owner.ca

    def workspace(self, name: str = "", virtual_nodes: int | None = None) -> Plane:
        """A control plane of its own in the same process, made in milliseconds; by default with as many virtual nodes
        as the first has. Raises `AlreadyExists`."""
        return self._owner.workspace(name, virtual_nodes)

    def forget(self) -> None:
        """Deletes the workspace, and all that is in it."""
        self._owner.forget(self)


class Embedded:
    """See the module's text. A context manager; `with Embedded() as plane` gives the root's `Plane`."""

    def __init__(
        self,
        *,
        store: str = "memory:",
        virtual_nodes: int = 0,
        controllers: Sequence[type[Controller] | str] = (EVERY,),
        listen: str = "127.0.0.1:0",
        streams: NodeStreams | None = None,
        instant: bool = False,
        drivers: Mapping[str, Driver] | None = None,
        definitions: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        chosen, elsewhere, without = choose(controllers)
        self._folder = Scratch()
        self._pid = os.getpid()
        self._running = self._stopped = False
        self.settings = Settings(
            listen,
            self._folder.path / "kubeconfig",
            store,
            virtual_nodes,
            controllers=chosen,
            elsewhere=elsewhere,
            without=without,
            drivers=drivers or {},
            definitions=definitions,
            streams=streams,
            stages=INSTANT if instant else USUAL,
            embedded=True,
        )
        self.plane = ControlPlane(self.settings)
        self._numbers = itertools.count(1)
        self._ready = threading.Event()
        self._fault: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="control plane", daemon=True)

    def start(self) -> Plane:
        """Starts it, and gives the root. Raises one of `daemon.FAULTS`; then, and when it is interrupted, nothing is
        left."""
        _HASTE.begin()
        self._running = True
        try:
            self._thread.start()
            if not self._ready.wait(START_SECONDS):
                raise StartError(f"the control plane did not start within {START_SECONDS:.0f} s")
            if self._fault is not None:
                raise self._fault
            kubeconfig = self.settings.kubeconfig
            self.token = read_token(kubeconfig) or ""
            self.ca = self.plane.authority.pem
            return Plane(self, ROOT, self.plane.root, self.plane.url, kubeconfig)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Ends it; harmless when it has ended, and in a child after a fork, which has no thread of it."""
        if os.getpid() != self._pid:
            return
        self._stopped = True
        if self._thread.is_alive():
            if self._loop is not None:
                with contextlib.suppress(RuntimeError):  # its loop has just ended
                    self._loop.call_soon_threadsafe(self.plane.stopping.set)
            self._thread.join(STOP_SECONDS)
            if self._thread.is_alive():
                log.error("the control plane did not stop within %.0f s; its thread is left behind", STOP_SECONDS)
            elif self._fault is not None:
                log.error("the control plane did not stop as it should", exc_info=self._fault)
        if self._running:
            self._running = False
            _HASTE.end()
        self._folder.cleanup()

    def workspace(self, name: str = "", virtual_nodes: int | None = None) -> Plane:
        """Makes a workspace; without a name, one of a new name. Raises `ApiError`."""
        nodes = self.settings.virtual_nodes if virtual_nodes is None else virtual_nodes
        root = LocalClient(self.plane.heads, ACTOR, "steersman-client")
        while not name:  # a store that lasts may have some from before
            free = f"workspace-{next(self._numbers)}"
            name = free if root.get(root.key(f"{GROUP}/v1/Workspace", free)) is None else ""
        meta, spec = {"name": name}, {"virtualNodes": nodes}
        root.create({"apiVersion": f"{GROUP}/v1", "kind": "Workspace", "metadata": meta, "spec": spec})
        assert self._loop is not None
        found = asyncio.run_coroutine_threadsafe(self.plane.workspaces.find(name), self._loop).result(START_SECONDS)
        path = self._folder.path / f"kubeconfig.{name}"
        url = f"{self.plane.url}/{PREFIX}/{name}"
        write_kubeconfig(path, url, self.ca, self.token)
        return Plane(self, name, found, url, path)

    def forget(self, plane: Plane) -> None:
        """Deletes a workspace."""
        root = LocalClient(self.plane.heads, ACTOR, "steersman-client")
        root.delete(root.key(f"{GROUP}/v1/Workspace", plane.name))
        plane.kubeconfig.unlink(missing_ok=True)

    def __enter__(self) -> Plane:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            self._fault = error
            self._ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        if self._stopped:
            return
        async with self.plane:
            self._ready.set()
            await self.plane.stopping.wait()
