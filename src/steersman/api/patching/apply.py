"""Server-side apply: merge by schema, ownership by managedFields, conflicts with their causes.

The rules are those of Kubernetes' "Server-Side Apply" page and of structured-merge-diff's observed behaviour:
the applied configuration wins where it speaks; what this manager applied before and no longer does is removed unless
somebody else owns it; changing what another manager owns is a conflict unless forced; equal values are shared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from steersman.api import aliases, errors, fields, managed, pod_parts, status_part, taking, write
from steersman.api.by import By, Written
from steersman.api.crd import conversion
from steersman.api.crd.faults import json_types
from steersman.api.errors import Cause
from steersman.api.intake import field_schema
from steersman.api.kinds import BODIES, STATUS_PARTS, Kind
from steersman.api.patching import apply_across, declared, scaled
from steersman.api.patching.patch import same
from steersman.api.patching.typed import merge, pruned
from steersman.api.schema import Schema
from steersman.api.taking import Mode
from steersman.kernel.fieldset import FieldSet, difference, intersection, node
from steersman.kernel.object import Key, Manager, Object, Section
from steersman.kernel.value import EMPTY, Frozen, freeze


def apply(kind: Kind, key: Key, old: Object | None, body: Mapping[str, Any], uid: str, by: By, force: bool) -> Written:
    """The version after an apply; see `_applied`."""
    if kind.gk != aliases.EVENT:
        return _applied(kind, key, old, body, uid, by._replace(served="") if by.served else by, force)
    known = None if old is None else old.replace(managers=aliases.known(kind, old.managers, by.served))
    new, warnings = _applied(kind, key, known, body, uid, by, force, old is not None and bool(old.managers))
    if new is not known:
        new.managers = aliases.noted(new.managers, by.served)
    return Written(old if new is known and old is not None else new, warnings)


def _applied(
    kind: Kind,
    key: Key,
    old: Object | None,
    body: Mapping[str, Any],
    uid: str,
    by: By,
    force: bool,
    recorded: bool = False,
) -> Written:
    """The version after `by.manager` applied `body`. `old` None creates it, with `uid`. `recorded`:
    somebody was on record, though `old` does not say so.

    Raises `ApiError`: 409 with one cause a conflict, 422, 400 (managedFields in the body, an item given twice).
    """
    warnings: list[str] = []
    config = _take_config(kind, key, body, by, warnings)
    claimed = _claimed(kind, config)
    if old is None:
        _refuse_nulls(kind, key.name, config)
        written = write.create(kind, key, merge_body(kind, None, config), uid, by._replace(validation="Ignore"))
        obj = written.obj
        entry = Manager(by.manager, "Apply", by.told, kind.api_version, by.since, claimed)
        obj.managers = (entry,) if claimed else ()
        return Written(obj, (*warnings, *written.warnings))
    if by.part:
        old = old.replace(managers=scaled.before_first_apply(kind, old))
    elif not (recorded or old.managers) and (before := _before(kind, old, by)):
        old = old.replace(managers=before)
    mine = next((m for m in old.managers if _is_mine(m, by)), None)
    others = tuple([m for m in old.managers if m is not mine])
    live = _body(old)
    merged = merge_body(kind, old, config)
    if mine is not None:
        if kind.converted is None:
            merged = prune(kind, merged, mine.fields, claimed, others)
        else:
            merged = apply_across.pruned(kind, old, merged, config, claimed, mine, others)
    change = fields.SAME if merged == live else fields.compare(kind.schema, live, merged)
    idle = change == fields.SAME and same(live, merged)
    if kind.converted is None and not force:
        _refuse_conflicts(kind, old, others, change[0], by)
    new = _next(kind, old, _noted(merged, body, by), by, warnings)
    across = conversion.across(kind, old, new) if kind.custom else aliases.across(kind, old, new)
    if kind.converted is not None and not force:
        _refuse_conflicts(kind, old, others, change[0], by, across)
    time = by.since if not idle else "" if mine is None else mine.time  # of what changes nothing, none is noted
    entry = Manager(by.manager, "Apply", by.told, kind.api_version, time, claimed)
    managers = (*managed.after_loss(others, change, across), *((entry,) if claimed else ()))
    if by.part:
        managers = scaled.after(kind, managers)
    if new.same_content(old):
        if managed.same_owners(managers, old.managers):
            return Written(old, tuple(warnings))
        new = old.replace(rv=0)
    new.managers = managers
    return Written(new, tuple(warnings))


def _before(kind: Kind, old: Object, by: By) -> tuple[Manager, ...]:
    """Who owns an object of which nobody is on record."""
    owned = managed.all_fields(kind, old, status=not kind.has_status)
    entry = Manager(declared.BEFORE_FIRST_APPLY, "Update", "", kind.api_version, by.time, owned)
    return (entry,) if owned else ()


def _noted(merged: dict[str, Any], body: Mapping[str, Any], by: By) -> dict[str, Any]:
    """What comes of an apply, its record of `kubectl apply`, if there is one, telling this configuration."""
    if by.manager != declared.KUBECTL or by.subresource:
        return merged
    meta = merged.get("metadata") or EMPTY
    notes = declared.with_last_applied(meta.get("annotations") or EMPTY, body)
    return merged if notes is None else {**merged, "metadata": {**meta, "annotations": notes}}


def _is_mine(entry: Manager, by: By) -> bool:
    return entry.name == by.manager and entry.operation == "Apply" and entry.subresource == by.told


def _next(kind: Kind, old: Object, merged: dict[str, Any], by: By, warnings: list[str]) -> Object:
    _refuse_nulls(kind, old.key.name, merged)
    written = write.update(kind, old, merged, by._replace(validation="Ignore"))
    warnings.extend(written.warnings)
    obj = written.obj
    return obj if obj is old else obj.replace(managers=old.managers)


def _refuse_nulls(kind: Kind, name: str, body: Mapping[str, Any]) -> None:
    """Raises 422 for nulls that a custom kind's schema does not allow: what is applied is never decoded, so nobody
    takes them out as it is with other writes."""
    if not kind.custom:
        return
    parts = {part: value for part, value in body.items() if part not in taking.TOP}
    if causes := list(_nulls(kind.schema, parts, "")):
        raise errors.invalid(kind.kind, name, causes, kind.group)


def _nulls(schema: Schema | None, value: Any, path: str) -> Iterator[Cause]:
    if isinstance(value, dict):
        for name, item in value.items():
            child = fields.child_schema(schema, name)
            where = f"{path}.{name}" if path else str(name)
            wanted = () if item is not None or child is None or child.nullable else json_types(child)
            if wanted:
                yield Cause.type_invalid(where, "null", f'{where} in body must be of type {",".join(wanted)}: "null"')
            elif isinstance(item, (dict, list)):
                yield from _nulls(child, item, where)
    elif isinstance(value, list) and schema is not None:
        for index, item in enumerate(value):
            yield from _nulls(schema.items, item, f"{path}[{index}]")


def _take_config(kind: Kind, key: Key, body: Mapping[str, Any], by: By, warnings: list[str]) -> dict[str, Any]:
    """The applied configuration, frozen, without defaults and without what only the server writes."""
    meta = body.get("metadata") or EMPTY
    out: dict[str, Any] = {}
    opened = _take_meta(kind, key, meta, by, warnings)
    if opened:
        out["metadata"] = Frozen(opened)
    for part, value in body.items():
        if part in taking.TOP or not _in_scope(kind, part, by):
            continue
        if by.subresource in pod_parts.PARTS and isinstance(value, dict):
            value = pod_parts.narrowed(by.subresource, value)
        schema = field_schema(kind.schema, part)
        undeclared = list(_undeclared(kind.schema, {part: value}, ""))
        if undeclared:
            raise errors.bad_request(f"{_untyped(kind, key, meta)}: {_listed(undeclared)}")
        if schema is None:
            continue
        taking.take_in(kind, schema, part, value, Mode(False, key.name, by, warnings))
        taken = freeze(value)  # as it was sent: that a number is written another way, or is null, says something
        taking.encode(kind, key.name, part, Section(taken))
        _check_items(kind, key, schema, taken, part)
        out[part] = taken
    return out


def _untyped(kind: Kind, key: Key, meta: Mapping[str, Any]) -> str:
    group, _, version = kind.api_version.rpartition("/")
    name = f"{meta.get('namespace') or ''}/{meta.get('name') or ''}"
    return f"failed to create typed patch object ({name}; {group}/{version}, Kind={kind.kind})"


def _listed(faults: list[str]) -> str:
    return faults[0] if len(faults) == 1 else "\n".join(["errors:", *[f"  {fault}" for fault in faults]])


def _undeclared(schema: Schema | None, value: Any, path: str) -> Iterator[str]:
    """What is said of fields that the schema does not have."""
    if schema is None or (schema.atomic and not schema.fields):
        return
    if isinstance(value, dict):
        closed = schema.fields and schema.values is None and not schema.preserve_unknown
        for name, item in value.items():
            child = fields.child_schema(schema, name)
            if child is not None:
                yield from _undeclared(child, item, f"{path}.{name}")
            elif closed:
                yield f"{path}.{name}: field not declared in schema"
    elif isinstance(value, list) and schema.items is not None:
        for index, item in enumerate(value):
            element = fields.item_element(schema, item) if schema.list_type in ("map", "set") else None
            step = f"[{index}]" if element is None else path_text((element,))
            yield from _undeclared(schema.items, item, path + step)


def _take_meta(kind: Kind, key: Key, meta: Mapping[str, Any], by: By, warnings: list[str]) -> dict[str, Any]:
    """The metadata of an applied configuration: of a status, what its kind takes; of other subresources none."""
    if by.subresource:
        taken = status_part.taken_meta(kind) if by.subresource in STATUS_PARTS else ()
        meta = {field: meta[field] for field in taken if field in meta}
    taking.open_meta(kind, meta, key.name, by, warnings)
    schema = kind.schema.fields["metadata"]
    given = {field: freeze(meta[field]) for field in managed.OPEN_META if field in meta}
    for field, value in given.items():
        _check_items(kind, key, schema.fields[field], value, f"metadata.{field}")
    return given


def _check_items(kind: Kind, key: Key, schema: Schema | None, value: Any, path: str) -> None:
    """Refuses associative lists that cannot be merged: an item without its keys, or two with the same."""
    if isinstance(value, dict):
        if schema is None or not schema.atomic:
            for name, item in value.items():
                if isinstance(item, (dict, list)):
                    _check_items(kind, key, fields.child_schema(schema, name), item, f"{path}.{name}")
        return
    if not isinstance(value, list) or schema is None or schema.list_type not in ("map", "set"):
        return
    seen: set[str] = set()
    for index, item in enumerate(value):
        element = fields.item_element(schema, item)
        where = f"{path}[{index}]"
        if element is None:
            needed = f"items are merged by {', '.join(schema.keys)}" if schema.keys else "must be a scalar"
            raise errors.invalid(kind.kind, key.name, [Cause.required(where, needed)], kind.group)
        if element in seen:
            raise errors.invalid(kind.kind, key.name, [Cause.duplicate(where, orjson.loads(element[2:]))], kind.group)
        seen.add(element)
        _check_items(kind, key, schema.items, item, where)


def _in_scope(kind: Kind, part: str, by: By) -> bool:
    """A subresource writes its own part; the object itself does not write its status."""
    if by.subresource in STATUS_PARTS:
        return part == "status"
    if by.subresource in pod_parts.PARTS:
        return part == "spec"
    return part != "status" or not kind.has_status


def _claimed(kind: Kind, config: Mapping[str, Any]) -> FieldSet:
    """The set of fields the configuration speaks of."""
    unowned = ("spec",) if kind.gk in managed.UNOWNED_SPEC else ()
    claimed = {
        f"f:{part}": fields.present(kind.schema.fields.get(part), value)
        for part, value in config.items()
        if part not in unowned
    }
    return node({name: below for name, below in claimed.items() if below})


def _body(old: Object | None) -> dict[str, Any]:
    body = dict(EMPTY if old is None else old.value)
    body.pop("apiVersion", None)
    body.pop("kind", None)
    return body


def merge_body(kind: Kind, old: Object | None, config: Mapping[str, Any]) -> dict[str, Any]:
    """The body of an object with a configuration laid over it."""
    out = _body(old)
    for part, value in config.items():
        out[part] = merge(kind.schema.fields.get(part), out[part], value) if part in out else value
    return out


def prune(
    kind: Kind, merged: dict[str, Any], last: FieldSet, claimed: FieldSet, others: tuple[Manager, ...]
) -> dict[str, Any]:
    """Takes out what this manager applied last, no longer does, and nobody else owns."""
    return pruned(kind.schema, merged, last, claimed, [entry.fields for entry in others])


def _refuse_conflicts(
    kind: Kind,
    old: Object,
    others: tuple[Manager, ...],
    changed: FieldSet,
    by: By,
    across: managed.Across | None = None,
) -> None:
    """Raises 409 when what is changed belongs to others; what `kubectl apply` left, kubectl may take over."""
    causes = _conflicts(others, changed, by, across)
    if causes and by.manager == declared.KUBECTL and across is None:
        causes = _conflicts(others, difference(changed, declared.allowed_conflicts(kind, old)), by)
    if causes:
        raise errors.apply_conflict(causes)


def _conflicts(
    others: tuple[Manager, ...], changed: FieldSet, by: By, across: managed.Across | None = None
) -> list[Cause]:
    causes: list[Cause] = []
    for entry in others:
        if across is not None:
            changed = (across(entry.api_version) or fields.SAME)[0]
        version = "" if entry.operation == "Apply" else BODIES[by.part][0] if by.part else entry.api_version
        for path in _paths(intersection(entry.fields, changed), ()):
            text = path_text(path)
            causes.append(Cause.manager_conflict(entry.name, text, api_version=version, subresource=entry.subresource))
    return causes


def _paths(fieldset: FieldSet, prefix: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Member paths in structured-merge-diff's order: of one level first, then what is below them."""
    for name, below in zip(fieldset.names, fieldset.kids, strict=True):
        if below.member:
            yield (*prefix, name)
    for name, below in zip(fieldset.names, fieldset.kids, strict=True):
        yield from _paths(below, (*prefix, name))


def path_text(path: tuple[str, ...]) -> str:
    """A field path as conflicts show it: `.spec.template.spec.containers[name="web"].image`."""
    out = []
    for element in path:
        if element.startswith("f:"):
            out.append("." + element[2:])
        elif element.startswith("k:"):
            keys = orjson.loads(element[2:])
            out.append("[" + ",".join(f"{name}={orjson.dumps(key).decode()}" for name, key in keys.items()) + "]")
        else:
            out.append("[=" + element[2:] + "]")
    return "".join(out)
