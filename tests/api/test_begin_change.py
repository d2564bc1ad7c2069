"""The request machine: updates, patches, status and dry runs."""

import pytest

from steersman.api.errors import Conflict
from steersman.kernel.effect import Reply
from tests.api.cluster import deployment, pod, refused

POD, DEPLOYMENT = "v1/Pod", "apps/v1/Deployment"


@pytest.fixture
def web(cluster):
    """A cluster with the Deployment `web`."""
    cluster.create(DEPLOYMENT, "web", metadata={"labels": {"a": "1"}, "annotations": {"b": "2"}}, spec=deployment(2))
    return cluster


# -- update and patch --------------------------------------------------------------------------------------------


def test_update_replaces(web):
    obj = web.get(DEPLOYMENT, "web")
    obj["spec"]["replicas"] = 5
    obj["metadata"]["labels"] = {"c": "3"}
    del obj["metadata"]["annotations"]
    reply = web.request("update", DEPLOYMENT, "web", obj)
    assert reply.code == 200
    new = web.get(DEPLOYMENT, "web")
    assert new["spec"]["replicas"] == 5
    assert new["metadata"]["labels"] == {"c": "3"}
    assert "annotations" not in new["metadata"]
    assert new["metadata"]["generation"] == 2
    assert new["metadata"]["resourceVersion"] == str(web.store.rev) != obj["metadata"]["resourceVersion"]


