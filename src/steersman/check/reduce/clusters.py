"""Clusters: who can never matter to each other is explored one after the other, not in every mixture.

Actors (the items of controllers, people) that share something are in one cluster: one writes what another reads or
writes, wakes it, draws a name beside it, or remembers what it looks at; a claim that must always hold joins those whose
writes it reads. Footprints are learned while the search goes on; when one grew and joined two clusters, the search
starts again, until none does (Godefroid's persistent sets, with what is learned in place of a static analysis).

In a state the actions of one cluster are taken, the first that has any. What is put off that way comes when that
cluster is at rest. Where it never rests it would be put off for ever: so in every recurrence (a set of states where a
fair run may stay for ever) in which something was put off, a state is expanded in full, and the search goes on.

One worker of a controller serves one item at a time, whatever its cluster: that only takes mixtures away, and never a
run of one cluster alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steersman.check.graph import Graph
from steersman.check.reduce.changes import Change, Log
from steersman.check.reduce.watched import Watched
from steersman.kernel.action import Action
from steersman.kernel.effect import Effect, Event, Outcome, Request
from steersman.kernel.faults import AT_A_CALL
from steersman.kernel.store import Store
from steersman.kernel.system import System, UserStep

Actor = Any
"""An item, ("user", name), ("claim", name) or ("name", …)."""


class Clusters:
    """Who belongs together in one system, as far as a search has shown."""

    def __init__(self, system: System, log: Log) -> None:
        self.system = system
        self.log = log
        self.grew = False
        """Two clusters were joined since the search began."""
        self._parent: dict[Actor, Actor] = {}
        self._order: dict[Actor, int] = {}
        self._reads: dict[object, tuple[Actor, Effect]] = {}
        self._changes: dict[object, tuple[Actor, Event]] = {}
        self._remembered: dict[tuple[int, str], dict[Actor, None]] = {}
        self._looked: dict[tuple[int, str], dict[Actor, None]] = {}
        self._heard: list[Effect] = []
        self._at = (0, 0)
        """How far the questions and looks of reconciles were taken in."""
        self._put_off: set[int] = set()
        self._plain = (system.begin, system.users)
        system.begin = _Begin(system.begin, self._heard)
        system.users = tuple([UserStep(user.name, _logged(user.do, self._heard)) for user in system.users])

    def anew(self, log: Log) -> Clusters:
        """For a system that has learned something: nothing known counts any more."""
        self.log, self.grew, self._at = log, False, (0, 0)
        for known in (self._parent, self._order, self._reads, self._changes, self._remembered, self._looked):
            known.clear()
        self._heard.clear()
        self._put_off.clear()
        return self

    @property
    def puts_off(self) -> bool:
        """Something was put off in this search."""
        return bool(self._put_off)

    def stop(self) -> None:
        """Nobody listens to what is looked at any more."""
        self.system.begin, self.system.users = self._plain

    @staticmethod
    def suits(system: System) -> bool:
        """Whether clusters can be right. Not where events of different objects queue up in one view, where time counts
        for several, where a crash or an upgrade wakes all of a controller's items, where something outside has a state,
        or for components."""
        harmless = {fault.op for fault in system.budgets.faults} <= set(AT_A_CALL)
        coupled = system.caches or system.components or system.outside or system.relays or system.horizon is not None
        return harmless and not coupled

    # -- who belongs together ------------------------------------------------------------------------------------

    def of(self, actor: Actor) -> Actor:
        """The cluster of an actor."""
        parent = self._parent
        if actor not in parent:
            parent[actor] = actor
            self._order[actor] = len(self._order)
            return actor
        root = actor
        while parent[root] != root:
            root = parent[root]
        while parent[actor] != root:
            parent[actor], actor = root, parent[actor]
        return root

    def _join(self, a: Actor, b: Actor) -> None:
        """Two actors belong together. One that never had a choice to make joins without any having been wrong."""
        fresh = a not in self._parent or b not in self._parent
        a, b = self.of(a), self.of(b)
        if a != b:
            if self._order[a] > self._order[b]:
                a, b = b, a
            self._parent[b] = a
            self.grew = self.grew or not fresh

    def actor_of(self, action: Action) -> Actor:
        """Who moves."""
        if action.op in ("user", "advance"):
            return ("user", action.who)
        return (self.system.loop_index(action.who), action.key)

    # -- learning --------------------------------------------------------------------------------------------------

    def reads(self, actor: Actor, effect: Effect) -> None:
        """An actor looks at something."""
        place = (actor, effect.what[:5] if effect.op == "list" else effect.what)
        if place not in self._reads:
            self._reads[place] = (actor, effect)
            for other, event in list(self._changes.values()):
                if self.of(other) != self.of(actor) and self.log.affects(effect, event):
                    self._join(actor, other)

    def attend(self) -> None:
        """What was looked at until now was for something else."""
        self._heard.clear()

    def learn(self, action: Action, changes: list[Change]) -> None:
        """Takes in what a step looked at and changed; what decided whom it wakes is something it looked at."""
        actor = self.actor_of(action)
        for effect in (*self._heard, *self.log.looked):
            self.reads(actor, effect)
        self._heard.clear()
        self.catch_up()
        for change in changes:
            self._changed(actor, change)

    def catch_up(self) -> None:
        """Takes in what reconciles were found to ask, be it only to see whether they change anything."""
        reexec, (asked, looked) = self.system.reexec, self._at
        for item, effect in reexec.asked[asked:]:
            self.reads(item, effect)
        for item, names in reexec.looked[looked:]:
            for name in names:
                self._looked.setdefault((item[0], name), {})[item] = None
                others = (
                    self._remembered.items()
                    if name == "*"
                    else [((item[0], name), self._remembered.get((item[0], name), {}))]
                )
                for place, actors in others:
                    if place[0] == item[0]:
                        for other in actors:
                            self._join(item, other)
        self._at = (len(reexec.asked), len(reexec.looked))

    def _changed(self, actor: Actor, change: Change) -> None:
        event = change.event
        if event is None:
            for name in change.names:
                self._remembered.setdefault((change.viewer, name), {})[actor] = None
                for place in ((change.viewer, name), (change.viewer, "*")):
                    for other in self._looked.get(place, {}):
                        self._join(actor, other)
            return
        for item in change.woken:
            self._join(actor, item)
        canon = self.system.canon
        ends = [0 if obj is None else canon.of(obj) for obj in (event.old, event.new)]
        place = (actor, event.key, *ends)
        if place in self._changes:
            return
        self._changes[place] = (actor, event)
        for reader, effect in list(self._reads.values()):
            if self.of(reader) != self.of(actor) and self.log.affects(effect, event):
                self._join(actor, reader)
        if event.old is None and event.new is not None:
            base = event.new.meta.value.get("generateName")
            if base:
                self._join(actor, ("name", event.key.gk, event.key.namespace, base))

    def claimed(self, name: str, store: Store) -> Store:
        """The store as a claim that must always hold may look at it."""
        return Watched.of(store, lambda effect: self.reads(("claim", name), effect))

    # -- choosing --------------------------------------------------------------------------------------------------

    def first(self, actions: list[Action], state: int) -> list[Action]:
        """The actions of the first cluster that has any; notes where others are put off."""
        roots = [self.of(self.actor_of(action)) for action in actions]
        first = min(roots, key=self._order.__getitem__, default=None)
        chosen = [action for action, root in zip(actions, roots, strict=True) if root == first]
        if len(chosen) < len(actions):
            self._put_off.add(state)
        return chosen

    def neglected(self, graph: Graph) -> list[int]:
        """States that are to be expanded in full, lest something is put off for ever: one of each recurrence where it
        is. They are taken not to put anything off any more."""
        out = []
        for recurrence in graph.recurrences():
            state = next((state for state in recurrence.states if state in self._put_off), None)
            if state is not None:
                self._put_off.discard(state)
                out.append(state)
        return out

    def again(self, log: Log) -> None:
        """The next search begins, with what is known by now."""
        self.log = log
        self.grew = False
        self._put_off.clear()


class _Begin:
    """`system.begin`, with what it reads of the store."""

    def __init__(self, begin: Callable[[Store, Request], Outcome], heard: list[Effect]) -> None:
        self._begin = begin
        self._heard = heard
        self.__self__ = getattr(begin, "__self__", None)

    def __call__(self, store: Store, request: Request) -> Outcome:
        return self._begin(Watched.of(store, self._heard.append), request)


def _logged(do: Callable[[Any], None], heard: list[Effect]) -> Callable[[Any], None]:
    """What a person does, with what they read."""

    def act(exchange: Callable[[Effect], Any]) -> None:
        def told(effect: Effect) -> Any:
            if effect.op in ("get", "list"):
                heard.append(effect)
            return exchange(effect)

        do(told)

    return act
