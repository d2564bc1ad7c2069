"""Deleting a namespace: pods first, then everything, then the namespace; what is held back is told."""

from steersman.controllers.builtin import builtin
from steersman.kernel.object import Key
from steersman.nodes.kubelet import VirtualKubelet
from tests.controllers.worlds import client, deployment, make, settle

SHOP = Key("", "Namespace", "", "shop")
SOME = ("deployment", "replicaset", "garbage-collector", "namespace", "job")
ALL = [*builtin(*SOME), VirtualKubelet]


def config(name, **meta):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop", **meta}}


def shop(controllers, *objects):
    """A world with the namespace `shop`, these objects in it."""
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    return make(controllers, [space, *objects])


def web(replicas):
    made = deployment(replicas)
    return {**made, "metadata": {**made["metadata"], "namespace": "shop"}}


def names_left(w):
    return [str(obj.key) for obj in w.store.objects() if obj.key != Key("", "Namespace", "", "default")]


def test_a_deleted_namespace_takes_everything_with_it():
    w = settle(shop(ALL, web(2), config("a")))
    client(w).delete(SHOP)
    settle(w, timers=True)
    assert names_left(w) == [] and not w.memory and not w.wakes


def test_an_empty_namespace_goes_at_once():
    w = shop(ALL)
    client(w).delete(SHOP)
    settle(w)
    assert names_left(w) == []


def test_what_a_finalizer_holds_is_told_and_waited_for():
    w = shop(ALL, config("held", finalizers=["example.com/hold"]))
    c = client(w)
    c.delete(SHOP)
    settle(w)
    told = {each.type: each for each in c.get(SHOP).status.conditions}
    assert told["NamespaceContentRemaining"].reason == "SomeResourcesRemain"
    assert told["NamespaceContentRemaining"].message == (
        "Some resources are remaining: configmaps. has 1 resource instances"
    )
    assert [each.status for each in told.values()] == ["False", "False", "False", "True", "True"]
    assert told["NamespaceDeletionContentFailure"].reason == "ContentDeleted"
    assert "example.com/hold in 1 resource instances" in told["NamespaceFinalizersRemaining"].message
    c.patch(c.get(c.key("v1/ConfigMap", "held", "shop")), {"metadata": {"finalizers": None}})
    settle(w, timers=True)
    assert names_left(w) == []


def test_pods_go_before_what_they_may_still_need():
    w = settle(shop(builtin(), web(1), config("needed")))  # no kubelet: the pod cannot end
    c = client(w)
    c.delete(SHOP)
    settle(w)
    pod = c.list("v1/Pod", "shop")[0]
    assert "deletionTimestamp" in pod.metadata and c.get(c.key("v1/ConfigMap", "needed", "shop"))
    c.delete(pod, grace=0)
    settle(w, timers=True)
    assert names_left(w) == []


def test_what_orphans_by_default_leaves_nothing_behind():
    spec = {"template": {"spec": {**web(1)["spec"]["template"]["spec"], "restartPolicy": "Never"}}}
    meta = {"name": "j", "namespace": "shop"}
    w = shop(ALL, {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec})
    settle(w)
    client(w).delete(SHOP)
    settle(w, timers=True)
    assert names_left(w) == []


def test_a_finalizer_of_the_namespace_itself_holds_it_when_it_is_empty():
    w = shop(ALL)
    c = client(w)
    space = c.get(SHOP)
    c.update({**space, "spec": {"finalizers": ["kubernetes", "x.io/mine"]}}, "finalize")
    c.delete(SHOP)
    settle(w, timers=True)
    space = c.get(SHOP)
    assert space.spec.finalizers == ["x.io/mine"] and space.status.phase == "Terminating"
    assert [each.status for each in space.status.conditions] == ["False"] * 5
    c.update({**space, "spec": {}}, "finalize")
    assert c.get(SHOP) is None
