"""What kube-apiserver says about CustomResourceDefinitions that are not valid: field, kind of fault, words."""

import copy

import pytest

from steersman.api.errors import ApiError
from tests.api.cluster import Cluster

CRD = "apiextensions.k8s.io/v1/CustomResourceDefinition"
AT = "spec.validation.openAPIV3Schema"


def spec_of(schema=None, **version):
    openapi = {"type": "object"} if schema is None else schema
    return {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": openapi}, **version}
        ],
    }


def told(spec, name="widgets.example.com"):
    """(field, message) of every cause."""
    with pytest.raises(ApiError) as caught:
        Cluster().create(CRD, name, spec=copy.deepcopy(spec))
    assert caught.value.code == 422
    return [(cause.field, cause.message) for cause in caught.value.causes]


def schema(**properties):
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}


FIELD = f"{AT}.properties[spec].properties[x]"


@pytest.mark.parametrize(
    ("node", "field", "words"),
    [
        ({}, ".type", "Required value: must not be empty for specified object fields"),
        ({"type": "array"}, ".items", "Required value: must be specified"),
        ({"type": "array", "items": {}}, ".items.type", "Required value: must not be empty for specified array items"),
        ({"type": "text"}, ".type", 'Unsupported value: "text": supported values: "array", "boolean"'),
        ({"type": "string", "pattern": "("}, ".pattern", "must be a valid regular expression, but isn't"),
        ({"type": "integer", "default": "x"}, ".default", "must be of type integer"),
        ({"type": "object", "default": {"a": 1}}, ".default", "must not have unknown fields"),
        ({"type": "string", "$ref": "#/x"}, ".$ref", "Forbidden: $ref is not supported"),
        ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, ".uniqueItems", "becomes quadratic"),
        (
            {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}},
            ".additionalProperties",
            "Forbidden: additionalProperties and properties are mutual exclusive",
        ),
        (
            {"x-kubernetes-preserve-unknown-fields": False, "type": "object"},
            ".x-kubernetes-preserve-unknown-fields",
            "Invalid value: false: must be true or undefined",
        ),
        (
            {"type": "string", "x-kubernetes-list-type": "set"},
            ".type",
            'Invalid value: "string": must be array if x-kubernetes-list-type is specified',
        ),
        (
            {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map"},
            ".x-kubernetes-list-map-keys",
            "Required value: must not be empty if x-kubernetes-list-type is map",
        ),
        (
            {
                "type": "array",
                "items": {"type": "object", "properties": {"k": {"type": "string"}}},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
            },
            ".items.properties[k].default",
            "so it must have a default or be a required property",
        ),
        (
            {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"},
            ".items.x-kubernetes-map-type",
            "must be atomic as item of a list with x-kubernetes-list-type=set",
        ),
        (
            {"type": "object", "x-kubernetes-embedded-resource": True},
            ".properties",
            "must not be empty if x-kubernetes-embedded-resource is true without",
        ),
        (
            {"type": "string", "anyOf": [{"type": "string"}]},
            ".anyOf[0].type",
            "Forbidden: must be empty to be structural",
        ),
        (
            {"type": "object", "x-kubernetes-validations": [{"rule": " "}]},
            ".x-kubernetes-validations[0].rule",
            "rule is not",
        ),
        (
            {"type": "object", "x-kubernetes-map-type": "loose"},
            ".x-kubernetes-map-type",
            'Unsupported value: "loose": supported values: "atomic", "granular"',
        ),
    ],
)
def test_schemas(node, field, words):
    found = told(spec_of(schema(x=node)))
    assert FIELD + field in [where for where, _ in found]
    assert any(where == FIELD + field and words in message for where, message in found)


@pytest.mark.parametrize(
    ("root", "field", "words"),
    [
        ({"type": "string"}, ".type", "must be object at the root"),
        ({"type": "object", "nullable": True}, ".nullable", "nullable cannot be true at the root"),
        (
            {"type": "object", "additionalProperties": {"type": "string"}},
            ".additionalProperties",
            "not be used at the root",
        ),
        (
            {"type": "object", "properties": {"metadata": {"type": "object", "description": "x"}}},
            ".properties[metadata]",
            "must not specify anything other than name and generateName",
        ),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "string"}},
                "allOf": [{"properties": {"b": {"minLength": 1}}}],
            },
            ".properties[b]",
            "Required value: because it is defined in spec.validation.openAPIV3Schema.allOf[0].properties[b]",
        ),
    ],
)
def test_roots(root, field, words):
    assert any(where == AT + field and words in message for where, message in told(spec_of(root)))


def test_an_error_is_told_where_versions_differ():
    spec = spec_of(schema(x={}))
    spec["versions"].append({**spec["versions"][0], "name": "v2", "storage": False})
    assert told(spec)[0][0] == FIELD + ".type"
    spec["versions"][1]["schema"] = {"openAPIV3Schema": {"type": "object"}}
    assert told(spec)[0][0] == "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[x].type"


def changed(path, value):
    spec = spec_of()
    *parents, last = path
    holder = spec
    for step in parents:
        holder = holder[step]
    holder[last] = value
    return spec


VERSION = ("versions", 0)
LABEL = "a DNS-1035 label must consist of lower case alphanumeric characters"


