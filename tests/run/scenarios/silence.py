"""A node that is not ready, and one that fell silent, among nodes that are well; nobody plays their kubelets."""

from __future__ import annotations

import threading
from typing import Any, Final

from steersman.api.errors import ApiError
from tests.run.scenarios.making import LONG_AGO, NAMESPACE, Step, create, together
from tests.run.scenarios.nodes import NODE, pod

SILENT: Final = "silent"
WELL: Final = ("well-a", "well-b", "well-c")
LEASES: Final = "kube-node-lease"
BEAT: Final = 0.5
"""Seconds between two signs of life of nodes that are well."""
AWAY: Final = "node.kubernetes.io/unreachable"
BUSY: Final = "node.kubernetes.io/not-ready"


def says(ready: str) -> dict[str, Any]:
    """What a kubelet tells of its node."""
    kinds = {"Ready": ready, "MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False"}
    beat = {"lastHeartbeatTime": LONG_AGO, "lastTransitionTime": LONG_AGO, "reason": "KubeletReady", "message": "m"}
    return {"conditions": [{"type": type_, "status": status, **beat} for type_, status in kinds.items()]}


def report(ready: str) -> Step:
    return lambda c: c.patch_status(c.key(NODE, SILENT), says(ready))


def lease(name: str, second: int) -> dict[str, Any]:
    """The Lease of a node, renewed for the so manieth time."""
    spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": f"2020-01-01T00:00:00.{second:06}Z"}
    meta = {"name": name, "namespace": LEASES}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}


def joins(name: str) -> Step:
    """A node comes that is well, and has a Lease."""
    meta = {"name": name, "labels": {"kubernetes.io/arch": "arm64", "kubernetes.io/os": "linux"}}
    return create({"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": says("True")}, lease(name, 0))


def beating(c: Any) -> None:
    """The nodes that are well renew their Leases until the control plane is gone."""
    ended = threading.Event()

    def beat() -> None:
        for second in range(1, 1_000_000):
            try:
                for name in WELL:
                    c.patch(c.key("coordination.k8s.io/v1/Lease", name, LEASES), {"spec": lease(name, second)["spec"]})
            except (ApiError, RuntimeError, OSError):
                return
            ended.wait(BEAT)

    threading.Thread(target=beat, daemon=True).start()


def lives(name: str) -> Step:
    """A pod is ready, says its kubelet."""
    said = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": LONG_AGO}]}
    return lambda c: c.patch_status(c.key("v1/Pod", name, NAMESPACE), said)


def guests(taint: str) -> Step:
    """Pods that leave a node with that taint soon, late, and never."""
    given = {"key": taint, "operator": "Exists", "effect": "NoExecute"}
    soon = pod("soon", SILENT, tolerations=[{**given, "tolerationSeconds": 1}])
    late = pod("late", SILENT, tolerations=[{**given, "tolerationSeconds": 600}])
    never = pod("never", SILENT, tolerations=[given])
    return together(create(soon, late, never), *map(lives, ("soon", "late", "never")))


ALL_WELL: Final = together(*map(joins, WELL), beating, joins(SILENT))

SCENARIOS: Final[dict[str, tuple[Step, ...]]] = {
    "node-unready": (together(ALL_WELL, guests(BUSY)), report("False"), report("True")),
    "node-silent": (
        together(ALL_WELL, guests(AWAY)),
        together(
            lambda c: c.patch(
                c.key("coordination.k8s.io/v1/Lease", SILENT, LEASES), {"spec": lease(SILENT, 7)["spec"]}
            ),
            report("True"),
        ),
    ),
}
