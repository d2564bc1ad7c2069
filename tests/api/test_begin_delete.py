"""The request machine: deletion, finalizers, namespaces and bindings."""

import pytest

from steersman.api.deletion import MAX_GRACE
from steersman.api.errors import Conflict
from steersman.api.times import MICRO, parse_time
from tests.api.cluster import NOW_TEXT, deployment, pod, refused

POD, DEPLOYMENT = "v1/Pod", "apps/v1/Deployment"


@pytest.fixture
def web(cluster):
    """A cluster with the Deployment `web`."""
    cluster.create(DEPLOYMENT, "web", metadata={"labels": {"a": "1"}, "annotations": {"b": "2"}}, spec=deployment(2))
    return cluster


# -- delete ------------------------------------------------------------------------------------------------------


def test_delete(web):
    reply = web.delete(DEPLOYMENT, "web")
    assert (reply.code, reply.obj.key.name) == (200, "web")
    assert web.read(DEPLOYMENT, "web") is None
    assert refused(web.delete, DEPLOYMENT, "web").code == 404


def test_delete_preconditions(web):
    error = refused(web.delete, DEPLOYMENT, "web", uid="other")
    assert (error.code, error.reason) == (409, "Conflict")
    assert (
        "the UID in the precondition (other) does not match the UID in record (uid-2). The object might"
        in error.message
    )
    error = refused(web.delete, DEPLOYMENT, "web", rv="1")
    assert (error.code, error.reason) == (409, "Conflict")
    assert (
        "the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (2). The"
        in error.message
    )
    web.delete(DEPLOYMENT, "web", uid="uid-2", rv="2")
    assert web.read(DEPLOYMENT, "web") is None


def test_finalizers_hold_an_object(cluster):
    held = {"finalizers": ["example.com/a", "example.com/b"]}
    cluster.create(DEPLOYMENT, "web", metadata=held, spec=deployment())
    cluster.now += 10
    cluster.delete(DEPLOYMENT, "web")
    meta = cluster.get(DEPLOYMENT, "web")["metadata"]
    assert meta["deletionTimestamp"] == "2026-05-28T20:26:50Z"
    assert meta["deletionGracePeriodSeconds"] == 0
    assert meta["generation"] == 2
    before = cluster.read(DEPLOYMENT, "web")
    cluster.now += 10
    assert cluster.delete(DEPLOYMENT, "web").obj is before
    error = refused(cluster.merge, DEPLOYMENT, "web", {"metadata": {"finalizers": [*held["finalizers"], "x.io/c"]}})
    assert error.code == 422
    assert "no new finalizers can be added if the object is being deleted" in error.message
    cluster.merge(DEPLOYMENT, "web", {"metadata": {"finalizers": ["example.com/b"]}})
    assert cluster.get(DEPLOYMENT, "web")["metadata"]["finalizers"] == ["example.com/b"]
    reply = cluster.merge(DEPLOYMENT, "web", {"metadata": {"finalizers": None}})
    assert reply.code == 200
    assert cluster.read(DEPLOYMENT, "web") is None


@pytest.mark.parametrize("by", ["update", "json", "apply"])
def test_the_last_finalizer_goes_by_any_verb(cluster, by):
    cluster.apply(DEPLOYMENT, "web", metadata={"finalizers": ["example.com/a"]}, spec=deployment())
    cluster.delete(DEPLOYMENT, "web")
    if by == "update":
        obj = cluster.get(DEPLOYMENT, "web")
        del obj["metadata"]["finalizers"]
        cluster.request("update", DEPLOYMENT, "web", obj)
    elif by == "json":
        cluster.json_patch(DEPLOYMENT, "web", [{"op": "remove", "path": "/metadata/finalizers"}])
    else:
        cluster.apply(DEPLOYMENT, "web", spec=deployment())
    assert cluster.read(DEPLOYMENT, "web") is None


