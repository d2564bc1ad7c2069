"""What is wrong with the rules of a schema, told when its definition is written.

Source of the facts: `apiextensions-apiserver/pkg/apis/apiextensions/validation` of Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman.api.cel.rules import Rule, compiled
from steersman.api.custom_rules import has_rules
from steersman.api.errors import Cause
from steersman.api.schema import Schema


def rule_faults(schema: Schema, path: str) -> list[Cause]:
    """Every rule of a schema that cannot be used; `path` is that of its openAPIV3Schema."""
    out: list[Cause] = []
    _walk(schema, schema, path, True, "", out)
    return out


def _walk(rules_of: Schema, schema: Schema, path: str, root: bool, loose: str, out: list[Cause]) -> None:
    """One node; `loose` is the path of the first list or map above whose elements have no fixed places."""
    if not has_rules(rules_of):
        return
    for index, rule in enumerate(compiled(rules_of, schema, root)):
        _judge(rule, f"{path}.x-kubernetes-validations[{index}]", loose, out)
    for index, part in enumerate(rules_of.all_of):
        _walk(part, schema, f"{path}.allOf[{index}]", root, loose, out)
    if rules_of.items is not None and schema.items is not None:
        below = loose or ("" if schema.list_type == "map" else path)
        _walk(rules_of.items, schema.items, f"{path}.items", schema.items.embedded, below, out)
    if rules_of.values is not None and schema.values is not None:
        below = loose or (path if schema.atomic else "")
        _walk(rules_of.values, schema.values, f"{path}.additionalProperties", schema.values.embedded, below, out)
    for name, rules in rules_of.fields.items():
        child = schema.child(name)
        if child is not None and not child.name:
            _walk(rules, child, f"{path}.properties[{name}]", child.embedded, loose, out)


def _judge(rule: Rule, path: str, loose: str, out: list[Cause]) -> None:
    if rule.fault:
        out.append(Cause.invalid(f"{path}.rule", _shown(rule.given), rule.fault))
    if rule.message_fault:
        out.append(Cause.invalid(f"{path}.messageExpression", _shown(rule.given), rule.message_fault))
    if rule.uses_old and loose:
        told = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {loose}"
        out.append(Cause.invalid(f"{path}.rule", rule.given["rule"], told))
    elif not rule.uses_old and not rule.fault and rule.given.get("optionalOldSelf") is not None:
        told = "may not be set if oldSelf is not used in rule"
        out.append(Cause.invalid(f"{path}.optionalOldSelf", rule.given["optionalOldSelf"], told))


def _shown(given: Mapping[str, Any]) -> dict[str, Any]:
    """A rule as Kubernetes repeats it in an error."""
    return {
        "Rule": given.get("rule") or "",
        "Message": given.get("message") or "",
        "MessageExpression": given.get("messageExpression") or "",
        "Reason": given.get("reason"),
        "FieldPath": given.get("fieldPath") or "",
        "OptionalOldSelf": given.get("optionalOldSelf"),
    }
