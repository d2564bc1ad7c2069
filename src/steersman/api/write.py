"""Object-local writes: (old version, body, who, schema) → new version. Pure; check memoises them.

Nothing here looks at another object, at the store's revision or at a clock: the caller gives the time, uid and name.
A new version shares every section that did not change, and a write that changes nothing returns the old version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from steersman.api import (
    advice,
    aliases,
    born,
    defaults,
    errors,
    generation,
    immutable,
    pod_parts,
    status_part,
    validate,
)
from steersman.api.by import By, Written
from steersman.api.crd import conversion
from steersman.api.explain import Past
from steersman.api.kinds import STATUS_PARTS, Kind
from steersman.api.managed import all_fields, changes, record_update, same_owners
from steersman.api.patching import declared, scaled
from steersman.api.prepare import PREPARED
from steersman.api.status_fields import reported
from steersman.api.taking import open_meta, take_part, take_parts, take_section
from steersman.kernel.fieldset import LEAF, node, union
from steersman.kernel.object import EMPTY_SECTION, Key, Manager, Object, Section
from steersman.kernel.value import EMPTY, Frozen

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
NODE_NAME: Final = node({"f:spec": node({"f:nodeName": LEAF})})
BORN_WITH_STATUS: Final = frozenset({("", "Node")})
"""Kinds that may bring their status when they are created, though they have a subresource for it."""


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
    parts = take_parts(kind, body, key.name, by, warnings, status=not kind.has_status or kind.gk in BORN_WITH_STATUS)
    if parts.spec is not None:
        born.complete_meta(kind, meta, parts.spec.value, None)
    if generation.born(kind, parts.spec):
        meta["generation"] = 1
    elif type(given.get("generation")) is int and given["generation"]:  # nobody counts it: it stays as it was sent
        meta["generation"] = given["generation"]
    spec, node_name = born.split_node_name(kind, parts.spec)
    obj = Object(key, kind.api_version, 0, Section(Frozen(meta)), spec, parts.rest, parts.status, (), node_name)
    owned = all_fields(kind, obj, status=not kind.has_status)
    if node_name:
        owned = union(owned, NODE_NAME)
    judged = parts.spec
    prepare = PREPARED.get(kind.gk)
    if prepare is not None and judged is not None:
        obj.spec = judged = Section(prepare(meta, judged.value))
        obj.meta = Section(Frozen(meta))
    causes = validate.metadata(kind, meta)
    if kind.gk in validate.TOGETHER:
        between = validate.together(kind, meta, obj)
        causes = between if between and kind.gk in validate.METADATA_LAST else causes + between
    if judged is not None and judged.born is None:  # else an object of this very spec was created before
        causes = causes + validate.on_create(kind, "spec", judged.value)
    if causes and by.judge:
        raise errors.invalid(kind.kind, key.name, causes, kind.group)
    version = kind.api_version
    if by.served:
        version, owned = by.served, aliases.owned(kind, obj, owned, by.served)
    obj.managers = (Manager(by.manager, "Update", "", version, by.time, owned),) if owned else ()
    if obj.status is None:
        obj.status = born.initial_status(kind, obj.spec, by.time)
    if by.judge and (told := advice.of_meta(kind, meta, obj.spec_value)):
        warnings = [text for text in warnings if type(text) is str] + [*told] + _advice(warnings)
    return Written(obj, tuple(warnings))


def _advice(warnings: list[str]) -> list[str]:
    return [text for text in warnings if type(text) is advice.Advice]


def update(kind: Kind, old: Object, body: Mapping[str, Any], by: By) -> Written:
    """The version after a PUT of `body`, to the object or to its status. Raises `ApiError` (400, 422)."""
    warnings: list[str] = []
    asked: Object | None = None
    if kind.custom:
        by = by._replace(past=Past(old))
    if by.subresource in STATUS_PARTS:
        new = _with_status(kind, old, body, by, warnings)
    elif by.subresource == "finalize":
        new = _with_finalizers(kind, old, body, by, warnings)
    elif by.subresource in pod_parts.PARTS:
        new, asked = _with_pod_part(kind, old, body, by, warnings)
    else:
        new = _with_body(kind, old, body, by, warnings)
    if warnings and (new.spec is old.spec or kind.gk == pod_parts.POD):  # advice was given when the spec came
        warnings = [text for text in warnings if type(text) is str]
    status_only = by.subresource == "status"
    managers = old.managers
    if not by.subresource:
        sent = (body.get("metadata") or EMPTY).get("managedFields")
        if sent is not None:
            managers = declared.entries(sent, managers, by.time)
    if asked is not None:
        taken = changes(kind, old, asked)
        managers = record_update(kind, managers, taken, by.manager, by.told, by.since) if managers else managers
    if new is old or (not status_only and new.same_content(old)):
        if by.part:
            managers = scaled.after(kind, managers)
        unchanged = managers is old.managers or same_owners(managers, old.managers)
        return Written(old if unchanged else old.replace(managers=managers, rv=0), tuple(warnings))
    if not managers or asked is not None or (by.part and not scaled.owned(kind, managers)):
        new.managers = managers  # nobody is on record, so nobody is put there before the first apply
        return Written(new, tuple(warnings))
    across = conversion.across(kind, old, new) if kind.custom else aliases.across(kind, old, new, by.served)
    event = kind.gk == aliases.EVENT
    if event:
        managers = aliases.known(kind, managers, by.served)
    if status_only and across is None and new.meta is old.meta:
        entries = reported(kind, old, new, by.manager, by.time)
        if entries is not None:
            new.managers = entries
            return Written(new, tuple(warnings))
    noted, change = kind, changes(kind, old, new)
    if across is not None and by.served:
        noted = aliases.first_version(kind)
        change = across(by.served) or change
    managers = record_update(noted, managers, change, by.manager, by.told, by.since, across)
    new.managers = scaled.after(kind, managers) if by.part else managers
    if event:
        new.managers = aliases.noted(managers, by.served)
    return Written(new, tuple(warnings))


def _with_status(kind: Kind, old: Object, body: Mapping[str, Any], by: By, warnings: list[str]) -> Object:
    value = body.get("status")
    if value is None and not kind.custom:
        value = defaults.missing_parts(kind).get("status")
    standing = old.standing
    value = status_part.prepared(kind, old.status, value, by.time, standing is None or standing.observed)
    section = None if value is None else take_section(kind, "status", value, old.key.name, by, warnings)
    section, given = _keep(old.status, section), body.get("metadata")
    if section is not None and section is not old.status and kind.gk in status_part.WITH_SPEC:
        wrong = status_part.causes(kind, old, section.value)
        if wrong and by.judge:
            raise errors.invalid(kind.kind, old.key.name, wrong, kind.group)
    meta = old.meta if given is None else _status_meta(kind, old, given, by, warnings)
    if section is old.status and meta is old.meta:
        return old
    return Object(old.key, old.api_version, 0, meta, old.spec, old.rest, section, old.managers, old.node)


def _status_meta(kind: Kind, old: Object, given: Mapping[str, Any], by: By, warnings: list[str]) -> Section:
    """The metadata after a write to the status."""
    before = old.meta.value
    if not status_part.changes_meta(kind, before, given):
        return old.meta
    taken = status_part.taken_meta(kind)
    meta = {field: item for field, item in before.items() if field not in taken}
    opened = open_meta(kind, {field: given[field] for field in taken if field in given}, old.key.name, by, warnings)
    meta.update({field: item for field, item in opened.items() if field in taken})
    causes = validate.metadata(kind, meta) + immutable.meta_causes(kind, old, given, meta)
    if causes and by.judge:
        raise errors.invalid(kind.kind, old.key.name, causes, kind.group)
    return _keep(old.meta, Section(Frozen(meta))) or old.meta


def _with_finalizers(kind: Kind, old: Object, body: Mapping[str, Any], by: By, warnings: list[str]) -> Object:
    """A namespace's spec.finalizers, which only its `finalize` subresource writes."""
    given = body.get("spec") or EMPTY
    section = take_section(kind, "spec", given, old.key.name, by, warnings)
    if isinstance(given, dict) and not given.get("finalizers"):  # none is what they all work towards: no default here
        section = EMPTY_SECTION
    return old.replace(spec=_keep(old.spec, section), rv=0)


