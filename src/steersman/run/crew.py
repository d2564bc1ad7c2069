"""Threads that the controllers and components of all workspaces of a process share.

A thousand small workspaces have forty controllers each and nearly nothing to do, so nobody owns a thread. Who has work
submits a task, and a thread takes it; who waits for a time leaves a timer. `THREADS` tasks run at a time. One that has
run for `SLOW_SECONDS` (it waits for an external system, say, or hangs) does not count any more, so that it holds up
nobody but itself, until `MOST_THREADS` do so.

One more thread, the keeper, fires timers, makes room for what waits behind slow tasks, and lets what hangs be told.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

log = logging.getLogger("steersman.run")

THREADS: Final = 16
"""Most tasks wait for their writes to become durable: that many share an fsync, and not more want the interpreter."""
MOST_THREADS: Final = 1_000
"""With those of slow tasks. Each costs some 50 KB."""
SLOW_SECONDS: Final = 0.25
IDLE_SECONDS: Final = 10.0
"""A thread without a task ends after that long."""
LOOK_SECONDS: Final = 1.0
"""How often the keeper looks for what hangs."""
Task = Callable[[], None]


class Worker(Protocol):
    """Who has tasks."""

    name: str

    def report(self) -> None:
        """Tells what of its work hangs; called once a second while a task of it runs."""


class Timer:
    """A call to come. It must not block: the keeper makes it."""

    __slots__ = ("due", "task")

    def __init__(self, due: float, task: Task) -> None:
        self.due = due
        self.task: Task | None = task

    def cancel(self) -> None:
        """It will not come; what it would have called is let go at once."""
        self.task = None


class Crew:
    """See the module's text. Any thread may call any method."""

    def __init__(self, threads: int = THREADS, most: int = MOST_THREADS) -> None:
        self._limit, self._most = threads, most
        lock = threading.Lock()
        self._changed = threading.Condition(lock)
        self._ended = threading.Condition(lock)
        """Told of ends, where anybody waits for one."""
        self._waiting: deque[tuple[Worker, Task]] = deque()
        self._busy: dict[int, tuple[float, Worker]] = {}
        """Thread → since when it is at a task, and whose."""
        self._threads = 0
        self._idle = 0
        self._numbers = itertools.count(1)
        self._joining = 0
        self._ticks = threading.Condition()
        self._timers: list[tuple[float, int, Timer]] = []
        self._live = 0
        """How many timers there were when void ones were last thrown out."""
        self._keeper: threading.Thread | None = None
        self._closed = False

    def submit(self, worker: Worker, task: Task) -> None:
        """Has a task run soon; in the order of submission, as far as threads go."""
        with self._changed:
            if self._closed:
                return
            self._waiting.append((worker, task))
            if self._idle >= len(self._waiting):
                self._changed.notify()
            elif self._threads < self._limit:
                self._add_thread()
        if self._keeper is None:
            self._start_keeper()

    def at(self, seconds: float, task: Task) -> Timer:
        """Calls `task` from the keeper's thread after that long."""
        timer = Timer(time.monotonic() + max(0.0, seconds), task)
        with self._ticks:
            first = not self._timers or timer.due < self._timers[0][0]
            heapq.heappush(self._timers, (timer.due, next(self._numbers), timer))
            if len(self._timers) > 2 * self._live + 64:
                self._timers = [entry for entry in self._timers if entry[2].task is not None]
                heapq.heapify(self._timers)
                self._live = len(self._timers)
            if first:
                self._ticks.notify()
        if self._keeper is None:
            self._start_keeper()
        return timer

    @property
    def pressed(self) -> bool:
        """Whether tasks wait for a thread: who has more to do lets others go first."""
        return bool(self._waiting)

    @property
    def threads(self) -> int:
        """How many there are, the keeper apart."""
        return self._threads

    def join(self, worker: Worker, seconds: float) -> bool:
        """Waits until nothing of a worker runs or waits to run; False when that did not come."""
        with self._changed:
            self._joining += 1
            try:
                return self._ended.wait_for(lambda: not self._has(worker), max(0.0, seconds))
            finally:
                self._joining -= 1

    def _has(self, worker: Worker) -> bool:
        return any(whose is worker for _, whose in self._busy.values()) or any(
            whose is worker for whose, _ in self._waiting
        )

    def close(self, seconds: float = 1.0) -> None:
        """Takes no more tasks, and waits that long for the threads that are at one."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()
        with self._ticks:
            self._timers.clear()
            self._ticks.notify()
        if self._keeper is not None:
            self._keeper.join(seconds)
        with self._changed:
            self._joining += 1
            self._ended.wait_for(lambda: not self._threads, seconds)

    # -- threads -----------------------------------------------------------------------------------------------

    def _add_thread(self) -> None:
        self._threads += 1
        thread = threading.Thread(target=self._work, name=f"crew {next(self._numbers)}", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # the system gives no more; those there are go on
            self._threads -= 1
            log.error("no thread for the work of controllers: %s", error)

    def _work(self) -> None:
        me = threading.get_ident()
        changed, waiting, busy = self._changed, self._waiting, self._busy
        while True:
            with changed:
                while not waiting:
                    self._idle += 1
                    woken = not self._closed and changed.wait(IDLE_SECONDS)
                    self._idle -= 1
                    if not waiting and (self._closed or not woken):
                        self._threads -= 1
                        self._ended.notify_all()
                        return
                worker, task = waiting.popleft()
                busy[me] = (time.monotonic(), worker)
            try:
                task()
            except BaseException:
                log.exception("%s failed in the server", worker.name)
            with changed:
                del busy[me]
                if self._joining:
                    self._ended.notify_all()
            del worker, task  # an idle thread keeps nobody alive

    # -- the keeper --------------------------------------------------------------------------------------------

    def _start_keeper(self) -> None:
        with self._ticks:
            if self._keeper is None and not self._closed:
                keeper = threading.Thread(target=self._keep, name="crew keeper", daemon=True)
                try:
                    keeper.start()
                except RuntimeError as error:  # the next task or timer tries again
                    log.error("no thread for the timers of controllers: %s", error)
                else:
                    self._keeper = keeper

    def _keep(self) -> None:
        looked = time.monotonic()
        while not self._closed:
            for task in self._due():
                try:
                    task()
                except Exception:
                    log.exception("a timer failed in the server")
            self._make_room()
            if time.monotonic() - looked >= LOOK_SECONDS:
                looked = time.monotonic()
                self._look()

    def _look(self) -> None:
        for worker in {id(worker): worker for _, worker in list(self._busy.values())}.values():
            try:
                worker.report()
            except Exception:  # without the keeper nothing is tried again
                log.exception("%s could not tell what of it hangs", worker.name)

    def _due(self) -> list[Task]:
        """The timers that have come; waits for one, or for the next look."""
        with self._ticks:
            if not self._closed:
                pause = SLOW_SECONDS if self._busy else LOOK_SECONDS
                if self._timers:
                    pause = min(pause, self._timers[0][0] - time.monotonic())
                if pause > 0:
                    self._ticks.wait(pause)
            now, out = time.monotonic(), []
            while self._timers and self._timers[0][0] <= now:
                task = heapq.heappop(self._timers)[2].task
                if task is not None:
                    out.append(task)
            return out

    def _make_room(self) -> None:
        """Threads in the place of those whose tasks are slow."""
        if not self._waiting:
            return
        late = time.monotonic() - SLOW_SECONDS
        with self._changed:
            slow = sum(since <= late for since, _ in self._busy.values())
            wanted = min(self._limit + slow, self._most, self._threads + len(self._waiting) - self._idle)
            for _ in range(self._threads, wanted):
                self._add_thread()
