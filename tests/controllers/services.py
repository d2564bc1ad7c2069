"""Services, nodes and pods with addresses, for the tests of what stands behind a Service."""

from __future__ import annotations

from typing import Any

from tests.controllers.worlds import LABELS, client, template

READY = [{"type": "Ready", "status": "True"}]


def service(name: str = "web", **spec: Any) -> dict[str, Any]:
    """Without admission nobody gives it an address."""
    given = {"clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"], "ipFamilies": ["IPv4"]}
    if spec.get("clusterIP") == "None" or spec.get("type") == "ExternalName":
        given = {"ipFamilies": ["IPv4"]} if spec.get("clusterIP") else {}
    elif spec.get("ipFamilies", ["IPv4"])[0] == "IPv6":
        given = {"clusterIP": "fd00::9", "clusterIPs": ["fd00::9"]}
    if spec.get("clusterIP") == "None":
        given["clusterIPs"] = ["None"]
    spec = {"selector": LABELS, "ports": [{"port": 80, "targetPort": 8080}], **given, **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def node(name: str = "node-1", zone: str = "") -> dict[str, Any]:
    labels = {"topology.kubernetes.io/zone": zone} if zone else {}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def pod(number: int, labels: Any = LABELS, **spec: Any) -> dict[str, Any]:
    body = template()
    meta = {"name": f"p{number:03}", "namespace": "default", "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {**body["spec"], **spec}}


def running(number: int, ready: bool = True) -> dict[str, Any]:
    address = f"10.1.{number // 250}.{number % 250 + 1}"
    status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}, {"ip": f"fd00::{number + 1:x}"}]}
    return {**status, "conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}


def start(world: Any, *numbers: int, ready: bool = True, **spec: Any) -> list[Any]:
    """Creates running pods."""
    c = client(world)
    return [c.patch_status(c.create(pod(number, **spec)), running(number, ready)) for number in numbers]
