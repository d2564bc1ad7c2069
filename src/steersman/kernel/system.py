"""The System: what a world is made of. Faces build one; the kernel imports none of its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from .component import Component
from .draw import draw_smallest, model_call
from .effect import GK, Effect, Outcome, Refused, Request
from .faults import AT_A_WATCH, Budgets
from .identity import Canon
from .instances import Upgrade, relays
from .object import Key
from .reexec import Learned, Reconciler, Reexec, Vary
from .store import Store
from .view import Cursors, View

if TYPE_CHECKING:
    from .world import World

__all__ = ["Exchange", "Learned", "System", "UserStep"]

Exchange = Callable[[Effect], Any]
NOTHING: Final[Mapping[str, Any]] = {}


class UserStep(NamedTuple):
    """Something a person does once, at any moment: `do(exchange)` makes requests."""

    name: str
    do: Callable[[Exchange], None]


class Act(Protocol):
    """What may befall objects, or be done to them: requests of somebody who is no controller."""

    who: str
    """Who it is: part of the label."""

    def targets(self, store: Store) -> Iterable[tuple[Key, int]]:
        """The objects it can happen to, and in which ways (numbers from 1)."""

    def do(self, exchange: Exchange, key: Key, number: int) -> None:
        """Makes the requests; a refusal is raised."""

    def says(self, key: Key, number: int) -> str:
        """It in words."""


class System:
    """What a world is made of. Immutable while a search or a simulation runs."""

    def __init__(
        self,
        begin: Callable[[Store, Request], Outcome],
        loops: Sequence[Reconciler] = (),
        users: Sequence[UserStep] = (),
        components: Sequence[Component] = (),
        *,
        upgrades: Sequence[Upgrade] = (),
        canon: Canon | None = None,
        lag: int = 0,
        trees: bool = False,
        budgets: Mapping[str, int] = NOTHING,
        persistent: bool = True,
        atomic: bool = False,
        by_write: bool = False,
        backoff: Callable[[int], int] | None = None,
        draw: Callable[[World, Any], str] | None = None,
        external: Callable[..., Any] | None = None,
        outside: Mapping[str, Any] = NOTHING,
        acts: Mapping[str, Act] = NOTHING,
        call: Callable[[str, Any], Any] | None = None,
        twice: bool = True,
        memo: bool = True,
        refuse: Callable[[str, Any], Refused] | None = None,
        vary: Vary = nullcontext,
    ) -> None:
        self.begin = begin
        self.budgets = Budgets(budgets)
        """What may go wrong on a path, and how often."""
        every, self.relays = relays(loops, upgrades, self.budgets.has("lead"))
        self.loops = tuple(every)
        self.actors = tuple([getattr(loop, "actor", loop.name) for loop in every])
        """How each loop signs what it writes."""
        self.users = tuple(users)
        self.components = tuple(components)
        self.canon = canon or Canon()
        self.view = Cursors if trees else View
        """How views lag."""
        self.lag = lag
        """Events a controller's view of a kind may be behind."""
        self.caches = bool(lag) or any(self.budgets.has(op) for op in AT_A_WATCH)
        """Whether a view can be behind the head."""
        self.persistent = persistent
        """Keep old worlds intact: the store is forked before it is written to."""
        self.atomic, self.by_write = atomic, by_write
        """A reconcile is one Action; what a reconcile does up to its next write, and that, is one, a `turn`."""
        self.backoff = backoff
        """Failures of an item so far → microseconds until it is tried again; None: at any time (check)."""
        self.draw = draw or draw_smallest
        self.external = external
        """(name, request) → answer; of one with a state, (name, request, state) → (answer, state)."""
        self.acts = acts
        """What befalls objects, by its Action."""
        self.outside = outside
        """The external systems that have a state, and what it is at first (JSON)."""
        self.call = call or model_call
        self.refuse = refuse
        """What a client is told when a fault of this name befalls a call (a Request, or what a read asks for)."""
        self.reexec = Reexec(self.loops, self.canon, twice, memo, vary)
        self.informers: list[set[GK]] = [set(loop.informers) for loop in self.loops]
        """Kinds each controller reads through a cache. Learned while it runs: see `Learned`."""
        self.horizon: int | None = None
        """The longest delay (microseconds) that a controller compares a time with; None: nobody compares times."""
        self.raw_time: set[str] = set()
        """Controllers that read the raw time: what depends on it is BOUNDED."""
        self.raw_random: set[str] = set()
        """Controllers that draw random numbers: one outcome of many is seen."""
        self._listeners: dict[GK, tuple[int, ...]] = {}
        self._by_name = {loop.name: index for index, loop in enumerate(self.loops)}

    @property
    def by_call(self) -> bool:
        """Every call of a reconcile is an Action."""
        return not (self.atomic or self.by_write)

    def learn(self, learned: Learned) -> None:
        """Takes in what a search found out; worlds made before do not count any more."""
        if learned.gk is not None:
            self.informers[learned.loop].add(learned.gk)
        if learned.applies or learned.ranks:
            managers = learned.applies or self.canon.managers
            self.canon = Canon(self.canon.table, managers, self.canon.ranks and not learned.ranks)
        if learned.delay >= 0:
            self.horizon = max(learned.delay, self.horizon or 0)
        old = self.reexec  # not kept: what it found is found again, on a path of the new search
        self.reexec = Reexec(self.loops, self.canon, old.twice, old.memo, old.vary)
        self.reexec.times = self.horizon is not None
        self.reexec.executions, self.reexec.hits = old.executions, old.hits
        self.reexec.recall, self.reexec.recalled = old.recall, old.recalled

    def loop_index(self, name: str) -> int:
        """The controller of a name."""
        return self._by_name[name]

    def listeners(self, gk: GK) -> tuple[int, ...]:
        """The controllers that events of a kind can trigger."""
        found = self._listeners.get(gk)
        if found is None:
            found = self._listeners[gk] = tuple([i for i, loop in enumerate(self.loops) if loop.listens(gk)])
        return found
