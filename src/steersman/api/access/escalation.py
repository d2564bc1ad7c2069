"""Nobody gives away rights that they do not hold.

Who writes a role must hold all it grants, or have the verb `escalate` on it; who writes a binding must hold all its
role grants, or have the verb `bind` on the role. A request without a user is one of the control plane's own parts,
which are not subject to this. Source: "Privilege escalation prevention and bootstrapping" in the documentation of
Kubernetes' RBAC, and pkg/registry/rbac of release 1.36 for order and wording.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman.api import errors
from steersman.api.access.authz import BINDING, CLUSTER_BINDING, CLUSTER_ROLE, FULL, ROLE, Rbac, unheld
from steersman.api.access.rbac import GROUP, Ask, Rule, missing, rules_of
from steersman.api.access.user import MASTERS, User
from steersman.kernel.effect import Call, Commit, Outcome, Reply, Request
from steersman.kernel.object import Object
from steersman.kernel.store import Store
from steersman.kernel.value import EMPTY

GUARDED = frozenset({ROLE, CLUSTER_ROLE, BINDING, CLUSTER_BINDING})
"""Kinds whose writes are looked at."""
PLURALS = {"Role": "roles", "ClusterRole": "clusterroles", "RoleBinding": "rolebindings"}
PLURALS["ClusterRoleBinding"] = "clusterrolebindings"
COLLECTED = ("ownerReferences", "finalizers")
"""What of metadata may change without a check: garbage collection must be able to go on."""


def guarded(rbac: Rbac, store: Store, request: Request, outcome: Outcome) -> Outcome:
    """The outcome of a write to a role or binding, checked before it can be committed. Raises `ApiError` 403."""
    user = request.options.get("user")
    if not isinstance(user, User) or MASTERS in user.groups or request.verb == "delete":
        return outcome
    if isinstance(outcome, Call):

        def resumed(answer: Any) -> Outcome:
            return guarded(rbac, store, request, outcome.resume(answer))

        return Call(outcome.kind, outcome.question, resumed)
    old, new = _change(store, request, outcome)
    if new is not None and (old is None or not _only_collected(old, new)):
        _Check(rbac, store, user, request).check(old, new)
    return outcome


def _change(store: Store, request: Request, outcome: Commit | Reply) -> tuple[Object | None, Object | None]:
    """The version before and after; after None when nothing would be written. A dry run is checked like the rest."""
    if isinstance(outcome, Commit):
        return outcome.old, outcome.new
    if request.verb in ("get", "list") or outcome.obj is None:
        return None, None
    old = store.get(outcome.obj.key)
    return old, None if outcome.obj is old else outcome.obj


def _only_collected(old: Object, new: Object) -> bool:
    """Whether only what the garbage collector writes is different."""
    if (EMPTY if old.rest is None else old.rest.value) != (EMPTY if new.rest is None else new.rest.value):
        return False
    before = {name: value for name, value in old.meta.value.items() if name not in COLLECTED}
    return before == {name: value for name, value in new.meta.value.items() if name not in COLLECTED}


class _Check:
    """One write by one user."""

    def __init__(self, rbac: Rbac, store: Store, user: User, request: Request) -> None:
        self.rbac = rbac
        self.store = store
        self.user = user
        self.request = request

    def check(self, old: Object | None, new: Object) -> None:
        key = new.key
        value: Mapping[str, Any] = EMPTY if new.rest is None else new.rest.value
        if key.gk in (ROLE, CLUSTER_ROLE):
            # A create names nothing on the URL, so rights on one name are not enough for it.
            named = "" if self.request.verb == "create" else key.name
            if self._may(Ask("escalate", GROUP, PLURALS[key.kind], namespace=key.namespace, name=named)):
                return
            self._holds(new, rules_of(value))
            if _aggregates(new) or (old is not None and _aggregates(old)):
                self._holds(new, FULL, "must have cluster-admin privileges to use the aggregationRule")
            return
        ref = value.get("roleRef") or EMPTY
        resource = PLURALS.get(str(ref.get("kind")), "")
        ask = Ask("bind", ref.get("apiGroup") or "", resource, namespace=key.namespace, name=ref.get("name") or "")
        if not self._may(ask):
            self._holds(new, self._bound_rules(ref, key.namespace))

    def _may(self, ask: Ask) -> bool:
        return self.rbac.decide(self.store, self.user, ask).allowed

    def _bound_rules(self, ref: Mapping[str, Any], namespace: str) -> tuple[Rule, ...]:
        return self.rbac.role_rules(self.store, ref, namespace)

    def _holds(self, new: Object, rules: tuple[Rule, ...], otherwise: str = "") -> None:
        """Raises 403 unless the user holds all of `rules` where the object is."""
        grants = self.rbac.grants(self.store, self.user, new.key.namespace)
        lacking = missing([rule for grant in grants for rule in grant.rules], rules)
        if lacking:
            detail = otherwise or unheld(self.user, lacking, grants)
            raise errors.forbidden(PLURALS[new.key.kind], new.key.name, detail, GROUP)


def _aggregates(role: Object) -> bool:
    rule = (EMPTY if role.rest is None else role.rest.peek()).get("aggregationRule") or EMPTY
    return bool(rule.get("clusterRoleSelectors"))
