"""Plays a sequence against a server and keeps what it answers: over HTTP, or in this process without a socket."""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import ssl
import threading
import time
from collections.abc import Mapping
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from steersman.api.admission.standard import TAKEN_BACK, standard
from steersman.api.begin import Api
from steersman.api.kinds import Kinds
from steersman.serve.app import App
from steersman.serve.audience import MAX_GAP
from steersman.serve.credentials.tokens import Identity, Tokens
from steersman.serve.memory import MemoryBackend
from steersman.serve.message import Headers, Request
from tests.interop.conformance.normal import HEADERS
from tests.interop.conformance.sequence import JSON, Case, Json, Step, fill

USERS: Final = {"admin": ("system:masters",), "alice": (), "bob": ("developers",)}
"""Who asks, and the groups they are in."""
NETWORK: Final = "10.96.0.0/16"
"""Where addresses of Services come from, in both servers."""
SECONDS: Final = 20.0
QUIET_SECONDS: Final = 0.35
"""How long a remote watch says nothing before it is taken to be at its end."""
AGENT: Final = "conformance/1.0"

Answer = tuple[int, list[tuple[str, str]], bytes]


class Stream(Protocol):
    """A watch that is open."""

    def head(self) -> Answer:
        """Its answer; the body is that of an error, or empty."""

    def end(self) -> bytes:
        """Everything it has told by now. Ends it."""


class Transport(Protocol):
    """A server that can be asked."""

    def ask(self, method: str, target: str, headers: Mapping[str, str], body: bytes, user: str) -> Answer: ...

    def open(self, target: str, headers: Mapping[str, str], user: str) -> Stream: ...

    def pause(self, seconds: float) -> None: ...


def play(case: Case, server: Transport) -> list[Json]:
    """The answers, one for each step that has one, as they came."""
    saved: dict[str, Json] = {"ns": case.namespace}
    streams: dict[str, Stream] = {}
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": case.namespace}}
    code, _, text = server.ask("POST", "/api/v1/namespaces", {"content-type": JSON}, json.dumps(made).encode(), "admin")
    assert code in (201, 409), text
    out = []
    for step in case.steps:
        if "pause" in step:
            server.pause(step["pause"])
        elif "close" in step:
            lines = streams.pop(step["close"]).end().splitlines()
            out.append({"events": [json.loads(line) for line in lines if line.strip()]})
        else:
            try:
                target, body = fill(step["path"], saved), _body(step, saved)
            except (KeyError, IndexError, TypeError, ValueError) as error:
                target, body = f"/the answer that this needs did not come: {error!r}", b""
            user = step.get("as", "admin")
            if "watch" in step:
                streams[step["watch"]] = server.open(target, _headers(step), user)
                out.append(_told(streams[step["watch"]].head()))
                continue
            out.append(_told(server.ask(step["do"], target, _headers(step), body, user)))
            if "save" in step:
                saved[step["save"]] = out[-1]["body"]
    for stream in streams.values():
        stream.end()
    return out


def _headers(step: Step) -> dict[str, str]:
    headers = {"accept": step.get("accept", JSON), "user-agent": AGENT, **step.get("headers", {})}
    if {"body", "raw", "raw64", "type"} & set(step):
        headers["content-type"] = step.get("type", JSON)
    return headers


def _body(step: Step, saved: Mapping[str, Json]) -> bytes:
    if "raw64" in step:
        return base64.b64decode(step["raw64"])
    if "raw" in step:
        return str(fill(step["raw"], saved)).encode()
    # Without spaces, as other clients write it: some fields are kept, and compared, as the bytes that were sent.
    return json.dumps(fill(step["body"], saved), separators=(",", ":")).encode() if "body" in step else b""


def _told(answer: Answer) -> Json:
    code, headers, body = answer
    kept = sorted((name.lower(), value) for name, value in headers if name.lower() in HEADERS)
    try:
        value = json.loads(body) if body else None
    except ValueError:
        value = {"text": body.decode("utf-8", "replace")}
    return {"code": code, "headers": [list(pair) for pair in kept], "body": value}


# -- a server over HTTP ----------------------------------------------------------------------------------------


