"""Whether a factored search can go on for ever, fairly: what may be left of the cycles of its graph.

A run that stays among some states for ever shows each controller a path of its own: through its inner states there, by
its own steps and by what it hears of others'. Where such a path can only go round by putting something off for ever (an
event is never delivered, an item never taken), the changes on it do not happen again and again. Those are taken out of
the cycle, for every controller, until nothing changes any more. What is left then may go on for ever; it need not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from steersman.check.graph import NONE, Graph, item_of
from steersman.check.reduce.inner import Inner
from steersman.kernel.action import NO_KEY, Action
from steersman.kernel.identity import digest

HEARD: Final = Action("hear", "", NO_KEY)
"""A step of somebody else: it is not this controller's to take."""
EVERY_EDGE: Final[frozenset[str]] = frozenset()

Passage = tuple[int, int, Any, tuple[int, ...], tuple[int, ...]]
"""One transition: state, target, what it is (a `factored.Edge`), and the sets of all controllers before and after."""


def lasting(inner: Inner, passages: Sequence[Passage]) -> list[Passage]:
    """The transitions, of these, that a fair run may take again and again."""
    left = _cyclic(passages)
    while left:
        before = len(left)
        for loop in range(len(inner.system.loops)):
            left = [passage for part in _parts(left) for passage in _fairly(inner, loop, part)]
        left = _cyclic(left)
        if len(left) == before:
            break
    return left


def _cyclic(passages: Iterable[Passage]) -> list[Passage]:
    return [passage for part in _parts(passages) for passage in part]


def _parts(passages: Iterable[Passage]) -> list[list[Passage]]:
    """The transitions inside each set of states that are connected both ways."""
    graph, every = Graph(), list(passages)
    numbers: dict[int, int] = {}
    leaving: dict[int, list[int]] = {}
    for passage in every:
        for state in passage[:2]:
            numbers.setdefault(state, graph.add(state << 64 | state, NONE, 0, 0)[0])
        leaving.setdefault(numbers[passage[0]], []).append(numbers[passage[1]])
    heard = graph.action(HEARD)
    for number, targets in sorted(leaving.items()):
        graph.expand(number)
        for target in targets:
            graph.edge(number, heard, target)
    of = {number: at for at, part in enumerate(graph.components(None, EVERY_EDGE)) for number in part}
    out: dict[int, list[Passage]] = {}
    for passage in every:
        here, there = of[numbers[passage[0]]], of[numbers[passage[1]]]
        if here == there:
            out.setdefault(here, []).append(passage)
    return list(out.values())


def _fairly(inner: Inner, loop: int, passages: Sequence[Passage]) -> list[Passage]:
    """Those that one controller can take part in again and again, without putting anything off for ever."""
    own = _Own(inner, loop)
    for passage in passages:
        own.passed(passage)
    kept = own.kept()
    return [passage for passage in passages if own.place(passage) in kept]


class _Own:
    """The paths of one controller among some states."""

    def __init__(self, inner: Inner, loop: int) -> None:
        self.inner, self.loop = inner, loop
        self._graph = Graph()
        self._places: dict[Any, None] = {}
        self._steps: dict[int, list[tuple[Action, int, Any]]] = {}
        """By node its steps: (action, target, the transition it is part of)."""
        self._known: set[int] = set()

    def place(self, passage: Passage) -> Any:
        """What this controller notices of a transition."""
        edge, before, after = passage[2:]
        mine = edge.loop == self.loop
        sets = self.inner.sets
        return (before[self.loop], sets[after[self.loop]].canonical, edge.changes, mine, edge.op if mine else "")

    def _node(self, which: int, number: int) -> int:
        place = digest(self.inner.sets[which].canonical, self.inner.print_of(number))
        node, new = self._graph.add(place, NONE, 0, 0)
        if new:
            self._steps[node] = []
        return node

    def passed(self, passage: Passage) -> None:
        """Takes in a transition: what it makes of each inner state."""
        place = self.place(passage)
        if place in self._places:
            return
        self._places[place] = None
        edge, before, after = passage[2:]
        loop, inner = self.loop, self.inner
        here, there = before[loop], after[loop]
        self._inside(here)
        self._inside(there)
        for number in inner.sets[here].members:
            node = self._node(here, number)
            if edge.loop == loop:
                wanted = (edge.move.op, edge.move.change)
                for step in inner.steps(number, loop).outer:
                    if (step.op, step.change) == wanted:
                        self._steps[node].append((step.action, self._node(there, step.target), place))
            else:
                became = number
                for change in edge.changes:
                    became = inner.hears(became, loop, change)
                self._steps[node].append((HEARD, self._node(there, became), place))

    def _inside(self, which: int) -> None:
        """Takes in a set: the inner steps of its members, and what else they could do."""
        if which in self._known:
            return
        self._known.add(which)
        self.inner.look()
        for number in self.inner.sets[which].members:
            node, steps = self._node(which, number), self.inner.steps(number, self.loop)
            self._steps[node] += [(action, self._node(which, target), None) for action, target in steps.inner]
            self._steps[node] += [(step.action, NONE, None) for step in steps.outer if not step.op]

    def kept(self) -> set[Any]:
        """What can be noticed again and again on fair paths."""
        graph = self._graph
        for node in range(len(graph)):
            graph.expand(node)
            for action, target, _ in self._steps[node]:
                if target != NONE:
                    graph.edge(node, graph.action(action), target)
        out: set[Any] = set()
        work = list(graph.components(None, EVERY_EDGE))
        while work:
            part = work.pop()
            inside, moved, places = set(part), set(), set()
            for node in part:
                for action, target, place in self._steps[node]:
                    if target in inside:
                        moved.add(item_of(action))
                        places.add(place)
            unfair = {
                node
                for node in part
                if any(item_of(action) not in moved for action, _, _ in self._steps[node] if action != HEARD)
            }
            if not unfair:
                out |= places
            elif len(unfair) < len(part):
                work.extend(graph.components([node for node in part if node not in unfair], EVERY_EDGE))
        return out
