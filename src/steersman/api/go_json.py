"""JSON as Go's decoder sees it: its words for a value of the wrong type, and the zero values of what is not there.

kube-apiserver decodes built-in kinds into Go structs. A value of another JSON type ends that, with a message that names
the struct, the path without indexes, and the Go type; a field that is left out is zero, and validation judges it so.

Source of the facts: Go's encoding/json (UnmarshalTypeError), apimachinery `pkg/api/resource` and `pkg/apis/meta/v1`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from steersman.api import go_time, quantity
from steersman.api.schema import MICRO_TIME, Schema
from steersman.api.structs import told_type
from steersman.kernel.value import MAX_DEPTH

OBJECT: Final = "map[string]interface {}"
"""A JSON object, as Go names its type."""
NUMBERS: Final = {"int32": "int32", "int64": "int64", "float": "float32", "double": "float64"}
QUANTITY: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
ZERO_IS_VALID: Final = frozenset(
    {
        ("", "Event"),
        ("", "LimitRange"),
        ("apps", "ControllerRevision"),
        ("certificates.k8s.io", "CertificateSigningRequest"),
        ("resource.k8s.io", "ResourceClaimTemplate"),
        ("storage.k8s.io", "CSINode"),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
    }
)
"""Kinds whose required fields may be left out after all: validation says nothing of their zero values, or says it only
once it has the whole object."""
BASE64: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
POINTERS: Final = frozenset({"LabelSelector"})
"""Structs that are required and yet pointers: left out, they are nil, not zero."""


def complaint(holder: str, schema: Schema, path: str, value: Any, parent: Schema | None = None) -> str:
    """What Go says of the first value of the wrong type, in the order of the document; "" when it finds none.

    `holder`: the name of the struct that has `value` as its field `path`; `parent`: its schema.
    """
    named = "" if parent is None else told_type(parent, path.rpartition(".")[2])
    return _complaint(holder, schema, path, value, named, 0)


def _complaint(holder: str, schema: Schema, path: str, value: Any, named: str, depth: int) -> str:
    """`named`: the Go type, where it does not follow from the schema."""
    if value is None or depth > MAX_DEPTH:
        return ""
    kind = schema.type
    if kind == "object" and schema.fields:
        if not isinstance(value, dict):
            return _unmarshal(holder, path, value, schema, named)
        name = _short(schema) or holder
        return _first(
            _complaint(name, schema.fields[field], f"{path}.{field}", item, told_type(schema, field), depth + 1)
            for field, item in value.items()
            if field in schema.fields
        )
    if kind in ("object", "map"):
        if not isinstance(value, dict):
            return _unmarshal(holder, path, value, schema, named)
        inner, each = schema.values, named.removeprefix("map[string]") if named.startswith("map") else ""
        return (
            "" if inner is None else _first(_complaint(holder, inner, path, x, each, depth + 1) for x in value.values())
        )
    if kind == "list":
        if not isinstance(value, list):
            return _unmarshal(holder, path, value, schema, named)
        inner, each = schema.items, named.removeprefix("[]") if named.startswith("[]") else ""
        return "" if inner is None else _first(_complaint(holder, inner, path, item, each, depth + 1) for item in value)
    return _scalar(holder, schema, path, value, named)


def _in_range(schema: Schema, value: int) -> bool:
    bound = 1 << (31 if schema.format == "int32" else 63)
    return -bound <= value < bound


def _first(found: Any) -> str:
    return next((text for text in found if text), "")


def _scalar(holder: str, schema: Schema, path: str, value: Any, named: str) -> str:
    kind = schema.type
    if kind == "string" and schema.format == "byte" and isinstance(value, str):
        return _illegal_base64(value)
    if kind == "quantity":
        return "" if _is_quantity(value) else QUANTITY
    if kind == "int-or-string":
        fine = isinstance(value, (str, int)) and not isinstance(value, bool)
        return "" if fine else unmarshal(value, "int32")
    if kind == "string" and schema.format == "date-time":
        if isinstance(value, str):
            return go_time.fault(value, go_time.MICROS if schema.name == MICRO_TIME else go_time.SECONDS)
        return unmarshal(value, "string")
    fits: Mapping[str, bool] = {
        "string": isinstance(value, str),
        "boolean": isinstance(value, bool),
        "integer": isinstance(value, int) and not isinstance(value, bool),
        "number": isinstance(value, (int, float)) and not isinstance(value, bool),
    }
    if kind == "integer" and fits["integer"]:
        return "" if _in_range(schema, value) else _unmarshal(holder, path, value, schema, named)
    if fits.get(kind, True):
        return ""
    return _unmarshal(holder, path, value, schema, named)


def _illegal_base64(text: str) -> str:
    """Where Go's decoder stops at a text that is no base64; "" when it does not."""
    found = [(at, char) for at, char in enumerate(text) if char not in "\r\n"]
    for start in range(0, len(found), 4):
        group = found[start : start + 4]
        for place in range(4):
            if place >= len(group):
                return f"illegal base64 data at input byte {max(len(text.encode()) - place, 0)}"
            at, char = group[place]
            if char in BASE64:
                continue
            padded = char == "=" and place >= 2
            if padded and (place == 3 or len(group) > 3):
                last = group[3][1] == "="
                if not last:
                    return f"illegal base64 data at input byte {group[3][0]}"
                rest = found[start + 4 :]
                return f"illegal base64 data at input byte {rest[0][0]}" if rest else ""
            return f"illegal base64 data at input byte {len(text) if padded else at}"
    return ""


