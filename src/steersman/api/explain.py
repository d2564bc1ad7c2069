"""Explain: everything that is wrong with a value that intake refused, in Kubernetes' words, with paths.

The slow road beside `steersman.api.intake`: it walks the whole value, goes on after each fault, and gives the value
back without the fields that the schema does not declare.
"""

from __future__ import annotations

from typing import Any, Final

from steersman.api.crd.constraints import constrained, fits
from steersman.api.crd.faults import MAX_CAUSES, NEW, counterpart, faults, same, within
from steersman.api.crd.pruning import prune
from steersman.api.errors import Cause
from steersman.api.intake import Misfit, has_fields, intake
from steersman.api.schema import Schema
from steersman.kernel.object import Object
from steersman.kernel.value import MAX_DEPTH, ValueRefused, freeze

MISSING: Final = Cause.required("").reason
MAX_NAME: Final = 256
"""Characters of a field name that an error repeats."""


class Finding:
    """What `explain` found: the causes of refusal and the paths of undeclared fields."""

    __slots__ = ("causes", "kept", "unknown")

    def __init__(self) -> None:
        self.causes: list[Cause] = []
        self.unknown: list[str] = []
        self.kept = False
        """Parts that did not change were let pass without a look."""

    def wrong_type(self, path: str, value: Any, wanted: str) -> None:
        """A value of the wrong type."""
        self.add(Cause.type_invalid(path, value, f"must be {wanted}"))

    def add(self, cause: Cause) -> None:
        """One more cause, up to `MAX_CAUSES`."""
        if len(self.causes) < MAX_CAUSES:
            self.causes.append(cause)


class Past:
    """What an object of a custom kind was before an update: what did not change is not judged again."""

    __slots__ = ("kept", "old")

    def __init__(self, old: Object) -> None:
        self.old = old
        self.kept = False
        """Something was not judged again: what comes of it must not count as valid."""

    def part(self, path: str) -> Any:
        """The old value of a top-level field."""
        if path == "spec":
            return NEW if self.old.spec is None else self.old.spec.value
        if path == "status":
            return NEW if self.old.status is None else self.old.status.value
        return NEW if self.old.rest is None else self.old.rest.value.get(path, NEW)


def explain(schema: Schema, value: Any, path: str, finding: Finding, required: bool) -> Any:
    """Walks a value that `intake` refused: adds all that is wrong to `finding`; the value without undeclared fields."""
    return _explain(schema, value, path, finding, (required, False), 0, NEW)


def explain_custom(
    schema: Schema, value: Any, path: str, finding: Finding, required: bool, old: Any = NEW, alone: bool = False
) -> Any:
    """The same of a custom kind, whose schema asks for more.

    Args:
        old: the value before an update. Parts that equal it are not judged again, so that a schema may become
            stricter under the objects there are ("validation ratcheting" in the Kubernetes documentation).
        alone: the value is judged by itself: messages do not begin with `path`, as fields do.
    """
    found = Finding()
    pruned = _explain(schema, value, path, found, (required, True), 0, old)
    finding.unknown += found.unknown
    finding.kept = finding.kept or found.kept
    if found.causes:
        named = faults(schema, value, "" if alone else path, path if alone else "", old)
        named = [cause for cause in named if required or cause.reason != MISSING]
        finding.causes += named or found.causes  # the latter of what is no JSON
    return pruned


def _explain(
    schema: Schema, value: Any, path: str, found: Finding, mode: tuple[bool, bool], depth: int, old: Any
) -> Any:
    if value is None:
        return None
    if depth > MAX_DEPTH:
        found.add(Cause.invalid(path, "...", f"nested deeper than {MAX_DEPTH} levels"))
        return None
    if old is not NEW and same(old, value):
        found.kept = True
        return prune(schema, freeze(value))
    kind = schema.type
    if kind == "object" and has_fields(schema, mode[1]):
        value = _explain_object(schema, value, path, found, mode, depth, old)
    elif kind in ("map", "object"):
        value = _explain_map(schema, value, path, found, mode, depth, old)
    elif kind == "list":
        value = _explain_list(schema, value, path, found, mode, depth, old)
    elif kind == "any" and not constrained(schema):
        return _explain_any(value, path, found)
    else:
        try:
            intake(schema, *mode)(value)
        except Misfit:
            found.wrong_type(path, value, _wanted(schema))
        return value
    if mode[1] and value is not None and not fits(schema, value):
        found.wrong_type(path, value, "within the limits of its schema")
    return value


