"""Writes that rest on a version that was read: they name it, not its revision, which differs from path to path.

A version is named by an option of the request, or by an operation of a JSON patch that tests it (RFC 6902; what it is
refused with is another error, so it stays what it is).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from .effect import Effect, Request
from .object import Object
from .value import freeze

if TYPE_CHECKING:
    from .reexec import Outcome

TESTED: Final = "/metadata/resourceVersion"
"""Where a JSON patch tests it."""


def _test_of(request: Request) -> int:
    """The place of the operation of a JSON patch that tests the version; -1 where none does."""
    if request.verb == "patch" and isinstance(request.body, (list, tuple)):
        for at, operation in enumerate(request.body):
            if isinstance(operation, Mapping) and (operation.get("op"), operation.get("path")) == ("test", TESTED):
                return at
    return -1


def _tested(request: Request, at: int, value: str) -> Request:
    body = list(request.body)
    body[at] = {**body[at], "value": value}
    return request._replace(body=body if isinstance(request.body, list) else freeze(body))


def tokenise(effect: Effect, journal: Sequence[Outcome]) -> tuple[Effect, int]:
    """A write whose precondition is a version that was read, with the number of that version in place of its revision;
    -1: it has none. `journal`: what the reconcile was answered so far."""
    request: Request = effect.what
    wanted = request.options.get("rv")
    at = -1 if wanted else _test_of(request)
    if at >= 0:
        wanted = request.body[at].get("value")
    if not wanted:
        return effect, -1
    seen: list[int] = []
    for outcome in journal:
        for obj in outcome.value if isinstance(outcome.value, tuple) else (outcome.value,):
            if isinstance(obj, Object) and obj.key == request.key and obj.rv not in seen:
                seen.append(obj.rv)
    for number, rv in enumerate(seen):
        if str(rv) == str(wanted):
            if at >= 0:
                return effect._replace(what=_tested(request, at, "")), number
            options = {name: value for name, value in request.options.items() if name != "rv"}
            return effect._replace(what=request._replace(options=options)), number
    return effect, -1


def pinned(request: Request, rv: int) -> Request:
    """The write of `tokenise` with the revision that its version has here."""
    at = _test_of(request)
    if at >= 0 and request.body[at].get("value") == "":
        return _tested(request, at, str(rv))
    return request._replace(options={**request.options, "rv": str(rv)})
