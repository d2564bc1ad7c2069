"""The small objects that the pairs are made of."""

from __future__ import annotations

from typing import Any, Final

from steersman.api.client import key_of as key_of
from steersman.kernel.object import Key

GROUP: Final = "example.com"
INTEGER: Final = {"type": "integer"}
TEXT: Final = {"type": "string"}
BOOLEAN: Final = {"type": "boolean"}


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
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [version],
        },
    }


def made(kind: str, name: str = "db", **spec: Any) -> dict[str, Any]:
    """An object of such a kind."""
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": meta, "spec": spec}


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


def custom_key(kind: str, name: str = "db") -> Key:
    """The key of an object of such a kind."""
    return Key(GROUP, kind, "default", name)


def claim(name: str, gi: int = 1, **labels: str) -> dict[str, Any]:
    """A claim of a volume."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": f"{gi}Gi"}}},
    }


def claim_key(name: str) -> Key:
    """Its key."""
    return Key("", "PersistentVolumeClaim", "default", name)


def secret(name: str) -> dict[str, Any]:
    """A Secret."""
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "default"}}


def secret_key(name: str) -> Key:
    """Its key."""
    return Key("", "Secret", "default", name)


def service(name: str) -> dict[str, Any]:
    """A Service."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"app": name}, "ports": [{"port": 7000}]},
    }


def budget(name: str, unavailable: int) -> dict[str, Any]:
    """A PodDisruptionBudget."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"maxUnavailable": unavailable, "selector": {"matchLabels": {"app": name}}},
    }


def pod(name: str, **labels: str) -> dict[str, Any]:
    """A Pod of one container."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"containers": [{"name": "c", "image": "i:1"}]},
    }
