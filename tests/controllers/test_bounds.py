"""Numbers that nobody means: a reconcile does a bounded part of the work, whatever a spec asks for."""

import time

import pytest

from steersman.api.client import key_of
from steersman.controllers import job, replicaset, statefulset
from steersman.controllers.deployment import Deployment
from steersman.controllers.job import Job
from steersman.controllers.replicaset import ReplicaSet
from steersman.controllers.statefulset import StatefulSet
from steersman.kernel.draw import draw_seeded
from steersman.kernel.straight import run_through
from tests.controllers.worlds import LABELS, make, objects, template

MOST = 2**31 - 1


def workload(kind, api="apps/v1", **spec):
    spec = {"selector": {"matchLabels": LABELS}, "template": template("nginx:1"), **spec}
    return {"apiVersion": api, "kind": kind, "metadata": {"name": "web", "namespace": "default"}, "spec": spec}


def job_of(**spec):
    once = template("nginx:1")
    once["spec"] = {**once["spec"], "restartPolicy": "Never"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"template": once, **spec},
    }


CASES = [
    ([ReplicaSet], workload("ReplicaSet", replicas=MOST), replicaset.BURST),
    ([StatefulSet], workload("StatefulSet", replicas=MOST, podManagementPolicy="Parallel"), statefulset.BURST),
    ([StatefulSet], workload("StatefulSet", replicas=MOST, ordinals={"start": MOST}), 1),
    ([Job], job_of(parallelism=MOST, completions=MOST), job.BURST),
    ([Job], job_of(parallelism=100_000, completions=100_000, completionMode="Indexed"), job.BURST),
]


def reconciled(controllers, obj):
    """The world after one whole reconcile, and how long that took."""
    world = make(controllers, [obj], draw=draw_seeded(1))
    start = time.perf_counter()
    run_through(world, (0, key_of(obj)))
    return world, time.perf_counter() - start


@pytest.mark.parametrize(("controllers", "obj", "most"), CASES)
def test_a_reconcile_makes_a_bounded_number_of_pods(controllers, obj, most):
    world, seconds = reconciled(controllers, obj)
    assert 0 < len(objects(world, "Pod")) <= most and seconds < 5


def test_a_surge_beyond_all_numbers_stays_within_them():
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "100000000%", "maxUnavailable": "100%"}}
    obj = workload("Deployment", replicas=MOST, strategy=strategy, progressDeadlineSeconds=MOST)
    world, _ = reconciled([Deployment], obj)
    assert [made.spec.replicas for made in objects(world, "ReplicaSet")] == [MOST]
