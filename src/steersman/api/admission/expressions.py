"""The expressions of policies and webhooks: what they may use, and one evaluation with a budget.

Source of the facts: `apiserver/pkg/admission/plugin/cel` of Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from steersman.api.access.authz import Rbac
from steersman.api.access.rbac import Ask as Right
from steersman.api.access.user import User, account_groups, account_of
from steersman.api.admission.about import in_version, request_json, user_of
from steersman.api.admission.plugin import Attempt
from steersman.api.cel.environment import CALL_LIMIT, Budget, Environment, Program, with_json_patch
from steersman.api.cel.faults import CelError, CompileError, CostExceeded
from steersman.api.cel.library.authz import Answer, Ask, Authorizer, Judge, Resource
from steersman.api.cel.types import BOOL, DYN, INT, OPAQUE, STRING, TIMESTAMP, Type, list_of, map_of, object_of
from steersman.api.cel.values import Fields
from steersman.api.field_select import demanded
from steersman.api.kinds import Kind
from steersman.kernel.object import Key
from steersman.kernel.store import Store
from steersman.kernel.value import EMPTY

OUT_OF_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"
VARIABLES: Final = "kubernetes.variables"


def _texts(name: str, *fields: str) -> Type:
    return object_of(name, dict.fromkeys(fields, STRING))


_KIND: Final = _texts("kubernetes.GroupVersionKind", "group", "version", "kind")
_RESOURCE: Final = _texts("kubernetes.GroupVersionResource", "group", "version", "resource")
USER_INFO: Final = object_of("kubernetes.UserInfo", {
    "username": STRING, "uid": STRING, "groups": list_of(STRING), "extra": map_of(STRING, list_of(STRING)),
})  # fmt: skip
REQUEST: Final = object_of("kubernetes.AdmissionRequest", {
    "kind": _KIND, "resource": _RESOURCE, "subResource": STRING, "requestKind": _KIND, "requestResource": _RESOURCE,
    "requestSubResource": STRING, "name": STRING, "namespace": STRING, "operation": STRING, "userInfo": USER_INFO,
    "dryRun": BOOL, "options": DYN,
})  # fmt: skip
_META: Final = object_of("kubernetes.NamespaceMetadata", {
    "name": STRING, "generateName": STRING, "namespace": STRING, "labels": map_of(STRING, STRING),
    "annotations": map_of(STRING, STRING), "UID": STRING, "creationTimestamp": TIMESTAMP,
    "deletionGracePeriodSeconds": INT, "deletionTimestamp": TIMESTAMP, "generation": INT, "resourceVersion": STRING,
    "finalizers": list_of(STRING),
})  # fmt: skip
_CONDITION: Final = object_of("kubernetes.NamespaceCondition", {
    "status": STRING, "type": STRING, "lastTransitionTime": TIMESTAMP, "message": STRING, "reason": STRING,
})  # fmt: skip
NAMESPACE: Final = object_of("kubernetes.Namespace", {
    "metadata": _META,
    "spec": object_of("kubernetes.NamespaceSpec", {"finalizers": list_of(STRING)}),
    "status": object_of("kubernetes.NamespaceStatus", {"conditions": list_of(_CONDITION), "phase": STRING}),
})  # fmt: skip


class Uses(NamedTuple):
    """What beside the request an expression may use."""

    params: bool = False
    authorizer: bool = True
    patches: bool = False


@cache
def environment(uses: Uses) -> Environment:
    """The environment of policies (with `variables` added) and of match conditions."""
    variables = {"object": DYN, "oldObject": DYN, "namespaceObject": NAMESPACE, "request": REQUEST}
    if uses.params:
        variables["params"] = DYN
    if uses.authorizer:
        variables["authorizer"] = OPAQUE["authorizer"]
        variables["authorizer.requestResource"] = OPAQUE["resourcecheck"]
    if not uses.patches:
        return Environment(variables)
    return Environment(variables, Patches(), with_json_patch())


class Patches(dict[str, Type]):
    """The objects that mutations may write: JSONPatch, Object, and Object.spec and the like, with any fields."""

    def get(self, name: str, default: Any = None) -> Any:
        """The type of that name."""
        if name == "JSONPatch":
            return object_of(name, {"op": STRING, "path": STRING, "from": STRING, "value": DYN})
        if name == "Object" or name.startswith("Object."):
            return Type("object", (), name)
        return default


class Expression(NamedTuple):
    """A compiled expression, or why it is none."""

    text: str
    program: Program | None
    fault: str = ""


def compiled(environment: Environment, text: str, kinds: Sequence[str]) -> Expression:
    """An expression that must give one of these types (their text); () for any."""
    try:
        program = environment.compile(text)
    except CompileError as error:
        return Expression(text, None, f"compilation failed: {error}")
    found = str(program.type)
    if kinds and found not in kinds:
        told = kinds[0] if len(kinds) == 1 else f"one of [{' '.join(kinds)}]"
        return Expression(text, None, f"must evaluate to {told} but got {found}")
    return Expression(text, program)


class Composed(NamedTuple):
    """The variables of a policy, in order, and the environment of what may use them all."""

    variables: Mapping[str, Expression]
    types: Mapping[str, Type]
    known: Mapping[str, Type] = EMPTY
    """Types of `object` and the like, where an expression is only held against them."""

    def environment(self, uses: Uses) -> Environment:
        """With these variables."""
        return environment(uses).extended({**self.known, "variables": object_of(VARIABLES, self.types)})


def composed(variables: Sequence[Mapping[str, Any]], uses: Uses, known: Mapping[str, Type] = EMPTY) -> Composed:
    """The variables of a policy; each may use those before it. `known`: see `Composed`."""
    done: dict[str, Expression] = {}
    types: dict[str, Type] = {}
    for given in variables:
        expression = compiled(Composed({}, types, known).environment(uses), given["expression"], ())
        done[given["name"]] = expression
        types = {**types, given["name"]: DYN if expression.program is None else expression.program.type}
    return Composed(done, types, known)


class Problem(Exception):
    """An expression that could not be evaluated; `fatal` when the budget is gone."""

    def __init__(self, text: str, fatal: bool = False) -> None:
        super().__init__(text)
        self.fatal = fatal


class Evaluation:
    """The expressions of one policy or webhook, held against one attempt."""

    __slots__ = ("_composed", "_frame", "budget")

    def __init__(
        self, attempt: Attempt, matched: Kind, budget: int, *, params: Any = None, judge: Judge | None = None,
        composed: Composed | None = None, namespace: bool = True,
    ) -> None:  # fmt: skip
        self.budget = Budget(budget)
        old = None if attempt.old is None else attempt.old.value
        self._frame: dict[str, Any] = {
            "object": in_version(attempt.body, matched, attempt.kind),
            "oldObject": in_version(old, matched, attempt.kind),
            "request": request_json(attempt, matched),
            "namespaceObject": _namespace(attempt) if namespace else None,
            "params": params,
        }
        if judge is not None:
            user = user_of(attempt.request)
            self._frame["authorizer"] = Authorizer(judge, user.name)
            ask = Ask(user.name, "", "", attempt.kind.group, attempt.kind.plural, attempt.subresource,
                      attempt.key.namespace, attempt.key.name)  # fmt: skip
            self._frame["authorizer.requestResource"] = Resource(judge, ask)
        self._composed = composed
        if composed is not None:
            self._frame["variables"] = _Variables(self, composed)

    def value(self, expression: Expression) -> Any:
        """What an expression gives. Raises `Problem`."""
        if expression.program is None:
            raise Problem(f"compilation error: {expression.fault}")
        result = expression.program.run(self._frame, CALL_LIMIT)
        self.budget.left -= result.cost
        if self.budget.left < 0:
            raise Problem(OUT_OF_BUDGET, True)
        if result.error is not None:
            raise Problem(f"expression '{expression.text}' resulted in error: {result.error}")
        return result.value


class _Variables(Fields):
    """`variables`: each evaluated when it is first asked for."""

    __slots__ = ("_composed", "_evaluation", "_known")
    kind = VARIABLES

    def __init__(self, evaluation: Evaluation, composed: Composed) -> None:
        self._evaluation = evaluation
        self._composed = composed
        self._known: dict[str, Any] = {}

    def cel_get(self, name: str) -> Any:
        """A variable. Raises `KeyError`, `CelError`."""
        if name not in self._known:
            expression = self._composed.variables[name]
            try:
                self._known[name] = self._evaluation.value(expression)
            except Problem as problem:
                self._known[name] = CelError(f'composited variable "{name}" fails to evaluate: {problem}')
                if problem.fatal:
                    raise CostExceeded from None
        found = self._known[name]
        if isinstance(found, CelError):
            raise found
        return found

    def cel_has(self, name: str) -> bool:
        """Whether there is such a variable."""
        return name in self._composed.variables


def _namespace(attempt: Attempt) -> Any:
    """The namespace of a request, as expressions see it; None for what is in none."""
    name = attempt.key.namespace
    found = attempt.store.get(Key("", "Namespace", "", name)) if name else None
    if found is None:
        return None
    meta = {field: value for field, value in found.value["metadata"].items() if field != "managedFields"}
    return {part: meta if part == "metadata" else found.value[part]
            for part in ("metadata", "spec", "status") if part in found.value}  # fmt: skip


def conditions(
    given: Sequence[Mapping[str, Any]], uses: Uses, scope: Environment | None = None
) -> tuple[Expression, ...]:
    """The matchConditions of a policy or webhook."""
    where = environment(uses) if scope is None else scope
    return tuple([compiled(where, condition["expression"], ("bool",)) for condition in given])


def hold(expressions: Sequence[Expression], evaluation: Evaluation) -> bool:
    """Whether all match conditions hold: one that is false decides. Raises `Problem` when none is, and some cannot be
    told."""
    problems: list[str] = []
    for expression in expressions:
        try:
            if evaluation.value(expression) is False:
                return False
        except Problem as problem:
            problems.append(str(problem))
            if problem.fatal:
                break
    if problems:
        raise Problem(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return True


def judge_of(rbac: Rbac, store: Store, user: User) -> Judge:
    """The authorizer of expressions: RBAC over the store, for the user of the request and for service accounts."""

    def judge(ask: Ask) -> Answer:
        who = user if ask.user == user.name else _account(ask.user)
        fields = demanded(ask.field_selector)
        right = Right(ask.verb, ask.group, ask.resource, ask.subresource, ask.namespace, ask.name, ask.path, fields)
        decision = rbac.decide(store, who, right)
        return Answer(decision.allowed, decision.reason)

    return judge


def _account(name: str) -> User:
    account = account_of(name)
    return User(name) if account is None else User(name, (*account_groups(account[0]), "system:authenticated"))
