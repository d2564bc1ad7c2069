"""API failures, as Kubernetes tells them: a `Status` object with a code, a reason and causes.

`ApiError` is the one exception by which the API core refuses a request. Its `status()` is the JSON body a
kube-apiserver of release 1.36 sends. The functions below build the usual failures with the server's wording, on which
clients match. Source of the facts: apimachinery `pkg/api/errors`, `pkg/util/validation/field` and apiserver
`endpoints/handlers/negotiation`.

Every reason that a controller tells apart has its own class (`NotFound`, `Conflict`, ...): catch the class."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steersman.api.go_html import escaped
from steersman.kernel.effect import Refused

MAX_SHOWN_VALUE = 2048  # kube-apiserver repeats a refused value whole; a hostile megabyte would come back several times

_QUOTED = dict(zip('\a\b\f\n\r\t\v"\\', (f"\\{char}" for char in 'abfnrtv"\\'), strict=True))


def quote(text: str) -> str:
    """`text` in double quotes, escaped as Go's `%q` does, which is how Kubernetes shows names and values."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(_QUOTED.get(c) or (c if c.isprintable() else _escape(c)) for c in text) + '"'


def _escape(char: str) -> str:
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    if 0xD800 <= code < 0xE000:  # a lone surrogate is no character; Go shows the replacement character
        return "\ufffd"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def show(value: object) -> str:
    """`value` as field errors show it: text quoted, numbers plain, anything else as compact JSON."""
    try:
        shown = _show(value)
    except (TypeError, ValueError, RecursionError):
        shown = f"<{type(value).__name__}>"
    if len(shown) > MAX_SHOWN_VALUE:
        return f"{shown[:MAX_SHOWN_VALUE]}... ({len(shown) - MAX_SHOWN_VALUE} more characters)"
    return shown


