"""Autoscalers: what they count, how far they go at a time, and what they say when they cannot.

Usage is what pods on virtual nodes say they use.
"""

from __future__ import annotations

from typing import Any, Final

from tests.run.scenarios.making import DEPLOYMENT, LABELS, Step, create, delete, deployment, made, patch, template

HPA: Final = "autoscaling/v2/HorizontalPodAutoscaler"
TARGET: Final = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
SLOWLY: Final = {"selectPolicy": "Max", "policies": [{"type": "Pods", "value": 2, "periodSeconds": 600}]}
AT_ONCE: Final = {"stabilizationWindowSeconds": 0, "policies": [{"type": "Percent", "value": 100, "periodSeconds": 1}]}


def hungry(name: str = "web", **spec: Any) -> dict[str, Any]:
    """A Deployment whose pods use all the memory they ask for, and half the CPU."""
    pod = template()
    pod["metadata"]["annotations"] = {"kwok.x-k8s.io/usage-memory": "100Mi", "kwok.x-k8s.io/usage-cpu": "50m"}
    pod["spec"]["containers"][0]["resources"] = {"requests": {"memory": "100Mi", "cpu": "100m"}}
    return made(DEPLOYMENT, name, selector=LABELS, template=pod, **spec)


def resource(name: str = "memory", type_: str = "Utilization", value: Any = 50) -> dict[str, Any]:
    field = {"Utilization": "averageUtilization", "AverageValue": "averageValue"}[type_]
    return {"type": "Resource", "resource": {"name": name, "target": {"type": type_, field: value}}}


def scaler(*metrics: dict[str, Any], name: str = "web", **spec: Any) -> dict[str, Any]:
    given = {"scaleTargetRef": TARGET, "minReplicas": 1, "maxReplicas": 10, "metrics": list(metrics), **spec}
    return made(HPA, name, **given)


def behave(**spec: Any) -> Step:
    return patch(HPA, {"spec": spec})


def measuring(*metrics: dict[str, Any], **spec: Any) -> Step:
    return lambda c: c.patch(c.key(HPA, "web", "default"), {"spec": {"metrics": list(metrics), **spec}})


METRIC: Final = {"name": "queue"}
CONTAINER: Final = {
    "type": "ContainerResource",
    "containerResource": {
        "name": "memory", "container": "c", "target": {"type": "Utilization", "averageUtilization": 100},
    },
}  # fmt: skip
PODS: Final = {"type": "Pods", "pods": {"metric": METRIC, "target": {"type": "AverageValue", "averageValue": "1"}}}
OBJECT: Final = {
    "type": "Object",
    "object": {"metric": METRIC, "describedObject": TARGET, "target": {"type": "Value", "value": "1"}},
}
EXTERNAL: Final = {
    "type": "External",
    "external": {
        "metric": {"name": "queue", "selector": {"matchLabels": {"a": "b"}}},
        "target": {"type": "AverageValue", "averageValue": "1"},
    },
}


def _each(metric: dict[str, Any]) -> dict[str, Any]:
    """The metric, with a target for each pod."""
    return {**metric, "object": {**metric["object"], "target": {"type": "AverageValue", "averageValue": "1"}}}


def _whole(metric: dict[str, Any]) -> dict[str, Any]:
    """The metric, with a target for all pods together."""
    return {**metric, "external": {**metric["external"], "target": {"type": "Value", "value": "1"}}}


SCENARIOS: Final[dict[str, tuple[Step, ...]]] = {
    "autoscaler-pace": (
        create(hungry(replicas=2)),
        create(scaler(resource(), behavior={"scaleUp": SLOWLY, "scaleDown": {"stabilizationWindowSeconds": 0}})),
        behave(maxReplicas=3),
        measuring(resource(value=400), behavior={"scaleDown": {"stabilizationWindowSeconds": 0, **SLOWLY}}),
        behave(minReplicas=2, maxReplicas=10),
    ),
    "autoscaler-counts": (
        create(hungry(replicas=2)),
        create(scaler(resource(value=100))),
        measuring(resource(type_="AverageValue", value="100Mi")),
        measuring(CONTAINER),
        measuring(resource(value=1000)),
        behave(minReplicas=3),
        patch(DEPLOYMENT, {"spec": {"replicas": 0}}),
        delete(HPA, "Background"),
    ),
    "autoscaler-down": (
        create(hungry(replicas=4)),
        create(scaler(resource(value=200), behavior={"scaleDown": AT_ONCE})),
        behave(behavior={"scaleDown": {"selectPolicy": "Disabled"}}),
        measuring(resource(value=800)),
    ),
    "autoscaler-without": (
        create(deployment(replicas=1), scaler(resource()), scaler(resource(), name="lost", scaleTargetRef={
            **TARGET, "name": "nobody"
        }), scaler(resource(), name="odd", scaleTargetRef={
            "apiVersion": "example.com/v1", "kind": "Nothing", "name": "nobody"
        }), scaler(resource(), name="still", scaleTargetRef={
            "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "nobody"
        })),
    ),
    "autoscaler-cpu": (
        create(hungry(replicas=1)),
        create(scaler(resource("cpu", value=25), maxReplicas=3)),
        measuring(resource("cpu", "AverageValue", "20m")),
        behave(maxReplicas=2),
    ),
    "autoscaler-shared": (
        create(hungry(replicas=2)),
        create(scaler(resource(value=100))),
        create(scaler(resource(value=100), name="other")),
        delete(HPA, "Background", "other"),
    ),
    "autoscaler-pods": (create(deployment(replicas=1)), create(scaler(PODS)), measuring(PODS, EXTERNAL)),
    "autoscaler-object": (create(deployment(replicas=1)), create(scaler(OBJECT)), measuring(_each(OBJECT))),
    "autoscaler-external": (create(deployment(replicas=1)), create(scaler(EXTERNAL)), measuring(_whole(EXTERNAL))),
    "autoscaler-container": (
        create(deployment(replicas=1)),
        create(scaler({**CONTAINER, "containerResource": {**CONTAINER["containerResource"], "container": "no"}})),
        measuring(resource("memory", "AverageValue", "1Gi"), PODS),
    ),
}  # fmt: skip
