"""The request machine, verb by verb: codes, reasons and texts as kube-apiserver's, and what is stored afterwards."""

import pytest

from steersman.api.errors import AlreadyExists, ApiError, BadRequest, Conflict, Forbidden, Invalid, NotFound
from steersman.kernel.effect import Call, Commit, Reply, Request
from steersman.kernel.store import NODE, OWNER, StoreConfig, label_index
from tests.api.cluster import NOW_TEXT, Cluster, crd, deployment, pod

POD, DEPLOYMENT = "v1/Pod", "apps/v1/Deployment"


def refused(call, *args, **kwargs):
    with pytest.raises(ApiError) as caught:
        call(*args, **kwargs)
    return caught.value


# -- create ----------------------------------------------------------------------------------------------------


def test_create_sets_what_only_the_server_sets(cluster):
    given = {"uid": "mine", "resourceVersion": "", "generation": 9, "creationTimestamp": "1999-01-01T00:00:00Z"}
    reply = cluster.create(DEPLOYMENT, "web", metadata=given, spec=deployment())
    assert reply.code == 201
    meta = cluster.get(DEPLOYMENT, "web")["metadata"]
    assert meta == {
        "name": "web",
        "namespace": "shop",
        "uid": "uid-2",
        "creationTimestamp": NOW_TEXT,
        "generation": 1,
        "resourceVersion": "2",
    }


def test_create_fills_defaults_and_drops_status(cluster):
    cluster.create(POD, "web", spec=pod(), status={"phase": "Running"})
    made = cluster.get(POD, "web")
    assert made["spec"]["restartPolicy"] == "Always"
    assert made["status"]["phase"] == "Pending"


def test_create_of_a_taken_name(cluster):
    cluster.create(POD, "web", spec=pod())
    error = refused(cluster.create, POD, "web", spec=pod())
    assert (error.code, error.reason) == (409, "AlreadyExists")
    assert error.message == 'pods "web" already exists'
    assert isinstance(error, AlreadyExists)


def test_create_asks_for_randomness_and_nothing_else(cluster):
    key = cluster.key(POD, "web")
    outcome = cluster.api.begin(cluster.store, Request("create", key, {"spec": pod()}))
    assert isinstance(outcome, Call)
    assert (outcome.kind, outcome.question) == ("random", ("uid", key))
    commit = outcome.resume("u-1")
    assert isinstance(commit, Commit)
    assert (commit.key, commit.old, commit.new.uid, commit.code) == (key, None, "u-1", 201)
    assert cluster.store.get(key) is None  # nothing is written before the face commits


def test_generate_name(cluster):
    cluster.suffixes = ["abcde"]
    body = {"metadata": {"generateName": "web-"}, "spec": pod()}
    reply = cluster.request("create", POD, "", body)
    assert reply.obj.key.name == "web-abcde"
    assert reply.obj.value["metadata"]["generateName"] == "web-"
    assert cluster.asked[-2:] == ["name", "uid"]


def test_generate_name_draws_again_and_gives_up(cluster):
    body = {"metadata": {"generateName": "web-"}, "spec": pod()}
    cluster.suffixes = ["abcde"]
    cluster.request("create", POD, "", body)
    cluster.suffixes = ["abcde", "abcde", "fghij"]
    assert cluster.request("create", POD, "", body).obj.key.name == "web-fghij"
    cluster.suffixes = ["abcde"] * 8
    error = refused(cluster.request, "create", POD, "", body)
    assert (error.code, error.reason) == (409, "AlreadyExists")
    assert "was not able to generate a unique name" in error.message
    assert cluster.suffixes == []


def test_a_name_is_needed(cluster):
    error = refused(cluster.request, "create", POD, "", {"spec": pod()})
    assert (error.code, error.reason) == (422, "Invalid")
    assert "metadata.name: Required value: name or generateName is required" in error.message


def test_create_in_a_missing_namespace(cluster):
    error = refused(cluster.create, POD, "web", namespace="nowhere", spec=pod())
    assert (error.code, error.reason, error.message) == (404, "NotFound", 'namespaces "nowhere" not found')
    assert error.status()["details"] == {"name": "nowhere", "kind": "namespaces"}


