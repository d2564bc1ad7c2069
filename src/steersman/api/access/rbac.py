"""Rules of RBAC: what is asked for, what a rule allows, and whether rules cover others.

Source of the semantics: "Using RBAC Authorization" in the documentation of Kubernetes, and of the finer points (what
`*` covers, how missing rights are told) release 1.36, pkg/apis/rbac/v1 and component-helpers auth/rbac/validation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from steersman.api import errors

ALL: Final = "*"
GROUP: Final = "rbac.authorization.k8s.io"


class Ask(NamedTuple):
    """What somebody wants to do: `verb` on a resource, or on a path that is none."""

    verb: str
    group: str = ""
    resource: str = ""
    """The plural."""
    part: str = ""
    """The subresource."""
    namespace: str = ""
    name: str = ""
    path: str = ""
    """Set for what is no resource, and then the only one beside the verb."""
    fields: tuple[tuple[str, str], ...] = ()
    """(field, value) pairs that a field selector demands of every object asked for; RBAC does not look at them."""

    def refusal(self, user: str) -> str:
        """How kube-apiserver says that a user may not."""
        who = f"User {errors.quote(user)} cannot {self.verb}"
        if self.path:
            return f"{who} path {errors.quote(self.path)}"
        resource = errors.quote(f"{self.resource}/{self.part}" if self.part else self.resource)
        where = f"in the namespace {errors.quote(self.namespace)}" if self.namespace else "at the cluster scope"
        return f"{who} resource {resource} in API group {errors.quote(self.group)} {where}"


class Rule(NamedTuple):
    """A PolicyRule. Each part as the object lists it."""

    verbs: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()

    @staticmethod
    def of(value: Mapping[str, Any]) -> Rule:
        """The rule an object's `rules` item means."""
        get = value.get
        return Rule(
            tuple(get("verbs") or ()),
            tuple(get("apiGroups") or ()),
            tuple(get("resources") or ()),
            tuple(get("resourceNames") or ()),
            tuple(get("nonResourceURLs") or ()),
        )

    def json(self) -> dict[str, list[str]]:
        """As an object lists it; empty parts are left out."""
        names = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
        return {name: list(part) for name, part in zip(names, self, strict=True) if part}

    def allows(self, ask: Ask) -> bool:
        """Whether it grants what is asked for."""
        if ask.verb not in self.verbs and ALL not in self.verbs:
            return False
        if ask.path:
            return any(_url_covers(url, ask.path) for url in self.urls)
        if ask.group not in self.groups and ALL not in self.groups:
            return False
        if self.names and ask.name not in self.names:
            return False
        resources = self.resources
        if ask.part:
            both = f"{ask.resource}/{ask.part}"
            return both in resources or ALL in resources or f"*/{ask.part}" in resources
        return ask.resource in resources or ALL in resources

    def pieces(self) -> Iterable[Rule]:
        """The same rights as rules with one verb and one resource (and one name) each."""
        for group in self.groups:
            for resource in self.resources:
                for verb in self.verbs:
                    if not self.names:
                        yield Rule((verb,), (group,), (resource,))
                    for name in self.names:
                        yield Rule((verb,), (group,), (resource,), (name,))
        for url in self.urls:
            for verb in self.verbs:
                yield Rule((verb,), urls=(url,))

    def covers(self, piece: Rule) -> bool:
        """Whether it grants all that a piece does."""
        if piece.verbs[0] not in self.verbs and ALL not in self.verbs:
            return False
        if piece.urls:
            return any(_url_covers(url, piece.urls[0]) for url in self.urls)
        if piece.groups[0] not in self.groups and ALL not in self.groups:
            return False
        resource = piece.resources[0]
        below = resource.partition("/")[2]
        known = self.resources
        if resource not in known and ALL not in known and not (below and f"*/{below}" in known):
            return False
        return not self.names or (bool(piece.names) and piece.names[0] in self.names)

    def __str__(self) -> str:
        """As kube-apiserver tells which rights are missing."""
        shown = (
            ("APIGroups", self.groups),
            ("Resources", self.resources),
            ("NonResourceURLs", self.urls),
            ("ResourceNames", self.names),
            ("Verbs", self.verbs),
        )
        return "{" + ", ".join(f"{name}:{quoted(part)}" for name, part in shown if part) + "}"


def rules_of(value: Mapping[str, Any]) -> tuple[Rule, ...]:
    """The rules of a Role or ClusterRole, given as its fields."""
    return tuple([Rule.of(rule) for rule in value.get("rules") or ()])


def uncovered(owned: Iterable[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    """The pieces of `wanted` that `owned` does not cover."""
    rules = list(owned)
    return [piece for rule in wanted for piece in rule.pieces() if not any(own.covers(piece) for own in rules)]


def missing(owned: Iterable[Rule], wanted: Iterable[Rule]) -> list[str]:
    """The rights of `wanted` that `owned` does not cover, as text, sorted; verbs of one resource together."""
    merged: dict[Rule, list[str]] = {}
    lone: list[str] = []
    for piece in uncovered(owned, wanted):
        if piece.urls:
            lone.append(str(piece))
        else:
            merged.setdefault(piece._replace(verbs=()), []).append(piece.verbs[0])
    texts = [str(piece._replace(verbs=tuple(verbs))) for piece, verbs in merged.items()]
    return sorted({*lone, *texts})


def quoted(texts: Iterable[str]) -> str:
    """A list of texts as Go's `%q` shows it."""
    return "[" + " ".join([errors.quote(text) for text in texts]) + "]"


def _url_covers(pattern: str, path: str) -> bool:
    return pattern == path or (pattern.endswith(ALL) and path.startswith(pattern.rstrip(ALL)))
