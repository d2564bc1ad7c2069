"""Seeded random walks: for what is too large to be searched exhaustively. Always BOUNDED.

A walk takes one enabled Action after another until nothing is left to do. Its seed makes it repeatable; what it finds
is minimised by lenient replay. Who goes first is told by `strategies`.
"""

from __future__ import annotations

import time
from typing import Final

from steersman.check.alike import likeness
from steersman.check.explore import ENOUGH_VIOLATIONS, INTERRUPTED, Explorer, ending_differently, judge, said
from steersman.check.scenario import Property, State
from steersman.check.shrink import minimise, replay
from steersman.check.strategies import Draw, Strategy
from steersman.check.verdict import Verdict, Violation
from steersman.kernel.action import Action
from steersman.kernel.faults import FAULTY
from steersman.kernel.system import Learned
from steersman.kernel.transition import apply, enabled
from steersman.kernel.world import World

DEFAULT_DEPTH: Final = 2_000
"""Steps of a walk that does not come to rest."""
MIXED: Final = Strategy()


class Walker:
    """Random walks over one scenario; uses an `Explorer` for its system, properties and verdict."""

    def __init__(self, explorer: Explorer, walks: int, seed: int, strategy: Strategy = MIXED) -> None:
        self.explorer = explorer
        self.walks = walks
        self.seed = seed
        self.strategy = strategy
        self.ends: dict[int, tuple[Action, ...]] = {}
        self.unlike: dict[int, list[Action]] = {}
        """Ways to ends that are not alike, where that counts."""
        self._reported: set[str] = set()

    def run(self) -> Verdict:
        """Walks with seeds seed, seed + 1, …"""
        verdict, bounds = self.explorer.verdict, self.explorer.bounds
        start = time.perf_counter()
        verdict.bounds |= {"walks": self.walks, "seed": self.seed, **self.strategy.shown()}
        verdict.incomplete, verdict.cut = "random walks", True
        number = 0
        try:
            while number < self.walks and len(verdict.violations) < ENOUGH_VIOLATIONS:
                if bounds.max_seconds is not None and time.perf_counter() - start > bounds.max_seconds:
                    verdict.incomplete = f"random walks, stopped after {bounds.max_seconds:g} s"
                    break
                try:
                    self._walk(self.strategy.walk(self.seed + number))
                except Learned as learned:
                    self._learn(learned)
                    number = 0
                    continue
                number += 1
                full = self.explorer.look(lambda: self._count(start))
                if full:
                    verdict.incomplete = f"random walks, {full}"
                    break
        except KeyboardInterrupt:
            verdict.incomplete = INTERRUPTED
        if verdict.incomplete == "random walks":
            verdict.incomplete = self.explorer.unproved() or "random walks"
        verdict.reads = self.explorer.reads()
        self.explorer.ways.extend(self.ends.values())
        self._count(start)
        return verdict

    def _count(self, start: float) -> None:
        verdict = self.explorer.verdict
        verdict.converged = len(self.ends)
        verdict.executions = self.explorer.system.reexec.executions
        verdict.seconds = time.perf_counter() - start

    def _learn(self, learned: Learned) -> None:
        """Starts again: states are told apart in another way from here on."""
        verdict = self.explorer.verdict
        self.explorer.system.learn(learned)
        self.explorer.defaults.again()
        self.ends.clear()
        self.unlike.clear()
        self._reported.clear()
        verdict.violations.clear()
        verdict.states = verdict.transitions = 0

    def _walk(self, draw: Draw) -> None:
        explorer, verdict = self.explorer, self.explorer.verdict
        world = explorer.scenario.world(explorer.system)
        taken: list[Action] = []
        judged = {world.contents}
        depth = explorer.bounds.max_depth or DEFAULT_DEPTH
        while len(taken) < depth:
            action = draw.choose(enabled(world))
            if action is None:
                self._at_rest(world, taken)
                break
            world = apply(world, action)
            taken.append(action)
            verdict.transitions += 1
            if world.contents not in judged:
                judged.add(world.contents)
                verdict.states += 1
                self._judge_always(world, taken)
            self._findings(taken)
        else:
            if not enabled(world):
                self._at_rest(world, taken)

    def _judge_always(self, world: World, taken: list[Action]) -> None:
        state = State(world.store, self.explorer.scenario.kinds, world.outside)
        for prop in self.explorer.scenario.properties:
            if prop.kind == "always" and prop.name not in self._reported:
                wrong = judge(prop, state)
                if wrong is not None:
                    self._reported.add(prop.name)

                    def bad(candidate: World, prop: Property = prop) -> bool:
                        return (
                            judge(prop, State(candidate.store, self.explorer.scenario.kinds, candidate.outside))
                            is not None
                        )

                    self._add(Violation("always", prop.name, wrong, tuple(self._shrink(taken, bad))))

    def _shrink(self, taken: list[Action], bad: object) -> list[Action]:
        first = self.explorer.scenario.world(self.explorer.system)

        def reproduces(candidate: object) -> list[Action] | None:
            done, _, found = replay(first, candidate, bad)  # type: ignore[arg-type]
            return done if found else None

        return minimise(taken, reproduces)

    def _at_rest(self, world: World, taken: list[Action]) -> None:
        scenario = self.explorer.scenario
        for prop in scenario.properties:
            if prop.kind == "converges" and prop.holds is not None and prop.name not in self._reported:
                wrong = judge(prop, State(world.store, scenario.kinds, world.outside))
                if wrong is not None:
                    self._reported.add(prop.name)

                    def bad(candidate: World, prop: Property = prop) -> bool:
                        at_rest = all(action.op in FAULTY for action in enabled(candidate))
                        return (
                            at_rest
                            and judge(prop, State(candidate.store, scenario.kinds, candidate.outside)) is not None
                        )

                    message = f"nothing changes any more, but {wrong}"
                    self._add(Violation("converges", prop.name, message, tuple(self._shrink(taken, bad))))
        self.explorer.verdict.violations += self.explorer.defaults.at_rest(world, taken)
        if world.contents in self.ends:
            return
        self.ends[world.contents] = tuple(taken)
        if "confluence" not in self._reported and any(prop.kind == "confluence" for prop in scenario.properties):
            self.unlike.setdefault(likeness(world), list(taken))
            if len(self.unlike) > 1:
                self._reported.add("confluence")
                self._add(ending_differently(list(self.unlike.values())))

    def _findings(self, taken: list[Action]) -> None:
        for (kind, who), finding in self.explorer.system.reexec.findings.items():
            if f"{kind}/{who}" not in self._reported:
                self._reported.add(f"{kind}/{who}")
                if not self.explorer.defaults.ignores(finding):
                    self._add(Violation("finding", kind, said(finding), tuple(taken)))

    def _add(self, violation: Violation) -> None:
        self.explorer.verdict.violations.append(violation)
