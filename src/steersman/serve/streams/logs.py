"""GET of pods/NAME/log: the options, judged as kube-apiserver judges them, and the text, piece by piece.

Source of the facts: kubernetes pkg/registry/core/pod/rest/log.go, ValidatePodLogOptions in
pkg/apis/core/validation/validation.go, and apimachinery's conversions of query parameters, release 1.36.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Final

from steersman.api import errors
from steersman.api.errors import Cause, quote
from steersman.api.times import MICRO, TimeError, parse_time
from steersman.kernel.ports import NodeStreams
from steersman.kernel.streams import LogQuery
from steersman.serve.answer import NO_CACHE
from steersman.serve.backend import Backend
from steersman.serve.message import Query, Request, Response
from steersman.serve.route import Route
from steersman.serve.streams.target import container_of, existing_pod, on_its_node

MAX_INT64: Final = (1 << 63) - 1
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,25}", re.ASCII)
TEXT: Final = (("content-type", "text/plain"), NO_CACHE)


async def log_answer(backend: Backend, streams: NodeStreams, request: Request, route: Route) -> Response:
    """The answer to a GET of a log; 204 for a pod that is on no node yet, as in Kubernetes. Raises ApiError."""
    query = log_query(request.query, route.name, backend.now())
    pod = existing_pod(backend, route.namespace, route.name)
    container = container_of(pod, request.query.get("container"))
    if not pod.node:
        return Response(204, (NO_CACHE,))
    log = await streams.logs(on_its_node(backend, pod, container), query)
    text = log if query.limit is None else _cut(log, query.limit)
    return Response(200, TEXT, text, endless=query.follow)


def log_query(query: Query, name: str, now: int) -> LogQuery:
    """The options of a request for the log of the pod `name`. Raises ApiError 400, 422."""
    tail, seconds, limit = (_integer(query, field) for field in ("tailLines", "sinceSeconds", "limitBytes"))
    since = _time(query.get("sinceTime"))
    causes = []
    if tail is not None and tail < 0:
        causes.append(Cause.invalid("tailLines", tail, "must be greater than or equal to 0"))
    if limit is not None and limit < 1:
        causes.append(Cause.invalid("limitBytes", limit, "must be greater than 0"))
    if seconds is not None and since is not None:
        causes.append(Cause.forbidden("", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    elif seconds is not None and seconds < 1:
        causes.append(Cause.invalid("sinceSeconds", seconds, "must be greater than 0"))
    if "stream" in query and query.get("stream"):  # a feature of alpha quality, off by default
        causes.append(Cause.forbidden("stream", "may not be specified"))
    if causes:
        raise errors.invalid("PodLogOptions", name, causes)
    if seconds is not None:
        since = now - seconds * MICRO
    follow, previous, timestamps = (query.flag(field) for field in ("follow", "previous", "timestamps"))
    return LogQuery(follow, previous, timestamps, since, tail, limit)


def _integer(query: Query, field: str) -> int | None:
    if field not in query:
        return None
    text = query.get(field)
    if not _INTEGER.fullmatch(text):
        raise errors.bad_request(f"strconv.ParseInt: parsing {quote(text[:60])}: invalid syntax")
    if not -MAX_INT64 - 1 <= int(text) <= MAX_INT64:
        raise errors.bad_request(f"strconv.ParseInt: parsing {quote(text)}: value out of range")
    return int(text)


def _time(text: str) -> int | None:
    if text in ("", "null"):
        return None
    try:
        return parse_time(text)
    except TimeError as error:
        raise errors.bad_request(f"sinceTime: {error}") from None


async def _cut(log: AsyncIterator[bytes], limit: int) -> AsyncIterator[bytes]:
    """The log up to `limit` bytes."""
    left = limit
    try:
        async for piece in log:
            yield piece[:left]
            left -= len(piece)
            if left <= 0:
                return
    finally:
        aclose = getattr(log, "aclose", None)
        if aclose is not None:
            await aclose()
