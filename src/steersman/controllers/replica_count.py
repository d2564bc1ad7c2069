"""How many replicas a metric asks for: the arithmetic of the autoscaler. Pure but for comparisons of times.

Values are in thousandths of the metric's unit. Source of the facts: Kubernetes 1.36, pkg/controller/podautoscaler
(replica_calculator.go, metrics/utilization.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any, Final, NamedTuple

from steersman.api import quantity
from steersman.api.client import Client
from steersman.api.eviction import is_ready
from steersman.api.times import MICRO, parse_time
from steersman.controllers import owned, pods
from steersman.controllers.conditions import find
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
WARM_UP: Final = 300
"""Seconds after its start in which a pod's CPU usage counts only once it is ready for a whole measurement."""
READY_DELAY: Final = 30
"""Seconds after its start in which a pod that became unready counts as never having been ready."""
TOLERANCE: Final = 0.1
MAX_REPLICAS: Final = 2**31 - 1


class NoCount(Exception):
    """No number of replicas can be told; the text says why. `outer`: the same, as it is told further out."""

    def __init__(self, text: str, outer: str = "") -> None:
        super().__init__(text)
        self.outer = outer or text


class Tolerance(NamedTuple):
    """How far the usage may be off its target, as a share of it, before anything happens."""

    down: float = TOLERANCE
    up: float = TOLERANCE

    def covers(self, ratio: float) -> bool:
        """Whether usage / target is near enough to 1."""
        return 1.0 - self.down <= ratio <= 1.0 + self.up


class Measured(NamedTuple):
    """What is known of one pod: its usage, and when it was measured, over how long (seconds)."""

    value: int
    time: str = ""
    """RFC 3339; "": now."""
    window: float = 30.0


class Groups(NamedTuple):
    """Pods by what is known about them."""

    ready: int
    unready: list[str]
    missing: list[str]
    ignored: list[str]


def grouped(c: Client, found: list[Any], metrics: Mapping[str, Measured], resource: str) -> Groups:
    """Sorts pods; what is not ready yet says nothing about the load."""
    groups = Groups(0, [], [], [])
    ready = 0
    for pod in found:
        name = pod["metadata"]["name"]
        if owned.is_terminating(pod) or pods.phase(pod) == "Failed":
            groups.ignored.append(name)
        elif pods.phase(pod) == "Pending":
            groups.unready.append(name)
        elif name not in metrics:
            groups.missing.append(name)
        elif resource == "cpu" and _warms_up(c, pod, metrics[name]):
            groups.unready.append(name)
        else:
            ready += 1
    return groups._replace(ready=ready)


def _warms_up(c: Client, pod: Json, metric: Measured) -> bool:
    status = pod.get("status") or EMPTY
    condition, start = find(status.get("conditions") or (), "Ready"), status.get("startTime")
    if condition is None or not start:
        return True
    since = condition.get("lastTransitionTime") or pods.LONG_AGO
    unready = bool(condition["status"] == "False")
    if not c.elapsed(start, WARM_UP):
        if unready or since == pods.LONG_AGO:
            return unready
        if metric.time:
            return parse_time(metric.time) < parse_time(since) + round(metric.window * MICRO)
        return not c.elapsed(since, metric.window)
    return unready and parse_time(start) + READY_DELAY * MICRO > parse_time(since)


def from_usage(
    c: Client, found: list[Any], metrics: dict[str, Measured], current: int, target: int, tolerance: Tolerance,
    resource: str = "",
) -> tuple[int, int]:  # fmt: skip
    """(replicas, average usage) where the average usage of pods has a target. Raises `NoCount`."""
    groups, values = _counted(c, found, metrics, resource)
    usage = _quotient(sum(values.values()), len(values))

    def ratio(of: Mapping[str, int]) -> float:
        return _quotient(sum(of.values()), len(of)) / target

    missing = dict.fromkeys(groups.missing, target)
    return _decided(current, ratio, values, groups, missing, tolerance), usage