def test_create_in_a_namespace_that_is_going_away(cluster):
    cluster.delete("v1/Namespace", "shop")
    error = refused(cluster.create, POD, "web", spec=pod())
    assert isinstance(error, Forbidden)
    assert error.message == (
        'pods "web" is forbidden: unable to create new content in namespace shop because it is being terminated'
    )
    (cause,) = error.status()["details"]["causes"]
    assert cause == {
        "reason": "NamespaceTerminating",
        "message": "namespace shop is being terminated",
        "field": "metadata.namespace",
    }


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ([], "the body must be a Pod object, not list"),
        ({"apiVersion": "v2"}, 'apiVersion in the body is "v2", but the request is for v1'),
        ({"kind": "Node"}, 'kind in the body is "Node", but the request is for Pod'),
        ({"metadata": []}, "metadata must be an object"),
        ({"metadata": {"namespace": "other"}}, "does not match the namespace sent on the request"),
        ({"metadata": {"name": "other"}}, "does not match the name on the URL"),
        ({"spec": {"containers": "x"}}, 'Pod in version "v1" cannot be handled as a Pod: spec.containers: '),
    ],
)
def test_malformed_bodies_are_400(cluster, body, words):
    error = refused(cluster.request, "create", POD, "web", body)
    assert (error.code, error.reason) == (400, "BadRequest")
    assert words in error.message


def test_invalid_objects_are_422_with_all_causes(cluster):
    spec = pod(containers=[{"name": "Bad Name"}, {"name": "b", "image": "b"}, {"name": "b", "image": "b"}])
    error = refused(cluster.create, POD, "web", metadata={"labels": {"a/b/c": "x"}}, spec=spec)
    assert isinstance(error, Invalid)
    error = refused(cluster.create, POD, "web", spec=spec)
    fields = [cause.field for cause in error.causes]
    assert {"spec.containers[0].name", "spec.containers[0].image", "spec.containers[2].name"} <= set(fields)
    assert error.message.startswith('Pod "web" is invalid: [')
    assert error.status()["details"]["kind"] == "Pod"


@pytest.mark.parametrize(
    ("kind", "parts", "field"),
    [
        (DEPLOYMENT, {}, "spec.selector"),
        (POD, {}, "spec.containers"),
        (POD, {"spec": None}, "spec.containers"),
        ("v1/Service", {}, "spec.ports"),
        ("v1/PersistentVolumeClaim", {}, "spec.accessModes"),
        ("storage.k8s.io/v1/StorageClass", {}, "provisioner"),
        ("rbac.authorization.k8s.io/v1/RoleBinding", {}, "roleRef.kind"),
    ],
)
def test_missing_parts_are_told(cluster, kind, parts, field):
    error = refused(cluster.create, kind, "web", **parts)
    assert (error.code, error.reason) == (422, "Invalid")
    assert field in [cause.field for cause in error.causes]


def test_cluster_scoped_kinds_have_no_namespace(cluster):
    cluster.request("create", "v1/Node", "n1", {"metadata": {"name": "n1", "namespace": "shop"}})
    assert "namespace" not in cluster.get("v1/Node", "n1")["metadata"]
    key = cluster.key("v1/Node", "n2")._replace(namespace="shop")
    error = refused(cluster.send, Request("create", key, {}))
    assert (error.code, error.reason) == (400, "BadRequest")


def test_string_data_of_a_secret_is_encoded(cluster):
    cluster.create("v1/Secret", "s", data={"a": "AA=="}, stringData={"b": "hello"})
    secret = cluster.get("v1/Secret", "s")
    assert secret["data"] == {"a": "AA==", "b": "aGVsbG8="}
    assert "stringData" not in secret
    assert secret["type"] == "Opaque"


# -- field validation ------------------------------------------------------------------------------------------


def test_field_validation(cluster):
    spec = pod(replica=3)
    error = refused(cluster.create, POD, "web", spec=spec, options={"validation": "Strict"})
    assert (error.code, error.reason) == (400, "BadRequest")
    assert error.message == (
        'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.replica"'
    )
    reply = cluster.create(POD, "web", spec=spec, options={"validation": "Warn"})
    assert reply.warnings == ('unknown field "spec.replica"',)
    assert "replica" not in cluster.get(POD, "web")["spec"]
    assert cluster.create(POD, "two", spec=spec, options={"validation": "Ignore"}).warnings == ()
    assert cluster.create(POD, "three", spec=spec).warnings  # Warn is the default
    reply = cluster.create(POD, "four", metadata={"colour": "red"}, spec=pod(), extra=5)
    assert set(reply.warnings) == {'unknown field "metadata.colour"', 'unknown field "extra"'}


# -- get and list ----------------------------------------------------------------------------------------------


def test_get_of_what_is_not_there(cluster):
    error = refused(cluster.get, DEPLOYMENT, "web")
    assert isinstance(error, NotFound)
    assert error.message == 'deployments.apps "web" not found'
    assert error.status()["details"] == {"name": "web", "group": "apps", "kind": "deployments"}


