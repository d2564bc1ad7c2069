"""POST of a review: an answer about users and rights; nothing is stored."""

from __future__ import annotations

from typing import Any

from steersman.api import errors
from steersman.api.access import review
from steersman.api.access.user import User
from steersman.api.times import time_text
from steersman.kernel.effect import MICRO
from steersman.kernel.value import EMPTY
from steersman.serve.body import read_object
from steersman.serve.change import Changed, duplicates
from steersman.serve.credentials.access import Access
from steersman.serve.message import Request
from steersman.serve.options import write_options
from steersman.serve.route import Route


async def answer(access: Access, request: Request, user: User, route: Route) -> Changed:
    """Answers a review of the route's kind. Raises ApiError 400, 415, 422."""
    kind = route.kind
    options = write_options(request.query, "CreateOptions")
    body = read_object(request.headers.get("content-type"), request.body, (kind.api_version, kind.kind))
    warnings = list(duplicates(body, options))
    given = review.take(kind, body.value, options["validation"], warnings)
    store = access.backend.store
    document: dict[str, Any]
    if kind.gk in review.ACCESS:
        document = review.access(access.rbac, store, user, kind, given, route.namespace)
    elif kind.gk == review.RULES:
        document = review.rules(access.rbac, store, user, kind, given)
    elif kind.gk == review.SELF:
        document = review.myself(user, kind, time_text(access.backend.now() // MICRO))
    else:
        document = await _token(access, given)
    return Changed(201, document=document, warnings=tuple(warnings))


async def _token(access: Access, given: dict[str, Any]) -> dict[str, Any]:
    spec = given.get("spec") or EMPTY
    token = spec.get("token")
    if not token:
        raise errors.bad_request("token is required for TokenReview in authentication")
    if access.issuers.providers:
        await access.issuers.prepare(token)
    found = access.by_token(token, tuple(spec.get("audiences") or ()))
    return {**given, "status": review.token_status(found.user, found.audiences, found.problem)}
