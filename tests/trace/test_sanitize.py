"""What is left out of a recorded object."""

from steersman.trace.sanitize import sanitize

POD = {
    "kind": "Pod",
    "apiVersion": "v1",
    "status": {"phase": "Running"},
    "spec": {"nodeName": "n1", "b": [{"z": 1, "a": 2}], "a": None},
    "metadata": {
        "name": "p",
        "namespace": "ns",
        "uid": "u",
        "resourceVersion": "5",
        "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 30,
        "managedFields": [{}],
        "labels": {"b": "1", "a": "2"},
        "finalizers": None,
        "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": "{}",
            "deployment.kubernetes.io/revision": "3",
            "team": "x",
        },
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u2"}],
    },
}


def test_pod():
    before = repr(POD)
    clean = sanitize(POD)
    assert clean == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "annotations": {"team": "x"},
            "labels": {"a": "2", "b": "1"},
            "name": "p",
            "namespace": "ns",
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u2"}],
        },
        "spec": {"a": None, "b": [{"a": 2, "z": 1}]},
        "status": {"phase": "Running"},
    }
    assert list(clean) == ["apiVersion", "kind", "metadata", "spec", "status"]
    assert list(clean["spec"]) == ["a", "b"] and list(clean["spec"]["b"][0]) == ["a", "z"]
    assert repr(POD) == before
    clean["spec"]["b"].append(1)
    assert repr(POD) == before


def test_other_kinds_keep_a_field_called_node_name():
    obj = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "spec": {"nodeName": "n"}, "data": {}}
    clean = sanitize(obj)
    assert clean["spec"] == {"nodeName": "n"} and clean["metadata"] == {"annotations": {}, "name": "e"}
    assert list(clean) == ["apiVersion", "kind", "metadata", "data", "spec"]


def test_twice_is_once():
    assert sanitize(sanitize(POD)) == sanitize(POD)