@pytest.mark.parametrize(
    ("path", "value", "field", "words"),
    [
        (("group",), "example", "spec.group", "should be a domain with at least one dot"),
        (("group",), "Example.com", "spec.group", "a lowercase RFC 1123 subdomain"),
        (("scope",), "Galaxy", "spec.scope", 'Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"'),
        (("names", "plural"), "Widgets", "spec.names.plural", LABEL),
        (("names", "kind"), "W_", "spec.names.kind", "may have mixed case, but should otherwise match: " + LABEL),
        (("names", "listKind"), "Widget", "spec.names.listKind", "kind and listKind may not be the same"),
        (("names", "shortNames"), ["W"], "spec.names.shortNames[0]", LABEL),
        ((*VERSION, "name"), "v1.0", "spec.versions[0].name", LABEL),
        ((*VERSION, "storage"), False, "spec.versions", "must have exactly one version marked as storage version"),
        ((*VERSION, "schema"), {}, "spec.versions[0].schema.openAPIV3Schema", "Required value"),
        (
            (*VERSION, "deprecationWarning"),
            "x",
            "spec.versions[0].deprecationWarning",
            "can only be set for deprecated",
        ),
        (
            ("preserveUnknownFields",),
            True,
            "spec.preserveUnknownFields",
            "cannot set to true, set x-kubernetes-preserve",
        ),
        (
            (*VERSION, "additionalPrinterColumns"),
            [{"name": "a", "type": "text", "jsonPath": ".x"}],
            "spec.additionalPrinterColumns[0].type",
            "must be one of boolean,date,integer,number,string",
        ),
        (
            (*VERSION, "additionalPrinterColumns"),
            [{"name": "a", "type": "string", "jsonPath": "x"}],
            "spec.additionalPrinterColumns[0].JSONPath",
            "must be a simple json path starting with .",
        ),
        (
            (*VERSION, "subresources"),
            {"scale": {"specReplicasPath": ".status.x", "statusReplicasPath": ".status.x"}},
            "spec.subresources.scale.specReplicasPath",
            "should be a json path under .spec",
        ),
        (
            (*VERSION, "selectableFields"),
            [{"jsonPath": ".spec.x"}],
            "spec.selectableFields[0].jsonPath",
            "is an invalid path: does not refer to a valid field",
        ),
        (("conversion",), {"strategy": "Webhook"}, "spec.conversion.webhookClientConfig", "required when strategy is"),
        (
            ("conversion",),
            {
                "strategy": "Webhook",
                "webhook": {"conversionReviewVersions": ["v7"], "clientConfig": {"url": "http://x"}},
            },
            "spec.conversion.webhookClientConfig.url",
            "'https' is the only allowed URL scheme; desired format: https://host[/path]",
        ),
        (
            ("conversion",),
            {
                "strategy": "Webhook",
                "webhook": {"conversionReviewVersions": ["v7"], "clientConfig": {"url": "https://x"}},
            },
            "spec.conversion.conversionReviewVersions",
            "must include at least one of v1, v1beta1",
        ),
        (
            ("conversion",),
            {"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}},
            "spec.conversion.conversionReviewVersions",
            "Forbidden: should not be set when strategy is not set to Webhook",
        ),
    ],
)
def test_specs(path, value, field, words):
    found = told(changed(path, value))
    assert any(where == field and words in message for where, message in found), found


def test_the_name_is_plural_and_group():
    assert told(spec_of(), "widget.example.com") == [
        ("metadata.name", 'Invalid value: "widget.example.com": must be spec.names.plural+"."+spec.group')
    ]


def test_protected_groups_need_an_approval():
    spec = {**spec_of(), "group": "stuff.k8s.io"}
    ((field, message),) = told(spec, "widgets.stuff.k8s.io")
    assert field == "metadata.annotations[api-approved.kubernetes.io]"
    assert message.startswith('Required value: protected groups must have approval annotation "api-approved')


def test_what_may_not_change():
    cluster = Cluster()
    cluster.create(CRD, "widgets.example.com", spec=spec_of())
    with pytest.raises(ApiError) as caught:
        cluster.merge(CRD, "widgets.example.com", {"spec": {"scope": "Cluster", "names": {"kind": "Other"}}})
    assert [cause.field for cause in caught.value.causes] == ["spec.scope", "spec.names.kind"]
    assert all("field is immutable" in cause.message for cause in caught.value.causes)
    moved = spec_of()["versions"][0] | {"name": "v2"}
    with pytest.raises(ApiError) as caught:
        cluster.merge(CRD, "widgets.example.com", {"spec": {"versions": [moved]}})
    assert "missing from spec.versions; v1 was previously a storage version" in str(caught.value)


def test_storage_moves_on_and_what_was_stored_is_remembered():
    cluster = Cluster()
    cluster.create(CRD, "widgets.example.com", spec=spec_of())
    first = {**spec_of()["versions"][0], "storage": False}
    second = {**first, "name": "v2", "storage": True}
    done = cluster.merge(CRD, "widgets.example.com", {"spec": {"versions": [first, second]}})
    assert list(done.obj.status_value["storedVersions"]) == ["v1", "v2"]
    done = cluster.merge(CRD, "widgets.example.com", {"status": {"storedVersions": ["v2"]}}, sub="status")
    assert list(done.obj.status_value["storedVersions"]) == ["v2"]
    cluster.merge(CRD, "widgets.example.com", {"spec": {"versions": [second]}})
