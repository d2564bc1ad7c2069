"""What controllers ask about pods. Source of the facts: Kubernetes 1.36, pkg/api/v1/pod/util.go and
pkg/controller/controller_utils.go (ActivePodsWithRanks)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from steersman.api.client import Client, key_of
from steersman.api.times import MICRO, parse_time
from steersman.controllers.conditions import find
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
ENDED: Final = ("Succeeded", "Failed")
PHASE_RANK: Final = {"Pending": 0, "Unknown": 1, "Running": 2}
DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
LONG_AGO: Final = "0001-01-01T00:00:00Z"


def phase(pod: Json) -> str:
    """The phase; Pending as long as nobody wrote one."""
    return (pod.get("status") or EMPTY).get("phase") or "Pending"


def is_active(pod: Json) -> bool:
    """Neither ended nor being deleted."""
    return "deletionTimestamp" not in pod["metadata"] and phase(pod) not in ENDED


def ready_since(pod: Json) -> str | None:
    """When the pod became ready (RFC 3339); None: it is not ready."""
    ready = find((pod.get("status") or EMPTY).get("conditions") or (), "Ready")
    return (ready.get("lastTransitionTime") or LONG_AGO) if ready is not None and ready["status"] == "True" else None


def is_available(c: Client, pod: Json, min_ready_seconds: int) -> bool:
    """Ready for long enough; if not yet, the key is woken when it is."""
    since = ready_since(pod)
    if since is None or not min_ready_seconds:
        return since is not None
    return c.after(since, min_ready_seconds)


def deletion_cost(pod: Json) -> int:
    """What the pod-deletion-cost annotation says; 0 for anything unreadable, as in Kubernetes."""
    text = (pod["metadata"].get("annotations") or EMPTY).get(DELETION_COST, "0")
    try:
        return int(text)
    except ValueError:
        return 0


def cheap_order(pod: Json) -> tuple[Any, ...]:
    """The first criteria of who goes first: unassigned, in an early phase, not ready, of low deletion cost."""
    assigned = bool(pod["spec"].get("nodeName"))
    return (assigned, PHASE_RANK.get(phase(pod), 0), ready_since(pod) is not None, deletion_cost(pod))


def deletion_order(pod: Json, ranks: Mapping[str, int]) -> tuple[Any, ...]:
    """Sort key of who goes first. `ranks`: by node, how many related pods are on it; pods that are doubled up go
    first, then those that became ready last, restarted most, were created last, and by name."""
    since = ready_since(pod)
    restarts = [status.get("restartCount", 0) for status in (pod.get("status") or EMPTY).get("containerStatuses") or ()]
    return (
        *cheap_order(pod),
        -ranks.get(pod["spec"].get("nodeName") or "", 0),
        0 if since is None else -(parse_time(since) // MICRO),
        -max(restarts, default=0),
        -(parse_time(pod["metadata"]["creationTimestamp"]) // MICRO),
        pod["metadata"]["name"],
    )


def with_condition(c: Client, pod: Json, type_: str, status: str, reason: str, message: str) -> list[Any]:
    """The pod's conditions with one of them changed; the time of its last change stays where its status does."""
    before = list((pod.get("status") or EMPTY).get("conditions") or ())
    place = next((at for at, each in enumerate(before) if each["type"] == type_), len(before))
    old = before[place] if place < len(before) else EMPTY
    since = old.get("lastTransitionTime") if old.get("status") == status else c.timestamp()
    changed = {"type": type_, "status": status, "lastProbeTime": None, "lastTransitionTime": since}
    if "generation" in pod["metadata"]:
        changed["observedGeneration"] = pod["metadata"]["generation"]
    before[place : place + 1] = [{**changed, "reason": reason, "message": message} if reason else changed]
    return before


def disrupt(c: Client, pod: Json, reason: str, message: str) -> None:
    """Deletes a pod that has to go, and says why in its condition DisruptionTarget first. Raises `Conflict` if it has
    changed meanwhile."""
    meta = pod["metadata"]
    key = key_of(pod)
    conditions = with_condition(c, pod, "DisruptionTarget", "True", reason, message)
    body = {"metadata": {"uid": meta["uid"]}, "status": {"conditions": conditions}}
    c.patch(key, body, "status", rv=meta["resourceVersion"])
    c.delete(key, uid=meta["uid"])
