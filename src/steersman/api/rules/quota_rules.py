"""What LimitRanges and ResourceQuotas must look like, and what a limit takes from its neighbours.

Source of the facts: kubernetes `pkg/apis/core/validation` and `pkg/apis/core/v1/defaults.go`, release 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from steersman.api import quantity
from steersman.api.errors import Cause
from steersman.api.filling import each, put
from steersman.api.quantity import Quantity
from steersman.api.rules import rules
from steersman.api.rules.rules import Causes, Object
from steersman.kernel.value import EMPTY, Frozen

LIMIT_TYPES: Final = ("Container", "PersistentVolumeClaim", "Pod")
_AMOUNTS: Final = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
_ORDER: Final = (
    ("min", "max", "min", "min"),
    ("min", "defaultRequest", "defaultRequest", "defaultRequest"),
    ("defaultRequest", "max", "defaultRequest", "defaultRequest"),
    ("defaultRequest", "default", "defaultRequest", "defaultRequest"),
    ("min", "default", "default", "min"),
    ("default", "max", "default", "max"),
)
"""Which amount may not be above which; where that is told, and with which value."""
SCOPES: Final = (
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
)
_CONFLICTS: Final = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_EXISTING: Final = ("Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "CrossNamespacePodAffinity")
"""Scopes without values, in the order Kubernetes lists them."""
_LISTED: Final = [f"ResourceQuotaScope{scope}" for scope in _EXISTING]
_TOLD: Final = f"{', '.join(_LISTED[:-1])} or {_LISTED[-1]}"
OPERATORS: Final = ("DoesNotExist", "Exists", "In", "NotIn")


def fill_limits(spec: Frozen) -> Frozen:
    """The spec of a LimitRange with the defaults of its limits on containers."""
    return each(spec, "limits", _fill_limit)


def _fill_limit(limit: Frozen) -> Frozen:
    if limit.get("type") != "Container":
        return limit
    most, least = limit.get("max") or EMPTY, limit.get("min") or EMPTY
    default = {**most, **(limit.get("default") or EMPTY)}
    request = {**least, **default, **(limit.get("defaultRequest") or EMPTY)}
    for name, value in (("default", default), ("defaultRequest", request)):
        if value and value != limit.get(name):
            limit = put(limit, name, Frozen(value))
    return limit


def limit_range(out: Causes, path: str, spec: Object) -> None:
    """The spec of a LimitRange."""
    seen: set[str] = set()
    for index, limit in enumerate(spec.get("limits") or ()):
        at, kind = f"{path}.limits[{index}]", limit.get("type") or ""
        problems = rules.qualified_name(kind)
        if not problems and "/" not in kind and kind not in LIMIT_TYPES:
            problems = ("must be a standard limit type or fully qualified",)
        out.extend(Cause.invalid(f"{at}.type", kind, problem) for problem in problems)
        if kind in seen:
            out.append(Cause.duplicate(f"{at}.type", kind))
        seen.add(kind)
        _limit(out, at, limit, kind)


def _limit(out: Causes, path: str, limit: Object, kind: str) -> None:
    found: dict[str, dict[str, Quantity]] = {}
    for field in _AMOUNTS:
        given: Mapping[str, Any] = limit.get(field) or EMPTY
        if kind == "Pod" and field in ("default", "defaultRequest"):
            if given:
                out.append(Cause.forbidden(f"{path}.{field}", "may not be specified when `type` is 'Pod'"))
            continue
        for name, text in given.items():
            if kind in ("Pod", "Container"):
                rules.container_resource(out, f"{path}.{field}[{name}]", name)
            else:
                rules.named(out, f"{path}.{field}[{name}]", name, rules.qualified_name)
            found.setdefault(name, {})[field] = quantity.parse(text)
    if kind == "PersistentVolumeClaim" and not {"min", "max"} & set(found.get("storage", ())):
        detail = "either minimum or maximum storage value is required, but neither was provided"
        out.append(Cause.required(f"{path}.limits", detail))
    for name, amounts in found.items():
        _ordered(out, path, name, amounts)


def _ordered(out: Causes, path: str, name: str, amounts: Mapping[str, Quantity]) -> None:
    """A resource's amounts, each at most the next: min, default request, default, max."""
    told = {"min": "min", "max": "max", "default": "default", "defaultRequest": "default request"}
    for low, high, shown, value in _ORDER:
        if low in amounts and high in amounts and amounts[low] > amounts[high]:
            upper = "default limit" if (low, high) == ("defaultRequest", "default") else told[high]
            detail = f"{told[low]} value {amounts[low]} is greater than {upper} value {amounts[high]}"
            out.append(Cause.invalid(f"{path}.{shown}[{name}]", str(amounts[value]), detail))
    ratio = amounts.get("maxLimitRequestRatio")
    if ratio is None:
        return
    at = f"{path}.maxLimitRequestRatio[{name}]"
    if ratio.nano < quantity.NANO:
        out.append(Cause.invalid(at, str(ratio), f"ratio {ratio} is less than 1"))
    if "min" in amounts and "max" in amounts and amounts["min"].nano > 0:
        most = amounts["max"].nano / amounts["min"].nano
        if ratio.nano / quantity.NANO > most:
            detail = f"ratio {ratio} is greater than max/min = {most:f}"
            out.append(Cause.invalid(at, str(ratio), detail))


def resource_quota(out: Causes, path: str, spec: Object) -> None:
    """The spec of a ResourceQuota."""
    for name, text in (spec.get("hard") or EMPTY).items():
        at = f"{path}.hard[{name}]"
        rules.named(out, at, name, rules.qualified_name)
        if "/" not in name and not rules.quota_resource(name):
            out.append(Cause.invalid(at, name, "must be a standard resource for quota"))
        rules.amount(out, at, name, text)
    scopes = spec.get("scopes") or ()
    for scope in scopes:
        if scope not in SCOPES:
            out.append(Cause.invalid(f"{path}.scopes", scopes, "unsupported scope"))
    if any(pair <= set(scopes) for pair in _CONFLICTS):
        out.append(Cause.invalid(f"{path}.scopes", scopes, "conflicting scopes"))
    _scope_selector(out, f"{path}.scopeSelector.matchExpressions", spec.get("scopeSelector") or EMPTY)


def _scope_selector(out: Causes, path: str, selector: Object) -> None:
    # Kubernetes tells these without the place in the list.
    for rule in selector.get("matchExpressions") or ():
        scope, operator, values = rule.get("scopeName") or "", rule.get("operator") or "", rule.get("values") or ()
        if scope not in SCOPES:
            out.append(Cause.invalid(f"{path}.scopeName", scope, "unsupported scope"))
        if scope in _EXISTING and operator != "Exists":
            out.append(Cause.invalid(f"{path}.operator", operator, f"must be 'Exists' when scope is any of {_TOLD}"))
        if operator not in OPERATORS:
            out.append(Cause.invalid(f"{path}.operator", operator, "not a valid selector operator"))
        elif operator in ("In", "NotIn") and not values:
            detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            out.append(Cause.required(f"{path}.values", detail))
        elif operator in ("Exists", "DoesNotExist") and values:
            detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            out.append(Cause.invalid(f"{path}.values", values, detail))


def quota_scopes(out: Causes, path: str, old: Object, new: Object) -> None:
    """The scopes of a ResourceQuota stay."""
    if set(old.get("scopes") or ()) != set(new.get("scopes") or ()):
        out.append(Cause.invalid(f"{path}.scopes", new.get("scopes"), rules.IMMUTABLE))
