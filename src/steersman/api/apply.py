"""Server-side apply: merge by schema, ownership by managedFields, conflicts with their causes.

The rules are those of Kubernetes' "Server-Side Apply" page and of structured-merge-diff's observed behaviour:
the applied configuration wins where it speaks; what this manager applied before and no longer does is removed unless
somebody else owns it; changing what another manager owns is a conflict unless forced; equal values are shared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman.api import errors, fields, write
from steersman.api.errors import Cause
from steersman.api.intake import Finding, Misfit, explain, intake
from steersman.api.kinds import Kind
from steersman.api.schema import Schema
from steersman.api.write import OPEN_META, By, Written
from steersman.kernel.fieldset import LEAF, NOTHING, FieldSet, difference, intersection, node, union
from steersman.kernel.object import Key, Manager, Object
from steersman.kernel.value import EMPTY, Frozen, FrozenList


def apply(kind: Kind, key: Key, old: Object | None, body: Mapping[str, Any], uid: str, by: By, force: bool) -> Written:
    """The version after `by.manager` applied `body`. `old` None creates it, with `uid`.

    Raises `ApiError`: 409 with one cause a conflict, 422, 400 (managedFields in the body, no manager).
    """
    if not by.manager:
        raise errors.bad_request("fieldManager is required for apply patch; pass ?fieldManager=NAME")
    warnings: list[str] = []
    config = _take_config(kind, key, body, by, warnings)
    claimed = _claimed(kind, config)
    if old is None:
        written = write.create(kind, key, _merge_body(kind, None, config), uid, by)
        obj = written.obj
        obj.managers = (Manager(by.manager, "Apply", by.subresource, kind.api_version, by.time, claimed),)
        return Written(obj, (*warnings, *written.warnings))
    mine = next((m for m in old.managers if _is_mine(m, by)), None)
    others = tuple([m for m in old.managers if m is not mine])
    merged = _merge_body(kind, old, config)
    if mine is not None:
        merged = _prune(kind, merged, difference(mine.fields, claimed), others)
    new = _next(kind, old, merged, by, warnings)
    changed, removed = write.changes(kind, old, new)
    causes = _conflicts(others, changed)
    if causes and not force:
        raise errors.apply_conflict(causes)
    entry = Manager(by.manager, "Apply", by.subresource, kind.api_version, by.time, claimed)
    if mine is not None and mine.fields == claimed:
        entry = mine
    managers = (*_after_loss(others, changed, removed), *((entry,) if claimed else ()))
    if new.same_content(old):
        if mine is entry and managers == (*others, mine):
            return Written(old, tuple(warnings))
        new = old.replace(rv=0)
    new.managers = managers
    return Written(new, tuple(warnings))


def _is_mine(entry: Manager, by: By) -> bool:
    return entry.name == by.manager and entry.operation == "Apply" and entry.subresource == by.subresource


def _next(kind: Kind, old: Object, merged: dict[str, Any], by: By, warnings: list[str]) -> Object:
    written = write.update(kind, old, merged, by._replace(validation="Ignore"))
    warnings.extend(written.warnings)
    obj = written.obj
    return obj if obj is old else obj.replace(managers=old.managers)


def _take_config(kind: Kind, key: Key, body: Mapping[str, Any], by: By, warnings: list[str]) -> dict[str, Any]:
    """The applied configuration, frozen, without defaults and without what only the server writes."""
    meta = body.get("metadata") or EMPTY
    if meta.get("managedFields"):
        raise errors.bad_request("metadata.managedFields must be nil; remove it from the applied configuration")
    out: dict[str, Any] = {}
    if not by.subresource:
        opened = write.open_meta(kind, meta, key.name, by, warnings)
        if opened:
            out["metadata"] = Frozen(opened)
    for part, value in body.items():
        if part in write.TOP or value is None or not _in_scope(kind, part, by):
            continue
        schema = kind.schema.fields.get(part)
        finding = Finding()
        if schema is None:
            finding.unknown.append(part)
            write.refuse(kind, key.name, finding, by.validation, warnings)
            continue
        take = intake(schema, False, kind.custom)
        try:
            taken = take(value)
        except Misfit:
            pruned = explain(schema, value, part, finding, False, kind.custom)
            write.refuse(kind, key.name, finding, by.validation, warnings)
            taken = take(pruned)
        if taken is not None:
            out[part] = taken
    return out


def _in_scope(kind: Kind, part: str, by: By) -> bool:
    """A subresource writes its own part; the object itself does not write its status."""
    if by.subresource == "status":
        return part == "status"
    return part != "status" or not kind.has_status


def _claimed(kind: Kind, config: Mapping[str, Any]) -> FieldSet:
    """The set of fields the configuration speaks of."""
    return node({f"f:{part}": fields.present(kind.schema.fields.get(part), value) for part, value in config.items()})


def _merge_body(kind: Kind, old: Object | None, config: Mapping[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = dict(EMPTY if old is None else old.value)
    out.pop("apiVersion", None)
    out.pop("kind", None)
    for part, value in config.items():
        before = out.get(part)
        out[part] = value if before is None else merge(kind.schema.fields.get(part), before, value)
    return out


def merge(schema: Schema | None, old: Any, new: Any) -> Any:
    """`new` laid over `old`: maps by key, associative lists by item, everything else replaced. Unchanged parts are
    shared with `old`."""
    if old is new or old == new:
        return old
    if isinstance(old, dict) and isinstance(new, dict) and not (schema is not None and schema.atomic):
        out = dict(old)
        for name, item in new.items():
            out[name] = merge(fields.child_schema(schema, name), out[name], item) if name in out else item
        return Frozen(out)
    if schema is not None and schema.list_type in ("map", "set"):
        before, after = fields.items_by_element(schema, old), fields.items_by_element(schema, new)
        if before is not None and after is not None:
            return FrozenList(_merge_items(schema, before, after))
    return new


def _merge_items(schema: Schema, old: dict[str, Any], new: dict[str, Any]) -> list[Any]:
    """The applied order wins; items that only the object has keep their place relative to their neighbours."""
    out: list[Any] = []
    coming = iter(new)
    emitted: dict[str, None] = {}

    def emit(element: str) -> None:
        emitted[element] = None
        item = new[element]
        out.append(merge(schema.items, old[element], item) if element in old else item)

    for element, item in old.items():
        if element not in new:
            out.append(item)
            continue
        while element not in emitted:
            emit(next(coming))
    for element in coming:
        emit(element)
    return out


def _prune(kind: Kind, merged: dict[str, Any], gone: FieldSet, others: tuple[Manager, ...]) -> dict[str, Any]:
    """Takes out what this manager no longer applies and nobody else owns."""
    if not gone:
        return merged
    kept = NOTHING
    for entry in others:
        kept = union(kept, entry.fields)
    for name, below in zip(gone.names, gone.kids, strict=True):
        part = name[2:]
        if part not in merged:
            continue
        left = _remove(kind.schema.fields.get(part), merged[part], below, kept.child(name))
        if left is None:
            merged.pop(part)
        else:
            merged[part] = left
    return merged


def _remove(schema: Schema | None, value: Any, gone: FieldSet, kept: FieldSet) -> Any:
    """`value` without the paths of `gone` that are not in `kept`; None when nothing of it is left."""
    if not gone.names:
        return value if kept else None
    if isinstance(value, dict):
        out = dict(value)
        for name, below in zip(gone.names, gone.kids, strict=True):
            field = name[2:]
            if field in out:
                left = _remove(fields.child_schema(schema, field), out[field], below, kept.child(name))
                if left is None:
                    del out[field]
                else:
                    out[field] = left
        return Frozen(out) if out or kept else None
    items = fields.items_by_element(schema, value)
    if items is None or schema is None:
        return value if kept else None
    for name, below in zip(gone.names, gone.kids, strict=True):
        if name in items:
            left = _remove_item(schema, items[name], below, kept.child(name))
            if left is None:
                del items[name]
            else:
                items[name] = left
    return FrozenList(items.values()) if items or kept else None


def _remove_item(schema: Schema, item: Any, gone: FieldSet, kept: FieldSet) -> Any:
    """An item goes as a whole when its applier let go of it and nobody else owns anything in it."""
    if gone.member:
        if not kept:
            return None
        gone = node({name: kid for name, kid in zip(gone.names, gone.kids, strict=True) if name[2:] not in schema.keys})
        if not gone:
            return item
    return _remove(schema.items, item, gone, union(kept, LEAF))


def _conflicts(others: tuple[Manager, ...], changed: FieldSet) -> list[Cause]:
    causes: list[Cause] = []
    for entry in others:
        for path in intersection(entry.fields, changed).paths():
            causes.append(
                Cause.manager_conflict(
                    entry.name,
                    path_text(path),
                    api_version=entry.api_version if entry.operation == "Update" else "",
                    subresource=entry.subresource,
                    time=entry.time if entry.operation == "Update" else "",
                )
            )
    return causes


def path_text(path: tuple[str, ...]) -> str:
    """A field path as conflicts show it: `.spec.template.spec.containers[name="web"].image`."""
    out = []
    for element in path:
        if element.startswith("f:"):
            out.append("." + element[2:])
        elif element.startswith("k:"):
            out.append("[" + element[3:-1].replace('":', "=").replace(',"', ",").lstrip('"') + "]")
        else:
            out.append("[=" + element[2:] + "]")
    return "".join(out)


def _after_loss(others: tuple[Manager, ...], changed: FieldSet, removed: FieldSet) -> tuple[Manager, ...]:
    out = []
    for entry in others:
        left = difference(difference(entry.fields, changed), removed)
        if left is entry.fields:
            out.append(entry)
        elif left:
            out.append(entry._replace(fields=left))
    return tuple(out)


__all__ = ["OPEN_META", "apply", "merge", "path_text"]
