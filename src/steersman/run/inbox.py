"""Events on their way from the writer to one reader in another thread."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from steersman.kernel.effect import Event

MAX_EVENTS: Final = 100_000
"""Events one reader may be behind. A reader that hangs must not fill the memory: beyond, it starts from a view again,
as a watch does that fell off the log."""


class Delivery(NamedTuple):
    """What there was: events in order, or (`relist`) the news that some were dropped."""

    events: list[Event]
    relist: bool = False


class Inbox:
    """One writer, one reader; each in its thread."""

    def __init__(self, max_events: int = MAX_EVENTS) -> None:
        self._changed = threading.Condition()
        self._events: deque[Event] = deque()
        self._max = max_events
        self._relist = False
        self._closed = False

    def put(self, events: Sequence[Event]) -> None:
        """Adds events, the newest last."""
        with self._changed:
            if len(self._events) + len(events) > self._max:
                self._events.clear()
                self._relist = True
            if not self._relist:
                self._events.extend(events)
            self._changed.notify()

    def take(self, seconds: float | None = 0.0) -> Delivery:
        """Everything there is; waits up to `seconds` (None: for ever) while there is nothing and it is not closed."""
        with self._changed:
            if not self._events and not self._relist and not self._closed and seconds != 0.0:
                self._changed.wait(seconds)
            out = Delivery(list(self._events), self._relist)
            self._events.clear()
            self._relist = False
            return out

    def close(self) -> None:
        """Ends the reader's waiting for good."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    @property
    def closed(self) -> bool:
        """Whether the reader is to stop."""
        return self._closed
