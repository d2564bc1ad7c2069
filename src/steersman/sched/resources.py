"""What a pod asks of a node, and what a node offers, as exact integers.

Units: CPU in milli-CPU; memory and ephemeral storage in bytes; every other resource in whole units.
Facts: k8s.io/component-helpers `resource/helpers.go` (PodRequests, sidecars of KEP-753, pod-level resources of
KEP-2837, in-place resize of KEP-1287) and kube-scheduler's `framework/types.go` (PodInfo.CalculateResource).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from steersman.api.pod_resources import add, in_sum, raise_to
from steersman.api.quantity import MILLI_IN_NANO, NANO, parse

CPU, MEMORY, STORAGE, PODS = "cpu", "memory", "ephemeral-storage", "pods"

DEFAULT_MILLI_CPU = 100
"""What scoring assumes of a container that asks for no CPU (kube-scheduler `util/pod_resources.go`)."""
DEFAULT_MEMORY = 200 * 1024 * 1024
"""What scoring assumes of a container that asks for no memory, in bytes (same source)."""

MAX_AMOUNT = 2**53
"""Every amount is cut to this (8 PiB of memory): integers up to here are exact as 64-bit floats, which balanced
allocation needs, times 100 they fit in 64 bits, and a thousand of them can be summed on a node."""

_DEFAULTS = {CPU: DEFAULT_MILLI_CPU * MILLI_IN_NANO, MEMORY: DEFAULT_MEMORY * NANO}

Amounts = dict[str, int]
"""Resource name to amount in 10^-9 of its unit, so that sums are exact before the one rounding at the end."""


@dataclass(frozen=True, slots=True)
class Resources:
    """The effective request of one pod. A pod also takes one of the node's `pods`.

    amounts: (resource, amount) sorted by resource, zeros left out.
    counted: (cpu, memory) a node books for scoring, with defaults for containers that ask for nothing.
    scored: (cpu, memory) the pod itself brings to scoring. It differs from `counted` only for a pod-level request that
    names one of CPU and memory: the sources treat that case differently in the two places.
    """

    amounts: tuple[tuple[str, int], ...]
    counted: tuple[int, int]
    scored: tuple[int, int]

    @classmethod
    def of_pod(cls, pod: Mapping[str, Any]) -> "Resources":
        """Read spec (and status of a pod under in-place resize). Raises ValueError for an unreadable quantity."""
        real = _pod_requests(pod, {})
        missing = _DEFAULTS
        if _pod_level(pod):
            missing = {name: amount for name, amount in _DEFAULTS.items() if name not in real}
        counted = _pod_requests(pod, missing)
        scored = counted if missing is _DEFAULTS else _pod_requests(pod, _DEFAULTS)
        return cls(
            amounts=tuple((name, amount) for name, amount in sorted(_rounded(real).items()) if amount),
            counted=_cpu_memory(counted),
            scored=_cpu_memory(scored),
        )

    def amount(self, resource: str) -> int:
        return dict(self.amounts).get(resource, 0)


def allocatable(node: Mapping[str, Any]) -> dict[str, int]:
    """status.allocatable of a node by resource, `pods` included. Raises ValueError for an unreadable quantity."""
    return _rounded(_amounts((node.get("status") or {}).get("allocatable"), "status.allocatable"))


def is_tracked(resource: str) -> bool:
    """Whether the scheduler books this resource: the three native ones, extended, huge pages, attachable volumes."""
    return (
        resource in (CPU, MEMORY, STORAGE, PODS)
        or "/" in resource
        or resource.startswith(("hugepages-", "attachable-volumes-"))
    )


def _pod_requests(pod: Mapping[str, Any], missing: Amounts) -> Amounts:
    """Containers (the greatest of spec, allocated, actuated), then pod-level resources, then overhead."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    statuses = _container_statuses(status)
    total = in_sum(spec, lambda container: missing | _requests(container.get("resources"), _where(container)))
    if statuses:
        infeasible = resize_infeasible(status)
        if infeasible:
            total = {}
        raise_to(total, in_sum(spec, lambda container: missing | _allocated(container, statuses, infeasible)))
        raise_to(total, in_sum(spec, lambda container: missing | _actuated(container, statuses, infeasible)))
    if level := _pod_level(pod):
        total.update(level)
    add(total, _amounts(spec.get("overhead"), "spec.overhead"))
    return total


