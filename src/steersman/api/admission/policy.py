"""What validating and mutating policies share: bindings, and the parameters they name.

Source of the facts: `apiserver/pkg/admission/plugin/policy/generic` of Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from steersman.api.admission.match import Matching
from steersman.api.admission.plugin import Attempt
from steersman.api.crd.definition import CRD, declared_kinds
from steersman.api.errors import ApiError
from steersman.api.kinds import Kind, Kinds, UnknownKind
from steersman.api.select import LabelSelector
from steersman.kernel.effect import ListQuery
from steersman.kernel.object import Key, Object
from steersman.kernel.store import Store
from steersman.kernel.value import EMPTY


class Misconfigured(Exception):
    """A policy or binding that cannot be used; the text says why."""


def matching_of(given: Mapping[str, Any] | None) -> tuple[Matching | None, str]:
    """What a policy or binding is about, or why it cannot be said: that is told when it is asked."""
    try:
        return Matching.of_policy(given), ""
    except ApiError as error:
        return None, error.message


class Binding(NamedTuple):
    """One binding of a policy."""

    name: str
    matching: Matching | None
    fault: str
    params: Mapping[str, Any] | None
    """Its paramRef."""
    actions: tuple[str, ...]

    @staticmethod
    def of(obj: Object) -> Binding:
        """The binding an object means."""
        spec = obj.spec_value or EMPTY
        matching, fault = matching_of(spec.get("matchResources"))
        return Binding(obj.key.name, matching, fault, spec.get("paramRef"), tuple(spec.get("validationActions") or ()))


def bindings_by_policy(objects: Iterator[Object]) -> dict[str, list[Binding]]:
    """All bindings by the name of their policy, in the order of their names."""
    out: dict[str, list[Binding]] = {}
    for obj in objects:
        out.setdefault((obj.spec_value or EMPTY).get("policyName") or "", []).append(Binding.of(obj))
    return out


@lru_cache(maxsize=16)
def _with_declared(declared: tuple[Kind, ...]) -> Kinds:
    return Kinds.builtin().with_stored(declared)


def kinds_at(store: Store) -> Kinds:
    """The kinds a parameter may have: built-in ones, and those that definitions in the store declare."""
    declared: tuple[Kind, ...] | None = store.derived(CRD, declared_kinds)
    return _with_declared(declared) if declared else Kinds.builtin()


def params_of(attempt: Attempt, param_kind: Mapping[str, Any] | None, binding: Binding) -> list[Any]:
    """The parameters of a binding, None where a policy is held without. Raises `Misconfigured`."""
    ref = binding.params
    if not param_kind or not ref:
        return [None]
    api_version, name = param_kind.get("apiVersion") or "", param_kind.get("kind") or ""
    try:
        kind = kinds_at(attempt.store).get(api_version.rpartition("/")[0], name)
    except UnknownKind:
        known = f"&ParamKind{{APIVersion:{api_version},Kind:{name},}}"
        raise Misconfigured(f"paramKind kind `{known}` not known") from None
    namespace = ""
    if kind.namespaced:
        namespace = ref.get("namespace") or attempt.key.namespace
        if not namespace:
            raise Misconfigured(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
            )
    elif ref.get("namespace"):
        raise Misconfigured("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
    if ref.get("name"):
        one = attempt.store.get(Key(kind.group, kind.kind, namespace, ref["name"]))
        found = [] if one is None else [one]
    else:
        selector = LabelSelector.compile(ref.get("selector") or EMPTY)
        query = ListQuery(kind.gk, namespace or None)
        found = [obj for obj in attempt.store.query(query) if selector.matches(obj.meta.value.get("labels"))]
    if not found and ref.get("parameterNotFoundAction") == "Deny":
        raise Misconfigured("no params found for policy binding with `Deny` parameterNotFoundAction")
    return [obj.value for obj in found]