def _show(value: object) -> str:
    if isinstance(value, str):
        return quote(value[: MAX_SHOWN_VALUE + 1])
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return escaped(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain))


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(type(value).__name__)


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason of a failure: `reason` is machine readable, `field` a path such as `spec.containers[0].name`.

    The static constructors give the wording of Kubernetes' field errors.
    """

    reason: str
    message: str
    field: str = ""

    def json(self) -> dict[str, str]:
        """The cause as it stands in `details.causes`; empty parts are left out."""
        parts = {"reason": self.reason, "message": self.message, "field": self.field}
        return {name: text for name, text in parts.items() if text}

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"

    @staticmethod
    def invalid(field: str, value: object, detail: str) -> Cause:
        """The value is malformed or out of bounds."""
        return Cause("FieldValueInvalid", _body(f"Invalid value: {show(value)}", detail), field)

    @staticmethod
    def type_invalid(field: str, value: object, detail: str) -> Cause:
        """The value has the wrong JSON type."""
        return Cause("FieldValueTypeInvalid", _body(f"Invalid value: {show(value)}", detail), field)

    @staticmethod
    def required(field: str, detail: str = "") -> Cause:
        """A value must be given."""
        return Cause("FieldValueRequired", _body("Required value", detail), field)

    @staticmethod
    def not_found(field: str, value: object) -> Cause:
        """The value names something that is not there."""
        return Cause("FieldValueNotFound", f"Not found: {show(value)}", field)

    @staticmethod
    def duplicate(field: str, value: object) -> Cause:
        """The value must be unique and is not."""
        return Cause("FieldValueDuplicate", f"Duplicate value: {show(value)}", field)

    @staticmethod
    def unsupported(field: str, value: object, supported: Iterable[str]) -> Cause:
        """The value is none of a closed list; `supported` is shown in the order given."""
        listed = ", ".join(quote(text) for text in supported)
        detail = f"supported values: {listed}" if listed else ""
        return Cause("FieldValueNotSupported", _body(f"Unsupported value: {show(value)}", detail), field)

    @staticmethod
    def forbidden(field: str, detail: str) -> Cause:
        """The field may not be set, or not be changed, here."""
        return Cause("FieldValueForbidden", _body("Forbidden", detail), field)

    @staticmethod
    def too_long(field: str, limit: int) -> Cause:
        """The text has more than `limit` bytes; it is not repeated."""
        unit = "byte" if limit == 1 else "bytes"
        return Cause("FieldValueTooLong", f"Too long: may not be more than {limit} {unit}", field)

    @staticmethod
    def too_many(field: str, count: int, limit: int) -> Cause:
        """The list has `count` items, more than `limit`."""
        unit = "item" if limit == 1 else "items"
        return Cause("FieldValueTooMany", f"Too many: {count}: must have at most {limit} {unit}", field)

    @staticmethod
    def manager_conflict(
        manager: str, field: str, *, api_version: str = "", subresource: str = "", time: str = ""
    ) -> Cause:
        """Another field manager owns `field`, written as a field path: `.spec.replicas`.

        `api_version` (and `time`, RFC 3339, if known) are given for managers that wrote with Update; managers that
        applied are named alone.
        """
        text = f"conflict with {quote(manager)}"
        if subresource:
            text += f" with subresource {quote(subresource)}"
        if api_version:
            text += f" using {api_version}"
        if time:
            text += f" at {time}"
        return Cause("FieldManagerConflict", text, field)


def _body(head: str, detail: str) -> str:
    return f"{head}: {detail}" if detail else head


@dataclass(frozen=True, slots=True)
class Details:
    """The `details` of a Status. `kind` holds a plural resource name in most failures, a kind in 422."""

    name: str = ""
    group: str = ""
    kind: str = ""
    causes: tuple[Cause, ...] = ()
    retry_after_seconds: int = 0

    def json(self) -> dict[str, Any]:
        """The details as JSON; empty parts are left out, as the server leaves them out."""
        parts: dict[str, Any] = {"name": self.name, "group": self.group, "kind": self.kind}
        parts["causes"] = [cause.json() for cause in self.causes]
        parts["retryAfterSeconds"] = self.retry_after_seconds
        return {name: part for name, part in parts.items() if part}


class ApiError(Refused):
    """A refused or failed API request.

    `code` is the HTTP status code, `reason` Kubernetes' machine-readable reason, `message` the text for people,
    `details` what the failure is about (None when the server sends none), `warnings` what else the client is told.
    """

    warnings: tuple[str, ...] = ()

    def __init__(self, code: int, reason: str, message: str, details: Details | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details

    @property
    def causes(self) -> tuple[Cause, ...]:
        return self.details.causes if self.details else ()

    @property
    def retry_after_seconds(self) -> int:
        """How long the client should wait before it tries again; 0: the server does not say."""
        return self.details.retry_after_seconds if self.details else 0

    def status(self) -> dict[str, Any]:
        """The failure as a `v1` Status object, a fresh dict in the server's order of fields."""
        status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        if self.message:
            status["message"] = self.message
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details.json()
        status["code"] = self.code
        return status

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.code}, {self.reason!r}, {self.message!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.code, self.reason, self.message, self.details))


class BadRequest(ApiError):
    """400: the request itself is malformed."""


class Unauthorized(ApiError):
    """401: the client did not say who it is."""


class Forbidden(ApiError):
    """403: the client may not do this."""


class NotFound(ApiError):
    """404: there is no such object or resource."""


class MethodNotAllowed(ApiError):
    """405: the resource has no such verb."""


class NotAcceptable(ApiError):
    """406: none of the accepted answer types can be given."""


class AlreadyExists(ApiError):
    """409: an object of that name is there."""


class Conflict(ApiError):
    """409: the object changed meanwhile, a precondition failed, or another manager owns an applied field."""


class Expired(ApiError):
    """410: the resource version or continue token is older than the log that is kept."""


class RequestEntityTooLarge(ApiError):
    """413: the request is over a size limit."""


class UnsupportedMediaType(ApiError):
    """415: the body's type is not understood."""


class Invalid(ApiError):
    """422: the object or patch is well formed and yet not valid."""


class TooManyRequests(ApiError):
    """429: try again later."""


class InternalError(ApiError):
    """500: the server failed."""


class ServerTimeout(ApiError):
    """500: the server gave up for a passing reason; try again."""


class ServiceUnavailable(ApiError):
    """503: the server cannot answer now."""


class Timeout(ApiError):
    """504: the request took too long; it may still take effect."""