def _requests(resources: Mapping[str, Any] | None, where: str) -> Amounts:
    return _amounts((resources or {}).get("requests"), f"{where}.resources.requests")


def _allocated(container: Mapping[str, Any], statuses: Mapping[str, Mapping[str, Any]], infeasible: bool) -> Amounts:
    status = statuses.get(container.get("name", ""), {})
    if (allocated := status.get("allocatedResources")) is not None:
        return _amounts(allocated, f"{_where(container)}.allocatedResources")
    return {} if infeasible else _requests(container.get("resources"), _where(container))


def _actuated(container: Mapping[str, Any], statuses: Mapping[str, Mapping[str, Any]], infeasible: bool) -> Amounts:
    resources = statuses.get(container.get("name", ""), {}).get("resources") or {}
    if resources.get("requests") is not None:
        return _requests(resources, _where(container))
    return _allocated(container, statuses, infeasible)


def _container_statuses(status: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Container statuses that say something about resources, by container name."""
    return {
        each.get("name", ""): each
        for field in ("initContainerStatuses", "containerStatuses")
        for each in status.get(field) or ()
        if "allocatedResources" in each or "resources" in each
    }


def resize_infeasible(status: Mapping[str, Any]) -> bool:
    """Whether the kubelet refused this pod's resize, so that what the spec asks for does not count."""
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodResizePending":
            return bool(condition.get("reason") == "Infeasible")
    return False


def _pod_level(pod: Mapping[str, Any]) -> Amounts:
    """Pod-level requests of the resources that may be set there; empty when there are none."""
    requests = _requests((pod.get("spec") or {}).get("resources"), "spec")
    return {name: amount for name, amount in requests.items() if name in (CPU, MEMORY) or name.startswith("hugepages-")}


def _amounts(quantities: Mapping[str, Any] | None, where: str) -> Amounts:
    amounts: Amounts = {}
    for name, text in (quantities or {}).items():
        try:
            amounts[name] = parse(text).nano
        except ValueError as error:
            raise ValueError(f"{where}[{name}]: {error}") from None
    return amounts


def _where(container: Mapping[str, Any]) -> str:
    return f"container {container.get('name', '?')}"


def _rounded(amounts: Amounts) -> dict[str, int]:
    """To milli-CPU and whole units, rounded up as Quantity.MilliValue() and Value() do."""
    return {
        name: _cut(-(-amount // (MILLI_IN_NANO if name == CPU else NANO)))
        for name, amount in amounts.items()
        if is_tracked(name)
    }


def _cut(amount: int) -> int:
    return max(0, min(amount, MAX_AMOUNT))


def _cpu_memory(amounts: Amounts) -> tuple[int, int]:
    rounded = _rounded(amounts)
    return rounded.get(CPU, 0), rounded.get(MEMORY, 0)


HostPort = tuple[str, str, int]
"""(address, protocol, port) that a pod takes on its node; the address 0.0.0.0 stands for all."""

ANY_ADDRESS = "0.0.0.0"


def host_ports(pod: Mapping[str, Any]) -> tuple[HostPort, ...]:
    """Host ports of containers and sidecars, sorted (kube-scheduler `util/utils.go` GetHostPorts)."""
    spec = pod.get("spec") or {}
    sidecars = (c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always")
    ports = {
        (port.get("hostIP") or ANY_ADDRESS, port.get("protocol") or "TCP", int(port["hostPort"]))
        for container in chain(spec.get("containers") or (), sidecars)
        for port in container.get("ports") or ()
        if port.get("hostPort")
    }
    return tuple(sorted(ports))


def ports_conflict(one: HostPort, other: HostPort) -> bool:
    """Same protocol and port, and the same address or one of them all addresses (framework/types.go HostPortInfo)."""
    return one[1:] == other[1:] and (one[0] == other[0] or ANY_ADDRESS in (one[0], other[0]))
