"""A controller's work queue, with the semantics of client-go's: every key once, never twice at a time, retried later.

A key that is added while it is processed is *dirty*: it is queued again when the processing is done. A key that failed
comes back after 5 ms, doubled with each further failure up to 1,000 s (the defaults of client-go's
`DefaultControllerRateLimiter`, util/workqueue); a success forgets its failures.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from steersman.kernel.object import Key
from steersman.run.crew import Timer

FIRST_RETRY: Final = 0.005
LAST_RETRY: Final = 1000.0
"""Seconds."""


def backoff(failures: int) -> float:
    """Seconds until the next try after that many failures in a row (1, 2, …)."""
    return min(FIRST_RETRY * 2.0 ** min(failures - 1, 40), LAST_RETRY)


def _nothing() -> None:
    """Starts nobody."""


def _never(seconds: float, task: Callable[[], None]) -> None:
    """Calls nobody."""


class WorkQueue:
    """Any thread may call any method. `clock` gives seconds that never go back.

    `start` is called for each further worker that has something to do, `workers` at most; a worker gets keys until it
    is given None. `at` calls a function after so many seconds. Both are called under the queue's lock, and must not
    call back.
    """

    __slots__ = (
        *("_at", "_at_work", "_clock", "_closed", "_dirty", "_due", "_failures", "_lock", "_processing", "_queue"),
        *("_start", "_timer", "_timers", "_workers"),
    )

    def __init__(
        self,
        start: Callable[[], None] = _nothing,
        at: Callable[[float, Callable[[], None]], Timer | None] = _never,
        workers: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._start, self._at, self._workers, self._clock = start, at, workers, clock
        self._lock = threading.Lock()
        self._queue: deque[Key] = deque()
        self._dirty: set[Key] = set()
        self._processing: set[Key] = set()
        self._timers: list[tuple[float, Key]] = []
        self._due: dict[Key, float] = {}
        """Keys that wait for a timer; an entry of `_timers` that differs is void."""
        self._timer: tuple[float, Timer | None] | None = None
        """When `at` calls next, and what cancels it."""
        self._failures: dict[Key, int] = {}
        self._at_work = 0
        self._closed = False

    def add(self, key: Key) -> None:
        """Queues a key; one that is queued already is not queued twice."""
        with self._lock:
            self._add(key)

    def _add(self, key: Key) -> None:
        if self._closed or key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._processing:
            self._push(key)

    def _push(self, key: Key) -> None:
        self._queue.append(key)
        if self._at_work < self._workers:
            self._at_work += 1
            self._start()

    def add_after(self, key: Key, seconds: float) -> None:
        """Queues a key later; of several times the earliest counts."""
        with self._lock:
            self._add_after(key, seconds)

    def _add_after(self, key: Key, seconds: float) -> None:
        if self._closed:
            return
        if seconds <= 0:
            self._add(key)
            return
        due = self._clock() + seconds
        known = self._due.get(key)
        if known is not None and known <= due:
            return
        self._due[key] = due
        heapq.heappush(self._timers, (due, key))
        self._set_timer()

    def _set_timer(self) -> None:
        due = self._timers[0][0]
        if self._timer is not None:
            if self._timer[0] <= due:
                return
            if self._timer[1] is not None:
                self._timer[1].cancel()
        self._timer = due, self._at(due - self._clock(), self.fire)

    def fire(self) -> None:
        """Queues what is due."""
        with self._lock:
            self._timer = None
            if self._closed:
                return
            now = self._clock()
            while self._timers:
                due, key = self._timers[0]
                if self._due.get(key) != due:
                    heapq.heappop(self._timers)
                elif due <= now:
                    heapq.heappop(self._timers)
                    del self._due[key]
                    self._add(key)
                else:
                    self._set_timer()
                    return

    def retry(self, key: Key) -> int:
        """Queues a key that failed, after its back-off; how often it failed in a row."""
        with self._lock:
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            self._add_after(key, backoff(failures))
            return failures

    def forget(self, key: Key) -> None:
        """The key succeeded: its next failure is the first."""
        with self._lock:
            self._failures.pop(key, None)

    def get(self) -> Key | None:
        """The next key, now in processing. None: there is none, and the worker that asked is at work no more."""
        with self._lock:
            if self._closed or not self._queue:
                self._at_work -= 1
                return None
            key = self._queue.popleft()
            self._dirty.discard(key)
            self._processing.add(key)
            return key

    def done(self, key: Key) -> None:
        """The processing of a key ended; it is queued again if it became dirty meanwhile."""
        with self._lock:
            self._processing.discard(key)
            if key in self._dirty and not self._closed:
                self._push(key)

    def close(self) -> None:
        """No more keys: every later `get` gives None, and no timer comes."""
        with self._lock:
            self._closed = True
            if self._timer is not None and self._timer[1] is not None:
                self._timer[1].cancel()
            self._timer = None
            self._start, self._at = _nothing, _never  # whoever they belong to is gone without a garbage collection

    def __len__(self) -> int:
        """Keys ready or in processing; those that wait for a timer are not counted."""
        with self._lock:
            return len(self._queue) + len(self._processing)
