"""Structural schemas: the OpenAPI v3 schema of a custom kind, compiled to `Schema` nodes.

The rules are those of "Specifying a structural schema" and of the x-kubernetes-* extensions in the
Kubernetes documentation ("Extend the Kubernetes API with CustomResourceDefinitions"). A schema that breaks
one is refused with SchemaError, whose text is `WHERE: PATH: what is wrong: what to do`; the first fault in
document order is reported.

CEL rules (x-kubernetes-validations) are kept in `Schema.rules` as written; nothing here evaluates them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NoReturn

from steersman.api.pattern import PatternError, compile_pattern
from steersman.api.schema import OBJECT_META, Json, Schema, SchemaError, definitions

MAX_DEPTH: Final = 64
"""Deepest nesting of a custom schema: far beyond real ones, and well inside Python's recursion limit."""

_NUMBER: Final = (int, float)
_SHAPES: Final[Mapping[str, tuple[type, ...]]] = {  # keyword -> JSON types it may have
    "type": (str,),
    "title": (str,),
    "description": (str,),
    "format": (str,),
    "pattern": (str,),
    "example": (object,),
    "externalDocs": (dict,),
    "default": (object,),
    "nullable": (bool,),
    "enum": (list,),
    "required": (list,),
    "properties": (dict,),
    "additionalProperties": (dict, bool),
    "items": (dict,),
    "minimum": _NUMBER,
    "maximum": _NUMBER,
    "exclusiveMinimum": (bool,),
    "exclusiveMaximum": (bool,),
    "multipleOf": _NUMBER,
    "minLength": (int,),
    "maxLength": (int,),
    "minItems": (int,),
    "maxItems": (int,),
    "minProperties": (int,),
    "maxProperties": (int,),
    "uniqueItems": (bool,),
    "allOf": (list,),
    "anyOf": (list,),
    "oneOf": (list,),
    "not": (dict,),
    "x-kubernetes-int-or-string": (bool,),
    "x-kubernetes-preserve-unknown-fields": (bool,),
    "x-kubernetes-embedded-resource": (bool,),
    "x-kubernetes-list-type": (str,),
    "x-kubernetes-list-map-keys": (list,),
    "x-kubernetes-map-type": (str,),
    "x-kubernetes-validations": (list,),
}
_JSON_NAMES: Final = {str: "a string", bool: "true or false", list: "a list", dict: "a mapping", int: "a number"}
_REMEDIES: Final = {  # keywords of other JSON schema dialects -> what to write instead
    "$ref": "write the referenced schema in its place",
    "$schema": "remove it",
    "const": "write enum with one value",
    "definitions": "write each definition where it is used",
    "dependencies": "write an x-kubernetes-validations rule",
    "patternProperties": "write additionalProperties",
    "additionalItems": "write items",
    "if": "write anyOf or an x-kubernetes-validations rule",
    "readOnly": "remove it",
    "writeOnly": "remove it",
    "deprecated": "say so in description",
    "discriminator": "remove it",
    "id": "remove it",
    "xml": "remove it",
}
_VALUE_RULES: Final = {  # keyword -> Schema attribute, copied as it is
    "format": "format",
    "pattern": "pattern",
    "minimum": "minimum",
    "maximum": "maximum",
    "exclusiveMinimum": "exclusive_minimum",
    "exclusiveMaximum": "exclusive_maximum",
    "multipleOf": "multiple_of",
    "minLength": "min_length",
    "maxLength": "max_length",
    "minItems": "min_items",
    "maxItems": "max_items",
    "minProperties": "min_fields",
    "maxProperties": "max_fields",
}
_OUTSIDE_ONLY: Final = (  # keywords that decide shape, not value: never inside allOf, anyOf, oneOf, not
    *("type", "default", "additionalProperties", "nullable", "title", "description"),
    *(k for k in _SHAPES if k.startswith("x-kubernetes-") and k != "x-kubernetes-validations"),
)
_JUNCTORS: Final = {"allOf": "all_of", "anyOf": "any_of", "oneOf": "one_of"}
_TYPES: Final = ("object", "array", "string", "integer", "number", "boolean")
_INT_OR_STRING: Final = ([{"type": "integer"}, {"type": "string"}], [{"type": "string"}, {"type": "integer"}])
_ROOT_FIELDS: Final = ("apiVersion", "kind", "metadata")


