"""x-kubernetes-validations: the rules of a custom kind, compiled with its schema and held against its objects.

Source of the facts: `apiextensions-apiserver/pkg/apiserver/schema/cel` of Kubernetes 1.36, errors included.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

from steersman.api.cel.declare import declared
from steersman.api.cel.environment import MAX_MESSAGE, Budget, Environment, Program
from steersman.api.cel.faults import CelError, CompileError, CostExceeded
from steersman.api.cel.types import optional_of
from steersman.api.cel.values import NONE, Optional
from steersman.api.cel.view import seen
from steersman.api.crd.custom_rules import has_rules
from steersman.api.errors import Cause
from steersman.api.schema import Schema

OUT_OF_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"
ROOT: Final = "<nil>"
"""How Kubernetes names the whole object in an error."""
_JSON_TYPES: Final = {"map": "object", "list": "array", "int-or-string": "", "any": ""}
_PATH: Final = re.compile(r"\.([^.\[\]]+)|\['((?:[^'\\]|\\.)*)'\]")


class Rule(NamedTuple):
    """One compiled rule."""

    program: Program | None
    """None: the rule is empty, or `fault` says why it cannot be compiled."""
    fault: str
    message: Program | None
    message_fault: str
    uses_old: bool
    path: str
    """The field it speaks of, from its node on: `.spec.x`, or ""."""
    given: Mapping[str, Any]

    @property
    def shown(self) -> str:
        """How errors name it."""
        return str(self.given.get("message") or self.given.get("rule") or "").strip()


class Pair(NamedTuple):
    """A value and the one that stood in its place."""

    new: Any
    old: Any


class Ratchet(NamedTuple):
    """What a node is compared with: its own old value, else the nearest one above that can be compared."""

    current: Pair | None = None
    nearest: Pair | None = None

    def unchanged(self) -> bool:
        """Whether an error here was there before."""
        pair = self.current or self.nearest
        return pair is not None and bool(pair.new == pair.old)

    def field(self, name: str) -> Ratchet:
        """Of a field."""
        if self.current is None:
            return self
        if self.nearest is None and name in ("apiVersion", "kind"):
            return Ratchet()
        old = self.current.old
        pair = Pair(self.current.new[name], old[name]) if isinstance(old, dict) and name in old else None
        return Ratchet(pair, self.current)

    def item(self, item: Any, old: Any) -> Ratchet:
        """Of an element of a list, `old` the element with its keys."""
        if self.current is None:
            return self
        return Ratchet(None if old is None else Pair(item, old), self.current)


class Findings:
    """What the rules say about one object."""

    __slots__ = ("budget", "causes", "warnings")

    def __init__(self) -> None:
        self.causes: list[Cause] = []
        self.warnings: list[str] = []
        self.budget = Budget()

    @property
    def spent(self) -> bool:
        """Whether the budget is gone."""
        return self.budget.left < 0


def judge(schema: Schema, new: Mapping[str, Any], old: Mapping[str, Any] | None) -> Findings:
    """Holds all rules of a kind against an object."""
    found = Findings()
    ratchet = Ratchet(None if old is None else Pair(new, old))
    _judge(schema, schema, True, "", new, old, ratchet, found)
    found.causes = [cause if cause.field else replace(cause, field=ROOT) for cause in found.causes]
    return found


@lru_cache(maxsize=1 << 10)
def compiled(rules_of: Schema, schema: Schema, root: bool) -> tuple[Rule, ...]:
    """The rules of one node: those `rules_of` has, for values of `schema`."""
    if not rules_of.rules:
        return ()
    t = declared(schema, root)
    if t is None:
        fault = "failed to convert to declType for CEL validation rules"
        return tuple([Rule(None, fault, None, "", False, "", rule) for rule in rules_of.rules])
    once, maybe = Environment({"self": t, "oldSelf": t}), Environment({"self": t, "oldSelf": optional_of(t)})
    return tuple([_rule(rule, maybe if rule.get("optionalOldSelf") else once, schema) for rule in rules_of.rules])


def _rule(rule: Mapping[str, Any], environment: Environment, schema: Schema) -> Rule:
    text = rule.get("rule") or ""
    if not text.strip():
        return Rule(None, "", None, "", False, "", rule)
    program, fault = _compiled(
        environment, text, "bool", "compilation failed: ", "cel expression must evaluate to a bool"
    )
    message, message_fault = None, ""
    if program is not None and rule.get("messageExpression"):
        message, message_fault = _compiled(
            environment, rule["messageExpression"], "string",
            "messageExpression compilation failed: ", "messageExpression must evaluate to a string",
        )  # fmt: skip
    uses_old = program is not None and "oldSelf" in program.names
    return Rule(program, fault, message, message_fault, uses_old, _normal_path(rule.get("fieldPath") or ""), rule)


def _compiled(environment: Environment, text: str, kind: str, prefix: str, wrong: str) -> tuple[Program | None, str]:
    try:
        program = environment.compile(text)
    except CompileError as error:
        return None, prefix + str(error)
    return (program, "") if program.type.kind == kind else (None, wrong)


def _normal_path(path: str) -> str:
    """A fieldPath as errors write it."""
    return "".join([f".{name}" if name else f"[{key}]" for name, key in _PATH.findall(path)])


# -- walking ---------------------------------------------------------------------------------------------------


def _judge(
    rules_of: Schema, schema: Schema, root: bool, path: str, new: Any, old: Any, ratchet: Ratchet, found: Findings
) -> None:
    """One node and all below it; `rules_of` is the node itself, or a part of its allOf."""
    if new is None or not has_rules(rules_of):
        return
    for rule in compiled(rules_of, schema, root):
        _apply(rule, schema, path, new, old, ratchet, found)
        if found.spent:
            return
    for part in rules_of.all_of:
        _judge(part, schema, root, path, new, old, Ratchet(None, ratchet.nearest), found)
        if found.spent:
            return
    if isinstance(new, list) and schema.items is not None:
        _judge_items(rules_of, schema, path, new, old if isinstance(old, list) else [], ratchet, found)
    elif isinstance(new, dict):
        _judge_fields(rules_of, schema, path, new, old if isinstance(old, dict) else {}, ratchet, found)


def _judge_items(
    rules_of: Schema, schema: Schema, path: str, new: list[Any], old: list[Any], ratchet: Ratchet, found: Findings
) -> None:
    items, rules = schema.items, rules_of.items
    if items is None or rules is None:
        return
    before: dict[Any, Any] = {}
    if schema.list_type == "map":
        before = {_key(schema, item): item for item in old if isinstance(item, dict)}
    for index, item in enumerate(new):
        was = before.get(_key(schema, item)) if before and isinstance(item, dict) else None
        _judge(rules, items, items.embedded, f"{path}[{index}]", item, was, ratchet.item(item, was), found)
        if found.spent:
            return


def _key(schema: Schema, item: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple([repr(item.get(name, schema.key_defaults.get(name))) for name in schema.keys])


def _judge_fields(
    rules_of: Schema,
    schema: Schema,
    path: str,
    new: Mapping[str, Any],
    old: Mapping[str, Any],
    ratchet: Ratchet,
    found: Findings,
) -> None:
    for name in sorted(new):
        child, rules = schema.child(name), rules_of.child(name)
        if child is None or rules is None or child.name:
            continue
        below = f"{path}[{name}]" if schema.values is not None else f"{path}.{name}" if path else name
        _judge(rules, child, child.embedded, below, new[name], old.get(name), ratchet.field(name), found)
        if found.spent:
            return


# -- one rule --------------------------------------------------------------------------------------------------


def _apply(rule: Rule, schema: Schema, path: str, new: Any, old: Any, ratchet: Ratchet, found: Findings) -> None:
    json_type = _JSON_TYPES.get(schema.type, schema.type)
    if found.budget.left <= 0:
        found.causes.append(Cause.invalid(path, json_type, OUT_OF_BUDGET))
        found.budget.left = -1
        return
    if rule.fault:
        found.causes.append(Cause.invalid(path, json_type, f"rule compile error: {rule.fault}"))
        return
    optional = bool(rule.given.get("optionalOldSelf"))
    if rule.program is None or (rule.uses_old and old is None and not optional):
        return
    try:
        variables = _variables(rule, schema, new, old, optional)
    except CelError as error:
        found.causes.append(Cause.invalid(path, json_type, _ended(error, rule)))
        return
    result = rule.program.run(variables)
    found.budget.left -= result.cost
    if found.budget.left < 0:
        found.causes.append(Cause.invalid(path, json_type, OUT_OF_BUDGET))
        return
    if result.error is not None:
        found.causes.append(Cause.invalid(path, json_type, _ended(result.error, rule)))
        if isinstance(result.error, CostExceeded):
            found.budget.left = -1
        return
    if result.value is not True:
        _refuse(rule, schema, path, json_type, new, variables, ratchet, found)


def _variables(rule: Rule, schema: Schema, new: Any, old: Any, optional: bool) -> dict[str, Any]:
    """`self` and `oldSelf`. Raises `CelError` where a value is not what its format says."""
    variables = {"self": seen(schema, new)}
    if rule.uses_old:
        was = None if old is None else seen(schema, old)
        variables["oldSelf"] = was if not optional else NONE if was is None else Optional(True, was)
    return variables


def _ended(error: Exception, rule: Rule) -> str:
    text = str(error)
    if text.startswith("no such overload"):
        told = "call arguments did not match a supported operator, function or macro signature for rule"
        return f"'{text}': {told}: {rule.shown}"
    if isinstance(error, CostExceeded):
        told = "no further validation rules will be run due to call cost exceeds limit for rule"
        return f"'{text}': {told}: {rule.shown}"
    return f"{text} evaluating rule: {rule.shown}"


def _refuse(
    rule: Rule,
    schema: Schema,
    path: str,
    json_type: str,
    new: Any,
    variables: Mapping[str, Any],
    ratchet: Ratchet,
    found: Findings,
) -> None:
    """The rule is false: says so at its field, in its words."""
    at = (path + rule.path).removeprefix(".")
    detail = ""
    if rule.message is not None:
        detail, fatal = message_of(rule.message, variables, found.budget)
        if fatal:
            found.causes.append(Cause.invalid(at, json_type, fatal))
            found.budget.left = -1
            return
    if not detail:
        given = (rule.given.get("message") or "").strip()
        detail = given or f"failed rule: {rule.shown}"
    cause = _cause(rule.given.get("reason") or "", at, json_type, new, detail)
    if not rule.uses_old and ratchet.unchanged():
        found.warnings.append(str(cause))
    else:
        found.causes.append(cause)


def _cause(reason: str, at: str, json_type: str, value: Any, detail: str) -> Cause:
    whole = json_type in ("object", "array")
    if reason == "FieldValueForbidden":
        return Cause.forbidden(at, detail)
    if reason == "FieldValueRequired":
        return Cause.required(at, detail)
    if reason == "FieldValueDuplicate":
        return Cause(reason, "Duplicate value", at) if whole else Cause.duplicate(at, value)
    return Cause("FieldValueInvalid", f"Invalid value: {detail}", at) if whole else Cause.invalid(at, value, detail)


def message_of(message: Program, variables: Mapping[str, Any], budget: Budget) -> tuple[str, str]:
    """What a messageExpression says ("" when it cannot be used), and why nothing more may be evaluated ("" if it
    may)."""
    result = message.run(variables)
    if result.cost > budget.left:
        told = "messageExpression evaluation failed due to running out of cost budget"
        return "", f"{told}, no further validation rules will be run"
    if isinstance(result.error, CostExceeded):
        told = "no further validation rules will be run due to call cost exceeds limit for messageExpression"
        return "", f'{told}: "{message.source}"'
    budget.left -= result.cost
    text = result.value.strip() if isinstance(result.value, str) else ""
    return ("" if "\n" in text or len(text.encode("utf-8", "replace")) > MAX_MESSAGE else text), ""
