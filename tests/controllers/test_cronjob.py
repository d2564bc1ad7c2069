"""CronJob: starts, concurrency, missed times, history; and a small world explored to the end."""

import pytest

from steersman.api.times import MICRO, parse_time, time_text
from steersman.controllers.cronjob import CronJob
from steersman.controllers.garbage import GarbageCollector
from steersman.controllers.job import Job
from steersman.kernel.object import Key
from steersman.nodes.kubelet import VirtualKubelet
from tests.controllers.worlds import client, explore, make, objects, one, settle

RUN = [CronJob, Job, VirtualKubelet, GarbageCollector]
WEB = Key("batch", "CronJob", "default", "web")
BORN = parse_time("2026-01-01T00:00:00Z") // MICRO
"""When worlds begin."""


def cronjob(schedule="*/10 * * * *", code="0", lasts="", **spec):
    notes = {"steersman.dev/exit-code": code, **({"steersman.dev/lifetime-seconds": lasts} if lasts else {})}
    pod = {"restartPolicy": "Never", "nodeName": "node-1", "containers": [{"name": "c", "image": "i"}]}
    template = {"metadata": {"labels": {"app": "x"}, "annotations": {"a": "b"}}}
    template["spec"] = {"backoffLimit": 0, "template": {"metadata": {"annotations": notes}, "spec": pod}}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"schedule": schedule, "jobTemplate": template, **spec},
    }


def pass_time(w, seconds):
    """Fires what is due until so many seconds have passed, and lets the world come to rest each time."""
    end = w.now + seconds * MICRO
    while w.wakes and min(w.wakes.values()) <= end:
        w.fire(min(w.wakes, key=lambda item: (w.wakes[item], item)))
        settle(w)
    return w


def status(w):
    return one(w, "CronJob").get("status") or {}


def names(w):
    return [job.metadata.name for job in objects(w, "Job")]


def at(second):
    return f"web-{(BORN + second) // 60}"


def test_it_starts_a_job_when_it_is_due_and_tells_so():
    w = settle(make([CronJob], [cronjob()]))
    assert names(w) == [] and not status(w)
    pass_time(w, 600)
    assert names(w) == [at(600)]
    job = objects(w, "Job")[0]
    assert job.metadata.annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"] == "2026-01-01T00:10:00Z"
    assert job.metadata.annotations["a"] == "b" and job.metadata.labels.app == "x"
    owner = job.metadata.ownerReferences[0]
    assert (owner.kind, owner.name, owner.controller) == ("CronJob", "web", True)
    assert status(w).lastScheduleTime == "2026-01-01T00:10:00Z"
    assert [(each.kind, each.name, each.uid) for each in status(w).active] == [("Job", at(600), job.metadata.uid)]


def test_a_job_that_succeeded_leaves_the_list():
    w = pass_time(settle(make(RUN, [cronjob()])), 600)
    assert not status(w).get("active") and status(w).lastSuccessfulTime == "2026-01-01T00:10:00Z"


def test_the_time_zone_is_that_of_the_schedule():
    w = settle(make([CronJob], [cronjob("30 5 * * *", timeZone="Asia/Kolkata")]))  # 00:00 UTC: the next is tomorrow's
    pass_time(w, 86_400)
    assert names(w) == [at(86_400)]
    noted = objects(w, "Job")[0].metadata.annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    assert noted == "2026-01-02T05:30:00+05:30"


@pytest.mark.parametrize(
    ("policy", "started", "left"),
    [("Allow", [600, 1200], [600, 1200]), ("Forbid", [600], [600]), ("Replace", [600, 1200], [1200])],
)
def test_concurrency(policy, started, left):
    w = settle(make(RUN, [cronjob(lasts="100000", concurrencyPolicy=policy)]))
    pass_time(w, 1200)
    assert names(w) == [at(second) for second in left]
    assert [each.name for each in status(w).active] == [at(second) for second in left]
    assert status(w).lastScheduleTime == time_text(BORN + started[-1])


