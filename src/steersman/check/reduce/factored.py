"""Factored: what a controller does by itself is not mixed with what others do by themselves.

Between two changes of the store everybody reads, and hears of events, without anybody else noticing; in a graph of
worlds all of that is multiplied. Here a state is the store, the budgets, and for each controller the set of inner
states that it may be in by now (`inner`). Inner steps of different controllers commute, so any choice of one member
from each set is a world that can be reached, and every world that can be reached is such a choice: the graph of these
states shows the same stores, and the same ends. A transition is a change of the store, or a fault.

That is judged only where it is simple. No fair run may stay in a cycle of the graph (`fairness`), so that every run
changes the store a limited number of times, and what a controller does once all its events are delivered must come to
an end without a write; then fair runs come to rest, in the states in which every controller has a member with nothing
left to do. Anything else raises `Unfit`, and so does whatever makes steps depend on each other in other ways: webhooks,
names that are drawn again. Then, and where anything is violated, the graph of worlds is searched on: this only ever
finds that all is well. Where there are timers a few more stores may show than in the graph of worlds: a write may, or
may not, find the time changed that stands in it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from steersman.check.graph import NONE, Graph, Recurrence
from steersman.check.properties.removals import Removals
from steersman.check.reduce.fairness import Passage, lasting
from steersman.check.reduce.inner import NO_CHANGE, Inner, Move, rests
from steersman.check.reduce.lineage import Lineage, Unfit, draw
from steersman.check.reduce.settle import FAULTS
from steersman.check.rest import Attentive
from steersman.kernel.action import NO_KEY, Action
from steersman.kernel.effect import Event
from steersman.kernel.faults import FAULTY
from steersman.kernel.identity import digest
from steersman.kernel.system import System
from steersman.kernel.transition import apply
from steersman.kernel.view import View
from steersman.kernel.world import World

LOOK_EVERY: Final = 32
"""States between two looks at the clock and at memory."""
RESTING: Final = "rest"
"""The operation of the step, which is none, to a state in which nobody has anything left to do."""


class Edge(NamedTuple):
    """What one transition stands for."""

    loop: int
    """Whose; -1: a person's."""
    action: Action
    op: str
    changes: tuple[int, ...]
    move: Move | None


class Spot(NamedTuple):
    """What is known of a state."""

    parts: tuple[int, ...]
    """The set of each controller."""
    budgets: tuple[int, ...]
    users: tuple[int, ...]
    world: World
    """The store."""


class Proven(Graph):
    """A graph in which every fair run was found to come to rest."""

    __slots__ = ()

    def recurrences(self) -> list[Recurrence]:
        """The states in which nobody has anything left to do."""
        rest = self.by_action.get(Action(RESTING, "", NO_KEY))
        return [Recurrence((state,), True, False) for state in range(1, len(self)) if self.via[state] == rest]


