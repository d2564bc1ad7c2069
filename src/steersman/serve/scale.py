"""The `scale` subresource: a workload's replicas as an autoscaling/v1 Scale, read and written."""

from __future__ import annotations

from typing import Any, Final

import orjson

from steersman.api import errors, go_json, preconditions, versions
from steersman.api.explain import Finding, explain
from steersman.api.kinds import Kind, Kinds
from steersman.api.patching import patch
from steersman.api.patching.patched import accepted
from steersman.api.patching.scaled import SCALE, nested, paths, scale_of, with_replicas
from steersman.api.patching.strategic import strategic_merge
from steersman.api.sent import meta_of
from steersman.kernel.effect import Reply
from steersman.kernel.object import Key, Object, Section
from steersman.kernel.value import freeze
from steersman.serve.answer import Shown
from steersman.serve.body import read_object, read_patch
from steersman.serve.change import Change, Changed
from steersman.serve.options import write_options
from steersman.serve.render import in_form
from steersman.serve.table.ages import age
from steersman.serve.table.column import Columns, definition

COLUMNS: Final = Columns(
    (),
    lambda scale, now: [
        scale.metadata.name,
        scale.spec.replicas or 0,
        scale.status.replicas or 0,
        age(scale.metadata.creationTimestamp, now),
    ],
    ({**definition("Name"), "format": ""}, *map(definition, ("#Desired", "#Available", "Age"))),
)
"""Of a Scale as a table."""
MAX_REPLICAS: Final = (1 << 31) - 1


async def read_scale(change: Change, shown: Shown) -> bytes:
    """GET of `scale`. Raises ApiError: 422 for an object without the number, which kube-apiserver calls its own
    failure (500)."""
    obj, kind = await _workload(change), change.route.kind
    replicas = paths(kind).replicas
    if kind.custom and nested(obj.value, replicas) is None:
        path = "." + ".".join(replicas)
        cause = errors.Cause.required(path, "the object has no replicas there; set them, or the field's default")
        raise errors.invalid(kind.kind, obj.key.name, [cause], kind.group)
    scale = scale_of(kind, obj.value)
    if shown.columns is None:
        return orjson.dumps(scale)
    meta = {name: value for name, value in scale["metadata"].items() if name != "resourceVersion"}
    as_sections = [Section(freeze(part)) for part in (meta, scale["spec"], scale["status"])]
    key = Key("autoscaling", "Scale", obj.key.namespace, obj.key.name)
    one = Object(key, scale["apiVersion"], obj.rv, as_sections[0], as_sections[1], None, as_sections[2], (), "")
    return in_form(one, *shown._replace(columns=COLUMNS))


async def write_scale(change: Change) -> Changed:
    """PUT or PATCH of `scale`: sets the replicas of the workload. Raises ApiError."""
    old, kind = await _workload(change), change.route.kind
    before = scale_of(kind, old.value)
    warnings: list[str] = []
    content_type, data = change.http.headers.get("content-type"), change.http.body
    if change.http.method == "PUT":
        options = write_options(change.http.query, "UpdateOptions")
        wanted = read_object(content_type, data).value
        given = wanted
    else:
        options = write_options(change.http.query, "PatchOptions")
        form, body = read_patch(content_type, data, accepted(kind))
        given = body.value
        if form == "apply":
            return await _apply(change, old, given, options)
        if form == "strategic":
            wanted = strategic_merge(before, given, Kinds.definition(SCALE))
        else:
            wanted = patch.json_patch(before, given) if form == "json" else patch.merge_patch(before, given)
        _known(wanted, options["validation"], warnings)
    sent = _of_workload(kind, old, wanted, whole=change.http.method == "PUT")
    options["patch"] = "merge"
    options["rv"] = _version(given)
    done = await _written(change, old, await change.send("patch", "", sent, _told(options)))
    return done._replace(warnings=(*warnings, *done.warnings))


async def _apply(change: Change, old: Object, given: Any, options: dict[str, Any]) -> Changed:
    """Server-side apply of a Scale: an apply of the number of replicas, under the name of the subresource."""
    if not change.http.query.get("fieldManager"):
        cause = errors.Cause.required("fieldManager", "is required for apply patch")
        raise errors.invalid("PatchOptions", "", [cause], "meta.k8s.io")
    kind = change.route.kind
    options["force"] = change.http.query.flag("force")
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": old.key.name}}
    body.update(_of_workload(kind, old, given))
    return await _written(change, old, await change.send("apply", "", body, _told(options)))


