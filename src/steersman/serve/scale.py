"""The `scale` subresource: a workload's replicas as an autoscaling/v1 Scale, read and written."""

from __future__ import annotations

from typing import Any

from steersman.api import errors, patch
from steersman.api.select import LabelSelector
from steersman.kernel.object import Key, Object
from steersman.serve.body import JSON_PATCH, MERGE_PATCH, read_object, read_patch
from steersman.serve.change import Change, Changed
from steersman.serve.options import write_options

MAX_REPLICAS = (1 << 31) - 1


def read_scale(change: Change) -> Changed:
    """GET of `scale`."""
    return Changed(200, document=_scale_of(_workload(change)))


async def write_scale(change: Change) -> Changed:
    """PUT or PATCH of `scale`: sets spec.replicas of the workload. Raises ApiError."""
    old = _workload(change)
    before = _scale_of(old)
    content_type, data = change.http.headers.get("content-type"), change.http.body
    if change.http.method == "PUT":
        options = write_options(change.http.query, "UpdateOptions")
        wanted = read_object(content_type, data).value
        given = wanted
    else:
        options = write_options(change.http.query, "PatchOptions")
        form, body = read_patch(content_type, data)
        if form == "apply":
            raise errors.unsupported_media_type([JSON_PATCH, MERGE_PATCH])
        given = body.value
        wanted = patch.json_patch(before, given) if form == "json" else patch.merge_patch(before, given)
    options["patch"] = "merge"
    options["rv"] = _version(given)
    replicas = _replicas(old, wanted)
    reply = await change.send("patch", "", {"spec": {"replicas": replicas}}, options)
    return Changed(reply.code, document=_scale_of(reply.obj or old), warnings=reply.warnings)


def _workload(change: Change) -> Object:
    kind, route = change.route.kind, change.route
    found = change.backend.store.get(Key(*kind.gk, route.namespace, route.name))
    if found is None:
        raise errors.not_found(kind.plural, route.name, kind.group)
    return found


def _scale_of(obj: Object) -> dict[str, Any]:
    meta, spec, status = obj.meta.value, obj.spec_value or {}, obj.status_value or {}
    shown = {name: meta[name] for name in ("name", "namespace", "uid", "creationTimestamp") if name in meta}
    selector = str(LabelSelector.compile(spec.get("selector"))) if spec.get("selector") else ""
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {**shown, "resourceVersion": str(obj.rv)},
        "spec": {"replicas": spec.get("replicas", 1)},
        "status": {"replicas": status.get("replicas", 0), "selector": selector},
    }


def _version(given: Any) -> str:
    """The resourceVersion the client insists on, "" when it does not."""
    meta = given.get("metadata") if isinstance(given, dict) else None
    version = meta.get("resourceVersion") if isinstance(meta, dict) else None
    return str(version or "")


def _replicas(old: Object, wanted: Any) -> int:
    """spec.replicas of a new Scale of `old`. Raises ApiError 400, 422."""
    if not isinstance(wanted, dict) or wanted.get("kind", "Scale") != "Scale":
        raise errors.bad_request("the body must be a Scale object")
    meta, spec = wanted.get("metadata") or {}, wanted.get("spec") or {}
    if not isinstance(meta, dict) or not isinstance(spec, dict):
        raise errors.bad_request("metadata and spec of a Scale must be objects")
    if meta.get("name", old.key.name) != old.key.name:
        raise errors.bad_request(f"the name of the Scale is not the name on the URL ({old.key.name})")
    replicas = spec.get("replicas", 0)
    if type(replicas) is not int or not 0 <= replicas <= MAX_REPLICAS:
        cause = errors.Cause.invalid("spec.replicas", replicas, "must be a whole number, 0 or more")
        raise errors.invalid("Scale", old.key.name, [cause], "autoscaling")
    return replicas
