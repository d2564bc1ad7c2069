"""Replay: follows a schedule step by step, and judges what can be judged on one run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from steersman.check import rest
from steersman.check.explore import Explorer
from steersman.check.graph import item_of
from steersman.check.properties import convergence
from steersman.check.scenario import State, judge, state_of
from steersman.check.verdict import Verdict, Violation
from steersman.kernel.action import Action
from steersman.kernel.faults import FAULTY
from steersman.kernel.fingerprint import fingerprint
from steersman.kernel.schedule import Replay, Schedule
from steersman.kernel.system import Learned
from steersman.kernel.transition import enabled
from steersman.kernel.world import World

MAX_STEPS: Final = 10_000
"""Steps of a run that never comes to rest."""


class Turns:
    """The Policy that lets everybody move in turn, and nothing go wrong."""

    def __init__(self) -> None:
        self._moved: dict[object, int] = {}
        self._turn = 0

    def choose(self, world: World, enabled: Sequence[Action]) -> Action | None:
        """The action of who has not moved for longest."""
        ordinary = [action for action in enabled if action.op not in FAULTY]
        if not ordinary:
            return None
        action = min(ordinary, key=lambda action: self._moved.get(item_of(action), 0))
        self._turn += 1
        self._moved[item_of(action)] = self._turn
        return action


class Follower:
    """One schedule in one scenario; uses an `Explorer` for its system, properties and verdict."""

    def __init__(self, explorer: Explorer, schedule: Schedule, lenient: bool = False) -> None:
        self.explorer = explorer
        self.schedule = schedule
        self.lenient = lenient
        """Skip steps that are not possible, and after the last go on, everybody in turn, until the run is at rest:
        what a test of a mended controller wants."""

    def run(self) -> Verdict:
        """The verdict says what the run breaks. Raises `ScheduleError` at a step that is not possible."""
        verdict = self.explorer.verdict
        verdict.incomplete, verdict.cut = "one schedule replayed", True
        while True:
            try:
                self._follow()
                return verdict
            except Learned as learned:
                self.explorer.system.learn(learned)
                self.explorer.defaults.again()
                verdict.violations.clear()

    def _follow(self) -> None:
        explorer, verdict = self.explorer, self.explorer.verdict
        world = explorer.scenario.world(explorer.system)
        policy = Replay(self.schedule, self.lenient)
        turns = Turns() if self.lenient else None
        taken: list[Action] = []
        broken: set[str] = set()
        explorer.forget_findings()
        been: dict[int, tuple[int, int]] = {}
        after: dict[int, tuple[int, int]] | None = None
        ended: list[list[rest.Ended]] = []
        able: list[frozenset[object]] = []
        writes = 0
        while True:
            explorer.report_on(tuple(taken))
            writes += bool(world.events)
            here = fingerprint(world)
            state = state_of(explorer.scenario, world)
            for prop in explorer.scenario.properties:
                if prop.kind == "always" and prop.name not in broken:
                    wrong = judge(prop, state)
                    if wrong is not None:
                        broken.add(prop.name)
                        verdict.violations.append(Violation("always", prop.name, wrong, tuple(taken)))
            actions = enabled(world)
            action = policy.choose(world, actions)
            if action is None and turns is not None and len(taken) < MAX_STEPS:
                if after is None:
                    after = been = {}  # a cycle is closed by what comes after the schedule
                if here not in been or not _everybody(taken, able, been[here][0]):
                    action = turns.choose(world, actions)
            if action is None:
                break
            able.append(frozenset([item_of(each) for each in actions if each.op not in FAULTY]))
            if after is None:
                been[here] = (len(taken), writes)
            else:
                been.setdefault(here, (len(taken), writes))
            world, finished = rest.noted(world, action)
            ended.append(finished)
            taken.append(action)
        verdict.replayed = len(taken)
        start, before = been.get(here, (len(taken), writes))
        if before < writes:
            claimed = any(prop.kind != "always" for prop in explorer.scenario.properties)
            way, cycle = taken[:start], taken[start:]
            verdict.violations += explorer.defaults.livelock(explorer.world_at(way), way, cycle, claimed)
            return
        for_ever = start < len(taken) and _everybody(taken, able, start)
        at_rest = for_ever or all(action.op in FAULTY for action in actions)
        if at_rest:
            finished = [end for ends in ended[start:] for end in ends]
            self._at_rest(state, taken, start, rest.failing(world, finished))
            verdict.violations += explorer.defaults.at_rest(world, taken[:start], taken[start:], finished)
        verdict.unjudged = self._unjudged(at_rest)

    def _unjudged(self, at_rest: bool) -> str:
        properties = self.explorer.scenario.properties
        names = [] if at_rest else [repr(prop.name) for prop in properties if prop.kind == "converges"]
        said = []
        if names:
            are = "is" if len(names) == 1 else "are"
            said.append(f"the run is not at rest at the end, so {' and '.join(names)} {are} not judged")
        if any(prop.kind == "confluence" for prop in properties):
            said.append("confluence is not judged on one run")
        return "; ".join(said)

    def _at_rest(self, state: State, taken: list[Action], start: int, failing: str) -> None:
        """Judges convergence where nothing changes any more: at the end, or in a cycle of everybody that can move."""
        for prop in self.explorer.scenario.properties:
            wrong = judge(prop, state) if prop.kind == "converges" else None
            if wrong is not None:
                message = f"nothing changes any more, but {failing or wrong}"
                path, cycle = tuple(taken[:start]), tuple(taken[start:])
                self.explorer.verdict.violations.append(Violation("converges", prop.name, message, path, cycle))
                self.explorer.defaults.told(convergence.ABOUT.name)


def _everybody(taken: Sequence[Action], able: Sequence[frozenset[object]], start: int) -> bool:
    """Whether everybody who could move from a step on did."""
    moved = {item_of(action) for action in taken[start:]}
    return all(items <= moved for items in able[start:])
