"""How a known bug is tested: its buggy controller is reported for the right reason, its fixed one passes COMPLETE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import steersman as sm
from steersman.check import Verdict
from steersman.kernel.object import Key


def reported(scenario: sm.Scenario, *names: str, by: str = "", **bounds: Any) -> Verdict:
    """Checks a buggy scenario: exactly these properties (or kinds of violation) are broken, within COMPLETE search.
    `by`: an Action of this kind is needed (crash, deliver, conflict)."""
    verdict = sm.check(scenario, **bounds)
    assert sorted(v.name if v.kind == "always" else v.kind for v in verdict.violations) == sorted(names), str(verdict)
    assert verdict.complete
    if by:
        for violation in verdict.violations:
            assert by in [action.op for action in violation.actions], str(verdict)
    return verdict


def holds(scenario: sm.Scenario, **bounds: Any) -> Verdict:
    """Checks a fixed scenario: everything holds, COMPLETE."""
    return sm.check(scenario, **bounds).assert_holds(complete=True)


def custom(kind: str, spec: dict[str, Any], status: dict[str, Any]) -> dict[str, Any]:
    """A CustomResourceDefinition of group example.com with the properties of spec and status."""
    plural = f"{kind.lower()}s"
    properties = {
        name: {"type": "object", "properties": fields} for name, fields in (("spec", spec), ("status", status))
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [version],
        },
    }


def made(kind: str, name: str = "db", **spec: Any) -> dict[str, Any]:
    """An object of such a kind."""
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "example.com/v1", "kind": kind, "metadata": meta, "spec": spec}


def config_map(name: str, **data: str) -> dict[str, Any]:
    """A ConfigMap: what stands for the many small objects of the real operators."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": data,
    }


def config_key(name: str) -> Key:
    """Its key."""
    return Key("", "ConfigMap", "default", name)


def stateful_set(name: str, replicas: int, **more: Any) -> dict[str, Any]:
    """A StatefulSet of some replicas."""
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": "default", **more},
        "spec": {
            "replicas": replicas,
            "serviceName": name,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}},
        },
    }


def set_key(name: str) -> Key:
    """Its key."""
    return Key("apps", "StatefulSet", "default", name)


Reconcile = Callable[[Any, Any, Key], Any]
INTEGER = {"type": "integer"}
TEXT = {"type": "string"}
BOOLEAN = {"type": "boolean"}
