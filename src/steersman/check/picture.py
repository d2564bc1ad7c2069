"""A picture of a graph of states: all of a small one; of a large one the ways to what matters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from steersman.check.graph import NONE, Graph
from steersman.check.verdict import Verdict, plural
from steersman.kernel.action import Action

MAX_STATES: Final = 2_000
"""States of a picture: more are a blot on any screen, and slow in a browser."""
MAX_EDGES: Final = 12_000
"""Transitions of a picture, for the same reason; a state has about three."""


@dataclass(frozen=True, slots=True)
class Spot:
    """One state in a picture."""

    state: int
    """Its number in the search, from 0."""
    depth: int
    """Steps from the start."""
    parent: int
    """The place in the picture of the state before it on a shortest way; -1: none."""
    via: int
    """The action of that step; -1: none."""
    store: int
    """Equal numbers, equal stores."""
    mark: str
    """"" | start | end (runs rest there) | violated (a way to a violation ends there) | loop | open (not expanded)"""


@dataclass(frozen=True, slots=True)
class Picture:
    """What is drawn of a graph."""

    said: str
    """What of the graph it is."""
    spots: list[Spot]
    edges: list[tuple[int, int, int]]
    """(from, to, action) by places."""
    actions: list[str]
    """Labels."""


def picture(graph: Graph, verdict: Verdict, ends: Sequence[Sequence[Action]]) -> Picture | None:
    """What to draw of a finished search; None where there was none (walks, a replay)."""
    if not len(graph):
        return None
    bad = [_along(graph, [*violation.actions, *violation.cycle]) for violation in verdict.violations]
    good = [_along(graph, way) for way in ends]
    cycles = [len(violation.cycle) for violation in verdict.violations]
    loops = [way[-steps:] for way, steps in zip(bad, cycles, strict=True) if steps]
    whole = len(graph) <= MAX_STATES
    shown = list(range(len(graph))) if whole else _some(graph, [*bad, *good])
    marks = {way[-1]: "end" for way in good}
    marks |= {state: "loop" for loop in loops for state in loop}
    marks |= {way[-1]: "violated" for way in bad if marks.get(way[-1]) != "loop"}
    return _drawn(graph, shown, marks, verdict)


def _some(graph: Graph, ways: Iterable[Sequence[int]]) -> list[int]:
    """The states of as many ways as there is room for, each with the way to it, in order."""
    found: set[int] = {0}
    for way in ways:
        new = {before for state in way for before in _back(graph, state)} - found
        if len(found) + len(new) <= MAX_STATES:
            found |= new
    return sorted(found)


def _back(graph: Graph, state: int) -> Iterator[int]:
    while state != NONE:
        yield state
        state = graph.parent[state]


def _along(graph: Graph, actions: Iterable[Action]) -> list[int]:
    """The states on a way. Steps that a reduction has left out of the graph stay where they are."""
    here, out = 0, [0]
    for action in actions:
        number = graph.by_action.get(action)
        here = next((target for taken, target in graph.edges(here) if taken == number), here)
        out.append(here)
    return out


def _drawn(graph: Graph, shown: list[int], marks: dict[int, str], verdict: Verdict) -> Picture:
    places = {state: at for at, state in enumerate(shown)}
    actions: dict[int, int] = {}
    depths: dict[int, int] = {}
    spots: list[Spot] = []
    edges: list[tuple[int, int, int]] = []
    for state in shown:
        before = graph.parent[state]
        depths[state] = 0 if before == NONE else depths[before] + 1
        via = -1 if before == NONE else actions.setdefault(graph.via[state], len(actions))
        mark = marks.get(state) or _plain(graph, state)
        spots.append(Spot(state, depths[state], places.get(before, -1), via, graph.stores[state], mark))
        for action, target in graph.edges(state):
            if target in places and len(edges) < MAX_EDGES:
                edges.append((places[state], places[target], actions.setdefault(action, len(actions))))
    return Picture(_said(graph, len(shown), verdict), spots, edges, [graph.actions[number].label for number in actions])


def _plain(graph: Graph, state: int) -> str:
    if not graph.was_expanded(state):
        return "open"
    return "end" if graph.is_quiet(state) else "" if state else "start"


def _said(graph: Graph, shown: int, verdict: Verdict) -> str:
    if shown == len(graph):
        bounded = "" if verdict.complete else "; BOUNDED: not all there are"
        return f"all {plural(shown, 'state')} that were visited{bounded}"
    return (
        f"{shown:,} of {plural(len(graph), 'state')}: the ways to what is violated and to where runs come to rest "
        f"(a graph of up to {MAX_STATES:,} states is shown whole)"
    )
