"""Virtual nodes as objects. Source of the shapes: the kubelet of Kubernetes 1.36 (pkg/kubelet/nodestatus) and KWOK's
node-initialize stage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from steersman.kernel.value import EMPTY
from steersman.nodes.status import node_address

Json = Mapping[str, Any]
LONG_AGO: Final = "2026-01-01T00:00:00Z"
CPU: Final = "16"
MEMORY: Final = "64Gi"
PODS: Final = 110
"""The kubelet's default limit of pods."""
PORT: Final = 10250
"""Where a kubelet listens."""
VERSION: Final = "v1.36.0"
RUNTIME: Final = "virtual://"
"""The container runtime that a virtual kubelet names."""
CONDITIONS: Final = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


def node_object(
    name: str, cpu: str = CPU, memory: str = MEMORY, pods: int = PODS, time: str = LONG_AGO
) -> dict[str, Any]:
    """A Node of this size, ready since `time` (RFC 3339). `cpu` and `memory` are quantities."""
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "type": "virtual",  # what SimKube's pods select by
    }
    node: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"providerID": f"steersman://{name}"},
    }
    size = {"cpu": cpu, "memory": memory, "ephemeral-storage": "1Ti", "pods": str(pods)}
    return {**node, "status": ready_status({**node, "status": {"capacity": size}}, time)}


def is_ready(node: Json) -> bool:
    """Whether the Ready condition is True."""
    conditions = (node.get("status") or EMPTY).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def is_virtual(node: Json) -> bool:
    """Whether it was a virtual kubelet that said what the node is."""
    info = (node.get("status") or EMPTY).get("nodeInfo") or EMPTY
    return bool(info.get("containerRuntimeVersion") == RUNTIME)


def ready_status(node: Json, time: str) -> dict[str, Any]:
    """The whole status of a node that became ready at `time`. What it says of itself is kept; a node that states no
    capacity gets the default one."""
    before = node.get("status") or EMPTY
    name = node["metadata"]["name"]
    default = {"cpu": CPU, "memory": MEMORY, "ephemeral-storage": "1Ti", "pods": str(PODS)}
    capacity = before.get("capacity") or before.get("allocatable") or default
    written = {type_ for type_, *_ in CONDITIONS}
    kept = [each for each in before.get("conditions") or () if each["type"] not in written]
    info = before.get("nodeInfo") or EMPTY  # a node that was made without says "" and 0, as Go writes them
    times = {"lastHeartbeatTime": time, "lastTransitionTime": time}
    return {
        **before,
        "capacity": capacity,
        "allocatable": before.get("allocatable") or capacity,
        "conditions": [{"type": t, "status": s, **times, "reason": r, "message": m} for t, s, r, m in CONDITIONS]
        + kept,
        "addresses": before.get("addresses")
        or [{"type": "InternalIP", "address": node_address(name)}, {"type": "Hostname", "address": name}],
        "daemonEndpoints": before["daemonEndpoints"] if _port(before) else {"kubeletEndpoint": {"Port": PORT}},
        "nodeInfo": info if info.get("kubeletVersion") else _info(name),
    }


def _port(status: Json) -> int:
    endpoint = (status.get("daemonEndpoints") or EMPTY).get("kubeletEndpoint") or EMPTY
    return int(endpoint.get("Port") or 0)


def _info(name: str) -> dict[str, str]:
    return {
        "architecture": "amd64",
        "bootID": "",
        "containerRuntimeVersion": RUNTIME,
        "kernelVersion": "",
        "kubeProxyVersion": "",
        "kubeletVersion": VERSION,
        "machineID": name,
        "operatingSystem": "linux",
        "osImage": "",
        "systemUUID": "",
    }
