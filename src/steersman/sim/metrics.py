"""What a simulation measures: pods, how long they waited, and how full the nodes were. Fed by events; exact.

Amounts are integers (milli-CPU, bytes, pods) and times microseconds, so sums do not depend on their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from steersman.kernel.effect import Event
from steersman.kernel.object import Key, Object
from steersman.kernel.store import Store
from steersman.sched.resources import CPU, MEMORY, PODS, Resources, allocatable

ALWAYS_SHOWN: Final = (CPU, MEMORY, PODS)
ENDED: Final = ("Succeeded", "Failed")
NOT_TRIED: Final = "not tried yet"


class Usage:
    """How much of one resource is taken over time."""

    __slots__ = ("offered", "offered_time", "peak", "taken", "taken_time")

    def __init__(self) -> None:
        self.offered = self.taken = 0
        self.offered_time = self.taken_time = 0
        self.peak = (0, 0)
        """(taken, offered) when the share was greatest; only what lasted counts."""

    def pass_time(self, span: int) -> None:
        """The amounts stay as they are for `span` microseconds."""
        self.offered_time += self.offered * span
        self.taken_time += self.taken * span

    def settle(self) -> None:
        """What is now counts for the peak."""
        taken, offered = self.peak
        if self.offered and self.taken * max(offered, 1) > taken * self.offered:
            self.peak = (self.taken, self.offered)

    @property
    def mean(self) -> float:
        """The share that was taken, weighted by time."""
        if not self.offered_time:
            return self.taken / self.offered if self.offered else 0.0
        return self.taken_time / self.offered_time

    @property
    def top(self) -> float:
        """The greatest share that was taken for a while."""
        taken, offered = self.peak
        return taken / offered if offered else 0.0


@dataclass(slots=True)
class _Pod:
    created: int
    bound: bool = False
    holds: Mapping[str, int] | None = None
    """What it takes of its node, while it does."""
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Pods that wait for one reason. `example` is the first of them by name."""

    message: str
    pods: int
    example: str


class Metrics:
    """See the module's text. `observe` takes events in order, `pass_to` moves the time on."""

    def __init__(self, start: int) -> None:
        self.start = self.now = start
        self.until: int | None = None
        """Utilisation is not counted beyond this time."""
        self.created = self.scheduled = self.succeeded = self.failed = self.deleted = 0
        self.peak_waiting = 0
        self.waits: list[int] = []
        """Microseconds without a node, one for each pod that was bound, or went without ever being bound."""
        self.usage: dict[str, Usage] = {name: Usage() for name in ALWAYS_SHOWN}
        self._pods: dict[Key, _Pod] = {}
        self._waiting: dict[Key, None] = {}
        self._nodes: dict[str, Mapping[str, int]] = {}

    def pass_to(self, now: int) -> None:
        """Nothing happened until `now`."""
        if now <= self.now:
            return
        span = (now if self.until is None else min(now, self.until)) - self.now
        if span > 0:
            for usage in self.usage.values():
                usage.pass_time(span)
        self.settle()
        self.now = now

    def settle(self) -> None:
        """What is now counts for the peaks."""
        for usage in self.usage.values():
            usage.settle()
        self.peak_waiting = max(self.peak_waiting, len(self._waiting))

    def observe(self, events: Iterable[Event]) -> None:
        """What was just committed."""
        for event in events:
            if event.key.group:
                continue
            if event.key.kind == "Pod":
                self._pod(event)
            elif event.key.kind == "Node":
                self._node(event)

    def waits_until_now(self) -> list[int]:
        """Microseconds that each pod without a node has waited so far."""
        return sorted([self.now - self._pods[key].created for key in self._waiting])

    def pending(self, store: Store) -> list[Group]:
        """The pods without a node, by the scheduler's words, most first."""
        groups: dict[str, list[str]] = {}
        for key in self._waiting:
            pod = store.get(key)
            if pod is not None:
                groups.setdefault(_why_pending(pod), []).append(f"{key.namespace}/{key.name}")
        found = [Group(message, len(names), min(names)) for message, names in groups.items()]
        return sorted(found, key=lambda group: (-group.pods, group.message))

    def _node(self, event: Event) -> None:
        offers = {} if event.new is None else allocatable(event.new.value)
        before = self._nodes.get(event.key.name, {})
        for name in dict.fromkeys((*before, *offers)):
            self._usage(name).offered += offers.get(name, 0) - before.get(name, 0)
        if event.new is None:
            self._nodes.pop(event.key.name, None)
        else:
            self._nodes[event.key.name] = offers

    def _pod(self, event: Event) -> None:
        _, key, old, new = event
        if old is None:
            self.created += 1
            self._pods[key] = _Pod(self.now)
            self._waiting[key] = None
        pod = self._pods[key]
        if new is None:
            self.deleted += not pod.ended
            self._release(pod)
            self._waited(key, pod)
            del self._pods[key]
            return
        if new.node and not pod.bound:
            pod.bound = True
            self.scheduled += 1
            self._waited(key, pod)
            self._take(pod, new)
        if new.status is not (None if old is None else old.status) and not pod.ended:
            phase = (new.status_value or {}).get("phase")
            if phase in ENDED:
                pod.ended = True
                self.succeeded += phase == "Succeeded"
                self.failed += phase == "Failed"
                self._waited(key, pod)
                self._release(pod)

    def _waited(self, key: Key, pod: _Pod) -> None:
        if key in self._waiting:
            del self._waiting[key]
            self.waits.append(self.now - pod.created)

    def _take(self, pod: _Pod, obj: Object) -> None:
        pod.holds = {**dict(Resources.of_pod(obj.value).amounts), PODS: 1}
        for name, amount in pod.holds.items():
            self._usage(name).taken += amount

    def _release(self, pod: _Pod) -> None:
        for name, amount in (pod.holds or {}).items():
            self._usage(name).taken -= amount
        pod.holds = None

    def _usage(self, name: str) -> Usage:
        usage = self.usage.get(name)
        if usage is None:
            usage = self.usage[name] = Usage()
        return usage


def _why_pending(pod: Object) -> str:
    status: Mapping[str, Any] = pod.status_value or {}
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("message"):
            return str(condition["message"])
    return NOT_TRIED


def percentile(sorted_values: list[int], percent: int) -> int:
    """The exact order statistic: the least value that at least `percent` % of all do not exceed (nearest rank)."""
    if not sorted_values:
        raise ValueError("no values")
    rank = -(-percent * len(sorted_values) // 100)
    return sorted_values[max(rank, 1) - 1]
