"""Services: the endpoints of pods, and those that somebody keeps by hand."""

from __future__ import annotations

from typing import Any, Final

from tests.run.scenarios.making import (
    CONTAINERS,
    DEPLOYMENT,
    NAMESPACE,
    Step,
    create,
    delete,
    labelled,
    made,
    patch,
    template,
)

ZONE: Final = "topology.kubernetes.io/zone"
SERVICE, ENDPOINTS = "v1/Service", "v1/Endpoints"
PORTS: Final = [{"name": "http", "port": 80, "targetPort": "web"}, {"name": "other", "port": 81, "protocol": "UDP"}]


def pods(**spec: Any) -> dict[str, Any]:
    inner = template()
    inner["spec"]["containers"][0]["ports"] = [{"name": "web", "containerPort": 8080}]
    return made(DEPLOYMENT, replicas=2, selector={"matchLabels": {"app": "web"}}, template=inner, **spec)


def endpoints(*subsets: dict[str, Any], **meta: Any) -> dict[str, Any]:
    meta = {"name": "hand", "namespace": NAMESPACE, **meta}
    return {"apiVersion": "v1", "kind": "Endpoints", "metadata": meta, "subsets": list(subsets)}


def subset(*addresses: str, port: int = 80, field: str = "addresses") -> dict[str, Any]:
    return {field: [{"ip": each} for each in addresses], "ports": [{"name": "http", "port": port}]}


def rewritten(*subsets: dict[str, Any], **meta: Any) -> Step:
    return lambda c: c.update(endpoints(*subsets, **meta))


SCENARIOS: Final[dict[str, tuple[Step, ...]]] = {
    "service": (
        create(pods(), made(SERVICE, selector={"app": "web"}, ports=PORTS)),
        patch(SERVICE, {"metadata": {"labels": {"tier": "front"}, "annotations": {"note": "n"}}}),
        patch(DEPLOYMENT, {"spec": {"replicas": 1}}),
        patch(DEPLOYMENT, {"spec": {"replicas": 0}}),
        patch(SERVICE, {"spec": {"selector": {"app": "none"}}}),
        delete(SERVICE, "Background"),
    ),
    "service-headless": (
        create(
            made("apps/v1/StatefulSet", replicas=2, serviceName="web", selector={"matchLabels": {"app": "web"}},
                 template=template()),
            made(SERVICE, selector={"app": "web"}, clusterIP="None"),
        ),
        create(
            labelled(made("v1/Pod", "unready", containers=CONTAINERS, readinessGates=[{"conditionType": "a/b"}]))
        ),
        patch(SERVICE, {"spec": {"publishNotReadyAddresses": True}}),
    ),
    "service-distribution": (
        lambda c: [
            c.patch(c.key("v1/Node", f"node-{at}"), {"metadata": {"labels": {ZONE: f"zone-{at % 2}"}}})
            for at in range(3)
        ],
        create(
            made("apps/v1/DaemonSet", selector={"matchLabels": {"app": "web"}}, template=template()),
            made(SERVICE, selector={"app": "web"}, ports=PORTS[1:], trafficDistribution="PreferSameZone"),
        ),
        patch(SERVICE, {"spec": {"trafficDistribution": "PreferSameNode"}}),
        patch(SERVICE, {"spec": {"trafficDistribution": None}}),
    ),
    "mirroring": (
        create(made(SERVICE, "hand", ports=PORTS[:1])),
        create(endpoints(subset("10.1.2.3", "10.1.2.4"), labels={"a": "b"}, annotations={"note": "n"})),
        rewritten(subset("10.1.2.3"), subset("10.1.2.4", field="notReadyAddresses"), labels={"a": "b"}),
        rewritten(subset("10.1.2.3", "fd00::7"), subset("10.1.2.9", port=81), annotations={"note": "other"}),
        patch(ENDPOINTS, {"metadata": {"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}}, "hand"),
        patch(ENDPOINTS, {"metadata": {"labels": {"endpointslice.kubernetes.io/skip-mirror": None}}}, "hand"),
        patch(SERVICE, {"spec": {"selector": {"app": "web"}}}, "hand"),
        patch(SERVICE, {"spec": {"selector": None}}, "hand"),
        delete(SERVICE, "Background", "hand"),
    ),
}  # fmt: skip
