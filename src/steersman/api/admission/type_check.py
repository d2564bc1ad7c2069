"""Whether the expressions of a ValidatingAdmissionPolicy fit the kinds it is about, told in warnings. Pure.

Only kinds that are named in full are looked at; a kind or a parameter kind that is not known is passed over. Source of
the facts: `apiserver/pkg/admission/plugin/policy/validating/typechecking.go` of Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from steersman.api.admission.expressions import Uses, composed
from steersman.api.cel.declare import declared
from steersman.api.cel.faults import CompileError
from steersman.api.cel.types import Type, object_of
from steersman.api.kinds import Kind, Kinds, UnknownKind
from steersman.api.schema import OBJECT_META
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
MOST: Final = 10
"""Kinds of one rule that are looked at (maxTypesToCheck)."""


def warnings(policy: Json, kinds: Kinds) -> list[dict[str, str]]:
    """What is wrong with each expression: its place (`fieldRef`), and a text for each kind it does not fit."""
    spec = policy["spec"]
    params: Type | None = None
    if spec.get("paramKind"):
        params = _param_type(spec["paramKind"], kinds)
    uses = Uses(params=bool(spec.get("paramKind")))
    scopes = []
    for kind in _kinds(spec, kinds):
        found = _type(kind)
        if found is not None:
            types = {"object": found, "oldObject": found, **({} if params is None else {"params": params})}
            scopes.append((kind, _scope(spec.get("variables") or (), uses, types)))
    told = []
    for place, text in _expressions(spec):
        faults = [_told(kind, fault) for kind, scope in scopes if (fault := _fault(scope, text))]
        if faults:
            told.append({"fieldRef": place, "warning": "\n".join(faults)})
    return told


def _expressions(spec: Json) -> Iterator[tuple[str, str]]:
    for index, each in enumerate(spec.get("validations") or ()):
        for name in ("expression", "messageExpression"):
            if each.get(name):
                yield f"spec.validations[{index}].{name}", each[name]


def _scope(variables: Any, uses: Uses, types: Mapping[str, Type]) -> Any:
    """The environment of expressions about one kind. A variable that does not fit may be anything."""
    return composed(variables, uses, types).environment(uses)


def _fault(scope: Any, text: str) -> str:
    try:
        scope.compile(text)
    except CompileError as error:
        return str(error)
    return ""


def _told(kind: Kind, fault: str) -> str:
    return f"{kind.group}/{kind.version}, Kind={kind.kind}: {fault}\n"


def _kinds(spec: Json, kinds: Kinds) -> list[Kind]:
    """The kinds that the rules name, by group, version and kind."""
    found: dict[tuple[str, str, str], Kind] = {}
    for rule in (spec.get("matchConstraints") or EMPTY).get("resourceRules") or ():
        groups, versions = rule.get("apiGroups") or (), rule.get("apiVersions") or ()
        if any("*" in each for each in (*groups, *versions)):
            continue
        resources = [each for each in rule.get("resources") or () if "*" not in each and "/" not in each]
        named = [(g, v, r) for g in sorted(groups) for v in sorted(versions) for r in sorted(resources)]
        known = [kind for each in named if (kind := _known(kinds, *each)) is not None]
        found |= {(kind.group, kind.version, kind.kind): kind for kind in known[:MOST]}
    return [found[each] for each in sorted(found)]


def _known(kinds: Kinds, group: str, version: str, plural: str) -> Kind | None:
    try:
        return kinds.by_plural(group, version, plural)
    except UnknownKind:
        return None


def _param_type(ref: Json, kinds: Kinds) -> Type | None:
    try:
        return _type(kinds.by_api_version(ref["apiVersion"], ref["kind"]))
    except UnknownKind:
        return None


@lru_cache(maxsize=256)
def _type(kind: Kind) -> Type | None:
    """The type of a kind's objects, with all of their metadata."""
    whole = declared(kind.schema)
    if whole is None or whole.fields is None:
        return None
    fields = dict(whole.fields)
    meta = declared(Kinds.definition(OBJECT_META))
    if meta is not None:
        fields["metadata"] = meta
    return object_of("object", fields)
