"""Known bugs of workload controllers: the fixed one of each pair is the built-in controller."""

import steersman as sm
from steersman.controllers import statefulset
from steersman.controllers.claims import Claims
from steersman.controllers.garbage import GarbageCollector
from steersman.controllers.job import Job
from steersman.controllers.statefulset import StatefulSet
from steersman.nodes.kubelet import VirtualKubelet
from tests.bugs.pair import holds, reported, stateful_set
from tests.controllers.test_job import job

JOB = sm.Key("batch", "Job", "default", "web")
SET = sm.Key("apps", "StatefulSet", "default", "db")

# -- 80: kubernetes/kubernetes 108645 ----------------------------------------------------------------------------


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


def test_80_a_finished_pod_of_a_deleted_job():
    reported(deleted_before_counted(OnlyItsOwn), "converges", atomic=True)
    holds(deleted_before_counted(Job), atomic=True)


# -- 47: pravega/zookeeper-operator 513, in the terms of a StatefulSet ---------------------------------------------


class TakesWhatIsThere(Claims):
    def is_stale(self, pod):
        return False


class EagerTurn(statefulset.Turn):
    def __init__(self, c, sts, *rest):
        super().__init__(c, sts, *rest)
        self.claims = TakesWhatIsThere(c, sts)


class Eager(StatefulSet):
    """Creates a pod although the claim of the last one of its name is about to go with that."""

    turn = EagerTurn


def own_claim(s):
    """No claim belongs to an earlier pod than the one that mounts it."""
    claim = s[sm.Key("", "PersistentVolumeClaim", "default", "data-db-0")]
    pod = s[sm.Key("", "Pod", "default", "db-0")]
    if not claim or not pod:
        return True
    owners = [owner.uid for owner in claim.metadata.get("ownerReferences") or () if owner.kind == "Pod"]
    return not owners or owners == [pod.metadata.uid]


def scaled_down_and_up(controller):
    w = sm.Scenario(controller.__name__)
    w.run(controller, GarbageCollector)
    body = stateful_set("db", 1)
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    body["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": claim}]
    body["spec"]["persistentVolumeClaimRetentionPolicy"] = {"whenScaled": "Delete", "whenDeleted": "Retain"}
    w.apply(body)
    w.user("scale down", lambda c: c.patch(SET, {"spec": {"replicas": 0}}))
    w.user("scale up", lambda c: c.patch(SET, {"spec": {"replicas": 1}}))
    w.always("a pod has a claim of its own", own_claim)
    return w


def test_47_a_claim_that_goes_with_the_last_pod():
    reported(scaled_down_and_up(Eager), "a pod has a claim of its own", atomic=True)
    holds(scaled_down_and_up(StatefulSet), atomic=True)
