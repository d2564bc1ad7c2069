"""What is wrong with the rules of a schema, told when its definition is written.

Source of the facts: `apiextensions-apiserver/pkg/apis/apiextensions/validation` of Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from steersman.api.cel.declare import MAX_REQUEST, declared
from steersman.api.cel.estimate import MOST, most
from steersman.api.cel.rules import Rule, compiled
from steersman.api.crd.custom_rules import has_rules
from steersman.api.errors import Cause
from steersman.api.schema import Schema

RULE_LIMIT: Final = 10_000_000
"""Most cost of one rule at all places of an object where it may be evaluated (StaticEstimatedCostLimit)."""
SCHEMA_LIMIT: Final = 100_000_000
"""Most cost of all rules of a schema (StaticEstimatedCRDCostLimit)."""
TOLD: Final = 4
"""So many of the most expensive rules are named, each of at least a hundredth of the limit."""


class _Costs:
    """The estimated costs of the rules of one schema."""

    def __init__(self) -> None:
        self.found: list[tuple[int, str]] = []

    def note(self, path: str, cost: int, what: str, out: list[Cause]) -> None:
        """One expression, with its cost at all places together."""
        self.found.append((cost, path))
        if cost > RULE_LIMIT:
            out.append(Cause.forbidden(path, _exceeds(f"estimated {what} cost", cost, RULE_LIMIT)))

    def judge(self, path: str) -> list[Cause]:
        """What all of them come to."""
        total = min(sum(cost for cost, _ in self.found), MOST)
        if total <= SCHEMA_LIMIT:
            return []
        told = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        worst = sorted([entry for entry in self.found if entry[0] >= SCHEMA_LIMIT // 100], key=lambda entry: -entry[0])
        causes = [Cause.forbidden(place, told) for _, place in worst[:TOLD]]
        what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        return [*causes, Cause.forbidden(path, _exceeds(what, total, SCHEMA_LIMIT))]


def _exceeds(what: str, cost: int, limit: int) -> str:
    factor = cost / limit
    shown = "more than 100x" if factor > 100 else f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    hint = "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings"
    return f"{what} exceeds budget by factor of {shown} ({hint} are declared)"


class _Place(NamedTuple):
    """Where a node of a schema is."""

    path: str
    root: bool
    loose: str
    """The path of the first list or map above whose elements have no fixed places."""
    places: int | None
    """How often it may be in one object; None: as often as a request has room for."""

    def below(self, path: str, root: bool, loose: str, elements: int | None) -> _Place:
        """A child, of which there may be so many for each of this."""
        places = None if self.places is None or elements is None else min(self.places * max(elements, 0), MOST)
        return _Place(path, root, loose, places)


def rule_faults(schema: Schema, path: str) -> list[Cause]:
    """Every rule of a schema that cannot be used; `path` is that of its openAPIV3Schema."""
    out: list[Cause] = []
    costs = _Costs()
    _walk(schema, schema, _Place(path, True, "", 1), costs, out)
    return out + costs.judge(path)


def _walk(rules_of: Schema, schema: Schema, place: _Place, costs: _Costs | None, out: list[Cause]) -> None:
    """One node and all below it; nobody estimates the costs of rules in parts of an allOf."""
    if not has_rules(rules_of):
        return
    path, loose = place.path, place.loose
    for index, rule in enumerate(compiled(rules_of, schema, place.root)):
        at = f"{path}.x-kubernetes-validations[{index}]"
        if costs is not None:
            _estimate(rule, schema, place, at, costs, out)
        _judge(rule, at, loose, out)
    for index, part in enumerate(rules_of.all_of):
        _walk(part, schema, place._replace(path=f"{path}.allOf[{index}]"), None, out)
    if rules_of.items is not None and schema.items is not None:
        below = loose or ("" if schema.list_type == "map" else path)
        inside = place.below(f"{path}.items", schema.items.embedded, below, schema.max_items)
        _walk(rules_of.items, schema.items, inside, costs, out)
    if rules_of.values is not None and schema.values is not None:
        below = loose or (path if schema.atomic else "")
        inside = place.below(f"{path}.additionalProperties", schema.values.embedded, below, schema.max_fields)
        _walk(rules_of.values, schema.values, inside, costs, out)
    for name, rules in rules_of.fields.items():
        child = schema.child(name)
        if child is not None and not child.name:
            inside = place.below(f"{path}.properties[{name}]", child.embedded, loose, 1)
            _walk(rules, child, inside, costs, out)


def _estimate(rule: Rule, schema: Schema, place: _Place, at: str, costs: _Costs, out: list[Cause]) -> None:
    t = declared(schema, place.root)
    if rule.program is None or t is None:
        return
    places = MAX_REQUEST // (t.least + 1) if place.places is None else place.places
    costs.note(f"{at}.rule", min(most(rule.program.root, t) * places, MOST), "rule", out)
    if rule.message is not None:
        costs.note(f"{at}.messageExpression", most(rule.message.root, t), "messageExpression", out)


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
