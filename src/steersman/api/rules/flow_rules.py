"""FlowSchemas and PriorityLevelConfigurations: what they must look like, what they are when little is said, and those
that every cluster has.

Nothing queues requests by them here; clients and operators find them as in any cluster. Source of the facts: kubernetes
`pkg/apis/flowcontrol` and `apiserver/pkg/apis/flowcontrol/bootstrap`, release 1.36, texts included.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from steersman.api import names
from steersman.api.errors import Cause
from steersman.api.filling import inside, lacking, unset
from steersman.api.rules import internal, rules
from steersman.api.rules.rules import Causes, Object
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY, freeze

GROUP: Final = "flowcontrol.apiserver.k8s.io"
SCHEMA: Final = (GROUP, "FlowSchema")
LEVEL: Final = (GROUP, "PriorityLevelConfiguration")
LAST: Final = 10_000
"""The matchingPrecedence of what matches last."""
MOST_QUEUES: Final = 10_000_000
HASH_BITS: Final = 60
"""Bits of the hash by which a flow is dealt its queues."""
VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
SUBJECTS: Final = ("Group", "ServiceAccount", "User")
AUTOUPDATE: Final = "apf.kubernetes.io/autoupdate-spec"
_FIELDS: Final = {"User": "user", "Group": "group", "ServiceAccount": "serviceAccount"}
_ONLY: Final = "if '*' is present, must not specify other "


# -- defaults --------------------------------------------------------------------------------------------------


def fill_schema(spec: Any) -> Any:
    """The spec of a FlowSchema, complete."""
    return unset(spec, {"matchingPrecedence": 1000})


def fill_level(spec: Any) -> Any:
    """The spec of a PriorityLevelConfiguration, complete."""
    queuing = {"handSize": 8, "queues": 64, "queueLengthLimit": 50}

    def limited(found: Any) -> Any:
        found = lacking(found, {"nominalConcurrencyShares": 30, "lendablePercent": 0})
        return inside(found, "limitResponse", lambda r: inside(r, "queuing", lambda q: unset(q, queuing)))

    spec = inside(spec, "exempt", lambda e: lacking(e, {"nominalConcurrencyShares": 0, "lendablePercent": 0}))
    return inside(spec, "limited", limited)


# -- rules -----------------------------------------------------------------------------------------------------


def schema(out: Causes, name: str, parts: Mapping[str, Any]) -> None:
    """A FlowSchema by the name of `name`."""
    spec = spec_of(parts)
    precedence, at = spec.get("matchingPrecedence") or 0, "spec.matchingPrecedence"
    if precedence <= 0:
        out.append(Cause.invalid(at, precedence, "must be a positive value"))
    if precedence > LAST:
        out.append(Cause.invalid(at, precedence, f"must not be greater than {LAST}"))
    if precedence == 1 and name != "exempt":
        told = "only the schema named 'exempt' may have matchingPrecedence 1"
        out.append(Cause.invalid(at, precedence, told))
    method = spec.get("distinguisherMethod")
    if method is not None and method.get("type") not in ("ByNamespace", "ByUser"):
        out.append(
            Cause.unsupported("spec.distinguisherMethod.type", method.get("type") or "", ("ByNamespace", "ByUser"))
        )
    at, level = "spec.priorityLevelConfiguration.name", (spec.get("priorityLevelConfiguration") or EMPTY).get("name")
    if level:
        rules.named(out, at, level, names.dns1123_subdomain)
    else:
        out.append(Cause.required(at, "must reference a priority level"))
    for index, rule in enumerate(spec.get("rules") or ()):
        _rule(out, f"spec.rules[{index}]", rule)
    fixed = MANDATORY.get((SCHEMA, name))
    if fixed is not None and spec != fixed:
        shown = internal.shown(spec, internal.FLOW_SCHEMA)
        out.append(Cause.invalid("spec", shown, f"spec of '{name}' must equal the fixed value"))


def spec_of(parts: Mapping[str, Any]) -> Any:
    """The spec among the parts of an object, taken in already or not."""
    spec = parts.get("spec") or EMPTY
    return spec if isinstance(spec, dict) else spec.value


def _rule(out: Causes, path: str, rule: Object) -> None:
    subjects = rule.get("subjects") or ()
    if not subjects:
        out.append(Cause.required(f"{path}.subjects", "subjects must contain at least one value"))
    for index, subject in enumerate(subjects):
        _subject(out, f"{path}.subjects[{index}]", subject)
    resources, others = rule.get("resourceRules") or (), rule.get("nonResourceRules") or ()
    if not resources and not others:
        told = "at least one of resourceRules and nonResourceRules has to be non-empty"
        out.append(Cause.required(path, told))
    for index, found in enumerate(resources):
        _resource_rule(out, f"{path}.resourceRules[{index}]", found)
    for index, found in enumerate(others):
        at = f"{path}.nonResourceRules[{index}]"
        _verbs(out, at, found)
        urls = found.get("nonResourceURLs") or ()
        told = "nonResourceURLs must contain at least one value"
        if _listed(out, f"{at}.nonResourceURLs", urls, told, "non-resource URLs"):
            for place, url in enumerate(urls):
                _url(out, f"{at}.nonResourceURLs[{place}]", url)


def _subject(out: Causes, path: str, subject: Object) -> None:
    kind = subject.get("kind") or ""
    field = _FIELDS.get(kind)
    if field is None:
        out.append(Cause.unsupported(f"{path}.kind", kind, SUBJECTS))
        return
    found = subject.get(field)
    if found is None:
        out.append(Cause.required(f"{path}.{field}", f"{field} is required when subject kind is '{kind}'"))
    else:
        if not found.get("name"):
            out.append(Cause.required(f"{path}.{field}.name"))
        if kind == "ServiceAccount":
            _account(out, f"{path}.{field}", found)
    for other, its in (("ServiceAccount", "serviceAccount"), ("User", "user"), ("Group", "group")):
        if other != kind and subject.get(its) is not None:
            told = f"{its} is forbidden when subject kind is not '{other}'"
            out.append(Cause.forbidden(f"{path}.{its}", told))


def _account(out: Causes, path: str, found: Object) -> None:
    if found.get("name") and found["name"] != "*":
        rules.named(out, f"{path}.name", found["name"], names.dns1123_subdomain)
    if found.get("namespace"):
        rules.named(out, f"{path}.namespace", found["namespace"], names.dns1123_label)
    else:
        out.append(Cause.required(f"{path}.namespace", "must specify namespace for service account"))


def _listed(out: Causes, path: str, found: Any, missing: str, others: str) -> bool:
    """Whether the members of a list have to be looked at: there are some, and they are not just `*`."""
    if not found:
        out.append(Cause.required(path, missing))
    elif "*" in found and len(found) > 1:
        out.append(Cause.invalid(path, found, _ONLY + others))
    return bool(found) and "*" not in found


def _verbs(out: Causes, path: str, rule: Object) -> None:
    found = rule.get("verbs") or ()
    if _listed(out, f"{path}.verbs", found, "verbs must contain at least one value", "verbs") and set(found) - set(
        VERBS
    ):
        out.append(Cause.unsupported(f"{path}.verbs", found, VERBS))


def _resource_rule(out: Causes, path: str, rule: Object) -> None:
    _verbs(out, path, rule)
    missing = "resource rules must supply at least one "
    _listed(out, f"{path}.apiGroups", rule.get("apiGroups"), missing + "api group", "api groups")
    _listed(out, f"{path}.resources", rule.get("resources"), missing + "resource", "resources")
    namespaces, at = rule.get("namespaces") or (), f"{path}.namespaces"
    if not namespaces and rule.get("clusterScope"):
        return
    missing = "resource rules that are not cluster scoped must supply at least one namespace"
    if _listed(out, at, namespaces, missing, "namespaces"):
        told = "each member of this list must be '*' or a DNS-1123 label; "
        for index, name in enumerate(namespaces):
            out.extend(Cause.invalid(f"{at}[{index}]", name, told + text) for text in names.dns1123_label(name))


def _url(out: Causes, path: str, url: str) -> None:
    told = ""
    if not url:
        told = "must not be empty"
    elif not url.startswith("/"):
        told = "must start with slash"
    elif " " in url:
        told = "must not contain white-space"
    elif "//" in url:
        told = "must not contain double slash"
    elif url.count("*") > 1 or ("*" in url and not url.endswith("/*")):
        told = "wildcard can only do suffix matching"
    if told:
        out.append(Cause.invalid(path, url, told))


def level(out: Causes, name: str, parts: Mapping[str, Any]) -> None:
    """A PriorityLevelConfiguration by the name of `name`."""
    spec = spec_of(parts)
    kind, exempt, limited = spec.get("type") or "", spec.get("exempt"), spec.get("limited")
    if (name == "exempt") != (kind == "Exempt"):
        out.append(Cause.invalid("spec.type", kind, "must be 'Exempt' if and only if `name` is 'exempt'"))
    if kind == "Exempt":
        if limited is not None:
            out.append(Cause.forbidden("spec.limited", "must be nil if the type is not Limited"))
        _shares(out, "spec.exempt", exempt or EMPTY)
    elif kind == "Limited":
        if exempt is not None:
            out.append(Cause.forbidden("spec.exempt", "must be nil if the type is Limited"))
        if limited is None:
            out.append(Cause.required("spec.limited", "must not be empty when type is Limited"))
        else:
            _limited(out, "spec.limited", limited)
    else:
        out.append(Cause.unsupported("spec.type", kind, ("Exempt", "Limited")))
    fixed = MANDATORY.get((LEVEL, name))
    if fixed is None:
        return
    if name == "exempt":
        if {**spec, "exempt": None} != {**fixed, "exempt": None}:
            told = f"spec of '{name}' except the 'spec.exempt' field must equal the fixed value"
            out.append(Cause.invalid("spec", internal.shown(spec, internal.PRIORITY_LEVEL), told))
    elif spec != fixed:
        shown = internal.shown(spec, internal.PRIORITY_LEVEL)
        out.append(Cause.invalid("spec", shown, f"spec of '{name}' must equal the fixed value"))


def _shares(out: Causes, path: str, found: Object) -> None:
    shares, lent = found.get("nominalConcurrencyShares"), found.get("lendablePercent")
    if shares is not None and shares < 0:
        out.append(Cause.invalid(f"{path}.nominalConcurrencyShares", shares, "must be a non-negative integer"))
    if lent is not None and not 0 <= lent <= 100:
        out.append(Cause.invalid(f"{path}.lendablePercent", lent, "must be between 0 and 100, inclusive"))


def _limited(out: Causes, path: str, found: Object) -> None:
    _shares(out, path, found)
    response, at = found.get("limitResponse") or EMPTY, f"{path}.limitResponse"
    queuing = response.get("queuing")
    if response.get("type") == "Reject":
        if queuing is not None:
            told = "must be nil if limited.limitResponse.type is not Limited"
            out.append(Cause.forbidden(f"{at}.queuing", told))
    elif response.get("type") != "Queue":
        out.append(Cause.unsupported(f"{at}.type", response.get("type") or "", ("Queue", "Reject")))
    elif queuing is None:
        out.append(Cause.required(f"{at}.queuing", "must not be empty if limited.limitResponse.type is Limited"))
    else:
        _queuing(out, f"{at}.queuing", queuing)
    borrowed = found.get("borrowingLimitPercent")
    if borrowed is not None and borrowed < 0:
        told = "if specified, must be a non-negative integer"
        out.append(Cause.invalid(f"{path}.borrowingLimitPercent", borrowed, told))


def _queuing(out: Causes, path: str, found: Object) -> None:
    length, queues, hand = [found.get(field) or 0 for field in ("queueLengthLimit", "queues", "handSize")]
    if length <= 0:
        out.append(Cause.invalid(f"{path}.queueLengthLimit", length, "must be positive"))
    if queues <= 0:
        out.append(Cause.invalid(f"{path}.queues", queues, "must be positive"))
    elif queues > MOST_QUEUES:
        out.append(Cause.invalid(f"{path}.queues", queues, f"must not be greater than {MOST_QUEUES}"))
    at = f"{path}.handSize"
    if hand <= 0:
        out.append(Cause.invalid(at, hand, "must be positive"))
    elif hand > queues:
        out.append(Cause.invalid(at, hand, f"should not be greater than queues ({queues})"))
    elif math.ceil(math.log2(queues) * hand) > HASH_BITS:
        told = f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {HASH_BITS}"
        out.append(Cause.invalid(at, hand, told))


# -- those that every cluster has ------------------------------------------------------------------------------

_ALL: Final = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
_PATHS: Final = {"verbs": ["*"], "nonResourceURLs": ["*"]}
_LEASES: Final = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "namespaces": ["*"]}
_EVERYBODY: Final = ("Group system:unauthenticated", "Group system:authenticated")
_LEVELS: Final = {
    "exempt": None, "catch-all": (5, 0, None), "system": (30, 33, (64, 6)), "node-high": (40, 25, (64, 6)),
    "leader-election": (10, 0, (16, 4)), "workload-high": (40, 50, (128, 6)), "workload-low": (100, 90, (128, 6)),
    "global-default": (20, 50, (128, 6)),
}  # fmt: skip
"""Shares, percent that may be lent, and (queues, hand) of the levels."""
_SCHEMAS: Final[Mapping[str, tuple[str, int, str, tuple[str, ...], Mapping[str, Any]]]] = {
    "exempt": ("exempt", 1, "", ("Group system:masters",), {}),
    "catch-all": ("catch-all", LAST, "ByUser", _EVERYBODY, {}),
    "system-nodes": ("system", 500, "ByUser", ("Group system:nodes",), {}),
    "system-node-high": ("node-high", 400, "ByUser", ("Group system:nodes",), {"resourceRules": [
        {"verbs": ["*"], "apiGroups": [""], "resources": ["nodes", "nodes/status"], "clusterScope": True,
         "namespaces": ["*"]},
        {"verbs": ["*"], **_LEASES}]}),
    "probes": ("exempt", 2, "", _EVERYBODY, {"nonResourceRules": [
        {"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]}]}),
    "system-leader-election": ("leader-election", 100, "ByUser", (
        "User system:kube-controller-manager", "User system:kube-scheduler", "ServiceAccount *"),
        {"resourceRules": [{"verbs": ["get", "create", "update"], **_LEASES}]}),
    "kube-controller-manager": ("workload-high", 800, "ByNamespace", ("User system:kube-controller-manager",), {}),
    "kube-scheduler": ("workload-high", 800, "ByNamespace", ("User system:kube-scheduler",), {}),
    "kube-system-service-accounts": ("workload-high", 900, "ByNamespace", ("ServiceAccount *",), {}),
    "service-accounts": ("workload-low", 9000, "ByUser", ("Group system:serviceaccounts",), {}),
    "global-default": ("global-default", 9900, "ByUser", _EVERYBODY, {}),
}  # fmt: skip
"""Level, precedence, distinguisher, subjects, and the rules where they are not about everything."""


def _level_spec(name: str) -> dict[str, Any]:
    found = _LEVELS[name]
    if found is None:
        return {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}}
    shares, lent, queues = found
    response: dict[str, Any] = {"type": "Reject"}
    if queues is not None:
        response = {"type": "Queue", "queuing": {"queues": queues[0], "handSize": queues[1], "queueLengthLimit": 50}}
    limited = {"nominalConcurrencyShares": shares, "limitResponse": response, "lendablePercent": lent}
    return {"type": "Limited", "limited": limited}


def _schema_spec(name: str) -> dict[str, Any]:
    level_name, precedence, method, subjects, given = _SCHEMAS[name]
    told = []
    for subject in subjects:
        kind, _, who = subject.partition(" ")
        named = {"name": who, "namespace": "kube-system"} if kind == "ServiceAccount" else {"name": who}
        told.append({"kind": kind, _FIELDS[kind]: named})
    rule = {"subjects": told, **(given or {"resourceRules": [_ALL], "nonResourceRules": [_PATHS]})}
    spec: dict[str, Any] = {"priorityLevelConfiguration": {"name": level_name}, "matchingPrecedence": precedence}
    if method:
        spec["distinguisherMethod"] = {"type": method}
    return {**spec, "rules": [rule]}


MANDATORY: Final[Mapping[tuple[tuple[str, str], str], Any]] = {
    **{(LEVEL, name): freeze(_level_spec(name)) for name in ("exempt", "catch-all")},
    **{(SCHEMA, name): freeze(_schema_spec(name)) for name in ("exempt", "catch-all")},
}
"""Specs that nobody may change."""


@cache
def first_objects() -> tuple[tuple[Key, dict[str, Any]], ...]:
    """Slots and bodies of those that every cluster has."""
    made = [(LEVEL, name, _level_spec(name)) for name in _LEVELS]
    made += [(SCHEMA, name, _schema_spec(name)) for name in _SCHEMAS]
    return tuple(
        (
            Key(*gk, "", name),
            {
                "apiVersion": f"{GROUP}/v1",
                "kind": gk[1],
                "metadata": {"name": name, "annotations": {AUTOUPDATE: "true"}},
                "spec": spec,
            },
        )
        for gk, name, spec in made
    )
