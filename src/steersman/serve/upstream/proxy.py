"""/proxy of pods, services and nodes: a client's request goes to them and their answer comes back.

Pods are reached through the node they are on (`NodeStreams.forward`), so that a pod on a virtual node answers with
whatever serves its port; a node answers on its own ports (`NodeStreams.dial`). Source of rules and texts: kubernetes
pkg/registry/core/{pod,node}/strategy.go and service/storage/storage.go (ResourceLocation), release 1.36.
"""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote

from steersman.api import errors
from steersman.kernel.object import Key, Object
from steersman.kernel.ports import NodeStreams
from steersman.kernel.streams import Site, Tunnel
from steersman.kernel.value import EMPTY
from steersman.serve.answer import with_warnings
from steersman.serve.backend import Backend
from steersman.serve.change import Change
from steersman.serve.kubelet import KUBELET
from steersman.serve.message import Response
from steersman.serve.outgoing import Failed
from steersman.serve.route import Route
from steersman.serve.streams.options import admitted
from steersman.serve.streams.target import existing_pod, on_its_node
from steersman.serve.upstream.exchange import Sent, exchanged, forwarded
from steersman.serve.upstream.line import Line, tunnelled
from steersman.serve.upstream.links import ENCODINGS, Through, rewritten

METHODS: Final = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")
SCHEMES: Final = {"": 80, "http": 80, "https": 443}


class Place(NamedTuple):
    """Who is asked. `node` is set for a node itself, else it is a pod."""

    obj: Object
    scheme: str
    port: int


async def proxied(change: Change, streams: NodeStreams) -> Response:
    """The answer of what is behind a /proxy path. Raises ApiError."""
    request, route = change.http, change.route
    if request.method not in METHODS:
        raise errors.ApiError(405, "MethodNotAllowed", "the server does not allow this method", errors.Details())
    whole = request.raw_path or request.path
    path = _below(whole, 7 if route.namespace else 5)
    prefix = unquote(whole.removesuffix(path))
    wanted = await admitted(change, path)
    if (wanted.options.get("path") or "") != unquote(path):
        path = quote(wanted.options.get("path") or "")
    try:
        return with_warnings(await _proxied(change, streams, path, prefix), wanted.warnings)
    except errors.ApiError as error:
        error.warnings = (*wanted.warnings, *error.warnings)
        raise


async def _proxied(change: Change, streams: NodeStreams, path: str, prefix: str) -> Response:
    """The answer to a request for a path behind the proxy, as it goes over the wire; `prefix` is the proxy's own."""
    backend, request, route = change.backend, change.http, change.route
    place = _place(backend, route)
    if not path and request.method in ("GET", "HEAD") and not request.upgrade:
        query = f"?{request.raw_query}" if request.raw_query else ""
        return Response(301, (("location", f"{request.path}/{query}"),))
    target = (path or "/") + (f"?{request.raw_query}" if request.raw_query else "")
    headers = forwarded(request, dropped=("authorization", "x-forwarded-uri"))
    headers.append(("x-forwarded-uri", quote(prefix, safe="/:") + (path or "/")))
    host = request.headers.get("host") or place.obj.key.name
    sent = Sent(request.method, target, host, headers, request.body, request.upgrade)
    address = (place.obj.status_value or EMPTY).get("podIP") or place.obj.key.name
    way = Through(prefix, host, f"{address}:{place.port}")
    line = await _line(backend, streams, place)
    try:
        response = await exchanged(line, sent)
    except (Failed, OSError, ssl.SSLError) as error:
        raise _unreachable(place, str(error)) from None
    return _led_back(response, way)


def _below(raw_path: str, segments: int) -> str:
    """What comes behind so many segments, as the client wrote it: "" or a path."""
    rest = raw_path
    for _ in range(segments):
        rest = rest.lstrip("/")
        _, slash, after = rest.partition("/")
        rest = slash + after
    return rest


def _place(backend: Backend, route: Route) -> Place:
    scheme, name, port = _split(route)
    if route.kind.kind == "Node":
        node = backend.store.get(Key("", "Node", "", name))
        if node is None:
            raise errors.not_found("nodes", name)
        return Place(node, scheme, int(port) if port.isdigit() else KUBELET)
    if route.kind.kind == "Service":
        return _behind(backend, route.namespace, name, port, scheme, route.name)
    pod = existing_pod(backend, route.namespace, name)
    ports = [each for one in pod.value["spec"].get("containers") or () for each in one.get("ports") or ()]
    number = port or (str(ports[0]["containerPort"]) if ports else str(SCHEMES[scheme]))
    if not number.isdigit():
        raise errors.bad_request(f"invalid pod request {errors.quote(route.name)}: the port is no number")
    try:
        allowed = ipaddress.ip_address((pod.value.get("status") or EMPTY).get("podIP") or "")
        fine = not (allowed.is_loopback or allowed.is_link_local or allowed.is_unspecified or allowed.is_multicast)
    except ValueError:
        fine = False
    if not fine:
        raise errors.bad_request("address not allowed")
    return Place(pod, scheme, int(number))


