"""Since when the endpoints of a Service should be as they are: a measure of how fast they follow. Pure.

It is told in the annotation endpoints.kubernetes.io/last-change-trigger-time of whatever is written. Source of the
facts: Kubernetes 1.36, staging/src/k8s.io/endpointslice/util/trigger_time_tracker.go. What differs: what was seen last
time is read off what was written then, where Kubernetes keeps the times in memory: so it outlives a restart, and a
change within the same second is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from steersman.api.eviction import is_ready
from steersman.controllers.conditions import find
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
TRIGGER_TIME: Final = "endpoints.kubernetes.io/last-change-trigger-time"


def since(service: Json, pods: Iterable[Json], written: Mapping[str, bool] | None) -> str:
    """The earliest change that is not written yet; "" when there is none. `written`: the pods by uid, and whether each
    is written to be ready; None: nothing is, so far."""
    if written is None:
        return str(service["metadata"]["creationTimestamp"])
    times = [_changed(pod) for pod in pods if written.get(pod["metadata"]["uid"]) != is_ready(pod)]
    return min([time for time in times if time], default="")


def noted(annotations: Json | None, time: str) -> dict[str, Any]:
    """The annotations with this time, or without any."""
    kept = {name: value for name, value in (annotations or EMPTY).items() if name != TRIGGER_TIME}
    return {**kept, TRIGGER_TIME: time} if time else kept


def _changed(pod: Json) -> str:
    """When its readiness changed last: times of whole seconds, which compare as texts."""
    ready = find((pod.get("status") or EMPTY).get("conditions") or (), "Ready") or EMPTY
    return str(ready.get("lastTransitionTime") or "")
