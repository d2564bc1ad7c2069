"""A component (scheduler, virtual nodes) on the wall clock: one task of the crew at a time owns its state.

It delivers durable events, lets the component do what is due, makes its requests in one go so that they share an
fsync, and waits for them: their events and refusals reach the component before it is advanced again. It ends when
nothing is due; an event or a timer begins the next. A state is a function of a view; so when the component's code
fails, or the store refuses to write, it is built anew after a while.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any, Final

from steersman.api.errors import ApiError
from steersman.kernel.component import Component
from steersman.kernel.effect import GK, MICRO, Event, Request
from steersman.run.crew import Crew, Timer
from steersman.run.hangs import HANG_SECONDS, Hangs
from steersman.run.head import Heads
from steersman.run.inbox import Inbox
from steersman.run.queue import backoff

log = logging.getLogger("steersman.run")

FIRST_PAUSE: Final = 6
"""Where on the back-off scale a rebuild starts: 0.3 s after the first failure, then doubled."""
IDLE_PAUSE: Final = 0.005
"""Seconds of rest for a component that says it has something to do and then does nothing."""


class _StoreFailed(Exception):
    """A request of the component was lost to a failure of the server, not refused on its merits."""


class ComponentRunner:
    """See the module's text."""

    def __init__(
        self,
        component: Component,
        heads: Heads,
        crew: Crew,
        concerns: Sequence[GK] = (),
        hang_seconds: float = HANG_SECONDS,
    ) -> None:
        """`concerns`: the kinds without any object of which the component has nothing to do, and is not begun."""
        self.name = component.name
        self._component = component
        self._heads = heads
        self._crew = crew
        self._concerns = concerns
        self._hangs = Hangs(self.name, hang_seconds)
        self._inbox = Inbox(lambda: crew.submit(self, self._run))
        self._begun = False
        self._timer: Timer | None = None
        self._seen = 0
        """The revision of the view that the state was made from."""
        self._state: Any = None
        self._failures = 0
        self._started = self._ready = 0.0
        """When the state was made, and when it may be made again."""

    def start(self) -> None:
        """Begins, in the loop's thread."""
        self._heads.listen(self._heard)
        if not self._concerns or any(map(self._heads.view().count, self._concerns)):
            self._begun = True
            self._inbox.wake()

    def _heard(self, events: Sequence[Event]) -> None:
        if not self._begun:
            if not any((event.key.group, event.key.kind) in self._concerns for event in events):
                return  # when it begins, it takes a view of all there is
            self._begun = True
        self._inbox.put(events)

    def stop(self) -> None:
        """Asks it to end after what it is doing."""
        self._inbox.close()

    def join(self, seconds: float) -> bool:
        """Waits for its end; False when it did not come."""
        ended = self._crew.join(self, seconds)
        if self._timer is not None:
            self._timer.cancel()
        return ended

    def report(self) -> None:
        """Tells if the component's code has not returned for long."""
        self._hangs.report()

    def _run(self) -> None:
        """Until nothing is to be done at once. Whatever comes after `take` begins it again."""
        while not self._inbox.closed:
            try:
                pause = self._turn()
            except _StoreFailed as error:
                log.warning("%s: %s; it is built anew", self.name, error)
                pause = self._failed()
            except Exception:
                log.exception("%s: its code failed; it is built anew", self.name)
                pause = self._failed()
            if pause == 0:
                if not self._crew.pressed:
                    continue
                self._crew.submit(self, self._run)  # after others
                return
            if self._timer is not None:
                self._timer.cancel()
            self._timer = None if pause is None else self._crew.at(pause, self._inbox.wake)
            if self._inbox.rest():
                return

    def _failed(self) -> float:
        """Gives the state up; seconds until it is built anew, more after each failure."""
        now = time.monotonic()
        self._failures = 1 if now - self._started > 60 else self._failures + 1
        pause = backoff(FIRST_PAUSE + self._failures)
        self._state, self._ready = None, now + pause
        return pause

    def _turn(self) -> float | None:
        """Takes what has come and does what is due; seconds until it wants to be called again, 0 at once, None when
        something comes."""
        delivery = self._inbox.take()
        if delivery.relist or self._state is None:
            early = self._ready - time.monotonic()
            if early > 0:
                self._state = None
                return early
            view = self._heads.view()
            self._seen, self._started = view.rev, time.monotonic()
            self._state = self._timed(self._component.start, view)
        self._tell(delivery.events)
        deadline = self._component.next_deadline(self._state)
        now = self._heads.now()
        if deadline is None:
            return None
        if deadline > now:
            return (deadline - now) / MICRO
        return self._advance(now)

    def _tell(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.rev > self._seen:
                self._state = self._timed(self._component.on_event, self._state, event)

    def _advance(self, now: int) -> float:
        self._state, requests = self._timed(self._component.advance, self._state, now)
        refusals = self._request(requests)
        delivery = self._inbox.take()
        if delivery.relist:
            self._state = None
            return 0.0
        self._tell(delivery.events)
        for request, refusal in refusals:
            self._state = self._timed(self._component.on_refused, self._state, request, refusal)
        return 0.0 if requests else IDLE_PAUSE

    def _timed(self, function: Any, *args: Any) -> Any:
        """Calls the component's code, under the eye of the watchdog."""
        begun = self._hangs.begin()
        try:
            return function(*args)
        finally:
            self._hangs.end(begun)

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
