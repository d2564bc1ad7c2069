"""The API server as one handler: `await http.serve(App(backend, tokens), ...)`.

From a request to an answer: who asks (`access`), what is asked for (`route`), may they, then reading (`listing`,
`watch`) or writing (`change`, `scale`), and the form of the answer (`accept`, `render`). Whatever a client does
wrong comes back as a Kubernetes Status.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import aclosing
from typing import Any, Final

import orjson

from steersman.api import errors, preconditions, versions
from steersman.api.access.authz import forbidden
from steersman.api.access.rbac import Ask
from steersman.api.access.review import REVIEWS
from steersman.api.access.user import User
from steersman.api.kinds import VERBS, Kind
from steersman.api.preconditions import MADE_BY_UPDATE
from steersman.kernel.object import Key, Object
from steersman.kernel.ports import NodeStreams
from steersman.serve.accept import PARTIAL, STREAMS, TABLE, Form, discovery_of, form_of, no_list, prefers_yaml
from steersman.serve.answer import (
    JSON_HEADERS,
    STREAMED,
    Shown,
    json_answer,
    list_answer,
    list_of,
    status_answer,
    text_answer,
    with_warnings,
    written,
)
from steersman.serve.aside import aside, is_large
from steersman.serve.asked import asked
from steersman.serve.audience import Audiences
from steersman.serve.audit.mark import mark, marked
from steersman.serve.audit.trail import Auditor
from steersman.serve.backend import Backend
from steersman.serve.bindings import BINDING, bind_named
from steersman.serve.change import Change, Changed
from steersman.serve.converting import Converter
from steersman.serve.credentials import issuer, reviews
from steersman.serve.credentials.access import Access
from steersman.serve.credentials.tokens import Tokens
from steersman.serve.documents.discovery import Discovery
from steersman.serve.documents.openapi import OpenApi
from steersman.serve.documents.openapi_v2 import OpenApiV2
from steersman.serve.documents.version import VERSION
from steersman.serve.encoding import compressed
from steersman.serve.frames import Frames
from steersman.serve.health import PATHS as HEALTH_PATHS
from steersman.serve.health import Check, Health
from steersman.serve.hooks import Hooks
from steersman.serve.listing import check_not_ahead, list_page, next_page, selected_page
from steersman.serve.lists import Kept, Lists
from steersman.serve.message import Request, Response
from steersman.serve.options import ListOptions, list_options, revision, watch_named
from steersman.serve.render import in_form
from steersman.serve.route import Route, resource_route, segments_of
from steersman.serve.scale import read_scale, write_scale
from steersman.serve.served import DEPRECATED, PROXIED, PROXY, Served
from steersman.serve.streams.connect import connect
from steersman.serve.streams.logs import log_answer
from steersman.serve.streams.target import POD
from steersman.serve.table.columns import columns_of
from steersman.serve.table.computed import COMPUTED, Seen, objects
from steersman.serve.telemetry import CONTENT_TYPE as METRICS_TYPE
from steersman.serve.telemetry import Asked, Telemetry
from steersman.serve.upstream.aggregator import Aggregator
from steersman.serve.upstream.proxy import proxied
from steersman.serve.virtual import VirtualStreams
from steersman.serve.watch import Watch
from steersman.serve.watchers import Watchers
from steersman.serve.yaml_answer import in_yaml

NOT_ALLOWED: Final = "the server does not allow this method on the requested resource"
NOT_FOUND: Final = "404 page not found\n"
log = logging.getLogger("steersman.serve")

NODE_PARTS: Final = ("attach", "exec", "log", "portforward")
"""What the node of a pod answers."""
INCLUDES: Final = ("", "Metadata", "None", "Object")


class App:
    """The handler. `tokens` may change while it serves. The kinds are those of `backend.api` when a request comes."""

    def __init__(
        self,
        backend: Backend,
        tokens: Tokens,
        checks: Mapping[str, Check] | None = None,
        numbers: Callable[[], Iterable[tuple[str, str, float]]] = tuple,
        streams: NodeStreams | None = None,
        audit: Auditor | None = None,
    ) -> None:
        """`checks` are behind `/livez`, by name; `numbers` are (name, Prometheus type, value) for `/metrics`; `streams`
        answer for the nodes (virtual ones, if nobody else does); `audit` writes requests down, where somebody wants it.
        """
        self.audit = audit
        self.backend = backend
        self.streams = streams or VirtualStreams()
        self.health = Health(checks)
        self.telemetry = Telemetry()
        self.numbers = numbers
        self.access = Access(backend, tokens)
        self.url = ""
        """Where clients reach it, for documents that must say so."""
        self.frames = Frames()
        self.watchers = Watchers()
        self.audiences = Audiences(lambda: backend.store.rev)
        self.converter = Converter(backend, Hooks())
        self.lists = Lists()
        self.aggregator = Aggregator(backend, self.streams)
        self._documents: tuple[tuple[object, int], Served, Discovery, OpenApi, OpenApiV2] | None = None

    async def __call__(self, request: Request) -> Response:
        """Answers one request; never raises but for its own cancellation."""
        start = time.perf_counter()
        mark(request)
        response = await (self._guarded(request) if self.audit is None else self.audit.observed(request, self._guarded))
        self.telemetry.answered(Asked(*request.labels), response.status, time.perf_counter() - start)
        return compressed(request, marked(request, response))

    def screen(self, request: Request) -> Response | None:
        """The refusal of a request whose body is not read yet, where its head is reason enough."""
        try:
            self.access.known(request)
        except errors.ApiError as error:
            return status_answer(error)
        return None

    async def _guarded(self, request: Request) -> Response:
        try:
            if not prefers_yaml(request.headers.get("accept")):
                return await self._answer(request)
            return await in_yaml(request.path, await self._in_json(request))
        except errors.ApiError as error:
            return status_answer(error)
        except RecursionError:
            return status_answer(errors.bad_request("the request is nested too deeply"))
        except Exception:
            log.exception("%s %s failed", request.method, request.path)
            return status_answer(errors.internal("an error on the server; its log has the details"))

    async def _in_json(self, request: Request) -> Response:
        """An answer that is written in another form then, refusals too."""
        try:
            return await self._answer(request)
        except errors.ApiError as error:
            return status_answer(error)

    async def _answer(self, request: Request) -> Response:
        segments = segments_of(request.raw_path or request.path)
        try:
            _ = request.query
        except ValueError as error:
            raise errors.bad_request(f"the query cannot be read: {error}") from None
        if segments and segments[0] in HEALTH_PATHS and not request.query.pairs and len(segments) == 1:
            return self.health.answer(segments[0], [], request.query)
        ask = asked(request, segments)
        await self.access.prepare(request)
        user = self.access.user_of(request, ask)
        self.access.authorize(request, user, ask)
        remote = self.aggregator.behind(segments)
        if remote is not None:
            return await self.aggregator.answer(remote, request, user)
        if not ask.path:
            if self._is_nowhere(segments):
                return text_answer(NOT_FOUND, 404)
            route = resource_route(self._current()[0], segments)
            origin = route.kind.origin
            warning = DEPRECATED.get(route.kind.gk) if origin is None else origin.warning
            if not warning:
                return await self._resource(request, user, ask, route)
            try:
                return with_warnings(await self._resource(request, user, ask, route), (warning,))
            except errors.ApiError as error:
                if error.code != 405:  # which is said before anybody looks at the kind
                    error.warnings = (warning, *error.warnings)
                raise
        if request.method != "GET" and self._reads_only(segments):
            raise errors.ApiError(405, "MethodNotAllowed", NOT_ALLOWED, errors.Details())
        if segments == ["openapi", "v2"]:
            return await self._current()[3].answer(request)
        if segments[:2] == ["openapi", "v3"]:
            return await self._current()[2].answer("/".join(segments[2:]), request)
        return self._document(request, segments)

    def _current(self) -> tuple[Served, Discovery, OpenApi, OpenApiV2]:
        """What is served, made anew when the registry of kinds is another one."""
        kinds = self.backend.api.at(self.backend.store)
        self.aggregator.remotes()  # counts a change that nobody has asked about yet
        found = self._documents
        if found is None or found[0][0] is not kinds or found[0][1] != self.aggregator.changes:
            served = Served(kinds)
            openapi = OpenApi(served, self.aggregator.documents)
            discovery = Discovery(served, self.aggregator.elsewhere())
            v2 = OpenApiV2(openapi, self.aggregator.specs)
            self._documents = found = ((kinds, self.aggregator.changes), served, discovery, openapi, v2)
        return found[1:]

    # -- paths that are no resources ---------------------------------------------------------------------------

    def _document(self, request: Request, segments: list[str]) -> Response:
        discovery = self._current()[1]
        discovers = segments[:1] in (["api"], ["apis"])
        version = discovery_of(request.headers.get("accept")) if discovers else ""
        body: bytes | None = None
        match segments:
            case ["version"]:
                body = orjson.dumps(VERSION)
            case [("healthz" | "livez" | "readyz") as name, *rest]:
                return self.health.answer(name, rest, request.query)
            case ["metrics"]:
                return text_answer(self._metrics(), content_type=METRICS_TYPE)
            case [("api" | "apis") as root] if version:
                return discovery.answer(root, version, request.headers.get("if-none-match"))
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
            case ["openid", "v1", "jwks"] | [".well-known", "openid-configuration"]:
                return issuer.answer(segments, self.backend.signer, self.url)
            case []:
                roots = ["/api", "/apis", *self.health.paths(), "/metrics", "/openapi/v2", "/openapi/v3", "/version"]
                body = orjson.dumps({"paths": roots})
        if body is None and (self._is_nowhere(segments) or segments[0] not in ("api", "apis")):
            return text_answer(NOT_FOUND, 404)
        if body is None:
            raise errors.resource_not_found()
        return Response(200, JSON_HEADERS, body)

    def _metrics(self) -> str:
        audited = () if self.audit is None else self.audit.log.numbers()
        return self.telemetry.text(self.backend.store, [*self.numbers(), *audited])

    def _reads_only(self, segments: list[str]) -> bool:
        """Whether a path takes GET and no other method, as its route does in kube-apiserver; other documents are given
        to any, HEAD among them."""
        match segments:
            case ["version"] | ["api"] | ["api", _] | ["openid", "v1", "jwks"] | [".well-known", _]:
                return True
            case ["apis", group, version]:
                return not self._is_nowhere(segments) and bool(self._current()[0].kinds_of(group, version))
        return False

    def _is_nowhere(self, segments: list[str]) -> bool:
        """Whether a path begins with a group that is not there, or with a version that no definition of its group
        serves: kube-apiserver has nobody there who would answer with a Status."""
        if segments[0] != "apis" or len(segments) < 2:
            return False
        served, group = self._current()[0], segments[1]
        versions = served.groups.get(group)
        if versions is None:
            return True
        if len(segments) < 3 or segments[2] in versions:
            return False
        return all(kind.custom for version in versions for kind in served.kinds_of(group, version))

    # -- resources ---------------------------------------------------------------------------------------------

    async def _resource(self, request: Request, user: User, ask: Ask, route: Route) -> Response:
        proxy = route.part is not None and route.part.name == PROXY
        verb = ask.verb if proxy else _verb(request, route)
        _check_same(ask, route, verb)
        request.labels = labels_of(route, verb)
        if proxy:
            return await proxied(Change(self.backend, route, request, user.name, user), self.streams)
        allowed = route.part.verbs if route.part else VERBS if route.kind.custom else route.kind.verbs
        needs_namespace = verb in ("create", "deletecollection") and route.kind.namespaced
        if verb not in allowed or (needs_namespace and not route.namespace):
            raise errors.ApiError(405, "MethodNotAllowed", NOT_ALLOWED, errors.Details())
        if route.part is not None and route.kind.gk == POD and route.part.name in NODE_PARTS:
            if route.part.name == "log":
                return await log_answer(self.backend, self.streams, request, route)
            return await connect(Change(self.backend, route, request, user.name, user), self.streams)
        return await self._perform(request, user, ask, route, verb)

    async def _perform(self, request: Request, user: User, ask: Ask, route: Route, verb: str) -> Response:
        form = form_of(request.headers.get("accept"), verb in ("list", "watch", "deletecollection"))
        if form.kind == PARTIAL and verb in ("list", "deletecollection"):
            raise no_list(route.kind)
        columns = columns_of(route.kind) if form.kind == TABLE else None
        shown = Shown(form, _include(request, form), self.backend.now(), columns)
        if route.kind.gk in COMPUTED:
            return self._computed(request, route, shown)
        if verb == "get":
            return await self._get(request, route, shown)
        if verb in ("list", "watch"):
            return await self._list(request, user, route, shown)
        if route.kind.gk in REVIEWS:
            done = await reviews.answer(self.access, request, user, route)
            return await self._changed(route, done, shown)
        change = Change(
            self.backend, route, request, user.name, user, self._no_create(user, ask, route), self.converter
        )
        if route.part is not None and route.part.name == "scale":
            done = await write_scale(change)
        elif route.kind.gk == BINDING:
            done = await bind_named(change)
        elif verb == "create":
            done = await (change.create_part() if route.part else change.create())
        elif verb == "update":
            done = await change.update()
        elif verb == "patch":
            done = await change.patch()
        else:
            done = await (change.delete() if route.name else change.delete_collection())
        return await self._changed(route, done, shown)

    def _no_create(self, user: User, ask: Ask, route: Route) -> errors.ApiError | None:
        """Why a patch or update may not create the object if it is not there: that needs the verb create, too."""
        if ask.verb != "patch" and not (ask.verb == "update" and route.kind.gk in MADE_BY_UPDATE):
            return None
        create = ask._replace(verb="create")
        decision = self.access.decide(user, create)
        return None if decision.allowed else forbidden(user, create, decision.reason)

    def _computed(self, request: Request, route: Route, shown: Shown) -> Response:
        """A get or a list of a kind whose objects are not stored."""
        backend, kind = self.backend, route.kind
        seen = Seen(backend.store, self.health.found(), backend.now())
        found = objects(kind, seen)
        if route.name:
            for obj in found:
                if (obj.key.namespace, obj.key.name) == (route.namespace, route.name):
                    return json_answer(200, in_form(obj, *shown))
            raise errors.not_found(kind.plural, route.name, kind.group)
        options = list_options(request.query)
        query = backend.api.query(kind, route.namespace or None, options.labels, options.fields)
        kept = [
            obj
            for obj in found
            if route.namespace in ("", obj.key.namespace) and (query.matches is None or query.matches(obj))
        ]
        return list_answer(kind, kept, {"resourceVersion": str(backend.store.rev)}, shown)

    async def _list(self, request: Request, user: User, route: Route, shown: Shown) -> Response:
        options = list_options(request.query)
        if route.watch:
            options = watch_named(options, route.name)
        if options.watch:
            self.watchers.check(user.name)
            if prefers_yaml(request.headers.get("accept")):
                raise errors.not_acceptable(STREAMS)
            asks = self.converter if route.kind.origin is not None and route.kind.origin.webhook is not None else None
            watch = await self.converter.read(
                route.kind,
                lambda k: Watch(
                    self.backend, self.frames, self.audiences, k, route.namespace, options, shown, converter=asks
                ),
            )
            stream = self._watched(user, Asked(*request.labels), watch.stream())
            return Response(200, JSON_HEADERS, stream, offer=watch.offered)
        return await self._listed(route.kind, route.namespace, options, shown)

    async def _watched(self, user: User, asked: Asked, stream: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
        """The stream of a watch, counted while it is open."""
        with self.watchers.counted(user.name), self.telemetry.watching(asked):
            async with aclosing(stream) as chunks:
                async for chunk in chunks:
                    yield chunk

    async def _listed(self, kind: Kind, namespace: str, options: ListOptions, shown: Shown) -> Response:
        converted = kind.origin is not None and kind.origin.webhook is not None
        if converted or options.token or options.match == "Exact":
            page = await self.converter.read(kind, lambda kind: list_page(self.backend, kind, namespace, options))
            return list_answer(kind, page.items, _list_meta(page.rev, page.token, page.remaining), shown)
        if shown.columns is not None:
            page = await selected_page(self.backend, kind, namespace, options)
            return list_answer(kind, page.items, _list_meta(page.rev, page.token, page.remaining), shown)
        store = self.backend.store
        check_not_ahead(options.rev or 0, store.rev)
        place = (kind, namespace, options.labels, options.fields, options.limit, shown.form)
        mark, rev = store.mark(kind.gk), store.rev
        kept = self.lists.get(place, mark)
        if kept is None:
            page = await selected_page(self.backend, kind, namespace, options)
            rev = page.rev  # the head may have gone on
            if len(page.items) > STREAMED:
                return list_answer(kind, page.items, _list_meta(page.rev, page.token, page.remaining), shown)
            last = page.items[-1].key if page.token else None
            kept = Kept(written(kind, page.items, shown), (last.namespace, last.name) if last else None, page.remaining)
            self.lists.keep(place, mark, kept)
        token = next_page(rev, kept.after) if kept.after else ""
        return list_of(kind, kept.items, _list_meta(rev, token, kept.remaining), shown)

    async def _get(self, request: Request, route: Route, shown: Shown) -> Response:
        if route.part is not None and route.part.name == "scale":
            change = Change(self.backend, route, request, "", converter=self.converter)
            return json_answer(200, await read_scale(change, shown))
        wanted = request.query.get("resourceVersion")
        if wanted:
            check_not_ahead(revision(wanted), self.backend.store.rev)
        key = Key(*route.kind.gk, route.namespace, route.name)
        found = await self.converter.read(route.kind, lambda k: preconditions.existing(self.backend.store, key, k))
        return json_answer(200, await _shown(found, shown))

    async def _changed(self, route: Route, done: Changed, shown: Shown) -> Response:
        kind = route.kind
        if kind.custom or kind.alias is not None:
            obj, objs = done.obj, done.objs
            if obj is not None:
                seen = obj
                done = done._replace(obj=await self.converter.read(kind, lambda k: versions.shown(k, seen)))
            if objs is not None and kind.alias is not None:
                done = done._replace(objs=[versions.shown(kind, one) for one in objs])
        if done.objs is not None:
            meta = {"resourceVersion": str(self.backend.store.rev)}
            response = list_answer(route.kind, done.objs, meta, shown)
        elif done.obj is None:
            response = json_answer(done.code, orjson.dumps(done.document))
        else:
            response = json_answer(done.code, await _shown(done.obj, shown))
        return with_warnings(response, done.warnings)


async def _shown(obj: Object, shown: Shown) -> bytes:
    """An object in the form that was asked for."""
    return await aside(in_form, obj, *shown) if is_large(obj) else in_form(obj, *shown)


def _list_meta(rev: int, token: str, remaining: int | None) -> dict[str, Any]:
    meta: dict[str, Any] = {"resourceVersion": str(rev)}
    if token:
        meta["continue"] = token
        if remaining is not None:
            meta["remainingItemCount"] = remaining
    return meta


def _verb(request: Request, route: Route) -> str:
    """The API verb of a request, as authorization names it; one that no kind has for other methods."""
    method, named = request.method, bool(route.name)
    if route.watch:
        return "watch" if method == "GET" else method
    if method == "GET":
        return "get" if named else "watch" if request.query.flag("watch") else "list"
    if method == "POST" and (route.part is not None or not named):
        return "create"
    if method == "DELETE" and route.part is None:
        return "delete" if named else "deletecollection"
    if named and method in ("PUT", "PATCH"):
        return "update" if method == "PUT" else "patch"
    return method  # in capitals it is no verb


def labels_of(route: Route, verb: str) -> Asked:
    """What is counted of a request: nothing that a client made up."""
    kind = route.kind
    scope = "resource" if route.name else "namespace" if route.namespace else "cluster"
    shown = verb.upper() if verb.islower() else "other"
    part = route.part.name if route.part else ""
    if (part in NODE_PARTS and kind.gk == POD) or (part == PROXY and kind.gk in PROXIED):
        shown = "CONNECT"  # as kube-apiserver counts what a node answers
    return Asked(shown, kind.group, kind.version, kind.plural, route.part.name if route.part else "", scope)


def _check_same(ask: Ask, route: Route, verb: str) -> None:
    """Raises 404 unless what was authorized is what would be done: two readings of a path must not differ."""
    part = route.part.name if route.part else ""
    same = (ask.group, ask.resource, ask.part) == (route.kind.group, route.kind.plural, part)
    same = same and route.name in ("", ask.name) and route.namespace in ("", ask.namespace)
    if not same or (verb != ask.verb and verb.islower()):
        raise errors.resource_not_found()


def _include(request: Request, form: Form) -> str:
    """includeObject of a Table. Raises ApiError 400."""
    include = request.query.get("includeObject") if form.kind == TABLE else ""
    if include not in INCLUDES:
        detail = "must be 'Metadata', 'Object', 'None', or empty"
        cause = errors.Cause.invalid("includeObject", include[:60], detail)
        raise errors.bad_request(f"Unable to convert to Table as requested: {cause}")
    return include