_CLASSES: dict[type[ApiError], int] = {
    BadRequest: 400,
    Unauthorized: 401,
    Forbidden: 403,
    NotFound: 404,
    MethodNotAllowed: 405,
    NotAcceptable: 406,
    AlreadyExists: 409,
    Conflict: 409,  # the later of two is what a bare code means
    Expired: 410,
    RequestEntityTooLarge: 413,
    UnsupportedMediaType: 415,
    Invalid: 422,
    TooManyRequests: 429,
    ServerTimeout: 500,
    InternalError: 500,
    ServiceUnavailable: 503,
    Timeout: 504,
}
_BY_CODE = {code: cls for cls, code in _CLASSES.items()}
_BY_REASON = {cls.__name__: cls for cls in _CLASSES}
_BY_REASON["Gone"] = Expired  # the older reason of 410; clients treat the two alike


def _error(code: int, reason: str, message: str, details: Details | None = None) -> ApiError:
    cls = _BY_REASON.get(reason) or _BY_CODE.get(code, InternalError if code >= 500 else ApiError)
    return cls(code, reason, message, details)


def from_status(status: Mapping[str, Any]) -> ApiError:
    """The error that another API server's Status object tells; unknown reasons go by their code.

    Parts of a wrong type are taken as absent, so that a broken server still gives an ApiError.
    """
    code = status.get("code")
    code = code if isinstance(code, int) else 500
    details = None
    found = status.get("details")
    if isinstance(found, Mapping):
        listed, retry = found.get("causes"), found.get("retryAfterSeconds")
        causes = [c for c in listed if isinstance(c, Mapping)] if isinstance(listed, Sequence) else []
        told = tuple(Cause(_text(c, "reason"), _text(c, "message"), _text(c, "field")) for c in causes)
        wait = retry if isinstance(retry, int) else 0
        details = Details(_text(found, "name"), _text(found, "group"), _text(found, "kind"), told, wait)
    return _error(code, _text(status, "reason"), _text(status, "message"), details)


def _text(parts: Mapping[str, Any], name: str) -> str:
    found = parts.get(name)
    return found if isinstance(found, str) else ""


def _qualified(resource: str, group: str) -> str:
    return f"{resource}.{group}" if group else resource


def not_found(resource: str, name: str, group: str = "") -> ApiError:
    """No object `name` of the plural `resource`: `deployments.apps "web" not found`."""
    message = f"{_qualified(resource, group)} {quote(name)} not found"
    return _error(404, "NotFound", message, Details(name, group, resource))


def resource_not_found() -> ApiError:
    """No such path or resource on this server."""
    return _error(404, "NotFound", "the server could not find the requested resource", Details())


def already_exists(resource: str, name: str, group: str = "", deleting: bool = False) -> ApiError:
    """Create of a name that is taken, perhaps by an object that is `deleting`."""
    message = f"{'object is being deleted: ' * deleting}{_qualified(resource, group)} {quote(name)} already exists"
    return _error(409, "AlreadyExists", message, Details(name, group, resource))


def generate_name_conflict(resource: str, name: str, group: str = "", retry_after: int = 1) -> ApiError:
    """Every name generated from `generateName` was taken; the client should try again."""
    message = (
        f"{_qualified(resource, group)} {quote(name)} already exists, "
        "the server was not able to generate a unique name for the object"
    )
    return _error(409, "AlreadyExists", message, Details(name, group, resource, (), retry_after))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def conflict(resource: str, name: str, detail: str = MODIFIED, group: str = "") -> ApiError:
    """A write on a version that is not the latest, or whose precondition failed (`detail` says which)."""
    message = f"Operation cannot be fulfilled on {_qualified(resource, group)} {quote(name)}: {detail}"
    return _error(409, "Conflict", message, Details(name, group, resource))


def apply_conflict(causes: Iterable[Cause]) -> ApiError:
    """A server-side apply of fields that other managers own; causes from `Cause.manager_conflict`."""
    found = tuple(causes)
    if len(found) == 1:
        message = f"Apply failed with 1 conflict: {found[0].message}: {found[0].field}"
    else:
        fields: dict[str, list[str]] = {}
        for cause in found:
            fields.setdefault(cause.message.removeprefix("conflict "), []).append(cause.field)
        lines: list[str] = []
        for manager in sorted(fields):
            lines += [f"conflicts {manager}:", *(f"- {field}" for field in fields[manager])]
        message = f"Apply failed with {len(found)} conflicts: " + "\n".join(lines)
    return _error(409, "Conflict", message, Details(causes=found))


