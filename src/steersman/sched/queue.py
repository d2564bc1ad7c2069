"""The scheduling queue: who is tried next, and when a pod that found no node is tried again.

Three places, as in kube-scheduler (`backend/queue`): *active* pods are tried in the order (priority descending, queue
time, key); *waiting* pods found no node and wait for an event that may help them; *backing off* pods had such an event
but were tried too recently. Times are integer microseconds given by the caller: there is no clock here.

Entries are immutable, and `copy` is a shallow copy, so a queue can be kept with a World. Left out on purpose: the flush
of waiting pods after five minutes, a safety net for events that were missed, since here every event is delivered.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from heapq import heappop, heappush

from steersman.sched.nodes import PodKey

INITIAL_BACKOFF_US = 1_000_000
"""podInitialBackoffSeconds of kube-scheduler's default configuration: 1."""
MAX_BACKOFF_US = 10_000_000
"""podMaxBackoffSeconds of kube-scheduler's default configuration: 10."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One pod in the queue.

    time: when it was created, or last tried, in microseconds: what it is ordered by within its priority.
    attempts: how often it found no node.
    ready: the end of its back-off, in microseconds.
    plugins: the filters that rejected some node, sorted; empty if none did (there was no node at all).
    """

    key: PodKey
    priority: int
    time: int
    attempts: int = 0
    ready: int = 0
    plugins: tuple[str, ...] = ()

    @property
    def order(self) -> tuple[int, int, PodKey]:
        return -self.priority, self.time, self.key


class Queue:
    """All pods without a node that this scheduler is to place."""

    __slots__ = ("_active", "_active_heap", "_backing", "_backing_heap", "_waiting")

    def __init__(self) -> None:
        self._active: dict[PodKey, Entry] = {}
        self._backing: dict[PodKey, Entry] = {}
        self._waiting: dict[PodKey, Entry] = {}
        # The heaps may hold what has left its dict; such items are dropped when they come up.
        self._active_heap: list[tuple[int, int, PodKey]] = []
        self._backing_heap: list[tuple[int, PodKey]] = []

    def __len__(self) -> int:
        return len(self._active) + len(self._backing) + len(self._waiting)

    def __contains__(self, key: PodKey) -> bool:
        return key in self._active or key in self._backing or key in self._waiting

    def add(self, key: PodKey, priority: int, time: int) -> None:
        """A new pod: active at once. `time` in microseconds orders it within its priority."""
        self.remove(key)
        self._activate(Entry(key, priority, time))

    def remove(self, key: PodKey) -> None:
        for place in (self._active, self._backing, self._waiting):
            place.pop(key, None)

    def pop(self, now: int) -> Entry | None:
        """Take out the next pod to try at time `now`; None if none is ready."""
        while self._backing_heap and self._backing_heap[0][0] <= now:
            ready, key = heappop(self._backing_heap)
            entry = self._backing.get(key)
            if entry is not None and entry.ready == ready:
                del self._backing[key]
                self._activate(entry)
        while self._active_heap:
            order = heappop(self._active_heap)
            entry = self._active.get(order[2])
            if entry is not None and entry.order == order:
                return self._active.pop(entry.key)
        return None

    def fail(self, entry: Entry, now: int, plugins: tuple[str, ...]) -> None:
        """Put back a popped pod for which no node was found at `now`: it waits for an event."""
        self._waiting[entry.key] = _failed(entry, now, plugins)

    def retry(self, entry: Entry, now: int) -> None:
        """Put back a popped pod whose placing failed for another reason (its binding): tried again after a back-off."""
        self._back_off(_failed(entry, now, ()))

    def move(self, helps: Callable[[Entry], bool]) -> None:
        """An event: the waiting pods it may help are tried again as soon as their back-off is over."""
        for key in [key for key, entry in self._waiting.items() if helps(entry)]:
            self._back_off(self._waiting.pop(key))

    def reconsider(self, key: PodKey) -> None:
        """The pod itself changed: if it waits, it is tried again as soon as its back-off is over."""
        if (entry := self._waiting.pop(key, None)) is not None:
            self._back_off(entry)

    def next_deadline(self) -> int | None:
        """When `pop` will give something: 0 for at once, None for not before another event; else microseconds."""
        if self._active:
            return 0
        while self._backing_heap:
            ready, key = self._backing_heap[0]
            entry = self._backing.get(key)
            if entry is not None and entry.ready == ready:
                return ready
            heappop(self._backing_heap)
        return None

    def state(self) -> tuple[tuple[Entry, ...], ...]:
        """(active, backing off, waiting), each in the order of the queue: equal for equal queues."""
        return tuple(
            tuple(sorted(place.values(), key=lambda entry: entry.order))
            for place in (self._active, self._backing, self._waiting)
        )

    def copy(self) -> "Queue":
        other = Queue()
        for name in Queue.__slots__:
            setattr(other, name, getattr(self, name).copy())
        return other

    def _activate(self, entry: Entry) -> None:
        self._active[entry.key] = entry
        heappush(self._active_heap, entry.order)

    def _back_off(self, entry: Entry) -> None:
        self._backing[entry.key] = entry
        heappush(self._backing_heap, (entry.ready, entry.key))


def _failed(entry: Entry, now: int, plugins: tuple[str, ...]) -> Entry:
    # Doubling stops mattering at the limit; the exponent is bounded so that many attempts make no huge integer.
    backoff = min(INITIAL_BACKOFF_US << min(entry.attempts, 10), MAX_BACKOFF_US)
    return replace(entry, time=now, attempts=entry.attempts + 1, ready=now + backoff, plugins=plugins)
