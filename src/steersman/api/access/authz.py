"""May this user do that? For a node what its pods need, and for everybody RBAC over the roles and bindings of a store.

`Rbac.decide` costs about a microsecond: decisions are remembered as long as no role and no binding changed, which the
store tells by its marks. What a change costs is an index of the cluster's bindings, made at the next question.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from steersman.api import errors
from steersman.api.access import nodes
from steersman.api.access.rbac import ALL, GROUP, Ask, Rule, quoted, rules_of
from steersman.api.access.user import MASTERS, User, account_of, node_of
from steersman.kernel.object import Key, Object
from steersman.kernel.store import Store
from steersman.kernel.value import EMPTY

ROLE: Final = (GROUP, "Role")
CLUSTER_ROLE: Final = (GROUP, "ClusterRole")
BINDING: Final = (GROUP, "RoleBinding")
CLUSTER_BINDING: Final = (GROUP, "ClusterRoleBinding")
REMEMBERED: Final = 20_000
"""Decisions kept, some 300 bytes each: users times what they do. Over it all are forgotten."""
LONG: Final = 256
"""Characters of a name or path from which on a decision is not kept: names are shorter, and memory is not a gift."""
FULL: Final = (Rule((ALL,), (ALL,), (ALL,)), Rule((ALL,), urls=(ALL,)))
"""All rights: what members of system:masters hold."""


class Decision(NamedTuple):
    """`reason` tells by which binding it is allowed, or what went wrong on the way to a refusal; often ""."""

    allowed: bool
    reason: str = ""


class Grant(NamedTuple):
    """The rules one binding gives a user, or why it gives none."""

    source: str
    rules: tuple[Rule, ...]
    error: str = ""


class Rbac:
    """The authorizers Node and RBAC, in this order, over one store at a time. Not for several threads."""

    __slots__ = ("_decisions", "_marks", "_policy")

    def __init__(self) -> None:
        self._marks: Any = None
        self._policy: _Policy | None = None
        self._decisions: dict[tuple[str, tuple[str, ...], Ask], Decision] = {}

    def decide(self, store: Store, user: User, ask: Ask) -> Decision:
        """Whether the user may."""
        if MASTERS in user.groups:
            return Decision(True)
        node = node_of(user)
        if node is not None:
            return self._decide_for_node(store, user, node, ask)
        return self._decide(store, user, ask)

    def _decide_for_node(self, store: Store, user: User, node: str, ask: Ask) -> Decision:
        """Not remembered: it changes with every pod."""
        allowed, why = (
            nodes.allows(store, node, ask) if node else (False, f"unknown node for user {errors.quote(user.name)}")
        )
        if allowed:
            return Decision(True)
        found = self._decide(store, user, ask)
        return found if found.allowed else Decision(False, "\n".join(filter(None, (why, found.reason))))

    def _decide(self, store: Store, user: User, ask: Ask) -> Decision:
        policy = self._current(store)
        if ask.fields:
            ask = ask._replace(fields=())
        key = (user.name, user.groups, ask)
        found = self._decisions.get(key)
        if found is None:
            found = _decide(policy.grants(user, ask.namespace), ask)
            if len(ask.name) + len(ask.path) + len(ask.namespace) + len(ask.resource) < LONG:
                if len(self._decisions) >= REMEMBERED:
                    self._decisions.clear()
                self._decisions[key] = found
        return found

    def grants(self, store: Store, user: User, namespace: str) -> list[Grant]:
        """What bindings give a user: those of the cluster, and those of a namespace when one is named."""
        mine = [Grant("", FULL)] if MASTERS in user.groups else []
        return [*mine, *self._current(store).grants(user, namespace)]

    def role_rules(self, store: Store, ref: Mapping[str, Any], namespace: str) -> tuple[Rule, ...]:
        """The rules of the role that a binding in `namespace` refers to. Raises `ApiError` 404."""
        return self._current(store).rules(ref, namespace)

    def _current(self, store: Store) -> _Policy:
        marks = (store.mark(CLUSTER_BINDING), store.mark(BINDING), store.mark(CLUSTER_ROLE), store.mark(ROLE))
        if self._policy is None or marks != self._marks:
            self._marks = marks
            compiled = self._policy.compiled if self._policy is not None else {}
            if len(compiled) > REMEMBERED:  # of roles that are gone, most likely
                compiled = {}
            self._policy = _Policy(store, compiled)
            self._decisions.clear()
        self._policy.store = store
        return self._policy


def forbidden(user: User, ask: Ask, reason: str = "") -> errors.ApiError:
    """The 403 of a refused request, in kube-apiserver's words."""
    detail = ask.refusal(user.name).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return errors.forbidden(ask.resource, ask.name, f"{detail}: {reason}" if reason else detail, ask.group)


def unheld(user: User, lacking: Iterable[str], grants: Iterable[Grant]) -> str:
    """How kube-apiserver says that somebody would give away rights they do not hold."""
    lines = "\n".join(lacking)
    text = f"user {errors.quote(user.name)} (groups={quoted(user.groups)}) is attempting to grant RBAC permissions "
    text += f"not currently held:\n{lines}"
    broken = _aggregate([grant.error for grant in grants if grant.error])
    return f"{text}; resolution errors: [{broken}]" if broken else text


