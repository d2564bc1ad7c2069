"""The log of a container on a virtual node: what is in it, and which part of it somebody asked for. Pure.

A virtual container prints the lines of the pod's annotation `steersman.dev/logs` (of one container:
`logs.steersman.dev/NAME`) when it starts; without one it says what happens to it. Source of the rules and texts:
kubernetes pkg/kubelet/kubelet_pods.go (validateContainerLogStatus) and k8s.io/cri-client pkg/logs, release 1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from steersman.api.errors import ApiError, bad_request, quote
from steersman.api.times import MICRO, parse_time, time_text
from steersman.kernel.streams import LogQuery
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
LOGS: Final = "steersman.dev/logs"
"""Pod annotation: what its containers print when they start."""
LOGS_OF: Final = "logs.steersman.dev/"
"""With a container's name behind it: what that one prints."""
_STATUSES: Final = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_PULLS: Final = {
    "ErrImagePull": "image can't be pulled",
    "ErrImagePullBackOff": "trying and failing to pull image",
}


class Line(NamedTuple):
    """A line of a log, without its newline; `time` is microseconds since the epoch."""

    time: int
    text: bytes


def status_of(pod: Json, container: str) -> Json | None:
    """The status of a container, None where there is none yet."""
    status = pod.get("status") or EMPTY
    for field in _STATUSES:
        for each in status.get(field) or ():
            if each["name"] == container:
                found: Json = each
                return found
    return None


def is_running(pod: Json, container: str) -> bool:
    """Whether a container runs."""
    return bool(((status_of(pod, container) or EMPTY).get("state") or EMPTY).get("running"))


def no_log(pod: Json, container: str, previous: bool) -> ApiError | None:
    """Why a container has no log; None when it has one."""
    name = f"container {quote(container)} in pod {quote(pod['metadata']['name'])}"
    found = status_of(pod, container)
    if found is None:
        return bad_request(f"{name} is not available")
    if previous:
        if (found.get("lastState") or EMPTY).get("terminated"):
            return None
        return bad_request(f"previous terminated {name} not found")
    state = found.get("state") or EMPTY
    if state.get("running") or state.get("terminated"):
        return None
    if "waiting" not in state:
        return bad_request(f"{name} is waiting to start: no logs available yet")
    reason = state["waiting"].get("reason", "")
    return bad_request(f"{name} is waiting to start: {_PULLS.get(reason, reason)}")


def lines(pod: Json, container: str, previous: bool = False) -> list[Line]:
    """All that a container has printed so far. A later version of the pod has the same lines, and maybe more."""
    found = status_of(pod, container) or EMPTY
    state = (found.get("lastState" if previous else "state")) or EMPTY
    ended = state.get("terminated") or EMPTY
    begun = (state.get("running") or ended).get("startedAt")
    if not begun:
        return []
    time = parse_time(begun)
    annotations = pod["metadata"].get("annotations") or EMPTY
    text = annotations.get(LOGS_OF + container, annotations.get(LOGS))
    if text is not None:
        return [Line(time, each.encode()) for each in text.splitlines()]
    node, image = pod["spec"].get("nodeName", ""), found.get("image", "")
    out = [Line(time, f"steersman: container {container} ({image}) started on virtual node {node}".encode())]
    if ended.get("finishedAt"):
        code, reason = ended.get("exitCode", 0), ended.get("reason", "")
        told = f"steersman: container {container} ended with exit code {code} ({reason})"
        out.append(Line(parse_time(ended["finishedAt"]), told.encode()))
    return out


def chosen(log: list[Line], query: LogQuery) -> list[Line]:
    """The lines of a log as it is that were asked for: first `tail`, then `since`, as the kubelet does it."""
    kept = log[max(0, len(log) - query.tail) :] if query.tail is not None else log
    return [line for line in kept if line.time >= query.since] if query.since is not None else kept


def written(log: Iterable[Line], timestamps: bool) -> Iterator[bytes]:
    """Lines as they are sent."""
    for line in log:
        stamp = b""
        if timestamps:
            seconds, micros = divmod(line.time, MICRO)
            stamp = f"{time_text(seconds)[:-1]}.{micros:06d}000Z ".encode()
        yield stamp + line.text + b"\n"
