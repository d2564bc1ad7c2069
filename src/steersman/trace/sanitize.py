"""What is left out of an object when it is recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman.trace.gvk import GVK, POD

# Set by the API server for one incarnation of the object (acrlabs/simkube 4ff5124, dyn_obj_watcher.rs).
_SERVER_FIELDS = frozenset(
    {
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "managedFields",
        "resourceVersion",
        "uid",
    }
)
_BOOKKEEPING_ANNOTATIONS = frozenset(
    {"kubectl.kubernetes.io/last-applied-configuration", "deployment.kubernetes.io/revision"}
)


def sanitize(obj: Mapping[str, Any]) -> dict[str, Any]:
    """A copy as SimKube's tracer keeps it: no server-set metadata, and a pod without its node.

    ownerReferences and status stay. The copy shares nothing with `obj`; its keys are in the file's
    order (apiVersion, kind, metadata, the rest by name), so equal objects give equal bytes.
    """
    metadata = {
        key: value
        for key, value in (obj.get("metadata") or {}).items()
        if key not in _SERVER_FIELDS and value is not None
    }
    annotations = metadata.get("annotations") or {}
    metadata["annotations"] = {k: v for k, v in annotations.items() if k not in _BOOKKEEPING_ANNOTATIONS}
    clean = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": _sorted_copy(metadata)}
    for key in sorted(obj):
        if key not in clean:
            clean[key] = _sorted_copy(obj[key])
    if GVK.of(obj) == POD and isinstance(clean.get("spec"), dict):
        clean["spec"].pop("nodeName", None)
    return clean


def _sorted_copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _sorted_copy(value[key]) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [_sorted_copy(item) for item in value]
    return value
