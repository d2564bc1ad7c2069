"""Which requests are written down, and how much of them: a Policy of audit.k8s.io/v1.

Source of the facts: Kubernetes 1.36, apiserver pkg/apis/audit (v1, validation) and pkg/audit/policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from steersman.api.access.rbac import Ask
from steersman.api.access.user import User
from steersman.serve.files import FileError
from steersman.serve.settings_file import document, part, texts

NONE, METADATA, REQUEST, FULL = LEVELS = ("None", "Metadata", "Request", "RequestResponse")
RECEIVED, STARTED, COMPLETE, PANIC = STAGES = ("RequestReceived", "ResponseStarted", "ResponseComplete", "Panic")
API_VERSION: Final = "audit.k8s.io/v1"
CONFIDENTIAL: Final = frozenset(
    {("", "secrets"), ("", "serviceaccounts/token"), ("authentication.k8s.io", "tokenreviews")}
)
"""What is told of these is Metadata at most, whatever a policy says: their bodies are secrets."""
_RULE: Final[Mapping[str, type]] = {
    "level": str, "users": list, "userGroups": list, "verbs": list, "resources": list, "namespaces": list,
    "nonResourceURLs": list, "omitStages": list, "omitManagedFields": bool,
}  # fmt: skip
_POLICY: Final[Mapping[str, type]] = {
    "apiVersion": str, "kind": str, "metadata": dict, "rules": list, "omitStages": list, "omitManagedFields": bool,
}  # fmt: skip
_RESOURCES: Final[Mapping[str, type]] = {"group": str, "resources": list, "resourceNames": list}


class Resources(NamedTuple):
    """Resources of one group that a rule is about: all of them, when none is named."""

    group: str
    resources: tuple[str, ...]
    names: tuple[str, ...]

    def matches(self, ask: Ask) -> bool:
        """Whether what is asked for is one of them."""
        if self.group != ask.group:
            return False
        if not self.resources:
            return True
        if self.names and ask.name not in self.names:
            return False
        both = f"{ask.resource}/{ask.part}" if ask.part else ask.resource
        wanted = {both, "*", f"{ask.resource}/*"}
        if ask.part:
            wanted.add(f"*/{ask.part}")
        return not wanted.isdisjoint(self.resources)


class Rule(NamedTuple):
    """One rule; empty parts match everything."""

    level: str
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    resources: tuple[Resources, ...] = ()
    namespaces: tuple[str, ...] = ()
    """"" stands for what is in no namespace."""
    urls: tuple[str, ...] = ()
    omitted: frozenset[str] = frozenset()
    """Stages that are not written."""
    bare: bool = False
    """managedFields are left out of objects."""

    def matches(self, user: User, ask: Ask) -> bool:
        """Whether a request is this rule's."""
        if self.users and user.name not in self.users:
            return False
        if self.groups and not any(group in self.groups for group in user.groups):
            return False
        if self.verbs and ask.verb not in self.verbs:
            return False
        if self.resources or self.namespaces:
            return not ask.path and self._meant(ask)
        if self.urls:
            return bool(ask.path) and any(_covers(url, ask.path) for url in self.urls)
        return True

    def _meant(self, ask: Ask) -> bool:
        if self.namespaces and ask.namespace not in self.namespaces:
            return False
        return not self.resources or any(each.matches(ask) for each in self.resources)


class Policy(NamedTuple):
    """Rules in order; the first that matches counts."""

    rules: tuple[Rule, ...]

    def rule_of(self, user: User, ask: Ask) -> Rule:
        """The rule of a request; one that writes nothing where none matches."""
        for rule in self.rules:
            if rule.matches(user, ask):
                return rule._replace(level=METADATA) if rule.level != NONE and is_confidential(ask) else rule
        return NOTHING


def is_confidential(ask: Ask) -> bool:
    """Whether what is sent or answered is a secret."""
    resource = f"{ask.resource}/{ask.part}" if ask.part else ask.resource
    return (ask.group, resource) in CONFIDENTIAL or (not ask.group and ask.resource == "secrets")


NOTHING: Final = Rule(NONE)
EVERYTHING: Final = Policy((Rule(METADATA, omitted=frozenset({RECEIVED})),))
"""What is written without a policy: of every request who made it and what came of it, once."""


def _covers(pattern: str, path: str) -> bool:
    return pattern in ("*", path) or (pattern.endswith("*") and path.startswith(pattern[:-1]))


def read_policy(data: bytes, name: str) -> Policy:
    """The policy in a file. Raises `FileError`, whose text names the field."""
    given = document(data, name, (API_VERSION,), "Policy", _POLICY)
    if not given.get("rules"):
        raise FileError(f"{name}: rules: there are none; a policy needs at least one")
    omitted, bare = _stages(given, name), bool(given.get("omitManagedFields"))
    rules = [_rule(rule, f"{name}: rules[{at}]", omitted, bare) for at, rule in enumerate(given["rules"])]
    return Policy(tuple(rules))


def _rule(value: Any, where: str, omitted: frozenset[str], bare: bool) -> Rule:
    given = part(value, _RULE, where)
    if given.get("level") not in LEVELS:
        raise FileError(f"{where}.level is {given.get('level')!r}; write one of {', '.join(LEVELS)}")
    if given.get("nonResourceURLs") and (given.get("resources") or given.get("namespaces")):
        raise FileError(f"{where}: a rule is about nonResourceURLs or about resources and namespaces, not about both")
    urls = texts(given, "nonResourceURLs", where)
    for url in urls:
        if url != "*" and (not url.startswith("/") or "*" in url[:-1]):
            raise FileError(f"{where}.nonResourceURLs: {url!r} is not '*', and no path with '*' at its end at most")
    resources = []
    for at, item in enumerate(given.get("resources") or ()):
        place = f"{where}.resources[{at}]"
        found = part(item, _RESOURCES, place)
        names = texts(found, "resourceNames", place)
        kinds = texts(found, "resources", place)
        if names and not kinds:
            raise FileError(f"{place}.resourceNames: names need resources beside them")
        resources.append(Resources(found.get("group") or "", kinds, names))
    return Rule(
        given["level"],
        texts(given, "users", where),
        texts(given, "userGroups", where),
        texts(given, "verbs", where),
        tuple(resources),
        texts(given, "namespaces", where),
        urls,
        omitted | _stages(given, where),
        bool(given.get("omitManagedFields", bare)),
    )


def _stages(given: Mapping[str, Any], where: str) -> frozenset[str]:
    found = texts(given, "omitStages", where)
    for stage in found:
        if stage not in STAGES:
            raise FileError(f"{where}.omitStages: there is no stage {stage!r}; there are {', '.join(STAGES)}")
    return frozenset(found)
