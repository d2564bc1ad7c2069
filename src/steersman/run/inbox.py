"""Events on their way from the writer to one reader, which runs in another thread while there is anything for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from steersman.kernel.effect import Event

MAX_EVENTS: Final = 100_000
"""Events one reader may be behind. A reader that hangs must not fill the memory: beyond, it starts from a view again,
as a watch does that fell off the log."""


class Delivery(NamedTuple):
    """What there was: events in order, or (`relist`) the news that some were dropped."""

    events: list[Event]
    relist: bool = False


def _nothing() -> None:
    """Starts nobody."""


class Inbox:
    """One writer, one reader at a time. `start` begins the reader, which takes until it may `rest`; at first there is
    a relist to take. `start` is called under the inbox's lock and must not call back."""

    __slots__ = ("_again", "_events", "_lock", "_max", "_reading", "_relist", "_start", "closed")

    def __init__(self, start: Callable[[], None] = _nothing, max_events: int = MAX_EVENTS) -> None:
        self._lock = threading.Lock()
        self._start = start
        self._events: list[Event] = []
        self._max = max_events
        self._relist = True
        self._reading = self._again = False
        self.closed = False
        """Whether the reader is to stop."""

    def put(self, events: Sequence[Event]) -> None:
        """Adds events, the newest last."""
        with self._lock:
            if len(self._events) + len(events) > self._max:
                self._events.clear()
                self._relist = True
            if not self._relist:
                self._events.extend(events)
            self._wake()

    def wake(self) -> None:
        """Has the reader look once more, whether or not there is anything."""
        with self._lock:
            self._wake()

    def _wake(self) -> None:
        self._again = True
        if not self._reading and not self.closed:
            self._reading = True
            self._start()

    def take(self) -> Delivery:
        """Everything there is."""
        with self._lock:
            out = Delivery(self._events, self._relist)
            self._events = []
            self._relist = self._again = False
            return out

    def rest(self) -> bool:
        """Asked by the reader: whether it may end, since nothing came after its last `take`."""
        with self._lock:
            if self._again and not self.closed:
                return False
            self._reading = False
            return True

    def close(self) -> None:
        """Starts the reader no more, and tells it to stop."""
        with self._lock:
            self.closed = True
            self._start = _nothing  # whoever it belongs to is gone without a garbage collection
