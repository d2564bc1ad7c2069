"""What placement must look like: tolerations, taints, affinity, spread constraints, gates.

Source of the facts: kubernetes `pkg/apis/core/validation/validation.go`, release 1.36.
"""

from __future__ import annotations

from typing import Any, Final

from steersman.api.errors import Cause
from steersman.api.rules import rules
from steersman.api.rules.rules import Causes, Object, chosen
from steersman.kernel.value import EMPTY

EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NO_OPERATOR: Final = "not a valid selector operator"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def tolerations(out: Causes, path: str, found: Any) -> None:
    """A pod's tolerations."""
    for index, toleration in enumerate(found or ()):
        _toleration(out, f"{path}[{index}]", toleration)


def _toleration(out: Causes, path: str, toleration: Object) -> None:
    key, operator = toleration.get("key") or "", toleration.get("operator") or ""
    value, effect = toleration.get("value") or "", toleration.get("effect") or ""
    if key:
        rules.named(out, f"{path}.key", key, rules.qualified_name)
    elif operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        out.append(Cause.invalid(f"{path}.operator", operator, detail))
    if "tolerationSeconds" in toleration and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        out.append(Cause.invalid(f"{path}.effect", effect, detail))
    if operator in ("", "Equal"):
        problems = rules.label_value(value)
        if problems:
            out.append(Cause.invalid(f"{path}.operator", value, ";".join(problems)))
    elif operator == "Exists":
        if value:
            detail = "value must be empty when `operator` is 'Exists'"
            out.append(Cause.invalid(f"{path}.operator", value, detail))
    else:
        out.append(Cause.unsupported(f"{path}.operator", operator, ("Equal", "Exists")))
    if effect:
        chosen(out, f"{path}.effect", effect, EFFECTS)


def taints(out: Causes, path: str, found: Any) -> None:
    """A node's taints."""
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(found or ()):
        at = f"{path}[{index}]"
        key, effect, value = taint.get("key") or "", taint.get("effect") or "", taint.get("value") or ""
        rules.named(out, f"{at}.key", key, rules.qualified_name)
        problems = rules.label_value(value)
        if problems:
            out.append(Cause.invalid(f"{at}.value", value, ";".join(problems)))
        chosen(out, f"{at}.effect", effect, EFFECTS)
        if (key, effect) in seen:
            twin = Cause.duplicate(at, taint)
            detail = f"{twin.message}: taints must be unique by key and effect pair"
            out.append(Cause(twin.reason, detail, at))
        seen.add((key, effect))


def affinity(out: Causes, path: str, found: Any) -> None:
    """A pod's affinity to nodes and to other pods."""
    if not found:
        return
    node = found.get("nodeAffinity") or EMPTY
    if _REQUIRED in node:
        _node_selector(out, f"{path}.nodeAffinity.{_REQUIRED}", node[_REQUIRED])
    for index, term in enumerate(node.get(_PREFERRED) or ()):
        at = f"{path}.nodeAffinity.{_PREFERRED}[{index}]"
        _weight(out, at, term)
        _node_term(out, f"{at}.preference", term.get("preference") or EMPTY, values=False)
    for which in ("podAffinity", "podAntiAffinity"):
        pods = found.get(which) or EMPTY
        for index, term in enumerate(pods.get(_REQUIRED) or ()):
            _pod_term(out, f"{path}.{which}.{_REQUIRED}[{index}]", term)
        for index, term in enumerate(pods.get(_PREFERRED) or ()):
            at = f"{path}.{which}.{_PREFERRED}[{index}]"
            _weight(out, at, term)
            _pod_term(out, f"{at}.podAffinityTerm", term.get("podAffinityTerm") or EMPTY)


def _weight(out: Causes, path: str, term: Object) -> None:
    weight = term.get("weight", 0)
    if not 1 <= weight <= 100:
        out.append(Cause.invalid(f"{path}.weight", weight, "must be in the range 1-100"))


def _node_selector(out: Causes, path: str, found: Any) -> None:
    if not found.get("nodeSelectorTerms"):
        detail = "must have at least one node selector term"
        out.append(Cause.required(f"{path}.nodeSelectorTerms", detail))
        return
    for index, term in enumerate(found["nodeSelectorTerms"]):
        _node_term(out, f"{path}.nodeSelectorTerms[{index}]", term, values=True)


