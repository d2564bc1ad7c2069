"""Job: runs pods until enough of them have succeeded, or too many have failed.

Every pod holds the finalizer batch.kubernetes.io/job-tracking until its end is in the status, so that no end is lost or
counted twice: uids go into `uncountedTerminatedPods`, finalizers come off, then the counters grow.

Source of the facts: Kubernetes 1.36, pkg/controller/job/job_controller.go. What differs: the Job itself is read live,
where Kubernetes waits for its cache to show what it wrote; events are not batched for a second; pods are created one
by one, up to the first refusal. Not here, since off by default in 1.36: Workloads and PodGroups for Jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from steersman.api.client import Client
from steersman.api.controller import Controller, Find
from steersman.api.errors import ApiError, Conflict, Invalid, NotFound
from steersman.controllers import job_indexes, owned, pods
from steersman.controllers import job_pods as jp
from steersman.controllers.conditions import find
from steersman.controllers.expectations import Expectations
from steersman.controllers.job_census import Census, backoff_place
from steersman.controllers.job_policy import match_failure, match_success
from steersman.controllers.replicaset import NO_CONTENT
from steersman.kernel.effect import Event
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
KIND: Final = "batch/v1/Job"
JOB: Final = ("batch", "Job")
POD: Final = "v1/Pod"
POD_GK: Final = ("", "Pod")
BURST: Final = 500
"""Most pods created or deleted in one reconcile, and most whose end is counted in one: uids fill the status."""
FIRST_BACKOFF: Final = 10
MAX_BACKOFF: Final = 600
"""Seconds from a pod's failure to its replacement: doubled with each failure in a row, up to ten minutes."""
MANAGER: Final = "kubernetes.io/job-controller"
"""`managedBy` of the Jobs that are this controller's, as is none."""
COMPLETE: Final = "Complete"
FAILED: Final = "Failed"
TARGET: Final = "FailureTarget"
MET: Final = "SuccessCriteriaMet"


class Job(Controller):
    """Keeps a Job's pods, and counts their ends."""

    name = "job"
    kind = KIND
    owns = (POD,)

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """As `owned.woken` says; and a pod wakes as itself when its Job can no longer take the finalizer off."""
        woken = dict.fromkeys(owned.woken(event, JOB, (POD_GK,)))
        if event.key.gk == POD_GK:
            if event.new is not None and jp.is_tracked(event.new.value) and owned.is_terminating(event.new.value):
                woken[event.key] = None
        elif event.new is None or is_finished(event.new.value):
            uid = (event.old or event.new).uid  # type: ignore[union-attr]  # an event has one of them
            left = [obj for obj in find("owner", uid) if obj.key.gk == POD_GK and jp.is_tracked(obj.value)]
            woken.update(dict.fromkeys([obj.key for obj in left]))
        return woken

    def reconcile(self, c: Client, key: Key) -> float | None:
        """Brings pods and status a step further. Raises what the API refused."""
        if key.gk == POD_GK:
            _let_go(c, c.get(key))
            return None
        job = c.get(key, fresh=True)
        if job is None or is_finished(job):
            _forget(c, key)
            return None
        if job["spec"].get("managedBy") not in (None, MANAGER):
            return None
        facts = Expectations(c, key, job["metadata"]["uid"], jp.FINALIZER)
        mine = owned.claim(c, job, POD, finalizer=jp.FINALIZER, adopted=facts.made)
        mine += facts.missing(mine, POD_GK, key.namespace)
        Turn(c, job, key, mine, facts).take()
        return facts.again


def is_finished(job: Json) -> bool:
    """Whether the Job is Complete or Failed."""
    conditions = (job.get("status") or EMPTY).get("conditions") or ()
    return any(each["type"] in (COMPLETE, FAILED) and each["status"] == "True" for each in conditions)


def _forget(c: Client, key: Key) -> None:
    Expectations.forget(c, key)
    if backoff_place(key) in c.memory:
        del c.memory[backoff_place(key)]


def _let_go(c: Client, pod: Json | None) -> None:
    """An orphan is adopted or loses the finalizer; so does a pod whose Job is gone or finished."""
    if pod is None:
        return
    owner = owned.controller_of(pod)
    if owner is None:
        if owned.adopt_orphan(c, pod, KIND, finalizer=jp.FINALIZER, adopted=Expectations.adopted):
            return
    elif (owner["apiVersion"], owner["kind"]) != ("batch/v1", "Job"):
        return
    else:
        job = c.get(Key(*JOB, pod["metadata"]["namespace"], owner["name"]), fresh=True)
        lives = job is not None and job["metadata"]["uid"] == owner["uid"]
        if lives and (job["spec"].get("managedBy") not in (None, MANAGER) or not is_finished(job)):
            return
    if jp.is_tracked(pod):
        _free(c, pod)


