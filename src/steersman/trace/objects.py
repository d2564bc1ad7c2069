"""The shape every recorded object has: checked once, where it enters."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from steersman.trace.gvk import GVK
from steersman.trace.limits import MAX_DEPTH, MAX_KIND_LENGTH, MAX_NAME_LENGTH, MAX_STRING_BYTES

MAX_FIELD_LENGTH = 500  # of a field's path in an error: enough to find it, short enough to read


class ObjectError(ValueError):
    """An object of the wrong shape: `field` as a dotted path, `problem` in words."""

    def __init__(self, field: str, problem: str) -> None:
        self.field, self.problem = field, problem
        super().__init__(f"{field}: {problem}" if field else problem)


def check_object(obj: Any) -> int:
    """Raise ObjectError unless `obj` is a Kubernetes object in JSON; returns its number of values."""
    if type(obj) is not dict:
        raise ObjectError("", f"expected an object, found {kind_of(obj)}")
    count = _check_json(obj)
    for key in ("apiVersion", "kind", "metadata"):
        if key not in obj:
            raise ObjectError(key, "is missing")
    try:
        gvk = GVK.of(obj)
    except ValueError as error:
        raise ObjectError("apiVersion", str(error)) from None
    if len(str(gvk)) > MAX_KIND_LENGTH:
        raise ObjectError("kind", f"apiVersion and kind are longer than {MAX_KIND_LENGTH} characters")
    _check_metadata(_typed(obj, "metadata", dict, "metadata"))
    for section in ("spec", "status"):
        if obj.get(section) is not None:
            _typed(obj, section, dict, section)
    return count


def describe(obj: Any) -> str:
    """` (apps/v1.Deployment dsb/jaeger)` as far as the object says, for error messages."""
    if not isinstance(obj, dict):
        return ""
    metadata = obj.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    kind = ".".join(str(obj.get(key, "?"))[:MAX_NAME_LENGTH] for key in ("apiVersion", "kind"))
    parts = [str(metadata[key])[:MAX_NAME_LENGTH] for key in ("namespace", "name") if metadata.get(key)]
    return f" ({kind} {'/'.join(parts) or 'without a name'})"


def kind_of(value: Any) -> str:
    """JSON's word for the type of `value`."""
    words = {dict: "a map", list: "an array", str: "a string", bool: "a boolean", int: "a number"}
    return "null" if value is None else words.get(type(value), f"a {type(value).__name__}")


def _check_metadata(metadata: dict[str, Any]) -> None:
    for key in ("name", "namespace"):
        if key == "namespace" and metadata.get(key) is None:
            continue  # cluster-scoped
        if key not in metadata:
            raise ObjectError(f"metadata.{key}", "is missing")
        text = _typed(metadata, key, str, f"metadata.{key}")
        if not 0 < len(text) <= MAX_NAME_LENGTH or "/" in text:
            raise ObjectError(f"metadata.{key}", f"must be 1 to {MAX_NAME_LENGTH} characters, none of them '/'")
    for key in ("labels", "annotations"):
        for name, value in (_typed(metadata, key, dict, f"metadata.{key}") if metadata.get(key) else {}).items():
            if type(value) is not str:
                raise ObjectError(f"metadata.{key}.{name}", f"expected a string, found {kind_of(value)}")
    owners = (
        _typed(metadata, "ownerReferences", list, "metadata.ownerReferences") if metadata.get("ownerReferences") else []
    )
    for i, owner in enumerate(owners):
        at = f"metadata.ownerReferences[{i}]"
        if type(owner) is not dict:
            raise ObjectError(at, f"expected a map, found {kind_of(owner)}")
        try:
            GVK.of(owner)
        except ValueError as error:
            raise ObjectError(at, str(error)) from None
        _typed(owner, "name", str, f"{at}.name")


def _typed(holder: dict[str, Any], key: str, wanted: type, at: str) -> Any:
    value = holder.get(key)
    if type(value) is not wanted:
        raise ObjectError(at, f"expected {kind_of(wanted())}, found {kind_of(value)}")
    return value


def _check_json(value: Any, depth: int = 0) -> int:
    """Number of values in `value`; ObjectError for anything JSON does not have, or too deep."""
    kind = type(value)
    if kind is dict:
        steps: Iterable[tuple[Any, Any]] = value.items()
    elif kind is list:
        steps = enumerate(value)
    else:
        _check_leaf(value, kind)
        return 1
    if depth == MAX_DEPTH:
        raise ObjectError("", f"nested deeper than {MAX_DEPTH} levels")
    count = 1
    for step, item in steps:
        if kind is dict and type(step) is not str:
            raise ObjectError("", f"a key must be a string, found {kind_of(step)}")
        try:
            count += _check_json(item, depth + 1)
        except ObjectError as error:
            here = step[:MAX_NAME_LENGTH] if kind is dict else f"[{step}]"
            mark = "." if error.field and not error.field.startswith("[") else ""
            raise ObjectError(f"{here}{mark}{error.field}"[:MAX_FIELD_LENGTH], error.problem) from None
    return count


def _check_leaf(value: Any, kind: type) -> None:
    if kind is str:
        if len(value) > MAX_STRING_BYTES:
            raise ObjectError("", f"the string is longer than {MAX_STRING_BYTES} bytes")
        if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
            raise ObjectError("", "the string holds half a character (a lone surrogate)")
    elif kind is int:
        if not -(2**63) <= value < 2**64:
            raise ObjectError("", "the number does not fit into 64 bits")
    elif kind is float:
        if not math.isfinite(value):
            raise ObjectError("", f"{value} is not a JSON number")
    elif kind is not bool and value is not None:
        raise ObjectError("", f"JSON has no such value: {kind_of(value)}")
