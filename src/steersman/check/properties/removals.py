"""How often a search removes what: for 'no extra deletion'."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Final

from steersman.check.graph import NONE, Graph
from steersman.check.properties.changes import Slot
from steersman.kernel.action import Action
from steersman.kernel.effect import Event

EVERY_EDGE: Final[frozenset[str]] = frozenset()


class Removals:
    """What each transition of a search removed."""

    def __init__(self) -> None:
        self._of_edge: dict[int, tuple[Slot, ...]] = {}

    def note(self, edge: int, events: Iterable[Event]) -> None:
        """Notes what a transition committed."""
        gone = tuple([Slot.of(event.obj) for event in events if event.new is None])
        if gone:
            self._of_edge[edge] = gone

    def since(self, edge: int) -> list[tuple[int, tuple[Slot, ...]]]:
        """What transitions from this number on removed."""
        return list(takewhile(lambda noted: noted[0] >= edge, reversed(self._of_edge.items())))[::-1]

    def again(self, edge: int, gone: tuple[Slot, ...]) -> None:
        """Notes what a transition removed in another process."""
        self._of_edge[edge] = gone

    def move(self, edges: Mapping[int, int]) -> None:
        """Transitions have got new numbers."""
        for old, new in edges.items():
            if old in self._of_edge:
                self._of_edge[new] = self._of_edge.pop(old)

    def clear(self) -> None:
        """The search starts again."""
        self._of_edge.clear()

    def slots(self) -> list[Slot]:
        """Whatever was removed at all."""
        return sorted({slot for gone in self._of_edge.values() for slot in gone})

    def counted(self, graph: Graph, slot: Slot) -> Counted:
        """How often a slot is removed on the paths of a search."""
        return Counted(graph, {edge: gone.count(slot) for edge, gone in self._of_edge.items() if slot in gone})


class Counted:
    """The longest paths of a graph by the weights of its transitions. Strongly connected states count as one, and what
    leads from one of them to another for nothing."""

    def __init__(self, graph: Graph, weight: Mapping[int, int]) -> None:
        self._graph = graph
        self._via = array("I", [NONE]) * len(graph)
        """The transition by which a component (its first state) is best come to, and the state it leaves from."""
        self._from = array("I", [NONE]) * len(graph)
        self._of = array("I", [NONE]) * len(graph)
        """The first state of each state's component."""
        self._heavy: list[tuple[int, int, int]] = []
        """(weight of the longest path that ends with it, state, transition) of those that weigh anything."""
        components = list(graph.components(None, EVERY_EDGE))
        for component in components:
            for state in component:
                self._of[state] = component[0]
        best = array("I", bytes(4 * len(graph)))
        for component in reversed(components):  # what leads to a component comes before it
            for state in component:
                self._go_on(state, best, weight)

    def _go_on(self, state: int, best: array[int], weight: Mapping[int, int]) -> None:
        here = self._of[state]
        for edge, target in self._graph.numbered(state):
            there, more = self._of[target], weight.get(edge, 0)
            if there == here:
                continue
            count = best[here] + more
            if more:
                self._heavy.append((count, state, edge))
            if count > best[there] or self._via[there] == NONE:
                best[there], self._via[there], self._from[there] = count, edge, state

    @property
    def most(self) -> int:
        """The weight of the longest path."""
        return max([count for count, _, _ in self._heavy], default=0)

    def beyond(self, allowed: int) -> Iterator[list[Action]]:
        """Paths that weigh more, each up to the transition by which it does; the shortest first."""
        for _, state, edge in sorted([heavy for heavy in self._heavy if heavy[0] > allowed], key=lambda h: h[1:]):
            yield self._path(state, edge)

    def _path(self, goal: int, edge: int) -> list[Action]:
        graph = self._graph
        out: list[Action] = [graph.actions[graph.edge_action[edge]]]
        while True:
            here = self._of[goal]
            members = {state for state in range(len(graph)) if self._of[state] == here}
            edge = self._via[here]
            entry = 0 if edge == NONE else graph.edge_target[edge]
            out[:0] = graph.within(entry, goal, members, EVERY_EDGE)
            if edge == NONE:
                return out
            out.insert(0, graph.actions[graph.edge_action[edge]])
            goal = self._from[here]
