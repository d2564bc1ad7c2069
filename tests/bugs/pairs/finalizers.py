"""Finalizers that nobody takes off, or somebody too early."""

from typing import Final

import steersman as sm
from steersman.controllers.garbage import GarbageCollector
from steersman.controllers.job import Job
from steersman.controllers.protection import ClaimProtection
from steersman.nodes.kubelet import VirtualKubelet
from tests.bugs.objects import (
    claim,
    config_key,
    config_map,
    custom,
    custom_key,
    key_of,
    made,
    pod,
    set_key,
    stateful_set,
)
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


# -- 79: who takes finalizers off goes first --------------------------------------------------------------------------

PROJECT: Final = custom("Project", {}, {})
PROJECT_KEY: Final = custom_key("Project")
INSTALLED: Final = config_key("operator")
"""Stands for the Deployment that the operator runs in."""


class GoesWithItsDeployment(sm.Controller):
    """Cleans up after projects while it is installed."""

    kind = "example.com/v1/Project"
    watches = {"v1/ConfigMap": lambda obj: [PROJECT_KEY]}  # noqa: RUF012
    stays = False

    def reconcile(self, c, key):
        project, itself = c.get(key), c.get(INSTALLED, fresh=True)
        if itself is None:
            return  # nobody runs
        if project is not None and project.metadata.deletionTimestamp:
            c.patch(key, {"metadata": {"finalizers": None}})
        elif project is None and itself.metadata.deletionTimestamp:
            c.patch(INSTALLED, {"metadata": {"finalizers": None}})


class StaysForTheRest(GoesWithItsDeployment):
    """Its Deployment has a finalizer of its own, that goes when there are no projects any more."""

    stays = True


def uninstalled(controller):
    """A person who uninstalls an operator, and deletes what it was for."""
    w = sm.Scenario(controller.__name__)
    w.kind(PROJECT)
    itself, project = config_map("operator"), made("Project")
    itself["metadata"]["finalizers"] = [CLEANUP] if controller.stays else []
    project["metadata"]["finalizers"] = [CLEANUP]
    w.apply(itself)
    w.apply(project)
    w.run(controller)
    w.user("uninstall", lambda c: c.delete(INSTALLED))
    w.user("delete the project", lambda c: c.delete(PROJECT_KEY))
    w.converges(lambda s: not s[INSTALLED] and not s[PROJECT_KEY], name="all is gone")
    return w


# -- 82: pods that the cache does not show ----------------------------------------------------------------------------

DATA: Final = claim("data")


class Behind:
    """A client whose lists come from the cache, whatever is asked for."""

    def __init__(self, c):
        self.c = c

    def __getattr__(self, name):
        return getattr(self.c, name)

    def list(self, kind, namespace, fresh=False):
        """The objects of a kind, as the cache has them."""
        return self.c.list(kind, namespace)


class ListsItsCache(ClaimProtection):
    """Lets a claim go when its cache shows no pod that uses it."""

    def reconcile(self, c, key):
        super().reconcile(Behind(c), key)


def used_and_deleted(controller):
    """A claim that is deleted just after a pod got it."""
    w = sm.Scenario(controller.__name__)
    body = claim("data")
    body["metadata"]["finalizers"] = [controller.finalizer]
    w.apply(body)
    w.run(controller)

    def use(c):
        found = c.get(key_of(DATA))
        if found is not None and not found.metadata.deletionTimestamp:
            user = pod("db")
            volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
            user["spec"].update(nodeName="n1", volumes=[volume])
            c.create(user)

    w.user("use", use)
    w.user("delete", lambda c: c.delete(key_of(DATA)))
    w.always("a claim in use stays", lambda s: not s.count("v1/Pod") or s[key_of(DATA)])
    return w.without("no leaked finalizer")  # the pod uses its claim for ever


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
    Row(
        79,
        "vmware-tanzu/projects-operator#22",
        "an operator is uninstalled before what it was for is gone: nobody takes the finalizers off",
        uninstalled,
        GoesWithItsDeployment,
        StaysForTheRest,
        ("all is gone", "no leaked finalizer"),
        harder={"lag": 1, "crashes": 1},
        shows=("user: uninstall",),
    ),
    Row(
        82,
        "kubernetes/kubernetes#76703, kubernetes/kubernetes#75980",
        "pods are listed from a cache that does not show the newest: a claim goes while a pod uses it",
        used_and_deleted,
        ListsItsCache,
        ClaimProtection,
        ("a claim in use stays",),
        {"lag": 1},
        {"crashes": 1},
    ),
)