def _decide(grants: list[Grant], ask: Ask) -> Decision:
    for grant in grants:
        for rule in grant.rules:
            if rule.allows(ask):
                return Decision(True, f"RBAC: allowed by {grant.source}")
    broken = _aggregate([grant.error for grant in grants if grant.error])
    return Decision(False, f"RBAC: {broken}" if broken else "")


def _aggregate(texts: list[str]) -> str:
    """Several errors as Go's aggregate shows them: each once, in brackets when there are several."""
    once = list(dict.fromkeys(texts))
    return f"[{', '.join(once)}]" if len(once) > 1 else "".join(once)


class _Bound(NamedTuple):
    """A binding as one of its subjects finds it."""

    order: int
    subject: int
    """Its place among the binding's subjects: the first one that means the user is named."""
    binding: Object


class _Policy:
    """The bindings of one state of the roles and bindings, by subject."""

    __slots__ = ("_by_namespace", "_grants", "compiled", "store")

    def __init__(self, store: Store, compiled: dict[Key, tuple[Object, tuple[Rule, ...]]]) -> None:
        self.store = store
        self.compiled = compiled
        """Rules of roles, by the version they were read from: what did not change is not read again."""
        self._by_namespace: dict[str, dict[tuple[str, str], list[_Bound]]] = {}
        self._grants: dict[tuple[str, tuple[str, ...], str], list[Grant]] = {}

    def grants(self, user: User, namespace: str) -> list[Grant]:
        key = (user.name, user.groups, namespace)
        found = self._grants.get(key)
        if found is None:
            found = self._bound(user, "")
            if namespace:
                found = [*found, *self._bound(user, namespace)]
            if len(self._grants) >= REMEMBERED:
                self._grants.clear()
            self._grants[key] = found
        return found

    def rules(self, ref: Mapping[str, Any], namespace: str) -> tuple[Rule, ...]:
        kind, name = ref.get("kind"), ref.get("name") or ""
        if kind not in ("Role", "ClusterRole"):
            raise errors.ApiError(500, "", f"unsupported role reference kind: {errors.quote(str(kind))}")
        key = Key(GROUP, kind, namespace if kind == "Role" else "", name)
        role = self.store.get(key)
        if role is None:
            self.compiled.pop(key, None)
            raise errors.not_found(kind.lower(), name, GROUP)
        known = self.compiled.get(key)
        if known is None or known[0] is not role:
            known = self.compiled[key] = (role, rules_of(EMPTY if role.rest is None else role.rest.peek()))
        return known[1]

    def _bound(self, user: User, namespace: str) -> list[Grant]:
        """What the bindings of one namespace ("": of the cluster) give, in the order of their names."""
        subjects = self._subjects(namespace)
        found: dict[int, _Bound] = {}
        for subject in (("User", user.name), *[("Group", group) for group in user.groups]):
            for bound in subjects.get(subject, ()):
                if bound.order not in found or bound.subject < found[bound.order].subject:
                    found[bound.order] = bound
        return [self._grant(found[order], namespace) for order in sorted(found)]

    def _grant(self, bound: _Bound, namespace: str) -> Grant:
        value = EMPTY if bound.binding.rest is None else bound.binding.rest.peek()
        ref, subject = value.get("roleRef") or EMPTY, value["subjects"][bound.subject]
        try:
            rules = self.rules(ref, namespace)
        except errors.ApiError as error:
            return Grant("", (), error.message)
        key = bound.binding.key
        name = f"{key.name}/{namespace}" if namespace else key.name
        who = subject["name"]
        if subject["kind"] == "ServiceAccount":
            who = f"{who}/{subject.get('namespace') or namespace}"
        role = f"{ref.get('kind')} {errors.quote(ref.get('name') or '')}"
        source = f"{key.kind} {errors.quote(name)} of {role} to {subject['kind']} {errors.quote(who)}"
        return Grant(source, rules)

    def _subjects(self, namespace: str) -> dict[tuple[str, str], list[_Bound]]:
        """The bindings of one namespace by subject; a service account is the user it acts as."""
        found = self._by_namespace.get(namespace)
        if found is None:
            found = self._by_namespace[namespace] = {}
            gk = BINDING if namespace else CLUSTER_BINDING
            for order, binding in enumerate(self.store.list(gk, namespace)):
                value = EMPTY if binding.rest is None else binding.rest.peek()
                for place, subject in enumerate(value.get("subjects") or ()):
                    meant = _meant(subject, namespace)
                    if meant is not None:
                        found.setdefault(meant, []).append(_Bound(order, place, binding))
        return found


def _meant(subject: Mapping[str, Any], namespace: str) -> tuple[str, str] | None:
    """The user or group a subject means; None when it means nobody."""
    kind, name = subject.get("kind"), subject.get("name") or ""
    if kind in ("User", "Group"):
        return (kind, name)
    if kind == "ServiceAccount":
        home = subject.get("namespace") or namespace
        user = f"system:serviceaccount:{home}:{name}"
        return ("User", user) if account_of(user) else None
    return None
