"""Object-local writes: (old version, body, who, schema) → new version. Pure; check memoises them.

Nothing here looks at another object, at the store's revision or at a clock: the caller gives the time, uid and name.
A new version shares every section that did not change, and a write that changes nothing returns the old version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from steersman.api import defaults, errors, fields, validate
from steersman.api.intake import Finding, Misfit, explain, intake
from steersman.api.kinds import Kind
from steersman.api.schema import Schema
from steersman.kernel.fieldset import LEAF, NOTHING, FieldSet, covers, difference, node, union
from steersman.kernel.object import Key, Manager, Object, Section
from steersman.kernel.value import EMPTY, Frozen, FrozenList

SYSTEM_META: Final = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
"""Metadata that only the server writes. Nobody manages these fields."""
OPEN_META: Final = ("generateName", "labels", "annotations", "ownerReferences", "finalizers")
"""Metadata that clients write."""
NO_GENERATION: Final = frozenset(
    {("", kind) for kind in ("Node", "Namespace", "Service", "PersistentVolumeClaim", "PersistentVolume", "Event")}
    | {("", "ServiceAccount"), ("events.k8s.io", "Event"), ("coordination.k8s.io", "Lease")}
)
"""Kinds with a spec whose generation kube-apiserver does not count."""
TOP: Final = frozenset({"apiVersion", "kind", "metadata"})
INTERN_LIMIT: Final = 1 << 16
_shared: dict[Any, Any] = {}


class By(NamedTuple):
    """Who writes, and how strictly the body is read."""

    manager: str
    time: str
    """RFC 3339, whole seconds."""
    validation: str = "Warn"
    """fieldValidation: Strict refuses undeclared fields, Warn and Ignore drop them."""
    subresource: str = ""


class Written(NamedTuple):
    """A new version (revision 0 until it is committed), or the old one when nothing changed."""

    obj: Object
    warnings: tuple[str, ...] = ()


class Parts(NamedTuple):
    """The sections of a body."""

    spec: Section | None
    rest: Section | None
    status: Section | None


# -- taking a body in ------------------------------------------------------------------------------------------


def refuse(kind: Kind, name: str, finding: Finding, validation: str, warnings: list[str]) -> None:
    """Raises what `explain` found, or turns undeclared fields into warnings when they are merely dropped."""
    if finding.unknown:
        if validation == "Strict":
            listed = ", ".join(f'unknown field "{path}"' for path in finding.unknown)
            handled = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}'
            raise errors.bad_request(f"{handled}: strict decoding error: {listed}")
        warnings.extend(f'unknown field "{path}"' for path in finding.unknown)
    if finding.causes:
        raise errors.invalid(kind.kind, name, finding.causes, kind.group)


def take_part(kind: Kind, part: str, value: Any, name: str, by: By, warnings: list[str]) -> Any:
    """One top-level field, frozen, complete with defaults and valid. Raises `ApiError` 400 or 422."""
    schema = kind.schema.fields.get(part)
    if schema is None:
        finding = Finding()
        finding.unknown.append(part)
        refuse(kind, name, finding, by.validation, warnings)
        return None
    required = kind.custom or part != "status"
    take = intake(schema, required, kind.custom)
    try:
        taken = take(value)
    except Misfit:
        finding = Finding()
        pruned = explain(schema, value, part, finding, required, kind.custom)
        refuse(kind, name, finding, by.validation, warnings)
        taken = take(pruned)
    if taken is None:
        return None
    taken = defaults.fill(kind, part, taken)
    causes = validate.part(kind, part, taken)
    if causes:
        raise errors.invalid(kind.kind, name, causes, kind.group)
    return taken


def take_section(kind: Kind, part: str, value: Any, name: str, by: By, warnings: list[str]) -> Section | None:
    """The section of a `spec` or `status`. A frozen value that was taken in before costs one look."""
    if type(value) is Frozen:
        mark = getattr(value, "mark", None)
        if mark is not None and mark.valid is kind.schema:
            return mark  # type: ignore[no-any-return]
    taken = take_part(kind, part, value, name, by, warnings)
    if taken is None:
        return None
    section = Section(taken)
    section.valid = kind.schema
    if type(value) is Frozen and part == "spec":  # a template: the next pod made from it finds the section here
        value.mark = section
        taken.mark = section
    return section


def take_parts(kind: Kind, body: Mapping[str, Any], name: str, by: By, warnings: list[str], status: bool) -> Parts:
    """Spec, rest and (when asked for) status of a whole body."""
    spec = None
    rest: dict[str, Any] = {}
    for part, value in body.items():
        if part in TOP or part == "status" or value is None:
            continue
        if part == "spec":
            spec = take_section(kind, part, value, name, by, warnings)
        else:
            taken = take_part(kind, part, value, name, by, warnings)
            if taken is not None:
                rest[part] = taken
    for part, value in defaults.missing_parts(kind).items():
        if part == "spec" and spec is None:
            spec = take_section(kind, part, value, name, by, warnings)
        elif part not in ("spec", "status"):
            rest.setdefault(part, value)
    if spec is None:
        _need_parts(kind, body, name)
    state = body.get("status")
    taken_status = take_section(kind, "status", state, name, by, warnings) if status and state is not None else None
    return Parts(spec, _section(Frozen(rest)) if rest else None, taken_status)


def _need_parts(kind: Kind, body: Mapping[str, Any], name: str) -> None:
    schema = kind.schema.fields.get("spec")
    if schema is not None and (schema.required or "spec" in kind.schema.required) and body.get("spec") is None:
        take_part(kind, "spec", {}, name, By("", "", "Strict"), [])


def _section(value: Frozen) -> Section:
    return Section(value)


def _share(value: Any) -> Any:
    """One object for equal labels or ownerReferences: pods of one owner share them."""
    if type(value) is dict or type(value) is Frozen:
        key: Any = tuple(value.items())
    elif len(value) == 1 and isinstance(value[0], dict):
        key = ("one", *value[0].items())
    else:
        return value
    try:
        found = _shared.get(key)
    except TypeError:
        return value
    if found is None:
        if len(_shared) >= INTERN_LIMIT:
            _shared.clear()
        found = _shared[key] = value
    return found


def open_meta(kind: Kind, meta: Mapping[str, Any], name: str, by: By, warnings: list[str]) -> dict[str, Any]:
    """The metadata a client may write, frozen and checked: labels, annotations, owners, finalizers."""
    schema = kind.schema.fields["metadata"]
    out: dict[str, Any] = {}
    for field, value in meta.items():
        if field in OPEN_META:
            if value is None or (not value and isinstance(value, (dict, list, str))):
                continue
            mark = getattr(value, "mark", None)
            if type(mark) is FieldSet:  # shared labels or owners, taken in before
                out[field] = value
                continue
            take = intake(schema.fields[field], True)
            try:
                taken = take(value)
            except Misfit:
                finding = Finding()
                pruned = explain(schema.fields[field], value, f"metadata.{field}", finding, True)
                refuse(kind, name, finding, by.validation, warnings)
                taken = take(pruned)
            out[field] = _share(taken) if field in ("labels", "ownerReferences") else taken
        elif field not in schema.fields:
            finding = Finding()
            finding.unknown.append(f"metadata.{field}")
            refuse(kind, name, finding, by.validation, warnings)
    return out


# -- managedFields ---------------------------------------------------------------------------------------------


def _part_schema(kind: Kind, part: str) -> Schema | None:
    return kind.schema.fields.get(part)


def _without_self(fieldset: FieldSet) -> FieldSet:
    """A top-level part is never a member itself: `f:spec` stands for what is in it, unless it is empty."""
    return node(dict(zip(fieldset.names, fieldset.kids, strict=True))) if fieldset.names else LEAF


def section_fields(kind: Kind, part: str, section: Section) -> FieldSet:
    """All fields of a section, as `f:PART`'s subtree; cached on the section."""
    found = section.fields
    if found is None:
        found = section.fields = _without_self(fields.added(_part_schema(kind, part), section.value))
    return found


