"""Server-side apply: merge by schema, ownership by managedFields, conflicts with their causes.

The rules are those of Kubernetes' "Server-Side Apply" page and of structured-merge-diff's observed behaviour:
the applied configuration wins where it speaks; what this manager applied before and no longer does is removed unless
somebody else owns it; changing what another manager owns is a conflict unless forced; equal values are shared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from steersman.api import defaults, errors, fields, managed, pod_parts, status_part, write
from steersman.api.crd import conversion
from steersman.api.errors import Cause
from steersman.api.explain import Finding
from steersman.api.intake import field_schema
from steersman.api.kinds import STATUS_PARTS, Kind
from steersman.api.patching import apply_across, declared
from steersman.api.schema import Schema
from steersman.api.write import By, Mode, Written
from steersman.kernel.fieldset import LEAF, NOTHING, FieldSet, covers, difference, intersection, node, union
from steersman.kernel.object import Key, Manager, Object, Section
from steersman.kernel.value import EMPTY, Frozen, FrozenList


def apply(kind: Kind, key: Key, old: Object | None, body: Mapping[str, Any], uid: str, by: By, force: bool) -> Written:
    """The version after `by.manager` applied `body`. `old` None creates it, with `uid`.

    Raises `ApiError`: 409 with one cause a conflict, 422, 400 (managedFields in the body, an item given twice).
    """
    warnings: list[str] = []
    config = _take_config(kind, key, body, by, warnings)
    claimed = union(_claimed(kind, config), _claimed_empty(body, by))
    if old is None:
        written = write.create(kind, key, merge_body(kind, None, config), uid, by._replace(validation="Ignore"))
        obj = written.obj
        entry = Manager(by.manager, "Apply", by.told, kind.api_version, by.since, claimed)
        obj.managers = (entry,) if claimed else ()
        return Written(obj, (*warnings, *written.warnings))
    if not old.managers:
        old = old.replace(managers=_before(kind, old, by))
    mine = next((m for m in old.managers if _is_mine(m, by)), None)
    others = tuple([m for m in old.managers if m is not mine])
    merged = merge_body(kind, old, config)
    if mine is not None:
        if kind.converted is None:
            merged = prune(kind, merged, mine.fields, claimed, others)
        else:
            merged = apply_across.pruned(kind, old, merged, config, claimed, mine, others)
    new = _next(kind, old, merged, by, warnings)
    change = managed.changes(kind, old, new)
    across = conversion.across(kind, old, new)
    causes = _conflicts(others, change[0], across)
    if causes and not force:
        if by.manager == declared.KUBECTL and across is None:
            causes = _conflicts(others, difference(change[0], declared.allowed_conflicts(kind, old)))
        if causes:
            raise errors.apply_conflict(causes)
    if by.manager == declared.KUBECTL and not by.subresource:
        new = _noted(new, body)
    same = new.same_content(old)
    if same and mine is not None and mine.fields == claimed and mine.api_version == kind.api_version:
        return Written(old, tuple(warnings))
    time = by.since if not same else "" if mine is None else mine.time  # of what changes nothing, none is noted
    entry = Manager(by.manager, "Apply", by.told, kind.api_version, time, claimed)
    if same:
        new = old.replace(rv=0)
    new.managers = (*managed.after_loss(others, change, across), *((entry,) if claimed else ()))
    return Written(new, tuple(warnings))


def _before(kind: Kind, old: Object, by: By) -> tuple[Manager, ...]:
    """Who owns an object of which nobody is on record."""
    owned = managed.all_fields(kind, old, status=not kind.has_status)
    entry = Manager(declared.BEFORE_FIRST_APPLY, "Update", "", kind.api_version, by.time, owned)
    return (entry,) if owned else ()


def _noted(new: Object, body: Mapping[str, Any]) -> Object:
    """The version whose record of `kubectl apply`, if there is one, tells this configuration."""
    notes = declared.with_last_applied(new.meta.value.get("annotations") or EMPTY, body)
    if notes is None:
        return new
    meta = Section(Frozen({**new.meta.value, "annotations": Frozen(notes)}))
    return new if meta.digest == new.meta.digest else new.replace(meta=meta, rv=0)


def _is_mine(entry: Manager, by: By) -> bool:
    return entry.name == by.manager and entry.operation == "Apply" and entry.subresource == by.told


def _next(kind: Kind, old: Object, merged: dict[str, Any], by: By, warnings: list[str]) -> Object:
    written = write.update(kind, old, merged, by._replace(validation="Ignore"))
    warnings.extend(written.warnings)
    obj = written.obj
    return obj if obj is old else obj.replace(managers=old.managers)


def _take_config(kind: Kind, key: Key, body: Mapping[str, Any], by: By, warnings: list[str]) -> dict[str, Any]:
    """The applied configuration, frozen, without defaults and without what only the server writes."""
    meta = body.get("metadata") or EMPTY
    if meta.get("managedFields") is not None:
        raise errors.bad_request("metadata.managedFields must be nil")
    out: dict[str, Any] = {}
    opened = _take_meta(kind, key, meta, by, warnings)
    if opened:
        out["metadata"] = Frozen(opened)
    for part, value in body.items():
        if part in write.TOP or value is None or not _in_scope(kind, part, by):
            continue
        if by.subresource in pod_parts.PARTS and isinstance(value, dict):
            value = pod_parts.narrowed(by.subresource, value)
        schema = field_schema(kind.schema, part)
        if schema is None:
            finding = Finding()
            finding.unknown.append(str(part))
            write.refuse(kind, key.name, finding, by.validation, warnings)
            continue
        taken = write.take_in(kind, schema, part, value, Mode(False, key.name, by, warnings, keep_empty=True))
        if taken is not None:
            write.encode(kind, key.name, part, Section(taken))
            _check_items(kind, key, schema, taken, part)
            out[part] = taken
    return out


def _take_meta(kind: Kind, key: Key, meta: Mapping[str, Any], by: By, warnings: list[str]) -> dict[str, Any]:
    """The metadata of an applied configuration: of a status, what its kind takes; of other subresources none. Labels
    that the server sets are not applied by anybody."""
    if by.subresource:
        taken = status_part.taken_meta(kind) if by.subresource in STATUS_PARTS else ()
        meta = {field: meta[field] for field in taken if field in meta}
    opened = write.open_meta(kind, meta, key.name, by, warnings)
    extra = defaults.extra_labels(kind, key.name)
    if extra:
        given = meta.get("labels") or EMPTY
        labels = {name: text for name, text in opened.pop("labels").items() if name not in extra or name in given}
        if labels:
            opened["labels"] = Frozen(labels)
    return opened


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


def _claimed_empty(body: Mapping[str, Any], by: By) -> FieldSet:
    """Maps of metadata that the configuration keeps empty."""
    meta = body.get("metadata") or EMPTY
    empty = {f"f:{field}": LEAF for field in ("annotations", "labels") if meta.get(field) == {}}
    return node({"f:metadata": node(empty)}) if empty and not by.subresource else NOTHING


def merge_body(kind: Kind, old: Object | None, config: Mapping[str, Any]) -> dict[str, Any]:
    """The body of an object with a configuration laid over it."""
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
    if old is new:
        return old
    if isinstance(old, dict) and isinstance(new, dict) and not (schema is not None and schema.atomic):
        laid = {
            name: merge(fields.child_schema(schema, name), old[name], item) if name in old else item
            for name, item in new.items()
        }
        if all(name in old and old[name] is item for name, item in laid.items()):
            return old
        return Frozen({**old, **laid})
    if schema is not None and schema.list_type in ("map", "set"):
        before, after = fields.items_by_element(schema, old), fields.items_by_element(schema, new)
        if before is not None and after is not None:
            items = _merge_items(schema, before, after)
            same = len(items) == len(old) and all(a is b for a, b in zip(items, old, strict=True))
            return old if same else FrozenList(items)
    return old if _identical(old, new) else new


def _identical(old: Any, new: Any) -> bool:
    """Whether two values are equal and would be stored as the same bytes: Python has 1 == True == 1.0."""
    if type(old) in (str, bool, int, float) or old is None:
        return type(old) is type(new) and bool(old == new)
    return bool(old == new) and orjson.dumps(old) == orjson.dumps(new)


def _merge_items(schema: Schema, old: dict[str, Any], new: dict[str, Any]) -> list[Any]:
    """Items of both lists. The applied order wins among the applied ones; an item that only the object has follows
    the one it followed there, as far as that goes (the order structured-merge-diff gives)."""
    out: list[Any] = []
    coming = list(new)
    shared = [element for element in coming if element in old]
    emitted: set[str] = set()

    def emit(element: str) -> None:
        emitted.add(element)
        item = new[element]
        out.append(merge(schema.items, old[element], item) if element in old else item)
        if shared and shared[0] == element:
            shared.pop(0)

    at = 0
    for element, item in old.items():
        if element not in new:
            out.append(item)
            continue
        if element in emitted or (shared and shared[0] != element):
            continue  # its turn came, or comes later
        while element not in emitted:
            emit(coming[at])
            at += 1
    for element in coming[at:]:
        emit(element)
    return out


def prune(
    kind: Kind, merged: dict[str, Any], last: FieldSet, claimed: FieldSet, others: tuple[Manager, ...]
) -> dict[str, Any]:
    """Takes out what this manager applied last, no longer does, and nobody else owns."""
    if covers(claimed, last):
        return merged
    kept = claimed
    for entry in others:
        kept = union(kept, entry.fields)
    for name, below in zip(last.names, last.kids, strict=True):
        part = name[2:]
        held = kept.child(name)
        if part not in merged or covers(held, below):
            continue
        if held or part in write.TOP:
            merged[part] = _remove(kind.schema.fields.get(part), merged[part], below, held)
        else:
            del merged[part]
    return merged


def _remove(schema: Schema | None, value: Any, last: FieldSet, kept: FieldSet) -> Any:
    """`value` without what is in `last` and neither is in `kept` nor has anything of it below."""
    gone: set[str] = set()
    left: dict[str, Any] = {}
    items = value if isinstance(value, dict) else fields.items_by_element(schema, value)
    if items is None:
        return value
    in_map = items is value
    for element, below in zip(last.names, last.kids, strict=True):
        name = element[2:] if in_map else element
        held = kept.child(element)
        if name not in items or (held and covers(held, below)):
            continue
        child = fields.child_schema(schema, name) if in_map else (None if schema is None else schema.items)
        if not held and (below.member or (in_map and schema is not None and name in schema.fields)):
            gone.add(name)
        elif below.names:
            left[name] = _remove(child, items[name], below, held)
    out = {name: left.get(name, item) for name, item in items.items() if name not in gone}
    return Frozen(out) if in_map else FrozenList(out.values())


def _conflicts(others: tuple[Manager, ...], changed: FieldSet, across: managed.Across | None = None) -> list[Cause]:
    causes: list[Cause] = []
    for entry in others:
        if across is not None:
            changed = (across(entry.api_version) or fields.SAME)[0]
        version = entry.api_version if entry.operation == "Update" else ""
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
