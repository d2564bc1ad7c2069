"""The two heads of a durable control plane, and the single writer between them.

A write is validated against `tentative` and put into the open group. One append makes a group durable; whatever
arrives meanwhile is the next group. Only then its events reach `durable`, watches and controllers, and its replies
leave. So nothing is ever seen that a crash could take back. An append that fails discards `tentative` and refuses
everybody who waits: what they were about to be told rests on it.

A journal that never blocks (`memory:`) needs no thread of its own and no company for an fsync. So the write of another
thread *lands*: that thread begins it, appends it and is told of it, holding the lock that makes it the one writer; from
then on every view shows it. The loop takes it over, for its own head, the change log, controllers and watches, at its
next turn, and before anything that it looks at or writes itself.

All methods are called from the event loop's thread, but for those that say "any thread".
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Final

from steersman.api import errors
from steersman.api.begin import Api
from steersman.api.errors import ApiError
from steersman.api.events import Said
from steersman.journal import Fenced, Head, HeadMoved, Journal, JournalError, Reconcile
from steersman.kernel.changelog import ChangeLog, Gone
from steersman.kernel.effect import GK, Commit, Event, Reply, Request
from steersman.kernel.object import Object
from steersman.kernel.ports import Clock
from steersman.kernel.store import Store
from steersman.run.clock import WallClock
from steersman.run.group import Done, Draws, Group, append, carry_out, perform, refused, result_of, settle, stage
from steersman.run.large import Large, Waiting
from steersman.run.load import load_store, sums_of
from steersman.run.questions import Questions
from steersman.run.shared import share_parsed_values
from steersman.run.tell import Teller
from steersman.serve.aside import is_large
from steersman.serve.asking import Asked, Trail
from steersman.serve.credentials.signer import Signer
from steersman.serve.wakeups import Wakeups

log = logging.getLogger("steersman.run")

NOTE_SECONDS: Final = 0.5
"""How long a record that nobody waits for may wait for company: it is not worth an fsync of its own."""
RETRY_SECONDS: Final = 5.0
"""When an append of such records alone is tried again after a failure; a write tries at once."""
PACE_SECONDS: Final = 0.001
"""How often the loop takes over what lands while other threads write without a pause: each time costs them a change of
threads, and the store a copy of what is written next. The first write after a pause is taken over at once."""
MAX_NOTES: Final = 5_000
"""Such records at which a group is appended at once, and kept while appends fail: a few megabytes."""
Listener = Callable[[Sequence[Event]], None]


class Heads:
    """See the module's text. `serve.backend.Backend` for the HTTP face."""

    def __init__(
        self,
        api: Api,
        journal: Journal,
        clock: Clock | None = None,
        holder: str = "steersman",
        pool: Executor | None = None,
    ) -> None:
        """Takes the writer's lease and loads the store. `pool`: who appends, where not a thread of its own. Raises
        `StartError` and `JournalError`."""
        share_parsed_values()
        self.api = api
        self.journal = journal
        self.now = (clock or WallClock()).now
        self.signer: Signer | None = None
        """Signs tokens and certificates; None: requests for them are refused."""
        self.questions = Questions()
        self.epoch = journal.acquire(holder)
        self._head: Head = journal.head()
        self._durable = load_store(journal)
        self.tentative = self._durable.fork()
        """What writes are judged by."""
        self._lock = threading.RLock()
        """Held while either head changes or a write is begun on one, and while another thread takes a view."""
        self._view: Store | None = None
        self._rev = self._durable.rev
        """The newest durable revision: what a view shows."""
        self._landed: list[Event] = []
        """What other threads made durable and the loop has not taken over; then nothing is open or in flight."""
        self._untold: list[Event] = []
        """What it has taken over without telling the listeners."""
        self._called = False
        """Whether the loop was asked to take over what landed."""
        self._changes = ChangeLog(self._durable.rev)
        self._wakeups = Wakeups()
        self._listeners: list[Listener] = []
        self._open = Group()
        self._flying: Group | None = None
        self._work = asyncio.Event()
        self._note_timer: asyncio.TimerHandle | None = None
        self._closing = False
        self._ended = False
        self._failing = False
        self._groups = 0
        self._events = 0
        self.stopped: JournalError | None = None
        """Why this process writes no more, once it does not."""
        self.on_stop: Callable[[JournalError], None] = lambda error: None
        """Called once, when writing has to end for good: another writer took the journal, say."""
        self._large = Large()
        self.loop: asyncio.AbstractEventLoop | None = None
        self.thread = 0
        """The loop's, as `threading.get_ident` has it."""
        self.tell: Callable[[Said, str], None] = Teller(self).tell
        self._own = None if pool else ThreadPoolExecutor(1, "journal")
        self._pool = pool or self._own
        self._appending: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to append, on the running loop."""
        self.loop, self.thread = asyncio.get_running_loop(), threading.get_ident()
        self._appending = self.loop.create_task(self._append_groups())
        self._appending.add_done_callback(self._appending_ended)

    async def close(self) -> None:
        """Refuses further writes, makes what there is durable, and lets the journal's thread go."""
        with self._lock:
            self._closing = True
        await self._large.close()
        self.questions.close(self._refusal())
        self._work.set()
        if self._appending is not None:
            await asyncio.wait([self._appending])
        if self._own is not None:
            self._own.shutdown(wait=True)
        self.catch_up()
        self._ended = True
        self._wakeups.wake_all()
        self._listeners.clear()  # so that all of it is gone without a garbage collection
        self.tell = _unheard

    # -- the port of the HTTP face -----------------------------------------------------------------------------

    @property
    def store(self) -> Store:
        """The durable head; from another thread a view of it."""
        if self._landed:
            if threading.get_ident() != self.thread:
                return self.view()
            self._take_over()
        return self._durable

    async def write(self, request: Request, large: bool = False) -> Reply:
        """Carries out a request; answers when it, and all it could see, is durable. Raises `ApiError`."""
        return (await self.do(request, "user", large)).reply

    def since(self, gk: GK, rev: int) -> list[Event]:
        """Durable events of a kind after a revision. Raises `Gone`."""
        if self._landed:
            self._take_over()
        return self._changes.since(rev, gk)

    async def changed(self, gk: GK, rev: int) -> None:
        """Returns when there may be durable events of a kind after `rev`. Raises `Gone` when there will be none."""
        if not self._ended:
            await self._wakeups.wait(gk, rev)
        if self._ended:
            raise Gone("this workspace was deleted")

    # -- writing -----------------------------------------------------------------------------------------------

    async def do(self, request: Request, origin: str, large: bool = False) -> Done:
        """`write`, by whom it is made: "user" | "component" | "reconcile"."""
        future: asyncio.Future[Done] = asyncio.get_running_loop().create_future()
        self._submit(request, origin, future, (), large)
        return await future

    async def bear(self, objs: Iterable[Object], actor: str) -> None:
        """Makes ready-made objects durable in free slots, as if `actor` had just created each. Raises `ApiError`."""
        if self.stopped is not None or self._closing:
            raise self._refusal()
        future: asyncio.Future[Done] = asyncio.get_running_loop().create_future()
        with self._lock:
            self._take_over()
            for obj in objs:
                request = Request("create", obj.key, None, actor=actor, manager=actor, now=self.now())
                stage(self._open, self.tentative, Commit(obj.key, None, obj, 201), request, "user", [obj.uid])
            self._open.waiting.append((future, Done(Reply(201), 0)))
        self._work.set()
        await future

    def do_from_thread(self, request: Request, origin: str) -> Future[Done]:
        """The same from any other thread; the future's exception is an `ApiError`."""
        future: Future[Done] = Future()
        result = self._land(request, origin)
        if result is not None:
            settle(future, result)
        elif not self.call(lambda: self._submit(request, origin, future)):
            future.set_exception(errors.service_unavailable("the server is shutting down"))
        return future

    def do_here(self, request: Request, origin: str, seconds: float | None = None) -> Done:
        """The same, waited for as long. Raises `ApiError`, and `concurrent.futures.TimeoutError`."""
        result = self._land(request, origin)
        if result is None:
            return self.do_from_thread(request, origin).result(seconds)
        if isinstance(result, ApiError):
            raise result
        return result

    def _land(self, request: Request, origin: str) -> Done | ApiError | None:
        """Carries a request out in this thread. None: it must go through the loop, because something is under way on
        which it would rest, or somebody has to be asked. Any other thread."""
        if self.journal.blocks:
            return None
        group = Group()
        with self._lock:
            if self._open.records or self._flying is not None or self._large.busy or self._failing or self._closing:
                return None
            request = request._replace(now=self.now())
            if request.verb != "create" and is_large(self.tentative.get(request.key)):
                return None
            try:
                begin = partial(perform, self.api, self.tentative, request, self.signer)
                result = result_of(group, self.tentative, request, origin, begin)
            except Asked:
                return None
            if not group.events:
                return result
            error = self._append(group)
            if error is not None:
                return self._void(error, 1)
            self._landed += group.events
            self._rev = self.tentative.rev
            called, self._called = self._called, True
        if not called:
            self.call(self._taken_over)
        return result

    def _taken_over(self) -> None:
        with self._lock:
            self._called = bool(self._landed or self._untold)
        if self._called and self.loop is not None:
            self.catch_up()
            self.loop.call_later(PACE_SECONDS, self._taken_over)

    def _take_over(self) -> None:
        """What landed comes to the loop's own head, the change log and the watches."""
        with self._lock:
            landed, self._landed = self._landed, []
            if landed:
                self._durable = self.tentative.fork()  # which holds nothing else that is new
        for event in landed:
            self._changes.append(event)
            self._wakeups.notify((event.key.group, event.key.kind), event.rev)
        self._groups += len(landed)
        self._events += len(landed)
        self._untold += landed

    def catch_up(self) -> None:
        """What landed comes to the listeners, too. Who goes by what they heard calls it first, in the loop's thread."""
        self._take_over()
        events, self._untold = self._untold, []
        if events:
            for listener in self._listeners:
                listener(events)

    def call(self, act: Callable[[], None]) -> bool:
        """Has the loop do something. False: it is closed. Any thread."""
        assert self.loop is not None
        try:
            self.loop.call_soon_threadsafe(act)
        except RuntimeError:
            return False
        return True

    def _submit(self, request: Request, origin: str, future: Any, trail: Trail = (), large: bool = False) -> None:
        """Begins a request on the tentative head; `future` is settled when what it saw is durable. `trail`: what it
        was answered when it was begun before."""
        request = request if trail else request._replace(now=self.now())
        with self._lock:
            large = large or (request.verb != "create" and is_large(self.tentative.get(request.key)))
            if large or self._large.busy:
                self._large.put(self, Waiting(request, origin, future, trail, large))
                return
        self.begin_now(request, origin, future, trail)

    def begin_now(self, request: Request, origin: str, future: Any, trail: Trail) -> None:
        """Begins a request here and now. For `Large`."""
        self.conclude(
            request, origin, future, trail, lambda: perform(self.api, self.tentative, request, self.signer, trail)
        )

    def conclude(
        self,
        request: Request,
        origin: str,
        future: Any,
        trail: Trail,
        outcome: Callable[[], Draws],
        large: bool = False,
    ) -> None:
        """Commits to the tentative head what came of a request that was begun on it. For `Large`."""
        if self.stopped is not None or self._closing:
            settle(future, self._refusal())
            return
        with self._lock:
            if self._landed:
                self._take_over()
            try:
                result = result_of(self._open, self.tentative, request, origin, outcome)
            except Asked as asked:
                self.questions.ask(asked, request, future, lambda m: self._submit(request, origin, future, m, large))
                return
            if self._open.records:
                self._work.set()
            under_way = self._open if self._open.events else self._flying
            if under_way is not None:  # the result, a refusal too, rests on what is not durable yet
                under_way.waiting.append((future, result))
                return
        settle(future, result)

    def _refusal(self) -> ApiError:
        if self.stopped is not None:
            return errors.service_unavailable(f"this server does not write any more: {self.stopped}")
        return errors.service_unavailable("the server is shutting down")

    def note(self, record: Reconcile) -> None:
        """Adds a record that nobody waits for: it goes with the next group. Any thread."""
        if not self.call(lambda: self._note(record)):  # the record is lost, as in a crash
            log.debug("a reconcile of %s ended after the journal was closed", record.key)

    def _note(self, record: Reconcile) -> None:
        self._open.notes.append(record)
        if len(self._open.notes) >= MAX_NOTES:
            self._work.set()
        elif self._note_timer is None and self.loop is not None:
            self._note_timer = self.loop.call_later(NOTE_SECONDS, self._work.set)

    # -- making durable ----------------------------------------------------------------------------------------

    async def _append_groups(self) -> None:
        """Appends one group after the other until `close`."""
        while True:
            await self._work.wait()
            self._work.clear()
            if self._note_timer is not None:
                self._note_timer.cancel()
                self._note_timer = None
            if self._open and self.stopped is None:
                await self._append_open()
            if self._closing and (not self._open or self._failing or self.stopped is not None):
                self._open.release(self._refusal())
                return

    async def _append_open(self) -> None:
        """Closes the open group and makes it durable. Nothing of it is kept beyond that."""
        assert self.loop is not None
        with self._lock:
            group, self._open = self._open, Group()
            self._flying = group
        if self.journal.blocks:
            error = await self.loop.run_in_executor(self._pool, self._append, group)
        else:
            with self._lock:
                error = self._append(group)
        if error is None:
            self._make_visible(group)
            self._flying = None
            if self._open:
                self._work.set()
        else:
            self._flying = None
            self._give_up(group, error)
            if self._open.notes:
                self._note_timer = self.loop.call_later(RETRY_SECONDS, self._work.set)

    def _appending_ended(self, task: asyncio.Task[None]) -> None:
        """A fault of this program between two appends: nobody may wait for ever for what will not come."""
        error = None if task.cancelled() else task.exception()
        if error is None or self.stopped is not None:
            return
        log.error("the writer failed", exc_info=error)
        self.stopped = JournalError(f"the writer failed: {type(error).__name__}: {error}", "report this fault; restart")
        for group in (self._flying, self._open):
            if group is not None:
                group.release(self._refusal())
        self.on_stop(self.stopped)

    def _append(self, group: Group) -> JournalError | None:
        """One append, in the journal's thread: None when the group is durable, else why it is not."""
        head = append(self.journal, self.epoch, self._head, [*group.records, *group.notes])
        if isinstance(head, JournalError):
            return head
        self._head = head
        return None

    def _make_visible(self, group: Group) -> None:
        """The group is durable: durable head, change log, controllers, watches, replies; in this order."""
        self.catch_up()
        with self._lock:
            durable = self._durable
            carry_out(durable, group.events)
            self._rev = durable.rev
        if group.sums is not None and group.sums != sums_of(durable):
            raise AssertionError(f"the durable head at revision {durable.rev} is not what was appended")
        if self._failing:
            log.warning("the journal takes writes again")
            self._failing = False
        for event in group.events:
            self._changes.append(event)
            self._wakeups.notify((event.key.group, event.key.kind), event.rev)
        self._groups += 1
        self._events += len(group.events)
        if group.events:
            for listener in self._listeners:
                listener(group.events)
        group.release()

    def _give_up(self, group: Group, error: JournalError) -> None:
        """The group did not become durable: the tentative head, and what was begun on it since, are void."""
        with self._lock:
            later, self._open = self._open, Group()
            self._open.notes = [*group.notes, *later.notes][-MAX_NOTES:]
            failure = self._void(error, len(group.events) + len(later.events))
        group.release(failure)
        later.release(failure)

    def _void(self, error: JournalError, writes: int) -> ApiError:
        """Throws the tentative head away after an append that failed; what to tell those who wait. Any thread that
        holds the lock."""
        fatal = isinstance(error, (Fenced, HeadMoved))
        if fatal:
            self.stopped = error
            self.call(lambda: self.on_stop(error))
        if fatal or not self._failing:
            log.error("%d writes were refused: %s", writes, error)
        self._failing = True
        self.tentative = self._durable.fork()
        carry_out(self.tentative, self._landed)
        return self._refusal() if fatal else refused(error)

    # -- reading -----------------------------------------------------------------------------------------------

    def view(self) -> Store:
        """The durable head, frozen: the same fork for everybody until it moves. Any thread."""
        view = self._view
        if view is not None and view.rev == self._rev:
            return view
        with self._lock:
            if self._view is None or self._view.rev != self._rev:
                self._view = self.tentative.fork() if self._landed else self._durable.fork()
            return self._view

    def listen(self, listener: Listener) -> None:
        """Tells `listener` of every group of durable events from now on, in order, in the loop's thread."""
        self._listeners.append(listener)

    def unlisten(self, listener: Listener) -> None:
        """Ends that."""
        self._listeners.remove(listener)

    @property
    def busy(self) -> bool:
        """Whether writes are under way."""
        return bool(self._open) or self._flying is not None or bool(self._landed)

    def trouble(self) -> str:
        """Why writes are not made durable; "" when they are."""
        if self.stopped is not None:
            return str(self.stopped)
        return "the journal refused the last group of writes" if self._failing else ""

    def numbers(self) -> list[tuple[str, str, float]]:
        """(name, Prometheus type, value) of what the writer did: groups are appends, each with one fsync."""
        waiting = len(self._open.waiting) + (0 if self._flying is None else len(self._flying.waiting))
        return [
            ("steersman_journal_groups_total", "counter", float(self._groups)),
            ("steersman_journal_events_total", "counter", float(self._events)),
            ("steersman_journal_waiting_requests", "gauge", float(waiting)),
            ("steersman_journal_failing", "gauge", float(bool(self.trouble()))),
        ]

    def check(self) -> None:
        """Asserts that both heads agree with what was appended, when nothing is under way."""
        with self._lock:
            assert sums_of(self.store) == sums_of(self.tentative)


def _unheard(said: Said, actor: str) -> None:
    """What is told after the end."""
