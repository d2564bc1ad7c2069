"""Finalizers that nobody takes off, or somebody too early."""

from typing import Final

import steersman as sm
from steersman.controllers.garbage import GarbageCollector
from steersman.controllers.job import Job
from steersman.nodes.kubelet import VirtualKubelet
from tests.bugs.objects import custom, custom_key, made, set_key, stateful_set
from tests.bugs.row import Row
from tests.controllers.test_job import job

JOB = sm.Key("batch", "Job", "default", "web")


class OnlyItsOwn(Job):
    """Takes finalizers off the pods of a Job that it still sees, and of no other."""

    def map_event(self, event, find):
        return [key for key in super().map_event(event, find) if key.kind == "Job"]


def deleted_before_counted(controller):
    w = sm.Scenario(controller.__name__)
    w.run(controller, GarbageCollector, VirtualKubelet)
    w.apply(job())
    w.user("delete", lambda c: c.delete(JOB, propagation="Background"))
    w.converges(lambda s: s.count("v1/Pod") == 0, name="its pods go")
    return w


# -- 45: it goes on after it has let go ------------------------------------------------------------------------------

ZOOKEEPER: Final = custom("ZookeeperCluster", {}, {})
ZOOKEEPER_KEY: Final = custom_key("ZookeeperCluster")
CLEANUP: Final = "example.com/cleanup"


class GoesOn(sm.Controller):
    """Cleans up when its cluster goes and takes its finalizer off; then it does what it always does."""

    kind = "example.com/v1/ZookeeperCluster"
    owns = ("apps/v1/StatefulSet",)
    stops = False

    def reconcile(self, c, key):
        cluster = c.get(key)
        if cluster is None:
            return
        if cluster.metadata.deletionTimestamp and CLEANUP in (cluster.metadata.finalizers or ()):
            kept = [name for name in cluster.metadata.finalizers if name != CLEANUP]
            c.patch(cluster, {"metadata": {"finalizers": kept}}, rv=cluster.metadata.resourceVersion)
        if self.stops and cluster.metadata.deletionTimestamp:
            return
        if c.get(set_key("db")) is None:
            c.create(stateful_set("db", 1, ownerReferences=[owner(cluster)]))


class Stops(GoesOn):
    """Nothing is made for what is going."""

    stops = True


def owner(obj):
    """A reference to the controller that an object belongs to."""
    meta = {"name": obj.metadata.name, "uid": obj.metadata.uid}
    return {"apiVersion": obj.apiVersion, "kind": obj.kind, "controller": True, "blockOwnerDeletion": True, **meta}


def deleted(controller):
    """A person who deletes a cluster and waits for what belongs to it."""
    w = sm.Scenario(controller.__name__)
    w.kind(ZOOKEEPER)
    body = made("ZookeeperCluster")
    body["metadata"]["finalizers"] = [CLEANUP]
    w.apply(body)
    w.run(controller, GarbageCollector)
    w.user("delete", lambda c: c.delete(ZOOKEEPER_KEY, propagation="Foreground"))
    w.converges(lambda s: not s[ZOOKEEPER_KEY] and not s[set_key("db")], name="what was deleted is gone")
    return w


ROWS = (
    Row(
        80,
        "kubernetes/kubernetes#108645",
        "a Job is deleted before its finished pod is counted: nobody takes the tracking finalizer off the pod",
        deleted_before_counted,
        OnlyItsOwn,
        Job,
        ("its pods go",),
        {"atomic": True},
    ),
    Row(
        45,
        "pravega/zookeeper-operator#410",
        "a controller takes its finalizer off and goes on: it makes the StatefulSet of what goes again and again",
        deleted,
        GoesOn,
        Stops,
        ("livelock",),
        shows=("user: delete", "create StatefulSet.apps default/db"),
    ),
)
