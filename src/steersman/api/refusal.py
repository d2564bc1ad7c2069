"""Refusals that are complete: everything that is wrong with an object in one answer, as kube-apiserver lists it.

A write stops at the first part that is not valid, which is what makes writes fast. Only then this module goes through
the object again and collects: what is wrong with its metadata, then with each of its parts, then between them.

Source of the facts: Kubernetes 1.36, pkg/apis/*/validation (which begin with ValidateObjectMeta), apiserver
`pkg/registry/rest/create.go` and `update.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from steersman.api import born, errors, immutable, preconditions, taking, validate
from steersman.api.access import certificates
from steersman.api.by import By
from steersman.api.crd.faults import NEW
from steersman.api.errors import Cause
from steersman.api.explain import Finding, explain, explain_custom
from steersman.api.intake import field_schema
from steersman.api.kinds import Kind
from steersman.api.managed import OPEN_META
from steersman.kernel.effect import Request
from steersman.kernel.object import Key, Object, Section
from steersman.kernel.value import EMPTY, Frozen


def complete(
    kind: Kind, key: Key, old: Object | None, body: Mapping[str, Any], by: By, first: errors.Invalid
) -> errors.ApiError:
    """The refusal of a whole `body`, of which `first` says the beginning."""
    below: list[Cause] = []
    told_below: list[str] = []
    parts: dict[str, Any] = {}
    for part in _order(kind, body):
        taken = _collected(below, partial(_part, kind, part, body.get(part), key.name, by, told_below))
        if taken is None and old is not None:
            draft = partial(_part, kind, part, body.get(part), key.name, by._replace(judge=False), [])
            taken = _collected([], draft)
        if taken is not None:
            parts[part] = taken
    causes: list[Cause] = []
    warnings: list[str] = []
    meta = _metadata(kind, key, old, body, by, parts, causes, warnings)
    causes += below
    if not causes:
        causes += validate.whole(kind, key.name, parts)
    if old is None and "spec" in parts:
        causes += validate.on_create(kind, "spec", parts["spec"])
    elif old is None:
        causes += validate.unborn(kind, body)
    else:
        causes += _changes(kind, old, parts)
    if old is None and kind.gk == certificates.CSR:
        causes += certificates.spec_causes(parts.get("spec") or EMPTY)
    told = {str(cause) for cause in causes}
    said = first.details.causes if first.details is not None else ()
    if kind.gk in validate.METADATA_LAST and not all(cause.field.startswith("metadata.") for cause in said):
        causes = [cause for cause in causes if not cause.field.startswith("metadata.")]
    causes += [cause for cause in said if str(cause) not in told and not _covered(cause, causes)]
    if old is not None and kind.gk == validate.REVISION:  # that data is there is asked of a new one only
        causes = [cause for cause in causes if cause.reason != "FieldValueRequired"]
    name = str(meta.get("name") or "")
    refused = errors.invalid(kind.kind, name, causes, kind.group)
    refused.warnings = tuple(dict.fromkeys([*warnings, *told_below]))
    return refused


def _sections(kind: Kind, old: Object, parts: Mapping[str, Any]) -> Object:
    """The old version with these parts."""
    spec, node = born.split_node_name(kind, None if "spec" not in parts else Section(parts["spec"]))
    rest = {part: value for part, value in parts.items() if part not in ("spec", "status")}
    return old.replace(spec=spec, rest=Section(Frozen(rest)) if rest else None, node=node, rv=0)


def _changes(kind: Kind, old: Object, parts: Mapping[str, Any]) -> list[Cause]:
    new = _sections(kind, old, parts)
    return immutable.part_causes(kind, old, new.spec, new.node, new.rest)


def _metadata(
    kind: Kind,
    key: Key,
    old: Object | None,
    body: Mapping[str, Any],
    by: By,
    parts: Mapping[str, Any],
    causes: list[Cause],
    warnings: list[str],
) -> dict[str, Any]:
    given: Mapping[str, Any] = body.get("metadata") or EMPTY
    meta: dict[str, Any] = {"name": key.name} if old is None else dict(old.meta.value)
    if key.namespace:
        meta["namespace"] = key.namespace
    opened = _collected(causes, partial(taking.open_meta, kind, given, key.name, by, warnings))
    if opened is not None:
        for field in OPEN_META:
            meta.pop(field, None)
        meta.update(opened)
    causes += validate.metadata(kind, meta)
    if old is not None:
        causes += immutable.meta_causes(kind, old, given, meta, _sections(kind, old, parts))
    return meta


def strictly(kind: Kind, request: Request, first: errors.ApiError) -> errors.ApiError:
    """`first`, or with all fields of a create or update that strict reading does not know, of which it says one."""
    told = f" cannot be handled as a {kind.kind}: strict decoding error: "
    if told not in first.message or request.verb not in ("create", "update") or not isinstance(request.body, dict):
        return first
    return strict(kind, request.body, ())


def strict(kind: Kind, body: Any, duplicates: Sequence[str]) -> errors.ApiError:
    """The refusal of a body with fields that are there twice (told in `duplicates`) or not known."""
    found = Finding()
    for part, value in body.items() if isinstance(body, dict) else ():
        schema = kind.schema.fields["metadata"] if part == "metadata" else field_schema(kind.schema, part)
        if part in ("apiVersion", "kind"):
            continue
        if schema is None:
            found.unknown.append(part)
        elif kind.custom:
            explain_custom(schema, value, part, found, False, NEW)
        else:
            explain(schema, value, part, found, False)
    told = [*duplicates, *(f'unknown field "{path}"' for path in found.unknown)]
    return errors.bad_request(f"{preconditions.handled(kind)}: strict decoding error: {', '.join(told)}")


def _order(kind: Kind, body: Mapping[str, Any]) -> list[str]:
    """The parts to be judged: those that are there and those whose absence is judged, the spec first."""
    named = [part for part in body if isinstance(part, str)]  # what has no name is told of already
    found = {*named, *validate.judged_parts(kind)} - taking.TOP
    if kind.has_status:
        found.discard("status")
    return sorted(found, key=lambda part: (part != "spec", part))


def _part(kind: Kind, part: str, value: Any, name: str, by: By, warnings: list[str]) -> Any:
    if value is None and part == "spec" and not kind.custom and field_schema(kind.schema, part) is not None:
        value = {}  # to Kubernetes, a spec that is not there is one with nothing in it
    if value is None:
        if causes := validate.part(kind, part, None):
            raise errors.invalid(kind.kind, name, causes, kind.group)
        return None
    return taking.take_part(kind, part, value, name, by, warnings)


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