def _split(route: Route) -> tuple[str, str, str]:
    """Scheme, name and port of `name`, `name:port` or `scheme:name:port`. Raises ApiError 400."""
    parts = route.name.split(":")
    scheme, name, port = {1: ("", parts[0], ""), 2: ("", *parts), 3: tuple(parts)}.get(len(parts), ("?", "", ""))
    if scheme not in SCHEMES or not name:
        what = route.kind.kind.lower()
        raise errors.bad_request(f"invalid {what} request {errors.quote(route.name)}")
    return scheme, name, port


def _behind(backend: Backend, namespace: str, name: str, port: str, scheme: str, asked: str) -> Place:
    """A pod behind a service: the first that is there, of those its Endpoints have for the port."""
    if port.isdigit():
        service = backend.store.get(Key("", "Service", namespace, name))
        if service is None:
            raise errors.not_found("services", name)
        named = [each.get("name", "") for each in service.value["spec"].get("ports") or () if each["port"] == int(port)]
        if not named:
            raise errors.service_unavailable(f"no service port {port} found for service {errors.quote(name)}")
        port = named[0]
    found = backend.store.get(Key("", "Endpoints", namespace, name))
    if found is None:
        raise errors.not_found("endpoints", name)
    subsets: Sequence[Mapping[str, Any]] = found.value.get("subsets") or ()
    for subset in subsets:
        numbers = [each["port"] for each in subset.get("ports") or () if each.get("name", "") == port]
        for address in subset.get("addresses") or () if numbers else ():
            ref = address.get("targetRef") or EMPTY
            pod = backend.store.get(Key("", "Pod", ref.get("namespace", namespace), ref.get("name", "")))
            if pod is not None and pod.node:
                return Place(pod, scheme, numbers[0])
    told = name if not subsets else asked
    raise errors.service_unavailable(f"no endpoints available for service {errors.quote(told)}")


async def _line(backend: Backend, streams: NodeStreams, place: Place) -> Line:
    """A connection to it. Raises ApiError."""
    context = _unchecked() if place.scheme == "https" else None
    try:
        return await tunnelled(await _tunnel(backend, streams, place), context)
    except errors.ApiError as error:
        raise _unreachable(place, error.message) from None
    except (OSError, ssl.SSLError) as error:
        raise _unreachable(place, str(error)) from None


async def _tunnel(backend: Backend, streams: NodeStreams, place: Place) -> Tunnel:
    if place.obj.key.kind == "Node":
        name = place.obj.key.name

        def pods() -> list[Object]:
            return [pod for pod in backend.store.list(("", "Pod")) if pod.node == name]

        return await streams.dial(Site(place.obj, pods), place.port)
    if not place.obj.node:
        raise errors.bad_request(f"pod {place.obj.key.name} does not have a host assigned")
    return await streams.forward(on_its_node(backend, place.obj, ""), place.port)


@cache
def _unchecked() -> ssl.SSLContext:
    """TLS to a pod or node whose certificate nobody can check: kube-apiserver does not either."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _unreachable(place: Place, why: str) -> errors.ApiError:
    """As kube-apiserver tells that nobody answered."""
    key = place.obj.key
    where = f"{key.kind.lower()} {key.name} port {place.port}"
    return errors.service_unavailable(f"error trying to reach service: {where}: {why or 'no answer'}")


def _led_back(response: Response, way: Through) -> Response:
    """An answer whose links within what is behind the proxy lead through the proxy again."""
    pairs: list[tuple[str, str]] = list(response.headers)  # type: ignore[arg-type]  # as `exchanged` gives them
    headers = dict(pairs)
    if headers.get("location"):
        response.headers = [(k, way.url(v) if k == "location" else v) for k, v in pairs]
        return response
    encoding = headers.get("content-encoding", "")
    is_page = headers.get("content-type", "").partition(";")[0].strip() == "text/html"
    if is_page and encoding in ENCODINGS and not isinstance(response.body, bytes):
        response.headers = [pair for pair in pairs if pair[0] != "content-length"]
        response.body = rewritten(response.body, encoding, way.url)
    return response
