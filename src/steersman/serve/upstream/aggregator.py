"""Aggregation: group versions that another API server serves, behind this one.

An APIService with a service sends every request below `/apis/GROUP/VERSION` there: over TLS that its caBundle vouches
for, with our client certificate of the front proxy, and with who asks in X-Remote headers, which the other server
believes because of that certificate. `round` looks whether they answer, says so in their conditions, and learns what
they serve. Source of rules and texts: kube-aggregator pkg/apiserver/handler_proxy.go and
pkg/controllers/status/remote/remote_available_controller.go, release 1.36.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import random
import ssl
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import orjson

from steersman.api import errors
from steersman.api.access.user import MASTERS, User
from steersman.api.crd.definition import condition_holds
from steersman.api.endpoints import SLICE, Endpoint, endpoints, slices
from steersman.api.rules.registration_rules import GK
from steersman.api.times import time_text
from steersman.kernel.changelog import Gone
from steersman.kernel.effect import MICRO
from steersman.kernel.effect import Request as Write
from steersman.kernel.object import Key, Object
from steersman.kernel.ports import NodeStreams
from steersman.kernel.value import EMPTY
from steersman.serve.answer import text_answer
from steersman.serve.backend import Backend
from steersman.serve.documents.discovery import Elsewhere
from steersman.serve.message import Request, Response
from steersman.serve.outgoing import Failed
from steersman.serve.upstream.exchange import Headers, Sent, exchanged, forwarded
from steersman.serve.upstream.services import reached

AGGREGATOR: Final = User("system:kube-aggregator", (MASTERS,))
"""Who asks whether a server is there."""
WRITER: Final = "system:apiserver"
UNAVAILABLE: Final = "service unavailable"
REDIRECTED: Final = "the backend attempted to redirect this request, which is not permitted"
CHECK_SECONDS: Final = 5.0
ROUND_SECONDS: Final = 30.0
"""Between two looks at a server of which nothing has changed here."""
PAUSE_SECONDS: Final = 1.0
"""The least time between two looks."""
MAX_TRIES: Final = 5
"""Addresses of one service that are asked."""
MAX_DOCUMENT: Final = 16 << 20
"""Bytes of a document that another server describes itself with."""
MAX_AT_ONCE: Final = 8
"""Servers that are looked at at the same time."""
CONCERNS: Final = (GK, ("", "Service"), SLICE)
log = logging.getLogger("steersman.serve.aggregator")

GV = tuple[str, str]


class FrontProxy(NamedTuple):
    """Files of the client certificate by which other API servers know this one."""

    certificate: Path
    key: Path


class Remote(NamedTuple):
    """Where a group version is served."""

    service: Object
    """The APIService."""
    priority: int
    available: bool

    @property
    def spec(self) -> Mapping[str, Any]:
        """Its spec, which has a `service`."""
        return self.service.value["spec"]  # type: ignore[no-any-return]


class Found(NamedTuple):
    """What a look at a server came to: a condition's reason and message, and the resources it has."""

    status: str
    reason: str
    message: str
    resources: tuple[Mapping[str, Any], ...] = ()
    documents: Mapping[str, Any] = {}
    """Of `/openapi/v3`: path → where it is."""


class _Nowhere(Exception):
    """No address that could be asked."""

    def __str__(self) -> str:
        return "no endpoints available"


class _BadStatus(Exception):
    """An answer that is none."""


UNREACHED: Final = (Failed, _Nowhere, errors.ApiError, OSError)
"""Why there is no answer; failures of TLS and of time are among the last."""