class Remote:
    """The server at `url`; `tokens` by user. Its certificate is not checked: it was made for this run."""

    def __init__(self, url: str, tokens: Mapping[str, str]) -> None:
        self.where = urlsplit(url)
        self.tokens = tokens
        self._kept: http.client.HTTPConnection | None = None

    def connect(self) -> http.client.HTTPConnection:
        host, port = self.where.hostname or "127.0.0.1", self.where.port
        if self.where.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=SECONDS)
        return http.client.HTTPSConnection(host, port, timeout=SECONDS, context=ssl._create_unverified_context())

    def ask(self, method: str, target: str, headers: Mapping[str, str], body: bytes, user: str) -> Answer:
        for attempt in (0, 1):
            connection = self._kept or self.connect()
            self._kept = connection
            try:
                response = self.request(connection, method, target, headers, body, user)
                return response.status, response.getheaders(), response.read()
            except (http.client.HTTPException, OSError):
                self._kept = None
                if attempt:
                    raise
        raise AssertionError

    def request(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes,
        user: str,
    ) -> http.client.HTTPResponse:
        lines = {**headers, "authorization": f"Bearer {self.tokens[user]}"} if user else headers
        connection.request(method, target, body or None, dict(lines))
        return connection.getresponse()

    def open(self, target: str, headers: Mapping[str, str], user: str) -> Stream:
        connection = self.connect()
        response = self.request(connection, "GET", target, headers, b"", user)
        return _RemoteStream(connection, response)

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)


class _RemoteStream:
    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self.response = response
        self.connection = connection
        self.error = response.read() if response.status != 200 else b""
        self.told = b""
        self.last = time.monotonic()
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()
        time.sleep(0.05)  # the server's watch is in place before anything else is asked of it

    def _read(self) -> None:
        try:
            while self.response.status == 200 and (line := self.response.readline()):
                self.told += line
                self.last = time.monotonic()
        except (OSError, ValueError, http.client.HTTPException, AttributeError):
            return

    def head(self) -> Answer:
        return self.response.status, self.response.getheaders(), self.error

    def end(self) -> bytes:
        self.last = max(self.last, time.monotonic())
        while self.thread.is_alive() and time.monotonic() < self.last + QUIET_SECONDS:
            time.sleep(0.02)
        if self.connection.sock is not None:
            self.connection.sock.shutdown(2)
        self.thread.join(SECONDS)
        return self.told


# -- the server in this process --------------------------------------------------------------------------------


class Local:
    """A fresh control plane in memory."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        running = set(TAKEN_BACK.values()) - {TAKEN_BACK["ServiceAccount"]}
        admission = standard(controllers=running, network=NETWORK)
        self.backend = MemoryBackend(Api(Kinds.builtin(), admission=admission))
        self.backend.bootstrap()
        tokens = Tokens()
        self.tokens = {name: f"conformance-{name}" for name in USERS}
        for name, groups in USERS.items():
            tokens.accept(self.tokens[name], Identity(name, tuple(groups), name))
        self.app = App(self.backend, tokens)
        self.loop.run_until_complete(self.app.aggregator.tell_local())

    def close(self) -> None:
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()

    def request(self, method: str, target: str, headers: Mapping[str, str], body: bytes, user: str) -> Request:
        path, _, query = target.partition("?")
        pairs = list(headers.items())
        if user:
            pairs.append(("authorization", f"Bearer {self.tokens[user]}"))
        return Request(method, path, path, query, Headers(pairs), body)

    def ask(self, method: str, target: str, headers: Mapping[str, str], body: bytes, user: str) -> Answer:
        request = self.request(method, target, headers, body, user)

        async def asked() -> Answer:
            response = await self.app(request)
            data = b"" if method == "HEAD" else response.body  # as the connection does
            if not isinstance(data, bytes):
                data = b"".join([chunk async for chunk in data])
            return response.status, _pairs(response.headers), data

        return self.loop.run_until_complete(asyncio.wait_for(asked(), SECONDS))

    def open(self, target: str, headers: Mapping[str, str], user: str) -> Stream:
        return _LocalStream(self, self.request("GET", target, headers, b"", user))

    def pause(self, seconds: float) -> None:
        """Nothing lags here."""


class _LocalStream:
    def __init__(self, server: Local, request: Request) -> None:
        self.loop = server.loop
        self.told = b""
        self.response = self.loop.run_until_complete(server.app(request))
        self.task = self.loop.create_task(self._read())

    async def _read(self) -> None:
        if isinstance(self.response.body, bytes):
            self.told += self.response.body if self.response.status == 200 else b""
            return
        async for chunk in self.response.body:
            self.told += chunk

    def head(self) -> Answer:
        body = self.response.body
        failed = isinstance(body, bytes) and self.response.status != 200
        return self.response.status, _pairs(self.response.headers), body if failed else b""

    def end(self) -> bytes:
        self.loop.run_until_complete(self._quiet())
        return self.told

    async def _quiet(self) -> None:
        for pause in (0.0, 2 * MAX_GAP):  # between two chunks of a burst there is a gap
            await asyncio.sleep(pause)
            for _ in range(20):  # every wake-up and every chunk takes a turn of the loop
                await asyncio.sleep(0)
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


def _pairs(headers: Any) -> list[tuple[str, str]]:
    return list(headers.items() if isinstance(headers, Mapping) else headers)
