"""Deleting a namespace: pods first, then everything, then the namespace; what is held back is told."""

from steersman.controllers.builtin import builtin
from steersman.kernel.object import Key
from steersman.nodes.kubelet import VirtualKubelet
from tests.controllers.worlds import client, deployment, make, one, settle

DEFAULT = Key("", "Namespace", "", "default")
ALL = [*builtin(), VirtualKubelet]


def config(name, **meta):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default", **meta}}


def test_a_deleted_namespace_takes_everything_with_it():
    w = settle(make(ALL, [deployment(2), config("a")]))
    client(w).delete(DEFAULT)
    settle(w, timers=True)
    assert list(w.store.objects()) == [] and not w.memory and not w.wakes


def test_an_empty_namespace_goes_at_once():
    w = make(ALL, [])
    client(w).delete(DEFAULT)
    settle(w)
    assert list(w.store.objects()) == []


def test_what_a_finalizer_holds_is_told_and_waited_for():
    w = make(ALL, [config("held", finalizers=["example.com/hold"])])
    c = client(w)
    c.delete(DEFAULT)
    settle(w)
    told = {each.type: each for each in c.get(DEFAULT).status.conditions}
    assert told["NamespaceContentRemaining"].reason == "SomeResourcesRemain"
    assert "example.com/hold in 1 resource instances" in told["NamespaceFinalizersRemaining"].message
    c.patch(one(w, "ConfigMap", "held"), {"metadata": {"finalizers": None}})
    settle(w, timers=True)
    assert list(w.store.objects()) == []


def test_pods_go_before_what_they_may_still_need():
    w = settle(make(builtin(), [deployment(1), config("needed")]))  # no kubelet: the pod cannot end
    c = client(w)
    c.delete(DEFAULT)
    settle(w)
    pod = c.list("v1/Pod", "default")[0]
    assert "deletionTimestamp" in pod.metadata and one(w, "ConfigMap", "needed")
    c.delete(pod, grace=0)
    settle(w, timers=True)
    assert list(w.store.objects()) == []
