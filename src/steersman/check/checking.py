"""One check: its options, who listens to it, and its verdict with everything explained."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steersman.check import saved
from steersman.check.cluster import NAME, Cluster, Recipe
from steersman.check.confirm import sort_out
from steersman.check.ends import MAX_ENDS, End
from steersman.check.explain import text_of
from steersman.check.explore import INTERRUPTED, Bounds, Explorer
from steersman.check.follow import Follower
from steersman.check.footprints import analysis, first_look
from steersman.check.guard import FAILED, unguarded
from steersman.check.options import BOUNDS, CLAIMS, CUTTING, OPTIONS, REDUCTION, WALKS, chosen, split
from steersman.check.picture import Picture, picture
from steersman.check.rest import Noting
from steersman.check.scenario import Scenario, ScenarioError
from steersman.check.search import Walker
from steersman.check.story import Story
from steersman.check.strategies import Strategy
from steersman.check.verdict import Verdict, Violation
from steersman.check.watchdog import Watchdog
from steersman.check.workers import MAX_WORKERS
from steersman.kernel.action import Action
from steersman.kernel.system import Learned
from steersman.ownership.analysis import Analysis

if TYPE_CHECKING:
    from steersman.check.memo.disk import Memo

sessions: list[Session] = []
"""Who listens to checks: the command line and the pytest plugin. The innermost is last."""


class Session:
    """Hears of every verdict, and may change the bounds of every check (command-line options win)."""

    def __init__(self, overrides: dict[str, Any] | None = None) -> None:
        self.overrides = overrides or {}
        self.verdicts: list[Verdict] = []
        self.replay: saved.Saved | None = None
        """A schedule to follow instead of searching."""
        self.lenient = False
        """Whether to skip steps of it that are not possible, and to go on to the end of the run after it."""
        self.progress: Callable[[Verdict], None] | None = None
        self.picturing = False
        """Whether verdicts are to have a picture of their graph."""
        self.static = False
        """Whether to say what follows from who reads and writes what, in place of a search (`Analysed`)."""


class Analysed(BaseException):
    """A check that was not run: `analysis` says what is known before. Not an Exception: a test must not catch it."""

    def __init__(self, scenario: str, found: Analysis) -> None:
        super().__init__(scenario)
        self.scenario = scenario
        self.analysis = found


def check(scenario: Scenario, **options: Any) -> Verdict:
    """Explores every interleaving of a scenario within the bounds, or with `walks` that many random ones.

    The options are those of `options.OPTIONS`: `lag`: events a controller's cache may be behind; `crashes`,
    `conflicts`: how many of them may happen on any path; `atomic`: whole reconciles are single steps … The verdict is
    COMPLETE when everything within these bounds was explored, BOUNDED when one of the `max_…` ended the search first.
    Raises `TypeError` for an option that there is none of.
    """
    with unguarded():
        return _checked(scenario, options)


def _checked(scenario: Scenario, options: dict[str, Any]) -> Verdict:
    values = chosen({**scenario.allowed, **options})
    session = sessions[-1] if sessions else None
    if session is not None and session.static:
        raise Analysed(scenario.name or "scenario", first_look(scenario))
    if session is not None:
        values |= session.overrides
    if values["from_"] is not None:
        scenario = _started(scenario, values["from_"])
    schedule = None if session is None else session.replay
    if schedule is not None:
        values |= {**schedule.bounds, "by_write": False}  # schedules are of single calls
    progress = None if session is None else session.progress
    bounds = Bounds(**split(values, BOUNDS))
    switches = {**split(values, REDUCTION), **split(values, CLAIMS)}
    if session is not None and session.picturing:
        switches["factored"] = False  # a picture shows worlds
    walking = (values["walks"], values["seed"], _strategy(values), values["workers"])
    cluster = None
    if values["engine"] is not None and schedule is None:
        cluster = _cluster(values, Recipe(scenario, bounds, switches, *walking[:3]))
    memo = None if values["memo"] is None else _memo(values["memo"], scenario)
    explorer = Explorer(scenario, bounds, **switches, progress=progress, recall=memo, workers=values["workers"])
    verdict = _found(explorer, (*walking, cluster), schedule, session is not None and session.lenient)
    if memo is not None:
        memo.save()
        verdict.memo = memo.line
    verdict.controllers = scenario.controllers()
    if schedule is None and not values["walks"]:
        given = [option for option in OPTIONS if option.part == WALKS and values[option.name] != option.default]
        verdict.unheeded = tuple([f"{option.shown} {values[option.name]}" for option in given])
    verdict.aside = explorer.defaults.aside
    tell = Teller(scenario, bounds, switches, verdict.reads)
    verdict.ends = tuple([End(number, way, tell) for number, way in enumerate(explorer.ways[:MAX_ENDS], 1)])
    try:
        if session is not None and session.picturing:
            verdict.picture = picture(explorer.graph, verdict, explorer.ways)
            verdict.branches = [] if verdict.picture is None else branches(explorer, verdict.picture)
        if schedule is None and verdict.incomplete not in (INTERRUPTED, FAILED):
            with Watchdog(explorer):
                known = analysis(scenario, explorer.system)
            verdict.static = known.line
            verdict.violations[:0] = explorer.defaults.owners(known)
    except KeyboardInterrupt:  # what was found is told, without what was being made of it
        verdict.incomplete, verdict.cut = INTERRUPTED, True
    if session is not None:
        verdict.excused = verdict.cut and (schedule is not None or not session.overrides.keys().isdisjoint(CUTTING))
    for listener in sessions:
        listener.verdicts.append(verdict)
    if sessions and verdict.incomplete == INTERRUPTED:
        raise KeyboardInterrupt  # whoever listens has the partial verdict, and is to stop as well
    if verdict.failed is not None:
        raise verdict.failed
    return verdict


def _strategy(values: dict[str, Any]) -> Strategy:
    strategy = Strategy(values["strategy"], values["pct_depth"], values["delays"])
    strategy.walk(0)  # an unknown one is refused before anything is explored
    if values["workers"] > MAX_WORKERS:
        raise ScenarioError(f"workers={values['workers']}: a check is spread over at most {MAX_WORKERS} processes")
    return strategy


def _cluster(values: dict[str, Any], recipe: Recipe) -> Cluster:
    engine = values["engine"]
    if engine != NAME and not engine.startswith(f"{NAME}://"):
        raise ScenarioError(f"engine {engine!r} is unknown; it is ray, or ray://HOST:PORT; leave it out to walk here")
    if not values["walks"]:
        raise ScenarioError("engine ray: a search stays on this machine (workers=N spreads it); give walks=N")
    if values["workers"] > 1:
        raise ScenarioError("engine ray: the cluster says how many processes there are; leave workers out")
    return Cluster(engine, recipe)


def _started(scenario: Scenario, source: str) -> Scenario:
    from steersman.check.origin.source import started

    return started(scenario, source)


def _memo(folder: str, scenario: Scenario) -> Memo:
    from steersman.check.memo.disk import Memo

    return Memo(Path(folder), scenario.factories(), scenario.kinds)


def _found(
    explorer: Explorer,
    walking: tuple[int, int, Strategy, int, Cluster | None],
    schedule: saved.Saved | None,
    lenient: bool,
) -> Verdict:
    """The verdict of a search, of walks or of a replay, with its violations explained."""
    collecting = gc.isenabled()
    gc.disable()  # a collection stalls for seconds at a million states, and the search makes hardly any cycles
    try:
        with Watchdog(explorer):
            if schedule is not None:
                explorer.assume_reads(schedule.reads)
                verdict = Follower(explorer, schedule.schedule, lenient).run()
            else:
                verdict = Walker(explorer, *walking).run() if walking[0] else explorer.run()
                if explorer.bounds.trees:
                    sort_out(explorer)
            try:
                for violation in verdict.violations:
                    _explain(explorer, violation)
            except KeyboardInterrupt:
                verdict.incomplete, verdict.cut = INTERRUPTED, True
    finally:
        if collecting:
            gc.enable()
    return verdict


class Teller:
    """Tells runs of a scenario again, long after its search, which it does not keep."""

    def __init__(self, scenario: Scenario, bounds: Bounds, switches: dict[str, Any], reads: tuple[str, ...]) -> None:
        self._new: Callable[[], Explorer] = lambda: Explorer(scenario, bounds, **switches)
        self._reads = reads
        self._explorer: Explorer | None = None

    def __call__(self, actions: tuple[Action, ...]) -> Story:
        """The run that some actions make."""
        if self._explorer is None:
            self._explorer = self._new()
            self._explorer.assume_reads(self._reads)
        with Watchdog(self._explorer):
            while True:
                try:
                    return Story(self._explorer.world_at([]), actions)
                except Learned as learned:
                    self._explorer.system.learn(learned)


def _explain(explorer: Explorer, violation: Violation) -> None:
    first = explorer.world_at([])
    violation.story = Story(first, violation.actions, violation.cycle)
    text = text_of(violation.story)
    if violation.other:
        violation.other_story = Story(first, violation.other)
        text += "\n  but also:\n" + text_of(violation.other_story)
    violation.explanation = text


def branches(explorer: Explorer, drawn: Picture) -> list[Story]:
    """The run to each state of a picture: they share their beginnings, so each step is taken once."""
    graph, settle = explorer.graph, explorer.reducer.settle
    first = Noting.of(explorer.world_at([]))
    settle(first)
    worlds, out = [first], [Story(first, ())]
    for spot in drawn.spots[1:]:
        world = Noting.of(worlds[spot.parent])
        try:
            out.append(out[spot.parent].and_then(world, graph.actions[graph.via[spot.state]]))
        except Learned:  # a search that was cut short may not know everything: without these the picture has labels
            return []
        settle(world)
        worlds.append(world)
    return out