def test_pods_die_slowly_where_somebody_runs_them(cluster):
    cluster.create(POD, "pending", spec=pod())
    cluster.delete(POD, "pending")
    assert cluster.read(POD, "pending") is None
    cluster.create(POD, "web", spec=pod(nodeName="n1"))
    cluster.delete(POD, "web")
    meta = cluster.get(POD, "web")["metadata"]
    assert (meta["deletionGracePeriodSeconds"], meta["deletionTimestamp"]) == (30, "2026-05-28T20:27:10Z")
    assert meta["generation"] == 2
    before = cluster.read(POD, "web")
    cluster.now += 5
    assert cluster.delete(POD, "web", grace=60).obj is before  # longer: nothing
    cluster.delete(POD, "web", grace=10)  # shorter: counted from the first request
    meta = cluster.get(POD, "web")["metadata"]
    assert (meta["deletionGracePeriodSeconds"], meta["deletionTimestamp"]) == (10, "2026-05-28T20:26:50Z")
    assert meta["generation"] == 2
    cluster.delete(POD, "web", grace=0)
    assert cluster.read(POD, "web") is None


@pytest.mark.parametrize("by", ["request", "spec"])
def test_a_grace_without_end_has_one_that_can_be_written_down(cluster, by):
    forever = (1 << 63) - 1
    cluster.create(
        POD, "web", spec=pod(nodeName="n1", **({"terminationGracePeriodSeconds": forever} if by == "spec" else {}))
    )
    cluster.delete(POD, "web", **({"grace": forever} if by == "request" else {}))
    meta = cluster.get(POD, "web")["metadata"]
    assert meta["deletionGracePeriodSeconds"] == MAX_GRACE
    assert parse_time(meta["deletionTimestamp"]) // MICRO == cluster.now + MAX_GRACE


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_finished_pods_go_at_once(cluster, phase):
    cluster.create(POD, "web", spec=pod(nodeName="n1", terminationGracePeriodSeconds=5))
    cluster.merge(POD, "web", {"status": {"phase": phase}}, sub="status")
    cluster.delete(POD, "web")
    assert cluster.read(POD, "web") is None


def test_a_pod_with_finalizers_outlives_its_kubelet(cluster):
    cluster.create(POD, "web", metadata={"finalizers": ["example.com/a"]}, spec=pod(nodeName="n1"))
    cluster.delete(POD, "web")
    cluster.delete(POD, "web", grace=0)
    assert cluster.get(POD, "web")["metadata"]["deletionGracePeriodSeconds"] == 0
    cluster.merge(POD, "web", {"metadata": {"finalizers": None}})
    assert cluster.read(POD, "web") is None


def test_finalizers_do_not_end_a_grace(cluster):
    cluster.create(POD, "web", metadata={"finalizers": ["example.com/a"]}, spec=pod(nodeName="n1"))
    cluster.delete(POD, "web")
    cluster.merge(POD, "web", {"metadata": {"finalizers": None}})
    assert cluster.read(POD, "web") is not None
    cluster.delete(POD, "web", grace=0)
    assert cluster.read(POD, "web") is None


def test_namespaces_go_when_they_are_finalized(cluster):
    space = cluster.get("v1/Namespace", "shop")
    assert space["spec"] == {"finalizers": ["kubernetes"]}
    assert space["status"] == {"phase": "Active"}
    assert space["metadata"]["labels"] == {"kubernetes.io/metadata.name": "shop"}
    cluster.merge("v1/Namespace", "shop", {"spec": {"finalizers": []}, "metadata": {"labels": None}})
    assert cluster.get("v1/Namespace", "shop")["spec"] == space["spec"]  # only by its subresource
    cluster.delete("v1/Namespace", "shop")
    space = cluster.get("v1/Namespace", "shop")
    assert space["status"]["phase"] == "Terminating"
    assert "deletionTimestamp" in space["metadata"]
    space["spec"] = {}
    cluster.request("update", "v1/Namespace", "shop", space, "finalize")
    assert cluster.read("v1/Namespace", "shop") is None


