"""What a Job has: its pods by what became of them, its indexes, its failures in a row. See `job`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman.api.client import Client
from steersman.controllers import job_indexes, owned, pods
from steersman.controllers import job_pods as jp
from steersman.controllers.expectations import Expectations
from steersman.controllers.job_policy import match_failure
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY, Frozen

Json = Mapping[str, Any]


def backoff_place(key: Key) -> str:
    """Where the failures in a row of a Job are remembered."""
    return f"backoff {key.namespace}/{key.name}"


class Census:
    """A Job and its pods during one reconcile: what there is."""

    def __init__(self, c: Client, job: Json, key: Key, mine: list[Any], facts: Expectations) -> None:
        self.c = c
        self.job = job
        self.key = key
        self.spec: Json = job["spec"]
        self.pods = mine
        self.facts = facts
        self.status: dict[str, Any] = dict(job.get("status") or EMPTY)
        self.conditions: list[Json] = list(self.status.get("conditions") or ())
        uncounted = self.status.get("uncountedTerminatedPods") or EMPTY
        self.uncounted = {end: list(uncounted.get(end) or ()) for end in ("succeeded", "failed")}
        self.indexed = jp.is_indexed(job)
        self.per_index = self.indexed and self.spec.get("backoffLimitPerIndex") is not None
        self.suspended = bool(self.spec.get("suspend"))
        self._now = ""
        self._count()

    def now(self) -> str:
        """The time of this reconcile (RFC 3339)."""
        if not self._now:
            self._now = self.c.timestamp()
        return self._now

    def _is_tracked(self, pod: Json) -> bool:
        return jp.is_tracked(pod) and not self.facts.is_freed(pod)

    def _count(self) -> None:
        """Active, ready and terminating pods, and the ends that are not in the status yet."""
        self.active = [pod for pod in self.pods if pods.is_active(pod) and not self.facts.is_gone(pod)]
        self.number = len(self.active)
        self.ready = len([pod for pod in self.active if pods.ready_since(pod) is not None])
        self.ending = [
            pod
            for pod in self.pods
            if pods.phase(pod) not in pods.ENDED and (owned.is_terminating(pod) or self.facts.is_gone(pod))
        ]
        self.terminating = len(self.ending)
        fresh = [
            pod for pod in self.pods if self._is_tracked(pod) and (not self.indexed or jp.valid_index(self.job, pod))
        ]
        was = self.uncounted
        won = [p for p in fresh if pods.phase(p) == "Succeeded" and p["metadata"]["uid"] not in was["succeeded"]]
        lost = [p for p in fresh if jp.is_failed(p, self.job) and p["metadata"]["uid"] not in was["failed"]]
        counted = [pod for pod in lost if match_failure(self.spec.get("podFailurePolicy"), pod)[0]]
        self.succeeded = (self.status.get("succeeded") or 0) + len(won) + len(was["succeeded"])
        self.failed = (self.status.get("failed") or 0) + len(counted) + len(was["failed"])
        self.backoff = self._next_backoff(won, lost)
        if self.indexed:
            self._count_indexes(fresh)

    def _count_indexes(self, fresh: list[Any]) -> None:
        completions = self.spec["completions"]
        known = job_indexes.parse(self.status.get("completedIndexes") or "", completions)
        won = {jp.index_of(pod) for pod in fresh if pods.phase(pod) == "Succeeded"}
        self.known_indexes = known
        self.succeeded_indexes = job_indexes.merged(known, job_indexes.single(won))
        self.succeeded = job_indexes.total(self.succeeded_indexes)
        self.failed_indexes: job_indexes.Intervals = []
        self.delayed: dict[int, Any] = {}
        if self.per_index:
            lost = {jp.index_of(pod) for pod in fresh if jp.index_has_failed(pod, self.job)}
            known = job_indexes.parse(self.status.get("failedIndexes") or "", completions)
            self.failed_indexes = job_indexes.merged(known, job_indexes.single(lost))
            self._find_delayed(fresh)

    def _find_delayed(self, fresh: list[Any]) -> None:
        """By index, the failed pod that stays until there is one in its place, which takes over its failures."""
        active = {jp.index_of(pod) for pod in self.active}
        settled = job_indexes.merged(self.succeeded_indexes, self.failed_indexes)
        for pod in fresh:
            index = jp.index_of(pod)
            if not jp.is_failed(pod, self.job) or index in active or job_indexes.has(settled, index):
                continue
            other = self.delayed.get(index)
            if other is None or (
                jp.all_failures_of(other) <= jp.all_failures_of(pod) and jp.finished_at(pod) >= jp.finished_at(other)
            ):
                self.delayed[index] = pod

    def _next_backoff(self, won: list[Any], lost: list[Any]) -> Json:
        """Failures since the last success, and when the last of them was (microseconds)."""
        known: Json = self.c.memory.get(backoff_place(self.key)) or EMPTY
        if known.get("uid") != self.job["metadata"]["uid"]:
            known = Frozen(uid=self.job["metadata"]["uid"], failures=0, last=0)
        if not won and not lost:
            return known
        ends = [jp.finished_at(pod) for pod in lost]
        failures = known["failures"]
        if won:
            last_success = max(jp.finished_at(pod) for pod in won)
            ends = [end for end in ends if end > last_success]
            failures = 0
        return {**known, "failures": failures + len(ends), "last": max(ends, default=0)}

    def _condition(self, type_: str, reason: str, message: str, status: str = "True") -> dict[str, Any]:
        times = {"lastProbeTime": self.now(), "lastTransitionTime": self.now()}
        return {"type": type_, "status": status, **times, "reason": reason, "message": message}

    def _set(self, condition: Json) -> None:
        """Puts a condition in the place of the one of its type, or last."""
        at = next((n for n, each in enumerate(self.conditions) if each["type"] == condition["type"]), None)
        if at is None:
            self.conditions.append(condition)
        else:
            self.conditions[at] = condition
