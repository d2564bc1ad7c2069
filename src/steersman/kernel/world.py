"""The World: everything native, and what can happen to it.

Its methods are the transitions, in place, for whoever holds a private fork; `kernel.transition` has them as Actions.
They are total and deterministic: no clock, no randomness, no hidden state. A world is never changed once it was handed
out. What it is made of stands in its `System`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from .disturb import Stamp
from .effect import GK, Call, Commit, Effect, Event, ListQuery, Refused, Reply, Request
from .effect import Outcome as Answer
from .flight import Flight, with_versions
from .identity import digest, term
from .object import Key
from .precondition import pinned
from .rare import NOBODY, Rare
from .reexec import Node, Result, outcome_of
from .sortedmap import SortedMap
from .store import Store, StoreConfig
from .system import Learned, System
from .value import EMPTY, Frozen
from .view import STALLED, Caches, View

__all__ = ["START", "Flight", "Item", "World", "with_versions"]

START: Final = 1_767_225_600 * 1_000_000
"""When every checked world begins, in microseconds: 2026-01-01T00:00:00Z. Any time would do."""

Item = tuple[int, Key]


class World:
    """One state. Read it freely; change it only through `step` on a private fork."""

    __slots__ = (
        "budgets",
        "components",
        "drawn",
        "events",
        "failures",
        "flights",
        "memory",
        "now",
        "pending",
        "rare",
        "store",
        "sum_pending",
        "system",
        "timers",
        "users",
        "views",
        "wakes",
    )

    def __init__(self, system: System, store: Store | None = None, now: int = START) -> None:
        self.system = system
        self.store = store or Store(StoreConfig(canonical=system.canon.of))
        self.now = now
        self.pending: dict[Item, None] = {}
        """The work queues."""
        self.sum_pending = 0
        self.flights: dict[Item, Flight] = {}
        self.memory: dict[int, Frozen] = {}
        self.views: dict[tuple[int, GK], View] = {}
        self.wakes: dict[Item, int] = {}
        """When an item is to be put on its queue again."""
        self.timers: SortedMap[tuple[int, int, Key], None] = SortedMap(self)
        self.failures: dict[Item, int] = {}
        self.budgets = system.budgets.full
        """What may still go wrong: see `kernel.faults`."""
        self.rare = Rare.first(system)
        """What few worlds have; None: this one does not."""
        self.users = tuple(range(len(system.users)))
        """Users who have not acted yet."""
        self.components: list[Any] = []
        self.drawn: dict[str, None] = {}
        """Names and uids ever drawn on this path: only these can be in use (see `draw_smallest`)."""
        self.events: list[Event] = []
        """What the last step committed, for properties and watchers."""

    def fork(self) -> World:
        """A private copy; containers are copied, contents shared."""
        other = World.__new__(World)
        other.system = self.system
        other.store = self.store
        other.now = self.now
        other.pending = self.pending.copy()
        other.sum_pending = self.sum_pending
        other.flights = self.flights.copy()
        other.memory = self.memory
        other.views = self.views
        other.wakes = self.wakes
        other.timers = self.timers
        other.failures = self.failures
        other.budgets = self.budgets
        other.rare = self.rare
        other.users = self.users
        other.components = self.components
        other.drawn = self.drawn
        other.events = []
        return other

    def start(self) -> World:
        """Starts every controller and component: initial lists fill the work queues."""
        for index in range(len(self.system.loops)):
            if not self.is_down(index):
                self.listed(index, self.store)
        self.components = [component.start(self.store) for component in self.system.components]
        return self

    def is_down(self, loop: int) -> bool:
        """Whether this instance of a controller does not run: not yet, or not any more."""
        return self.rare is not None and loop in self.rare.down

    def listed(self, loop: int, store: Store) -> None:
        """A controller that starts finds what is in this store."""
        for key in self.system.loops[loop].initial(store):
            self.enqueue(loop, key)

    @property
    def quiescent(self) -> bool:
        """Nothing is going on and nothing is on its way; timers and users may be left."""
        return not (self.pending or self.flights or self.views)

    @property
    def contents(self) -> int:
        """A digest of all there is: the store's canonical form, and the states of external systems."""
        return self.store.sum_canonical if self.rare is None else self.store.sum_canonical + self.rare.contents

    @property
    def outside(self) -> Mapping[str, Any]:
        """The states of the external systems that have one, by name."""
        return NOBODY if self.rare is None else self.rare.outside

    # -- the work queues -------------------------------------------------------------------------------------

    def enqueue(self, loop: int, key: Key) -> None:
        """Puts an item on a work queue, once."""
        item = (loop, key)
        if item not in self.pending:
            self.pending[item] = None
            self.sum_pending += term("pending", loop, key)

    def take(self, item: Item) -> None:
        """Takes an item off its work queue; its timer is forgotten, for it is looked at now."""
        del self.pending[item]
        self.sum_pending -= term("pending", *item)
        self.forget_wake(item)

    def _wake_at(self, item: Item, at: int) -> None:
        old = self.wakes.get(item)
        if old is not None and old <= at:
            return
        self.forget_wake(item)
        self.wakes = self.own(self.wakes)
        self.wakes[item] = at
        self.timers = self.timers.writable(self._token)
        self.timers.put((at, *item), None)

    def forget_wake(self, item: Item) -> None:
        """Forgets the timer of an item."""
        old = self.wakes.get(item)
        if old is not None:
            self.wakes = self.own(self.wakes)
            del self.wakes[item]
            self.timers = self.timers.writable(self._token)
            self.timers.pop((old, *item))

    @property
    def _token(self) -> object:
        """Whose timers may be changed in place: nobody's, where old worlds are kept."""
        return object() if self.system.persistent else self

    def own(self, container: Any) -> Any:
        """A container that may be changed: a copy where old worlds are kept."""
        return container.copy() if self.system.persistent else container

    # -- transitions -----------------------------------------------------------------------------------------

    def run(self, item: Item) -> None:
        """Takes an item and starts its reconcile."""
        self.take(item)
        self.forget_wake(item)
        loop, key = item
        node = self.system.reexec.root(loop, key, self.memory.get(loop))
        self._settle(item, Flight(node, {}))

    def exchange(self, loop: int | None, actor: str, effect: Effect) -> Any:
        """Performs an effect at once: the value, or the refusal raised."""
        value = self.request(effect.what, actor) if effect.op == "write" else self.perform(loop, effect)
        if isinstance(value, Refused):
            raise value
        return value

    def request(self, request: Request, actor: str) -> Any:
        """Makes a request now, webhooks included: an Object or a Refused."""
        value = self.write(request._replace(now=self.now, actor=actor))
        while isinstance(value, Call):
            value = self.resumed(value)
        return value

    def resumed(self, call: Call) -> Any:
        """A write after a webhook was asked at once: an Object, a Refused, or the next Call."""
        try:
            return self._finish_write(call.resume(self._ask(call)))
        except Refused as error:
            return error

    def _settle(self, item: Item, flight: Flight) -> None:
        """Keeps a reconcile in flight, or ends it when it has nothing left to do."""
        if flight.node.effect is not None:
            self.flights[item] = flight
            return
        self.flights.pop(item, None)
        assert flight.node.result is not None
        self.finish(item, flight.node.result, flight.node.memory)

    def finish(self, item: Item, result: Result, started: Frozen | None = None) -> None:
        """Records how a reconcile ended, and puts its item back where that asks for it. `started`: the memory it
        started with; what others of its controller's workers have remembered meanwhile stays."""
        loop, key = item
        current = self.memory.get(loop)
        if result.memory is not current and result.memory is not started:
            kept = result.memory if current == started else _merged(current, started, result.memory)
            self.memory = self.own(self.memory)
            if kept:
                self.memory[loop] = kept
            else:
                self.memory.pop(loop, None)
        if result.error is None and not result.requeue:
            if self.failures and item in self.failures:
                self.failures = self.own(self.failures)
                del self.failures[item]
        elif self.system.backoff is None:
            self.enqueue(loop, key)
        else:
            self.failures = self.own(self.failures)
            failed = self.failures[item] = self.failures.get(item, 0) + 1
            self._wake_at(item, self.now + self.system.backoff(failed))
        if result.requeue_after is not None:
            self._wake_at(item, self.now + result.requeue_after)
        if result.requeue_at is not None:
            self._wake_at(item, result.requeue_at)

    def cont(self, item: Item) -> None:
        """Performs the next call of a reconcile in flight."""
        flight = self.flights[item]
        node = flight.node
        effect = node.effect
        assert effect is not None
        if effect.op == "write":
            request = self.request_of(node, flight, effect.what)
            before = self.store
            value = self.write(request)
            if isinstance(value, Call):
                begun = before.get(request.key)
                self.flights[item] = flight._replace(waiting=value, begun=begun)
                return
            self.answered(item, flight, value, True)
        else:
            rare = self.rare
            value = self.perform(item[0], effect)
            self.answered(item, flight, value, self.rare is not rare)

    def answered(self, item: Item, flight: Flight, value: Any, wrote: bool) -> None:
        """The next call of a reconcile in flight got this value, or this refusal."""
        outcome = outcome_of(value, self.system.canon, flight.versions)
        node = self.system.reexec.advance(flight.node, outcome)
        versions = flight.versions if node.effect is None else with_versions(flight.versions, value)
        self._settle(item, Flight(node, versions, flight.wrote or wrote))

    def request_of(self, node: Node, flight: Flight, request: Request) -> Request:
        """A write as this path makes it: its precondition is the revision of the version it names."""
        if node.version >= 0:
            request = pinned(request, flight.versions[request.key][node.version].rv)
        return request._replace(now=self.now, actor=self.system.actors[node.loop])

    def call(self, item: Item, unanswered: Any = None) -> None:
        """Asks the webhooks that a write waits for, or takes these for their answers."""
        flight = self.flights[item]
        waiting = flight.waiting
        assert isinstance(waiting, Call)
        try:
            answer = self._answer(waiting.resume(self._ask(waiting) if unanswered is None else unanswered))
        except Refused as error:
            self.answered(item, flight._replace(waiting=None), error, True)
            return
        if isinstance(answer, Reply):
            self.answered(item, flight._replace(waiting=None), _value(answer), True)
        else:
            self.flights[item] = flight._replace(waiting=answer)

    def commit(self, item: Item) -> None:
        """Commits a write that came back from its webhooks; a slot that changed meanwhile is a conflict."""
        flight = self.flights[item]
        waiting = flight.waiting
        assert isinstance(waiting, Commit)
        done = self.commit_now(waiting)
        value: Any = waiting.old if waiting.new is None else self.store.get(waiting.key)
        if done is None and self.system.refuse is not None:
            value = self.system.refuse("conflict", Request("update", waiting.key))
        self.answered(item, flight._replace(waiting=None), value, True)

    def deliver(self, loop: int, key: Key) -> None:
        """One event reaches a lagging view: of this kind, or (with cursors) of the tree of this object."""
        gk = (key.group, key.kind)
        event, view = self.views[(loop, gk)].moved(key)
        self.views = self.views.copy()
        if view is None:
            del self.views[(loop, gk)]
        else:
            self.views[(loop, gk)] = view
        self.tell(loop, event)

    def tell(self, loop: int, event: Event) -> None:
        """A controller hears of an event; what it looks up to tell whom that wakes, it finds in its caches."""
        reconciler = self.system.loops[loop]
        if reconciler.listens((event.key.group, event.key.kind)):
            behind = {gk: view for (who, gk), view in self.views.items() if who == loop and gk != STALLED}
            for key in reconciler.triggers(event, Caches(self.store, behind) if behind else self.store):
                self.enqueue(loop, key)

    def fire(self, item: Item) -> None:
        """A timer rings; time is at least its deadline from now on."""
        at = self.wakes[item]
        self.now = max(self.now, at)
        self.forget_wake(item)
        self.enqueue(*item)

    def user(self, index: int) -> None:
        """A person acts, at once and on the head. What is refused is not done, and is not tried again."""
        self.users = tuple([user for user in self.users if user != index])
        step = self.system.users[index]
        with suppress(Refused):
            step.do(lambda effect: self.exchange(None, f"user:{step.name}", effect))

    def advance(self, index: int) -> None:
        """A component does what is due; time is at least its deadline from now on."""
        component = self.system.components[index]
        deadline = component.next_deadline(self.components[index])
        if deadline is None:
            return
        self.now = max(self.now, deadline)
        self.components = self.own(self.components)
        self.components[index], requests = component.advance(self.components[index], self.now)
        for request in requests:
            answer = self.request(request, component.name)
            if isinstance(answer, Refused):
                self.components[index] = component.on_refused(self.components[index], request, answer)

    # -- effects ---------------------------------------------------------------------------------------------

    def perform(self, loop: int | None, effect: Effect) -> Any:
        """The value of any call but a write; `loop` None reads the head."""
        what = effect.what
        if effect.op == "get":
            return self._reader(loop, what.gk, effect.fresh).get(what)
        if effect.op == "list":
            query: ListQuery = what
            return tuple(self._reader(loop, query.gk, effect.fresh).query(query))
        if effect.op == "after":
            if self.system.persistent and (self.system.horizon is None or what[1] > self.system.horizon):
                raise Learned(delay=max(what[1], 0))
            return self.now >= what[0] + what[1]
        if effect.op == "now":
            self.system.raw_time.add("a user" if loop is None else self.system.loops[loop].name)
            return self.wall
        if effect.op == "stamp":
            return Stamp(self.wall)
        if effect.op == "event":
            return None
        if effect.op == "random":
            self.system.raw_random.add("a user" if loop is None else self.system.loops[loop].name)
            return f"{digest('random', loop, what):032x}"[: 2 * what[1]]
        if effect.op == "external" and self.system.external is not None:
            try:
                return self.ask_outside(*what)
            except Refused as error:
                return error
        raise LookupError(f"nobody answers {effect} here: give the scenario a model with w.external")

    @property
    def wall(self) -> int:
        """What the wall clock shows (microseconds)."""
        return self.now if self.rare is None else self.now + self.rare.skew

    def ask_outside(self, name: str, request: Any) -> Any:
        """The answer of an external system, which may have another state then."""
        external = self.system.external
        assert external is not None
        if self.rare is None or name not in self.rare.outside:
            return external(name, request)
        answer, state = external(name, request, self.rare.outside[name])
        if state != self.rare.outside[name]:
            self.rare = self.rare.changed(name, state, self.system.budgets.has("external-old"))
        return answer

    def _reader(self, loop: int | None, gk: GK, fresh: bool) -> Store:
        if loop is None or fresh or not self.system.caches:
            return self.store
        if gk not in self.system.informers[loop]:
            raise Learned(loop, gk)
        view = self.views.get((loop, gk))
        return self.store if view is None else view.seen(self.store)

    def write(self, request: Request) -> Any:
        """Begins and, where nothing stands between, commits a write. An Object, a Refused, or a Call to be asked."""
        if request.verb == "apply" and not self.system.canon.managers:
            raise Learned(applies=True)
        try:
            return self._finish_write(self.system.begin(self.store, request))
        except Refused as error:
            return error

    def _finish_write(self, answer: Answer) -> Any:
        answer = self._answer(answer)
        if isinstance(answer, Call):
            return answer
        if isinstance(answer, Reply):
            return _value(answer)
        self.commit_now(answer)
        return answer.old if answer.new is None else self.store.get(answer.key)

    def _answer(self, answer: Answer) -> Answer:
        """Answers the Calls that are the kernel's own."""
        while isinstance(answer, Call) and answer.kind == "random":
            answer = answer.resume(self.system.draw(self, answer.question))
        return answer

    def _ask(self, call: Call) -> Any:
        return self.system.call(call.kind, call.question)

    def commit_now(self, commit: Commit) -> Event | None:
        """Commits, tells controllers and components, and notes the event."""
        before = self.store
        if self.system.persistent:
            self.store = before.fork()
        event = self.store.commit(commit)
        if event is None:
            return None
        self.events.append(event)
        gk = (event.key.group, event.key.kind)
        if self.system.caches:
            self._lag_behind(event, before)
        else:
            for loop in self.system.listeners(gk):
                if self.rare is None or loop not in self.rare.down:
                    for key in self.system.loops[loop].triggers(event, self.store):
                        self.enqueue(loop, key)
        if self.components:
            self.components = self.own(self.components)
            for index, component in enumerate(self.system.components):
                self.components[index] = component.on_event(self.components[index], event)
        return event

    def _lag_behind(self, event: Event, before: Store) -> None:
        """Every cached view of this kind falls one event behind."""
        for loop in range(len(self.system.informers)):
            if not self.is_down(loop):
                self.hear(loop, event, before)

    def hear(self, loop: int, event: Event, before: Store) -> None:
        """Something happened: the view of a controller falls behind; one that is too far behind gets its oldest event.
        Who listens to a kind without reading it through a cache (the garbage collector) hears of it at once: that its
        work may wait on the queue is delay enough. `before`: the store as it was before the event."""
        lag, gk = self.system.lag, (event.key.group, event.key.kind)
        if gk not in self.system.informers[loop]:
            self.tell(loop, event)
            return
        place = (loop, gk)
        view = self.views.get(place)
        if view is None and not lag:
            self.tell(loop, event)
        else:
            view = (self.system.view() if view is None else view).behind(event, before)
            self.views = {**self.views, place: view}
            late = None if view.how else view.late(event.key, lag)
            if late is not None:
                self.deliver(loop, late)
        stalled = self.views.get((loop, STALLED))
        if stalled is not None:
            self.views = {**self.views, (loop, STALLED): stalled.behind(event, before)}


def _value(reply: Reply) -> Any:
    return reply.obj if reply.items is None else reply.items


def _merged(current: Frozen | None, started: Frozen | None, ended: Frozen | None) -> Frozen:
    """`current` with what changed between `started` and `ended`."""
    before, after = started or EMPTY, ended or EMPTY
    out = {name: value for name, value in (current or EMPTY).items() if name in after or name not in before}
    out.update({name: value for name, value in after.items() if before.get(name) != value})
    return Frozen(out)
