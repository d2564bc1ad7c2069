"""What has not ended for long, told once, with the place where it hangs."""

from __future__ import annotations

import logging
import sys
import threading
import time
import traceback
from typing import Final

log = logging.getLogger("steersman.run")

HANG_SECONDS: Final = 60.0
"""A reconcile that takes longer is reported: the slowest of Kubernetes' own take some seconds."""


class Flight:
    """One piece of work under way."""

    __slots__ = ("since", "thread", "told", "what")

    def __init__(self, what: object) -> None:
        self.what, self.thread, self.since, self.told = what, threading.get_ident(), time.monotonic(), False


class Hangs:
    """The work under way of one controller or component."""

    __slots__ = ("_flights", "_name", "_seconds")

    def __init__(self, name: str, seconds: float = HANG_SECONDS) -> None:
        self._name, self._seconds = name, seconds
        self._flights: dict[int, Flight] = {}

    def begin(self, what: object = "") -> Flight:
        """Something begins, in this thread; its text is for people."""
        flight = Flight(what)
        self._flights[id(flight)] = flight
        return flight

    def end(self, flight: Flight) -> None:
        """It has ended."""
        del self._flights[id(flight)]

    def report(self) -> None:
        """Tells of what has not ended for that many seconds. From any thread."""
        now = time.monotonic()
        for flight in list(self._flights.values()):
            if now - flight.since >= self._seconds and not flight.told:
                flight.told = True
                on = f" on {flight.what}" if flight.what else ""
                place = _place(flight.thread)
                log.error("%s hangs%s for %.0f s, %s", self._name, on, now - flight.since, place)


def _place(thread: int) -> str:
    """Where a thread is, for people."""
    frame = sys._current_frames().get(thread)
    if frame is None:
        return "its thread has ended"
    last = traceback.extract_stack(frame)[-1]
    return f"at {last.filename}:{last.lineno} in {last.name}"
