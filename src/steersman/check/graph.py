"""The graph of a search: visited fingerprints, shortest paths back, transitions, and what they say about liveness.

Everything is an array of machine integers: a state costs its slot in an open-addressing table (20 B at a load of a
third to two thirds) and 24 B of facts; a transition 8 B.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from steersman.kernel.action import Action
from steersman.kernel.faults import FAULTY

SHARDS: Final = 64
"""Parts of the table: each grows by itself, so growing never holds two whole tables."""
FIRST_SLOTS: Final = 16
LOAD_NUMERATOR, LOAD_DENOMINATOR = 2, 3
LOW: Final = (1 << 64) - 1
NONE: Final = 0xFFFFFFFF


class _Shard:
    __slots__ = ("high", "index", "low", "mask", "used")

    def __init__(self, slots: int) -> None:
        self.mask = slots - 1
        self.used = 0
        self.high = array("Q", bytes(8 * slots))
        self.low = array("Q", bytes(8 * slots))
        self.index = array("I", bytes(4 * slots))


class Visited:
    """128-bit fingerprints to consecutive state numbers."""

    __slots__ = ("_shards", "size")

    def __init__(self) -> None:
        self._shards = [_Shard(FIRST_SLOTS) for _ in range(SHARDS)]
        self.size = 0

    def number(self, fingerprint: int) -> tuple[int, bool]:
        """The state's number, and whether it is new."""
        shard = self._shards[fingerprint >> 122]
        low = fingerprint & LOW
        high = fingerprint >> 64
        mask, index = shard.mask, shard.index
        at = low & mask
        while True:
            found = index[at]
            if not found:
                break
            if shard.low[at] == low and shard.high[at] == high:
                return found - 1, False
            at = (at + 1) & mask
        number = self.size
        self.size = number + 1
        shard.low[at], shard.high[at], index[at] = low, high, number + 1
        shard.used += 1
        if shard.used * LOAD_DENOMINATOR > (mask + 1) * LOAD_NUMERATOR:
            self._grow(fingerprint >> 122)
        return number, True

    def _grow(self, which: int) -> None:
        old = self._shards[which]
        new = _Shard(2 * (old.mask + 1))
        new.used = old.used
        mask, low, high, index = new.mask, new.low, new.high, new.index
        for at, number in enumerate(old.index):
            if number:
                place = old.low[at] & mask
                while index[place]:
                    place = (place + 1) & mask
                low[place], high[place], index[place] = old.low[at], old.high[at], number
        self._shards[which] = new

    @property
    def memory(self) -> int:
        """Bytes held."""
        return sum(20 * (shard.mask + 1) for shard in self._shards)


class Recurrence(NamedTuple):
    """States in which a fair run may stay for ever; a single state at rest is one too."""

    states: tuple[int, ...]
    terminal: bool
    """No edge but faults leads out of it."""
    writes: bool
    """Some transition inside it changes the store."""


