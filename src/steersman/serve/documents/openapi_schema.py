"""Schemas as OpenAPI v3 writes them, with the extensions that kubectl and apply clients read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from steersman.api.kinds import Kind
from steersman.api.schema import OBJECT_META, Schema, definitions

PREFIX: Final = "#/components/schemas/"
_VALUES: Final = {
    "pattern": "pattern",
    "minimum": "minimum",
    "maximum": "maximum",
    "multiple_of": "multipleOf",
    "min_length": "minLength",
    "max_length": "maxLength",
    "min_items": "minItems",
    "max_items": "maxItems",
    "min_fields": "minProperties",
    "max_fields": "maxProperties",
    "format": "format",
}


def name_of(kind: Kind) -> str:
    """The name of a kind's schema: `io.k8s.api.apps.v1.Deployment`, or `io.example.v1.Widget` for custom kinds."""
    if kind.schema.name:
        return kind.schema.name
    return ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])


def ref(name: str) -> dict[str, str]:
    """A reference to a named schema."""
    return {"$ref": PREFIX + name}


class Components:
    """`components.schemas` of one document: the roots and everything they mention."""

    def __init__(self) -> None:
        self.schemas: dict[str, dict[str, Any]] = {}
        self._waiting: list[Schema] = []

    def add(self, name: str, schema: Schema, kinds: Iterable[dict[str, str]] = ()) -> None:
        """One root and what it mentions. `kinds`: its group, version and kind, where it is one."""
        body = self._body(schema)
        if listed := list(kinds):
            body["x-kubernetes-group-version-kind"] = listed
        self.schemas[name] = body
        self._add_waiting()

    def _add_waiting(self) -> None:
        while self._waiting:
            found = self._waiting.pop()
            if found.name not in self.schemas:
                self.schemas[found.name] = {}
                self.schemas[found.name] = self._body(found)

    def add_custom(self, name: str, openapi: Mapping[str, Any], kinds: list[dict[str, str]]) -> None:
        """The root of a custom kind, as its definition has it, descriptions included; with apiVersion, kind and
        metadata, which it may leave out."""
        string = {"type": "string"}
        own = openapi.get("properties") or {}
        properties = {"apiVersion": own.get("apiVersion", string), "kind": own.get("kind", string)}
        metadata = definitions().get(OBJECT_META)
        properties["metadata"] = self.node(metadata)
        body = {**openapi, "properties": {**own, **properties}, "x-kubernetes-group-version-kind": kinds}
        self._add_waiting()
        self.schemas[name] = body

    def node(self, schema: Schema) -> dict[str, Any]:
        """A schema inside another: a reference when it has a name."""
        if schema.name:
            self._waiting.append(schema)
            return ref(schema.name)
        return self._body(schema)

    def _body(self, schema: Schema) -> dict[str, Any]:
        out = self._shape(schema)
        for attribute, word in _VALUES.items():
            value = getattr(schema, attribute)
            if value is not None and value != "":
                out[word] = value
        if schema.exclusive_minimum:
            out["exclusiveMinimum"] = True
        if schema.exclusive_maximum:
            out["exclusiveMaximum"] = True
        if schema.enum:
            out["enum"] = list(schema.enum)
        if schema.default is not None:
            out["default"] = schema.default
        for attribute, word in (("all_of", "allOf"), ("any_of", "anyOf"), ("one_of", "oneOf")):
            parts = getattr(schema, attribute)
            if parts:
                out[word] = [self._body(part) for part in parts]
        if schema.not_of is not None:
            out["not"] = self._body(schema.not_of)
        if schema.rules:
            out["x-kubernetes-validations"] = [dict(rule) for rule in schema.rules]
        if schema.atomic and schema.type in ("object", "map"):
            out["x-kubernetes-map-type"] = "atomic"
        if schema.preserve_unknown and not schema.name:
            out["x-kubernetes-preserve-unknown-fields"] = True
        return out

    def _shape(self, schema: Schema) -> dict[str, Any]:
        kind = schema.type
        if kind in ("object", "map"):
            return self._object(schema)
        if kind == "list":
            return self._list(schema)
        if kind == "quantity":
            return {"oneOf": [{"type": "string"}, {"type": "number"}]}
        if kind == "int-or-string":
            return {"oneOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
        return {} if kind == "any" else {"type": kind}

    def _object(self, schema: Schema) -> dict[str, Any]:
        out: dict[str, Any] = {"type": "object"}
        if schema.fields:
            out["properties"] = {name: self.node(child) for name, child in schema.fields.items()}
        elif schema.values is not None:
            out["additionalProperties"] = self.node(schema.values)
        if schema.required:
            out["required"] = list(schema.required)
        return out

    def _list(self, schema: Schema) -> dict[str, Any]:
        out: dict[str, Any] = {"type": "array", "items": self.node(schema.items) if schema.items is not None else {}}
        if schema.list_type:
            out["x-kubernetes-list-type"] = schema.list_type
        if schema.keys:
            out["x-kubernetes-list-map-keys"] = list(schema.keys)
        if schema.merge_key:
            out["x-kubernetes-patch-merge-key"] = schema.merge_key
        if schema.merge_strategy:
            out["x-kubernetes-patch-strategy"] = schema.merge_strategy
        return out
