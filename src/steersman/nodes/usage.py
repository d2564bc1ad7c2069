"""What pods on virtual nodes are said to use: KWOK's convention, since nothing runs on such a node.

A container uses what the pod's annotations `kwok.x-k8s.io/usage-cpu` and `kwok.x-k8s.io/usage-memory` say, and else one
millicore and one mebibyte, as in KWOK's default ClusterResourceUsage ("usage-from-annotation"). A node uses the sum of
its pods.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from steersman.api import quantity
from steersman.api.quantity import QuantityError
from steersman.kernel.value import EMPTY

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


def _nano(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return max(0, quantity.parse(text).nano)
    except QuantityError:
        return None
