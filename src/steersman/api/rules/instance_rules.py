"""What holds for objects of custom kinds beside their schema: names, scale, finalizers.

Source of the facts: apiextensions-apiserver 0.36, pkg/registry/customresource/validator.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman.api import errors
from steersman.api.crd.custom import ScalePaths
from steersman.api.crd.faults import faults
from steersman.api.errors import Cause
from steersman.api.kinds import Kind
from steersman.api.rules.metadata_rules import STANDARD_FINALIZERS
from steersman.api.rules.rules import MAX_INT32, qualified_name
from steersman.kernel.object import Object


def judge(kind: Kind, old: Object | None, new: Object) -> None:
    """Raises `ApiError` 422 for a new version that is not valid."""
    causes: list[Cause] = []
    if old is None:
        limits = kind.schema.fields["metadata"].fields["name"]
        causes += faults(limits, new.key.name, "metadata.name")
    scale = None if kind.origin is None else kind.origin.scale
    if scale is not None and (old is None or new.spec is not old.spec or new.status is not old.status):
        causes += _scale(scale, new.value)
    if causes:
        raise errors.invalid(kind.kind, new.key.name, causes, kind.group)


def warnings(old: Object | None, new: Object) -> tuple[str, ...]:
    """What a writer is told of finalizers that the object did not have."""
    given = new.meta.value.get("finalizers")
    if not given:
        return ()
    before = () if old is None else old.meta.value.get("finalizers") or ()
    told = []
    for text in sorted(set(given) - set(before)):
        told += [f'metadata.finalizers: "{text}": {problem}' for problem in qualified_name(text)]
        if "/" in text or text in STANDARD_FINALIZERS:
            continue
        path = " including a path (/)" if "." in text else ""
        told.append(
            f'metadata.finalizers: "{text}": prefer a domain-qualified finalizer name{path} to avoid accidental '
            "conflicts with other finalizer writers"
        )
    return tuple(told)


def _scale(paths: ScalePaths, value: Mapping[str, Any]) -> list[Cause]:
    """The numbers and the selector that the scale subresource shows."""
    causes = []
    for path in (paths.replicas, paths.status_replicas):
        field, (found, problem) = "." + ".".join(path), _nested(value, path, int, "int64")
        if problem:
            causes.append(Cause.invalid(field, 0, problem))
        elif found is not None and found < 0:
            causes.append(Cause.invalid(field, found, "should be a non-negative integer"))
        elif found is not None and found > MAX_INT32:
            causes.append(Cause.invalid(field, found, f"should be less than or equal to {MAX_INT32}"))
    if paths.selector:
        _, problem = _nested(value, paths.selector, str, "string")
        if problem:
            causes.append(Cause.invalid("." + ".".join(paths.selector), "", problem))
    return causes


def _nested(value: Any, path: tuple[str, ...], wanted: type, name: str) -> tuple[Any, str]:
    """The value at a path of field names, None where there is none; and why it cannot be read."""
    at = ""

    def misread(expected: str) -> tuple[None, str]:
        return None, f"{at} accessor error: {errors.show(value)} is of the type {_go(value)}, expected {expected}"

    for field in path:
        at += f".{field}"
        if not isinstance(value, dict):
            return misread("map[string]interface {}")
        if field not in value:
            return None, ""
        value = value[field]
    return (value, "") if type(value) is wanted else misread(name)


def _go(value: Any) -> str:
    """The Go type that a JSON value is read as."""
    if isinstance(value, dict):
        return "map[string]interface {}"
    names = {bool: "bool", int: "int64", float: "float64", str: "string", type(None): "<nil>"}
    return "[]interface {}" if isinstance(value, list) else names.get(type(value), "string")