def meta_fields(kind: Kind, meta: Mapping[str, Any]) -> FieldSet:
    """The managed part of metadata."""
    schema = kind.schema.fields["metadata"]
    return node({f"f:{field}": _fields_of(schema.fields[field], meta[field]) for field in OPEN_META if field in meta})


def _fields_of(schema: Schema, value: Any) -> FieldSet:
    if type(value) is not Frozen and type(value) is not FrozenList:
        return fields.added(schema, value)
    mark = getattr(value, "mark", None)
    if type(mark) is not FieldSet:
        mark = value.mark = fields.added(schema, value)
    return mark


def all_fields(kind: Kind, obj: Object, status: bool) -> FieldSet:
    """Every managed field of an object that was just created."""
    out: dict[str, FieldSet] = {}
    meta = meta_fields(kind, obj.meta.value)
    if meta:
        out["f:metadata"] = meta
    if obj.spec is not None:
        out["f:spec"] = section_fields(kind, "spec", obj.spec)
    if obj.rest is not None:
        for part, value in obj.rest.value.items():
            out[f"f:{part}"] = fields.added(_part_schema(kind, part), value)
    if status and obj.status is not None:
        out["f:status"] = section_fields(kind, "status", obj.status)
    return node(out)


def changes(kind: Kind, old: Object, new: Object) -> fields.Change:
    """(added or modified, removed) between two versions, as sets over the whole object."""
    changed: dict[str, FieldSet] = {}
    removed: dict[str, FieldSet] = {}

    def note(part: str, change: fields.Change) -> None:
        if change[0]:
            changed[f"f:{part}"] = change[0]
        if change[1]:
            removed[f"f:{part}"] = change[1]

    if old.meta is not new.meta:
        note("metadata", _meta_change(kind, old.meta.value, new.meta.value))
    for part, before, after in (("spec", old.spec, new.spec), ("status", old.status, new.status)):
        if before is not after:
            note(part, _section_change(kind, part, before, after))
    if old.rest is not new.rest:
        a = EMPTY if old.rest is None else old.rest.value
        b = EMPTY if new.rest is None else new.rest.value
        for part in sorted(a.keys() | b.keys()):
            schema = _part_schema(kind, part)
            if part not in a:
                note(part, (fields.added(schema, b[part]), NOTHING))
            elif part not in b:
                note(part, (NOTHING, fields.added(schema, a[part])))
            elif a[part] != b[part]:
                note(part, fields.compare(schema, a[part], b[part]))
    return node(changed), node(removed)


