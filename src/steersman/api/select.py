"""Selectors: which objects an expression picks, which nodes a pod may go to, which taints it tolerates.

`LabelSelector` and `FieldSelector` come from the modules beside this one; node selectors and tolerations are here.
All are compiled once into immutable values with a `matches` method, and raise ApiError for a wrong expression.
Source of the facts: component-helpers `scheduling/corev1/nodeaffinity` and api `core/v1/toleration.go`,
release 1.36.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from steersman.api.errors import Cause, invalid
from steersman.api.field_select import METADATA, FieldSelector, FieldTerm
from steersman.api.label_select import (
    GREATER,
    LESS,
    MAX_REQUIREMENTS,
    OBJECT_OPERATORS,
    LabelSelector,
    Refused,
    Requirement,
    integer,
    is_list,
    label_selector_causes,
    require,
    shape_causes,
)

__all__ = [
    "METADATA",
    "FieldSelector",
    "FieldTerm",
    "LabelSelector",
    "NodeSelector",
    "NodeTerm",
    "Requirement",
    "first_untolerated",
    "label_selector_causes",
    "tolerates",
]

NODE_OPERATORS: Final = OBJECT_OPERATORS | {"Gt": GREATER, "Lt": LESS}

_NAME_FIELD: Final = "metadata.name"
_CANONICAL_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """One alternative of a node selector: label requirements and names, all of which must hold."""

    labels: LabelSelector
    names: tuple[tuple[str, bool], ...] = ()
    """(name, whether it must be or must not be the node's name)."""

    def matches(self, labels: Mapping[str, str] | None, name: str) -> bool:
        if not self.labels.matches(labels):
            return False
        return all((name == wanted) is equal for wanted, equal in self.names)


@dataclass(frozen=True, slots=True)
class NodeSelector:
    """Alternatives, any of which may match; none at all match nothing."""

    terms: tuple[NodeTerm, ...] = ()

    def matches(self, labels: Mapping[str, str] | None, name: str) -> bool:
        """Whether a node of these labels and this name is picked."""
        return any(term.matches(labels, name) for term in self.terms)

    @staticmethod
    def compile(selector: object, path: str = "nodeSelector", *, lenient: bool = False) -> NodeSelector:
        """The selector of a NodeSelector object (`nodeSelectorTerms`: matchExpressions, matchFields).

        Empty terms match nothing. Wrong terms raise ApiError 422 whose causes name the fields below `path`;
        with `lenient` they match nothing, which is how the scheduler reads objects stored before a rule came.
        For one preferred term pass `{"nodeSelectorTerms": [preference]}`.
        """
        listed = selector.get("nodeSelectorTerms") if isinstance(selector, Mapping) else None
        at = f"{path}.nodeSelectorTerms"
        causes: list[Cause] = []
        terms: list[NodeTerm] = []
        if not is_list(listed):
            causes.append(Cause.required(at, "must have at least one node selector term"))
        elif len(listed) > MAX_REQUIREMENTS:
            causes.append(Cause.too_many(at, len(listed), MAX_REQUIREMENTS))
        else:
            for index, term in enumerate(listed):
                try:
                    terms += _node_term(term, f"{at}[{index}]")
                except Refused as refused:
                    causes += refused.causes
        if causes and not lenient:
            raise invalid("NodeSelector", "", causes)
        return NodeSelector(tuple(terms))


def _node_term(term: object, path: str) -> list[NodeTerm]:
    """The term, or none if it is empty. Raises Refused."""
    if not isinstance(term, Mapping):
        raise Refused([Cause.type_invalid(path, term, "must be an object with matchExpressions or matchFields")])
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    for name, listed in (("matchExpressions", expressions), ("matchFields", fields)):
        if not is_list(listed):
            raise Refused([Cause.type_invalid(f"{path}.{name}", listed, "must be a list of requirements")])
        if len(listed) > MAX_REQUIREMENTS:
            raise Refused([Cause.too_many(f"{path}.{name}", len(listed), MAX_REQUIREMENTS)])
    if not expressions and not fields:
        return []
    causes: list[Cause] = []
    found: list[Requirement] = []
    names: list[tuple[str, bool]] = []
    for index, expression in enumerate(expressions):
        try:
            found.append(_expression(expression, f"{path}.matchExpressions[{index}]"))
        except Refused as refused:
            causes += refused.causes
    for index, expression in enumerate(fields):
        try:
            names.append(_name_expression(expression, f"{path}.matchFields[{index}]"))
        except Refused as refused:
            causes += refused.causes
    if causes:
        raise Refused(causes)
    return [NodeTerm(LabelSelector.of(found), tuple(names))]


def _expression(expression: object, path: str) -> Requirement:
    if causes := shape_causes(expression, path):
        raise Refused(causes)
    assert isinstance(expression, Mapping)
    operator = NODE_OPERATORS.get(expression["operator"])
    if operator is None:
        raise Refused([Cause.unsupported(f"{path}.operator", expression["operator"], NODE_OPERATORS)])
    return require(expression["key"], operator, expression.get("values") or (), path)


def _name_expression(expression: object, path: str) -> tuple[str, bool]:
    if causes := shape_causes(expression, path):
        raise Refused(causes)
    assert isinstance(expression, Mapping)
    key, operator = expression["key"], expression["operator"]
    values: Sequence[str] = expression.get("values") or ()
    if key != _NAME_FIELD:
        raise Refused([Cause.invalid(f"{path}.key", key, f"not a valid field selector key; use {_NAME_FIELD}")])
    if operator not in ("In", "NotIn"):
        raise Refused([Cause.unsupported(f"{path}.operator", operator, ("In", "NotIn"))])
    if len(values) != 1:
        raise Refused([Cause.invalid(f"{path}.values", values, "must have one element")])
    return values[0], operator == "In"


def tolerates(
    tolerations: Iterable[Mapping[str, object]] | None, taint: Mapping[str, object], *, comparisons: bool = False
) -> bool:
    """Whether any of a pod's tolerations tolerates the taint (`key`, `value`, `effect`).

    An empty effect tolerates every effect, an empty key with `Exists` every key; an empty operator is `Equal`.
    `comparisons` turns on `Lt` and `Gt`, which Kubernetes 1.36 has behind a feature gate that is off by default.
    Tolerations that make no sense tolerate nothing.
    """
    return any(_tolerates(toleration, taint, comparisons) for toleration in tolerations or ())


def _tolerates(toleration: Mapping[str, object], taint: Mapping[str, object], comparisons: bool) -> bool:
    effect, key = toleration.get("effect"), toleration.get("key")
    if effect and effect != taint.get("effect"):
        return False
    if key and key != taint.get("key"):
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return True
    wanted, found = toleration.get("value") or "", taint.get("value") or ""
    if operator == "Equal":
        return wanted == found
    if operator not in ("Lt", "Gt") or not comparisons:
        return False
    bound, number = _canonical_integer(wanted), _canonical_integer(found)
    if bound is None or number is None:
        return False
    return number < bound if operator == "Lt" else number > bound


def _canonical_integer(text: object) -> int | None:
    """Stricter than labels: no plus sign and no leading zeros."""
    return integer(text) if isinstance(text, str) and _CANONICAL_INTEGER.fullmatch(text) else None


def first_untolerated(
    taints: Iterable[Mapping[str, object]] | None,
    tolerations: Iterable[Mapping[str, object]] | None,
    effects: frozenset[str] = frozenset({"NoSchedule", "NoExecute"}),
    *,
    comparisons: bool = False,
) -> Mapping[str, object] | None:
    """The first of a node's taints with one of the effects that no toleration tolerates; None: none."""
    found = tuple(tolerations or ())
    for taint in taints or ():
        if taint.get("effect") in effects and not tolerates(found, taint, comparisons=comparisons):
            return taint
    return None
