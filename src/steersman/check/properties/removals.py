"""How often a search removes what: for 'no extra deletion'."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from typing import Final

from steersman.check.graph import NONE, Graph
from steersman.check.properties.changes import Slot
from steersman.kernel.action import Action
from steersman.kernel.effect import Event

EVERY_EDGE: Final[frozenset[str]] = frozenset()


class Removals:
    """What each transition of a search made and removed."""

    def __init__(self) -> None:
        self._of_edge: dict[int, tuple[tuple[Slot, int], ...]] = {}
        self._kept: dict[tuple[tuple[Slot, int], ...], tuple[tuple[Slot, int], ...]] = {}

    def note(self, edge: int, events: Iterable[Event]) -> None:
        """Notes what a transition committed."""
        counts: dict[Slot, int] = {}
        for event in events:
            if event.new is None or event.old is None:
                slot = Slot.of(event.obj)
                counts[slot] = counts.get(slot, 0) + (1 if event.new is None else -1)
        if counts:
            counted = tuple(counts.items())
            self._of_edge[edge] = self._kept.setdefault(counted, counted)

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
        return sorted({slot for counted in self._kept for slot, count in counted if count > 0})

    def most(self, graph: Graph, slot: Slot) -> Most:
        """On which path a slot is removed most often, those left out that were made on it: what is made in addition may
        be removed in addition. That nothing is removed for ever is taken for granted: a cycle counts for nothing."""
        weights = {edge: dict(counted).get(slot, 0) for edge, counted in self._of_edge.items()}
        return Most(graph, weights)


class Most:
    """The longest path of a graph by the weights of its transitions, up to one that removes; strongly connected states
    count as one."""

    def __init__(self, graph: Graph, weight: Mapping[int, int]) -> None:
        self._graph = graph
        self._via = array("I", [NONE]) * len(graph)
        """The transition by which a component (its first state) is best come to, and the state it leaves from."""
        self._from = array("I", [NONE]) * len(graph)
        self._of = array("I", [NONE]) * len(graph)
        """The first state of each state's component."""
        self.count: int | None = None
        """Removals less creations on that path; None when nothing is removed."""
        self._end = (0, NONE)
        components = list(graph.components(None, EVERY_EDGE))
        for component in components:
            for state in component:
                self._of[state] = component[0]
        best = array("i", bytes(4 * len(graph)))
        for component in reversed(components):  # what leads to a component comes before it
            for state in component:
                self._from_here(state, best, weight)

    def _from_here(self, state: int, best: array[int], weight: Mapping[int, int]) -> None:
        here = self._of[state]
        for edge, target in self._graph.numbered(state):
            there, change = self._of[target], weight.get(edge, 0)
            count = best[here] + change
            if change > 0 and (self.count is None or count > self.count):
                self.count, self._end = count, (state, edge)
            if there != here and (count > best[there] or self._via[there] == NONE):
                best[there], self._via[there], self._from[there] = count, edge, state

    def path(self) -> list[Action]:
        """Such a path, with the removal at its end."""
        graph = self._graph
        goal, edge = self._end
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
