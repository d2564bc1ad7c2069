"""An attempt as policies and webhooks are told of it: the AdmissionRequest of admission.k8s.io/v1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from steersman.api.access.user import User
from steersman.api.admission.plugin import CONNECT, CREATE, DELETE, UPDATE, Attempt
from steersman.api.kinds import Kind
from steersman.kernel.effect import Request
from steersman.kernel.value import freeze

OPTIONS: Final[Mapping[str, str]] = {CREATE: "CreateOptions", UPDATE: "UpdateOptions", DELETE: "DeleteOptions"}


PARTS: Final[Mapping[str, Mapping[str, str]]] = {
    "scale": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
    "eviction": {"group": "policy", "version": "v1", "kind": "Eviction"},
    "binding": {"group": "", "version": "v1", "kind": "Binding"},
    "token": {"group": "authentication.k8s.io", "version": "v1", "kind": "TokenRequest"},
}
"""Subresources with a kind of their own."""
CONNECTED: Final[Mapping[tuple[str, str], str]] = {
    ("Pod", "exec"): "PodExecOptions",
    ("Pod", "attach"): "PodAttachOptions",
    ("Pod", "portforward"): "PodPortForwardOptions",
    ("Pod", "proxy"): "PodProxyOptions",
    ("Node", "proxy"): "NodeProxyOptions",
    ("Service", "proxy"): "ServiceProxyOptions",
}
"""Kind and subresource of a CONNECT to the kind of its options, which are its object."""


def user_of(request: Request) -> User:
    """Who makes a request: a user, or one of the control plane's own parts."""
    user = request.options.get("user")
    return user if isinstance(user, User) else User(request.actor)


def request_json(attempt: Attempt, matched: Kind) -> dict[str, Any]:
    """The AdmissionRequest without uid and objects. `matched`: the kind in the version of the rule that matched."""
    kind, key, request = attempt.kind, attempt.key, attempt.request
    parts: dict[str, Any] = {
        "kind": _own_kind(attempt) or _kind(matched),
        "resource": _resource(matched),
        "subResource": attempt.subresource,
        "requestKind": _own_kind(attempt) or _kind(kind),
        "requestResource": _resource(kind),
        "requestSubResource": attempt.subresource,
        "name": key.name,
        "namespace": key.name if kind.gk == ("", "Namespace") else key.namespace,
        "operation": attempt.operation,
        "userInfo": user_of(request).json(),
        "dryRun": bool(request.options.get("dry_run")),
        "options": None if attempt.operation == CONNECT else _options(attempt),
    }
    return {name: part for name, part in parts.items() if part != ""}


def _own_kind(attempt: Attempt) -> Mapping[str, str] | None:
    """The kind of what is sent to a subresource, where it is not that of the object."""
    if attempt.operation == CONNECT:
        return {"group": "", "version": "v1", "kind": CONNECTED[attempt.kind.kind, attempt.subresource]}
    return PARTS.get(attempt.subresource)


def _kind(kind: Kind) -> dict[str, str]:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _resource(kind: Kind) -> dict[str, str]:
    return {"group": kind.group, "version": kind.version, "resource": kind.plural}


def _options(attempt: Attempt) -> dict[str, Any]:
    request, options = attempt.request, attempt.request.options
    name = OPTIONS.get(attempt.operation, "CreateOptions")
    if request.verb in ("patch", "apply"):
        name = "PatchOptions" if attempt.operation == UPDATE or request.verb == "apply" else name
    out: dict[str, Any] = {"kind": name, "apiVersion": "meta.k8s.io/v1"}
    if options.get("dry_run"):
        out["dryRun"] = ["All"]
    if attempt.operation == DELETE:
        if options.get("grace") is not None:
            out["gracePeriodSeconds"] = options["grace"]
        if options.get("propagation"):
            out["propagationPolicy"] = options["propagation"]
        return out
    if request.manager:
        out["fieldManager"] = request.manager
    if options.get("validation"):
        out["fieldValidation"] = options["validation"]
    if options.get("force"):
        out["force"] = True
    return out


def in_version(body: Mapping[str, Any] | None, matched: Kind, kind: Kind) -> Mapping[str, Any] | None:
    """An object in the version that matched. (Custom kinds convert by their apiVersion alone.)"""
    if body is None or matched is kind:
        return body
    if matched.alias is not None:
        shown: Mapping[str, Any] = freeze(matched.alias.up(dict(body)))
        return shown
    return {**body, "apiVersion": matched.api_version}


def from_version(body: Any, matched: Kind) -> Any:
    """What somebody made of `in_version`, as it is stored. Raises `ApiError` 400."""
    return body if matched.alias is None else freeze(matched.alias.down(dict(body)))