@pytest.mark.parametrize("name", ["default", "kube-public", "kube-system"])
def test_namespaces_of_the_system_cannot_be_deleted(cluster, name):
    for _ in ("not there yet", "there"):
        error = refused(cluster.delete, "v1/Namespace", name)
        assert (error.code, error.reason) == (403, "Forbidden")
        assert error.message == f'namespaces "{name}" is forbidden: this namespace may not be deleted'
        if cluster.read("v1/Namespace", name) is None:
            cluster.create("v1/Namespace", name)
    assert "deletionTimestamp" not in cluster.get("v1/Namespace", name)["metadata"]
    cluster.create("v1/ConfigMap", name, data={})  # it is namespaces that stay, not what is named like them
    cluster.delete("v1/ConfigMap", name)


def test_finalize_before_the_deletion(cluster):
    space = cluster.get("v1/Namespace", "shop")
    space["spec"] = {"finalizers": []}
    cluster.request("update", "v1/Namespace", "shop", space, "finalize")
    assert cluster.read("v1/Namespace", "shop") is not None
    cluster.delete("v1/Namespace", "shop")  # the first request only begins it, whatever there is to wait for
    space = cluster.get("v1/Namespace", "shop")
    assert space["status"]["phase"] == "Terminating" and "deletionGracePeriodSeconds" not in space["metadata"]
    cluster.delete("v1/Namespace", "shop")
    assert cluster.read("v1/Namespace", "shop") is None


def test_finalize_is_for_namespaces_alone(web):
    error = refused(web.update, DEPLOYMENT, "web", sub="finalize", spec=deployment())
    assert (error.code, error.reason) == (405, "MethodNotAllowed")


# -- binding -----------------------------------------------------------------------------------------------------


def bind(cluster, node="n1", **meta):
    body = {"metadata": {"name": "web", **meta}, "target": {"kind": "Node", "name": node}}
    return cluster.request("create", POD, "web", body, "binding")


def test_binding(cluster):
    cluster.create(POD, "web", spec=pod())
    cluster.merge(
        POD,
        "web",
        {"status": {"nominatedNodeName": "n9", "conditions": [{"type": "PodScheduled", "status": "False"}]}},
        sub="status",
    )
    owned = cluster.managed(POD, "web")
    assert bind(cluster, labels={"zone": "z1"}).code == 201
    bound = cluster.get(POD, "web")
    assert bound["spec"]["nodeName"] == "n1"
    assert bound["metadata"]["labels"] == {"zone": "z1"}
    assert bound["status"]["conditions"] == [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": NOW_TEXT},
    ]
    assert "nominatedNodeName" not in bound["status"]
    assert cluster.managed(POD, "web") == owned  # nobody manages what a binding writes
    error = refused(bind, cluster, "n2")
    assert isinstance(error, Conflict)
    assert error.message == (
        'Operation cannot be fulfilled on pods/binding "web": pod web is already assigned to node "n1"'
    )


def test_bindings_that_are_refused(cluster):
    assert refused(bind, cluster).code == 404
    cluster.create(POD, "web", spec=pod(schedulingGates=[{"name": "example.com/wait"}]))
    assert "non-empty .spec.schedulingGates" in refused(bind, cluster).message
    assert refused(bind, cluster, "").code == 400
    assert refused(bind, cluster, uid="other").code == 409
    assert refused(cluster.request, "create", POD, "web", {"target": "n1"}, "binding").code == 400
    cluster.create(DEPLOYMENT, "web", spec=deployment())
    assert refused(cluster.request, "create", DEPLOYMENT, "web", {"target": {"name": "n"}}, "binding").code == 400
    cluster.create(POD, "dying", metadata={"finalizers": ["example.com/a"]}, spec=pod())
    cluster.delete(POD, "dying")
    error = refused(cluster.request, "create", POD, "dying", {"target": {"name": "n"}}, "binding")
    assert "pod dying is being deleted, cannot be assigned to a host" in error.message


def test_bound_pods_share_their_spec(cluster):
    for name in ("a", "b"):
        cluster.create(POD, name, spec=pod())
    before = cluster.read(POD, "a").spec
    cluster.request("create", POD, "a", {"target": {"name": "n1"}}, "binding")
    assert cluster.read(POD, "a").spec is before
    obj = cluster.get(POD, "a")
    obj["metadata"]["labels"] = {"x": "y"}
    cluster.request("update", POD, "a", obj)
    assert cluster.read(POD, "a").spec is before
    assert cluster.read(POD, "a").node == "n1"
