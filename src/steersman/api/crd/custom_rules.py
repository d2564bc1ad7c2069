"""Where the rules of a custom kind (x-kubernetes-validations) are held against its objects: after everything else
about them is right, as in kube-apiserver. A kind without rules costs one look-up."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from steersman.api import errors
from steersman.api.crd.faults import BLOCKING, UNCHECKED
from steersman.api.kinds import Kind
from steersman.api.schema import Schema
from steersman.kernel.effect import Call, Outcome
from steersman.kernel.object import Object

if TYPE_CHECKING:
    from steersman.api.by import Written  # which comes to import this module


class Broken(errors.Invalid):
    """422: the rules themselves refused it."""


@lru_cache(maxsize=1 << 12)
def has_rules(schema: Schema) -> bool:
    """Whether a schema has rules anywhere. Built-in definitions, which have names, have none."""
    if schema.rules or any(has_rules(part) for part in schema.all_of):
        return True
    inside = [*schema.fields.values(), *(part for part in (schema.items, schema.values) if part is not None)]
    return any(has_rules(child) for child in inside if not child.name)


def judged(kind: Kind, old: Object | None, written: Written) -> Written:
    """What was written, if the rules of its kind allow it. Raises `ApiError` 422."""
    if not has_rules(kind.schema):
        return written
    from steersman.api.cel.rules import judge  # a tenth of a second, for those who have rules

    found = judge(kind.schema, written.obj.value, None if old is None else old.value)
    if found.causes:
        told = errors.invalid(kind.kind, written.obj.key.name, found.causes, kind.group)
        raise Broken(told.code, told.reason, told.message, told.details)
    return written._replace(warnings=(*written.warnings, *found.warnings)) if found.warnings else written


def answered(kind: Kind, act: Callable[[], Outcome]) -> Outcome:
    """The outcome of a write to a custom kind. A refusal tells where it kept the rules from being tried."""
    try:
        outcome = act()
    except Broken:
        raise
    except errors.Invalid as refused:
        causes = refused.details.causes if refused.details is not None else ()
        if UNCHECKED in causes or not any(cause.reason in BLOCKING for cause in causes) or not has_rules(kind.schema):
            raise
        name = refused.details.name if refused.details is not None else ""
        told = errors.invalid(kind.kind, name, [*causes, UNCHECKED], kind.group)
        told.warnings = refused.warnings
        raise told from None
    if not isinstance(outcome, Call):
        return outcome
    resume = outcome.resume
    return outcome._replace(resume=lambda answer: answered(kind, lambda: resume(answer)))


def expressions(schema: Schema, path: str) -> list[errors.Cause]:
    """What is wrong with the rules of a schema, at its path in a definition."""
    if not has_rules(schema):
        return []
    from steersman.api.cel.rule_faults import rule_faults

    return rule_faults(schema, path)
