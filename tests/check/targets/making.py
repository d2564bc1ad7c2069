"""Small objects for scenarios."""

from __future__ import annotations

from typing import Any, Final

import steersman as sm
from steersman.kernel.object import Key
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


def alive(s: sm.State, owner: Any = None) -> list[Any]:
    """The pods that have not ended and are not going; those that `owner`, as it is now, controls."""
    uid = None if owner is None else s[owner].metadata.uid
    return [
        pod
        for pod in s.list(PODS)
        if pod.status.phase not in ("Succeeded", "Failed")
        and "deletionTimestamp" not in pod.metadata
        and (owner is None or any(ref.uid == uid for ref in pod.metadata.ownerReferences or ()))
    ]


def holds(obj: Any, condition: str) -> str:
    """The status of a condition; "" where nothing is said."""
    return next((each.status for each in obj.status.conditions or () if each.type == condition), "")


def gone(s: sm.State, key: Key) -> bool:
    """Whether an object is gone, or asked to go: nothing is asked of it any more."""
    return not s[key] or "deletionTimestamp" in s[key].metadata
