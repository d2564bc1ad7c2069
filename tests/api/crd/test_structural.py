"""Structural schemas of custom kinds."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.api.crd.structural import MAX_DEPTH, from_structural
from steersman.api.schema import OBJECT_META, SchemaError, definitions

STRING = {"type": "string"}


def root(**properties):
    return {"type": "object", "properties": properties}


def compiled(openapi):
    return from_structural(openapi, "w.yaml")


def field(openapi):
    return compiled(root(x=openapi)).fields["x"]


def test_root_gets_the_standard_fields():
    schema = compiled(root(spec={"type": "object"}))
    assert list(schema.fields) == ["apiVersion", "kind", "metadata", "spec"]
    assert schema.fields["metadata"] is definitions().get(OBJECT_META)


def test_metadata_may_limit_names_only():
    limits = {"name": {"type": "string", "maxLength": 5}, "labels": {"type": "object"}}
    metadata = compiled(root(metadata={"type": "object", "properties": limits})).fields["metadata"]
    assert metadata.fields["name"].max_length == 5
    assert metadata.fields["labels"].type == "map"


def test_types():
    assert field({"type": "object"}).fields == {}
    assert field({"type": "object", "additionalProperties": STRING}).values.type == "string"
    assert field({"type": "object", "additionalProperties": True}).values.type == "any"
    assert field({"x-kubernetes-preserve-unknown-fields": True}).type == "any"
    number = field({"type": "integer", "format": "int64", "minimum": 1, "exclusiveMinimum": True, "default": 3})
    assert (number.minimum, number.exclusive_minimum, number.default, number.format) == (1, True, 3, "int64")
    text = field({"type": "string", "enum": ["a"], "pattern": "^a$", "nullable": True, "minLength": 1})
    assert (text.enum, text.pattern, text.nullable, text.min_length) == (("a",), "^a$", True, 1)


@pytest.mark.parametrize(
    "junctor",
    [
        {},
        {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        {"allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}]},
    ],
)
def test_int_or_string(junctor):
    node = field({"x-kubernetes-int-or-string": True, "pattern": "^1", **junctor})
    assert (node.type, node.any_of, node.all_of, node.pattern) == ("int-or-string", (), (), "^1")


def test_lists():
    port = {**root(port={"type": "integer"}, protocol={"type": "string", "default": "TCP"}), "required": ["port"]}
    ports = {"type": "array", "items": port, "x-kubernetes-list-type": "map"}
    node = field({**ports, "x-kubernetes-list-map-keys": ["port", "protocol"]})
    assert (node.keys, node.key_defaults) == (("port", "protocol"), {"protocol": "TCP"})
    assert field({"type": "array", "items": STRING}).list_type == "atomic"
    assert field({"type": "array", "items": STRING, "x-kubernetes-list-type": "set"}).list_type == "set"


def test_embedded_resource():
    node = field({"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": STRING}})
    assert node.embedded and list(node.fields) == ["apiVersion", "kind", "metadata", "spec"]


def test_junctors_hold_limits_on_declared_fields():
    node = field(
        {
            **root(a={"type": "string"}, b={"type": "array", "items": STRING}),
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
            "anyOf": [{"properties": {"b": {"items": {"maxLength": 3}}}}],
            "not": {"properties": {"a": {"enum": ["x"]}}},
            "x-kubernetes-validations": [{"rule": "has(self.a)"}],
        }
    )
    assert [part.required for part in node.one_of] == [("a",), ("b",)]
    assert node.any_of[0].fields["b"].items.max_length == 3
    assert node.not_of.fields["a"].enum == ("x",)
    assert node.rules[0]["rule"] == "has(self.a)"


@pytest.mark.parametrize(
    ("openapi", "words"),
    [
        ({}, "type: is missing: write type"),
        ({"type": "text"}, "'text' is no type: write one of object"),
        ({"type": ["string", "null"]}, "type: must be a string"),
        ({"$ref": "#/definitions/X"}, "$ref: structural schemas have no such keyword: write the referenced"),
        ({"type": "string", "const": "a"}, "const: structural schemas have no such keyword: write enum"),
        ({"type": "string", "patern": "a"}, "patern: structural schemas have no such keyword: check its spelling"),
        ({"type": "string", "pattern": "("}, "pattern: cannot be read"),
        ({"type": "string", "minLength": -1}, "minLength: must not be negative"),
        ({"type": "string", "minLength": True}, "minLength: must be a number"),
        ({"type": "string", "items": STRING}, "items: does not go with type string"),
        ({"type": "array"}, "items: is missing"),
        ({"type": "array", "items": STRING, "uniqueItems": True}, "write x-kubernetes-list-type: set"),
        ({"type": "array", "items": STRING, "x-kubernetes-list-type": "bag"}, "'bag' is unknown"),
        ({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"}, "compared as a whole"),
        ({"type": "array", "items": STRING, "x-kubernetes-list-type": "map"}, "must be objects"),
        ({"type": "array", "items": STRING, "x-kubernetes-list-map-keys": ["a"]}, "lists of type map only"),
        ({"type": "object", "additionalProperties": False}, "must not be false"),
        ({**root(a=STRING), "additionalProperties": STRING}, "excludes properties"),
        ({"type": "object", "x-kubernetes-map-type": "set"}, "write granular or atomic"),
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": False}, "must be true or absent"),
        ({"type": "string", "x-kubernetes-int-or-string": True}, "type: must be absent"),
        ({"type": "string", "anyOf": [{"type": "string"}]}, "anyOf[0].type: must not be inside a junctor"),
        ({**root(a=STRING), "not": {"properties": {"b": {}}}}, "not.properties[b]: is not declared outside"),
        ({"type": "integer", "default": "a"}, "default: does not fit the schema: it must be integer"),
        ({**root(a=STRING), "default": {"a": 1}}, "does not fit the schema: .a must be string"),
        ({**root(a=STRING), "default": {"b": 1}}, ".b is not declared"),
        ({"type": "object", "properties": {True: STRING}}, "properties[True]: a field name must be text"),
        ({"type": "object", "x-kubernetes-validations": [{}]}, "x-kubernetes-validations[0]: has no rule"),
    ],
)
def test_mistakes_name_place_and_remedy(openapi, words):
    with pytest.raises(SchemaError) as caught:
        field(openapi)
    assert str(caught.value).startswith("w.yaml: openAPIV3Schema.properties[x]")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("keys", "required", "words"),
    [
        ([], [], "is missing"),
        (["b"], [], "'b' is no scalar field"),
        (["a"], [], "'a' may be absent"),
        (["a", "a"], ["a"], "different field names"),
    ],
)
def test_keys_of_a_list_map(keys, required, words):
    items = {**root(a=STRING), "required": required}
    with pytest.raises(SchemaError, match=words):
        field(
            {
                "type": "array",
                "items": items,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": keys,
            }
        )


def test_depth_is_bounded():
    openapi = {"type": "string"}
    for _ in range(MAX_DEPTH + 1):
        openapi = {"type": "array", "items": openapi}
    with pytest.raises(SchemaError, match="nested deeper than 64"):
        field(openapi)
    openapi = {}
    for _ in range(MAX_DEPTH + 1):
        openapi = {"not": openapi}
    with pytest.raises(SchemaError, match="nested deeper than 64"):
        field({**STRING, **openapi})


KEYWORDS = st.sampled_from(
    [
        "type",
        "items",
        "properties",
        "additionalProperties",
        "required",
        "default",
        "enum",
        "not",
        "anyOf",
        "pattern",
        "minimum",
        "nullable",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-int-or-string",
        "x-kubernetes-embedded-resource",
        "metadata",
        "name",
        "x-kubernetes-validations",
    ]
)
VALUES = st.recursive(
    st.sampled_from(["object", "array", "string", "integer", "map", "set", "a", "(", "name"])
    | st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYWORDS, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=400, deadline=None)
@given(st.dictionaries(KEYWORDS, VALUES, max_size=5))
def test_hostile_schemas_are_refused_not_crashed_on(openapi):
    try:
        from_structural({"type": "object", **openapi}, "w.yaml")
    except SchemaError as error:
        assert str(error).startswith("w.yaml: openAPIV3Schema")