class Factored:
    """One search. `system` must be new, and is this search's alone."""

    def __init__(
        self,
        system: System,
        first: World,
        good: Callable[[World], bool],
        stop: Callable[[int], bool],
        timers: bool = False,
    ) -> None:
        self.system = system
        self.graph = Proven()
        self.removed = Removals()
        self.inner = Inner(system, timers, lambda: stop(0))
        self._first, self._good, self._stop = first, good, stop
        self._draw = system.draw
        self._edges: dict[Action, Edge] = {}
        self._of_move: dict[tuple[int, Move], Edge] = {}
        self._spots: list[Spot] = []
        self._stores: dict[int, int] = {}
        self._acts: dict[Any, tuple[int, ...]] = {}
        self._queue: deque[int] = deque()
        self._start: tuple[int, ...] = ()

    @staticmethod
    def suits(system: System) -> bool:
        """Whether a system may be searched like this: every call is a step, views lag by kind, and nothing but these
        faults happens."""
        simple = system.by_call and not (system.components or system.outside or system.relays)
        faults = {fault.op for fault in system.budgets.faults}
        return (
            simple
            and bool(system.canon.table)
            and system.lag > 0
            and system.view is View
            and faults <= FAULTS
            and system.horizon is None
        )

    def run(self) -> bool:
        """Searches; False when it was stopped, or something is not good. Raises `Unfit`, `Learned`, and
        `Timers` where it was not told that there are some."""
        system = self.system
        system.draw = draw
        try:
            world = self._first.fork()
            world.store = Lineage.of(world.store)
            loops = range(len(system.loops))
            self._start = tuple([self.inner.number(self.inner.only(world.fork(), loop), loop) for loop in loops])
            parts = tuple([self.inner.closed(loop, [self._start[loop]]) for loop in loops])
            self._add(Spot(parts, world.budgets, world.users, self._bare(world)), NONE, Action("start", "", NO_KEY))
            while self._queue:
                number = self._queue.popleft()
                if number % LOOK_EVERY == 0 and self._stop(len(self.graph)):
                    return False
                if system.reexec.findings or system.horizon is not None or not self._expand(number):
                    return False
            return self._ends()
        finally:
            system.draw = self._draw

    def _bare(self, world: World) -> World:
        return self.inner.only(world.fork(), -1)

    def _add(self, spot: Spot, parent: int, action: Action) -> int:
        sets, contents = self.inner.sets, spot.world.contents
        place = digest(*[sets[part].canonical for part in spot.parts], contents, spot.budgets, spot.users)
        store = self._stores.setdefault(contents, len(self._stores))
        number, new = self.graph.add(place, parent, self.graph.action(action), store)
        if new:
            self._spots.append(spot)
            self._queue.append(number)
        return number

    def _expand(self, number: int) -> bool:
        graph, spot, sets = self.graph, self._spots[number], self.inner.sets
        if not self._good(spot.world):
            return False
        graph.expand(number)
        moved = False
        for edge in self._possible(spot):
            after = self._after(spot, edge)
            target = self._add(after, number, edge.action)
            self.removed.note(graph.transitions, [self.inner.changes[change].event for change in edge.changes])
            graph.edge(number, graph.action(edge.action), target)
            moved = moved or edge.op not in FAULTY
        if not spot.users and all(sets[part].rests for part in spot.parts):
            self._rest(number)
        elif not moved:
            raise Unfit("a state has no way on")
        return True

    def _rest(self, number: int) -> None:
        """The state in which nobody has anything left to do."""
        graph, spot, action = self.graph, self._spots[number], Action(RESTING, "", NO_KEY)
        place = digest(RESTING, spot.world.contents, spot.budgets)
        target, new = graph.add(place, number, graph.action(action), graph.stores[number])
        if new:
            self._spots.append(spot)
        graph.edge(number, graph.action(action), target)

    def _possible(self, spot: Spot) -> Iterator[Edge]:
        system = self.system
        left = system.budgets.left(spot.budgets).ops if spot.budgets else frozenset()
        for loop, part in enumerate(spot.parts):
            for move in self.inner.moves(part):
                if not move.op or move.op in left:
                    yield self._edge(loop, move)
        for user in spot.users:
            action = Action("user", system.users[user].name)
            place = (user, spot.world.store.place, tuple(spot.world.drawn))  # type: ignore[attr-defined]
            if place not in self._acts:
                self._acts[place] = self._acted(spot.world, user)
            yield self._named(Edge(-1, action, "user", self._acts[place], None))

    def _edge(self, loop: int, move: Move) -> Edge:
        found = self._of_move.get((loop, move))
        if found is None:
            changes = () if move.change == NO_CHANGE else (move.change,)
            found = self._named(Edge(loop, move.action, move.op or move.action.op, changes, move))
            self._of_move[(loop, move)] = found
        return found

    def _named(self, edge: Edge) -> Edge:
        """The edge, with an action of its own."""
        action = edge.action._replace(op=edge.op, number=len(self._edges))
        found = self._edges[action] = edge._replace(action=action)
        return found

    def _acted(self, world: World, user: int) -> tuple[int, ...]:
        """What a person changes."""
        noting = _Noting.of(world)
        noting.users = (user,)
        noting.user(user)
        return tuple([self.inner.change(event, a, b, drawn) for event, a, b, drawn in noting.made])

    def _after(self, spot: Spot, edge: Edge) -> Spot:
        inner, world = self.inner, spot.world
        parts = list(spot.parts)
        for change in edge.changes:
            for loop, part in enumerate(parts):
                if loop != edge.loop:
                    parts[loop] = inner.hearing(part, change)
            world = world.fork()
            world.store, world.drawn = inner.changes[change].after, inner.changes[change].drawn
        budgets, users = spot.budgets, spot.users
        if edge.move is not None:
            parts[edge.loop] = edge.move.target
            if edge.move.op:
                budgets = self.system.budgets.spend(budgets, edge.move.op)
        else:
            name = edge.action.who
            users = tuple([user for user in users if self.system.users[user].name != name])
        return Spot(tuple(parts), budgets, users, world)

    def _ends(self) -> bool:
        """No fair run changes the store for ever."""
        graph, spots = self.graph, self._spots
        passages: list[Passage] = []
        for part in graph.components(None, frozenset()):
            inside = set(part)
            if spots[part[0]].users:
                continue  # whoever has not acted yet does some time
            for state in part:
                for number, target in graph.edges(state):
                    edge = self._edges.get(graph.actions[number])
                    if edge is not None and target in inside:
                        passages.append((state, target, edge, spots[state].parts, spots[target].parts))
        if lasting(self.inner, passages):
            raise Unfit("the store may change for ever")
        return True

    # -- ways ------------------------------------------------------------------------------------------------------

    def world(self, state: int) -> World:
        """The world of a state of the graph, in full; for one at rest, that in which nobody has anything left to do."""
        return self._followed(self.way(self.graph.path(state)))

    def _followed(self, way: Sequence[Action]) -> World:
        world = self._first
        for action in way:
            world = apply(world, action)
        return world

    def way(self, path: Sequence[Action]) -> tuple[Action, ...]:
        """A path through this graph as steps of the whole one."""
        at_rest = bool(path) and path[-1].op == RESTING
        edges: list[Edge] = []
        spot = self._spots[0]
        spots = [spot]
        for action in path[:-1] if at_rest else path:
            edge = self._alike(spot, self._edges[action])
            spot = self._after(spot, edge)
            edges.append(edge)
            spots.append(spot)
        lines = [self._line(loop, edges, spots, at_rest) for loop in range(len(self.system.loops))]
        out: list[Action] = []
        for at in range(len(spots)):
            for line in lines:
                out += line[at][0]
            if at < len(edges):
                edge = edges[at]
                outer = lines[edge.loop][at][1] if edge.loop >= 0 else Action("user", edge.action.who)
                assert outer is not None
                out.append(outer)
        world = self._followed(out)
        if world.contents != spot.world.contents or (at_rest and not rests(world)):
            raise Unfit("a way cannot be followed")
        return tuple(out)

    def _alike(self, spot: Spot, edge: Edge) -> Edge:
        """The edge that does in a spot what one did in another that is known as the same state."""
        if edge.move is None:
            found = [e for e in self._possible(spot) if e.op == "user" and e.action.who == edge.action.who]
            return found[0]
        moves = self.inner.moves(spot.parts[edge.loop])
        if edge.move in moves:
            return edge
        for move in moves:
            if self._says(move) == self._says(edge.move):
                return self._edge(edge.loop, move)
        raise Unfit("a way cannot be followed")

    def _says(self, move: Move) -> Any:
        canon = self.system.canon
        event: Event | None = None if move.change == NO_CHANGE else self.inner.changes[move.change].event
        told = () if event is None else (event.key, *[obj and canon.of(obj) for obj in (event.old, event.new)])
        return (move.op, told, self.inner.sets[move.target].canonical)

    def _line(self, loop: int, edges: list[Edge], spots: list[Spot], at_rest: bool) -> list[Any]:
        """The steps of one controller along a path: at every spot (its inner steps there, and the step that leaves the
        spot, if that is its own)."""
        inner = self.inner
        origins: list[dict[int, tuple[int, Action | None]]] = [{self._start[loop]: (-1, None)}]
        for edge, spot in zip(edges, spots, strict=False):
            origins.append(self._origins(loop, edge, inner.sets[spot.parts[loop]].members))
        last = inner.sets[spots[-1].parts[loop]].members
        goal = next((n for n in last if rests(inner.worlds[n])), -1) if at_rest else next(iter(origins[-1]))
        out: list[Any] = []
        step: Action | None = None
        for before in reversed(origins):
            seed, steps = self._inside(loop, before, goal)
            out.append((steps, step))
            goal, step = before[seed]
        out.reverse()
        return out

    def _origins(self, loop: int, edge: Edge, members: Sequence[int]) -> dict[int, tuple[int, Action | None]]:
        """What inner states become on an edge: by what one became, which it was and by which step."""
        inner = self.inner
        if edge.move is not None and edge.loop == loop:
            wanted = (edge.move.op, edge.move.change)
            outer = [(number, step) for number in members for step in inner.steps(number, loop).outer]
            return {step.target: (number, step.action) for number, step in outer if (step.op, step.change) == wanted}
        out: dict[int, tuple[int, Action | None]] = {}
        for number in members:
            became = number
            for change in edge.changes:
                became = inner.hears(became, loop, change)
            out.setdefault(became, (number, None))
        return out

    def _inside(self, loop: int, seeds: dict[int, Any], goal: int) -> tuple[int, list[Action]]:
        """A shortest way by inner steps from one of these to an inner state."""
        came: dict[int, tuple[int, Action] | None] = dict.fromkeys(seeds)
        queue = deque(came)
        while queue and goal not in came:
            number = queue.popleft()
            for action, target in self.inner.steps(number, loop).inner:
                if target not in came:
                    came[target] = (number, action)
                    queue.append(target)
        if goal not in came:
            raise Unfit("a way cannot be followed")
        steps: list[Action] = []
        while (link := came[goal]) is not None:
            goal, action = link
            steps.append(action)
        steps.reverse()
        return goal, steps


class _Noting(Attentive):
    """A world that notes what is committed in it."""

    __slots__ = ("made",)
    made: list[tuple[Event, Any, Any, dict[str, None]]]

    def attend(self) -> None:
        """Has noted nothing yet."""
        self.made = []

    def commit_now(self, commit: Any) -> Event | None:
        """As a World does it."""
        before = self.store
        event = super().commit_now(commit)
        if event is not None:
            self.made.append((event, before, self.store, self.drawn))
        return event
