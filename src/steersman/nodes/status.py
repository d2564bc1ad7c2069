"""The life of a pod on a virtual node, as data: which edge comes next, and the status after it. Pure.

A pod that was bound is accepted (Pending, ContainerCreating), started (Running, ready), maybe completed (Succeeded or
Failed), and removed once its deletion was asked for. An edge is one write. Both the kubelet of check and the
component of simulate and run take edges and statuses from here.

The statuses have the shape the kubelet of Kubernetes 1.36 gives them (pkg/kubelet/status/generate.go and
kubelet_pods.go). Addresses are IPv6, unique local (RFC 4193): a /64 for each node, and an address in it for each pod,
both functions of names and uids, so nothing is allocated and nothing is remembered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv6Address
from typing import Any, Final

from xxhash import xxh3_64_intdigest

from steersman.api.times import MICRO, parse_time
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
LIFETIME: Final = "steersman.dev/lifetime-seconds"
"""Pod annotation: seconds (a decimal number) a pod with restartPolicy Never or OnFailure runs before it completes."""
EXIT_CODE: Final = "steersman.dev/exit-code"
"""Pod annotation: how its containers end; 0 if absent. Anything else makes a pod with restartPolicy Never Failed."""
ACCEPT: Final = "accept"
START: Final = "start"
SEE: Final = "see"
"""A running pod whose spec has changed, such as by a resize: virtual nodes have room for everything at once."""
COMPLETE: Final = "complete"
END: Final = "end"
"""A pod that somebody waits for (it has a finalizer) ends before it is removed, as the kubelet reports it."""
REMOVE: Final = "remove"
_GROUPS: Final = ("containers", "initContainers")
READY: Final = "ready"
"""The one edge of a node."""
SIGTERM_CODE: Final = 143
"""How a container ends that was asked to: 128 and the number of SIGTERM."""
MAX_LIFETIME: Final = 1e9
"""Seconds, thirty years: whoever asks for more (or for "inf") asks for a pod that outlives its cluster."""
SITE: Final = 0xFD53_7465_6572  # a unique local prefix (RFC 4193); the letters are "Steer"
_EXIT_CODE: Final = re.compile(r"[0-9]{1,3}")
KUBELET_CONDITIONS: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
"""The conditions the kubelet writes, in its order; others are left as they are."""


@lru_cache(maxsize=1 << 14)
def _network(node: str) -> int:
    return (SITE << 16 | xxh3_64_intdigest(node.encode()) & 0xFFFF) << 64 | 0


@lru_cache(maxsize=1 << 14)
def node_address(node: str) -> str:
    """The address of a virtual node."""
    return str(IPv6Address(_network(node) | (xxh3_64_intdigest(f"node {node}".encode()) | 1 << 63)))


def pod_address(node: str, uid: str) -> str:
    """The address of a pod on a virtual node: a function of the node's name and the pod's uid."""
    return str(IPv6Address(_network(node) | (xxh3_64_intdigest(f"{node} {uid}".encode()) & ~(1 << 63))))


def next_edge(pod: Json) -> str:
    """The edge a bound pod is to take next; "" for none. A function of the pod alone."""
    meta = pod["metadata"]
    status = pod.get("status") or EMPTY
    phase = status.get("phase") or "Pending"
    if "deletionTimestamp" in meta:
        if not meta.get("finalizers"):
            return REMOVE
        if phase not in ("Succeeded", "Failed"):
            return END
        return "" if meta.get("deletionGracePeriodSeconds") == 0 else REMOVE
    if phase == "Pending":
        return START if status.get("startTime") else ACCEPT
    if phase == "Running":
        seen = status.get("observedGeneration")
        if seen is not None and seen < meta.get("generation", 0):
            return SEE
        return COMPLETE if completes(pod) else ""
    return ""


def completes(pod: Json) -> bool:
    """Whether the pod ends by itself: restartPolicy Never or OnFailure, and a lifetime or a Job that owns it."""
    if pod["spec"].get("restartPolicy", "Always") == "Always":
        return False
    meta = pod["metadata"]
    if LIFETIME in (meta.get("annotations") or EMPTY):
        return True
    return any(o["kind"] == "Job" and o.get("controller") for o in meta.get("ownerReferences") or ())


def lifetime(pod: Json) -> float | None:
    """Seconds from start to completion, where the pod's annotation says so; None for an unreadable number."""
    text = (pod["metadata"].get("annotations") or EMPTY).get(LIFETIME)
    try:
        return None if text is None else min(max(0.0, float(text)), MAX_LIFETIME)
    except ValueError:
        return None


