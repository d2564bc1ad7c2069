"""Server-side apply by one who applied before in another version, or beside owners in other versions.

Ownership is told in the fields of the version in which it was won; a conversion webhook may name them differently. So
what a manager no longer applies is taken out in the version it was applied in, and what others own is put back in
theirs. Source of the facts: structured-merge-diff 6, `merge/update.go` (prune, addBackOwnedItems).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman.api import fields, managed
from steersman.api.crd import conversion
from steersman.api.kinds import Kind
from steersman.api.patching import apply
from steersman.api.schema import Schema
from steersman.kernel.fieldset import NOTHING, FieldSet, intersection, union
from steersman.kernel.object import Manager, Object, Section
from steersman.kernel.value import Frozen, FrozenList, freeze

PARTS = ("apiVersion", "kind", "metadata", "spec", "status")


def pruned(
    kind: Kind,
    old: Object,
    merged: Mapping[str, Any],
    config: Mapping[str, Any],
    claimed: FieldSet,
    mine: Manager,
    others: tuple[Manager, ...],
) -> dict[str, Any]:
    """`merged`, in the version of `kind`, without what `mine` applied last, no longer does, and nobody else owns.

    Raises `conversion.Unconverted`.
    """
    siblings = {} if kind.origin is None else kind.origin.siblings
    whole = _object(kind, old, merged)
    last = siblings.get(mine.api_version.rpartition("/")[2])
    if last is None:
        return dict(merged)
    ours = claimed if last.version == kind.version else NOTHING
    beside = tuple([entry for entry in others if entry.api_version == last.api_version])
    there = conversion.moved(kind, last, whole)
    left = _object(last, there, apply.prune(last, _body(there), mine.fields, ours, beside))
    if left.same_content(there):
        return dict(merged)
    left = conversion.moved(kind, kind, left)
    if last.version != kind.version:
        left = _object(kind, left, apply.merge_body(kind, left, config))
    owned: dict[str, FieldSet] = {}
    for entry in others:
        if entry.api_version != last.api_version:
            owned[entry.api_version] = union(owned.get(entry.api_version, NOTHING), entry.fields)
    for api_version, theirs in owned.items():
        other = siblings.get(api_version.rpartition("/")[2])
        if other is not None:
            left = _given_back(kind, other, whole, left, theirs)
    return _body(left)


def _given_back(kind: Kind, other: Kind, whole: Object, left: Object, theirs: FieldSet) -> Object:
    """`left` with what it lost of `whole` and is `theirs`, in the version of `other`."""
    before, after = conversion.moved(kind, other, whole), conversion.moved(kind, other, left)
    lost = intersection(managed.changes(other, before, after)[1], theirs)
    if not lost:
        return left
    body, full = _body(after), _body(before)
    for name, below in zip(lost.names, lost.kids, strict=True):
        part = name[2:]
        body[part] = _restored(other.schema.fields.get(part), body.get(part), full[part], below)
    return conversion.moved(kind, kind, _object(other, after, body))


def _restored(schema: Schema | None, value: Any, full: Any, lost: FieldSet) -> Any:
    """`value` with what `lost` names taken from `full`; items of lists come last."""
    if lost.member and not lost.names:
        return full
    sources = full if isinstance(full, dict) else fields.items_by_element(schema, full)
    if sources is None:
        return full
    in_map = sources is full
    items = value if in_map else fields.items_by_element(schema, [] if value is None else value)
    out = dict(items or {})
    for element, below in zip(lost.names, lost.kids, strict=True):
        name = element[2:] if in_map else element
        if name in sources:
            child = fields.child_schema(schema, name) if in_map else (None if schema is None else schema.items)
            out[name] = _restored(child, out.get(name), sources[name], below)
    return Frozen(out) if in_map else FrozenList(out.values())


def _body(obj: Object) -> dict[str, Any]:
    body = dict(obj.value)
    del body["apiVersion"], body["kind"]
    body["metadata"] = obj.meta.value
    return body


def _object(kind: Kind, obj: Object, body: Mapping[str, Any]) -> Object:
    """A body as the next version of an object, in the version of `kind`."""
    rest = {part: value for part, value in body.items() if part not in PARTS}
    spec, status = body.get("spec"), body.get("status")
    return Object(
        obj.key,
        kind.api_version,
        0,
        Section(freeze({field: item for field, item in body["metadata"].items() if field != "resourceVersion"})),
        None if spec is None else Section(freeze(spec)),
        Section(freeze(rest)) if rest else None,
        None if status is None else Section(freeze(status)),
        obj.managers,
        obj.node,
    )
