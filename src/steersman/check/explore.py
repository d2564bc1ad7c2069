"""Exhaustive stateful search: every state once, breadth first, and what the finished graph says.

A state is expanded once, found again by its fingerprint. `always` is judged in every new state, so its counterexamples
are shortest; convergence, confluence and livelock are judged on the graph's recurrences when it is complete.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from time import perf_counter
from typing import Any, Final

from steersman.check import caches, memory, rest
from steersman.check.alike import likeness
from steersman.check.bounds import Bounds as Bounds
from steersman.check.graph import NONE, Graph, Recurrence
from steersman.check.guard import FAILED, FAILURES, held, take
from steersman.check.part import Listener, Waiting
from steersman.check.properties import convergence
from steersman.check.properties.judge import TIME, Judge
from steersman.check.properties.removals import Removals
from steersman.check.proved import FIRST_STATES, prove
from steersman.check.reduce.lazy import Lazy
from steersman.check.reduce.paths import in_calls
from steersman.check.reduce.reducer import Reducer
from steersman.check.scenario import Property, Scenario, State, judge, state_of
from steersman.check.sets import Backwards
from steersman.check.spread import ENOUGH_VIOLATIONS, NOWHERE, Anew, again, ready, spread
from steersman.check.verdict import Verdict, Violation, ending_differently, plural, said, unproved
from steersman.kernel.action import NO_KEY, Action
from steersman.kernel.faults import EVENTS, FAULTY
from steersman.kernel.fingerprint import fingerprint
from steersman.kernel.reexec import Finding, Recall
from steersman.kernel.system import Learned, System
from steersman.kernel.transition import apply, enabled
from steersman.kernel.world import World

START_ACTION: Final = Action("start", "", NO_KEY)
INTERRUPTED: Final = "interrupted"
"""`Verdict.incomplete` after Ctrl-C."""
PROGRESS_SECONDS: Final = 1.0
"""Between two reports of a search that goes on."""
LOOK_EVERY: Final = 32
"""Expansions between two looks at the clock and at memory."""
LEAST_UNDISTURBED: Final = 2_000
"""States that the search without faults may have, however small the one is that it is compared with."""


class Explorer:
    """One exhaustive search of one scenario."""

    def __init__(
        self,
        scenario: Scenario,
        bounds: Bounds | None = None,
        *,
        read_memo: bool = True,
        write_memo: bool = True,
        canonical: bool = True,
        settle: bool = True,
        clusters: bool = True,
        sleep: bool = True,
        symmetry: bool = True,
        lazy: bool = True,
        factored: bool = True,
        twice: bool = True,
        without: Iterable[str] = (),
        comparing: bool = True,
        progress: Callable[[Verdict], None] | None = None,
        recall: Recall | None = None,
        workers: int = 1,
    ) -> None:
        self.scenario = scenario
        self.bounds = bounds or Bounds()
        self.defaults = Judge((*scenario.off, *without))
        """The properties out of the box."""
        self.comparing = comparing
        """Whether what was found is compared with a search without faults."""
        self.removed = Removals()
        faults = [number for name, number in self.bounds.faults.items() if name not in EVENTS]
        self._faulty = not comparing or bool(self.bounds.lag or any(faults))
        self._switches: dict[str, Any] = {"read_memo": read_memo, "write_memo": write_memo, "canonical": canonical}
        reductions = {"settle": settle, "clusters": clusters, "sleep": sleep, "symmetry": symmetry, "lazy": lazy}
        self._switches |= reductions | {"recall": recall, "factored": factored}
        self.progress = progress
        self.write_memo = write_memo
        self.new_system = partial(_system, scenario, self.bounds, canonical, write_memo, read_memo, twice)
        self.system = self.new_system()
        self.system.reexec.recall = recall if read_memo else None
        self.verdict = Verdict(scenario.name, bounds=self.bounds.shown(), claimed=bool(scenario.properties))
        self._memory = memory.limit(self.bounds.max_memory)
        self._reported_at = perf_counter()
        self._expanded = 0
        self.workers = workers
        self.elsewhere = NOWHERE
        """What the memos of other processes did."""
        self.listener: Listener = self
        """Who hears of what is wrong."""
        self.reducer = Reducer(self.system, **reductions, portable=workers > 1)
        memos = {"read-set memo": read_memo, "write memo": write_memo, "canonical form": canonical}
        self._memos = tuple([name for name, on in memos.items() if on])
        self.verdict.reductions = (*self._memos, *self.reducer.names)
        self._may_prove = factored and workers == 1
        self.graph = Graph()
        self._always = [p for p in scenario.properties if p.kind == "always"]
        self._judged: dict[int, bool] = {}
        self.stores: dict[int, int] = {}
        self._seen_findings: set[tuple[str, str]] = set()
        self.last_states: list[int] = []
        """One state of each end, by store."""
        self.ways: list[tuple[Action, ...]] = []
        """Shortest ways to the stores in which runs come to rest for good."""

    def run(self) -> Verdict:
        """Searches until everything is known, a bound is met, or Ctrl-C; judges what was found."""
        start = perf_counter()
        verdict = self.verdict
        while True:
            try:
                try:
                    with held():
                        self._search(start)
                except KeyboardInterrupt:
                    verdict.incomplete = INTERRUPTED
                if not (verdict.incomplete or self.reducer.verified(self.graph)):
                    self._begin_again([v for v in verdict.violations if v.kind == "finding"])
                    continue
                self._count(start)
                if self.reducer.proof is None:
                    self.judge()
                break
            except Anew:
                self._begin_again([v for v in verdict.violations if v.kind == "finding"])
            except Learned as learned:
                if verdict.incomplete == INTERRUPTED:
                    break
                self.system.learn(learned)
                self.reducer.forget()
                self._seen_findings.clear()
                self._begin_again([])
            except KeyboardInterrupt:
                verdict.incomplete = INTERRUPTED
                break
            except FAILURES as error:
                verdict.failed, verdict.incomplete = error, FAILED
                self._count(start)
                break
        verdict.seconds = perf_counter() - start
        verdict.cut = bool(verdict.incomplete)
        verdict.incomplete = verdict.incomplete or unproved(self.system)
        return verdict

    def _begin_again(self, violations: list[Violation]) -> None:
        """A search of the same system, with what is known by now."""
        self.defaults.again()
        self.graph = Graph()
        self.removed.clear()
        self._judged.clear()
        self.stores.clear()
        self.ways.clear()
        self.verdict.violations[:] = violations
        self.verdict.incomplete = ""

    def _ways(self, state: int, cycle: Sequence[Action] = ()) -> tuple[tuple[Action, ...], tuple[Action, ...]]:
        """The way to rest in a state, and a cycle from there, as steps of the whole graph."""
        return self.reducer.unfolded(self.scenario.world(self.system), self.graph.path(state), cycle, True)

    def reads(self) -> tuple[str, ...]:
        """What was learned about caches: see `Verdict.reads`."""
        return caches.reads(self.system)

    def assume_reads(self, texts: Iterable[str]) -> None:
        """Takes in what an earlier search learned (`Verdict.reads`)."""
        caches.assume(self.system, texts)

    def _count(self, start: float) -> None:
        verdict, reexec, there = self.verdict, self.system.reexec, self.elsewhere
        verdict.states, verdict.transitions = len(self.graph), self.graph.transitions
        verdict.executions = reexec.executions + there.executions
        verdict.reductions = (*self._memos, *self.reducer.names)
        hits = reexec.hits + reexec.recalled + there.hits
        verdict.read_memo = (hits, hits + verdict.executions // (2 if reexec.twice else 1))
        memo = self.writes
        if self.write_memo and memo is not None:
            verdict.write_memo = (memo.hits + there.write_hits, memo.hits + memo.misses + there.writes)
        verdict.memory = self.graph.memory
        verdict.seconds = perf_counter() - start
        verdict.reads = self.reads()

    @property
    def writes(self) -> Any:
        """The memo of writes; None when there is none."""
        return getattr(getattr(self.system.begin, "__self__", None), "writer", None)

    # -- the search ----------------------------------------------------------------------------------------------

    def _search(self, start: float) -> None:
        graph, verdict, reducer = self.graph, self.verdict, self.reducer
        first = self.scenario.world(self.system)
        settled = reducer.settle(first)
        number, _ = self._add(first, NONE, graph.action(START_ACTION), -1)
        reducer.note(number, settled)
        if self.system.reexec.findings:
            self.report(number, *reducer.looked())
        queue: deque[Waiting] = deque([(number, 0, first)])
        self._watch(first, number)
        self._drain(queue, start)
        while not verdict.incomplete and (neglected := reducer.neglected(graph)):
            for state in neglected:
                world, moved = self.world_of(state), graph.reopen(state)
                self.removed.move(moved)
                taken = [graph.actions[action] for action, _ in graph.edges(state)]
                actions = [action for action in enabled(world) if action not in taken]
                self.expand(state, len(graph.path(state)), world, actions, queue)
            self._drain(queue, start)

    def _drain(self, queue: deque[Waiting], start: float) -> None:
        """Expands what waits, and what comes of it, until nothing waits or a bound is met."""
        graph, verdict, bounds = self.graph, self.verdict, self.bounds
        while queue:
            if len(verdict.violations) >= ENOUGH_VIOLATIONS:
                verdict.incomplete = f"stopped after {len(verdict.violations)} violations"
                break
            if self._may_prove and len(graph) >= FIRST_STATES:
                self._may_prove = False
                if prove(self, start):
                    queue.clear()
                    break
            if queue[0][1] != verdict.depth:
                verdict.depth = queue[0][1]
                self.reducer.deeper()
                if self.workers > 1 and ready(self, len(queue)):
                    spread(self, queue, start)
                    return
            reached = self.limit(start, len(queue))
            if reached:
                verdict.incomplete = reached
                break
            number, depth, world = queue.popleft()
            if bounds.max_depth is not None and depth >= bounds.max_depth:
                verdict.incomplete = f"deeper than {plural(bounds.max_depth, 'step')}"
                continue
            graph.expand(number)
            self.expand(number, depth, world, self.reducer.actions(world, number), queue)
        verdict.frontier = len(queue)

    def expand(
        self, number: int, depth: int, world: World, actions: list[Action], queue: deque[Waiting] | list[Waiting]
    ) -> None:
        """Takes some actions in a state; new states wait in the queue."""
        graph, reducer, findings = self.graph, self.reducer, self.system.reexec.findings
        reducer.attend()
        for action in actions:
            taken = graph.action(action)
            known = reducer.spared(graph, number, action)
            if known is not None:
                if known.events and self._faulty:
                    self.removed.note(graph.transitions, known.events)
                graph.edge(number, taken, known.target)
                continue
            after = apply(world, action)
            if len(findings) != len(self._seen_findings):
                self.listener.report(number, action)
            changes = reducer.step(number, world, action, after)
            target, new = self._settled(after, world, number, taken)
            reducer.done(number, world, action, target, after, changes)
            if len(findings) != len(self._seen_findings):
                self.listener.report(number, action, *reducer.looked())
            if after.events and self._faulty:
                self.removed.note(graph.transitions, after.events)
            graph.edge(number, taken, target)
            if new:
                self._watch(after, target)
                queue.append((target, depth + 1, after))

    def _settled(self, world: World, old: World, parent: int, action: int) -> tuple[int, bool]:
        """Settles a new world and adds it; what a world like it led to is known without."""
        reducer = self.reducer
        turn = reducer.turn_after(parent, self.graph.actions[action])
        if not reducer.settler or not (world.pending or world.flights):
            return self._add(world, parent, action, turn)
        plain = fingerprint(world)
        before = plain + Lazy.identity(turn)
        known = reducer.found(parent, before, world)
        if known is not None:
            return known, False
        settled = reducer.settle(world, old)
        target, new = self._add(world, parent, action, turn, None if settled else plain)
        reducer.note(target, settled)
        reducer.leads(before, target, new)
        return target, new

    def _add(self, world: World, parent: int, action: int, turn: int, plain: int | None = None) -> tuple[int, bool]:
        """Adds a world to the graph; `plain`: its fingerprint, if it is known."""
        reducer = self.reducer
        store = self.stores.setdefault(reducer.contents(world), len(self.stores))
        number, new = self.graph.add(reducer.identity(world, turn, plain), parent, action, store)
        reducer.met(parent, number, new, world, turn)
        return number, new

    def limit(self, start: float, waiting: int) -> str:
        bounds, graph = self.bounds, self.graph
        take()
        if waiting > self.verdict.frontier_peak:
            self.verdict.frontier_peak = waiting
        if bounds.max_states is not None and len(graph) >= bounds.max_states:
            return f"stopped at {bounds.max_states:,} states"
        if bounds.max_transitions is not None and graph.transitions >= bounds.max_transitions:
            return f"stopped at {bounds.max_transitions:,} transitions"
        if bounds.max_seconds is not None and perf_counter() - start > bounds.max_seconds:
            return f"stopped after {bounds.max_seconds:g} s"
        self._expanded += 1
        if self._expanded % LOOK_EVERY == 0:
            self.verdict.frontier = waiting
            return self.look(lambda: self._count(start))
        return ""

    def share(self, workers: int) -> None:
        """This is one of several processes from here on: it has its share of the memory, and reports nothing."""
        self.progress, self._memory = None, self._memory // workers

    def look(self, count: Callable[[], None]) -> str:
        """Why there is not memory enough to go on, or ""; now and then reports progress. `count` brings the verdict's
        numbers up to date."""
        now = perf_counter()
        if self.progress is not None and now - self._reported_at >= PROGRESS_SECONDS:
            self._reported_at = now
            count()
            self.progress(self.verdict)
        held = memory.resident()
        return "" if held < self._memory else f"stopped at {held // memory.MEGA:,} MB of memory; see max_memory"

    def _watch(self, world: World, number: int) -> None:
        """Judges `always` in a new state."""
        place = world.contents
        if self._always and place not in self._judged:
            self._judged[place] = True
            for prop in self._always:
                if any(violation.name == prop.name for violation in self.verdict.violations):
                    continue
                state = State(self.reducer.claimed(prop.name, world.store), self.scenario.kinds, world.outside)
                wrong = judge(prop, state)
                if wrong is not None:
                    self.listener.breaks(prop.name, wrong, number)

    def breaks(self, name: str, message: str, number: int) -> None:
        """Notes that a claim which must always hold does not in a new state."""
        way = in_calls(self.scenario, self.system, self.graph.path(number))
        self.verdict.violations.append(Violation("always", name, message, way))

    def report(self, number: int, *actions: Action) -> None:
        """Notes what went wrong in the controllers on the last steps."""
        self.report_on(self.unfolded((*self.graph.path(number), *actions), False))

    def forget_findings(self) -> None:
        """They are to be reported again."""
        self._seen_findings.clear()

    def report_on(self, path: tuple[Action, ...]) -> None:
        """Notes new findings, which showed on this path."""
        for _, finding in self.unseen():
            if not self.defaults.ignores(finding):
                self.verdict.violations.append(Violation("finding", finding.kind, said(finding), path))

    def unseen(self) -> list[tuple[tuple[str, str], Finding]]:
        """The findings that nobody has asked for yet, by place."""
        new = [found for found in self.system.reexec.findings.items() if found[0] not in self._seen_findings]
        self._seen_findings.update([place for place, _ in new])
        return new

    # -- the judgement -------------------------------------------------------------------------------------------

    def judge(self) -> None:
        """Convergence, livelock and confluence, from the recurrences of the graph, and the properties out of the box
        at rest; of a search that was cut short only what is at rest for good."""
        violations, graph = self.verdict.violations, self.graph
        if self.verdict.incomplete:
            for state in graph.quiet():
                way = self._ways(state)[0]
                violations += self.defaults.at_rest(self.world_of(state), way)
                self.ways.append(way)
            return
        at_rest, livelocks = dict[int, Recurrence](), list[Recurrence]()
        for recurrence in graph.recurrences():
            if recurrence.writes:
                livelocks.append(recurrence)
            else:
                at_rest.setdefault(graph.stores[recurrence.states[0]], recurrence)
        ends = [r for r in at_rest.values() if r.terminal]
        self.last_states = [end.states[0] for end in ends]
        self.verdict.converged = len(ends)
        converges = [p for p in self.scenario.properties if p.kind == "converges"]
        confluent = any(p.kind == "confluence" for p in self.scenario.properties)
        self._for_ever(livelocks, bool(converges or confluent))
        for prop in converges:
            self._converges(prop, at_rest.values())
        if confluent:
            self._confluent(ends)
        for recurrence in at_rest.values():
            world = self.world_of(recurrence.states[0])
            here = rest.look(graph, recurrence.states, world, self.reducer.settle)
            way, cycle = self._ways(recurrence.states[0], here.cycle)
            violations += self.defaults.at_rest(world, way, cycle, here.ended)
            if recurrence.terminal:
                self.ways.append(way)
        worth = self._faulty or not (confluent or self.bounds.atomic)
        if worth and self.comparing and not (violations or unproved(self.system)):
            violations += self.defaults.compared(self, self._faulty)

    def unfolded(self, path: Sequence[Action], at_rest: bool) -> tuple[Action, ...]:
        """A way through the graph as one through the whole one; `at_rest`: to where nobody has anything left to do."""
        return self.reducer.unfolded(self.scenario.world(self.system), path, (), at_rest)[0]

    def undisturbed(self, faulty: bool) -> Explorer | None:
        """A finished search of the same scenario without lag and faults, or (not `faulty`) with whole reconciles; None
        when it is larger than this one, or breaks something itself."""
        bounds = self.bounds.calm(faulty, max(LEAST_UNDISTURBED, len(self.graph) + 1))
        calm = Explorer(self.scenario, bounds, **self._switches, comparing=False)
        return calm if calm.run().holds and calm.verdict.complete else None

    def _confluent(self, ends: Sequence[Recurrence]) -> None:
        """Judges whether all ends are alike."""
        first: dict[int, int] = {}
        for end in ends if len(ends) > 1 else ():
            first.setdefault(likeness(self.world_of(end.states[0])), end.states[0])
        if len(first) > 1:
            self.verdict.violations.append(ending_differently([self._ways(state)[0] for state in first.values()]))

    def _for_ever(self, livelocks: Sequence[Recurrence], claimed: bool) -> None:
        """Judges what writes for ever: a loop without waiting above all."""
        for worst in sorted(livelocks, key=lambda r: r.states[0]):
            start, steps = self.graph.hot_cycle(worst.states, FAULTY | TIME)
            if not steps:
                start, steps = self.graph.cycle(worst.states)
            way, cycle = self._ways(start, steps)
            found = list(self.defaults.livelock(self.world_at(way), way, cycle, claimed))
            if found:
                self.verdict.violations += found
                return

    def _converges(self, prop: Property, at_rest: Iterable[Recurrence]) -> None:
        for recurrence in at_rest:
            state = recurrence.states[0]
            wrong = None if prop.holds is None else judge(prop, self.state_at(state))
            if wrong is not None:
                here = rest.look(self.graph, recurrence.states, self.world_of(state), self.reducer.settle)
                message = f"nothing changes any more, but {here.failing or wrong}"
                violation = Violation("converges", prop.name, message, *self._ways(state, here.cycle))
                self.verdict.violations.append(violation)
                self.defaults.told(convergence.ABOUT.name)
                return

    def world_at(self, actions: tuple[Action, ...] | list[Action]) -> World:
        """The world after some actions, from the first one."""
        world = self.scenario.world(self.system)
        for action in actions:
            if action != START_ACTION:
                world = apply(world, action)
        return world

    def world_of(self, state: int) -> World:
        """The world of a state of the graph."""
        if self.reducer.proof is not None:
            return self.reducer.proof.world(state)
        world = self.scenario.world(self.system)
        self.reducer.settle(world)
        for action in self.graph.path(state):
            world = apply(world, action) if self.elsewhere == NOWHERE else again(world, action)
            self.reducer.settle(world)
        return world

    def state_at(self, number: int) -> State:
        """A state of the graph, for properties."""
        return state_of(self.scenario, self.world_of(number))

    def ends(self) -> list[State]:
        """The different states in which fair runs come to rest for good."""
        seen: dict[int, int] = {}
        for recurrence in self.graph.recurrences():
            if recurrence.terminal and not recurrence.writes:
                seen.setdefault(self.graph.stores[recurrence.states[0]], recurrence.states[0])
        return [self.state_at(number) for number in seen.values()]


def _system(scenario: Scenario, bounds: Bounds, canonical: bool, write_memo: bool, memo: bool, twice: bool) -> System:
    """The system of a search: nothing is known of it yet."""
    backwards = Backwards(dict.fromkeys([*scenario.controllers().values(), *scenario.newer.values()]))
    vary = backwards if len(backwards) else nullcontext
    granularity = {"atomic": bounds.atomic, "by_write": bounds.by_write}
    views = {"lag": bounds.lag, "trees": bounds.trees, "budgets": bounds.faults}
    options = {"twice": twice, "memo": memo, "vary": vary, **granularity, **views}
    return scenario.system(canonical=canonical, write_memo=write_memo, **options)
