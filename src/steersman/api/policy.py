"""The roles and bindings that every cluster has from its start (data/policy.json; scripts/compile_policy.py makes it).

Labels and annotation are those kube-apiserver gives them. `aggregated` collects the rules of an aggregated role, as
the controller of that name does it: roles made here have them from the start, so that nothing waits for a controller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final

import orjson

from steersman.api import write
from steersman.api.access.rbac import GROUP, rules_of, uncovered
from steersman.api.by import By
from steersman.api.kinds import Kind
from steersman.api.schema import packaged
from steersman.api.select import LabelSelector
from steersman.api.times import time_text
from steersman.kernel.effect import MICRO
from steersman.kernel.object import Key, Object, Section
from steersman.kernel.value import EMPTY, Frozen, freeze

API_VERSION: Final = f"{GROUP}/v1"
AUTOUPDATE: Final = "rbac.authorization.kubernetes.io/autoupdate"
BOOTSTRAPPING: Final = "kubernetes.io/bootstrapping"


@cache
def default_policy() -> tuple[tuple[Key, Mapping[str, Any]], ...]:
    """Slot and body of every default role and binding, in the order of kind, namespace and name; one per process."""
    bodies = [_body(facts) for facts in orjson.loads(packaged("policy.json"))]
    roles = [body for body in bodies if body["kind"] == "ClusterRole"]
    for body in roles:
        if "aggregationRule" in body and "rules" not in body:
            _collect(body, roles)
    return tuple([(_key(body), freeze(body)) for body in bodies])


def born(kind: Kind, key: Key, uid: str, now: int) -> Object:
    """A default role or binding as its create would make it; a hundredth of the price, since they are all alike.

    `now` in microseconds. Raises KeyError for a slot that is not in the default policy.
    """
    made = _made(kind, key)
    time = time_text(now // MICRO)
    meta = Section(Frozen({**made.meta.value, "uid": uid, "creationTimestamp": time}))
    managers = tuple([manager._replace(time=time) for manager in made.managers])
    return made.replace(meta=meta, managers=managers)


def reconciled(found: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any] | None:
    """The merge patch that brings a role or binding up to the default `body`: what is missing is added, nothing is
    taken away; None when nothing is missing, or its annotation says to leave it alone. Source: component-helpers
    auth/rbac/reconciliation, and "Auto-reconciliation" in the documentation of RBAC."""
    meta = found["metadata"]
    if (meta.get("annotations") or EMPTY).get(AUTOUPDATE) == "false":
        return None
    patch: dict[str, Any] = {}
    for part in ("labels", "annotations"):
        here = meta.get(part) or EMPTY
        lacking = {name: text for name, text in body["metadata"][part].items() if name not in here}
        if lacking:
            patch.setdefault("metadata", {})[part] = lacking
    if "rules" in body and "aggregationRule" not in body and found.get("rules") != body["rules"]:
        extra = uncovered(rules_of(found), rules_of(body))
        if extra:
            patch["rules"] = [*(found.get("rules") or ()), *[piece.json() for piece in extra]]
    subjects = list(found.get("subjects") or ())
    lacking_subjects = [subject for subject in body.get("subjects") or () if subject not in subjects]
    if lacking_subjects and found.get("roleRef") == body["roleRef"]:
        patch["subjects"] = [*subjects, *lacking_subjects]
    return patch or None


@cache
def _made(kind: Kind, key: Key) -> Object:
    return write.create(kind, key, dict(default_policy())[key], "", By("steersman", "", "Strict", "")).obj


def aggregated(role: Mapping[str, Any], roles: Iterable[Mapping[str, Any]]) -> list[Any]:
    """The rules of an aggregated ClusterRole: those of the roles its selectors select, by name, each once.

    `role` and `roles` are whole objects. Source: pkg/controller/clusterroleaggregation of Kubernetes 1.36.
    """
    rules: list[Any] = []
    named = sorted(roles, key=lambda other: str(other["metadata"]["name"]))
    for selector in (role.get("aggregationRule") or EMPTY).get("clusterRoleSelectors") or ():
        chosen = LabelSelector.compile(selector)
        for other in named:
            meta = other["metadata"]
            if meta["name"] == role["metadata"]["name"] or not chosen.matches(meta.get("labels")):
                continue
            rules.extend(rule for rule in other.get("rules") or () if rule not in rules)
    return rules


def _collect(body: dict[str, Any], roles: Sequence[dict[str, Any]]) -> None:
    """Fills in the rules of an aggregated role, those of the aggregated roles in it first."""
    body["rules"] = []  # so that a circle ends
    for other in roles:
        labels = other["metadata"]["labels"]
        selected = any(
            s["matchLabels"].items() <= labels.items() for s in body["aggregationRule"]["clusterRoleSelectors"]
        )
        if selected and "aggregationRule" in other and not other.get("rules"):
            _collect(other, roles)
    body["rules"] = aggregated(body, roles)


def _body(facts: Mapping[str, Any]) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": facts["name"]}
    if "namespace" in facts:
        meta["namespace"] = facts["namespace"]
    meta["labels"] = {BOOTSTRAPPING: "rbac-defaults", **facts.get("labels", EMPTY)}
    meta["annotations"] = {AUTOUPDATE: "true"}
    body: dict[str, Any] = {"apiVersion": API_VERSION, "kind": facts["kind"], "metadata": meta}
    if "aggregate" in facts:
        body["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": labels} for labels in facts["aggregate"]]}
    elif "rules" in facts:
        body["rules"] = facts["rules"]
    else:
        kind, name = facts["role"]
        body["roleRef"] = {"apiGroup": GROUP, "kind": kind, "name": name}
        body["subjects"] = [_subject(*subject) for subject in facts["subjects"]]
    return body


def _subject(kind: str, name: str, namespace: str = "") -> dict[str, str]:
    if kind == "ServiceAccount":
        return {"kind": kind, "name": name, "namespace": namespace}
    return {"apiGroup": GROUP, "kind": kind, "name": name}


def _key(body: Mapping[str, Any]) -> Key:
    meta = body["metadata"]
    return Key(GROUP, body["kind"], meta.get("namespace", ""), meta["name"])
