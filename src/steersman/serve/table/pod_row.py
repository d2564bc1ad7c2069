"""The STATUS, READY and RESTARTS of a pod, as `kubectl get pods` shows them.

The order of the rules is that of Kubernetes' printer (pkg/printers/internalversion, release 1.36): a deletion
outweighs what containers say, these outweigh the pod's reason, and that its phase.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from steersman.serve.table.ages import age

TERMINAL = ("Succeeded", "Failed")
NONE = "<none>"


class _Init(NamedTuple):
    """What the init containers say. `reason` is None once they are all done."""

    reason: str | None
    ready: int
    sidecar_restarts: int
    restarts: int


def pod_cells(pod: Any, now: int) -> list[Any]:
    """The cells of a pod's row: name, ready, status, restarts, age, and the wide ones."""
    status = pod.status
    sidecars = {c["name"] for c in pod.spec.initContainers if c.get("restartPolicy") == "Always"}
    total = len(pod.spec.containers) + len(sidecars)
    init = _init_state(pod, sidecars)
    reason = status.reason or status.phase or ""
    for condition in status.conditions:
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    ready, restarts = init.ready, init.restarts
    if init.reason is not None:
        reason = init.reason
    if init.reason is None or _is_true(status, "Initialized"):
        restarts = init.sidecar_restarts
        main_reason, main_ready, main_restarts = _main_state(status, reason)
        reason, ready, restarts = main_reason, ready + main_ready, restarts + main_restarts
    if pod.metadata.deletionTimestamp:
        if status.reason == "NodeLost":
            reason = "Unknown"
        elif status.phase not in TERMINAL:
            reason = "Terminating"
    return [
        pod.metadata.name,
        f"{ready}/{total}",
        reason,
        _restarts(status, restarts, now),
        age(pod.metadata.creationTimestamp, now),
        next((ip["ip"] for ip in status.podIPs if ip.get("ip")), status.podIP or NONE),
        pod.spec.nodeName or NONE,
        status.nominatedNodeName or NONE,
        _gates(pod),
    ]


def pod_conditions(pod: Any) -> list[dict[str, str]]:
    """The row conditions of a finished pod."""
    told = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}
    phase = pod.status.phase
    if phase not in told:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": told[phase]}]


def _init_state(pod: Any, sidecars: set[str]) -> _Init:
    ready = restarts = sidecar_restarts = 0
    statuses = pod.status.initContainerStatuses
    for index, container in enumerate(statuses):
        count = container.get("restartCount", 0)
        restarts += count
        sidecar = container.get("name") in sidecars
        if sidecar:
            sidecar_restarts += count
        state = container.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting")
        if ended is not None and ended.get("exitCode", 0) == 0:
            continue
        if sidecar and container.get("started"):
            ready += bool(container.get("ready"))
            continue
        if ended is not None:
            reason = f"Init:{_ended(ended)}"
        elif waiting and waiting.get("reason") and waiting["reason"] != "PodInitializing":
            reason = f"Init:{waiting['reason']}"
        else:
            reason = f"Init:{index}/{len(pod.spec.initContainers)}"
        return _Init(reason, ready, sidecar_restarts, restarts)
    return _Init(None, ready, sidecar_restarts, restarts)


def _main_state(status: Any, reason: str) -> tuple[str, int, int]:
    """(reason, ready containers, restarts) by the containers; the first in the list has the last word."""
    ready = restarts = 0
    running = False
    for container in reversed(list(status.containerStatuses)):
        restarts += container.get("restartCount", 0)
        state = container.get("state") or {}
        waiting, ended = state.get("waiting"), state.get("terminated")
        if waiting and waiting.get("reason"):
            reason = waiting["reason"]
        elif ended is not None:
            reason = _ended(ended)
        elif container.get("ready") and state.get("running") is not None:
            running = True
            ready += 1
    if reason == "Completed" and running:
        reason = "Running" if _is_true(status, "Ready") else "NotReady"
    return reason, ready, restarts


def _ended(state: Any) -> str:
    if state.get("reason"):
        return str(state["reason"])
    signal = state.get("signal", 0)
    return f"Signal:{signal}" if signal else f"ExitCode:{state.get('exitCode', 0)}"


def _restarts(status: Any, restarts: int, now: int) -> str:
    last = ""
    for container in [*status.initContainerStatuses, *status.containerStatuses]:
        ended = (container.get("lastState") or {}).get("terminated") or {}
        last = max(last, ended.get("finishedAt") or "")
    return f"{restarts} ({age(last, now)} ago)" if restarts and last else str(restarts)


def _gates(pod: Any) -> str:
    gates = [gate.get("conditionType") for gate in pod.spec.readinessGates]
    if not gates:
        return NONE
    return f"{sum(_is_true(pod.status, gate) for gate in gates)}/{len(gates)}"


def _is_true(status: Any, condition: str) -> bool:
    return any(c.get("type") == condition and c.get("status") == "True" for c in status.conditions)
