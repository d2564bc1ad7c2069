"""MutatingAdmissionPolicy: expressions that change a write, by an apply configuration or by a JSON patch.

Source of the facts: `apiserver/pkg/admission/plugin/policy/mutating` of Kubernetes 1.36, texts included.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final, NamedTuple

from steersman.api import errors
from steersman.api.access.authz import Rbac
from steersman.api.admission import expressions
from steersman.api.admission.about import CONNECTED, from_version, in_version, user_of
from steersman.api.admission.expressions import Composed, Evaluation, Expression, Problem, Uses, compiled
from steersman.api.admission.match import GROUP, Matching
from steersman.api.admission.plugin import CONNECT, CREATE, UPDATE, Answer, Attempt, Plugin, Verdict
from steersman.api.admission.policy import Binding, Misconfigured, bindings_by_policy, matching_of, params_of
from steersman.api.cel.environment import CONDITIONS_BUDGET, OBJECT_BUDGET
from steersman.api.cel.frame import Made
from steersman.api.cel.values import Fields, Uint
from steersman.api.kinds import GK, Kind
from steersman.api.patching.patch import json_patch
from steersman.api.patching.typed import merge
from steersman.api.schema import Schema
from steersman.kernel.object import Object
from steersman.kernel.value import EMPTY, freeze

POLICY: Final[GK] = (GROUP, "MutatingAdmissionPolicy")
BINDING: Final[GK] = (GROUP, "MutatingAdmissionPolicyBinding")


class Policy(NamedTuple):
    """A compiled policy. `mutations`: whether it is a JSON patch, and its expression."""

    name: str
    matching: Matching | None
    fault: str
    ignores: bool
    param_kind: Mapping[str, Any] | None
    composed: Composed
    conditions: tuple[Expression, ...]
    mutations: tuple[tuple[bool, Expression], ...]
    again: bool
    """reinvocationPolicy: IfNeeded."""


class Denial(NamedTuple):
    """Why a policy refuses a write."""

    policy: str
    binding: str
    message: str

    def __str__(self) -> str:
        if self.binding:
            return f"policy '{self.policy}' with binding '{self.binding}' denied request: {self.message}"
        return f'policy "{self.policy}" denied request: {self.message}'


def compile_policy(obj: Object) -> Policy:
    """The policy an object means; what is wrong with it is kept, and told when it is asked."""
    spec = obj.spec_value or EMPTY
    param_kind = spec.get("paramKind")
    uses = Uses(bool(param_kind), patches=True)
    matching, fault = matching_of(spec.get("matchConstraints"))
    composed = expressions.composed(spec.get("variables") or (), uses)
    scope = composed.environment(uses)
    mutations = []
    for given in spec.get("mutations") or ():
        patches = given.get("patchType") == "JSONPatch"
        text = (given.get("jsonPatch" if patches else "applyConfiguration") or EMPTY).get("expression") or ""
        mutations.append((patches, compiled(scope, text, ("list(JSONPatch)",) if patches else ("Object",))))
    return Policy(
        obj.key.name, matching, fault, spec.get("failurePolicy") == "Ignore", param_kind, composed,
        expressions.conditions(spec.get("matchConditions") or (), uses, scope), tuple(mutations),
        spec.get("reinvocationPolicy") == "IfNeeded",
    )  # fmt: skip


def _policies(objects: Iterator[Object]) -> list[Policy]:
    return [compile_policy(obj) for obj in objects]


class MutatingAdmissionPolicy(Plugin):
    """Lets the policies of the store change every write they are about."""

    name: ClassVar[str] = "MutatingAdmissionPolicy"
    kinds: ClassVar[tuple[GK, ...] | None] = None
    operations: ClassVar[tuple[str, ...]] = (CREATE, UPDATE, CONNECT)
    subresources: ClassVar[tuple[str, ...] | None] = None
    needs: ClassVar[tuple[GK, ...]] = (BINDING,)

    def __init__(self) -> None:
        self._rbac = Rbac()

    def mutate(self, attempt: Attempt) -> Answer:
        """Changes the body. Raises `ApiError`."""
        if attempt.body is None:
            return None
        policies: list[Policy] = attempt.store.derived(POLICY, _policies) or []
        bindings: dict[str, list[Binding]] = attempt.store.derived(BINDING, bindings_by_policy) or {}
        before, again = attempt.body, False
        denials: list[Denial] = []
        for policy in policies:
            if policy.name not in bindings or (attempt.again and not policy.again):
                continue
            was = attempt.body
            attempt = self._run(policy, bindings[policy.name], attempt, denials)
            again = again or attempt.body is not was
        if denials:
            raise _refused(attempt, denials)
        return None if attempt.body is before else Verdict(attempt.body, again=again)

    def _run(self, policy: Policy, bindings: list[Binding], attempt: Attempt, denials: list[Denial]) -> Attempt:
        """All invocations of one policy."""

        def deny(binding: str, message: str) -> None:
            if not policy.ignores:
                denials.append(Denial(policy.name, binding, message))

        try:
            matched = None if policy.matching is None else policy.matching.matches(attempt)
            if policy.fault:
                raise Misconfigured(policy.fault)
        except (Misconfigured, errors.ApiError) as error:
            deny("", f"failed to configure policy: {error}")
            return attempt
        if matched is None:
            return attempt
        for binding in bindings:
            try:
                if binding.fault or binding.matching is None:
                    raise Misconfigured(binding.fault)
                if binding.matching.matches(attempt) is None:
                    continue
                params = params_of(attempt, policy.param_kind, binding)
            except (Misconfigured, errors.ApiError) as error:
                deny(binding.name, f"failed to configure binding: {error}")
                continue
            for param in params:
                attempt = self._mutated(policy, binding, matched, attempt, param, deny)
        return attempt

    def _mutated(
        self, policy: Policy, binding: Binding, matched: Kind, attempt: Attempt, param: Any, deny: Any
    ) -> Attempt:
        """One invocation: its mutations in order."""
        judge = expressions.judge_of(self._rbac, attempt.store, user_of(attempt.request))
        about = {"params": param, "judge": judge, "composed": policy.composed}
        try:
            first = Evaluation(attempt, matched, CONDITIONS_BUDGET, **about, namespace=False)
            if not expressions.hold(policy.conditions, first):
                return attempt
        except Problem as problem:
            deny(binding.name, str(problem))
            return attempt
        for patches, expression in policy.mutations:
            evaluation = Evaluation(attempt, matched, OBJECT_BUDGET, **about)
            try:
                found = evaluation.value(expression)
                assert attempt.body is not None
                seen, kind = attempt.body, attempt.kind
                if matched.alias is not None:
                    seen, kind = in_version(seen, matched, kind) or seen, matched
                if attempt.operation == CONNECT and not patches:
                    told = f"no corresponding type for /v1, Kind={CONNECTED[kind.kind, attempt.subresource]}"
                    raise Misfit(f"error applying patch: failed to convert patch object to typed object: {told}")
                body = _patched(seen, found) if patches else _applied(kind, seen, found)
                if body != seen:
                    attempt = attempt._replace(body=from_version(body, matched))
            except (Problem, errors.ApiError, Misfit) as problem:
                deny(binding.name, str(problem))
                continue
        return attempt


def _refused(attempt: Attempt, denials: list[Denial]) -> errors.ApiError:
    plain = attempt.forbidden("")
    causes = tuple([errors.Cause("", str(denial)) for denial in denials])
    details = errors.Details(attempt.key.name, attempt.kind.group, attempt.kind.plural, causes)
    return errors.ApiError(plain.code, "Invalid", str(denials[0]), details)


# -- what expressions make -------------------------------------------------------------------------------------


class Misfit(Exception):
    """What an expression made cannot be used."""


def _patched(body: Mapping[str, Any], found: Any) -> Any:
    """The body with a list of JSONPatch objects applied."""
    operations = []
    for item in found:
        operation = {name: plain(value) for name, value in item.items()}
        if operation.get("from") == "":
            del operation["from"]
        operations.append(operation)
    return json_patch(body, operations)


def _applied(kind: Kind, body: Mapping[str, Any], found: Any) -> Any:
    """The body with an apply configuration merged in."""
    _check_names(found, "Object")
    config = plain(found)
    for field in ("apiVersion", "kind"):
        if config.get(field, body.get(field)) != body.get(field):
            raise Misfit("error applying patch: patch and original object are not of the same gvk")
    atomics = _atomics(kind.schema, config, "")
    if atomics:
        told = f"may not mutate atomic arrays, maps or structs: {', '.join(atomics)}"
        raise Misfit(f"error applying patch: invalid ApplyConfiguration: {told}")
    out = dict(body)
    for part, value in config.items():
        out[part] = merge(kind.schema.fields.get(part), body.get(part), freeze(value))
    return out


def _check_names(value: Any, name: str) -> None:
    """Refuses `Object.spec{inner: Object.spec.other{}}`: the name of an object is the path of its field."""
    if isinstance(value, Made):
        if value.name != name:
            told = f"unexpected type name {errors.quote(value.name)}, expected {errors.quote(name)}"
            raise Misfit(f"type mismatch: {told}, which matches field name path from root Object type")
        for field, item in value.items():
            _check_names(item, f"{name}.{field}")
    elif isinstance(value, list):
        for item in value:
            _check_names(item, name)


def _atomics(schema: Schema | None, value: Any, path: str) -> list[str]:
    """The atomic lists and maps a configuration speaks of."""
    if schema is None:
        return []
    out: list[str] = []
    if isinstance(value, dict):
        if schema.atomic:
            out.append(path)
        for name, item in value.items():
            out += _atomics(schema.child(name), item, f"{path}.{name}")
    elif isinstance(value, list):
        if schema.list_type == "atomic":
            out.append(path)
        for index, item in enumerate(value):
            out += _atomics(schema.items, item, f"{path}[{index}]")
    return out


def plain(value: Any) -> Any:
    """A value as JSON. Raises `Misfit` for what JSON does not have."""
    if isinstance(value, Fields):
        value = value.cel_plain()
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise Misfit("a map with keys that are no strings cannot be written as JSON")
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if type(value) is Uint:
        return int(value)
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise Misfit(f"a value of type {type(value).__name__.lower()} cannot be written as JSON")