def _node_term(out: Causes, path: str, term: Object, *, values: bool) -> None:
    """One alternative of a node selector. `values`: whether values have to be values of labels."""
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        _expression(out, f"{path}.matchExpressions[{index}]", expression, values)
    for index, expression in enumerate(term.get("matchFields") or ()):
        at = f"{path}.matchFields[{index}]"
        key, operator, given = (expression.get(name) or "" for name in ("key", "operator", "values"))
        if operator not in ("In", "NotIn"):
            out.append(Cause.invalid(f"{at}.operator", operator, _NO_OPERATOR))
        elif len(given) != 1:
            detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            out.append(Cause.required(f"{at}.values", detail))
        if key != "metadata.name":
            out.append(Cause.invalid(f"{at}.key", key, "not a valid field selector key"))
        else:
            for number, name in enumerate(given):
                rules.named(out, f"{at}.values[{number}]", name, rules.dns_subdomain)


def _expression(out: Causes, path: str, expression: Object, values: bool) -> None:
    operator, given = expression.get("operator") or "", expression.get("values") or ()
    if operator in ("In", "NotIn"):
        if not given:
            out.append(Cause.required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if given:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            out.append(Cause.forbidden(f"{path}.values", detail))
    elif operator in ("Gt", "Lt"):
        if len(given) != 1:
            detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            out.append(Cause.required(f"{path}.values", detail))
    else:
        out.append(Cause.invalid(f"{path}.operator", operator, _NO_OPERATOR))
    rules.named(out, f"{path}.key", expression.get("key") or "", rules.qualified_name)
    for number, value in enumerate(given if values else ()):
        rules.named(out, f"{path}.values[{number}]", value, rules.label_value)


def _pod_term(out: Causes, path: str, term: Object) -> None:
    for field in ("labelSelector", "namespaceSelector"):
        if field in term:
            rules.selector(out, f"{path}.{field}", term[field])
    for name in term.get("namespaces") or ():
        rules.named(out, f"{path}.namespace", name, rules.dns_label)
    key = term.get("topologyKey")
    if not key:
        out.append(Cause.required(f"{path}.topologyKey", "can not be empty"))
        key = ""
    rules.named(out, f"{path}.topologyKey", key, rules.qualified_name)


def spread(out: Causes, path: str, found: Any) -> None:
    """A pod's topology spread constraints."""
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(found or ()):
        at = f"{path}[{index}]"
        skew, key = constraint.get("maxSkew", 0), constraint.get("topologyKey") or ""
        unmet = constraint.get("whenUnsatisfiable") or ""
        if skew <= 0:
            out.append(Cause.invalid(f"{at}.maxSkew", skew, rules.NOT_POSITIVE))
        if not key:
            out.append(Cause.required(f"{at}.topologyKey", "can not be empty"))
        else:
            rules.named(out, f"{at}.topologyKey", key, rules.qualified_name)
        if unmet not in ("DoNotSchedule", "ScheduleAnyway"):
            supported = ("DoNotSchedule", "ScheduleAnyway")
            out.append(Cause.unsupported(f"{at}.whenUnsatisfiable", unmet, supported))
        if (key, unmet) in seen:
            out.append(Cause.duplicate(f"{at}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {unmet}}}"))
        seen.add((key, unmet))
        domains = constraint.get("minDomains")
        if domains is not None and domains <= 0:
            out.append(Cause.invalid(f"{at}.minDomains", domains, rules.NOT_POSITIVE))
        if domains is not None and unmet != "DoNotSchedule":
            detail = "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"
            out.append(Cause.invalid(f"{at}.minDomains", domains, detail))
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            chosen(out, f"{at}.{field}", constraint.get(field), ("Honor", "Ignore"))
        if "labelSelector" in constraint:
            rules.selector(out, f"{at}.labelSelector", constraint["labelSelector"])


def gates(out: Causes, path: str, found: Any) -> None:
    """A pod's scheduling gates."""
    seen: set[str] = set()
    for index, gate in enumerate(found or ()):
        name = gate.get("name") or ""
        rules.named(out, f"{path}[{index}]", name, rules.qualified_name)
        if name in seen:
            out.append(Cause.duplicate(f"{path}[{index}]", name))
        seen.add(name)
