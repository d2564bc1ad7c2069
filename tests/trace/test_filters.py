"""Which objects an export leaves out."""

import pytest

from steersman.trace.filters import ExportFilters


def obj(labels=None, namespace="shop", owner=None):
    metadata = {"name": "x", "namespace": namespace}
    if labels is not None:
        metadata["labels"] = labels
    if owner:
        metadata["ownerReferences"] = [{"kind": owner}]
    return {"metadata": metadata}


def test_namespaces_and_daemon_sets():
    filters = ExportFilters(excluded_namespaces=frozenset({"kube-system"}))
    assert filters.excludes(obj(namespace="kube-system")) and not filters.excludes(obj())
    assert ExportFilters().excludes(obj(owner="DaemonSet")) and not ExportFilters().excludes(obj(owner="Job"))


@pytest.mark.parametrize(
    ("selector", "labels", "excluded"),
    [
        ({"matchLabels": {"a": "1"}}, {"a": "1", "b": "2"}, True),
        ({"matchLabels": {"a": "1"}}, {"a": "2"}, False),
        ({"matchLabels": {"a": "1"}}, None, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]}, {"a": "2"}, True),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1"]}]}, {}, False),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, {}, True),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, {"a": "1"}, False),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {"a": ""}, True),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, {"a": ""}, False),
        ({"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "b", "operator": "Exists"}]}, {"a": "1"}, False),
        ({}, {}, True),
    ],
)
def test_labels(selector, labels, excluded):
    assert ExportFilters(excluded_labels=(selector,)).excludes(obj(labels)) is excluded


@pytest.mark.parametrize("term", [{"key": "a"}, {"key": "a", "operator": "Gt"}, {"operator": "Exists"}])
def test_a_selector_that_cannot_be_read(term):
    with pytest.raises(ValueError, match="needs a key and an operator"):
        ExportFilters(excluded_labels=({"matchExpressions": [term]},))
