"""What pods on virtual nodes are said to use: KWOK's convention, since nothing runs on such a node.

A container uses what the pod's annotations `kwok.x-k8s.io/usage-cpu` and `kwok.x-k8s.io/usage-memory` say, and else one
millicore and one mebibyte, as in KWOK's default ClusterResourceUsage ("usage-from-annotation"). A node uses the sum of
its pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from steersman.api import quantity
from steersman.api.quantity import QuantityError
from steersman.kernel.object import Object
from steersman.kernel.value import EMPTY, freeze

CPU: Final = "kwok.x-k8s.io/usage-cpu"
MEMORY: Final = "kwok.x-k8s.io/usage-memory"


class Use(NamedTuple):
    """CPU in billionths of a core, memory in bytes."""

    cpu: int
    memory: int


LEAST: Final = Use(1_000_000, 1 << 20)


def container_use(pod: Mapping[str, Any]) -> Use:
    """What each container of a running pod uses. An annotation that is no quantity counts as absent."""
    annotations = (pod.get("metadata") or EMPTY).get("annotations") or EMPTY
    cpu, memory = _nano(annotations.get(CPU)), _nano(annotations.get(MEMORY))
    return Use(LEAST.cpu if cpu is None else cpu, LEAST.memory if memory is None else memory // quantity.NANO)


def running(pods: Iterable[Object]) -> Iterator[tuple[Object, list[str], Use]]:
    """Those of the pods that run on a node, their containers, and what each of these uses."""
    for pod in pods:
        status = pod.status_value
        if pod.node is None or status is None or status.get("phase") != "Running":
            continue
        spec = pod.spec_value or EMPTY
        yield pod, [container["name"] for container in spec.get("containers") or ()], container_use(pod.value)


def _nano(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return max(0, quantity.parse(text).nano)
    except QuantityError:
        return None


def measured(query: Mapping[str, Any]) -> dict[str, Any]:
    """What answers the autoscaler's questions about metrics (`controllers.autoscaler`) where nobody else does: the
    resources pods on virtual nodes use. It depends on the question alone. Other metrics nobody has."""
    kind, metric = query["type"], (query.get("metric") or EMPTY).get("name", "")
    if kind == "External":
        return {"error": f"the server could not find the requested resource (get {metric}.external.metrics.k8s.io)"}
    if kind != "Resource":
        return {"error": "no custom metrics API (custom.metrics.k8s.io) registered"}
    out = []
    for pod in query["pods"]:
        if not pod["node"] or pod["phase"] != "Running":
            continue
        use = container_use({"metadata": {"annotations": pod["annotations"]}})
        amount = {"cpu": f"{use.cpu}n", "memory": str(use.memory)}.get(query["resource"])
        if amount is not None:
            used = dict.fromkeys(pod["containers"], amount)
            out.append({"name": pod["name"], "window": 0, "containers": used})  # of this very moment
    return {"pods": out}


OUTSIDE: Final[Mapping[str, Callable[[Any], Any]]] = {"metrics": measured}
"""The external systems that virtual nodes stand for, by the names controllers ask for; a face may put others in their
place."""


def ask(system: str, request: Any) -> Any:
    """What a system of OUTSIDE answers. Raises `LookupError` for any other."""
    model = OUTSIDE.get(system)
    if model is None:
        raise LookupError(f"nobody answers for the external system {system!r} here")
    return freeze(model(request))
