"""What becomes of one request, as it is written down: the Events of audit.k8s.io/v1.

Source of the facts (stages, fields, what is told at which level): Kubernetes 1.36, apiserver pkg/apis/audit/v1,
pkg/audit/request.go and pkg/endpoints/filters/audit.go.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any, Final

import orjson

from steersman.api import errors
from steersman.api.access.authz import Decision
from steersman.api.access.rbac import Ask
from steersman.api.access.user import ANONYMOUS, UNAUTHENTICATED, User
from steersman.api.admission.webhooks import PATCH
from steersman.api.errors import ApiError
from steersman.api.times import micro_text
from steersman.serve.answer import status_answer
from steersman.serve.asked import asked
from steersman.serve.audit.log import AuditLog
from steersman.serve.audit.policy import (
    API_VERSION,
    COMPLETE,
    FULL,
    NONE,
    NOTHING,
    RECEIVED,
    REQUEST,
    STARTED,
    Policy,
    is_confidential,
)
from steersman.serve.body import read_object
from steersman.serve.depth import MAX_DEPTH, deeper_than
from steersman.serve.health import PATHS as HEALTH_PATHS
from steersman.serve.message import Request, Response
from steersman.serve.route import segments_of
from steersman.serve.streams.pipe import Pipe

WORKSPACE: Final = "steersman.dev/workspace"
LONG_PARTS: Final = frozenset({"attach", "exec", "log", "portforward", "proxy"})
"""Subresources whose answers take their time, as a watch does."""
TOLD: Final = ("status", "message", "reason", "details", "code")
UNTOLD: Final = ("status", "reason", "code")
GONE: Final = status_answer(errors.ApiError(504, "Timeout", "the client went away before the answer", errors.Details()))
"""What is told of a request whose answer nobody waits for (kube-apiserver: its context is cancelled, a 504)."""


class Auditor:
    """Writes down the requests of one workspace."""

    def __init__(self, log: AuditLog, policy: Policy, now: Callable[[], int], workspace: str = "") -> None:
        """`now` in microseconds."""
        self.log = log
        self.policy = policy
        self.now = now
        self.workspace = workspace

    async def observed(self, request: Request, handle: Callable[[Request], Awaitable[Response]]) -> Response:
        """The answer of `handle`, and in the log what became of the request."""
        trail = request.trail = Trail(self, request)
        try:
            response = await handle(request)
        except BaseException:  # the client has gone; what it wanted may be done nevertheless
            trail.answered(GONE)
            raise
        return trail.answered(response)


class Trail:
    """One request under way."""

    def __init__(self, auditor: Auditor, request: Request) -> None:
        self.notes: dict[str, str] = {}
        """Annotations: what authorization and admission have to say. Whoever admits adds to it."""
        self._auditor = auditor
        self._request = request
        self._began = auditor.now()
        self._rule = NOTHING
        self._ask: Ask | None = None
        self._event: dict[str, Any] = {}

    # -- as the request is handled -----------------------------------------------------------------------------

    def received(self, user: User, ask: Ask) -> None:
        """Who asks for what is known."""
        self._ask = ask
        self._rule = self._auditor.policy.rule_of(user, ask)
        if self._rule.level == NONE:
            return
        request = self._request
        self._event = {
            "kind": "Event",
            "apiVersion": API_VERSION,
            "level": self._rule.level,
            "auditID": request.audit_id,
            "stage": RECEIVED,
            "requestURI": (request.raw_path or request.path) + (f"?{request.raw_query}" if request.raw_query else ""),
            "verb": ask.verb,
            "user": user.json(),
        }
        if request.peer is not None:
            self._event["sourceIPs"] = [request.peer[0]]
        if agent := request.headers.get("user-agent"):
            self._event["userAgent"] = agent
        if not ask.path:
            self._event["objectRef"] = _reference(ask, request)
        self._event["requestReceivedTimestamp"] = micro_text(self._began)
        self._write(RECEIVED)

    def acts_as(self, user: User) -> None:
        """Whom the user impersonates."""
        if self._event:
            self._event["impersonatedUser"] = user.json()

    def decided(self, decision: Decision) -> None:
        """What authorization said."""
        self.notes["authorization.k8s.io/decision"] = "allow" if decision.allowed else "forbid"
        self.notes["authorization.k8s.io/reason"] = decision.reason

    def answered(self, response: Response) -> Response:
        """Notes the answer; a streamed one is noted at its beginning and at its end."""
        if self._ask is None and not self._unknown(response):
            return response
        if not self._event:
            return response
        ask = self._ask
        assert ask is not None
        self._event["responseStatus"] = {"metadata": {}, "code": response.status}
        if self._rule.level in (REQUEST, FULL) and ask.verb not in ("get", "list", "watch"):
            self._add("requestObject", _sent(self._request))
        if isinstance(response.body, bytes) and response.takeover is None:
            self._told(response, response.body)
            self._write(COMPLETE)
            return response
        if ask.verb == "watch" or ask.part in LONG_PARTS:
            self._write(STARTED)
        if response.takeover is not None:
            return replace(response, takeover=self._session(response.takeover))
        assert not isinstance(response.body, bytes)
        return replace(response, body=Told(response.body, lambda: self._write(COMPLETE)))

    # -- what is told ------------------------------------------------------------------------------------------

    def _unknown(self, response: Response) -> bool:
        """A request of nobody: a bare health check, or one whose credentials are no good; whether it is written."""
        segments: list[str] = []
        try:
            segments = segments_of(self._request.raw_path or self._request.path)
            ask = asked(self._request, segments)
        except (ApiError, ValueError):  # a path or a query that cannot be read
            ask = Ask(self._request.method.lower(), path=self._request.path)
        healthy = response.status != 401 and bool(segments) and segments[0] in HEALTH_PATHS
        user = User(ANONYMOUS, (UNAUTHENTICATED,)) if healthy else User("")
        self.received(user, ask)
        return bool(self._event)

    def _told(self, response: Response, body: bytes) -> None:
        """The answer as far as the level goes: what went wrong, always; the object, where it is asked for."""
        failed = response.status >= 400
        if not (failed or self._rule.level == FULL) or not body.startswith(b"{"):
            return
        try:
            value = orjson.loads(body)
        except orjson.JSONDecodeError:
            return
        if value.get("kind") == "Status" and failed:
            parts: tuple[str, ...] = TOLD
            if response.status == 400 and self._ask is not None and is_confidential(self._ask):
                parts = UNTOLD  # what cannot be decoded is quoted
            told = {part: value[part] for part in parts if value.get(part)}
            self._event["responseStatus"] = {"metadata": {}, **told}
        if self._rule.level == FULL:
            self._add("responseObject", value)

    def _add(self, part: str, value: Any) -> None:
        if value is not None:
            self._event[part] = _without_managers(value) if self._rule.bare else value

    def _write(self, stage: str) -> None:
        if stage in self._rule.omitted:
            return
        bodies = self._rule.level in (REQUEST, FULL)
        notes = {name: self.notes[name] for name in sorted(self.notes) if bodies or not name.startswith(PATCH)}
        if self._auditor.workspace:
            notes[WORKSPACE] = self._auditor.workspace
        event = {**self._event, "stage": stage, "stageTimestamp": micro_text(self._auditor.now())}
        self._auditor.log.write({**event, "annotations": notes} if notes else event)

    def _session(self, takeover: Callable[[Pipe], Awaitable[None]]) -> Callable[[Pipe], Awaitable[None]]:
        async def run(pipe: Pipe) -> None:
            try:
                await takeover(pipe)
            finally:
                self._write(COMPLETE)

        return run


class Told:
    """A body that tells when it is over, even if nobody ever reads of it."""

    def __init__(self, body: AsyncIterator[bytes], over: Callable[[], None]) -> None:
        self._body = body
        self._over: Callable[[], None] | None = over

    def __aiter__(self) -> Told:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._body)
        except BaseException:
            self._end()
            raise

    async def aclose(self) -> None:
        """Closes the body."""
        try:
            await self._body.aclose()  # type: ignore[attr-defined]
        finally:
            self._end()

    def _end(self) -> None:
        over, self._over = self._over, None
        if over is not None:
            over()


def _reference(ask: Ask, request: Request) -> dict[str, str]:
    segments = segments_of(request.raw_path or request.path)
    version = segments[1] if segments[0] == "api" else segments[2]
    parts = {
        "resource": ask.resource,
        "namespace": ask.namespace,
        "name": ask.name,
        "apiGroup": ask.group,
        "apiVersion": version,
        "subresource": ask.part,
    }
    return {name: text for name, text in parts.items() if text}


def _sent(request: Request) -> Any:
    """The body as JSON; None where there is none, or none that can be read."""
    if not request.body.strip():
        return None
    content = request.headers.get("content-type")
    try:
        json = "json" in content
        value = orjson.loads(request.body) if json else read_object(_as_object(content), request.body).value
    except (ApiError, orjson.JSONDecodeError, RecursionError):
        return None
    return None if isinstance(value, dict | list) and deeper_than(value, MAX_DEPTH) else value


def _as_object(content: str) -> str:
    return "application/yaml" if "yaml" in content else content


def _without_managers(value: Any) -> Any:
    """An object, or a list of them, without managedFields."""
    if not isinstance(value, dict):
        return value
    meta = value.get("metadata")
    if isinstance(meta, dict) and "managedFields" in meta:
        value = {**value, "metadata": {name: part for name, part in meta.items() if name != "managedFields"}}
    items = value.get("items")
    return {**value, "items": [_without_managers(item) for item in items]} if isinstance(items, list) else value
