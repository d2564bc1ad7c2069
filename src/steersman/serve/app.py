"""The API server as one handler: `await http.serve(App(backend, tokens), ...)`.

From a request to an answer: who asks (`access`), what is asked for (`route`), may they, then reading (`listing`,
`watch`) or writing (`change`, `scale`), and the form of the answer (`accept`, `render`). Whatever a client does
wrong comes back as a Kubernetes Status.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any, Final

import orjson

from steersman.api import errors
from steersman.kernel.object import Key, Object
from steersman.serve.accept import PARTIAL_LIST, TABLE, Form, discovery_of, form_of
from steersman.serve.access import authorize, authorize_path, identify
from steersman.serve.backend import Backend
from steersman.serve.change import Change, Changed
from steersman.serve.discovery import Discovery
from steersman.serve.frames import Frames
from steersman.serve.listing import check_not_ahead, list_page
from steersman.serve.message import Request, Response
from steersman.serve.openapi import OpenApi
from steersman.serve.options import list_options, revision
from steersman.serve.render import in_form, object_json, partial, table
from steersman.serve.route import Route, resource_route, segments_of
from steersman.serve.scale import read_scale, write_scale
from steersman.serve.served import Served
from steersman.serve.tokens import Identity, Tokens
from steersman.serve.watch import Watch

log = logging.getLogger("steersman.serve")

HEALTH: Final = ("healthz", "livez", "readyz")
INCLUDES: Final = ("", "Metadata", "None", "Object")
STREAMED: Final = 2000
"""Lists of more objects are written piece by piece, so that others get their turn meanwhile."""
PIECE: Final = 500
"""Objects in one such piece; 500 pods take some 5 ms."""
JSON_HEADERS: Final = (("content-type", "application/json"), ("cache-control", "no-cache, private"))
VERSION: Final = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.0+steersman",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "python",
    "platform": "linux/amd64",
}
"""/version: clients read major and minor; the rest says who really answers."""


class App:
    """The handler. `tokens` may change while it serves. The kinds are those of `backend.api` when a request comes."""

    def __init__(self, backend: Backend, tokens: Tokens) -> None:
        self.backend = backend
        self.tokens = tokens
        self.frames = Frames()
        self._documents: tuple[object, Served, Discovery, OpenApi] | None = None

    async def __call__(self, request: Request) -> Response:
        """Answers one request; never raises but for its own cancellation."""
        try:
            return await self._answer(request)
        except errors.ApiError as error:
            return _status(error)
        except RecursionError:
            return _status(errors.bad_request("the request is nested too deeply"))
        except Exception:
            log.exception("%s %s failed", request.method, request.path)
            return _status(errors.internal("an error on the server; its log has the details"))

    async def _answer(self, request: Request) -> Response:
        segments = segments_of(request.raw_path or request.path)
        try:
            _ = request.query
        except ValueError as error:
            raise errors.bad_request(f"the query cannot be read: {error}") from None
        if segments and segments[0] in HEALTH and not request.query.pairs and len(segments) == 1:
            return _text("ok")
        identity = identify(request, self.tokens)
        if (segments[:1] == ["api"] and len(segments) > 2) or (segments[:1] == ["apis"] and len(segments) > 3):
            return await self._resource(request, identity, resource_route(self._current()[0], segments))
        authorize_path(identity, request.method.lower(), request.path)
        if request.method not in ("GET", "HEAD"):
            raise errors.ApiError(405, "MethodNotAllowed", "the server does not allow this method on this path")
        return self._document(request, segments)

    def _current(self) -> tuple[Served, Discovery, OpenApi]:
        """What is served, made anew when the registry of kinds is another one."""
        kinds = self.backend.api.kinds
        if self._documents is None or self._documents[0] is not kinds:
            served = Served(kinds)
            self._documents = (kinds, served, Discovery(served), OpenApi(served))
        return self._documents[1:]

    # -- paths that are no resources ---------------------------------------------------------------------------

    def _document(self, request: Request, segments: list[str]) -> Response:
        _, discovery, openapi = self._current()
        version = discovery_of(request.headers.get("accept"))
        body: bytes | None = None
        match segments:
            case ["version"]:
                body = orjson.dumps(VERSION)
            case [("healthz" | "livez" | "readyz") as name, *rest]:
                return self._health(request, name, rest)
            case [("api" | "apis") as root] if version:
                parameters = f"g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
                content_type = f"application/json;{parameters}"
                return Response(200, (("content-type", content_type),), discovery.aggregated(root, version))
            case ["api"]:
                body = discovery.versions()
            case ["apis"]:
                body = discovery.groups()
            case ["api", version]:
                body = discovery.resources("", version)
            case ["apis", group]:
                body = discovery.group(group)
            case ["apis", group, version]:
                body = discovery.resources(group, version) if group else None
            case ["openapi", "v3", *rest]:
                return openapi.answer("/".join(rest), request)
            case []:
                paths = ["/api", "/apis", "/healthz", "/livez", "/openapi/v3", "/readyz", "/version"]
                body = orjson.dumps({"paths": paths})
        if body is None:
            raise errors.resource_not_found()
        return Response(200, JSON_HEADERS, body)

    def _health(self, request: Request, name: str, rest: list[str]) -> Response:
        if rest and rest != ["ping"]:
            raise errors.resource_not_found()
        if "verbose" not in request.query:
            return _text("ok")
        return _text(f"[+]ping ok\n{name} check passed\n")

    # -- resources ---------------------------------------------------------------------------------------------

    async def _resource(self, request: Request, identity: Identity, route: Route) -> Response:
        method = request.method
        verb = _verb(request, route)
        authorize(identity, verb, route)
        allowed = route.part.verbs if route.part else route.kind.verbs
        in_wrong_place = verb in ("create",) and not route.part and route.kind.namespaced and not route.namespace
        if verb not in allowed or in_wrong_place:
            raise errors.ApiError(
                405,
                "MethodNotAllowed",
                "the server does not allow this method on the requested resource",
                errors.Details(group=route.kind.group, kind=route.kind.plural),
            )
        if method in ("GET", "HEAD"):
            return await self._read(request, route, verb)
        change = Change(self.backend, route, request, identity.user)
        if route.part is not None and route.part.name == "scale":
            done = await write_scale(change)
        elif verb == "create":
            done = await (change.create_part() if route.part else change.create())
        elif verb == "update":
            done = await change.update()
        elif verb == "patch":
            done = await change.patch()
        else:
            done = await (change.delete() if route.name else change.delete_collection())
        return self._changed(request, route, done)

    async def _read(self, request: Request, route: Route, verb: str) -> Response:
        if verb == "get":
            return self._get(request, route)
        form = form_of(request.headers.get("accept"), True)
        include = _include(request, form)
        options = list_options(request.query)
        if options.watch:
            watch = Watch(self.backend, self.frames, route.kind, route.namespace, options, form, include)
            headers = (("content-type", form.content_type), ("cache-control", "no-cache, private"))
            return Response(200, headers, watch.stream())
        page = list_page(self.backend, route.kind, route.namespace, options)
        meta: dict[str, Any] = {"resourceVersion": str(page.rev)}
        if page.token:
            meta["continue"] = page.token
            if page.remaining is not None:
                meta["remainingItemCount"] = page.remaining
        return self._list(route, page.items, meta, form, include)

    def _get(self, request: Request, route: Route) -> Response:
        if route.part is not None and route.part.name == "scale":
            return _json(200, orjson.dumps(read_scale(Change(self.backend, route, request, "")).document))
        form = form_of(request.headers.get("accept"), False)
        include = _include(request, form)
        wanted = request.query.get("resourceVersion")
        if wanted:
            check_not_ahead(revision(wanted), self.backend.store.rev)
        found = self.backend.store.get(Key(*route.kind.gk, route.namespace, route.name))
        if found is None:
            raise errors.not_found(route.kind.plural, route.name, route.kind.group)
        return _json(200, in_form(found, form, include, self.backend.now()), form)

    def _list(self, route: Route, items: list[Object], meta: dict[str, Any], form: Form, include: str) -> Response:
        kind = route.kind
        if form.kind == TABLE:
            return _json(200, table(items, kind.gk, include, self.backend.now(), meta), form)
        name, api_version = kind.list_kind, kind.api_version
        if form.kind:
            name, api_version = PARTIAL_LIST, "meta.k8s.io/v1"
        head = orjson.dumps({"kind": name, "apiVersion": api_version, "metadata": meta})[:-1] + b',"items":['
        if len(items) <= STREAMED:
            return _json(200, head + _items(items, form) + b"]}", form)
        return Response(200, _headers(form), _pieces(head, items, form), endless=False)

    def _changed(self, request: Request, route: Route, done: Changed) -> Response:
        warnings = [("warning", f"299 - {_quoted(text)}") for text in done.warnings]
        if done.objs is not None:
            response = self._list(route, done.objs, {"resourceVersion": str(self.backend.store.rev)}, Form(), "")
        elif done.obj is None:
            response = _json(done.code, orjson.dumps(done.document))
        else:
            form = form_of(request.headers.get("accept"), False)
            body = in_form(done.obj, form, _include(request, form), self.backend.now())
            response = _json(done.code, body, form)
        response.headers = (*response.headers, *warnings)
        return response


def _verb(request: Request, route: Route) -> str:
    """The API verb of a request, as authorization names it. Raises ApiError 405."""
    method, named = request.method, bool(route.name)
    if method in ("GET", "HEAD"):
        return "get" if named else "watch" if request.query.flag("watch") else "list"
    if method == "POST" and (route.part is not None or not named):
        return "create"
    if method == "DELETE" and route.part is None:
        return "delete" if named else "deletecollection"
    if named and method in ("PUT", "PATCH"):
        return "update" if method == "PUT" else "patch"
    return method.lower()  # no kind has such a verb


def _include(request: Request, form: Form) -> str:
    """includeObject of a Table. Raises ApiError 400."""
    include = request.query.get("includeObject") if form.kind == TABLE else ""
    if include not in INCLUDES:
        raise errors.bad_request(f"includeObject is {errors.quote(include[:60])}; use None, Metadata or Object")
    return include


def _items(items: list[Object], form: Form) -> bytes:
    if form.kind:
        return orjson.dumps([partial(obj) for obj in items])[1:-1]
    return b",".join(map(object_json, items))


async def _pieces(head: bytes, items: list[Object], form: Form) -> AsyncIterator[bytes]:
    """A long list, piece by piece; the objects are those of one moment."""
    for start in range(0, len(items), PIECE):
        yield (b"," if start else head) + _items(items[start : start + PIECE], form)
        await asyncio.sleep(0)
    yield b"]}"


def _headers(form: Form) -> tuple[tuple[str, str], ...]:
    if not form.kind:
        return JSON_HEADERS
    return (("content-type", form.content_type), JSON_HEADERS[1])


def _json(code: int, body: bytes, form: Form = Form()) -> Response:  # noqa: B008 - immutable
    return Response(code, _headers(form), body)


def _text(text: str) -> Response:
    headers = (("content-type", "text/plain; charset=utf-8"), ("x-content-type-options", "nosniff"))
    return Response(200, (*headers, ("cache-control", "no-cache, private")), text.encode())


def _status(error: errors.ApiError) -> Response:
    headers = list(JSON_HEADERS)
    if error.retry_after_seconds:
        headers.append(("retry-after", str(error.retry_after_seconds)))
    if error.code == 401:
        headers.append(("www-authenticate", "Bearer"))
    return Response(error.code, headers, orjson.dumps(error.status(), default=str))


def _quoted(text: str) -> str:
    """A warning text as a quoted string of a header: printable ASCII, bounded."""
    plain = "".join(char if char.isascii() and char.isprintable() else "?" for char in text)[:1000]
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'
