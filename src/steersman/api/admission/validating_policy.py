"""ValidatingAdmissionPolicy: expressions that judge a write.

Source of the facts: `apiserver/pkg/admission/plugin/policy/validating` of Kubernetes 1.36, texts included. Audit
annotations are evaluated, since their errors refuse a write, and go nowhere: there is no audit log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final, NamedTuple

import orjson

from steersman.api import errors
from steersman.api.access.authz import Rbac
from steersman.api.admission import expressions
from steersman.api.admission.about import user_of
from steersman.api.admission.expressions import Composed, Evaluation, Expression, Problem, Uses, compiled
from steersman.api.admission.match import GROUP, Matching
from steersman.api.admission.plugin import CREATE, DELETE, UPDATE, Answer, Attempt, Plugin, Verdict
from steersman.api.admission.policy import Binding, Misconfigured, bindings_by_policy, matching_of, params_of
from steersman.api.cel.environment import CONDITIONS_BUDGET, MAX_MESSAGE, OBJECT_BUDGET
from steersman.api.kinds import GK, Kind
from steersman.kernel.object import Object
from steersman.kernel.value import EMPTY

POLICY: Final[GK] = (GROUP, "ValidatingAdmissionPolicy")
BINDING: Final[GK] = (GROUP, "ValidatingAdmissionPolicyBinding")
FAILURE: Final = "validation.policy.admission.k8s.io/validation_failure"
MAX_ANNOTATION: Final = 10_000
"""Characters of one value that an expression gives the audit log (kube-apiserver's limit)."""
CODES: Final[Mapping[str, int]] = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413, "Invalid": 422}


class Validation(NamedTuple):
    """One validation of a policy."""

    expression: Expression
    message: str
    message_expression: Expression | None
    reason: str


class Policy(NamedTuple):
    """A compiled policy."""

    name: str
    matching: Matching | None
    fault: str
    ignores: bool
    """failurePolicy: Ignore."""
    param_kind: Mapping[str, Any] | None
    composed: Composed
    conditions: tuple[Expression, ...]
    validations: tuple[Validation, ...]
    annotations: tuple[tuple[str, Expression], ...]
    """Names and values of what the audit log is told."""


class Denial(NamedTuple):
    """What a policy has against a write."""

    message: str
    reason: str = ""
    published: bool = True
    """Told as the binding's validationActions say; else it refuses."""
    place: int = 0
    """Which validation, in the order of the policy."""


class _Told(NamedTuple):
    """What the policies have to say of one write beside refusing it."""

    warnings: list[str]
    failures: list[dict[str, Any]]
    annotations: dict[str, dict[str, None]]
    """By name: the values, each once, in order."""

    def note(self, attempt: Attempt) -> None:
        """Leaves it for the audit log."""
        if not attempt.audited:
            return
        if self.failures:
            attempt.note(FAILURE, orjson.dumps(self.failures).decode())
        for name, values in self.annotations.items():
            attempt.note(name, ", ".join(values))


def compile_policy(obj: Object) -> Policy:
    """The policy an object means; what is wrong with it is kept, and told when it is asked."""
    spec = obj.spec_value or EMPTY
    param_kind = spec.get("paramKind")
    uses = Uses(bool(param_kind))
    matching, fault = matching_of(spec.get("matchConstraints"))
    composed = expressions.composed(spec.get("variables") or (), uses)
    judged, told = composed.environment(uses), composed.environment(uses._replace(authorizer=False))
    validations = []
    for given in spec.get("validations") or ():
        text = given.get("messageExpression") or ""
        message = compiled(told, text, ("string",)) if text else None
        expression = compiled(judged, given["expression"], ("bool",))
        validations.append(Validation(expression, given.get("message") or "", message, given.get("reason") or ""))
    annotations = [
        (given["key"], compiled(told, given["valueExpression"], ("string", "null")))
        for given in spec.get("auditAnnotations") or ()
    ]
    return Policy(
        obj.key.name, matching, fault, spec.get("failurePolicy") == "Ignore", param_kind, composed,
        expressions.conditions(spec.get("matchConditions") or (), uses, judged), tuple(validations), tuple(annotations),
    )  # fmt: skip


def _policies(objects: Iterator[Object]) -> list[Policy]:
    return [compile_policy(obj) for obj in objects]