def names(reply):
    return [f"{obj.key.namespace}/{obj.key.name}" for obj in reply.items]


@pytest.fixture(params=["plain", "indexed"])
def full(request):
    """Ten pods in two namespaces; the label `app` indexed or not."""
    indexes = (OWNER, NODE, label_index(("", "Pod"), "app")) if request.param == "indexed" else ()
    made = Cluster(config=StoreConfig(indexes=(*indexes,) or (OWNER, NODE)))
    for namespace in ("shop", "bank"):
        made.create("v1/Namespace", namespace)
        for number in range(5):
            labels = {"app": "web" if number % 2 else "db", "n": str(number)}
            spec = pod(nodeName=f"node-{number}") if number < 3 else pod()
            made.create(POD, f"p{number}", namespace=namespace, metadata={"labels": labels}, spec=spec)
    return made


def test_list_order_and_revision(full):
    reply = full.list(POD, "")
    assert names(reply) == [f"{ns}/p{n}" for ns in ("bank", "shop") for n in range(5)]
    assert (reply.code, reply.rev, reply.token, reply.remaining) == (200, full.store.rev, "", 0)
    assert names(full.list(POD)) == [f"shop/p{n}" for n in range(5)]
    assert names(full.list(POD, "nowhere")) == []
    assert names(full.list(DEPLOYMENT)) == []


def test_label_selectors(full):
    assert names(full.list(POD, labels="app=web")) == ["shop/p1", "shop/p3"]
    assert names(full.list(POD, labels="app in (web,db),n notin (0,1,2,3)")) == ["shop/p4"]
    assert names(full.list(POD, labels="!app")) == []
    assert names(full.list(POD, labels={"matchLabels": {"app": "db", "n": "2"}})) == ["shop/p2"]
    error = refused(full.list, POD, labels="app=(")
    assert (error.code, error.reason) == (400, "BadRequest")


def test_field_selectors(full):
    assert names(full.list(POD, "", fields="metadata.name=p1")) == ["bank/p1", "shop/p1"]
    assert names(full.list(POD, "", fields="metadata.namespace!=shop,metadata.name=p1")) == ["bank/p1"]
    assert names(full.list(POD, "", fields="spec.nodeName=node-1")) == ["bank/p1", "shop/p1"]
    assert names(full.list(POD, "shop", fields="spec.nodeName=node-1")) == ["shop/p1"]
    assert names(full.list(POD, "shop", fields="spec.nodeName=")) == ["shop/p3", "shop/p4"]
    assert names(full.list(POD, "shop", fields="spec.nodeName!=node-1,status.phase=Pending", labels="app=db")) == [
        "shop/p0",
        "shop/p2",
        "shop/p4",
    ]
    assert names(full.list(POD, fields="status.phase=Running")) == []
    assert names(full.list(POD, fields="spec.restartPolicy=Always,spec.schedulerName=default-scheduler"))
    error = refused(full.list, POD, fields="spec.colour=red")
    assert (error.code, error.reason) == (400, "BadRequest")
    assert "spec.colour" in error.message


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 9, 10, 11])
@pytest.mark.parametrize("options", [{}, {"labels": "app=db"}, {"fields": "spec.nodeName=node-1"}], ids=str)
def test_pages(full, limit, options):
    whole = names(full.list(POD, "", **options))
    read, token, first_rev = [], "", full.store.rev
    while True:
        reply = full.list(POD, "", limit=limit, **{"continue": token} if token else {}, **options)
        read += names(reply)
        assert reply.rev == first_rev  # of the first page, whatever was written meanwhile
        if not options and reply.token:
            assert reply.remaining == len(whole) - len(read)
        full.merge(POD, "p0", {"metadata": {"labels": {"beat": str(len(read))}}})
        token = reply.token
        if not token:
            break
        assert len(reply.items) == limit
    assert read == whole


def test_a_page_continues_behind_a_name_that_is_gone(full):
    token = full.list(POD, limit=2).token
    full.delete(POD, "p1", grace=0)
    full.delete(POD, "p2", grace=0)
    assert names(full.list(POD, **{"continue": token})) == ["shop/p3", "shop/p4"]


@pytest.mark.parametrize("options", [{"continue": "nonsense"}, {"continue": "WzFd"}, {"limit": "many"}, {"limit": -1}])
def test_wrong_list_options(full, options):
    error = refused(full.list, POD, **options)
    assert (error.code, error.reason) == (400, "BadRequest")


# -- update and patch ------------------------------------------------------------------------------------------