class Aggregator:
    """See the module's text. `streams` answers for nodes; `front` is the certificate, if there is one."""

    def __init__(self, backend: Backend, streams: NodeStreams) -> None:
        self._backend = backend
        self.streams = streams
        self.front: FrontProxy | None = None
        self.changes = 0
        """How often what they serve has changed."""
        self.resources: dict[GV, tuple[Mapping[str, Any], ...]] = {}
        """What is known of each remote group version, from the last look that succeeded."""
        self.documents: dict[GV, Mapping[str, Any]] = {}
        self._mark: object = None
        self._remotes: dict[GV, Remote] = {}

    # -- requests ------------------------------------------------------------------------------------------------

    def remotes(self) -> Mapping[GV, Remote]:
        """The group versions that others serve."""
        mark = self._backend.store.mark(GK)
        if mark != self._mark:
            found = {
                (obj.value["spec"].get("group") or "", obj.value["spec"]["version"]): obj for obj in self._services()
            }
            before = self._remotes
            self._remotes = {
                gv: Remote(obj, obj.value["spec"]["groupPriorityMinimum"], _is_available(obj))
                for gv, obj in found.items()
                if gv[0] and obj.value["spec"].get("service")
            }
            self._mark = mark
            if {gv: each.available for gv, each in before.items()} != {
                gv: each.available for gv, each in self._remotes.items()
            }:
                self.changes += 1
        return self._remotes

    def behind(self, segments: list[str]) -> Remote | None:
        """Who answers to a path, if that is not this server."""
        remotes = self.remotes()
        if not remotes:
            return None
        if segments[:2] == ["openapi", "v3"]:
            segments = segments[2:] if len(segments) == 5 else []
        return remotes.get((segments[1], segments[2])) if segments[:1] == ["apis"] and len(segments) > 2 else None

    def elsewhere(self) -> list[Elsewhere]:
        """The same, for discovery."""
        return [
            Elsewhere(gv[0], gv[1], each.priority, each.available, self.resources.get(gv, ()))
            for gv, each in self.remotes().items()
        ]

    def _services(self) -> Iterator[Object]:
        return self._backend.store.list(GK)

    async def answer(self, remote: Remote, request: Request, user: User) -> Response:
        """What the other server answers to a request."""
        if not remote.available:
            return text_answer(f"{UNAVAILABLE}\n", 503)
        query = f"?{request.raw_query}" if request.raw_query else ""
        headers = forwarded(request, dropped=("authorization",)) + identity(user)
        target = (request.raw_path or request.path) + query
        try:
            response = await self._asked(remote, request.method, target, headers, request.body, request.upgrade)
        except _Nowhere:
            return text_answer(f"{UNAVAILABLE}\n", 503)
        except UNREACHED as error:
            return text_answer(f"error trying to reach service: {_told(error)}\n", 503)
        if 300 <= response.status < 400 and "location" in dict(response.headers):
            if not isinstance(response.body, bytes):
                await response.body.aclose()  # type: ignore[attr-defined]
            return Response(502, (("content-type", "text/plain; charset=utf-8"),), REDIRECTED.encode())
        return response

    async def _asked(
        self, remote: Remote, method: str, target: str, headers: Headers, body: bytes = b"", upgrade: str = ""
    ) -> Response:
        """One exchange with any of its addresses. Raises `_Nowhere` and what exchanges raise."""
        spec = remote.spec
        name = f"{spec['service']['name']}.{spec['service']['namespace']}.svc"
        context = _context(spec.get("caBundle") or "", bool(spec.get("insecureSkipTLSVerify")), self.front)
        places = [*self._places(spec["service"])]
        random.shuffle(places)
        wrong: Exception = _Nowhere()
        for place in places[:MAX_TRIES]:
            try:
                line = await reached(self._backend, self.streams, place, context, name)
            except (errors.ApiError, OSError) as error:
                wrong = error
                continue
            return await exchanged(
                line, Sent(method, target, f"{name}:{spec['service']['port']}", headers, body, upgrade)
            )
        raise wrong

    def _places(self, service: Mapping[str, Any]) -> Sequence[Endpoint]:
        found = self._backend.store.get(Key("", "Service", service["namespace"], service["name"]))
        if found is None:
            return []
        spec = found.value["spec"]
        if spec.get("type") == "ExternalName":
            return [Endpoint(spec["externalName"], service["port"])]
        named = [port.get("name") or "" for port in spec.get("ports") or () if port["port"] == service["port"]]
        return endpoints(self._backend.store, service["namespace"], service["name"], named[0]) if named else ()

    # -- looks ---------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Looks after them until it is cancelled: when something changes, and now and then."""
        while True:
            rev = self._backend.store.rev
            try:
                await self.round()
                if self.remotes():  # what changes all the time is looked at now and then
                    await asyncio.sleep(PAUSE_SECONDS)
                concerns, seconds = (CONCERNS, ROUND_SECONDS) if self.remotes() else ((GK,), None)
                tasks = [asyncio.ensure_future(self._backend.changed(gk, rev)) for gk in concerns]
                try:
                    await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for task in tasks:
                        task.cancel()
                    done = await asyncio.gather(*tasks, return_exceptions=True)
                if any(isinstance(each, Gone) for each in done):
                    return
            except errors.ApiError as error:
                log.warning("the state of an APIService could not be written: %s", error.message)
                await asyncio.sleep(1)

    async def round(self) -> None:
        """One look at each. Raises ApiError."""
        await self.tell_local()
        turns = asyncio.Semaphore(MAX_AT_ONCE)
        remotes = dict(self.remotes())
        for gone in [gv for gv in self.resources if gv not in remotes]:
            del self.resources[gone]
            self.documents.pop(gone, None)
            self.changes += 1

        async def look(gv: GV, remote: Remote) -> None:
            async with turns:
                found = await self._look(gv, remote)
            if found.status == "True" and (self.resources.get(gv), self.documents.get(gv)) != (
                found.resources,
                found.documents,
            ):
                self.resources[gv], self.documents[gv] = found.resources, found.documents
                self.changes += 1
            await self._tell(remote.service, found)

        await asyncio.gather(*[look(gv, remote) for gv, remote in remotes.items()])

    async def tell_local(self) -> None:
        """Says of those without a service that they are there. Raises ApiError."""
        new = [obj for obj in self._services() if not obj.value["spec"].get("service") and not _is_available(obj)]
        told = Found("True", "Local", "Local APIServices are always available")
        await asyncio.gather(*[self._tell(obj, told) for obj in new])

    async def _look(self, gv: GV, remote: Remote) -> Found:
        service = remote.spec["service"]
        space, name, port = service["namespace"], service["name"], service["port"]
        found = self._backend.store.get(Key("", "Service", space, name))
        where = f'service/{name} in "{space}"'
        if found is None:
            return Found("False", "ServiceNotFound", f"{where} is not present")
        spec = found.value["spec"]
        if spec.get("type", "ClusterIP") == "ClusterIP":
            named = [each.get("name") or "" for each in spec.get("ports") or () if each["port"] == port]
            if not named:
                return Found("False", "ServicePortError", f"{where} is not listening on port {port}")
            if not any(slices(self._backend.store, space, name)):
                return Found("False", "EndpointsNotFound", f"cannot find endpointslices for {where}")
            if not endpoints(self._backend.store, space, name, named[0]):
                told = f'endpointslices for {where} have no addresses with port name "{named[0]}"'
                return Found("False", "MissingEndpoints", told)
        path = f"/apis/{gv[0]}/{gv[1]}"
        url = f"https://{name}.{space}.svc:{port}{path}"
        try:
            document = await self._document(remote, path)
        except _BadStatus as bad:
            return Found(
                "False", "FailedDiscoveryCheck", f"failing or missing response from {url}: bad status from {url}: {bad}"
            )
        except UNREACHED as error:
            return Found("False", "FailedDiscoveryCheck", f"failing or missing response from {url}: {_told(error)}")
        listed = document.get("resources") if isinstance(document, dict) else None
        resources = tuple(each for each in listed or () if isinstance(each, dict) and each.get("name"))
        return Found("True", "Passed", "all checks passed", resources, await self._described(remote, gv))

    async def _described(self, remote: Remote, gv: GV) -> Mapping[str, Any]:
        """What its index of OpenAPI documents says of the group version; empty where it has none."""
        try:
            document = await self._document(remote, "/openapi/v3")
            found = document["paths"][f"apis/{gv[0]}/{gv[1]}"]
            return {"serverRelativeURL": str(found["serverRelativeURL"])}
        except (KeyError, TypeError, _BadStatus, *UNREACHED):
            return {}

    async def specs(self) -> Mapping[GV, Any]:
        """The documents of /openapi/v2 of all that are there; one that gives none is passed over."""

        async def one(gv: GV, remote: Remote) -> tuple[GV, Any]:
            try:
                return gv, await self._document(remote, "/openapi/v2")
            except (_BadStatus, *UNREACHED) as error:
                log.warning("the OpenAPI document of %s/%s is not there: %s", *gv, _told(error))
                return gv, None

        remotes = [(gv, remote) for gv, remote in self.remotes().items() if remote.available]
        found = await asyncio.gather(*[one(gv, remote) for gv, remote in remotes])
        return {gv: document for gv, document in found if document is not None}

    async def _document(self, remote: Remote, path: str) -> Any:
        async with asyncio.timeout(CHECK_SECONDS):
            response = await self._asked(remote, "GET", path, [("accept", "application/json"), *identity(AGGREGATOR)])
            if response.takeover is not None or not 200 <= response.status < 300:
                raise _BadStatus(str(response.status))
            body = response.body if isinstance(response.body, bytes) else b""
            if not isinstance(response.body, bytes):
                async for piece in response.body:
                    body += piece
                    if len(body) > MAX_DOCUMENT:
                        raise Failed(f"the answer is longer than {MAX_DOCUMENT} bytes")
        try:
            return orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise Failed(f"the answer is not JSON: {error}") from None

    async def _tell(self, obj: Object, found: Found) -> None:
        """Writes the condition Available, if it says something else."""
        conditions = list((obj.value.get("status") or EMPTY).get("conditions") or ())
        before = next((each for each in conditions if each.get("type") == "Available"), EMPTY)
        told = (found.status, found.reason, found.message)
        if told == (before.get("status"), before.get("reason"), before.get("message")):
            return
        since = before.get("lastTransitionTime") if before.get("status") == found.status else None
        condition = {
            "type": "Available",
            "status": found.status,
            "lastTransitionTime": since or time_text(self._backend.now() // MICRO),
            "reason": found.reason,
            "message": found.message,
        }
        rest = [each for each in conditions if each.get("type") != "Available"]
        patch = {"status": {"conditions": [*rest, condition]}, "metadata": {"uid": obj.uid}}
        try:
            await self._backend.write(Write("patch", obj.key, patch, "status", WRITER, "kube-aggregator", options={}))
        except (errors.NotFound, errors.Conflict):
            return  # it has gone, or is another one by now


def _told(error: Exception) -> str:
    if isinstance(error, errors.ApiError):
        return error.message
    if isinstance(error, TimeoutError):
        return "context deadline exceeded"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"tls: failed to verify certificate: {error.verify_message}"
    return str(error)


def _is_available(obj: Object) -> bool:
    return condition_holds(obj.status_value, "Available")


def identity(user: User) -> Headers:
    """The headers that say who asks. Source: client-go transport/round_trippers.go, SetAuthProxyHeaders."""
    pairs = [("X-Remote-User", user.name)] + [("X-Remote-Group", group) for group in user.groups]
    if user.uid:
        pairs.append(("X-Remote-Uid", user.uid))
    pairs += [(f"X-Remote-Extra-{quote(key, safe='')}", value) for key, values in user.extra for value in values]
    return [(name, "".join(char if char.isprintable() else "?" for char in value)) for name, value in pairs]


@lru_cache(maxsize=64)
def _context(ca_bundle: str, unchecked: bool, front: FrontProxy | None) -> ssl.SSLContext:
    """TLS as an APIService wants it. Raises `Failed`."""
    try:
        if unchecked:
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif ca_bundle:
            context = ssl.create_default_context(cadata=base64.b64decode(ca_bundle, validate=True).decode("ascii"))
        else:
            context = ssl.create_default_context()
        if front is not None:
            context.load_cert_chain(front.certificate, front.key)
    except (ValueError, OSError) as error:
        raise Failed(f"unable to load root certificates: {error}") from None
    context.set_alpn_protocols(["http/1.1"])
    return context
