"""Small objects for scenarios."""

from __future__ import annotations

from typing import Any, Final

from tests.controllers.worlds import LABELS, template

PODS: Final = "v1/Pod"
LONG_AGO: Final = "2020-01-01T00:00:00Z"


def named(version: str, kind: str, name: str = "web", namespace: str = "default", **fields: Any) -> dict[str, Any]:
    """An object; `namespace=""`: of the cluster."""
    meta: dict[str, Any] = {"name": name, **fields.pop("metadata", {})}
    if namespace:
        meta["namespace"] = namespace
    return {"apiVersion": version, "kind": kind, "metadata": meta, **fields}


def web_pod(name: str = "web", status: Any = None, node: str = "node-1", **spec: Any) -> dict[str, Any]:
    """A pod with the usual labels."""
    body = named("v1", "Pod", name, metadata={"labels": LABELS}, spec={**template(node=node)["spec"], **spec})
    return body if status is None else {**body, "status": status}
