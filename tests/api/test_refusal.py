"""Refusals say everything at once, and a name that is taken last."""

import pytest

from tests.api.cluster import deployment, pod, refused

DEPLOYMENT = "apps/v1/Deployment"


def test_everything_that_is_wrong_is_said_at_once(cluster):
    spec = {**deployment(1), "replicas": -1}
    error = refused(cluster.create, DEPLOYMENT, "web", metadata={"labels": {"-": "x"}}, spec=spec)
    assert error.code == 422
    assert [cause.field for cause in error.causes] == ["metadata.labels", "spec.replicas"]


def test_an_object_without_a_name_is_judged_whole(cluster):
    error = refused(cluster.request, "create", "v1/Pod", "", {"metadata": {}, "spec": {"containers": []}})
    assert [cause.field for cause in error.causes][:2] == ["metadata.name", "spec.containers"]


def test_that_a_name_is_taken_is_said_last(cluster):
    cluster.create("v1/Pod", "a", spec=pod())
    assert refused(cluster.create, "v1/Pod", "a", spec={"containers": []}).code == 422
    taken = refused(cluster.create, "v1/Pod", "a", spec={**pod(), "unknown": 1})
    assert (taken.code, taken.reason, taken.warnings) == (409, "AlreadyExists", ('unknown field "spec.unknown"',))
    assert cluster.asked.count("uid") == 2  # of the namespace and the pod: none is drawn for what cannot be


@pytest.mark.parametrize("kind", ["v1/Endpoints", "rbac.authorization.k8s.io/v1/ClusterRole"])
def test_some_kinds_are_made_by_a_put(cluster, kind):
    body = {"metadata": {"name": "a"}}
    assert cluster.request("update", kind, "a", body).code == 201
    assert cluster.request("update", kind, "a", body).code == 200
    stale = refused(cluster.request, "update", kind, "b", {"metadata": {"name": "b", "resourceVersion": "1"}})
    assert (stale.code, stale.reason) == (409, "Conflict")


def test_a_put_that_may_not_create_does_not(cluster):
    no = RuntimeError("no")
    with pytest.raises(RuntimeError):
        cluster.request("update", "v1/Endpoints", "a", {"metadata": {"name": "a"}}, no_create=no)


def test_others_are_not(cluster):
    assert refused(cluster.request, "update", "v1/ConfigMap", "a", {"metadata": {"name": "a"}}).code == 404


def test_a_valid_create_is_one_pass(cluster, monkeypatch):
    monkeypatch.setattr("steersman.api.refusal.complete", None)
    assert cluster.create("v1/Pod", "b", spec=pod()).code == 201


def test_parts_without_a_name_are_no_fault_of_the_server(cluster):
    body = {"metadata": {"name": "w"}, "binaryData": {"b": "AA==", 5: None}, 5: None}
    error = refused(cluster.request, "create", "v1/ConfigMap", "w", body)
    assert error.code in (400, 422) and "keys must be strings" in error.message
