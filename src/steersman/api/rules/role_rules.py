"""What roles and role bindings must look like.

Source of the facts: kubernetes `pkg/apis/rbac/validation`, release 1.36.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from steersman.api.errors import Cause
from steersman.api.rules import rules
from steersman.api.rules.rules import Causes, Object

GROUP: Final = "rbac.authorization.k8s.io"


def role(out: Causes, path: str, found: Sequence[Object]) -> None:
    """The rules of a Role."""
    for index, rule in enumerate(found):
        _rule(out, f"{path}[{index}]", rule, namespaced=True)


def cluster_role(out: Causes, path: str, found: Sequence[Object]) -> None:
    """The rules of a ClusterRole."""
    for index, rule in enumerate(found):
        _rule(out, f"{path}[{index}]", rule, namespaced=False)


def _rule(out: Causes, path: str, rule: Object, *, namespaced: bool) -> None:
    if not rule.get("verbs"):
        out.append(Cause.required(f"{path}.verbs", "verbs must contain at least one value"))
    urls = rule.get("nonResourceURLs")
    if urls:
        if namespaced:
            detail = "namespaced rules cannot apply to non-resource URLs"
            out.append(Cause.invalid(f"{path}.nonResourceURLs", urls, detail))
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            detail = "rules cannot apply to both regular resources and non-resource URLs"
            out.append(Cause.invalid(f"{path}.nonResourceURLs", urls, detail))
        return
    for field, what in (("apiGroups", "api group"), ("resources", "resource")):
        if not rule.get(field):
            out.append(Cause.required(f"{path}.{field}", f"resource rules must supply at least one {what}"))


def aggregation(out: Causes, path: str, rule: Object) -> None:
    """The aggregationRule of a ClusterRole."""
    selectors = rule.get("clusterRoleSelectors")
    if not selectors:
        detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        out.append(Cause.required(f"{path}.clusterRoleSelectors", detail))
    for index, selector in enumerate(selectors or ()):
        rules.selector(out, f"{path}.clusterRoleSelectors[{index}]", selector)


def subjects(out: Causes, path: str, found: Sequence[Object]) -> None:
    """The subjects of a RoleBinding."""
    for index, subject in enumerate(found):
        _subject(out, f"{path}[{index}]", subject, namespaced=True)


def cluster_subjects(out: Causes, path: str, found: Sequence[Object]) -> None:
    """The subjects of a ClusterRoleBinding."""
    for index, subject in enumerate(found):
        _subject(out, f"{path}[{index}]", subject, namespaced=False)


def _subject(out: Causes, path: str, subject: Object, *, namespaced: bool) -> None:
    name, kind, group = (subject.get(field) or "" for field in ("name", "kind", "apiGroup"))
    if not name:
        out.append(Cause.required(f"{path}.name"))
    if kind == "ServiceAccount":
        if name:
            rules.named(out, f"{path}.name", name, rules.dns_subdomain)
        if group:
            out.append(Cause.unsupported(f"{path}.apiGroup", group, ("",)))
        if not namespaced and not subject.get("namespace"):
            out.append(Cause.required(f"{path}.namespace"))
    elif kind in ("User", "Group"):
        if group != GROUP:
            out.append(Cause.unsupported(f"{path}.apiGroup", group, (GROUP,)))
    else:
        out.append(Cause.unsupported(f"{path}.kind", kind, ("ServiceAccount", "User", "Group")))