def test_update_of_an_old_version(web):
    obj = web.get(DEPLOYMENT, "web")
    web.merge(DEPLOYMENT, "web", {"spec": {"replicas": 3}})
    obj["spec"]["replicas"] = 4
    error = refused(web.request, "update", DEPLOYMENT, "web", obj)
    assert isinstance(error, Conflict)
    assert (error.code, error.reason) == (409, "Conflict")
    assert error.message == (
        'Operation cannot be fulfilled on deployments.apps "web": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    assert web.get(DEPLOYMENT, "web")["spec"]["replicas"] == 3
    del obj["metadata"]["resourceVersion"]
    web.request("update", DEPLOYMENT, "web", obj)  # unconditional
    assert web.get(DEPLOYMENT, "web")["spec"]["replicas"] == 4
    refused(web.request, "update", DEPLOYMENT, "web", obj, rv="1")


def test_update_of_another_incarnation(web):
    obj = web.get(DEPLOYMENT, "web")
    obj["metadata"]["uid"] = "other"
    error = refused(web.request, "update", DEPLOYMENT, "web", obj)
    assert (error.code, error.reason) == (409, "Conflict")
    assert "Precondition failed: UID in precondition: other, UID in object meta: uid-2" in error.message


def test_generation_counts_spec_changes_only(web):
    def generation():
        return web.get(DEPLOYMENT, "web")["metadata"]["generation"]

    web.merge(DEPLOYMENT, "web", {"metadata": {"labels": {"x": "y"}}})
    assert generation() == 1
    web.merge(DEPLOYMENT, "web", {"status": {"replicas": 2}}, sub="status")
    assert generation() == 1
    web.merge(DEPLOYMENT, "web", {"spec": {"replicas": 7}})
    assert generation() == 2
    web.create("v1/Service", "svc", spec={"ports": [{"port": 80}]})
    assert "generation" not in web.get("v1/Service", "svc")["metadata"]


@pytest.mark.parametrize(
    "write",
    [
        lambda c: c.request("update", DEPLOYMENT, "web", c.get(DEPLOYMENT, "web")),
        lambda c: c.merge(DEPLOYMENT, "web", {}),
        lambda c: c.merge(DEPLOYMENT, "web", {"spec": {"replicas": 2}, "metadata": {"labels": {"gone": None}}}),
        lambda c: c.json_patch(DEPLOYMENT, "web", []),
        lambda c: c.json_patch(DEPLOYMENT, "web", [{"op": "test", "path": "/spec/replicas", "value": 2}]),
        lambda c: c.merge(DEPLOYMENT, "web", {"status": {"replicas": 9}}),  # status is not written here
        lambda c: c.merge(DEPLOYMENT, "web", {"spec": {"replicas": 9}}, sub="status"),  # nor spec there
        lambda c: c.update(
            DEPLOYMENT, "web", sub="status", metadata=c.get(DEPLOYMENT, "web")["metadata"], spec={"nonsense": 1}
        ),
    ],
    ids=["update", "empty merge", "merge", "empty patch", "test", "status by spec", "spec by status", "put status"],
)
def test_what_changes_nothing_keeps_the_version(web, write):
    before = web.read(DEPLOYMENT, "web")
    reply = write(web)
    assert isinstance(reply, Reply)
    assert reply.obj is before
    assert web.read(DEPLOYMENT, "web") is before


def test_status_is_a_subresource(web):
    obj = web.get(DEPLOYMENT, "web")
    obj["status"] = {"replicas": 2, "readyReplicas": 1}
    obj["spec"]["replicas"] = 9
    obj["metadata"]["labels"] = {"z": "z"}
    web.request("update", DEPLOYMENT, "web", obj, "status")
    new = web.get(DEPLOYMENT, "web")
    assert new["status"] == {"replicas": 2, "readyReplicas": 1}
    assert new["spec"]["replicas"] == 2
    web.merge(DEPLOYMENT, "web", {"status": {"readyReplicas": None, "observedGeneration": 1}}, sub="status")
    assert web.get(DEPLOYMENT, "web")["status"] == {"replicas": 2, "observedGeneration": 1}
    obj = web.get(DEPLOYMENT, "web")
    obj["spec"]["replicas"] = 4
    obj["status"] = {}
    web.request("update", DEPLOYMENT, "web", obj)
    assert web.get(DEPLOYMENT, "web")["status"] == {"replicas": 2, "observedGeneration": 1}
    web.json_patch(DEPLOYMENT, "web", [{"op": "replace", "path": "/status/replicas", "value": 3}], sub="status")
    assert web.get(DEPLOYMENT, "web")["status"]["replicas"] == 3
    web.merge(DEPLOYMENT, "web", {"status": None}, sub="status")
    assert web.get(DEPLOYMENT, "web")["status"] == {}


def test_status_patch_with_a_version(web):
    rv = web.get(DEPLOYMENT, "web")["metadata"]["resourceVersion"]
    body = {"metadata": {"resourceVersion": rv}, "status": {"replicas": 1}}
    web.merge(DEPLOYMENT, "web", body, sub="status")
    body = {"metadata": {"resourceVersion": rv}, "status": {"replicas": 2}}
    assert refused(web.merge, DEPLOYMENT, "web", body, sub="status").code == 409
    assert refused(web.merge, DEPLOYMENT, "web", [], sub="status").code == 400
    assert refused(web.merge, DEPLOYMENT, "web", {"status": "ready"}, sub="status").code == 400


def test_kinds_without_a_status_subresource(cluster):
    cluster.create("v1/ConfigMap", "c", data={"a": "b"})
    error = refused(cluster.merge, "v1/ConfigMap", "c", {"status": {}}, sub="status")
    assert (error.code, error.reason) == (405, "MethodNotAllowed")


def test_merge_patch(web):
    web.merge(DEPLOYMENT, "web", {"metadata": {"annotations": {"b": None, "c": "3"}}, "spec": {"paused": True}})
    new = web.get(DEPLOYMENT, "web")
    assert new["metadata"]["annotations"] == {"c": "3"}
    assert new["spec"]["paused"] is True
    web.merge(DEPLOYMENT, "web", {"spec": {"replicas": None}})
    assert web.get(DEPLOYMENT, "web")["spec"]["replicas"] == 1  # the default again
    assert refused(web.merge, DEPLOYMENT, "web", {"metadata": {"resourceVersion": "1"}}).code == 409
    assert refused(web.merge, DEPLOYMENT, "web", {"metadata": {"name": "other"}}).code == 400
    assert refused(web.merge, DEPLOYMENT, "web", {"kind": "Pod"}).code == 422
    assert refused(web.merge, DEPLOYMENT, "web", {"metadata": 5}).code == 422
    assert refused(web.merge, DEPLOYMENT, "web", {"spec": {"selector": {"matchLabels": {"app": "x"}}}}).code == 422


def test_json_patch(web):
    operations = [
        {"op": "test", "path": "/metadata/resourceVersion", "value": "2"},
        {"op": "add", "path": "/metadata/finalizers", "value": ["example.com/hold"]},
        {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "app:2"},
    ]
    web.json_patch(DEPLOYMENT, "web", operations)
    new = web.get(DEPLOYMENT, "web")
    assert new["metadata"]["finalizers"] == ["example.com/hold"]
    assert new["spec"]["template"]["spec"]["containers"][0]["image"] == "app:2"
    error = refused(web.json_patch, DEPLOYMENT, "web", operations)  # kopf waits for this 422
    assert (error.code, error.reason) == (422, "Invalid")
    assert web.get(DEPLOYMENT, "web") == new
    rename = [{"op": "replace", "path": "/metadata/name", "value": "x"}]
    assert refused(web.json_patch, DEPLOYMENT, "web", rename).code == 400
    version = [{"op": "replace", "path": "/metadata/resourceVersion", "value": "1"}]
    assert refused(web.json_patch, DEPLOYMENT, "web", version).code == 409
    kind = [{"op": "replace", "path": "/kind", "value": "Pod"}]
    assert refused(web.json_patch, DEPLOYMENT, "web", kind).code == 400
    assert refused(web.json_patch, DEPLOYMENT, "web", {"spec": {}}).code == 400


def test_patches_of_what_is_not_there(cluster):
    assert refused(cluster.merge, POD, "web", {}).code == 404
    assert refused(cluster.json_patch, POD, "web", []).code == 404
    assert refused(cluster.update, POD, "web", spec=pod()).code == 404
    error = refused(cluster.request, "patch", "v1/Namespace", "shop", {}, patch="cbor")
    assert (error.code, error.reason) == (415, "UnsupportedMediaType")


def test_immutable_data(cluster):
    cluster.create("v1/ConfigMap", "c", data={"a": "b"}, immutable=True)
    error = refused(cluster.merge, "v1/ConfigMap", "c", {"data": {"a": "c"}})
    assert (error.code, error.reason) == (422, "Invalid")
    assert "field is immutable when `immutable` is set" in error.message
    cluster.merge("v1/ConfigMap", "c", {"metadata": {"labels": {"a": "b"}}})


# -- dry run -----------------------------------------------------------------------------------------------------


def test_dry_run_stores_nothing(web):
    rev = web.store.rev
    made = web.create(POD, "p", spec=pod(), options={"dry_run": True})
    assert (made.code, made.obj.key.name) == (201, "p")
    assert "resourceVersion" not in made.obj.value["metadata"]
    old = web.get(DEPLOYMENT, "web")["metadata"]["resourceVersion"]
    changed = web.merge(DEPLOYMENT, "web", {"spec": {"replicas": 8}}, dry_run=True)
    assert changed.obj.value["spec"]["replicas"] == 8
    assert changed.obj.value["metadata"]["resourceVersion"] == old
    applied = web.apply(DEPLOYMENT, "new", spec=deployment(1), options={"dry_run": True})
    assert applied.code == 201
    assert web.delete(DEPLOYMENT, "web", dry_run=True).obj.key.name == "web"
    assert web.store.rev == rev
    assert web.get(DEPLOYMENT, "web")["spec"]["replicas"] == 2
    error = refused(web.create, DEPLOYMENT, "web", spec=deployment(), options={"dry_run": True})
    assert error.reason == "AlreadyExists"