class Graph:
    """States by number, in the order they were found (breadth first: numbers never decrease along shortest paths)."""

    __slots__ = (
        "_edge_at",
        "actions",
        "by_action",
        "edge_action",
        "edge_target",
        "expanded",
        "parent",
        "stores",
        "via",
        "visited",
    )

    def __init__(self) -> None:
        self.visited = Visited()
        self.parent = array("I")
        self.via = array("I")
        """The action by which a state was first reached."""
        self.stores = array("I")
        """The number of each state's store: equal numbers, equal canonical stores."""
        self._edge_at = array("Q")
        self.edge_target = array("I")
        self.edge_action = array("I")
        self.actions: list[Action] = []
        self.by_action: dict[Action, int] = {}
        self.expanded = array("I")

    def __len__(self) -> int:
        return self.visited.size

    @property
    def transitions(self) -> int:
        """Edges so far."""
        return len(self.edge_target)

    def add(self, fingerprint: int, parent: int, action: int, store: int) -> tuple[int, bool]:
        """Notes a state; its number, and whether it is new."""
        number, new = self.visited.number(fingerprint)
        if new:
            self.parent.append(parent)
            self.via.append(action)
            self.stores.append(store)
            self._edge_at.append(0)
            self.expanded.append(0)
        return number, new

    def action(self, action: Action) -> int:
        """The number of an action."""
        number = self.by_action.get(action)
        if number is None:
            number = self.by_action[action] = len(self.actions)
            self.actions.append(action)
        return number

    def expand(self, state: int) -> None:
        """From here on `edge` adds transitions of this state."""
        self._edge_at[state] = len(self.edge_target)

    def reopen(self, state: int) -> dict[int, int]:
        """The same for a state that has some already, which stay: by their old numbers, their new ones."""
        old = [(edge, self.edge_action[edge], target) for edge, target in self.numbered(state)]
        self.expand(state)
        self.expanded[state] = 0
        moved = {}
        for edge, action, target in old:
            moved[edge] = self.transitions
            self.edge(state, action, target)
        return moved

    def edge(self, state: int, action: int, target: int) -> None:
        """One transition of the state being expanded."""
        self.edge_target.append(target)
        self.edge_action.append(action)
        self.expanded[state] += 1

    def edges(self, state: int) -> Iterator[tuple[int, int]]:
        """(action, target) of a state's transitions; none when it was not expanded."""
        start = self._edge_at[state]
        for at in range(start, start + self.expanded[state]):
            yield self.edge_action[at], self.edge_target[at]

    def numbered(self, state: int) -> Iterator[tuple[int, int]]:
        """(number, target) of a state's transitions."""
        start = self._edge_at[state]
        for at in range(start, start + self.expanded[state]):
            yield at, self.edge_target[at]

    def path(self, state: int) -> list[Action]:
        """A shortest way to a state."""
        out = []
        while self.parent[state] != NONE:
            out.append(self.actions[self.via[state]])
            state = self.parent[state]
        out.reverse()
        return out

    @property
    def memory(self) -> tuple[int, int]:
        """Bytes of fingerprints and states, and of transitions."""
        per_state = sum(part.itemsize * len(part) for part in (self.parent, self.via, self.stores, self.expanded))
        return self.visited.memory + per_state + 8 * len(self._edge_at), 8 * len(self.edge_target)

    def quiet(self) -> Iterator[int]:
        """States that were expanded and in which nobody moves but faults; one of each store."""
        seen: set[int] = set()
        for state in range(len(self)):
            if self.stores[state] not in seen and self.is_quiet(state):
                seen.add(self.stores[state])
                yield state

    def was_expanded(self, state: int) -> bool:
        """Whether its transitions are known."""
        return not state or bool(self._edge_at[state])

    def is_quiet(self, state: int) -> bool:
        """Whether it is known that nobody moves there but faults."""
        return self.was_expanded(state) and all(self.actions[action].op in FAULTY for action, _ in self.edges(state))

    # -- liveness ------------------------------------------------------------------------------------------------

    def recurrences(self) -> list[Recurrence]:
        """Every set of states that a fair run may stay in for ever.

        Faults need not happen, so their edges do not count. Everything else is strongly fair: an item that can move
        again and again does (work queues are first come, first served). States in which somebody can move who never
        moves inside the set are taken out, and what is left is looked at again.
        """
        out: list[Recurrence] = []
        work = list(self.components(None))
        while work:
            component = work.pop()
            found, unfair = self._examine(component)
            if found is not None:
                out.append(found)
            elif unfair:
                rest = [state for state in component if state not in unfair]
                if rest:
                    work.extend(self.components(rest))
        out.sort()
        return out

    def _examine(self, component: list[int]) -> tuple[Recurrence | None, set[int]]:
        """The component as a recurrence, or the states that keep it from being one."""
        inside = set(component)
        terminal, writes, cyclic = True, False, False
        moved: set[Any] = set()
        enabled: dict[Any, list[int]] = {}
        for state in component:
            for action, target in self.edges(state):
                taken = self.actions[action]
                if taken.op in FAULTY:
                    continue
                item = item_of(taken)
                enabled.setdefault(item, []).append(state)
                if target in inside:
                    cyclic = True
                    moved.add(item)
                    writes = writes or self.stores[target] != self.stores[state]
                else:
                    terminal = False
        if terminal:
            return Recurrence(tuple(component), True, writes), set()
        unfair = {state for item, states in enabled.items() if item not in moved for state in states}
        if cyclic and not unfair:
            return Recurrence(tuple(component), False, writes), set()
        return None, unfair if cyclic else set()

    def components(self, among: Sequence[int] | None, without: frozenset[str] = FAULTY) -> Iterator[list[int]]:
        """Strongly connected components over edges that are no faults (Tarjan's algorithm, without recursion), of all
        states or of some. Costs what it looks at, however large the rest of the graph is."""
        faulty = [action.op in without for action in self.actions]
        states: Sequence[int] = range(len(self)) if among is None else among
        places = None if among is None else {state: at for at, state in enumerate(among)}
        index = array("I", [NONE]) * len(states)
        low = array("I", bytes(4 * len(states)))
        on_stack = bytearray(len(states))
        stack: list[int] = []
        clock = 0
        for root, state in enumerate(states):
            if index[root] != NONE:
                continue
            work: list[tuple[int, Iterator[tuple[int, int]]]] = [(root, self.edges(state))]
            index[root] = low[root] = clock
            clock += 1
            stack.append(root)
            on_stack[root] = 1
            while work:
                here, edges = work[-1]
                pushed = False
                for action, target in edges:
                    there = target if places is None else places.get(target, -1)
                    if there < 0 or faulty[action]:
                        continue
                    if index[there] == NONE:
                        index[there] = low[there] = clock
                        clock += 1
                        stack.append(there)
                        on_stack[there] = 1
                        work.append((there, self.edges(target)))
                        pushed = True
                        break
                    if on_stack[there] and index[there] < low[here]:
                        low[here] = index[there]
                if pushed:
                    continue
                work.pop()
                if work and low[here] < low[work[-1][0]]:
                    low[work[-1][0]] = low[here]
                if low[here] == index[here]:
                    yield [states[member] for member in _unstack(stack, on_stack, here)]

    def cycle(self, component: Sequence[int], without: frozenset[str] = FAULTY) -> tuple[int, list[Action]]:
        """A cycle inside a component that changes the store, and the state it begins in: the component's first where
        that can be; empty when there is none without these actions."""
        inside = set(component)
        for state in component:
            for action, target in self.edges(state):
                changed = self.stores[target] != self.stores[state]
                if target in inside and changed and self.actions[action].op not in without:
                    return component[0], self.cycle_through(component, state, action, target, without)
        return component[0], []

    def hot_cycle(self, component: Sequence[int], without: frozenset[str]) -> tuple[int, list[Action]]:
        """The same in a part of the component that is connected without these actions (and faults)."""
        for part in self.components(component, without):
            start, cycle = self.cycle(part, without)
            if cycle:
                return start, cycle
        return component[0], []

    def cycle_through(
        self, component: Sequence[int], state: int, action: int, target: int, without: frozenset[str] = FAULTY
    ) -> list[Action]:
        """A shortest cycle inside a component, from its first state, by way of one of its transitions."""
        inside, start = set(component), component[0]
        there, back = self.within(start, state, inside, without), self.within(target, start, inside, without)
        return [*there, self.actions[action], *back]

    def within(self, start: int, goal: int, inside: set[int], without: frozenset[str]) -> list[Action]:
        """A shortest way from one state of a set to another one inside it, without these actions."""
        came: dict[int, tuple[int, int]] = {}
        queue = deque([start])
        seen = {start}
        while queue and goal not in seen:
            state = queue.popleft()
            for action, target in self.edges(state):
                if target in inside and target not in seen and self.actions[action].op not in without:
                    seen.add(target)
                    came[target] = (state, action)
                    queue.append(target)
        out = []
        while goal != start:
            goal, action = came[goal]
            out.append(self.actions[action])
        out.reverse()
        return out


def _unstack(stack: list[int], on_stack: bytearray, root: int) -> list[int]:
    component = []
    while True:
        member = stack.pop()
        on_stack[member] = 0
        component.append(member)
        if member == root:
            break
    component.reverse()
    return component


def item_of(action: Action) -> Any:
    """Who moves in an action: the unit of fairness."""
    if action.op in ("run", "cont", "turn", "call", "commit"):
        return ("item", action.who, action.key)
    return (action.op, action.who, action.key)