def invalid(kind: str, name: str, causes: Iterable[Cause], group: str = "") -> ApiError:
    """The object is well formed and not valid; causes from the constructors of `Cause`.

    `Deployment.apps "web" is invalid: spec.replicas: Invalid value: -1: must be ...`; several causes stand in
    brackets, equal ones once.
    """
    message, found = f"{_qualified(kind, group)} {quote(name)} is invalid", tuple(causes)
    texts = list(dict.fromkeys(str(cause) for cause in found))
    if len(texts) == 1:
        message += f": {texts[0]}"
    elif texts:
        message += f": [{', '.join(texts)}]"
    return _error(422, "Invalid", message, Details(name, group, kind, found))


UNPROCESSABLE = "the server rejected our request due to an error in our request"


def unprocessable(detail: str, causes: Iterable[Cause] = ()) -> ApiError:
    """A patch that does not apply. kube-apiserver sends its bare sentence; the detail is added to it here."""
    return _error(422, "Invalid", f"{UNPROCESSABLE}: {detail}", Details(causes=tuple(causes)))


def bad_request(message: str) -> ApiError:
    """The request cannot be understood."""
    return _error(400, "BadRequest", message)


def unauthorized(message: str = "Unauthorized") -> ApiError:
    """No valid credentials."""
    return _error(401, "Unauthorized", message)


def forbidden(resource: str, name: str, detail: str, group: str = "") -> ApiError:
    """The actor may not do this, or a policy refuses it. `resource` and `name` may be empty."""
    if not resource and not group:
        message = f"forbidden: {detail}"
    elif not name:
        message = f"{_qualified(resource, group)} is forbidden: {detail}"
    else:
        message = f"{_qualified(resource, group)} {quote(name)} is forbidden: {detail}"
    return _error(403, "Forbidden", message, Details(name, group, resource))


def method_not_allowed(resource: str, action: str, group: str = "") -> ApiError:
    """The resource has no such verb: `patch is not supported on resources of kind "bindings"`."""
    message = f"{action} is not supported on resources of kind {quote(_qualified(resource, group))}"
    return _error(405, "MethodNotAllowed", message, Details("", group, resource))


def not_acceptable(accepted: Iterable[str]) -> ApiError:
    """None of the answer types the client accepts can be given; `accepted` are those that can."""
    return _error(406, "NotAcceptable", "only the following media types are accepted: " + ", ".join(accepted))


def unsupported_media_type(accepted: Iterable[str]) -> ApiError:
    """The body's content type is not understood; `accepted` are those that are."""
    listed = ", ".join(accepted)
    message = f"the body of the request was in an unknown format - accepted media types include: {listed}"
    return _error(415, "UnsupportedMediaType", message)


def expired(message: str) -> ApiError:
    """The resource version or continue token is too old: list again."""
    return _error(410, "Expired", message)


def gone(message: str) -> ApiError:
    """As `expired`, with the older reason `Gone`."""
    return _error(410, "Gone", message)


def request_entity_too_large(detail: str) -> ApiError:
    """The request is over a limit that `detail` names."""
    return _error(413, "RequestEntityTooLarge", f"Request entity too large: {detail}")


def too_many_requests(message: str, retry_after: int = 1) -> ApiError:
    """Try again in `retry_after` seconds."""
    return _error(429, "TooManyRequests", message, Details(retry_after_seconds=retry_after))


def timeout(message: str, retry_after: int = 0) -> ApiError:
    """The request took too long; it may still take effect."""
    return _error(504, "Timeout", f"Timeout: {message}", Details(retry_after_seconds=retry_after))


def server_timeout(resource: str, action: str, group: str = "", retry_after: int = 0) -> ApiError:
    """A passing failure of the server; the client should try again."""
    message = (
        f"The {action} operation against {_qualified(resource, group)} "
        "could not be completed at this time, please try again."
    )
    return _error(500, "ServerTimeout", message, Details(action, group, resource, (), retry_after))


def service_unavailable(message: str) -> ApiError:
    """The server cannot answer now."""
    return _error(503, "ServiceUnavailable", message)


def internal(message: str) -> ApiError:
    """A fault of the server."""
    details = Details(causes=(Cause("", message),))
    return _error(500, "InternalError", f"Internal error occurred: {message}", details)
