"""Object-local writes: (old version, body, who, schema) → new version. Pure; check memoises them.

Nothing here looks at another object, at the store's revision or at a clock: the caller gives the time, uid and name.
A new version shares every section that did not change, and a write that changes nothing returns the old version.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

import orjson

from steersman.api import (
    advice,
    aliases,
    born,
    defaults,
    errors,
    generation,
    go_json,
    immutable,
    pod_parts,
    preconditions,
    status_part,
    validate,
)
from steersman.api.by import By, Written
from steersman.api.crd import conversion
from steersman.api.crd.faults import NEW
from steersman.api.explain import Finding, Past, explain, explain_custom
from steersman.api.intake import Misfit, Trace, field_schema, intake
from steersman.api.kinds import STATUS_PARTS, Kind
from steersman.api.known import Known, share
from steersman.api.managed import OPEN_META, all_fields, changes, record_update, same_owners
from steersman.api.patching import declared, scaled
from steersman.api.prepare import PREPARED
from steersman.api.schema import Schema
from steersman.api.status_fields import reported
from steersman.kernel.fieldset import LEAF, FieldSet, node, union
from steersman.kernel.object import EMPTY_SECTION, Key, Manager, Object, Section
from steersman.kernel.value import EMPTY, Frozen, freeze

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
WRONG_TYPE: Final = errors.Cause.type_invalid("", "", "").reason
BORN_WITH_STATUS: Final = frozenset({("", "Node")})
"""Kinds that may bring their status when they are created, though they have a subresource for it."""
TOP: Final = frozenset({"apiVersion", "kind", "metadata"})


class Mode(NamedTuple):
    """How a value is taken in."""

    required: bool
    """Whether missing required fields are an error."""
    name: str
    """Of the object, for errors."""
    by: By
    warnings: list[str]
    zeros: bool = False
    """Filling in, on the way, what Kubernetes shows of fields that nobody set."""
    trace: Trace | None = None
    """Is told, on the way, what the field set depends on."""


class Parts(NamedTuple):
    """The sections of a body."""

    spec: Section | None
    rest: Section | None
    status: Section | None


# -- taking a body in ------------------------------------------------------------------------------------------


def refuse(kind: Kind, name: str, finding: Finding, validation: str, warnings: list[str], said: str = "") -> None:
    """Raises what `explain` found, or turns undeclared fields into warnings when they are merely dropped.

    A value of the wrong type cannot be decoded into a built-in kind, which is a 400 there; in a custom kind it breaks
    the schema, a 422. `said`: what Go's decoder would say of the former.
    """
    handled = preconditions.handled(kind)
    wrong = () if kind.custom else [cause for cause in finding.causes if cause.reason == WRONG_TYPE]
    if wrong:
        raise errors.bad_request(f"{handled}: {said or ', '.join([str(cause) for cause in wrong])}")
    if finding.unknown:
        if validation == "Strict":
            listed = ", ".join(f'unknown field "{path}"' for path in finding.unknown)
            raise errors.bad_request(f"{handled}: strict decoding error: {listed}")
        if validation != "Ignore":
            warnings.extend(f'unknown field "{path}"' for path in finding.unknown)
    if finding.causes:
        raise errors.invalid(kind.kind, name, finding.causes, kind.group)


def take_in(kind: Kind, schema: Schema, path: str, value: Any, mode: Mode) -> Any:
    """`value` frozen and checked against `schema`; undeclared fields dropped. Raises `ApiError` 400 or 422."""
    required, name, by, warnings, zeros, trace = mode
    custom = kind.custom and by.judge and not path.startswith("metadata.")
    required = required and by.judge
    take = intake(schema, required, custom, zeros)
    try:
        return take(value) if trace is None else take(value, trace)
    except (Misfit, RecursionError):
        if trace is not None:
            trace.clear()
    finding = Finding()
    old = by.past.part(path) if custom and by.past is not None else NEW
    if custom:
        alone = path == "status" and kind.has_status  # which is then all that is judged
        pruned = explain_custom(schema, value, path, finding, required, old, alone)
    else:
        pruned = explain(schema, value, path, finding, required)
    of_meta = path.startswith("metadata.")
    holder, parent = ("ObjectMeta", kind.schema.fields["metadata"]) if of_meta else (kind.kind, kind.schema)
    said = "" if custom or not finding.causes else go_json.complaint(holder, schema, path, value, parent)
    refuse(kind, name, finding, by.validation, warnings, said)
    try:
        return take(pruned) if trace is None else take(pruned, trace)
    except (Misfit, RecursionError):
        if finding.kept and by.past is not None:
            by.past.kept = True
            return freeze(pruned)
        cause = errors.Cause.invalid(path, "...", "cannot be read; it holds something that is no JSON")
        raise errors.invalid(kind.kind, name, [cause], kind.group) from None


def encode(kind: Kind, name: str, path: str, section: Section) -> Section:
    """The section with its bytes made, so that what JSON cannot hold (half of a surrogate pair) is refused now."""
    try:
        _ = section.raw
    except (orjson.JSONEncodeError, RecursionError) as problem:
        cause = errors.Cause.invalid(path, "...", f"cannot be written as JSON: {problem}")
        raise errors.invalid(kind.kind, name, [cause], kind.group) from None
    return section


def take_part(
    kind: Kind, part: str, value: Any, name: str, by: By, warnings: list[str], trace: Trace | None = None
) -> Any:
    """One top-level field, frozen, complete with defaults and valid. Raises `ApiError` 400 or 422."""
    schema = field_schema(kind.schema, part)
    if schema is None:
        finding = Finding()
        finding.unknown.append(part)
        refuse(kind, name, finding, by.validation, warnings)
        return None
    if part == "data" and (causes := validate.undecoded(kind, value)):
        raise errors.invalid(kind.kind, name, causes, kind.group)
    required = kind.custom or part != "status"
    try:
        taken = take_in(kind, schema, part, value, Mode(required, name, by, warnings, not required, trace))
    except errors.Invalid as missing:
        if kind.gk not in go_json.ZERO_IS_VALID or not required or not isinstance(value, dict):
            raise _of_zeros(kind, part, value, name, by) or missing from None
        filled = go_json.with_zeros(kind.schema.fields[part], value)
        taken = take_in(kind, schema, part, filled, Mode(False, name, by, warnings))
    if taken is None:
        return None
    filled = defaults.fill(kind, part, taken, not required)
    if filled is not taken:
        taken = filled
        if trace is not None:
            trace.clear()
    if not by.judge:
        return taken
    causes = validate.part(kind, part, taken)
    if causes:
        raise errors.invalid(kind.kind, name, causes, kind.group)
    return taken


def _of_zeros(kind: Kind, part: str, value: Any, name: str, by: By) -> errors.ApiError | None:
    """What validation says of a part that lacks required fields: to kube-apiserver they are zero. None: nothing."""
    if kind.custom or not by.judge:
        return None
    schema = kind.schema.fields[part]
    taken = take_in(kind, schema, part, go_json.with_zeros(schema, value), Mode(False, name, by, []))
    causes = validate.part(kind, part, defaults.fill(kind, part, taken))
    return errors.invalid(kind.kind, name, causes, kind.group) if causes else None


def take_section(kind: Kind, part: str, value: Any, name: str, by: By, warnings: list[str]) -> Section | None:
    """The section of a `spec` or `status`. A frozen value that was taken in before costs one look."""
    if type(value) is Frozen and part == "spec":
        mark = getattr(value, "mark", None)
        if mark is not None and mark.valid is kind.schema:
            return mark  # type: ignore[no-any-return]
    known = Known(kind.schema, value) if type(value) is dict and part == "spec" and by.past is None else None
    if known is not None and known.section is not None:
        if by.judge:
            warnings.extend(known.advice)
        return known.section
    told = len(warnings)
    trace: Trace | None = [] if part == "status" and not kind.custom else None
    taken = take_part(kind, part, value, name, by, warnings, trace)
    if taken is None:
        return None
    section = encode(kind, name, part, Section(taken))
    complete = len(warnings) == told and by.validation != "Ignore"  # which tells of nothing it drops
    advised = tuple(advice.of_spec(kind, taken)) if by.judge and part == "spec" else ()
    warnings += advised
    if not by.judge or (by.past is not None and by.past.kept):
        return section
    section.valid = kind.schema
    if trace:
        section.shape = tuple(trace)
    if known is not None and complete:
        known.keep(section, advised)
        if not advised:  # which a program that sends this very value is still to be told
            taken.mark = section
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
            kept = kind.custom or (kind.gk == validate.REVISION and part == "data")
            if taken or not (taken is None or isinstance(taken, (dict, list))) or (taken is not None and kept):
                rest[part] = taken
    given = frozenset(rest)
    for part, value in defaults.missing_parts(kind).items():
        if part == "spec" and spec is None:
            spec = take_section(kind, part, value, name, by, warnings)
        elif part not in ("spec", "status"):
            rest.setdefault(part, value)
    if by.judge and (spec is None or rest or kind.gk in validate.WHOLE):
        _need_parts(kind, rest if spec is None else {**rest, "spec": spec}, name, given)
    if "stringData" in rest and kind.gk == ("", "Secret"):  # write-only: it ends up in data
        rest["data"] = defaults.secret_data(rest.get("data"), rest.pop("stringData"))
        if by.judge and (causes := validate.part(kind, "data", rest["data"])):
            raise errors.invalid(kind.kind, name, causes, kind.group)
    state = body.get("status")
    taken_status = take_section(kind, "status", state, name, by, warnings) if status and state is not None else None
    return Parts(spec, encode(kind, name, "", Section(Frozen(rest))) if rest else None, taken_status)


def _need_parts(kind: Kind, parts: Mapping[str, Any], name: str, given: Collection[str]) -> None:
    """Raises for required parts that are not there; a missing spec is told by the fields it would need.

    `given`: the parts that were sent; others were filled in, and nobody has judged them yet.
    """
    spec = kind.schema.fields.get("spec")
    needs_spec = spec is not None and (spec.required or "spec" in kind.schema.required)
    if needs_spec and "spec" not in parts and not kind.custom:
        take_part(kind, "spec", {}, name, By("", "", "Strict"), [])
    causes: list[errors.Cause] = []
    for part in validate.judged_parts(kind):
        if part not in parts or (part not in given and part != "spec"):
            causes += validate.part(kind, part, None)
    if not causes:
        needed = [part for part in kind.schema.required if part not in TOP and part not in parts]
        if kind.gk in go_json.ZERO_IS_VALID:
            needed = []
        causes = [errors.Cause.required(part) for part in needed if kind.custom or part not in ("spec", "status")]
        causes += validate.whole(kind, name, parts)
    if causes:
        raise errors.invalid(kind.kind, name, causes, kind.group)


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
            path = f"metadata.{field}"
            taken = take_in(kind, schema.fields[field], path, value, Mode(False, name, by, warnings))
            if not taken:
                continue
            if field == "ownerReferences" and len(taken) > 1:
                taken = advice.distinct_owners(taken, warnings)
            if field != "labels":  # whose characters validation knows
                encode(kind, name, path, Section(taken))
            out[field] = share(taken) if field in ("labels", "ownerReferences") else taken
        elif field not in schema.fields:
            finding = Finding()
            finding.unknown.append(f"metadata.{field}")
            refuse(kind, name, finding, by.validation, warnings)
    extra = defaults.extra_labels(kind, name)
    if extra:
        out["labels"] = Frozen({**out.get("labels", EMPTY), **extra})
    return out


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
        version, owned = by.served, aliases.told(owned)
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
    across = aliases.across(kind, old, new) if kind.gk == aliases.EVENT else conversion.across(kind, old, new)
    if status_only and across is None and new.meta is old.meta:
        entries = reported(kind, old, new, by.manager, by.time)
        if entries is not None:
            new.managers = entries
            return Written(new, tuple(warnings))
    change = changes(kind, old, new)
    managers = record_update(kind, managers, change, by.manager, by.told, by.since, across)
    new.managers = scaled.after(kind, managers) if by.part else managers
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