def from_utilisation(
    c: Client, found: list[Any], metrics: dict[str, Measured], current: int, target: int, tolerance: Tolerance,
    resource: str, container: str,
) -> tuple[int, int, int]:  # fmt: skip
    """(replicas, utilisation in percent, average usage) where usage has a target in percent of the requests. Raises
    `NoCount`."""
    groups, values = _counted(c, found, metrics, resource)
    requests = {pod["metadata"]["name"]: requested(pod, container, resource) for pod in found}

    def percent(of: Mapping[str, int]) -> int:
        known = [name for name in of if name in requests]
        total = sum(requests[name] for name in known)
        if not total:
            raise NoCount("no metrics returned matched known pods")
        return _quotient(sum(of[name] for name in known) * 100, total)

    full = max(100, target)
    missing = {name: requests[name] * full // 100 for name in groups.missing}
    now = percent(values)
    average = _quotient(sum(values.values()), len(values))
    replicas = _decided(current, lambda of: percent(of) / target, values, groups, missing, tolerance)
    return replicas, now, average


def _counted(c: Client, found: list[Any], metrics: dict[str, Measured], resource: str) -> tuple[Groups, dict[str, int]]:
    if not found:
        raise NoCount("no pods returned by selector while calculating replica count")
    groups = grouped(c, found, metrics, resource)
    out = {*groups.ignored, *groups.unready}
    values = {name: metric.value for name, metric in metrics.items() if name not in out}
    if not values:
        raise NoCount("did not receive metrics for targeted pods (pods might be unready)")
    return groups, values


def _decided(
    current: int, ratio: Any, values: dict[str, int], groups: Groups, missing: Mapping[str, int], tolerance: Tolerance
) -> int:
    """The count; pods of which nothing is known count so that they never make a change larger."""
    first = ratio(values)
    rising = bool(groups.unready) and first > 1.0
    if not rising and not groups.missing:
        return current if tolerance.covers(first) else ceil(first * groups.ready)
    guessed = dict(values)
    if first < 1.0:
        guessed.update(missing)
    elif first > 1.0:
        guessed.update(dict.fromkeys(groups.missing, 0))
    if rising:
        guessed.update(dict.fromkeys(groups.unready, 0))
    second = ratio(guessed)
    if tolerance.covers(second) or (first < 1.0 < second) or (first > 1.0 > second):
        return current
    wanted = ceil(second * len(guessed))
    turns = (second < 1.0 and wanted > current) or (second > 1.0 and wanted < current)
    return current if turns else wanted


def from_value(found: list[Any], current: int, usage: int, target: int, tolerance: Tolerance) -> int:
    """The count where one value has a target that all pods share. Raises `NoCount`."""
    ratio = usage / target
    if current == 0:
        return ceil(ratio)
    if tolerance.covers(ratio):
        return current
    if not found:
        why = "no pods returned by selector while calculating replica count"
        raise NoCount(f"unable to calculate ready pods: {why}")
    ready = sum(pods.phase(pod) == "Running" and is_ready(pod) for pod in found)
    return min(MAX_REPLICAS, ceil(ratio * ready))


def from_share(replicas: int, usage: int, target: int, tolerance: Tolerance) -> tuple[int, int]:
    """(replicas, usage for each) where one value has a target for each pod."""
    ratio = usage / (target * replicas) if replicas else float("inf")
    wanted = replicas if tolerance.covers(ratio) else min(MAX_REPLICAS, ceil(usage / target))
    return wanted, ceil(usage / replicas) if replicas else usage


def requested(pod: Json, container: str, resource: str) -> int:
    """What a pod, or one container of it, asks for, in thousandths. Raises `NoCount`."""
    spec, name = pod["spec"], pod["metadata"]["name"]
    whole = (spec.get("resources") or EMPTY).get("requests") or EMPTY
    if whole and not container:
        if resource not in whole:
            raise NoCount(f"missing pod-level request for {resource} in Pod {name}")
        return quantity.milli(whole[resource])
    sidecars = [each for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always"]
    total = 0
    for each in (*(spec.get("containers") or ()), *sidecars):
        if container not in ("", each["name"]):
            continue
        asked = ((each.get("resources") or EMPTY).get("requests") or EMPTY).get(resource)
        if asked is None:
            raise NoCount(f"missing request for {resource} in container {each['name']} of Pod {name}")
        total += quantity.milli(asked)
        if container:
            return total
    if container:
        raise NoCount(f"container {container} not found in Pod {name}")
    return total


def _quotient(amount: int, by: int) -> int:
    """Whole, towards zero, as Go divides."""
    return abs(amount) // by * (1 if amount >= 0 else -1)