def started_at(pod: Json) -> int:
    """When its first container started (microseconds); the pod's start where no container says so, and its creation
    where somebody else wrote a status that does not say either."""
    status = pod.get("status") or EMPTY
    times = [
        state["startedAt"]
        for each in status.get("containerStatuses") or ()
        if (state := (each.get("state") or EMPTY).get("running")) and state.get("startedAt")
    ]
    begun = min(times) if times else status.get("startTime") or pod["metadata"]["creationTimestamp"]
    return parse_time(begun) // MICRO * MICRO


def after_edge(pod: Json, edge: str, time: str) -> dict[str, Any]:
    """The whole status after an edge of a pod that stays, at `time` (RFC 3339). What others wrote of it is kept."""
    return {ACCEPT: _accepted, START: _started, SEE: _seen, COMPLETE: _completed, END: _ended}[edge](pod, time)


def _accepted(pod: Json, time: str) -> dict[str, Any]:
    before = pod.get("status") or EMPTY
    node = pod["spec"]["nodeName"]
    waiting = {"waiting": {"reason": "ContainerCreating"}}
    return {
        **before,
        "phase": "Pending",
        "hostIP": node_address(node),
        "hostIPs": [{"ip": node_address(node)}],
        "startTime": time,
        "observedGeneration": pod["metadata"].get("generation", 1),
        "conditions": _conditions(pod, time, ready="False", sandbox="False", reason="ContainersNotReady"),
        "containerStatuses": _containers(pod, waiting, ready=False),
        **_init_statuses(pod, {"waiting": {"reason": "PodInitializing"}}, ready=False),
    }


def _started(pod: Json, time: str) -> dict[str, Any]:
    spec, meta = pod["spec"], pod["metadata"]
    host = spec.get("hostNetwork")
    address = node_address(spec["nodeName"]) if host else pod_address(spec["nodeName"], meta["uid"])
    done = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": time, "finishedAt": time}}
    return {
        **(pod.get("status") or EMPTY),
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "observedGeneration": meta.get("generation", 1),
        "conditions": _conditions(pod, time, ready="True", sandbox="True"),
        "containerStatuses": _containers(pod, {"running": {"startedAt": time}}, ready=True),
        **_init_statuses(pod, done, ready=True),
    }


def _seen(pod: Json, time: str) -> dict[str, Any]:
    """What runs is what the spec says now."""
    status: Json = pod["status"]
    specs = {each["name"]: each for group in _GROUPS for each in pod["spec"].get(group) or ()}
    out = {**status, "observedGeneration": pod["metadata"]["generation"]}
    for field in ("containerStatuses", "initContainerStatuses"):
        if field in status:
            out[field] = [_as_specified(each, specs.get(each["name"], EMPTY)) for each in status[field]]
    if ephemeral := pod["spec"].get("ephemeralContainers"):
        known = {each["name"]: each for each in status.get("ephemeralContainerStatuses") or ()}
        running = {"running": {"startedAt": time}}
        out["ephemeralContainerStatuses"] = [
            known.get(each["name"]) or _status(each, running, ready=False) for each in ephemeral
        ]
    return out


def _as_specified(status: Json, container: Json) -> Json:
    """The status of a container, with the resources it has been given."""
    if "resources" not in status or (status.get("state") or EMPTY).get("running") is None:
        return status
    return {**status, "resources": container.get("resources", EMPTY)}


def _completed(pod: Json, time: str) -> dict[str, Any]:
    return _terminated(pod, time, exit_code(pod))


def _ended(pod: Json, time: str) -> dict[str, Any]:
    return _terminated(pod, time, SIGTERM_CODE)


