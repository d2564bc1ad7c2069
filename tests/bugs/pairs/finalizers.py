"""Finalizers that nobody takes off, or somebody too early."""

import steersman as sm
from steersman.controllers.garbage import GarbageCollector
from steersman.controllers.job import Job
from steersman.nodes.kubelet import VirtualKubelet
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
)
