"""A control plane for the tests of the HTTP face: the real app over a real store, asked without sockets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import yaml

from steersman.api.begin import Api
from steersman.kernel.changelog import ChangeLog
from steersman.serve.app import App
from steersman.serve.credentials.kubeconfig import ADMIN
from steersman.serve.credentials.tokens import Tokens
from steersman.serve.memory import MemoryBackend
from steersman.serve.message import Headers, Request, Response

NOW = 1_790_000_000_000_000
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


class Answer:
    """One answer, read to its end."""

    def __init__(self, code: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.code = code
        self.headers = headers
        self.body = body

    @property
    def json(self) -> Any:
        """What the body says, whichever of the two it is written in."""
        if self.header("content-type").startswith("application/yaml"):
            return yaml.safe_load(self.body)
        return json.loads(self.body)

    def header(self, name: str) -> str:
        return ", ".join(value for key, value in self.headers if key.lower() == name)

    def __repr__(self) -> str:
        return f"<{self.code} {self.body[:300]!r}>"


class Plane:
    """`await plane.get(path)`, `.post(path, obj)`, …; `code=` asserts the status."""

    def __init__(self, log: ChangeLog | None = None, api: Api | None = None) -> None:
        self.time = NOW
        self.drawn = 0
        self.backend = MemoryBackend(api, clock=lambda: self.time, draw=self._draw, log=log)
        self.backend.bootstrap()
        self.tokens = Tokens()
        self.token = self.tokens.issue(ADMIN.user, ADMIN.groups)
        self.app = App(self.backend, self.tokens)

    def _draw(self, question: Any) -> str:
        self.drawn += 1
        return f"{self.drawn:05d}" if question[0] == "name" else f"00000000-0000-4000-8000-{self.drawn:012d}"

    async def send(self, method: str, target: str, body: Any = None, **headers: str) -> Response:
        path, _, query = target.partition("?")
        lines = {"authorization": f"Bearer {self.token}", "user-agent": "pytest/1.0", "accept": "application/json"}
        lines |= {name.replace("_", "-"): value for name, value in headers.items()}
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        pairs = [(name, value) for name, value in lines.items() if value]
        return await self.app(Request(method, path, path, query, Headers(pairs), data))

    async def ask(self, method: str, target: str, body: Any = None, code: int = 0, **headers: str) -> Answer:
        response = await self.send(method, target, body, **headers)
        data = response.body
        if not isinstance(data, bytes):
            data = b"".join([chunk async for chunk in data])
        found = Answer(response.status, list(response.headers), data)
        assert not code or found.code == code, found
        return found

    async def get(self, target: str, code: int = 200, **headers: str) -> Answer:
        return await self.ask("GET", target, None, code, **headers)

    async def post(self, target: str, body: Any, code: int = 201, **headers: str) -> Answer:
        return await self.ask("POST", target, body, code, content_type="application/json", **headers)

    async def put(self, target: str, body: Any, code: int = 200, **headers: str) -> Answer:
        return await self.ask("PUT", target, body, code, content_type="application/json", **headers)

    async def merge(self, target: str, body: Any, code: int = 200, **headers: str) -> Answer:
        return await self.ask("PATCH", target, body, code, content_type="application/merge-patch+json", **headers)

    async def apply(self, target: str, body: Any, code: int = 200) -> Answer:
        return await self.ask("PATCH", target, body, code, content_type="application/apply-patch+yaml")

    async def delete(self, target: str, body: Any = None, code: int = 200) -> Answer:
        return await self.ask("DELETE", target, body, code, content_type="application/json")

    async def watch(self, target: str, **headers: str) -> WatchReader:
        response = await self.send("GET", target, **headers)
        assert response.status == 200 and not isinstance(response.body, bytes), response
        return WatchReader(response.body)


class WatchReader:
    """The events of a watch, one by one."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self.chunks = chunks
        self.lines: list[bytes] = []
        self.sizes: list[int] = []

    async def next(self, seconds: float = 2.0) -> Any:
        """The next event, or None at the end of the stream."""
        if not self.lines:
            try:
                chunk = await asyncio.wait_for(anext(self.chunks), seconds)
            except StopAsyncIteration:
                return None
            self.lines = chunk.splitlines()
            self.sizes.append(len(self.lines))
        return json.loads(self.lines.pop(0))

    async def take(self, count: int) -> list[Any]:
        return [await self.next() for _ in range(count)]

    async def rest(self) -> list[Any]:
        """All events until the stream ends."""
        out = []
        while (event := await self.next(5)) is not None:
            out.append(event)
        return out

    async def close(self) -> None:
        await self.chunks.aclose()  # type: ignore[attr-defined]


def told(events: list[Any]) -> list[tuple[str, str]]:
    """(type, name) of events."""
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


def pod(name: str = "a", **meta: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **meta},
        "spec": {"containers": [{"name": "c", "image": "nginx:1"}]},
    }


def configmap(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def deployment(name: str = "web", replicas: int = 3) -> dict[str, Any]:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod()["spec"]},
        },
    }
