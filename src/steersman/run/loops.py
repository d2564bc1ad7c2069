"""Controllers in worker threads, on immutable views, with work queues of client-go's semantics.

Each controller has a feeder thread, which turns events into keys (its mapping functions are the author's code and may
be slow), and as many worker threads as it asks for. A reconcile that fails is told and tried again with back-off; one
that hangs is reported with the place where it hangs, and holds up nobody but itself.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from steersman.kernel.component import Component
from steersman.kernel.effect import GK, MICRO, Event
from steersman.kernel.object import Key
from steersman.kernel.reexec import Reconciler, Result, Suspend
from steersman.kernel.value import Frozen
from steersman.run.components import ComponentRunner
from steersman.run.exchange import Driver, Exchange
from steersman.run.head import Heads
from steersman.run.inbox import Inbox
from steersman.run.load import HEAD_ONLY
from steersman.run.queue import WorkQueue

log = logging.getLogger("steersman.run")

HANG_SECONDS: Final = 60.0
"""A reconcile that takes longer is reported: the slowest of Kubernetes' own take some seconds."""
WATCH_SECONDS: Final = 1.0
QUIET_FAILURES: Final = 3
"""Refused requests in a row that are a controller's everyday life (conflicts with a newer version)."""


class Runner(Protocol):
    """A controller or a component with its threads."""

    name: str

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def join(self, seconds: float) -> bool: ...
    def hanging(self, seconds: float) -> list[tuple[str, float, int]]: ...


class ControllerRunner:
    """One controller. Its threads begin when there is anything for it: most workspaces are small."""

    def __init__(self, loop: Reconciler, heads: Heads, drivers: Mapping[str, Driver]) -> None:
        self.name = loop.name
        self.queue = WorkQueue()
        self._loop = loop
        self._heads = heads
        self._drivers = drivers
        self._inbox = Inbox()
        self._memory: Frozen | None = None
        self._flights: dict[int, tuple[Key, float]] = {}
        """Thread → what it reconciles, and since when."""
        self._stopping = False
        feeder = threading.Thread(target=self._feed, name=f"{loop.name} events", daemon=True)
        workers = [
            threading.Thread(target=self._work, name=f"{loop.name} {number + 1}", daemon=True)
            for number in range(max(1, loop.workers))
        ]
        self._threads = [feeder, *workers]
        self._begun = False

    def start(self) -> None:
        """Begins, in the loop's thread."""
        self._heads.listen(self._deliver)
        if any(map(self._loop.listens, self._heads.view().kinds())):
            self._begin()

    def _begin(self) -> None:
        self._begun = True
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Takes no more keys; reconciles in flight may end."""
        self._inbox.close()
        self.queue.close()

    def join(self, seconds: float) -> bool:
        """Waits for reconciles in flight; afterwards their next call cuts them off. False: somebody hangs."""
        end = time.monotonic() + seconds
        for thread in self._threads if self._begun else ():
            thread.join(max(0.0, end - time.monotonic()))
        self._stopping = True
        return not any(thread.is_alive() for thread in self._threads)

    def hanging(self, seconds: float) -> list[tuple[str, float, int]]:
        """(key, for how long, thread) of reconciles that have not ended for that long."""
        now = time.monotonic()
        flights = list(self._flights.items())
        return [(str(key), now - since, thread) for thread, (key, since) in flights if now - since >= seconds]

    # -- events ------------------------------------------------------------------------------------------------

    def _deliver(self, events: Sequence[Event]) -> None:
        heard = [event for event in events if self._loop.listens((event.key.group, event.key.kind))]
        if heard:
            self._inbox.put(heard)
            if not self._begun and not self._inbox.closed:
                self._begin()

    def _feed(self) -> None:
        relist = True
        while not self._inbox.closed:
            if relist:
                self._inbox.take()
                self._list()
            events, relist = self._inbox.take(None)
            for event in events:
                self._trigger(event)

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
        me = threading.get_ident()
        while (key := self.queue.get()) is not None:
            self._flights[me] = (key, time.monotonic())
            try:
                self._reconcile(key)
            except Exception:
                log.exception("controller %s: reconciling %s failed in the server", self.name, key)
                self.queue.retry(key)
            finally:
                del self._flights[me]
                self.queue.done(key)

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
    """Every controller and component of one control plane, and the watchdog over them."""

    def __init__(
        self,
        heads: Heads,
        controllers: Sequence[Reconciler],
        components: Sequence[Component] = (),
        drivers: Mapping[str, Driver] | None = None,
        hang_seconds: float = HANG_SECONDS,
        concerns: Sequence[GK] = (),
    ) -> None:
        """`concerns`: what the components are about, as `ComponentRunner` has it."""
        known = drivers or {}
        self.controllers = [ControllerRunner(loop, heads, known) for loop in controllers]
        self.components = [ComponentRunner(component, heads, concerns) for component in components]
        self._runners: list[Runner] = [*self.controllers, *self.components]
        self._hang_seconds = hang_seconds
        self._stopped = threading.Event()
        self._watchdog = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        """Starts them all, in the loop's thread."""
        for runner in self._runners:
            runner.start()
        self._watchdog.start()

    def stop(self, grace: float) -> list[str]:
        """Ends them within `grace` seconds; the names of those that hang. Not from the loop's thread: reconciles in
        flight need it for their writes."""
        self._stopped.set()
        for runner in self._runners:
            runner.stop()
        end = time.monotonic() + grace
        return [runner.name for runner in self._runners if not runner.join(end - time.monotonic())]

    def _watch(self) -> None:
        """Reports what hangs, once each."""
        told: set[tuple[str, int, int]] = set()
        while not self._stopped.wait(min(WATCH_SECONDS, self._hang_seconds)):
            for runner in self._runners:
                for what, seconds, thread in runner.hanging(self._hang_seconds):
                    begun = round(time.monotonic() - seconds)
                    mark = (runner.name, thread, begun)
                    if not any((runner.name, thread, begun + off) in told for off in (-1, 0, 1)):
                        told.add(mark)
                        on = f" on {what}" if what else ""
                        log.error("%s hangs%s for %.0f s, %s", runner.name, on, seconds, _place(thread))


def _place(thread: int) -> str:
    """Where a thread is, for people."""
    frame = sys._current_frames().get(thread)
    if frame is None:
        return "its thread has ended"
    last = traceback.extract_stack(frame)[-1]
    return f"at {last.filename}:{last.lineno} in {last.name}"
