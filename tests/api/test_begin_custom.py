"""The request machine over custom kinds: pruning, defaults, nulls and constraints."""

import pytest

from tests.api.cluster import Cluster, crd, refused

POD, DEPLOYMENT = "v1/Pod", "apps/v1/Deployment"


# -- custom kinds ------------------------------------------------------------------------------------------------

WIDGET = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 10},
                "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
                "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
                "note": {"type": "string", "nullable": True},
                "plain": {"type": "string"},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "limits": {"type": "object", "additionalProperties": {"type": "integer", "nullable": True}},
            },
        },
        "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
    },
}
KIND = "example.com/v1/Widget"


@pytest.fixture
def widgets():
    made = Cluster(crd(WIDGET))
    made.create("v1/Namespace", "shop")
    return made


def test_custom_kinds_are_pruned_and_filled(widgets):
    spec = {"size": 3, "extra": 1, "free": {"x": {"y": None}}, "note": None, "plain": None, "limits": {"a": None}}
    reply = widgets.create(KIND, "w", spec=spec, other=2)
    made = widgets.get(KIND, "w")
    assert made["spec"] == {
        "size": 3,
        "colour": "red",
        "free": {"x": {"y": None}},
        "note": None,
        "limits": {"a": None},
    }
    assert "other" not in made
    assert set(reply.warnings) == {'unknown field "spec.extra"', 'unknown field "other"'}
    assert made["metadata"]["generation"] == 1


def test_a_kind_whose_root_keeps_what_it_does_not_know():
    """Found by helm: a definition of one line, `type: object` that preserves, has objects with any fields."""
    cluster = Cluster(crd({"type": "object", "x-kubernetes-preserve-unknown-fields": True}))
    cluster.create("v1/Namespace", "shop")
    reply = cluster.create(KIND, "w", spec={"of": [1, {"x": None}]}, other=2)
    assert not reply.warnings
    made = cluster.get(KIND, "w")
    assert (made["spec"], made["other"]) == ({"of": [1, {"x": None}]}, 2)
    cluster.apply(KIND, "w", spec={"size": 1})
    cluster.merge(KIND, "w", {"status": {"ready": True}}, sub="status")
    made = cluster.get(KIND, "w")
    assert made["spec"] == {"of": [1, {"x": None}], "size": 1} and made["status"] == {"ready": True}


@pytest.mark.parametrize(
    ("spec", "field", "words"),
    [
        ({"size": 0}, "spec.size", "should be greater than or equal to 1"),
        ({"size": 11}, "spec.size", "should be less than or equal to 10"),
        ({"size": "3"}, "spec.size", 'must be of type integer: "string"'),
        ({}, "spec.size", "Required value"),
        ({"size": 1, "colour": "green"}, "spec.colour", 'supported values: "red", "blue"'),
        ({"size": 1, "name": "Upper"}, "spec.name", "should match '^[a-z]+$'"),
        ({"size": 1, "name": "toolong"}, "spec.name", "5"),
        ({"size": 1, "limits": {"a": "x"}}, "spec.limits.a", "must be of type integer"),
        ({"size": 1, "free": {"x": float("nan")}}, "spec.free.x", "no JSON number"),
        (None, "spec", "Required value"),
    ],
)
def test_custom_kinds_are_validated(widgets, spec, field, words):
    error = refused(widgets.create, KIND, "w", spec=spec)
    assert (error.code, error.reason) == (422, "Invalid")
    (cause,) = error.causes
    assert cause.field == field
    assert words in str(cause)
    assert error.message.startswith('Widget.example.com "w" is invalid: ')


def test_custom_updates_need_a_version(widgets):
    widgets.create(KIND, "w", spec={"size": 3})
    error = refused(widgets.update, KIND, "w", spec={"size": 4})
    assert error.code == 422
    assert error.message == (
        'widgets.example.com "w" is invalid: metadata.resourceVersion: Invalid value: 0: '
        "must be specified for an update"
    )
    widgets.update(KIND, "w", spec={"size": 4}, options={"rv": "2"})
    obj = widgets.get(KIND, "w")
    obj["spec"]["size"] = 5
    widgets.request("update", KIND, "w", obj)
    assert widgets.get(KIND, "w")["metadata"]["generation"] == 3


def test_custom_status(widgets):
    widgets.create(KIND, "w", spec={"size": 3}, status={"ready": True})
    assert "status" not in widgets.get(KIND, "w")
    widgets.merge(KIND, "w", {"status": {"ready": True, "more": 1}}, sub="status")
    assert widgets.get(KIND, "w")["status"] == {"ready": True}
    assert widgets.get(KIND, "w")["metadata"]["generation"] == 1
    assert refused(widgets.merge, KIND, "w", {"status": {"ready": "yes"}}, sub="status").code == 422


def test_custom_kinds_without_a_status_subresource():
    cluster = Cluster(crd(WIDGET, status=False))
    cluster.create("v1/Namespace", "shop")
    cluster.create(KIND, "w", spec={"size": 3}, status={"ready": True})
    assert cluster.get(KIND, "w")["status"] == {"ready": True}
    cluster.merge(KIND, "w", {"status": {"ready": False}})
    assert cluster.get(KIND, "w")["status"] == {"ready": False}
    assert cluster.get(KIND, "w")["metadata"]["generation"] == 2


def test_custom_cluster_scope():
    cluster = Cluster(crd(WIDGET, scope="Cluster"))
    cluster.create(KIND, "w", spec={"size": 3})
    assert cluster.read(KIND, "w").key.namespace == ""
