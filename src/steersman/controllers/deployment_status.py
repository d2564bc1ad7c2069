"""The status of a Deployment: counts, and the conditions Available, Progressing and ReplicaFailure. Pure.

Source of the facts: Kubernetes 1.36, pkg/controller/deployment/{sync,progress}.go and util/deployment_util.go.
`kubectl rollout status` reads observedGeneration, the counts, and the reason ProgressDeadlineExceeded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from steersman.controllers import rollout
from steersman.controllers.conditions import find, without
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
NO_DEADLINE: Final = 2**31 - 1
"""A progressDeadlineSeconds of MaxInt32 means none, as in Kubernetes."""
AVAILABLE: Final = "NewReplicaSetAvailable"
TIMED_OUT: Final = "ProgressDeadlineExceeded"


def deadline(d: Json) -> int | None:
    """progressDeadlineSeconds, where there is a deadline."""
    seconds = d["spec"].get("progressDeadlineSeconds")
    return None if seconds is None or seconds == NO_DEADLINE else seconds


def counts(d: Json, sets: Sequence[Json], new: Json | None) -> dict[str, Any]:
    """The status without its conditions; None for what is not written."""
    available = rollout.counted(sets, "availableReplicas")
    synced = [status for rs in sets if (status := rs.get("status") or EMPTY).get("observedGeneration")]
    ending = [status.get("terminatingReplicas") for status in synced]
    return {
        "observedGeneration": d["metadata"]["generation"],
        "replicas": rollout.counted(sets, "replicas") or None,
        "updatedReplicas": rollout.counted([new] if new else [], "replicas") or None,
        "readyReplicas": rollout.counted(sets, "readyReplicas") or None,
        "availableReplicas": available or None,
        "unavailableReplicas": max(0, sum([rollout.replicas(rs) for rs in sets]) - available) or None,
        "terminatingReplicas": None if None in ending else sum(ending),
        "collisionCount": (d.get("status") or EMPTY).get("collisionCount"),
    }


def is_complete(d: Json, status: Json) -> bool:
    """Every pod is of the newest template and available, and this generation was observed."""
    wanted = rollout.replicas(d)
    return (
        all((status.get(field) or 0) == wanted for field in ("updatedReplicas", "replicas", "availableReplicas"))
        and (status.get("observedGeneration") or 0) >= d["metadata"]["generation"]
    )


def has_progressed(before: Json, status: Json) -> bool:
    """Whether a status is further than the one before: more new, ready or available pods, or fewer old ones."""

    def count(of: Json, field: str) -> int:
        return of.get(field) or 0

    def old(of: Json) -> int:
        return count(of, "replicas") - count(of, "updatedReplicas")

    more = any(count(status, f) > count(before, f) for f in ("updatedReplicas", "readyReplicas", "availableReplicas"))
    return more or old(status) < old(before)


class Conditions:
    """The conditions of a Deployment while it is reconciled. `time` is asked once, when something changes."""

    def __init__(self, before: Sequence[Json], time: Any) -> None:
        self.items: list[Json] = list(before)
        self._time = time
        self._now = ""

    def now(self) -> str:
        """The time of this reconcile (RFC 3339)."""
        if not self._now:
            self._now = self._time()
        return self._now

    def get(self, type_: str) -> Json | None:
        """The condition of a type."""
        return find(self.items, type_)

    def drop(self, type_: str) -> None:
        """Removes a condition."""
        self.items = without(self.items, type_)

    def set(self, type_: str, status: str, reason: str, message: str, again: bool = False) -> None:
        """Sets a condition; one of the same status and reason stays as it is, unless `again` (it was updated)."""
        current = self.get(type_)
        same = current is not None and current["status"] == status
        if current is not None and same and current["reason"] == reason and not again:
            return
        now = self.now()
        since = current["lastTransitionTime"] if current is not None and same else now
        self.items = [
            *without(self.items, type_),
            {
                "type": type_,
                "status": status,
                "lastUpdateTime": now,
                "lastTransitionTime": since,
                "reason": reason,
                "message": message,
            },
        ]

    def set_available(self, d: Json, status: Json) -> None:
        """Available: enough pods are."""
        if (status["availableReplicas"] or 0) >= rollout.replicas(d) - rollout.max_unavailable(d):
            self.set("Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
        else:
            text = "Deployment does not have minimum availability."
            self.set("Available", "False", "MinimumReplicasUnavailable", text)