def _with_pod_part(
    kind: Kind, old: Object, body: Mapping[str, Any], by: By, warnings: list[str]
) -> tuple[Object, Object]:
    """What the ephemeralcontainers or the resize of a pod makes of it, and the pod as it was asked for: who asks for
    more than the subresource changes owns that, too."""
    name = old.key.name
    given = take_part(kind, "spec", body.get("spec") or EMPTY, name, by._replace(judge=False), warnings)
    value, causes = pod_parts.revised(by.subresource, old, given)
    if causes and by.judge:
        raise errors.invalid(kind.kind, name, causes, kind.group)
    spec = _keep(old.spec, take_section(kind, "spec", value, name, by, warnings))
    sent, node_name = born.split_node_name(kind, Section(given))
    asked = old.replace(spec=_keep(old.spec, sent), node=node_name, rv=0)
    if spec is old.spec:
        return old, asked
    meta = {**old.meta.value, "generation": old.meta.value.get("generation", 0) + 1}
    return old.replace(spec=spec, meta=Section(Frozen(meta)), rv=0), asked


def _with_body(kind: Kind, old: Object, body: Mapping[str, Any], by: By, warnings: list[str]) -> Object:
    name = old.key.name
    given: Mapping[str, Any] = body.get("metadata") or EMPTY
    parts = take_parts(kind, body, name, by, warnings, status=not kind.has_status)
    spec, node_name = born.split_node_name(kind, parts.spec)
    spec = old.spec if kind.gk == ("", "Namespace") else _keep(old.spec, spec)
    rest = _keep(old.rest, parts.rest)
    meta = {field: old.meta.value[field] for field in SYSTEM_META if field in old.meta.value}
    meta.update(open_meta(kind, given, name, by, warnings))
    if spec is not None:
        born.complete_meta(kind, meta, spec.value, old)
    causes = validate.metadata(kind, meta)
    causes += immutable.meta_causes(kind, old, given, meta, old.replace(spec=spec, rest=rest))
    causes += immutable.part_causes(kind, old, spec, node_name, rest)
    if causes and by.judge:
        raise errors.invalid(kind.kind, name, causes, kind.group)
    status = old.status if kind.has_status else _keep(old.status, parts.status)
    respecified = spec is not old.spec or node_name != old.node
    generation.count(kind, meta, old, respecified, rest is not old.rest, status is not old.status)
    section = Section(Frozen(meta))
    if section.digest == old.meta.digest:
        section = old.meta
    return old.replace(meta=section, spec=spec, rest=rest, status=status, node=node_name, rv=0)


def _keep(old: Section | None, new: Section | None) -> Section | None:
    return old if old is not None and new is not None and old.digest == new.digest else new