def _meta_change(kind: Kind, old: Frozen, new: Frozen) -> fields.Change:
    a = {field: old[field] for field in OPEN_META if field in old}
    b = {field: new[field] for field in OPEN_META if field in new}
    return fields.SAME if a == b else fields.compare(kind.schema.fields["metadata"], a, b)


def _section_change(kind: Kind, part: str, before: Section | None, after: Section | None) -> fields.Change:
    if before is None:
        return (NOTHING if after is None else section_fields(kind, part, after)), NOTHING
    if after is None:
        return NOTHING, section_fields(kind, part, before)
    if before.digest == after.digest:
        return fields.SAME
    return fields.compare(_part_schema(kind, part), before.peek(), after.value)


def record_update(kind: Kind, managers: tuple[Manager, ...], change: fields.Change, by: By) -> tuple[Manager, ...]:
    """managedFields after an update by `by`: it owns what it changed; the others no longer do."""
    changed, removed = change
    out: list[Manager] = []
    mine: Manager | None = None
    for entry in managers:
        if entry.name == by.manager and entry.operation == "Update" and entry.subresource == by.subresource:
            mine = entry
            continue
        left = difference(entry.fields, changed)
        if removed:
            left = difference(left, removed)
        if left is entry.fields:
            out.append(entry)
        elif left:
            out.append(entry._replace(fields=left))
    if mine is not None and not removed and covers(mine.fields, changed):
        out.append(mine)
        return tuple(out)
    owned = NOTHING if mine is None else mine.fields
    owned = union(difference(owned, removed) if removed else owned, changed)
    if mine is not None and (owned is mine.fields or owned == mine.fields):
        out.append(mine)
    elif owned:
        out.append(Manager(by.manager, "Update", by.subresource, kind.api_version, by.time, owned))
    return tuple(out)


# -- the writes ------------------------------------------------------------------------------------------------


def create(kind: Kind, key: Key, body: Mapping[str, Any], uid: str, by: By) -> Written:
    """A new object in `key`'s slot. Raises `ApiError` (400, 422)."""
    warnings: list[str] = []
    given: Mapping[str, Any] = body.get("metadata") or EMPTY
    meta: dict[str, Any] = {"name": key.name}
    if key.namespace:
        meta["namespace"] = key.namespace
    meta["uid"] = uid
    meta["creationTimestamp"] = by.time
    meta.update(open_meta(kind, given, key.name, by, warnings))
    parts = take_parts(kind, body, key.name, by, warnings, status=not kind.has_status)
    if parts.spec is not None and kind.gk not in NO_GENERATION:
        meta["generation"] = 1
    causes = validate.metadata(kind, meta)
    if causes:
        raise errors.invalid(kind.kind, key.name, causes, kind.group)
    spec, node_name = split_node_name(kind, parts.spec)
    obj = Object(key, kind.api_version, 0, Section(Frozen(meta)), spec, parts.rest, parts.status, (), node_name)
    owned = all_fields(kind, obj, status=not kind.has_status)
    obj.managers = (Manager(by.manager, "Update", "", kind.api_version, by.time, owned),) if owned else ()
    if obj.status is None:
        obj.status = initial_status(kind, obj.spec)
    return Written(obj, tuple(warnings))


def initial_status(kind: Kind, spec: Section | None) -> Section | None:
    """The status an object is born with; one section for all pods of one QoS class."""
    if spec is not None and spec.born is not None:
        return spec.born
    status = defaults.initial_status(kind, None if spec is None else spec.value)
    if status is None:
        return None
    shared: Section = _shared.setdefault((kind.gk, tuple(sorted(status.items()))), Section(status))
    if spec is not None:
        spec.born = shared
    return shared


