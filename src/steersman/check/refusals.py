"""What a client is told when a fault befalls its request: what kube-apiserver would say.

Source of the facts: apimachinery `pkg/api/errors` (codes, reasons, wording), apiserver `pkg/server/filters` (429, 504).
"""

from __future__ import annotations

from typing import Any, Final

from steersman.api import errors
from steersman.api.errors import ApiError
from steersman.api.kinds import Kinds, UnknownKind
from steersman.kernel.effect import Request

BUSY: Final = "the server has received too many requests and has asked us to try again later"
SLOW: Final = "request did not complete within requested timeout - context deadline exceeded"
FAILED: Final = "etcdserver: leader changed"


class Refusals:
    """`System.refuse`: (the fault's Action, the Request or what a read asks for) → the refusal."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds

    def __call__(self, op: str, what: Any) -> ApiError:
        if op == "conflict":
            return self._conflict(what)
        if op == "throttle":
            return errors.too_many_requests(BUSY)
        if op == "error":
            return errors.internal(FAILED)
        if op == "external-error":
            return errors.service_unavailable(f"the external system {what[0]!r} cannot be reached")
        return errors.timeout(SLOW)

    def _conflict(self, request: Request) -> ApiError:
        key = request.key
        try:
            plural = self._kinds.get(key.group, key.kind).plural
        except UnknownKind:  # a kind that a definition in the store declares
            plural = key.kind.lower()
        return errors.conflict(plural, key.name, group=key.group)
