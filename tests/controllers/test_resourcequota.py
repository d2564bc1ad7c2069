"""The quota controller: its status is what admission would count, in every order of events."""

import pytest

from steersman.controllers.replicaset import ReplicaSet
from steersman.controllers.resourcequota import ResourceQuotaController
from steersman.kernel.transition import enabled
from tests.controllers.worlds import client, make, one, replicaset, settle

QUOTA = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default"}}
HARD = {"pods": "10", "requests.cpu": "4", "count/replicasets.apps": "5", "configmaps": "3"}


def quota(hard=HARD, **spec):
    return {**QUOTA, "spec": {"hard": hard, **spec}}


def a_pod(name, cpu="1", **spec):
    container = {"name": "a", "image": "a:1", "resources": {"requests": {"cpu": cpu}}}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container], **spec}}


def config(name):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}


def status(w):
    return one(w, "v1/ResourceQuota", "q").status


@pytest.mark.parametrize("lag", [0, 1])
def test_the_status_follows_the_objects(lag):
    w = make([ResourceQuotaController, ReplicaSet], [quota()], lag=lag)
    c = client(w)
    settle(w)
    assert status(w) == {
        "hard": HARD,
        "used": {"configmaps": "0", "count/replicasets.apps": "0", "pods": "0", "requests.cpu": "0"},
    }
    c.create(replicaset(2))
    c.create(a_pod("p", "500m"))
    made = c.create(config("a"))
    settle(w)
    assert status(w).used == {
        "configmaps": "1",
        "count/replicasets.apps": "1",
        "pods": "3",
        "requests.cpu": "500m",
    }
    c.delete(made)
    c.patch_status(one(w, "v1/Pod", "p"), {"phase": "Succeeded"})
    settle(w)
    assert (status(w).used["configmaps"], status(w).used["pods"], status(w).used["requests.cpu"]) == ("0", "2", "0")


def test_a_changed_limit_is_taken_over_and_what_is_not_limited_is_dropped():
    w = make([ResourceQuotaController], [quota()])
    c = client(w)
    settle(w)
    c.patch(one(w, "v1/ResourceQuota", "q"), {"spec": {"hard": {"pods": "20", "requests.cpu": None}}})
    settle(w)
    assert status(w).hard == {"configmaps": "3", "count/replicasets.apps": "5", "pods": "20"}
    assert "requests.cpu" not in status(w).used


def test_only_what_is_in_scope_is_counted():
    w = make([ResourceQuotaController], [quota({"pods": "5"}, scopes=["Terminating"])])
    c = client(w)
    c.create(a_pod("a"))
    c.create(a_pod("b", activeDeadlineSeconds=60))
    settle(w)
    assert status(w).used == {"pods": "1"}


def test_it_rests_when_nothing_changes_and_sleeps_without_quotas():
    w = make([ResourceQuotaController], [quota()])
    settle(w)
    before = w.store.rev
    client(w).patch(one(w, "v1/ResourceQuota", "q"), {"metadata": {"labels": {"a": "b"}}})
    settle(w)
    assert w.store.rev == before + 1
    w = make([ResourceQuotaController], [])
    client(w).create(config("a"))
    assert not enabled(w)