def split_node_name(kind: Kind, spec: Section | None) -> tuple[Section | None, str | None]:
    """A pod's spec without nodeName, and the nodeName: thousands of bound pods share the former."""
    if spec is None or kind.gk != ("", "Pod"):
        return spec, None
    name = spec.value.get("nodeName")
    if not name:
        return spec, None
    return Section(Frozen({field: item for field, item in spec.value.items() if field != "nodeName"})), name


def update(kind: Kind, old: Object, body: Mapping[str, Any], by: By) -> Written:
    """The version after a PUT of `body`, to the object or to its status. Raises `ApiError` (400, 422)."""
    warnings: list[str] = []
    if by.subresource == "status":
        new = _with_status(kind, old, body, by, warnings)
    else:
        new = _with_body(kind, old, body, by, warnings)
    if new is old or new.same_content(old):
        return Written(old, tuple(warnings))
    new.managers = record_update(kind, old.managers, changes(kind, old, new), by)
    return Written(new, tuple(warnings))


def _with_status(kind: Kind, old: Object, body: Mapping[str, Any], by: By, warnings: list[str]) -> Object:
    value = body.get("status")
    section = None if value is None else take_section(kind, "status", value, old.key.name, by, warnings)
    if section is not None and old.status is not None and section.digest == old.status.digest:
        return old
    return old.replace(status=section, rv=0)


def _with_body(kind: Kind, old: Object, body: Mapping[str, Any], by: By, warnings: list[str]) -> Object:
    name = old.key.name
    given: Mapping[str, Any] = body.get("metadata") or EMPTY
    parts = take_parts(kind, body, name, by, warnings, status=not kind.has_status)
    spec, node_name = split_node_name(kind, parts.spec)
    spec = _keep(old.spec, spec)
    rest = _keep(old.rest, parts.rest)
    meta = {field: old.meta.value[field] for field in SYSTEM_META if field in old.meta.value}
    meta.update(open_meta(kind, given, name, by, warnings))
    causes = validate.metadata(kind, meta) + _meta_change_causes(kind, old, given, meta)
    causes += _change_causes(kind, old, spec, node_name, rest)
    if causes:
        raise errors.invalid(kind.kind, name, causes, kind.group)
    respecified = spec is not old.spec or (kind.custom and rest is not old.rest)
    if respecified and "generation" in meta:
        meta["generation"] += 1
    status = old.status if kind.has_status else _keep(old.status, parts.status)
    section = Section(Frozen(meta))
    if section.digest == old.meta.digest:
        section = old.meta
    return old.replace(meta=section, spec=spec, rest=rest, status=status, node=node_name, rv=0)


def _keep(old: Section | None, new: Section | None) -> Section | None:
    return old if old is not None and new is not None and old.digest == new.digest else new


def _meta_change_causes(kind: Kind, old: Object, given: Mapping[str, Any], meta: Mapping[str, Any]) -> list[Any]:
    claimed = {**meta, **{field: given[field] for field in ("name", "namespace", "uid") if given.get(field)}}
    causes: list[Any] = validate.metadata_change(kind, old.meta.value, claimed)
    return causes


def _change_causes(
    kind: Kind, old: Object, spec: Section | None, node_name: str | None, rest: Section | None
) -> list[Any]:
    causes: list[Any] = []
    if spec is not old.spec or node_name != old.node:
        after = None if spec is None else spec.value
        if node_name is not None and after is not None:
            after = Frozen({**after, "nodeName": node_name})
        causes += validate.change(kind, "spec", old.spec_value, after)
    if rest is not old.rest:
        a = EMPTY if old.rest is None else old.rest.value
        b = EMPTY if rest is None else rest.value
        for part in sorted(a.keys() | b.keys()):
            if a.get(part) != b.get(part):
                causes += validate.change(kind, part, a.get(part), b.get(part))
    return causes


def bind(old: Object, node_name: str) -> Object:
    """A pod placed on a node: its spec stays shared. Nobody manages nodeName, as in Kubernetes."""
    return old.replace(node=node_name, rv=0)


def mark_deleted(old: Object, time: str, grace: int) -> Object:
    """The version whose deletion has begun."""
    meta = {**old.meta.value, "deletionTimestamp": time, "deletionGracePeriodSeconds": grace}
    if "generation" in meta:
        meta["generation"] += 1
    return old.replace(meta=Section(Frozen(meta)), rv=0)


def without_finalizers(old: Object, gone: tuple[str, ...]) -> Object:
    """The version without some of its finalizers."""
    left = [name for name in old.meta.value.get("finalizers", ()) if name not in gone]
    meta = {field: value for field, value in old.meta.value.items() if field != "finalizers"}
    if left:
        meta["finalizers"] = FrozenList(left)
    return old.replace(meta=Section(Frozen(meta)), rv=0)
