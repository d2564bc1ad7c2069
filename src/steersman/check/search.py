"""Seeded random walks: for what is too large to be searched exhaustively. Always BOUNDED.

A walk takes one enabled Action after another until nothing is left to do. Its seed makes it repeatable; what it finds
is minimised by lenient replay. Who goes first is told by `strategies`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from time import perf_counter
from typing import TYPE_CHECKING, Final

from steersman.check.alike import likeness
from steersman.check.explore import INTERRUPTED, Explorer
from steersman.check.guard import FAILED, FAILURES
from steersman.check.reduce.paths import in_calls
from steersman.check.scenario import Property, judge, state_of
from steersman.check.shrink import minimise, replay
from steersman.check.spread import ENOUGH_VIOLATIONS
from steersman.check.strategies import Draw, Strategy
from steersman.check.verdict import Verdict, Violation, ending_differently, said, unproved
from steersman.check.workers import Lesson, Walk, walked
from steersman.kernel.action import Action
from steersman.kernel.faults import FAULTY
from steersman.kernel.system import Learned
from steersman.kernel.transition import apply, enabled
from steersman.kernel.world import World

if TYPE_CHECKING:
    from steersman.check.cluster import Cluster

DEFAULT_DEPTH: Final = 2_000
"""Steps of a walk that does not come to rest."""
MIXED: Final = Strategy()
ALONE: Final = 64
"""Walks of the first process before others are started: what controllers are like is learned once, for all."""


class Walker:
    """Random walks over one scenario; uses an `Explorer` for its system, properties and verdict."""

    def __init__(
        self,
        explorer: Explorer,
        walks: int,
        seed: int,
        strategy: Strategy = MIXED,
        workers: int = 1,
        cluster: Cluster | None = None,
    ) -> None:
        self.explorer = explorer
        self.walks = walks
        self.seed = seed
        self.strategy = strategy
        self.workers = workers
        self.cluster = cluster
        """Who makes the walks, but for the first."""
        self.lessons: list[Lesson] = []
        """What was learned, in order."""
        self.ends: dict[int, tuple[Action, ...]] = {}
        self.unlike: dict[int, list[Action]] = {}
        """Ways to ends that are not alike, where that counts."""
        self._reported: set[str] = set()
        self._noted: list[tuple[str, Violation]] = []
        self._end: tuple[int, int, tuple[Action, ...]] | None = None
        self._elsewhere = 0
        """Executions in other processes."""
        self._start = 0.0
        self._confluent = any(prop.kind == "confluence" for prop in explorer.scenario.properties)

    def run(self) -> Verdict:
        """Walks with seeds seed, seed + 1, …"""
        verdict = self.explorer.verdict
        self._start = perf_counter()
        verdict.bounds |= {"walks": self.walks, "seed": self.seed, **self.strategy.shown()}
        verdict.incomplete, verdict.cut = "random walks", True
        try:
            while True:
                try:
                    if self._alone(min(self.walks, ALONE) if self.workers > 1 or self.cluster else self.walks):
                        self._together()
                    break
                except Learned as learned:
                    self._learn(learned)
        except KeyboardInterrupt:
            verdict.incomplete = INTERRUPTED
        except FAILURES as error:
            verdict.failed, verdict.incomplete = error, FAILED
        if verdict.incomplete == "random walks":
            verdict.incomplete = unproved(self.explorer.system) or "random walks"
        verdict.reads = self.explorer.reads()
        self.explorer.ways.extend([self._in_calls(way) for way in self.ends.values()])
        self._count()
        return verdict

    def _alone(self, walks: int) -> bool:
        """The first walks, in this process. Whether there is to be another one."""
        for number in range(walks):
            if self._over():
                return False
            self._walk(self.strategy.walk(self.seed + number))
            full = self.explorer.look(self._count)
            if full:
                self.explorer.verdict.incomplete = f"random walks, {full}"
                return False
        return walks < self.walks and not self._over()

    def _together(self) -> None:
        """The other walks, in other processes, here or elsewhere."""
        if self.cluster is None:
            walks = walked(self, ALONE, self.workers, self._late)
        else:
            walks = self.cluster.walked(self, ALONE, self._late)
        with closing(walks):
            self._taken_in(walks)

    def _taken_in(self, walks: Iterable[Walk | None]) -> None:
        verdict = self.explorer.verdict
        for walk in walks:
            if walk is None or walk.full:
                why = "a process of them has died" if walk is None else walk.full
                verdict.incomplete = f"random walks, {why}"
                return
            self._elsewhere += walk.executions
            if walk.lesson is not None:
                raise walk.lesson.learned()
            verdict.states += walk.states
            verdict.transitions += walk.transitions
            for key, violation in walk.violations:
                if key != "confluence" and key not in self._reported:
                    self._reported.add(key)
                    verdict.violations.append(violation)
            walk.told(self.explorer.system)
            self.explorer.assume_reads(walk.reads)
            if walk.end is not None:
                self._ended(*walk.end)
            self.explorer.look(self._count)
            if self._over():
                return
        self._over()

    def _over(self) -> bool:
        """Whether enough was found, or there is no time left."""
        return len(self.explorer.verdict.violations) >= ENOUGH_VIOLATIONS or self._late()

    def _late(self) -> bool:
        most = self.explorer.bounds.max_seconds
        if most is None or perf_counter() - self._start <= most:
            return False
        self.explorer.verdict.incomplete = f"random walks, stopped after {most:g} s"
        return True

    def share(self, workers: int) -> None:
        """From here on this is one of several processes."""
        self.explorer.share(workers)

    def one(self, number: int) -> Walk:
        """A walk, told to another process."""
        explorer, verdict = self.explorer, self.explorer.verdict
        before = explorer.system.reexec.executions
        verdict.states = verdict.transitions = 0
        self._noted, self._end = [], None
        lesson = None
        try:
            self._walk(self.strategy.walk(self.seed + number))
        except Learned as learned:
            lesson = Lesson.of(learned)
        system = explorer.system
        return Walk(
            verdict.states,
            verdict.transitions,
            system.reexec.executions - before,
            tuple(self._noted),
            self._end,
            lesson,
            (frozenset(system.raw_time), frozenset(system.raw_random)),
            explorer.reads(),
            explorer.look(self._count),
        )

    def _count(self) -> None:
        verdict = self.explorer.verdict
        verdict.converged = len(self.ends)
        verdict.executions = self.explorer.system.reexec.executions + self._elsewhere
        verdict.seconds = perf_counter() - self._start

    def _learn(self, learned: Learned) -> None:
        """Starts again: states are told apart in another way from here on."""
        verdict = self.explorer.verdict
        self.lessons.append(Lesson.of(learned))
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
        self._findings(taken)

    def _judge_always(self, world: World, taken: list[Action]) -> None:
        state = state_of(self.explorer.scenario, world)
        for prop in self.explorer.scenario.properties:
            if prop.kind == "always" and prop.name not in self._reported:
                wrong = judge(prop, state)
                if wrong is not None:
                    self._reported.add(prop.name)

                    def bad(candidate: World, prop: Property = prop) -> bool:
                        return judge(prop, state_of(self.explorer.scenario, candidate)) is not None

                    self._add(prop.name, Violation("always", prop.name, wrong, tuple(self._shrink(taken, bad))))

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
                wrong = judge(prop, state_of(scenario, world))
                if wrong is not None:
                    self._reported.add(prop.name)

                    def bad(candidate: World, prop: Property = prop) -> bool:
                        at_rest = all(action.op in FAULTY for action in enabled(candidate))
                        return at_rest and judge(prop, state_of(scenario, candidate)) is not None

                    message = f"nothing changes any more, but {wrong}"
                    self._add(prop.name, Violation("converges", prop.name, message, tuple(self._shrink(taken, bad))))
        for violation in self.explorer.defaults.at_rest(world, taken):
            self._add(f"out of the box/{violation.name}", violation)
        if world.contents not in self.ends:
            self._ended(world.contents, likeness(world) if self._confluent else 0, tuple(taken))

    def _ended(self, contents: int, like: int, way: tuple[Action, ...]) -> None:
        """Notes where a walk came to rest."""
        if contents in self.ends:
            return
        self.ends[contents] = way
        self._end = (contents, like, way)
        if self._confluent and "confluence" not in self._reported:
            self.unlike.setdefault(like, list(way))
            if len(self.unlike) > 1:
                self._reported.add("confluence")
                self._add("confluence", ending_differently(list(self.unlike.values())))

    def _findings(self, taken: list[Action]) -> None:
        for (kind, who), finding in self.explorer.system.reexec.findings.items():
            key = f"{kind}/{who}"
            if key not in self._reported:
                self._reported.add(key)
                if not self.explorer.defaults.ignores(finding):
                    self._add(key, Violation("finding", kind, said(finding), tuple(taken)))

    def _in_calls(self, way: Sequence[Action]) -> tuple[Action, ...]:
        return in_calls(self.explorer.scenario, self.explorer.system, way)

    def _add(self, key: str, violation: Violation) -> None:
        violation.actions = self._in_calls(violation.actions)
        violation.other = self._in_calls(violation.other)
        self.explorer.verdict.violations.append(violation)
        self._noted.append((key, violation))
