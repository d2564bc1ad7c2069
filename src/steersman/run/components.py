"""A component (scheduler, virtual nodes) on the wall clock: one thread owns its state.

The thread delivers durable events, lets the component do what is due, makes its requests in one go so that they share
an fsync, and waits for them: their events and refusals reach the component before it is advanced again. A state is a
function of a view; so when the component's code fails, or the store refuses to write, it is built anew after a while.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from typing import Any, Final

from steersman.api.errors import ApiError
from steersman.kernel.component import Component
from steersman.kernel.effect import GK, MICRO, Event, Request
from steersman.run.head import Heads
from steersman.run.inbox import Inbox
from steersman.run.queue import MAX_WAIT, backoff

log = logging.getLogger("steersman.run")

FIRST_PAUSE: Final = 6
"""Where on the back-off scale a rebuild starts: 0.3 s after the first failure, then doubled."""
IDLE_PAUSE: Final = 0.005
"""Seconds of rest for a component that says it has something to do and then does nothing."""


class _StoreFailed(Exception):
    """A request of the component was lost to a failure of the server, not refused on its merits."""


class ComponentRunner:
    """See the module's text."""

    def __init__(self, component: Component, heads: Heads, concerns: Sequence[GK] = ()) -> None:
        """`concerns`: the kinds without any object of which the component has nothing to do, and gets no thread."""
        self.name = component.name
        self._component = component
        self._heads = heads
        self._inbox = Inbox()
        self._thread = threading.Thread(target=self._run, name=component.name, daemon=True)
        self._concerns = concerns
        self._begun = False
        self._since: float | None = None

    def start(self) -> None:
        """Begins, in the loop's thread."""
        self._heads.listen(self._heard)
        if not self._concerns or any(map(self._heads.view().count, self._concerns)):
            self._begin()

    def _begin(self) -> None:
        self._begun = True
        self._thread.start()

    def _heard(self, events: Sequence[Event]) -> None:
        if not self._begun:
            if self._inbox.closed or not any((event.key.group, event.key.kind) in self._concerns for event in events):
                return  # when it begins, it takes a view of all there is
            self._begin()
        self._inbox.put(events)

    def stop(self) -> None:
        """Asks the thread to end after what it is doing."""
        self._inbox.close()

    def join(self, seconds: float) -> bool:
        """Waits for its end; False when it did not come."""
        if not self._begun:
            return True
        self._thread.join(max(0.0, seconds))
        return not self._thread.is_alive()

    def hanging(self, seconds: float) -> list[tuple[str, float, int]]:
        """(what, for how long, thread) if the component's code has not returned for that long."""
        since = self._since
        if since is None or time.monotonic() - since < seconds:
            return []
        return [("", time.monotonic() - since, self._thread.ident or 0)]

    def _run(self) -> None:
        failures = 0
        while not self._inbox.closed:
            started = time.monotonic()
            try:
                self._live()
            except _StoreFailed as error:
                log.warning("%s: %s; it is built anew", self.name, error)
            except Exception:
                log.exception("%s: its code failed; it is built anew", self.name)
            finally:
                self._since = None
            failures = 1 if time.monotonic() - started > 60 else failures + 1
            pause = time.monotonic() + backoff(FIRST_PAUSE + failures)
            while not self._inbox.closed and time.monotonic() < pause:
                self._inbox.take(max(0.001, pause - time.monotonic()))

    def _live(self) -> None:
        """From a view on, until it is stopped, fell behind, or failed."""
        component, inbox = self._component, self._inbox
        inbox.take()
        view = self._heads.view()
        state = self._timed(component.start, view)
        waiting: list[Event] = []
        while not inbox.closed:
            for event in waiting:
                if event.rev > view.rev:
                    state = self._timed(component.on_event, state, event)
            deadline = component.next_deadline(state)
            now = self._heads.now()
            pause: float | None = None
            if deadline is not None and deadline <= now:
                state, requests = self._timed(component.advance, state, now)
                refusals = self._request(requests)
                relist, waiting = self._take(0.0 if requests else IDLE_PAUSE)
                for event in waiting:
                    if event.rev > view.rev:
                        state = self._timed(component.on_event, state, event)
                waiting = []
                for request, refusal in refusals:
                    state = self._timed(component.on_refused, state, request, refusal)
            else:
                if deadline is not None:
                    pause = min((deadline - now) / MICRO, MAX_WAIT)
                relist, waiting = self._take(pause)
            if relist:
                return

    def _take(self, seconds: float | None) -> tuple[bool, list[Event]]:
        delivery = self._inbox.take(seconds)
        return delivery.relist, delivery.events

    def _timed(self, function: Any, *args: Any) -> Any:
        """Calls the component's code, under the eye of the watchdog."""
        self._since = time.monotonic()
        try:
            return function(*args)
        finally:
            self._since = None

    def _request(self, requests: list[Request]) -> list[tuple[Request, ApiError]]:
        """Makes the requests, waits until they are durable, and gives those refused on their merits."""
        refused: list[tuple[Request, ApiError]] = []
        futures = [self._heads.do_from_thread(r._replace(actor=self.name), "component") for r in requests]
        for request, future in zip(requests, futures, strict=True):
            try:
                future.result()
            except ApiError as error:
                if error.code >= 500:
                    raise _StoreFailed(f"{request.verb} of {request.key}: {error.message}") from None
                log.debug("%s: %s of %s refused: %s", self.name, request.verb, request.key, error.message)
                refused.append((request, error))
        return refused