def from_structural(openapi: Json, where: str) -> Schema:
    """The schema of a custom kind from `openAPIV3Schema`; `where` begins every error (a file, say).

    At the root, and in embedded resources, apiVersion, kind and metadata get their standard schemas; of
    what the document says about them only limits on metadata.name and metadata.generateName are kept.
    """
    compiler = _Compiler(where)
    compiler.shape(openapi, "openAPIV3Schema")
    if openapi.get("type") != "object":
        compiler.fail("openAPIV3Schema.type", "the root must be an object", "write type: object")
    return compiler.node(openapi, "openAPIV3Schema", 0, resource=True)


def from_trusted(openapi: Json) -> Schema:
    """The schema of a definition that was judged before it was stored: what it says is taken as it is."""
    return _Compiler("", trusted=True).node(openapi, "openAPIV3Schema", 0, resource=True)


def node_from_trusted(openapi: Json) -> Schema:
    """The same of one node inside such a schema."""
    return _Compiler("", trusted=True).node(openapi, "", 0)


def wrong_default(schema: Schema, value: Json, path: str = "") -> str:
    """Why a value does not have the types a schema asks for, as `PATH must be TYPE`; "" when it does."""
    if value is None:
        return "" if schema.nullable else f"{path or 'it'} must not be null"
    if not _has_type(schema.type, value):
        return f"{path or 'it'} must be {schema.type}"
    if schema.enum and value not in schema.enum:
        return f"{path or 'it'} must be one of the enum"
    if isinstance(value, dict) and schema.type in ("object", "map"):
        for field, inner in value.items():
            child = schema.child(field)
            if child is None and not schema.preserve_unknown:
                return f"{path}.{field} is not declared"
            if child is not None and (why := wrong_default(child, inner, f"{path}.{field}")):
                return why
    if isinstance(value, list) and schema.items is not None:
        for index, inner in enumerate(value):
            if why := wrong_default(schema.items, inner, f"{path}[{index}]"):
                return why
    return ""


def _has_type(name: str, value: Json) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    whole = number and (isinstance(value, int) or value.is_integer())
    return {
        "object": isinstance(value, dict),
        "map": isinstance(value, dict),
        "list": isinstance(value, list),
        "string": isinstance(value, str),
        "integer": whole,
        "number": number,
        "boolean": isinstance(value, bool),
        "int-or-string": whole or isinstance(value, str),
        "quantity": number or isinstance(value, str),
    }.get(name, True)


