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

FIRST_RETRY: Final = 0.005
LAST_RETRY: Final = 1000.0
"""Seconds."""
MAX_WAIT: Final = 3600.0
"""Seconds one wait lasts at most: the operating system refuses absurd ones, and nothing is lost by looking again."""


def backoff(failures: int) -> float:
    """Seconds until the next try after that many failures in a row (1, 2, …)."""
    return min(FIRST_RETRY * 2.0 ** min(failures - 1, 40), LAST_RETRY)


class WorkQueue:
    """Any thread may call any method. `clock` gives seconds that never go back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._queue: deque[Key] = deque()
        self._dirty: set[Key] = set()
        self._processing: set[Key] = set()
        self._timers: list[tuple[float, Key]] = []
        self._due: dict[Key, float] = {}
        """Keys that wait for a timer; an entry of `_timers` that differs is void."""
        self._failures: dict[Key, int] = {}
        self._closed = False

    def add(self, key: Key) -> None:
        """Queues a key; one that is queued already is not queued twice."""
        with self._changed:
            self._add(key)

    def _add(self, key: Key) -> None:
        if self._closed or key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._processing:
            self._queue.append(key)
            self._changed.notify()

    def add_after(self, key: Key, seconds: float) -> None:
        """Queues a key later; of several times the earliest counts."""
        with self._changed:
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
        self._changed.notify()

    def retry(self, key: Key) -> int:
        """Queues a key that failed, after its back-off; how often it failed in a row."""
        with self._changed:
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            self._add_after(key, backoff(failures))
            return failures

    def forget(self, key: Key) -> None:
        """The key succeeded: its next failure is the first."""
        with self._changed:
            self._failures.pop(key, None)

    def get(self) -> Key | None:
        """The next key, now in processing; waits for one. None once the queue is closed."""
        with self._changed:
            while not self._closed:
                wait = self._fire()
                if self._queue:
                    key = self._queue.popleft()
                    self._dirty.discard(key)
                    self._processing.add(key)
                    return key
                self._changed.wait(wait)
            return None

    def _fire(self) -> float | None:
        """Queues what is due; seconds until the next timer, or None."""
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
                return min(due - now, MAX_WAIT)
        return None

    def ready(self) -> tuple[Key, ...]:
        """Keys that `get` gives without waiting, in order."""
        with self._changed:
            self._fire()
            return tuple(self._queue)

    def done(self, key: Key) -> None:
        """The processing of a key ended; it is queued again if it became dirty meanwhile."""
        with self._changed:
            self._processing.discard(key)
            if key in self._dirty and not self._closed:
                self._queue.append(key)
                self._changed.notify()

    def close(self) -> None:
        """No more keys: every waiting and later `get` gives None."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def __len__(self) -> int:
        """Keys ready or in processing; those that wait for a timer are not counted."""
        with self._changed:
            return len(self._queue) + len(self._processing)
