"""CronJob: makes Jobs at the times of a schedule, and keeps the last few.

Source of the facts: Kubernetes 1.36, pkg/controller/cronjob. What differs: the CronJob is read live, its Jobs are those
whose owner it is by uid, and when it is due is asked with `c.after`, not computed from the raw time. No event tells of
a start that was missed by more than startingDeadlineSeconds (in Kubernetes that branch cannot be reached either).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from steersman.api import cron, zones
from steersman.api.client import Client
from steersman.api.controller import Controller
from steersman.api.errors import AlreadyExists, ApiError, conflict
from steersman.api.times import MICRO, parse_time, time_text
from steersman.controllers import owned
from steersman.controllers.job import COMPLETE, FAILED
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
KIND: Final = "batch/v1/CronJob"
JOB: Final = "batch/v1/Job"
JOB_GK: Final = ("batch", "Job")
SCHEDULED: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
MANY: Final = 100
"""Missed starts from which on a person is told."""


class CronJob(Controller):
    """Starts Jobs, and clears finished ones away."""

    name = "cronjob"
    kind = KIND
    owns = (JOB,)

    def reconcile(self, c: Client, key: Key) -> None:
        """Brings the list of active Jobs up to date, and starts what is due. Raises what the API refused."""
        cronjob = c.get(key, fresh=True)
        if cronjob is not None:
            Turn(c, cronjob).take()


def ended(job: Json) -> str:
    """Complete or Failed; "" while a Job goes on."""
    for each in (job.get("status") or EMPTY).get("conditions") or ():
        if each["type"] in (COMPLETE, FAILED) and each["status"] == "True":
            return each["type"]  # type: ignore[no-any-return]
    return ""


class Turn:
    """A CronJob and its Jobs during one reconcile."""

    def __init__(self, c: Client, cronjob: Json) -> None:
        self.c = c
        self.it = cronjob
        self.spec: Json = cronjob["spec"]
        self.before: Json = cronjob.get("status") or EMPTY
        self.active: list[Json] = list(self.before.get("active") or ())
        self.last_success: str | None = self.before.get("lastSuccessfulTime")
        self.last_schedule: str | None = self.before.get("lastScheduleTime")
        uid = cronjob["metadata"]["uid"]
        listed = c.list(JOB, cronjob["metadata"]["namespace"], owner=cronjob)
        self.jobs = [job for job in listed if owned.controlled_by(job, uid)]

    def take(self) -> None:
        """Cleans up, looks at what runs, starts what is due, writes the status."""
        failed: ApiError | None = None
        self._clean_up()
        try:
            self._look()
            if not owned.is_terminating(self.it) and not self.spec.get("suspend"):
                self._start_due()
        except ApiError as error:
            failed = error
        self._write_status()
        if failed is not None:
            raise failed

    def _say(self, type_: str, reason: str, message: str) -> None:
        self.c.event(self.it, type_, reason, message)

    # -- what there is ---------------------------------------------------------------------------------------------

    def _clean_up(self) -> None:
        """Deletes the oldest finished Jobs beyond the limits."""
        for end, limit in ((COMPLETE, "successfulJobsHistoryLimit"), (FAILED, "failedJobsHistoryLimit")):
            most = self.spec.get(limit)
            finished = sorted([job for job in self.jobs if ended(job) == end], key=_by_start)
            for job in finished[: max(0, len(finished) - most)] if most is not None else ():
                self._delete(job)

    def _delete(self, job: Json) -> bool:
        name = job["metadata"]["name"]
        try:
            self.c.delete(job, uid=job["metadata"]["uid"], propagation="Background")
        except ApiError as error:
            self._say("Warning", "FailedDelete", f"Deleted job: {error.message}")
            return False
        self._drop(job["metadata"]["uid"])
        self._say("Normal", "SuccessfulDelete", f"Deleted job {name}")
        return True

    def _drop(self, uid: str) -> None:
        self.active = [each for each in self.active if each["uid"] != uid]

    def _look(self) -> None:
        """Takes Jobs that ended or are gone off the active list, and notes the last success."""
        known = {each["uid"] for each in self.active}
        for job in self.jobs:
            name, uid, end = job["metadata"]["name"], job["metadata"]["uid"], ended(job)
            if not end and uid not in known:
                text = f"Saw a job that the controller did not create or forgot: {name}"
                self._say("Warning", "UnexpectedJob", text)
            if end and uid in known:
                self._drop(uid)
                self._say("Normal", "SawCompletedJob", f"Saw completed job: {name}, condition: {end}")
            done = job["status"].get("completionTime") if end == COMPLETE else None
            if done and (self.last_success is None or parse_time(done) > parse_time(self.last_success)):
                self.last_success = done
        there = {job["metadata"]["uid"] for job in self.jobs}
        for each in list(self.active):
            if each["uid"] not in there and self._live(each) is None:
                self._say("Normal", "MissingJob", f"Active job went missing: {each['name']}")
                self._drop(each["uid"])

    def _live(self, ref: Json) -> Any:
        """The very Job a reference means, live; None when it is gone."""
        job = self.c.get(Key(*JOB_GK, ref["namespace"], ref["name"]), fresh=True)
        return None if job is None or job["metadata"]["uid"] != ref["uid"] else job

    # -- when it is due --------------------------------------------------------------------------------------------

    def _start_due(self) -> None:
        zone = zones.zone(self.spec.get("timeZone") or "")
        if zone is None:
            text = f'invalid timeZone: "{self.spec["timeZone"]}": unknown time zone {self.spec["timeZone"]}'
            self._say("Warning", "UnknownTimeZone", text)
            return
        text = self.spec["schedule"]
        problems = cron.problems(text)
        if problems:
            self._say("Warning", "UnparseableSchedule", f'unparseable schedule: "{text}" : {problems[0]}')
            return
        schedule = cron.parse(text)
        since = parse_time(self.last_schedule or self.it["metadata"]["creationTimestamp"]) // MICRO
        first = schedule.next(since, zone)
        if first is None:
            problem = "time difference between two schedules is less than 1 second"
            self._say("Warning", "InvalidSchedule", f"invalid schedule: {text} : {problem}")
            return
        if not self.c.after(first * MICRO, 0):
            return
        due, upcoming, missed = self._latest(schedule, first, zone)
        if upcoming is not None:
            self.c.after(upcoming * MICRO, 0)  # not yet: it wakes this CronJob then
        deadline = self.spec.get("startingDeadlineSeconds")
        if due is None or (deadline is not None and self.c.elapsed(due * MICRO, deadline)):
            return
        if missed > MANY:
            advice = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
            self._say("Warning", "TooManyMissedTimes", advice)
        self._start(due, zones.local_text(zone, due))

    def _latest(self, schedule: cron.Schedule, first: int, zone: Any) -> tuple[int | None, int | None, int]:
        """(the latest time that has passed, the first that has not, about how many have), given the first of them,
        which has. As in Kubernetes a long gap is leapt by multiples of the first interval, so where times are far from
        regular there may be no latest one: then nothing is made up for."""

        def passed(second: int) -> bool:
            return self.c.elapsed(second * MICRO, 0)

        second = schedule.next(first, zone)
        if second is None or not passed(second):
            return first, second, 1
        step = second - first
        low, high = 1, 2  # steps from `first`: low have passed, high have not
        while passed(first + high * step):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if passed(first + middle * step) else (low, middle)
        latest: int | None = None
        upcoming = schedule.next(first + (low - 1) * step, zone)
        while upcoming is not None and passed(upcoming):
            latest, upcoming = upcoming, schedule.next(upcoming, zone)
        return latest, upcoming, low + 1

    # -- a start -----------------------------------------------------------------------------------------------------

    def _start(self, due: int, local: str) -> None:
        """Creates the Job of a time, unless that was done or the concurrency policy forbids it."""
        c, it = self.c, self.it
        name = f"{it['metadata']['name']}-{due // 60}"
        if any(each["name"] == name for each in self.active) or self.last_schedule == time_text(due):
            return
        policy = self.spec.get("concurrencyPolicy")
        if policy == "Forbid" and self.active:
            text = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self._say("Normal", "JobAlreadyActive", text)
            return
        for each in list(self.active) if policy == "Replace" else ():
            job = self._live(each)
            if job is not None and not self._delete(job):
                raise conflict("jobs", each["name"], f"could not replace job {each['namespace']}/{each['name']}")
            self._drop(each["uid"])
        try:
            job = c.create(self._body(name, local))
            self._say("Normal", "SuccessfulCreate", f"Created job {name}")
        except AlreadyExists:
            job = c.get(Key(*JOB_GK, it["metadata"]["namespace"], name), fresh=True)
            mine = job is not None and owned.controlled_by(job, it["metadata"]["uid"])
            if not mine:  # somebody else's, who tells of it himself
                return
        except ApiError as error:
            self._say("Warning", "FailedCreate", f"Error creating job: {error.message}")
            raise
        self.active.append(_reference(job))
        self.last_schedule = time_text(due)

    def _body(self, name: str, local: str) -> dict[str, Any]:
        template = self.spec["jobTemplate"]
        given = template.get("metadata") or EMPTY
        meta: dict[str, Any] = {
            "name": name,
            "namespace": self.it["metadata"]["namespace"],
            "annotations": {**(given.get("annotations") or EMPTY), SCHEDULED: local},
            "ownerReferences": [owned.controller_ref(self.it)],
        }
        if given.get("labels"):
            meta["labels"] = given["labels"]
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": template["spec"]}

    def _write_status(self) -> None:
        """Writes the status where it changed. Raises `Conflict` when the CronJob was changed since it was read."""
        status: dict[str, Any] = {}
        if self.active:
            status["active"] = self.active
        if self.last_schedule:
            status["lastScheduleTime"] = self.last_schedule
        if self.last_success:
            status["lastSuccessfulTime"] = self.last_success
        if status != self.before:
            self.c.update_status({**self.it, "status": status})


def _reference(job: Json) -> dict[str, str]:
    meta = job["metadata"]
    parts = {part: meta[part] for part in ("namespace", "name", "uid", "resourceVersion")}
    return {"apiVersion": "batch/v1", "kind": "Job", **parts}


def _by_start(job: Json) -> tuple[bool, str, str]:
    """Those that began come first, the earliest first."""
    start = (job.get("status") or EMPTY).get("startTime")
    return not start, start or "", job["metadata"]["name"]
