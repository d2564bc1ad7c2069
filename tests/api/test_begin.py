"""The request machine: creates, reads and who writes; codes, reasons and texts are kube-apiserver's."""

import pytest

from steersman.api.errors import AlreadyExists, BadRequest, Forbidden, Invalid, NotFound
from steersman.kernel.effect import Call, Commit, Request
from steersman.kernel.store import NODE, OWNER, StoreConfig, label_index
from tests.api.cluster import NOW_TEXT, Cluster, deployment, pod, refused

POD, DEPLOYMENT = "v1/Pod", "apps/v1/Deployment"


# -- create ------------------------------------------------------------------------------------------------------


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
        ({"apiVersion": "v2"}, 'no kind "Pod" is registered for version "v2" in scheme'),
        ({"kind": "Node"}, "converting (v1.Node) to (core.Pod): unknown conversion"),
        ({"metadata": []}, "cannot unmarshal array into Go struct field Pod.metadata of type v1.ObjectMeta"),
        ({"metadata": {"namespace": "other"}}, "does not match the namespace sent on the request"),
        ({"metadata": {"name": "other"}}, "does not match the name on the URL"),
        (
            {"spec": {"containers": "x"}},
            'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal string into Go struct field',
        ),
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


# -- field validation --------------------------------------------------------------------------------------------


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


# -- get and list ------------------------------------------------------------------------------------------------


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


# -- who writes --------------------------------------------------------------------------------------------------


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