def test_suspended_it_starts_nothing_and_resumed_what_was_missed_last():
    w = settle(make([CronJob], [cronjob(suspend=True)]))
    w.now += 3_000 * MICRO
    client(w).patch(WEB, {"spec": {"suspend": False}})
    settle(w)
    assert names(w) == [at(3_000)]


@pytest.mark.parametrize(("late", "deadline", "starts"), [(500, 400, []), (300, 400, [7_200]), (300, None, [7_200])])
def test_a_start_may_be_too_late(late, deadline, starts):
    spec = {} if deadline is None else {"startingDeadlineSeconds": deadline}
    w = settle(make([CronJob], [cronjob("0 2 * * *", suspend=True, **spec)]))
    w.now += (7_200 + late) * MICRO
    client(w).patch(WEB, {"spec": {"suspend": False}})
    settle(w)
    assert names(w) == [at(second) for second in starts]


def test_after_a_long_pause_only_the_last_start_is_made_up_for():
    w = settle(make([CronJob], [cronjob("* * * * *", suspend=True)]))
    w.now += (30 * 86_400 + 17) * MICRO
    client(w).patch(WEB, {"spec": {"suspend": False}})
    settle(w)
    assert names(w) == [at(30 * 86_400)]


@pytest.mark.parametrize(("hours", "start"), [(15, [14 * 3_600 + 1_800]), (74, [])])
def test_irregular_schedules_make_up_for_a_start_that_is_near(hours, start):
    """In the afternoon for the last one; two days later for nothing (what Kubernetes does, see `_latest`)."""
    w = settle(make([CronJob], [cronjob("30 6-16/4 * * 1-5", suspend=True)]))
    w.now += hours * 3_600 * MICRO
    client(w).patch(WEB, {"spec": {"suspend": False}})
    settle(w)
    assert names(w) == [at(second) for second in start]
    assert w.wakes, "the next one is waited for"


@pytest.mark.parametrize(("code", "limit"), [("0", "successfulJobsHistoryLimit"), ("1", "failedJobsHistoryLimit")])
def test_finished_jobs_are_kept_up_to_a_limit(code, limit):
    w = settle(make(RUN, [cronjob(code=code, **{limit: 2})]))
    pass_time(w, 3_000)
    assert names(w) == [at(2_400), at(3_000)] and len(objects(w, "Pod")) == 2


def test_a_job_that_is_gone_leaves_the_list():
    w = pass_time(settle(make(RUN, [cronjob(lasts="100000")])), 600)
    client(w).delete(objects(w, "Job")[0], propagation="Background")
    settle(w)
    assert not status(w).get("active")


def test_somebody_elses_job_of_that_name_is_left_to_them():
    pod = cronjob()["spec"]["jobTemplate"]["spec"]
    theirs = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": at(600), "namespace": "default"}}
    w = pass_time(settle(make([CronJob], [cronjob(), {**theirs, "spec": pod}])), 600)
    assert len(names(w)) == 1 and not status(w)


def test_a_schedule_that_never_comes():
    w = settle(make([CronJob], [cronjob("0 0 30 2 *")]))
    assert names(w) == [] and not w.wakes


@pytest.mark.parametrize("lag", [0, 1])
def test_every_interleaving_starts_one_job_a_time_and_remembers_it(lag):
    """The start that is due when the world begins; later ones would go on for ever."""

    def world():
        w = make([CronJob], [cronjob("0 0 1 1 *")], lag=lag, budgets=(1, 1))
        w.now += 366 * 86_400 * MICRO
        return w

    found = explore(world, lambda w: len(names(w)) <= 1, skip=("fire",))
    assert not found.findings and found.terminal
    for w in found.terminal:
        assert len(names(w)) == 1 and [each.name for each in status(w).active] == names(w)
