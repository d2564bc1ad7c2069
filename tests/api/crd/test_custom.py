"""CustomResourceDefinition documents: what is read, and what each mistake is answered with."""

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.api.crd.custom import declared, version_rank
from steersman.api.kinds import Kinds
from steersman.api.schema import SchemaError

GOOD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Widget", "plural": "widgets"},
        "scope": "Cluster",
        "versions": [
            {"name": "v1beta1", "served": True, "storage": False, "schema": {}},
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object"}},
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"},
                },
            },
            {"name": "v2", "served": False, "storage": False, "schema": {}},
        ],
    },
}


def changed(path, value):
    document = copy.deepcopy(GOOD)
    *parents, last = path
    holder = document
    for step in parents:
        holder = holder[step]
    if value is None:
        del holder[last]
    else:
        holder[last] = value
    return document


def test_stored_version_is_read():
    kind = Kinds.custom_from_yaml_dict(GOOD, "w.yaml")
    assert (kind.version, kind.served, kind.namespaced) == ("v1", ("v1beta1",), False)
    assert kind.subresources == ("scale", "status")
    assert kind.origin.scale == (("spec", "n"), ("status", "n"), ())


VERSION = ("spec", "versions", 1)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("apiVersion",), "apiextensions.k8s.io/v1beta1", "write apiVersion: apiextensions.k8s.io/v1 and kind"),
        (("kind",), "Widget", "kind: CustomResourceDefinition"),
        (("spec",), None, "spec: is missing"),
        (("spec",), [], "spec: must be a mapping"),
        (("spec", "group"), "example", "spec.group: 'example' cannot be used: write a domain name"),
        (("spec", "scope"), "Everywhere", "spec.scope: is 'Everywhere': write Namespaced or Cluster"),
        (("spec", "names", "kind"), None, "spec.names.kind: is missing"),
        (("spec", "names", "plural"), "Widgets", "spec.names.plural: 'Widgets' cannot be used"),
        (("spec", "names", "shortNames"), ["W"], "spec.names.shortNames: 'W' cannot be used"),
        (("metadata", "name"), "widget", "metadata.name: is 'widget'"),
        (("spec", "versions"), [], "spec.versions: must be a list"),
        ((*VERSION, "name"), "v1.0", "spec.versions[1].name"),
        ((*VERSION, "name"), "v2", "names a version twice"),
        ((*VERSION, "storage"), False, "0 versions have storage: true"),
        ((*VERSION, "served"), None, "spec.versions[1].served: must be given"),
        ((*VERSION, "served"), False, "the stored version must be served"),
        ((*VERSION, "schema"), None, "spec.versions[1].schema: is missing"),
        ((*VERSION, "schema"), {"openAPIV3Schema": {"type": "string"}}, "the root must be an object"),
        ((*VERSION, "subresources"), {"logs": {}}, "subresources.logs: is no subresource"),
        ((*VERSION, "subresources"), {"scale": {}}, "scale.specReplicasPath: is missing"),
    ],
)
def test_mistakes_name_place_and_remedy(path, value, words):
    with pytest.raises(SchemaError) as caught:
        declared(changed(path, value), "w.yaml")
    assert str(caught.value).startswith("w.yaml: ")
    assert words in str(caught.value)


def test_versions_are_ordered_as_kubernetes_does():
    mixed = ["v1", "v10", "v1beta1", "foo1", "v2", "v1beta2", "v2alpha1", "v1alpha1"]
    ordered = ["foo1", "v1alpha1", "v2alpha1", "v1beta1", "v1beta2", "v1", "v2", "v10"]
    assert sorted(mixed, key=version_rank) == ordered


PATHS = [
    (),
    ("apiVersion",),
    ("metadata", "name"),
    ("spec", "names", "categories"),
    ("spec", "names", "listKind"),
    ("spec", "versions"),
    ("spec", "versions", 0),
    (*VERSION, "schema"),
    (*VERSION, "schema", "openAPIV3Schema"),
    (*VERSION, "subresources"),
    (*VERSION, "subresources", "scale"),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(PATHS), JSON)
def test_hostile_documents_are_refused_not_crashed_on(path, value):
    document = value if not path or value is None else changed(path, value)
    try:
        declared(document, "w.yaml")
    except SchemaError as error:
        assert str(error).startswith("w.yaml: ")
