"""A server process of `steersman run`, and a small client for it: plain HTTPS, one connection, no retries."""

from __future__ import annotations

import base64
import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

ROOT = Path(__file__).parents[2]
START_SECONDS = 30.0
COMMAND = "from steersman.cli import main; main()"


class Served:
    """`steersman run` in a process of its own, on a free port of loopback."""

    def __init__(self, folder: Path, *options: str, store: str = "", listen: str = "127.0.0.1:0") -> None:
        self.kubeconfig = folder / "kubeconfig"
        self.output = folder / "output"
        self.store = store or f"sqlite:{folder / 'store.db'}"
        command = [sys.executable, "-c", COMMAND, "run"]
        command += ["--listen", listen] if listen else []
        command += ["--kubeconfig", str(self.kubeconfig), "--store", self.store, *options]
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT)

    def wait_ready(self) -> Served:
        """Until it says that it is ready."""
        end = time.monotonic() + START_SECONDS
        while "is ready at" not in self.said():
            assert self.process.poll() is None, f"the server ended by itself: {self.said()}"
            assert time.monotonic() < end, f"the server did not start: {self.said()}"
            time.sleep(0.01)
        return self

    def said(self) -> str:
        return self.output.read_text(encoding="utf-8")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self, number: int = signal.SIGTERM, seconds: float = 20.0) -> int:
        self.process.send_signal(number)
        return self.process.wait(seconds)

    def __enter__(self) -> Served:
        try:
            return self.wait_ready()
        except BaseException:
            self.kill()
            raise

    def __exit__(self, *error: object) -> None:
        self.kill()


class Client:
    """One connection to the server of a kubeconfig. Raises `OSError` and `http.client.HTTPException` when it breaks."""

    def __init__(self, kubeconfig: Path, timeout: float = 20.0) -> None:
        config = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
        cluster = config["clusters"][0]["cluster"]
        ca = base64.b64decode(cluster["certificate-authority-data"]).decode()
        server = urlsplit(cluster["server"])
        self.token = config["users"][0]["user"]["token"]
        context = ssl.create_default_context(cadata=ca)
        self._connection = http.client.HTTPSConnection(server.hostname, server.port, timeout=timeout, context=context)

    def ask(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> tuple[int, Any]:
        """Status code and document."""
        response = self._send(method, path, body, content_type)
        return response.status, json.loads(response.read())

    def watch(self, path: str) -> Iterator[dict[str, Any]]:
        """The events of a watch, until the connection ends."""
        response = self._send("GET", path, None, "application/json")
        assert response.status == 200, response.read()
        while line := response.readline():
            yield json.loads(line)

    def _send(self, method: str, path: str, body: Any, content_type: str) -> http.client.HTTPResponse:
        headers = {"authorization": f"Bearer {self.token}", "content-type": content_type}
        self._connection.request(method, path, None if body is None else json.dumps(body), headers)
        return self._connection.getresponse()

    def close(self) -> None:
        self._connection.close()


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