@pytest.fixture
def web(cluster):
    """A cluster with the Deployment `web`."""
    cluster.create(DEPLOYMENT, "web", metadata={"labels": {"a": "1"}, "annotations": {"b": "2"}}, spec=deployment(2))
    return cluster


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
        lambda c: c.update(DEPLOYMENT, "web", sub="status", spec={"nonsense": 1}),
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
    assert "status" not in web.get(DEPLOYMENT, "web")


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
    assert refused(web.merge, DEPLOYMENT, "web", {"kind": "Pod"}).code == 400
    assert refused(web.merge, DEPLOYMENT, "web", {"metadata": 5}).code == 400
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
    error = refused(cluster.request, "patch", "v1/Namespace", "shop", {}, patch="strategic")
    assert (error.code, error.reason) == (415, "UnsupportedMediaType")


def test_immutable_data(cluster):
    cluster.create("v1/ConfigMap", "c", data={"a": "b"}, immutable=True)
    error = refused(cluster.merge, "v1/ConfigMap", "c", {"data": {"a": "c"}})
    assert (error.code, error.reason) == (422, "Invalid")
    assert "field is immutable when `immutable` is set" in error.message
    cluster.merge("v1/ConfigMap", "c", {"metadata": {"labels": {"a": "b"}}})


# -- dry run ---------------------------------------------------------------------------------------------------


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


# -- delete ----------------------------------------------------------------------------------------------------


def test_delete(web):
    reply = web.delete(DEPLOYMENT, "web")
    assert (reply.code, reply.obj.key.name) == (200, "web")
    assert web.read(DEPLOYMENT, "web") is None
    assert refused(web.delete, DEPLOYMENT, "web").code == 404


def test_delete_preconditions(web):
    error = refused(web.delete, DEPLOYMENT, "web", uid="other")
    assert (error.code, error.reason) == (409, "Conflict")
    assert "Precondition failed: UID in precondition: other, UID in object meta: uid-2" in error.message
    error = refused(web.delete, DEPLOYMENT, "web", rv="1")
    assert (error.code, error.reason) == (409, "Conflict")
    assert "ResourceVersion in precondition: 1, ResourceVersion in object meta: 2" in error.message
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


def test_finalize_before_the_deletion(cluster):
    space = cluster.get("v1/Namespace", "shop")
    space["spec"] = {"finalizers": []}
    cluster.request("update", "v1/Namespace", "shop", space, "finalize")
    assert cluster.read("v1/Namespace", "shop") is not None
    cluster.delete("v1/Namespace", "shop")
    assert cluster.read("v1/Namespace", "shop") is None


def test_finalize_is_for_namespaces_alone(web):
    error = refused(web.update, DEPLOYMENT, "web", sub="finalize", spec=deployment())
    assert (error.code, error.reason) == (405, "MethodNotAllowed")


def test_unsupported_propagation_names_the_remedy(web):
    error = refused(web.delete, DEPLOYMENT, "web", propagation="Foreground")
    assert error.code == 400
    assert "use Background" in error.message


# -- binding ---------------------------------------------------------------------------------------------------


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


# -- custom kinds ----------------------------------------------------------------------------------------------

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


@pytest.mark.parametrize(
    ("spec", "field", "words"),
    [
        ({"size": 0}, "spec.size", "should be greater than or equal to 1"),
        ({"size": 11}, "spec.size", "should be less than or equal to 10"),
        ({"size": "3"}, "spec.size", "must be an integer"),
        ({}, "spec.size", "Required value"),
        ({"size": 1, "colour": "green"}, "spec.colour", 'supported values: "red", "blue"'),
        ({"size": 1, "name": "Upper"}, "spec.name", "should match '^[a-z]+$'"),
        ({"size": 1, "name": "toolong"}, "spec.name", "5"),
        ({"size": 1, "limits": {"a": "x"}}, "spec.limits[a]", "must be an integer"),
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
        'Widget.example.com "w" is invalid: metadata.resourceVersion: Invalid value: 0x0: '
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


# -- who writes ------------------------------------------------------------------------------------------------


def test_a_manager_is_a_short_printable_name(cluster):
    for manager in ("x" * 129, "a\nb"):
        error = refused(cluster.create, POD, "web", manager=manager, spec=pod())
        assert (error.code, error.reason) == (422, "Invalid")
        assert "fieldManager" in error.message
    assert isinstance(refused(cluster.create, POD, "web", manager="x" * 200, spec=pod()), Invalid)


def test_the_actor_stands_in_for_the_manager(cluster):
    cluster.create(POD, "web", manager="", spec=pod())
    assert list(cluster.managed(POD, "web")) == [("someone", "Update", "")]


def test_bad_request_class(cluster):
    assert isinstance(refused(cluster.request, "create", POD, "web", 5), BadRequest)