def _is_quantity(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return False
    try:
        quantity.canonical(str(value))
    except ValueError:
        return False
    return True


def _unmarshal(holder: str, path: str, value: Any, schema: Schema, named: str = "") -> str:
    what = _json_type(value)
    wants_integer = schema.type == "integer"
    if isinstance(value, float) or (wants_integer and isinstance(value, int) and not isinstance(value, bool)):
        what += f" {value}"
    return f"json: cannot unmarshal {what} into Go struct field {holder}.{path} of type {named or go_type(schema)}"


def unmarshal(value: Any, wanted: str) -> str:
    """What Go says of a whole document that is of another type than `wanted`."""
    return f"json: cannot unmarshal {_json_type(value)} into Go value of type {wanted}"


def _json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, dict) else "array"


def _short(schema: Schema) -> str:
    return schema.name.rpartition(".")[2]


def go_type(schema: Schema) -> str:
    """The Go type as messages show it, without pointers: v1.PodSpec, []v1.Container, map[string]string, int32."""
    if schema.name:
        return ".".join(schema.name.split(".")[-2:])
    if schema.type == "list":
        return "[]" + ("interface {}" if schema.items is None else go_type(schema.items))
    if schema.type in ("map", "object"):
        return "map[string]" + ("string" if schema.values is None else go_type(schema.values))
    if schema.type in ("integer", "number"):
        return NUMBERS.get(schema.format, "int64" if schema.type == "integer" else "float64")
    return {"boolean": "bool", "quantity": "resource.Quantity", "int-or-string": "intstr.IntOrString"}.get(
        schema.type, "string"
    )


# -- zero values -----------------------------------------------------------------------------------------------


def with_zeros(schema: Schema, value: Any, depth: int = 0) -> Any:
    """`value` with the zero values of required fields that it leaves out, as deep as it goes."""
    if depth > MAX_DEPTH:
        return value
    if isinstance(value, Mapping):
        inner = schema.values
        if not schema.fields:
            return value if inner is None else {k: with_zeros(inner, item, depth + 1) for k, item in value.items()}
        out = {
            name: with_zeros(schema.fields[name], item, depth + 1) if name in schema.fields else item
            for name, item in value.items()
            if item is not None
        }
        for name in schema.required:
            if name not in out and (made := zero(schema.fields[name], depth + 1)) is not None:
                out[name] = made
        return out
    if isinstance(value, list) and schema.items is not None:
        return [with_zeros(schema.items, item, depth + 1) for item in value]
    return value


def zero(schema: Schema, depth: int = 0) -> Any:
    """The zero value of a Go type. None: a nil pointer, or a time, which is left out."""
    if schema.type == "object" and schema.fields:
        return None if _short(schema) in POINTERS else with_zeros(schema, {}, depth)
    if schema.type in ("object", "map"):
        return {}
    if schema.type == "string" and schema.format == "date-time":
        return None
    return {"list": [], "string": "", "boolean": False, "integer": 0, "number": 0, "quantity": "0"}.get(schema.type, 0)