def _terminated(pod: Json, time: str, code: int) -> dict[str, Any]:
    """Every container ended with an exit code."""
    begun = {"startedAt": (pod.get("status") or EMPTY).get("startTime") or time}
    reason = "Completed" if code == 0 else "Error"
    containers = []
    for each in _containers(pod, EMPTY, ready=False):
        running = (each.pop("was") or begun).get("startedAt")
        ended = {"exitCode": code, "reason": reason, "startedAt": running, "finishedAt": time}
        containers.append({**each, "started": False, "state": {"terminated": ended}})
    why = "PodCompleted" if code == 0 else "PodFailed"
    return {
        **(pod.get("status") or EMPTY),
        "phase": "Succeeded" if code == 0 else "Failed",
        "observedGeneration": pod["metadata"].get("generation", 1),
        "conditions": _conditions(pod, time, ready="False", sandbox="False", reason=why),
        "containerStatuses": containers,
    }


def exit_code(pod: Json) -> int:
    """How its containers end. A pod that is restarted on failure succeeds in the end: restarts are not played."""
    if pod["spec"].get("restartPolicy") != "Never":
        return 0
    text = (pod["metadata"].get("annotations") or EMPTY).get(EXIT_CODE, "0")
    return int(text) if _EXIT_CODE.fullmatch(text) and int(text) < 256 else 1


def _containers(pod: Json, state: Json, ready: bool) -> list[dict[str, Any]]:
    """One status a container. With an empty `state`, `was` holds the running state it had."""
    before = {each["name"]: each for each in (pod.get("status") or EMPTY).get("containerStatuses") or ()}
    out = []
    for container in pod["spec"]["containers"]:
        each = _status(container, state, ready)
        each["started"] = ready
        if not state:
            each["was"] = (before.get(container["name"], EMPTY).get("state") or EMPTY).get("running")
        out.append(each)
    return out


def _init_statuses(pod: Json, state: Json, ready: bool) -> dict[str, Any]:
    """The statuses of init containers; sidecars (restartPolicy Always) go on running beside the others."""
    inits = pod["spec"].get("initContainers")
    if not inits:
        return {}
    out = []
    for container in inits:
        sidecar = container.get("restartPolicy") == "Always"
        now = state
        if sidecar and ready:
            now = {"running": {"startedAt": state["terminated"]["startedAt"]}}
        each = _status(container, now, ready)
        each["started"] = ready and sidecar
        out.append(each)
    return {"initContainerStatuses": out}


def _status(container: Json, state: Json, ready: bool) -> dict[str, Any]:
    """The status of one container. One that runs has all the resources it asks for."""
    out = {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "ready": ready,
        "restartCount": 0,
        "state": state,
    }
    if "running" in state:
        out["resources"] = container.get("resources", EMPTY)
    return out


def _conditions(pod: Json, time: str, ready: str, sandbox: str, reason: str = "") -> list[dict[str, Any]]:
    """The kubelet's conditions at `time`, each with the time of its last change; those of others follow."""
    before = {each["type"]: each for each in (pod.get("status") or EMPTY).get("conditions") or ()}
    names = " ".join([container["name"] for container in pod["spec"]["containers"]])
    started = ready == "True" or reason.startswith("Pod")
    values = {
        "PodReadyToStartContainers": sandbox,
        "Initialized": "True" if started or not pod["spec"].get("initContainers") else "False",
        "Ready": ready,
        "ContainersReady": ready,
        "PodScheduled": "True",
    }
    out = []
    for type_ in KUBELET_CONDITIONS:
        old = before.pop(type_, EMPTY)
        same = old.get("status") == values[type_]
        each = {"type": type_, "status": values[type_], "lastProbeTime": None}
        each["lastTransitionTime"] = (old.get("lastTransitionTime") or time) if same else time
        each["observedGeneration"] = pod["metadata"].get("generation", 1)
        if values[type_] == "False" and type_ in ("Ready", "ContainersReady") and reason:
            each["reason"] = reason
            if reason == "ContainersNotReady":
                each["message"] = f"containers with unready status: [{names}]"
        elif values[type_] == "False" and type_ == "Initialized":
            inits = " ".join([container["name"] for container in pod["spec"]["initContainers"]])
            each["reason"] = "ContainersNotInitialized"
            each["message"] = f"containers with incomplete status: [{inits}]"
        out.append(each)
    return [*out, *before.values()]
