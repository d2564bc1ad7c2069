"""A live control plane for kubectl: TLS, a token, a kubeconfig; the server's loop runs in a thread."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from steersman.cli.kubectl import find_kubectl
from steersman.run.daemon import ControlPlane, Settings
from steersman.serve import http
from steersman.serve.app import App
from steersman.serve.credentials.kubeconfig import ADMIN, write_kubeconfig
from steersman.serve.credentials.tls import Authority, server_context
from steersman.serve.credentials.tokens import Tokens
from steersman.serve.memory import MemoryBackend
from steersman.serve.message import Request, Response
from tests.interop.patience import COMMAND_SECONDS, SECONDS


class Live:
    """kubectl against a server in this process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self.kubectl = find_kubectl()
        self.backend = MemoryBackend()
        self.backend.bootstrap()
        self.requests: list[tuple[str, str, int]] = []
        self.loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._ready = threading.Event()

    async def serve(self) -> None:
        tokens = Tokens()
        authority = Authority.open(self.folder / "pki")
        app = App(self.backend, tokens)

        async def noted(request: Request) -> Response:
            response = await app(request)
            self.requests.append((request.method, request.path, response.status))
            return response

        async with await http.serve(noted, ssl=server_context(authority)) as server:
            token = tokens.issue(ADMIN.user, ADMIN.groups)
            write_kubeconfig(self.kubeconfig, server.url, authority.pem, token, use=True)
            self._ready.set()
            await self._stop.wait()

    def environ(self) -> dict[str, str]:
        home = self.folder / "home"
        return {**os.environ, "KUBECONFIG": str(self.kubeconfig), "HOME": str(home), "KUBECTL_COMMAND_HEADERS": "false"}

    def run(self, *words: str, code: int = 0, stdin: str | None = None) -> str:
        """Output and errors of a kubectl command; asserts its exit code."""
        command = [self.kubectl, *words]
        done = subprocess.run(
            command,
            env=self.environ(),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        assert done.returncode == code, f"{words}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def json(self, *words: str) -> Any:
        return json.loads(self.run(*words, "-o", "json"))

    def start(self, *words: str) -> subprocess.Popen[str]:
        """A kubectl that goes on, its output in a pipe."""
        pipe = subprocess.PIPE
        command = [self.kubectl, *words]
        return subprocess.Popen(command, env=self.environ(), stdout=pipe, stderr=subprocess.STDOUT, text=True)

    def failed(self) -> list[tuple[str, str, int]]:
        """Requests that were answered by a fault of the server."""
        return [request for request in self.requests if request[2] >= 500]


class Whole(Live):
    """kubectl against `steersman run`, its controllers included, in this process."""

    nodes = 0
    """Virtual nodes."""

    async def serve(self) -> None:
        settings = Settings("127.0.0.1:0", self.kubeconfig, f"sqlite:{self.folder / 'store.db'}", self.nodes)
        async with ControlPlane(settings):
            self._ready.set()
            await self._stop.wait()


class OnNodes(Whole):
    """With two virtual nodes."""

    nodes = 2


@contextmanager
def live(folder: Path, kind: type[Live] = Live) -> Iterator[Live]:
    """A running server, stopped at the end of the block."""
    plane = kind(folder)
    thread = threading.Thread(target=plane.loop.run_until_complete, args=(plane.serve(),))
    thread.start()
    try:
        assert plane._ready.wait(SECONDS), "the server did not start"
        yield plane
    finally:
        plane.loop.call_soon_threadsafe(plane._stop.set)
        thread.join(SECONDS)
        plane.loop.close()
