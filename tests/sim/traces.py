"""Small traces, made by hand."""

from __future__ import annotations

from typing import Any

from steersman.trace.podlife import PodLife
from steersman.trace.recording import Trace, TraceEvent
from steersman.trace.tracked import Tracked

START = 1_700_000_000
"""Seconds since 1970 at which they begin."""
Json = dict[str, Any]


def pod_spec(cpu: str = "1", **spec: Any) -> Json:
    resources = {"requests": {"cpu": cpu, "memory": "1Gi"}}
    return {"containers": [{"name": "c", "image": "i", "resources": resources}], **spec}


def deployment(name: str = "web", replicas: int = 2, cpu: str = "1", namespace: str = "shop", **spec: Any) -> Json:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod_spec(cpu)}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template, **spec},
    }


def pod(name: str, namespace: str = "shop", cpu: str = "1", **spec: Any) -> Json:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec(cpu, **spec)}


def named(obj: Json) -> Json:
    """What a trace keeps of a deletion."""
    return {field: obj[field] for field in ("apiVersion", "kind", "metadata")}


def trace(*events: tuple[int, list[Json], list[Json]], **parts: Any) -> Trace:
    """A trace of (seconds after the start, applied, deleted)."""
    config = parts.pop("config", {"apps/v1.Deployment": Tracked(), "v1.Pod": Tracked(lifecycle=True, skip_owned=True)})
    made = tuple(TraceEvent(START + after, tuple(applied), tuple(deleted)) for after, applied, deleted in events)
    return Trace(config=config, events=made, **parts)


def life(seconds: int) -> PodLife:
    return PodLife(START, START + seconds)


def scaling() -> Trace:
    """A Deployment that grows beyond one node of 4 CPU, shrinks, and goes; a bare pod that ends after 20 s."""
    job = pod("job", restartPolicy="Never")
    return trace(
        (0, [deployment(replicas=2), job], []),
        (30, [deployment(replicas=6)], []),
        (90, [deployment(replicas=1)], []),
        (150, [], [named(deployment())]),
        lifecycles={("v1.Pod", "shop/job"): {1: (life(20),)}},
    )


def nodes(count: int = 1, cpu: str = "4", memory: str = "16Gi", **spec: Any) -> list[Json]:
    room = {"cpu": cpu, "memory": memory, "pods": "10"}
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"n{number}", "labels": {"zone": "a"}},
            "spec": spec,
            "status": {"allocatable": room, "capacity": room},
        }
        for number in range(count)
    ]
