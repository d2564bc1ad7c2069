"""Rules of ResourceClaims, their templates and DeviceClasses: requests, constraints, and who a claim is reserved for.

Source of the facts: kubernetes `pkg/apis/resource/validation`, release 1.36. The expressions of
selectors: see `cel.devices`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from steersman.api.errors import Cause
from steersman.api.names import dns1123_label, dns1123_subdomain
from steersman.api.rules import internal
from steersman.api.rules.rules import IMMUTABLE, Causes, Object, named
from steersman.kernel.value import EMPTY

MAX_REQUESTS: Final = 32
MAX_CHOICES: Final = 8
MAX_EXPRESSION: Final = 10 * 1024
"""Bytes."""
MODES: Final = ("All", "ExactCount")
ONE_OF: Final = "exactly one of `exactly` or `firstAvailable` is required"
ONE_NODES: Final = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection`"
UNKNOWN: Final = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"


def claim(out: Causes, path: str, spec: Object) -> None:
    """The spec of a ResourceClaim."""
    devices, at = spec.get("devices") or EMPTY, f"{path}.devices"
    requests = devices.get("requests") or ()
    known = {request.get("name") or "": _choices(request) for request in requests}
    _set(out, f"{at}.requests", [request.get("name") or "" for request in requests], MAX_REQUESTS)
    for index, request in enumerate(requests):
        _request(out, f"{at}.requests[{index}]", request)
    for field in ("constraints", "config"):
        for index, item in enumerate(devices.get(field) or ()):
            where = f"{at}.{field}[{index}]"
            names = list(item.get("requests") or ())
            _set(out, f"{where}.requests", names, MAX_REQUESTS)
            for number, name in enumerate(names):
                _reference(out, f"{where}.requests[{number}]", name, known)
            if field == "constraints" and not item.get("matchAttribute") and not item.get("distinctAttribute"):
                out.append(Cause.required(f"{where}.matchAttribute"))
            if field == "config" and item.get("opaque") is None:
                out.append(Cause.required(f"{where}.opaque"))


def claim_change(out: Causes, path: str, old: Object, new: Object) -> None:
    """A ResourceClaim asks for what it asked for."""
    if old != new:
        out.append(Cause.invalid(path, internal.shown(new, internal.RESOURCE_CLAIM), IMMUTABLE))


def template(out: Causes, path: str, spec: Object) -> None:
    """The spec of a ResourceClaimTemplate."""
    claim(out, f"{path}.spec", spec.get("spec") or EMPTY)


def resource_slice(out: Causes, path: str, spec: Object) -> None:
    """The spec of a ResourceSlice: whose devices it lists, and for which nodes."""
    for field, holder, check in (("driver", spec, dns1123_subdomain), ("pool.name", spec.get("pool") or EMPTY, None)):
        text = holder.get(field.rpartition(".")[2]) or ""
        if not text:
            out.append(Cause.required(f"{path}.{field}"))
        elif check is not None:
            named(out, f"{path}.{field}", text, check)
        else:
            for part in text.split("/"):
                named(out, f"{path}.{field}", part, dns1123_subdomain)
    pool = spec.get("pool") or EMPTY
    if pool.get("resourceSliceCount", 0) <= 0:
        count = pool.get("resourceSliceCount", 0)
        out.append(Cause.invalid(f"{path}.pool.resourceSliceCount", count, "must be greater than zero"))
    if pool.get("generation", 0) < 0:
        detail = "must be greater than or equal to zero"
        out.append(Cause.invalid(f"{path}.pool.generation", pool["generation"], detail))
    given = []
    for field, empty, must in (
        ("nodeName", "", "a non-empty string"),
        ("nodeSelector", None, ""),
        ("allNodes", False, "true"),
        ("perDeviceNodeSelection", False, "true"),
    ):
        if field in spec and spec[field] != empty:
            given.append(f"`{field}`")
        elif field in spec:
            out.append(Cause.invalid(f"{path}.{field}", spec[field], f"must be either unset or set to {must}"))
    if not given:
        out.append(Cause.required(path, f"{ONE_NODES} is required"))
    elif len(given) > 1:
        detail = f"{ONE_NODES} is required, but multiple fields are set"
        out.append(Cause.invalid(path, f"{{{', '.join(given)}}}", detail))


def device_class(out: Causes, path: str, spec: Object) -> None:
    """The spec of a DeviceClass."""
    _selectors(out, f"{path}.selectors", spec.get("selectors"))


def status(out: Causes, path: str, value: Object) -> None:
    """The status of a ResourceClaim: nobody can be reserved what is not allocated."""
    users = value.get("reservedFor") or ()
    _set(out, f"{path}.reservedFor", [user.get("uid") or "" for user in users], 256)
    for index, user in enumerate(users):
        for field in ("resource", "name", "uid"):
            if not user.get(field):
                out.append(Cause.required(f"{path}.reservedFor[{index}].{field}"))
    if users and value.get("allocation") is None:
        out.append(Cause.forbidden(f"{path}.reservedFor", "may not be specified when `allocated` is not set"))


def _choices(request: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(choice.get("name") or "" for choice in request.get("firstAvailable") or ())


def _set(out: Causes, path: str, names: list[str], most: int) -> None:
    """A list whose elements must differ."""
    if len(names) > most:
        out.append(Cause.too_many(path, len(names), most))
    for index, name in enumerate(names):
        if name in names[:index]:
            out.append(Cause.duplicate(f"{path}[{index}]", name))


def _request(out: Causes, path: str, request: Object) -> None:
    _name(out, f"{path}.name", request.get("name") or "")
    choices, exactly = request.get("firstAvailable") or (), request.get("exactly")
    if choices and exactly is not None:
        out.append(Cause.invalid(path, None, f"{ONE_OF}, but multiple fields are set"))
    elif exactly is not None:
        _device(out, f"{path}.exactly", exactly)
    elif choices:
        _set(out, f"{path}.firstAvailable", [choice.get("name") or "" for choice in choices], MAX_CHOICES)
        for index, choice in enumerate(choices):
            _name(out, f"{path}.firstAvailable[{index}].name", choice.get("name") or "")
            _device(out, f"{path}.firstAvailable[{index}]", choice)
    else:
        out.append(Cause.required(path, ONE_OF))


def _name(out: Causes, path: str, name: str) -> None:
    if not name:
        out.append(Cause.required(path))
    else:
        named(out, path, name, dns1123_label)


def _device(out: Causes, path: str, device: Object) -> None:
    """How many devices of which class."""
    if not device.get("deviceClassName"):
        out.append(Cause.required(f"{path}.deviceClassName"))
    else:
        named(out, f"{path}.deviceClassName", device["deviceClassName"], dns1123_subdomain)
    _selectors(out, f"{path}.selectors", device.get("selectors"))
    mode, count = device.get("allocationMode") or "", device.get("count") or 0
    if mode not in MODES:
        out.append(Cause.unsupported(f"{path}.allocationMode", mode, MODES))
    elif mode == "ExactCount" and count <= 0:
        out.append(Cause.invalid(f"{path}.count", count, "must be greater than zero"))
    elif mode == "All" and count:
        detail = "must not be specified when allocationMode is 'All'"
        out.append(Cause.invalid(f"{path}.count", count, detail))


def _selectors(out: Causes, path: str, selectors: Any) -> None:
    if not selectors:
        return
    from steersman.api.cel.devices import fault  # the expression language is loaded when somebody uses it

    for index, selector in enumerate(selectors):
        if selector.get("cel") is None:
            out.append(Cause.required(f"{path}[{index}].cel"))
            continue
        text, at = selector["cel"].get("expression") or "", f"{path}[{index}].cel.expression"
        if len(text.encode()) > MAX_EXPRESSION:
            out.append(Cause.too_long(at, MAX_EXPRESSION))
            continue
        wrong = fault(text)
        if wrong is not None:
            out.append(Cause.forbidden(at, wrong.detail) if wrong.costly else Cause.invalid(at, text, wrong.detail))


def _reference(out: Causes, path: str, name: str, known: Mapping[str, frozenset[str]]) -> None:
    first, slash, choice = name.partition("/")
    if "/" not in choice:
        for part in (first, choice) if slash else (first,):
            _name(out, path, part)
    if first not in known or (slash and choice not in known[first]):
        out.append(Cause.invalid(path, name, UNKNOWN))
