"""Which requests a policy or webhook is about: rules, selectors, scope, and versions that are equivalent.

Source of the facts: `apiserver/pkg/admission/plugin/policy/matching` and `webhook/predicates` of Kubernetes 1.36. One
difference: a request for an Event of events.k8s.io, or for an autoscaler of autoscaling/v1, counts as one for what is
stored, so that a rule about these matches under `Equivalent` only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from steersman.api import errors
from steersman.api.admission.plugin import CONNECT, Attempt
from steersman.api.aliases import aliases
from steersman.api.kinds import GK, Kind, Kinds
from steersman.api.patching.scaled import seen
from steersman.api.select import LabelSelector
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY

GROUP: Final = "admissionregistration.k8s.io"
EXEMPT: Final = frozenset(
    (GROUP, kind)
    for kind in (
        *("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"),
        *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
        *("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"),
    )
)
"""Kinds no policy and no webhook is asked about: else a wrong one could not be taken away."""
NAMESPACE: Final[GK] = ("", "Namespace")


class Rule(NamedTuple):
    """A rule of a webhook or policy; `names` are those it is limited to, () for all."""

    groups: tuple[str, ...]
    versions: tuple[str, ...]
    operations: tuple[str, ...]
    resources: tuple[str, ...]
    scope: str
    names: tuple[str, ...]

    @staticmethod
    def of(given: Mapping[str, Any]) -> Rule:
        """The rule an object's item means."""
        return Rule(
            tuple(given.get("apiGroups") or ()),
            tuple(given.get("apiVersions") or ()),
            tuple(given.get("operations") or ()),
            tuple(given.get("resources") or ()),
            given.get("scope") or "*",
            tuple(given.get("resourceNames") or ()),
        )

    def matches(self, attempt: Attempt, kind: Kind, version: str) -> bool:
        """Whether it is about this request, made for that kind and version."""
        return (
            ("*" in self.operations or attempt.operation in self.operations)
            and ("*" in self.groups or kind.group in self.groups)
            and ("*" in self.versions or version in self.versions)
            and self._scope(attempt)
            and any(_is_resource(given, kind.plural, attempt.subresource) for given in self.resources)
            and (not self.names or attempt.key.name in self.names)
        )

    def _scope(self, attempt: Attempt) -> bool:
        if self.scope == "*":
            return True
        namespaced = bool(attempt.key.namespace)  # a Namespace is not in one
        return namespaced == (self.scope == "Namespaced")


def _is_resource(given: str, plural: str, part: str) -> bool:
    name, _, sub = given.partition("/")
    return name in ("*", plural) and sub in ("*", part)


class Matching:
    """The matching parts of one policy, binding or webhook. Immutable. Raises `ApiError` for a wrong selector."""

    __slots__ = ("_all", "_equivalent", "_excluded", "_namespaces", "_objects", "_rules")

    def __init__(
        self,
        given: Mapping[str, Any],
        rules: Iterable[Mapping[str, Any]],
        excluded: Iterable[Mapping[str, Any]] = (),
        all_without_rules: bool = False,
    ) -> None:
        """`given`: namespaceSelector, objectSelector and matchPolicy. Without rules nothing matches, or everything."""
        self._rules = tuple([Rule.of(rule) for rule in rules])
        self._excluded = tuple([Rule.of(rule) for rule in excluded])
        self._all = all_without_rules
        self._equivalent = given.get("matchPolicy") != "Exact"
        self._namespaces = _selector(given.get("namespaceSelector"))
        self._objects = _selector(given.get("objectSelector"))

    @staticmethod
    def of_policy(constraints: Mapping[str, Any] | None) -> Matching:
        """Of matchConstraints or matchResources."""
        given = constraints or EMPTY
        rules, excluded = given.get("resourceRules") or (), given.get("excludeResourceRules") or ()
        return Matching(given, rules, excluded, True)

    def matches(self, attempt: Attempt) -> Kind | None:
        """The kind, in the version that matched, if the request is meant. Raises `ApiError` when its namespace is
        gone."""
        if attempt.kind.gk in EXEMPT or self._matched(self._excluded, attempt) is not None:
            return None
        found = attempt.kind if self._all and not self._rules else self._matched(self._rules, attempt)
        if found is None or not self._in_object(attempt) or not self._in_namespace(attempt):
            return None
        return seen(found, attempt.body or EMPTY) if attempt.subresource == "scale" else found

    def _matched(self, rules: tuple[Rule, ...], attempt: Attempt) -> Kind | None:
        kind = attempt.kind
        if any(rule.matches(attempt, kind, kind.version) for rule in rules):
            return kind
        if not self._equivalent or not rules:
            return None
        if not kind.custom:
            other = _aliases().get(kind.gk)
            found = other is not None and any(rule.matches(attempt, other, other.version) for rule in rules)
            return other if found else None
        for version in kind.served:
            if any(rule.matches(attempt, kind, version) for rule in rules):
                return kind.in_version(version) or kind
        return None

    def _in_object(self, attempt: Attempt) -> bool:
        selector = self._objects
        if selector is None:
            return True
        if attempt.operation == CONNECT:  # options have no metadata at all
            return False
        if attempt.subresource == "scale":  # a Scale has no labels
            return selector.matches(None)
        if attempt.body is not None and selector.matches((attempt.body.get("metadata") or EMPTY).get("labels")):
            return True
        return attempt.old is not None and selector.matches(attempt.old.meta.value.get("labels"))

    def _in_namespace(self, attempt: Attempt) -> bool:
        selector = self._namespaces
        if selector is None:
            return True
        if attempt.kind.gk == NAMESPACE:
            if attempt.body is not None and not attempt.subresource:
                return selector.matches((attempt.body.get("metadata") or EMPTY).get("labels"))
            return attempt.old is not None and selector.matches(attempt.old.meta.value.get("labels"))
        name = attempt.key.namespace
        if not name:
            return True
        namespace = attempt.store.get(Key("", "Namespace", "", name))
        if namespace is None:
            raise errors.not_found("namespaces", name)
        return selector.matches(namespace.meta.value.get("labels"))


@cache
def _aliases() -> Mapping[GK, Kind]:
    """The other versions of built-in kinds that have one, by slot."""
    return {kind.gk: kind for kind in aliases(Kinds.builtin())}


def _selector(given: Any) -> LabelSelector | None:
    """A label selector; None when it selects everything."""
    if not given:
        return None
    selector = LabelSelector.compile(given)
    return None if selector.empty else selector
