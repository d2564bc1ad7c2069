"""Refusals that are complete: everything that is wrong with an object in one answer, as kube-apiserver lists it.

A write stops at the first part that is not valid, which is what makes writes fast. Only then this module goes through
the object again and collects: what is wrong with its metadata, then with each of its parts, then between them.

Source of the facts: Kubernetes 1.36, pkg/apis/*/validation (which begin with ValidateObjectMeta), apiserver
`pkg/registry/rest/create.go` and `update.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from steersman.api import errors, validate, write
from steersman.api.by import By
from steersman.api.errors import Cause
from steersman.api.kinds import Kind
from steersman.api.managed import OPEN_META
from steersman.kernel.object import Key, Object
from steersman.kernel.value import EMPTY

JUDGED_ANYWAY: Final = frozenset({("apps", "DaemonSet"), ("apps", "Deployment"), ("apps", "ReplicaSet")})
"""Kinds whose selector is compared with the old one after all else (ValidateUpdate of their strategies)."""


def complete(
    kind: Kind, key: Key, old: Object | None, body: Mapping[str, Any], by: By, first: errors.Invalid
) -> errors.ApiError:
    """The refusal of a whole `body`, of which `first` says the beginning."""
    causes: list[Cause] = []
    warnings: list[str] = []
    meta = _metadata(kind, key, old, body, by, causes, warnings)
    parts: dict[str, Any] = {}
    for part in _order(kind, body):
        taken = _collected(causes, partial(_part, kind, part, body.get(part), key.name, by, warnings))
        if taken is not None:
            parts[part] = taken
    if not causes:
        causes += validate.whole(kind, key.name, parts)
    if old is None and "spec" in parts:
        causes += validate.on_create(kind, "spec", parts["spec"])
    elif old is None:
        causes += validate.unborn(kind, body)
    else:
        causes += _changes(kind, old, _order(kind, body), body, by)
    told = {str(cause) for cause in causes}
    said = first.details.causes if first.details is not None else ()
    causes += [cause for cause in said if str(cause) not in told and not _covered(cause, causes)]
    name = str(meta.get("name") or "")
    refused = errors.invalid(kind.kind, name, causes, kind.group)
    refused.warnings = tuple(dict.fromkeys(warnings))
    return refused


def _changes(kind: Kind, old: Object, order: list[str], body: Mapping[str, Any], by: By) -> list[Cause]:
    """What may not change of workloads, which is judged whether or not the new parts are valid."""
    if kind.gk not in JUDGED_ANYWAY or "spec" not in order:
        return []
    take = partial(write.take_part, kind, "spec", body.get("spec") or {}, old.key.name, by._replace(judge=False), [])
    after = _collected([], take)
    return [] if after is None else validate.change(kind, "spec", old.spec_value, after)


def _metadata(
    kind: Kind,
    key: Key,
    old: Object | None,
    body: Mapping[str, Any],
    by: By,
    causes: list[Cause],
    warnings: list[str],
) -> dict[str, Any]:
    given: Mapping[str, Any] = body.get("metadata") or EMPTY
    meta: dict[str, Any] = {"name": key.name} if old is None else dict(old.meta.value)
    if key.namespace:
        meta["namespace"] = key.namespace
    opened = _collected(causes, partial(write.open_meta, kind, given, key.name, by, warnings))
    if opened is not None:
        for field in OPEN_META:
            meta.pop(field, None)
        meta.update(opened)
    causes += validate.metadata(kind, meta)
    if old is not None:
        causes += write.meta_change_causes(kind, old, given, meta)
    return meta


def _order(kind: Kind, body: Mapping[str, Any]) -> list[str]:
    """The parts to be judged: those that are there and those whose absence is judged, the spec first."""
    named = [part for part in body if isinstance(part, str)]  # what has no name is told of already
    found = {*named, *validate.judged_parts(kind)} - write.TOP
    if kind.has_status:
        found.discard("status")
    return sorted(found, key=lambda part: (part != "spec", part))


def _part(kind: Kind, part: str, value: Any, name: str, by: By, warnings: list[str]) -> Any:
    if value is None:
        if causes := validate.part(kind, part, None):
            raise errors.invalid(kind.kind, name, causes, kind.group)
        return None
    return write.take_part(kind, part, value, name, by, warnings)


def _collected(causes: list[Cause], take: Callable[[], Any]) -> Any:
    """What `take` gives; None when it is refused, for causes that are added."""
    try:
        return take()
    except errors.Invalid as refused:
        causes += refused.details.causes if refused.details is not None else ()
        return None


def _covered(cause: Cause, causes: list[Cause]) -> bool:
    """Whether a field that is required is told of more exactly already."""
    return cause.reason == "FieldValueRequired" and any(c.field.startswith(cause.field) for c in causes)
