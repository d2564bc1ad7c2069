"""Controllers in threads of the crew, on immutable views, with work queues of client-go's semantics.

Each controller has a feeder, which turns events into keys (its mapping functions are the author's code and may be
slow), and as many workers as it asks for; each is a task of the crew while there is something for it. A reconcile that
fails is told and tried again with back-off; one that hangs is reported with the place where it hangs, and holds up
nobody but itself.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from steersman.kernel.component import Component
from steersman.kernel.effect import GK, MICRO, Event
from steersman.kernel.object import Key
from steersman.kernel.reexec import Reconciler, Result, Suspend
from steersman.kernel.value import Frozen
from steersman.run.components import ComponentRunner
from steersman.run.crew import Crew
from steersman.run.exchange import Driver, Exchange
from steersman.run.hangs import HANG_SECONDS, Hangs
from steersman.run.head import Heads
from steersman.run.inbox import Inbox
from steersman.run.load import HEAD_ONLY
from steersman.run.queue import WorkQueue

log = logging.getLogger("steersman.run")

QUIET_FAILURES: Final = 3
"""Refused requests in a row that are a controller's everyday life (conflicts with a newer version)."""


class Runner(Protocol):
    """A controller or a component."""

    name: str

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def join(self, seconds: float) -> bool: ...


class ControllerRunner:
    """One controller. It works while there is anything for it: most workspaces are small."""

    def __init__(
        self,
        loop: Reconciler,
        heads: Heads,
        drivers: Mapping[str, Driver],
        crew: Crew,
        hang_seconds: float = HANG_SECONDS,
    ) -> None:
        self.name = loop.name
        self._loop = loop
        self._heads = heads
        self._drivers = drivers
        self._crew = crew
        self._hangs = Hangs(self.name, hang_seconds)
        self.queue = WorkQueue(lambda: crew.submit(self, self._work), crew.at, max(1, loop.workers))
        self._inbox = Inbox(lambda: crew.submit(self, self._feed))
        self._memory: Frozen | None = None
        self._stopping = False

    def start(self) -> None:
        """Begins, in the loop's thread."""
        self._heads.listen(self._deliver)
        if any(map(self._loop.listens, self._heads.view().kinds())):
            self._inbox.wake()

    def stop(self) -> None:
        """Takes no more keys; reconciles in flight may end."""
        self._inbox.close()
        self.queue.close()

    def join(self, seconds: float) -> bool:
        """Waits for reconciles in flight; afterwards their next call cuts them off. False: somebody hangs."""
        ended = self._crew.join(self, seconds)
        self._stopping = True
        return ended

    def report(self) -> None:
        """Tells of reconciles that have not ended for long."""
        self._hangs.report()

    # -- events ------------------------------------------------------------------------------------------------

    def _deliver(self, events: Sequence[Event]) -> None:
        heard = [event for event in events if self._loop.listens((event.key.group, event.key.kind))]
        if heard:
            self._inbox.put(heard)

    def _feed(self) -> None:
        while not self._inbox.closed:
            events, relist = self._inbox.take()
            if relist:
                self._list()
            for event in events:
                self._trigger(event)
            if self._inbox.rest():
                return

    def _list(self) -> None:
        try:
            for key in self._loop.initial(self._heads.view()):
                self.queue.add(key)
        except Exception:
            log.exception("controller %s: listing what it is responsible for failed", self.name)

    def _trigger(self, event: Event) -> None:
        """An event whose mapping fails wakes nobody; the text says so."""
        try:
            for key in self._loop.triggers(event, self._heads.view()):
                self.queue.add(key)
        except Exception:
            log.exception("controller %s: mapping %s of %s to keys failed", self.name, event.type, event.key)

    # -- reconciles --------------------------------------------------------------------------------------------

    def _work(self) -> None:
        """Reconciles until there is nothing to do, or until it is others' turn."""
        while (key := self.queue.get()) is not None:
            begun = self._hangs.begin(key)
            try:
                self._reconcile(key)
            except Exception:
                log.exception("controller %s: reconciling %s failed in the server", self.name, key)
                self.queue.retry(key)
            finally:
                self._hangs.end(begun)
                self.queue.done(key)
            if self._crew.pressed:
                self._crew.submit(self, self._work)
                return

    def _reconcile(self, key: Key) -> None:
        memory = self._memory
        exchange = Exchange(self._heads, self.name, self._drivers, memory, lambda: self._stopping)
        try:
            result = self._loop.execute(key, memory, exchange)
        except Suspend:
            self._heads.note(exchange.record(self.name, self._loop.code, key, "crashed"))
            return
        except BaseException as error:  # SystemExit and its like: a controller does not end the server
            result = Result(memory, error=f"{type(error).__name__}: {error}")
        end = "raised" if result.error is not None else "requeue" if _again(result) else "done"
        if exchange.wrote or key.gk not in HEAD_ONLY:
            self._heads.note(exchange.record(self.name, self._loop.code, key, end))
        # else: a look at a heartbeat that led to nothing; it could not be executed again, and there are thousands
        if result.memory is not memory:
            self._memory = result.memory
        self._requeue(key, result)

    def _requeue(self, key: Key, result: Result) -> None:
        if result.error is not None:
            failures = self.queue.retry(key)
            expected = result.api_error and failures <= QUIET_FAILURES
            level = logging.DEBUG if expected else logging.WARNING
            again = "" if failures == 1 else f" ({failures} times in a row)"
            log.log(level, "controller %s: reconciling %s failed%s: %s", self.name, key, again, result.error)
        elif result.requeue:
            self.queue.retry(key)
        else:
            self.queue.forget(key)
        if result.requeue_after is not None:
            self.queue.add_after(key, result.requeue_after / MICRO)
        if result.requeue_at is not None:
            self.queue.add_after(key, (result.requeue_at - self._heads.now()) / MICRO)


def _again(result: Result) -> bool:
    return result.requeue or result.requeue_after is not None or result.requeue_at is not None


class Loops:
    """Every controller and component of one control plane."""

    def __init__(
        self,
        heads: Heads,
        controllers: Sequence[Reconciler],
        components: Sequence[Component] = (),
        drivers: Mapping[str, Driver] | None = None,
        hang_seconds: float = HANG_SECONDS,
        concerns: Sequence[GK] = (),
        crew: Crew | None = None,
    ) -> None:
        """`concerns`: what the components are about, as `ComponentRunner` has it. Without a `crew` they have one of
        their own."""
        self._own = Crew() if crew is None else None
        crew = crew or self._own
        assert crew is not None
        known = drivers or {}
        self.controllers = [ControllerRunner(loop, heads, known, crew, hang_seconds) for loop in controllers]
        self.components = [ComponentRunner(component, heads, crew, concerns, hang_seconds) for component in components]
        self._runners: list[Runner] = [*self.controllers, *self.components]

    def start(self) -> None:
        """Starts them all, in the loop's thread."""
        for runner in self._runners:
            runner.start()

    def stop(self, grace: float) -> list[str]:
        """Ends them within `grace` seconds; the names of those that hang. Not from the loop's thread: reconciles in
        flight need it for their writes."""
        for runner in self._runners:
            runner.stop()
        end = time.monotonic() + grace
        hanging = [runner.name for runner in self._runners if not runner.join(end - time.monotonic())]
        if self._own is not None:
            self._own.close()
        return hanging
