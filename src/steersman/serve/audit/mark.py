"""The id of a request, which every answer repeats: what a client tells people to look for in the audit log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from steersman.serve.message import Request, Response
from steersman.serve.random_uuid import random_uuid

AUDIT_ID: Final = "audit-id"
MAX_ID: Final = 64
"""Characters of an id that a client gives its request; a longer one is replaced."""


def mark(request: Request) -> None:
    """Gives a request its id: the client's own, else a random UUID."""
    given = request.headers.get(AUDIT_ID)
    if 0 < len(given) <= MAX_ID:
        request.audit_id = given
        return
    request.audit_id = random_uuid()


def marked(request: Request, response: Response) -> Response:
    """The answer with the id of its request."""
    status, headers, body = response.status, response.headers, response.body
    pairs = headers if type(headers) is tuple or not isinstance(headers, Mapping) else headers.items()
    line = (AUDIT_ID, request.audit_id)
    if type(body) is bytes and response.takeover is None:
        return Response(status, (*pairs, line), body)  # a fifth of the time of `replace`, on every request
    return replace(response, headers=(*pairs, line))