class ValidatingAdmissionPolicy(Plugin):
    """Holds the policies of the store against every write they are about."""

    name: ClassVar[str] = "ValidatingAdmissionPolicy"
    kinds: ClassVar[tuple[GK, ...] | None] = None
    operations: ClassVar[tuple[str, ...]] = (CREATE, UPDATE, DELETE)
    subresources: ClassVar[tuple[str, ...] | None] = None
    needs: ClassVar[tuple[GK, ...]] = (BINDING,)

    def __init__(self) -> None:
        self._rbac = Rbac()

    def validate(self, attempt: Attempt) -> Answer:
        """Refuses what a policy denies. Raises `ApiError`."""
        store = attempt.store
        policies: list[Policy] = store.derived(POLICY, _policies) or []
        bindings: dict[str, list[Binding]] = store.derived(BINDING, bindings_by_policy) or {}
        told = _Told([], [], {})
        try:
            for policy in policies:
                bound = bindings.get(policy.name)
                if bound:
                    self._hold(policy, bound, attempt, told)
        finally:
            told.note(attempt)
        warnings = told.warnings
        return Verdict(warnings=tuple(warnings)) if warnings else None

    def _hold(self, policy: Policy, bindings: list[Binding], attempt: Attempt, told: _Told) -> None:
        try:
            matched = None if policy.matching is None else policy.matching.matches(attempt)
            if policy.fault:
                raise Misconfigured(policy.fault)
        except (Misconfigured, errors.ApiError) as error:
            if not policy.ignores:
                raise _denied(attempt, policy, None, Denial(f"failed to configure policy: {_text(error)}")) from None
            return
        if matched is None:
            return
        for binding in bindings:
            try:
                if binding.fault or binding.matching is None:
                    raise Misconfigured(binding.fault)
                if binding.matching.matches(attempt) is None:
                    continue
                params = params_of(attempt, policy.param_kind, binding)
            except (Misconfigured, errors.ApiError) as error:
                if not policy.ignores:
                    denial = Denial(f"failed to configure binding: {_text(error)}")
                    raise _denied(attempt, policy, binding, denial) from None
                continue
            for param in params:
                for denial in self._judge(policy, matched, attempt, param, told):
                    _act(denial, policy, binding, attempt, told)

    def _judge(self, policy: Policy, matched: Kind, attempt: Attempt, param: Any, told: _Told) -> Iterator[Denial]:
        """What a policy with one parameter has against a write."""
        judge = expressions.judge_of(self._rbac, attempt.store, user_of(attempt.request))
        about = {"params": param, "judge": judge, "composed": policy.composed}
        try:
            first = Evaluation(attempt, matched, CONDITIONS_BUDGET, **about, namespace=False)
            if not expressions.hold(policy.conditions, first):
                return
        except Problem as problem:
            if not policy.ignores:
                yield Denial(str(problem))
            return
        evaluation = Evaluation(attempt, matched, OBJECT_BUDGET, **about)
        for index, validation in enumerate(policy.validations):
            try:
                if evaluation.value(validation.expression) is not True:
                    yield Denial(_message(validation, evaluation), validation.reason or "Invalid", place=index)
            except Problem as problem:
                if not policy.ignores:
                    yield Denial(str(problem), place=index)
                if problem.fatal:
                    return
        for name, annotation in policy.annotations:
            try:
                value = evaluation.value(annotation)
                if isinstance(value, str) and value.strip():
                    values = told.annotations.setdefault(f"{policy.name}/{name}", {})
                    values[value.strip()[:MAX_ANNOTATION]] = None
            except Problem as problem:
                if not policy.ignores:
                    yield Denial(str(problem), published=False)


def _text(error: Exception) -> str:
    return error.message if isinstance(error, errors.ApiError) else str(error)


def _message(validation: Validation, evaluation: Evaluation) -> str:
    """Why: by the expression, the fixed text, or the expression that is false."""
    text = ""
    if validation.message_expression is not None:
        try:
            found = evaluation.value(validation.message_expression)
        except Problem as problem:
            if problem.fatal:
                raise Problem(f"failed messageExpression: {problem}", True) from None
            found = ""
        text = found.strip() if isinstance(found, str) else ""
        if "\n" in text or len(text.encode("utf-8", "replace")) > MAX_MESSAGE:
            text = ""
    return text or validation.message.strip() or f"failed expression: {validation.expression.text.strip()}"


def _act(denial: Denial, policy: Policy, binding: Binding, attempt: Attempt, told: _Told) -> None:
    """Does what the binding says about a denial: refuses, warns, or notes it for the audit log."""
    if "Warn" in binding.actions and denial.published:
        head = f"Validation failed for ValidatingAdmissionPolicy '{policy.name}' with binding '{binding.name}'"
        told.warnings.append(f"{head}: {denial.message}")
    if "Audit" in binding.actions and denial.published and attempt.audited:
        failure = {"message": denial.message, "policy": policy.name, "binding": binding.name}
        told.failures.append({**failure, "expressionIndex": denial.place, "validationActions": list(binding.actions)})
    if "Deny" in binding.actions or not denial.published:
        raise _denied(attempt, policy, binding, denial)


def _denied(attempt: Attempt, policy: Policy, binding: Binding | None, denial: Denial) -> errors.ApiError:
    by = f" with binding '{binding.name}'" if binding is not None else ""
    message = f"ValidatingAdmissionPolicy '{policy.name}'{by} denied request: {denial.message}"
    reason = denial.reason or "Invalid"
    plain = attempt.forbidden(message)
    causes = (errors.Cause("", message),)
    details = errors.Details(attempt.key.name, attempt.kind.group, attempt.kind.plural, causes)
    return errors.ApiError(CODES.get(reason, 422), reason, plain.message, details)