def _known(scale: Any, validation: str, warnings: list[str]) -> None:
    """Warns about what a patch leaves in a Scale that is no field of it. Raises ApiError 422."""
    found = Finding()
    for part, value in scale.items() if isinstance(scale, dict) else ():
        schema = Kinds.definition(SCALE).fields.get(part)
        if schema is None:
            found.unknown.append(part)
        else:
            explain(schema, value, part, found, False)
    told = [f'unknown field "{path}"' for path in found.unknown]
    if told and validation == "Strict":
        problem = f"strict decoding error: {', '.join(told)}"
        raise errors.invalid("", "", [errors.Cause.invalid("patch", orjson.dumps(scale).decode(), problem)])
    if validation == "Warn":
        warnings += told


def _told(options: dict[str, Any]) -> dict[str, Any]:
    return {**options, "part": "scale"}


def _of_workload(kind: Kind, old: Object, wanted: Any, whole: bool = False) -> dict[str, Any]:
    """What a Scale says of the workload itself."""
    return with_replicas(kind, _replicas(kind, old, wanted, whole))


async def _written(change: Change, old: Object, reply: Reply) -> Changed:
    new, kind = reply.obj, change.route.kind
    if new is not None and kind.custom:
        told = new
        new = await change.read(lambda k: versions.shown(k, told))
    return Changed(reply.code, document=scale_of(kind, (new or old).value), warnings=reply.warnings)


async def _workload(change: Change) -> Object:
    route = change.route
    key = Key(*route.kind.gk, route.namespace, route.name)
    return await change.read(lambda kind: preconditions.existing(change.backend.store, key, kind))


def _version(given: Any) -> str:
    """The resourceVersion the client insists on, "" when it does not."""
    return str(meta_of(given).get("resourceVersion") or "")


def _replicas(kind: Kind, old: Object, wanted: Any, whole: bool) -> int:
    """spec.replicas of a new Scale of `old`; `whole`: sent as it is, not made by a patch. Raises ApiError 400, 422."""
    if not isinstance(wanted, dict):
        raise errors.bad_request("the body must be a Scale object")
    if wanted.get("kind", "Scale") != "Scale":
        other = errors.quote(str(wanted["kind"])[:253])
        told = f'no kind {other} is registered for version "autoscaling/v1" in scheme {preconditions.SCHEME}'
        raise errors.bad_request(f'{other[1:-1]} in version "v1" cannot be handled as a Scale: {told}')
    meta, spec = wanted.get("metadata") or {}, wanted.get("spec") or {}
    if not isinstance(meta, dict) or not isinstance(spec, dict):
        raise errors.bad_request("metadata and spec of a Scale must be objects")
    name = meta.get("name") or ""
    if not name and whole:
        raise preconditions.nameless(old.key.name)
    if name and name != old.key.name:
        told = f"does not match the name on the URL ({old.key.name})"
        raise errors.bad_request(f"the name of the object ({preconditions.plain(name)}) {told}")
    problem = go_json.complaint("Scale", Kinds.definition(SCALE).fields["spec"], "spec", spec)
    if problem and whole:
        raise errors.bad_request(f'Scale in version "v1" cannot be handled as a Scale: {problem}')
    if problem:
        raise errors.invalid("", "", [errors.Cause.invalid("patch", orjson.dumps(wanted).decode(), problem)])
    replicas = spec.get("replicas") or 0
    if kind.custom and type(replicas) is int and -MAX_REPLICAS <= replicas < 0:  # the kind itself says no
        cause = errors.Cause.invalid("." + ".".join(paths(kind).replicas), replicas, "should be a non-negative integer")
        raise errors.invalid(kind.kind, old.key.name, [cause], kind.group)
    if type(replicas) is not int or not 0 <= replicas <= MAX_REPLICAS:
        cause = errors.Cause.invalid("spec.replicas", replicas, "must be greater than or equal to 0")
        raise errors.invalid("Scale", old.key.name, [cause], "autoscaling")
    return replicas