class _Compiler:
    """Compiles one document. `path` is where in it: `openAPIV3Schema.properties[spec].items`."""

    def __init__(self, where: str, trusted: bool = False) -> None:
        self.where = where
        self.trusted = trusted
        """Somebody else has judged the document, by rules that differ in details."""

    def fail(self, path: str, fault: str, remedy: str) -> NoReturn:
        raise SchemaError(f"{self.where}: {path}: {fault}: {remedy}")

    def shape(self, openapi: Json, path: str) -> None:
        """Refuse what is no mapping of known keywords to values of their JSON types."""
        if self.trusted:
            return
        if not isinstance(openapi, dict):
            self.fail(path, "a schema must be a mapping", "write type and its properties, items or limits")
        for keyword, value in openapi.items():
            if keyword not in _SHAPES:
                remedy = _REMEDIES.get(keyword, "check its spelling, or remove it")
                self.fail(f"{path}.{keyword}", "structural schemas have no such keyword", remedy)
            allowed = _SHAPES[keyword]
            if not isinstance(value, allowed) or (isinstance(value, bool) and int in allowed):
                names = " or ".join(sorted({_JSON_NAMES.get(t, "a number") for t in allowed}))
                self.fail(f"{path}.{keyword}", f"must be {names}", f"write {names}")
        for keyword in ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"):
            if openapi.get(keyword, 0) < 0:
                self.fail(f"{path}.{keyword}", "must not be negative", "write 0 or more")
        for name in openapi.get("properties", {}):
            if not isinstance(name, str):  # YAML reads on, yes and 1 as other than text
                self.fail(f"{path}.properties[{name}]", "a field name must be text", "put it in quotes")
        if openapi.get("uniqueItems"):
            self.fail(f"{path}.uniqueItems", "must not be true", "write x-kubernetes-list-type: set")

    def node(self, openapi: Json, path: str, depth: int, resource: bool = False) -> Schema:
        """One node with everything below it. `resource`: the root or an embedded resource."""
        self.shape(openapi, path)
        if depth > MAX_DEPTH:
            self.fail(path, f"nested deeper than {MAX_DEPTH}", "flatten it or preserve unknown fields")
        facts = self.value_rules(openapi, path)
        facts["nullable"] = openapi.get("nullable", False)
        facts["preserve_unknown"] = self.preserves(openapi, path)
        facts["embedded"] = openapi.get("x-kubernetes-embedded-resource", False)
        facts["type"] = self.type_of(openapi, facts["preserve_unknown"], path)
        self.refuse_misplaced(openapi, facts["type"], path)
        if facts["type"] in ("object", "map"):
            facts.update(self.object_facts(openapi, path, depth, resource or facts["embedded"]))
        elif facts["type"] == "list":
            facts.update(self.list_facts(openapi, path, depth))
        facts["rules"] = self.rules(openapi, path)
        core = Schema(**facts)
        facts.update(self.junctors(openapi, core, path, depth))
        self.check_default(openapi, core, path)
        return Schema(**facts, default=openapi.get("default"))

    def value_rules(self, openapi: Json, path: str) -> dict[str, Any]:
        """The limits on the value itself, which junctors may also hold."""
        facts = {ours: openapi[theirs] for theirs, ours in _VALUE_RULES.items() if theirs in openapi}
        facts["enum"] = tuple(openapi.get("enum", ()))
        facts["required"] = tuple(openapi.get("required", ()))
        if not all(isinstance(field, str) for field in facts["required"]):
            self.fail(f"{path}.required", "must name fields", "write a list of strings")
        try:
            compile_pattern(openapi.get("pattern", ""))
        except PatternError as error:
            self.fail(f"{path}.pattern", f"cannot be read ({error})", "write it in the syntax of RE2")
        return facts

    def preserves(self, openapi: Json, path: str) -> bool:
        keyword = "x-kubernetes-preserve-unknown-fields"
        if openapi.get(keyword) is False:
            self.fail(f"{path}.{keyword}", "must be true or absent", "remove it")
        return keyword in openapi

    def type_of(self, openapi: Json, preserve: bool, path: str) -> str:
        """The Schema type of a node."""
        name: str = openapi.get("type", "")
        if openapi.get("x-kubernetes-int-or-string"):
            if name and not self.trusted:
                self.fail(f"{path}.type", "must be absent next to x-kubernetes-int-or-string", "remove it")
            return "int-or-string"
        if not name:
            if preserve:
                return "any"
            remedy = "write type, x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields"
            self.fail(f"{path}.type", "is missing", remedy)
        if name not in _TYPES:
            self.fail(f"{path}.type", f"{name!r} is no type", f"write one of {', '.join(_TYPES)}")
        if name == "object" and openapi.get("additionalProperties") is not None:
            return "map"
        return "list" if name == "array" else name

    def refuse_misplaced(self, openapi: Json, kind: str, path: str) -> None:
        """Keywords that belong to another type."""
        if self.trusted:
            return
        homes = {
            "properties": ("object", "map"),
            "additionalProperties": ("map",),
            "items": ("list",),
            "x-kubernetes-list-type": ("list",),
            "x-kubernetes-list-map-keys": ("list",),
            "x-kubernetes-map-type": ("object", "map"),
            "x-kubernetes-embedded-resource": ("object",),
        }
        for keyword, types in homes.items():
            if openapi.get(keyword) and kind not in types:
                self.fail(f"{path}.{keyword}", f"does not go with type {kind}", "remove it or change type")

    def object_facts(self, openapi: Json, path: str, depth: int, resource: bool) -> dict[str, Any]:
        """fields or values, and atomic."""
        if "properties" in openapi and "additionalProperties" in openapi and not self.trusted:
            remedy = "keep one, or write properties and x-kubernetes-preserve-unknown-fields: true"
            self.fail(f"{path}.additionalProperties", "excludes properties", remedy)
        map_type = openapi.get("x-kubernetes-map-type", "granular")
        if map_type not in ("granular", "atomic"):
            self.fail(f"{path}.x-kubernetes-map-type", f"{map_type!r} is unknown", "write granular or atomic")
        facts: dict[str, Any] = {"atomic": map_type == "atomic"}
        values = openapi.get("additionalProperties")
        if values is False:
            self.fail(f"{path}.additionalProperties", "must not be false", "remove it: others are pruned")
        if values is True:
            facts["values"] = Schema(type="any", preserve_unknown=True)
        elif values is not None:
            facts["values"] = self.node(values, f"{path}.additionalProperties", depth + 1)
        if resource and values is not None:
            self.fail(f"{path}.additionalProperties", "a resource has fields", "write properties")
        properties = dict(openapi.get("properties", {}))
        standard = self.resource_fields(properties, path) if resource else {}
        compiled = {
            name: self.node(child, f"{path}.properties[{name}]", depth + 1)
            for name, child in properties.items()
            if name not in standard
        }
        facts["fields"] = dict(sorted({**compiled, **standard}.items()))
        return facts

    def resource_fields(self, properties: Mapping[str, Json], path: str) -> dict[str, Schema]:
        """apiVersion, kind and metadata of a resource; metadata may limit name and generateName."""
        meta = definitions().get(OBJECT_META)
        for name in _ROOT_FIELDS:
            self.shape(properties.get(name, {}), f"{path}.properties[{name}]")
        limits = properties.get("metadata", {}).get("properties", {})
        fields = dict(meta.fields)
        for name in ("name", "generateName"):
            if name in limits:
                at = f"{path}.properties[metadata].properties[{name}]"
                self.shape(limits[name], at)
                fields[name] = Schema(**{**meta.fields[name].facts(), **self.value_rules(limits[name], at)})
        string = Schema(type="string")
        metadata = meta.evolve(fields=fields) if fields != dict(meta.fields) else meta
        return {"apiVersion": string, "kind": string, "metadata": metadata}

    def list_facts(self, openapi: Json, path: str, depth: int) -> dict[str, Any]:
        """items, list_type, keys and key_defaults."""
        if "items" not in openapi:
            self.fail(f"{path}.items", "is missing", "write the schema of the elements")
        items = self.node(openapi["items"], f"{path}.items", depth + 1)
        list_type = openapi.get("x-kubernetes-list-type", "atomic")
        keys = openapi.get("x-kubernetes-list-map-keys", [])
        if list_type not in ("atomic", "set", "map"):
            self.fail(f"{path}.x-kubernetes-list-type", f"{list_type!r} is unknown", "write atomic, set or map")
        if list_type != "map" and keys:
            remedy = "remove it or write x-kubernetes-list-type: map"
            self.fail(f"{path}.x-kubernetes-list-map-keys", "goes with lists of type map only", remedy)
        if list_type == "set" and _granular(items) and not self.trusted:
            remedy = "make the elements scalars, or atomic lists or objects"
            self.fail(f"{path}.x-kubernetes-list-type", "elements of a set are compared as a whole", remedy)
        facts: dict[str, Any] = {"items": items, "list_type": list_type}
        if list_type == "map":
            facts["keys"] = tuple(keys)
            facts["key_defaults"] = self.key_defaults(items, keys, path)
        return facts

    def key_defaults(self, items: Schema, keys: Json, path: str) -> dict[str, Json]:
        """Defaults of the key fields; every key must be a scalar that is required or has a default."""
        at = f"{path}.x-kubernetes-list-map-keys"
        if items.type != "object":
            self.fail(f"{path}.items", "elements of a list of type map must be objects", "write properties")
        if not keys:
            self.fail(at, "is missing", "name the fields that identify an element")
        if not all(isinstance(key, str) for key in keys) or len(set(keys)) < len(keys):
            self.fail(at, "must be different field names", "write each key once, as a string")
        found = {}
        for key in keys:
            field = items.fields.get(key)
            if field is None or field.type in ("object", "map", "list", "any"):
                self.fail(at, f"{key!r} is no scalar field of the elements", "declare it in items.properties")
            if field.default is not None:
                found[key] = field.default
            elif key not in items.required:
                remedy = "add it to items.required or give it a default"
                self.fail(at, f"{key!r} may be absent from an element", remedy)
        return found

    def rules(self, openapi: Json, path: str) -> tuple[Mapping[str, Json], ...]:
        """CEL rules, checked for their form only."""
        rules = openapi.get("x-kubernetes-validations", [])
        for index, rule in enumerate(rules):
            if not isinstance(rule, dict) or not isinstance(rule.get("rule"), str):
                at = f"{path}.x-kubernetes-validations[{index}]"
                self.fail(at, "has no rule", "write rule: EXPRESSION and message: TEXT")
        return tuple(rules)

    def junctors(self, openapi: Json, core: Schema, path: str, depth: int) -> dict[str, Any]:
        """all_of, any_of, one_of and not_of."""
        facts: dict[str, Any] = {}
        for keyword, attribute in _JUNCTORS.items():
            parts = openapi.get(keyword, [])
            if core.type == "int-or-string":  # the documented way to say so twice
                parts = [] if parts in _INT_OR_STRING else [p for p in parts if not _says_int_or_string(p)]
            facts[attribute] = tuple(
                self.validation(part, core, f"{path}.{keyword}[{index}]", depth + 1) for index, part in enumerate(parts)
            )
        if "not" in openapi:
            facts["not_of"] = self.validation(openapi["not"], core, f"{path}.not", depth + 1)
        return facts

    def validation(self, openapi: Json, core: Schema, path: str, depth: int) -> Schema:
        """A node inside a junctor: limits on values whose shape `core`, outside the junctor, declares."""
        self.shape(openapi, path)
        if depth > MAX_DEPTH:
            self.fail(path, f"nested deeper than {MAX_DEPTH}", "write fewer levels")
        for keyword in _OUTSIDE_ONLY:
            if keyword in openapi:
                remedy = "write it outside of allOf, anyOf, oneOf and not"
                self.fail(f"{path}.{keyword}", "must not be inside a junctor", remedy)
        facts = self.value_rules(openapi, path)
        facts["rules"] = self.rules(openapi, path)
        fields = {}
        for name, child in openapi.get("properties", {}).items():
            outer, at = core.child(name), f"{path}.properties[{name}]"
            if outer is None:
                self.fail(at, "is not declared outside of the junctor", "declare it in properties there too")
            fields[name] = self.validation(child, outer, at, depth + 1)
        facts["fields"] = fields
        if "items" in openapi:
            if core.items is None:
                self.fail(f"{path}.items", "is not declared outside of the junctor", "declare it there too")
            facts["items"] = self.validation(openapi["items"], core.items, f"{path}.items", depth + 1)
        facts.update(self.junctors(openapi, core, path, depth))
        return Schema(**facts)

    def check_default(self, openapi: Json, core: Schema, path: str) -> None:
        default = openapi.get("default")
        if default is not None and not self.trusted and (why := wrong_default(core, default)):
            self.fail(f"{path}.default", f"does not fit the schema: {why}", "correct the default or the type")


def _granular(schema: Schema) -> bool:
    """The value is merged part by part, not as a whole."""
    if schema.type == "list":
        return schema.list_type != "atomic"
    return schema.type in ("object", "map", "any") and not schema.atomic


def _says_int_or_string(part: Json) -> bool:
    return isinstance(part, dict) and list(part) == ["anyOf"] and part["anyOf"] in _INT_OR_STRING
