"""Objects that the tests of clients write."""

from typing import Any

NAMESPACE = "default"
LABELS = {"app": "web"}


def a_pod(name: str, **spec: Any) -> dict[str, Any]:
    body = {"containers": [{"name": "app", "image": "app:1"}], "terminationGracePeriodSeconds": 0, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": LABELS}, "spec": body}


def a_deployment(name: str, replicas: int = 2) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": name}}, "spec": a_pod(name)["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
    }


def a_config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": LABELS}, "data": data}


def a_definition(plural: str = "widgets", kind: str = "Widget", group: str = "example.com") -> dict[str, Any]:
    """A namespaced custom kind with a status, a scale, a default and an open `spec` and `status`."""
    replicas = {"type": "integer", "default": 1, "minimum": 0}
    spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"replicas": replicas}}
    status = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {"replicas": {"type": "integer"}},
    }
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}, "scale": scale},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [version],
        },
    }