def _free(c: Client, pod: Json) -> None:
    """Takes the finalizer off, unless it or the pod is gone."""
    try:
        c.patch(pod, jp.without_finalizer(pod))
    except NotFound:
        return
    except Invalid:  # the list is another one by now: look again
        live = c.get(Key(*POD_GK, pod["metadata"]["namespace"], pod["metadata"]["name"]), fresh=True)
        if live is not None and live["metadata"]["uid"] == pod["metadata"]["uid"] and jp.is_tracked(live):
            raise


class Turn(Census):
    """A Job and its pods during one reconcile: what is done."""

    def take(self) -> None:
        """Counts, judges, acts, and brings the status up to date."""
        if not self.status.get("startTime") and not self.suspended:
            self.status["startTime"] = self.now()
        end = self._judge()
        failed: ApiError | None = None
        changed = False
        if end is not None:
            failed = self._delete(self.active, free=False)
            if failed is not None:
                end = None
        else:
            if not owned.is_terminating(self.job):
                failed = self._manage()
            if self._is_complete():
                end = self._condition(MET, "CompletionsReached", "Reached expected number of succeeded pods")
            elif not owned.is_terminating(self.job):
                changed = self._note_suspension()
        counts = {"active": self.number, "ready": self.ready, "terminating": self.terminating}
        changed = changed or any((self.status.get(name) or 0) != number for name, number in counts.items())
        changed = changed or any(self.status.get(name) is None for name in ("ready", "terminating"))
        self.status.update(counts)
        self._track(end, changed)
        if failed is not None and NO_CONTENT not in failed.message:
            raise failed

    # -- whether it has come to an end -----------------------------------------------------------------------------

    def _judge(self) -> Json | None:
        """The condition that ends the Job: one that is known already, a failure, or a success policy that is met."""
        for type_ in (MET, TARGET):
            known = find(self.conditions, type_)
            if known is not None and known["status"] == "True":
                return known if type_ == MET else self._condition(FAILED, known["reason"], known["message"])
        spec = self.spec
        for pod in self.pods if spec.get("podFailurePolicy") is not None else ():
            if jp.is_failed(pod, self.job):
                message = match_failure(spec["podFailurePolicy"], pod)[2]
                if message:
                    return self._condition(TARGET, "PodFailurePolicy", message)
        if self.failed > spec["backoffLimit"] or self._restarted_too_often():
            return self._condition(TARGET, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
        deadline = spec.get("activeDeadlineSeconds")
        if deadline is not None and not self.suspended and self.c.after(self.status["startTime"], deadline):
            return self._condition(TARGET, "DeadlineExceeded", "Job was active longer than specified deadline")
        return self._judge_indexes() if self.indexed else None

    def _judge_indexes(self) -> Json | None:
        spec = self.spec
        lost = job_indexes.total(self.failed_indexes)
        if self.per_index:
            most = spec.get("maxFailedIndexes")
            if most is not None and lost > most:
                text = "Job has exceeded the specified maximal number of failed indexes"
                return self._condition(TARGET, "MaxFailedIndexesExceeded", text)
            if lost and lost + self.succeeded >= spec["completions"]:
                return self._condition(TARGET, "FailedIndexes", "Job has failed indexes")
        message = match_success(spec.get("successPolicy"), spec["completions"], self.succeeded_indexes)
        return self._condition(MET, "SuccessPolicy", message) if message else None

    def _restarted_too_often(self) -> bool:
        if self.spec["template"]["spec"].get("restartPolicy") != "OnFailure":
            return False
        return bool(jp.restarts(self.pods) >= max(1, self.spec["backoffLimit"]))

    def _is_complete(self) -> bool:
        completions = self.spec.get("completions")
        enough = self.succeeded > 0 if completions is None else self.succeeded >= completions
        return bool(enough) and self.number == 0

    def _note_suspension(self) -> bool:
        """The condition Suspended, and the start time with it. Whether they changed."""
        known = find(self.conditions, "Suspended")
        if self.suspended == (known is not None and known["status"] == "True"):
            return False
        if self.suspended:
            self._set(self._condition("Suspended", "JobSuspended", "Job suspended"))
            self.c.event(self.job, "Normal", "Suspended", "Job suspended")
            self.status["startTime"] = None
        elif known is not None:
            self._set(self._condition("Suspended", "JobResumed", "Job resumed", status="False"))
            self.c.event(self.job, "Normal", "Resumed", "Job resumed")
            self.status["startTime"] = self.now()
        else:
            return False
        return True

    # -- pods --------------------------------------------------------------------------------------------------------

    def _manage(self) -> ApiError | None:
        """Deletes what is too much, or else creates what is missing, as far as the back-off allows. What was
        refused."""
        spec = self.spec
        if self.suspended:
            return self._delete(self._surplus(self.number), free=True)
        if spec.get("completions") is None:
            wanted = self.number if self.succeeded else spec["parallelism"]
        else:
            wanted = max(0, min(spec["parallelism"], spec["completions"] - self.succeeded))
        surplus = self._surplus(max(0, self.number - wanted))[:BURST]
        if surplus:
            return self._delete(surplus, free=True)
        missing = wanted - self.number
        if jp.replaces_failed_only(self.job):
            missing -= self.terminating
        return self._create(min(missing, BURST)) if missing > 0 else None

    def _surplus(self, least: int) -> list[Any]:
        """The active pods to remove: of an Indexed Job those of no valid index and all but one of each; then others
        until there are `least`."""
        ordered = sorted(self.active, key=jp.removal_order)
        if not self.indexed:
            return ordered[:least]
        gone, left, taken = [], [], set()
        for pod in reversed(ordered):
            index = jp.index_of(pod)
            if not jp.valid_index(self.job, pod) or index in taken:
                gone.append(pod)
            else:
                taken.add(index)
                left.append(pod)
        left.reverse()
        return gone + left[: max(0, least - len(gone))]

    def _create(self, count: int) -> ApiError | None:
        if not self.per_index and not self._waited(self.backoff["failures"], self.backoff["last"]):
            self.number = 0  # as in Kubernetes, what runs meanwhile is not shown
            return None
        indexes = [-1] * count
        if self.indexed:
            pending = self._pending(count)
            indexes = [index for index in pending if self._waited_for(index)] if self.per_index else pending
            if pending and not indexes:
                self.number = 0
                return None
        try:
            for index in indexes:
                replaced = self.delayed.get(index) if self.per_index else None
                pod = self.c.create(jp.job_pod(self.job, index, replaced))
                self.facts.made(pod)
                self.number += 1
                self.c.event(self.job, "Normal", "SuccessfulCreate", f"Created pod: {pod['metadata']['name']}")
        except ApiError as error:
            self.c.event(self.job, "Warning", "FailedCreate", f"Error creating: {error.message}")
            return error
        return None

    def _pending(self, count: int) -> list[int]:
        """The first indexes that have neither a pod nor an end."""
        busy = {jp.index_of(pod) for pod in self.active}
        if jp.replaces_failed_only(self.job):
            busy |= {jp.index_of(pod) for pod in self.ending}
        busy.discard(-1)
        settled = job_indexes.merged(self.succeeded_indexes, self.failed_indexes)
        return job_indexes.first_outside(
            job_indexes.merged(settled, job_indexes.single(busy)), count, self.spec["completions"]
        )

    def _waited_for(self, index: int) -> bool:
        pod = self.delayed.get(index)
        return pod is None or self._waited(jp.all_failures_of(pod) + 1, jp.finished_at(pod))

    def _waited(self, failures: int, last: int) -> bool:
        """Whether the back-off after so many failures in a row is over."""
        if not failures:
            return True
        doubled = min(failures - 1, MAX_BACKOFF.bit_length())
        return self.c.after(last, min(FIRST_BACKOFF << doubled, MAX_BACKOFF))

    def _delete(self, these: list[Any], free: bool) -> ApiError | None:
        """Deletes active pods; `free`: takes the finalizer off first, so that they do not count as failed. What
        was refused."""
        deleted = 0
        failed: ApiError | None = None
        for pod in these:
            try:
                if free and self._is_tracked(pod):
                    _free(self.c, pod)
                    self.facts.freed(pod)
                with suppress(Conflict):  # the name is another pod's by now
                    self.c.delete(pod, uid=pod["metadata"]["uid"])
            except ApiError as error:
                failed = failed or error
                continue
            self.facts.gone(pod)
            self.c.event(self.job, "Normal", "SuccessfulDelete", f"Deleted pod: {pod['metadata']['name']}")
            deleted += 1
            self.ready -= pods.ready_since(pod) is not None
        self.number -= deleted
        self.terminating += deleted
        return failed

    # -- the status ----------------------------------------------------------------------------------------------------

    def _track(self, end: Json | None, changed: bool) -> None:
        """Uids of ended pods into the status; their finalizers off; then the counters, and the end of the Job."""
        bound = {pod["metadata"]["uid"] for pod in self.pods if self._is_tracked(pod)}
        changed = self._settle(bound) or changed
        ended, more, full = self._collect(end)
        changed = changed or more
        if self.indexed:
            changed = self._write_indexes() or changed
        if end is not None and end["type"] == TARGET:
            self.conditions.append(end)
            changed = True
            end = self._condition(FAILED, end["reason"], end["message"])
        elif end is not None and end["type"] == MET:
            if find(self.conditions, MET) is None:
                self.conditions.append(end)
                changed = True
            end = self._condition(COMPLETE, end["reason"], end["message"])
        if changed:
            self._flush()
            self._remember_failures()
        failed: ApiError | None = None
        for pod in ended:
            try:
                _free(self.c, pod)
            except ApiError as error:
                failed = failed or error
                continue
            self.facts.freed(pod)
            bound.discard(pod["metadata"]["uid"])
        changed = self._settle(bound)
        if failed is not None:
            if changed:
                self._flush()
            raise failed
        finished = not full and end is not None and self._finish(end)
        if changed or finished:
            self._flush()
        if finished:
            _forget(self.c, self.key)
            self._tell_end(end)  # type: ignore[arg-type]  # there is one where it is finished

    def _remember_failures(self) -> None:
        place = backoff_place(self.key)
        if self.backoff["failures"]:
            self.c.memory[place] = self.backoff
        elif place in self.c.memory:
            del self.c.memory[place]

    def _settle(self, bound: set[str]) -> bool:
        """Counts the uncounted whose finalizer is off. Whether there were any."""
        settled = False
        for end, uids in self.uncounted.items():
            left = [uid for uid in uids if uid in bound]
            if len(left) != len(uids):
                self.status[end] = (self.status.get(end) or 0) + len(uids) - len(left)
                self.uncounted[end] = left
                settled = True
        return settled

    def _collect(self, end: Json | None) -> tuple[list[Any], bool, bool]:
        """(pods that may go, whether the status changed, whether there are more than fit)."""
        before = {name: tuple(uids) for name, uids in self.uncounted.items()}
        ended: list[Any] = []
        new_indexes: set[int] = set()
        changed = False
        ordered = sorted(self.pods, key=jp.index_of) if self.indexed else self.pods
        for pod in ordered:
            lost = jp.is_failed(pod, self.job)
            if not self._is_tracked(pod) or not self._may_go(pod, end, lost):
                continue
            ended.append(pod)
            uid, valid = pod["metadata"]["uid"], not self.indexed or jp.valid_index(self.job, pod)
            if pods.phase(pod) == "Succeeded" and uid not in before["failed"]:
                if self.indexed and valid and not job_indexes.has(self.known_indexes, jp.index_of(pod)):
                    new_indexes.add(jp.index_of(pod))
                elif not self.indexed and uid not in before["succeeded"]:
                    self.uncounted["succeeded"].append(uid)
            elif (
                (lost or (end is not None and end["type"] != MET))
                and (valid and uid not in before["failed"])
                and match_failure(self.spec.get("podFailurePolicy"), pod)[0]
            ):
                self.uncounted["failed"].append(uid)
            if len(new_indexes) + sum(map(len, self.uncounted.values())) >= BURST:
                return ended, True, True
        changed = bool(new_indexes) or any(tuple(uids) != before[name] for name, uids in self.uncounted.items())
        return ended, changed, False

    def _may_go(self, pod: Json, end: Json | None, lost: bool) -> bool:
        if end is not None or owned.is_terminating(self.job) or pods.phase(pod) == "Succeeded":
            return True
        if not lost:
            return False
        kept = self.delayed.get(jp.index_of(pod)) if self.per_index else None
        return kept is None or kept["metadata"]["uid"] != pod["metadata"]["uid"]

    def _write_indexes(self) -> bool:
        completed = job_indexes.text_of(self.succeeded_indexes)
        failed = job_indexes.text_of(self.failed_indexes) if self.per_index else None
        changed = (self.status.get("completedIndexes") or "") != completed or self.status.get("failedIndexes") != failed
        self.status.update(succeeded=self.succeeded, completedIndexes=completed, failedIndexes=failed)
        return changed

    def _finish(self, end: Json) -> bool:
        """Declares the Job finished, unless pods are still to be counted or to end."""
        if any(self.uncounted.values()) or self.terminating:
            return False
        self._set(end)
        if end["type"] == COMPLETE:
            self.status["completionTime"] = end["lastTransitionTime"]
        return True

    def _tell_end(self, end: Json) -> None:
        if end["type"] == FAILED:
            self.c.event(self.job, "Warning", end["reason"], end["message"])
            return
        if self.spec.get("completions") is not None and self.succeeded > self.spec["completions"]:
            text = "Too many succeeded pods running after completion count reached"
            self.c.event(self.job, "Warning", "TooManySucceededPods", text)
        self.c.event(self.job, "Normal", "Completed", "Job completed")

    def _flush(self) -> None:
        """Writes the status as it is now. Raises `Conflict` when the Job was changed since it was read."""
        status = {name: value for name, value in self.status.items() if value or name in ("ready", "terminating")}
        if self.status.get("failedIndexes") is not None:
            status["failedIndexes"] = self.status["failedIndexes"]
        if self.conditions:
            status["conditions"] = self.conditions
        status["uncountedTerminatedPods"] = {end: uids for end, uids in self.uncounted.items() if uids}
        self.job = self.c.update_status({**self.job, "status": status})
