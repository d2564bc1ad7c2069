"""Taking a body in: the parts of an object that a client sent, frozen, checked, complete with defaults and valid."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

import orjson

from steersman.api import advice, defaults, errors, go_json, preconditions, validate
from steersman.api.by import By
from steersman.api.crd.faults import NEW
from steersman.api.explain import Finding, explain, explain_custom
from steersman.api.intake import Misfit, Trace, field_schema, intake
from steersman.api.kinds import Kind
from steersman.api.known import Known, share
from steersman.api.managed import OPEN_META
from steersman.api.schema import Schema
from steersman.api.skeleton import status_like_others
from steersman.kernel.fieldset import FieldSet
from steersman.kernel.object import Section
from steersman.kernel.value import EMPTY, Frozen, freeze

WRONG_TYPE: Final = errors.Cause.type_invalid("", "", "").reason
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
    return _judged(kind, part, taken, name, by)


def _judged(kind: Kind, part: str, taken: Any, name: str, by: By) -> Any:
    """A part that was taken in and is complete, if it is valid. Raises `ApiError` 422."""
    causes = validate.part(kind, part, taken) if by.judge else None
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
    elif part == "status" and not kind.custom and (section := _status_like_others(kind, value, name, by)) is not None:
        return section
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


def _status_like_others(kind: Kind, value: Any, name: str, by: By) -> Section | None:
    """The section of a status that is built like others before; None: it is not."""
    schema = kind.schema.fields.get("status")
    like = None if schema is None else status_like_others(schema, value)
    if like is None:
        return None
    taken, shape = like
    filled = defaults.fill(kind, "status", taken, True)
    section = encode(kind, name, "status", Section(_judged(kind, "status", filled, name, by)))
    if by.judge:
        section.valid = kind.schema
        section.shape = shape if filled is taken else None
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
    if spec is not None and kind.gk in defaults.TIMED:
        spec = _timed(kind, spec, name, by)
    state = body.get("status")
    taken_status = take_section(kind, "status", state, name, by, warnings) if status and state is not None else None
    return Parts(spec, encode(kind, name, "", Section(Frozen(rest))) if rest else None, taken_status)


def _timed(kind: Kind, spec: Section, name: str, by: By) -> Section:
    """The spec with the times that nobody set: now."""
    value = defaults.TIMED[kind.gk](spec.value, by.time)
    return spec if value is spec.value else encode(kind, name, "spec", Section(value))


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
