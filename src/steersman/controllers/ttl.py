"""ttl-after-finished: deletes Jobs some time after they ended, as their ttlSecondsAfterFinished says.

Source of the facts: Kubernetes 1.36, pkg/controller/ttlafterfinished.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from steersman.api.client import Client
from steersman.api.controller import Controller, Find
from steersman.controllers.owned import is_terminating
from steersman.kernel.effect import Event
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY


class TtlAfterFinished(Controller):
    """Deletes ended Jobs, and their pods first."""

    name = "ttl-after-finished"
    kind = "batch/v1/Job"

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """A Job with an end and a time to live wakes itself."""
        return () if event.new is None or _ended(event.new.value) is None else (event.key,)

    def reconcile(self, c: Client, key: Key) -> None:
        """Deletes the Job if its time is over: by the newest version of it, whatever the cache says."""
        for fresh in (False, True):
            job = c.get(key, fresh=fresh)
            ended = None if job is None else _ended(job)
            if ended is None or not c.after(ended, job["spec"]["ttlSecondsAfterFinished"]):
                return
        c.delete(key, uid=job["metadata"]["uid"], propagation="Foreground")


def _ended(job: Any) -> str | None:
    """When a Job that is to be cleaned up ended (RFC 3339)."""
    if is_terminating(job) or job["spec"].get("ttlSecondsAfterFinished") is None:
        return None
    for each in (job.get("status") or EMPTY).get("conditions") or ():
        if each["type"] in ("Complete", "Failed") and each["status"] == "True":
            return each.get("lastTransitionTime")  # type: ignore[no-any-return]
    return None
