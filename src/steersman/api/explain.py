"""Explain: everything that is wrong with a value that intake refused, in Kubernetes' words, with paths.

The slow road beside `steersman.api.intake`: it walks the whole value, goes on after each fault, and gives the value
back without the fields that the schema does not declare.
"""

from __future__ import annotations

from typing import Any, Final

from steersman.api.errors import Cause
from steersman.api.intake import Misfit, constrained, has_fields, intake, violations
from steersman.api.schema import Schema
from steersman.kernel.value import MAX_DEPTH, ValueRefused, freeze

MAX_CAUSES: Final = 32
"""Causes listed in one error: enough to mend a manifest in one go, bounded for hostile input."""
MAX_NAME: Final = 256
"""Characters of a field name that an error repeats."""


class Finding:
    """What `explain` found: the causes of refusal, the paths of undeclared fields, and the value without them."""

    __slots__ = ("causes", "unknown")

    def __init__(self) -> None:
        self.causes: list[Cause] = []
        self.unknown: list[str] = []

    def wrong_type(self, path: str, value: Any, wanted: str) -> None:
        """A value of the wrong type."""
        self.add(Cause.type_invalid(path, value, f"must be {wanted}"))

    def add(self, cause: Cause) -> None:
        """One more cause, up to `MAX_CAUSES`."""
        if len(self.causes) < MAX_CAUSES:
            self.causes.append(cause)


def explain(schema: Schema, value: Any, path: str, finding: Finding, required: bool, custom: bool = False) -> Any:
    """Walks a value that `intake` refused: adds all that is wrong to `finding`; the value without undeclared fields."""
    return _explain(schema, value, path, finding, (required, custom), 0)


def _explain(schema: Schema, value: Any, path: str, found: Finding, mode: tuple[bool, bool], depth: int) -> Any:
    if value is None:
        return None
    if depth > MAX_DEPTH:
        found.add(Cause.invalid(path, "...", f"nested deeper than {MAX_DEPTH} levels"))
        return None
    kind = schema.type
    if kind == "object" and has_fields(schema, mode[1]):
        value = _explain_object(schema, value, path, found, mode, depth)
    elif kind in ("map", "object"):
        value = _explain_map(schema, value, path, found, mode, depth)
    elif kind == "list":
        value = _explain_list(schema, value, path, found, mode, depth)
    elif kind == "any" and not constrained(schema):
        return _explain_any(value, path, found)
    else:
        try:
            intake(schema, *mode)(value)
        except Misfit:
            before = len(found.causes)
            if mode[1]:
                found.causes.extend(violations(schema, value, path))
            if len(found.causes) == before:
                found.wrong_type(path, value, _wanted(schema))
        return value
    if mode[1] and value is not None:
        found.causes.extend(violations(schema, value, path)[: MAX_CAUSES - len(found.causes)])
    return value


def _wanted(schema: Schema) -> str:
    if schema.type == "string" and schema.format == "date-time":
        return "a date-time in RFC 3339 form such as 2026-01-31T12:00:00Z"
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


def _explain_object(schema: Schema, value: Any, path: str, found: Finding, mode: tuple[bool, bool], depth: int) -> Any:
    if not isinstance(value, dict):
        found.wrong_type(path, value, "an object")
        return None
    out: dict[str, Any] = {}
    for name, item in value.items():
        where = f"{path}.{_named(name)}" if path else _named(name)
        child = schema.fields.get(name) if isinstance(name, str) else None
        if child is not None:
            out[name] = _explain(child, item, where, found, mode, depth + 1)
        elif schema.preserve_unknown and isinstance(name, str):
            out[name] = _explain_any(item, where, found)
        elif len(found.unknown) < MAX_CAUSES:
            found.unknown.append(where)
    for name in schema.required if mode[0] else ():
        if out.get(name) is None:
            found.add(Cause.required(f"{path}.{name}" if path else name))
    return out


def _explain_map(schema: Schema, value: Any, path: str, found: Finding, mode: tuple[bool, bool], depth: int) -> Any:
    if not isinstance(value, dict):
        found.wrong_type(path, value, "an object")
        return None
    if schema.values is None:
        return _explain_any(value, path, found)
    out = {}
    for name, item in value.items():
        if isinstance(name, str):
            out[name] = _explain(schema.values, item, f"{path}[{_named(name)}]", found, mode, depth + 1)
        else:
            found.add(Cause.invalid(path, name, "keys must be strings"))
    return out


def _explain_list(schema: Schema, value: Any, path: str, found: Finding, mode: tuple[bool, bool], depth: int) -> Any:
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
            out.append(_explain(schema.items, item, where, found, mode, depth + 1))
    return out


def _explain_any(value: Any, path: str, found: Finding) -> Any:
    """A value that may be anything JSON can hold."""
    try:
        return freeze(value)
    except ValueRefused as refused:
        where = path + (refused.where if refused.where.startswith("[") else f".{refused.where}" * bool(refused.where))
        found.add(Cause.invalid(where, "...", refused.reason))
        return None
