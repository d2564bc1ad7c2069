"""managedFields: who owns which field of an object, kept up with every write that is no apply.

The rules are those of Kubernetes' "Server-Side Apply" page: who changes a field owns it and the others lose it; who
creates an object owns all of it but what only the server writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from steersman.api import fields
from steersman.api.kinds import Kind
from steersman.kernel.fieldset import LEAF, NOTHING, FieldSet, difference, node, share, union
from steersman.kernel.object import Manager, Object, Section
from steersman.kernel.value import EMPTY, Frozen, FrozenList

Across = Callable[[str], fields.Change | None]
"""What a change is in the version of an entry's apiVersion, where versions name their fields differently; None when
there is no such version any more, and the entry goes."""
OPEN_META: Final = ("generateName", "labels", "annotations", "ownerReferences", "finalizers")
"""Metadata that clients write, and that is managed."""
UNOWNED_SPEC: Final = frozenset({("certificates.k8s.io", "CertificateSigningRequest")})
"""Kinds whose spec belongs to nobody, since it is never written again (their reset fields in kube-apiserver)."""
MAX_UPDATERS: Final = 10
"""Update entries of one object (kube-apiserver's limit); the oldest are merged into one named `ANCIENT`."""
ANCIENT: Final = "ancient-changes"
UNOWNED: Final[Mapping[tuple[str, str, str], FieldSet]] = {
    ("", "Pod", "spec"): node({"f:preemptionPolicy": LEAF, "f:priority": LEAF}),
}
"""What kube-apiserver's admission and create strategies add after ownership was noted: nobody's."""


_STATUS: Final = ("f:status",)


_ELEMENTS: Final = {field: f"f:{field}" for field in OPEN_META}
MAX_CREATED: Final = 1 << 10
"""Sets of all fields remembered: the objects of one template have one."""
_created: dict[tuple[Any, ...], FieldSet] = {}


def section_fields(kind: Kind, part: str, section: Section) -> FieldSet:
    """All fields of a section that appears, as `f:PART`'s subtree; cached on the section."""
    found = section.fields
    if found is None:
        found = fields.appearing(kind.schema, part, section.value)
        unowned = UNOWNED.get((*kind.gk, part))
        if unowned is not None:
            found = difference(found, unowned)
        if part == "spec":
            found = share(found)
        section.fields = found
    return found


def _meta_fields(kind: Kind, meta: Mapping[str, Any]) -> dict[str, FieldSet]:
    """The managed part of metadata, by path element."""
    schema = kind.schema.fields["metadata"].fields
    found = {}
    for field in OPEN_META:
        if field in meta:
            found[_ELEMENTS[field]] = _fields_of(schema[field], meta[field])
    return found


def _fields_of(schema: Any, value: Any) -> FieldSet:
    """The fields of one part of metadata, cached on the labels and owners that many objects share."""
    if type(value) is not Frozen and type(value) is not FrozenList:
        return fields.added(schema, value)
    mark = getattr(value, "mark", None)
    if type(mark) is not FieldSet:
        mark = value.mark = share(fields.added(schema, value))
    return mark


def all_fields(kind: Kind, obj: Object, status: bool) -> FieldSet:
    """Every managed field of an object that was just created; `status`: that of its status too."""
    meta = _meta_fields(kind, obj.meta.value)
    spec = section_fields(kind, "spec", obj.spec) if obj.spec is not None and kind.gk not in UNOWNED_SPEC else NOTHING
    plain = obj.rest is None and not (status and obj.status is not None)
    key = (*meta, *meta.values(), spec)  # of sets that are shared, their identity says what they are
    found = _created.get(key) if plain else None
    if found is not None:
        return found
    out = {"f:metadata": node(meta), "f:spec": spec}
    if obj.rest is not None:
        for part, value in obj.rest.value.items():
            out[f"f:{part}"] = fields.appearing(kind.schema, part, value)
    if status and obj.status is not None:
        out["f:status"] = section_fields(kind, "status", obj.status)
    found = node({name: below for name, below in out.items() if below})
    if plain and found.shared:
        if len(_created) >= MAX_CREATED:
            _created.clear()
        _created[key] = found
    return found


def changes(kind: Kind, old: Object, new: Object) -> fields.Change:
    """(added or modified, removed) between two versions, as sets over the whole object."""
    changed: dict[str, FieldSet] = {}
    removed: dict[str, FieldSet] = {}

    def note(part: str, change: fields.Change) -> None:
        if change[0]:
            changed[f"f:{part}"] = change[0]
        if change[1]:
            removed[f"f:{part}"] = change[1]

    if old.meta is new.meta and old.spec is new.spec and old.rest is new.rest:
        added, gone = _section_change(kind, "status", old.status, new.status)
        return (
            FieldSet(_STATUS, (added,), False) if added else NOTHING,
            FieldSet(_STATUS, (gone,), False) if gone else NOTHING,
        )
    if old.meta is not new.meta:
        note("metadata", _meta_change(kind, old.meta.value, new.meta.value))
    for part, before, after in (("spec", old.spec, new.spec), ("status", old.status, new.status)):
        if before is not after:
            note(part, _section_change(kind, part, before, after))
    if old.rest is not new.rest:
        a = EMPTY if old.rest is None else old.rest.value
        b = EMPTY if new.rest is None else new.rest.value
        for part in sorted(a.keys() | b.keys()):
            schema = kind.schema.fields.get(part)
            if part not in a:
                note(part, (fields.appearing(kind.schema, part, b[part]), NOTHING))
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
    return fields.compare(kind.schema.fields.get(part), before.peek(), after.value)


def same_owners(one: tuple[Manager, ...], other: tuple[Manager, ...]) -> bool:
    """Whether they say the same but for their times, by which alone nothing is written."""
    return one == other or {m._replace(time="") for m in one} == {m._replace(time="") for m in other}


def after_loss(
    managers: tuple[Manager, ...], change: fields.Change, across: Across | None = None
) -> tuple[Manager, ...]:
    """What the entries still own when somebody else made the change; entries that own nothing go."""
    changed, removed = change
    out = []
    for entry in managers:
        if across is not None:
            seen = across(entry.api_version)
            if seen is None:
                continue
            changed, removed = seen
        left = difference(entry.fields, changed)
        if removed:
            left = difference(left, removed)
        if left is entry.fields:
            out.append(entry)
        elif left:
            out.append(entry._replace(fields=left))
    return tuple(out)


def record_update(
    kind: Kind,
    managers: tuple[Manager, ...],
    change: fields.Change,
    name: str,
    subresource: str,
    time: str,
    across: Across | None = None,
) -> tuple[Manager, ...]:
    """managedFields after an update by `name` at `time`: it owns what it changed, the others no longer do."""
    changed, removed = change
    mine: Manager | None = None
    for entry in managers:
        same = entry.name == name and entry.operation == "Update" and entry.subresource == subresource
        if same and entry.api_version == kind.api_version:
            mine = entry
            break
    others = after_loss(managers if mine is None else tuple([m for m in managers if m is not mine]), change, across)
    owned = NOTHING if mine is None else mine.fields
    owned = union(difference(owned, removed) if removed else owned, changed)
    if not owned:
        return others
    if mine is not None and not changed:
        mine = mine if owned is mine.fields else mine._replace(fields=owned)
        return (*others, mine)
    out = (*others, Manager(name, "Update", subresource, kind.api_version, time, owned))
    return out if len(out) <= MAX_UPDATERS else _capped(kind, out)


def _capped(kind: Kind, managers: tuple[Manager, ...]) -> tuple[Manager, ...]:
    """At most `MAX_UPDATERS` update entries: the oldest become one, with the time of the newest of them."""
    updaters = sorted((m for m in managers if m.operation == "Update"), key=lambda m: (m.time, m.name, m.subresource))
    oldest = updaters[: max(0, len(updaters) - MAX_UPDATERS + 1)]
    if len(oldest) < 2:
        return managers
    merged = NOTHING
    for entry in oldest:
        merged = union(merged, entry.fields)
    ancient = Manager(ANCIENT, "Update", "", kind.api_version, oldest[-1].time, merged)
    return (ancient, *[m for m in managers if all(m is not gone for gone in oldest)])