def _wanted(schema: Schema) -> str:
    if schema.type == "string" and schema.format == "date-time":
        return "a date-time in RFC 3339 form such as 2026-01-31T12:00:00Z"
    if schema.type == "string" and schema.format == "byte":
        return "text in base64"
    if schema.type == "quantity":
        return "a quantity such as 500m, 2 or 1Gi"
    if schema.type == "integer" and schema.format == "int32":
        return "an integer of 32 bits"
    return {"integer": "an integer", "int-or-string": "an integer or a string", "any": "a JSON value"}.get(
        schema.type, f"a {schema.type}"
    )


def _named(name: Any) -> str:
    """A field name as it can stand in an error, whatever it is."""
    return str(name)[:MAX_NAME].encode("utf-8", "backslashreplace").decode()


def _explain_object(
    schema: Schema, value: Any, path: str, found: Finding, mode: tuple[bool, bool], depth: int, old: Any
) -> Any:
    if not isinstance(value, dict):
        found.wrong_type(path, value, "an object")
        return None
    out: dict[str, Any] = {}
    for name, item in value.items():
        where = f"{path}.{_named(name)}" if path else _named(name)
        child = schema.fields.get(name) if isinstance(name, str) else None
        if item is None and mode[1] and child is not None and not child.nullable:
            continue  # intake drops it, too
        if child is not None:
            out[name] = _explain(child, item, where, found, mode, depth + 1, within(old, name))
        elif schema.preserve_unknown and isinstance(name, str):
            out[name] = _explain_any(item, where, found)
        elif len(found.unknown) < MAX_CAUSES:
            found.unknown.append(where)
    for name in schema.required if mode[0] else ():
        if out.get(name) is None:
            found.add(Cause.required(f"{path}.{name}" if path else name))
    return out


def _explain_map(
    schema: Schema, value: Any, path: str, found: Finding, mode: tuple[bool, bool], depth: int, old: Any
) -> Any:
    if not isinstance(value, dict):
        found.wrong_type(path, value, "an object")
        return None
    if schema.values is None:
        return _explain_any(value, path, found)
    out = {}
    for name, item in value.items():
        if isinstance(name, str):
            at = f"{path}[{_named(name)}]"
            out[name] = _explain(schema.values, item, at, found, mode, depth + 1, within(old, name))
        else:
            found.add(Cause.invalid(path, name, "keys must be strings"))
    return out


def _explain_list(
    schema: Schema, value: Any, path: str, found: Finding, mode: tuple[bool, bool], depth: int, old: Any
) -> Any:
    if not isinstance(value, list):
        found.wrong_type(path, value, "an array")
        return None
    if schema.items is None:
        return _explain_any(value, path, found)
    out = []
    for index, item in enumerate(value):
        where = f"{path}[{index}]"
        if item is None and not (mode[1] and schema.items.nullable):
            found.wrong_type(where, item, _wanted(schema.items))
        else:
            out.append(_explain(schema.items, item, where, found, mode, depth + 1, counterpart(schema, old, item)))
    return out


def _explain_any(value: Any, path: str, found: Finding) -> Any:
    """A value that may be anything JSON can hold."""
    try:
        return freeze(value)
    except ValueRefused as refused:
        where = path + (refused.where if refused.where.startswith("[") else f".{refused.where}" * bool(refused.where))
        found.add(Cause.invalid(where, "...", refused.reason))
        return None
