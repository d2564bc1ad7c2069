"""One check: its options, who listens to it, and its verdict with everything explained."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

from steersman.check import saved, watchdog
from steersman.check.explain import text_of
from steersman.check.explore import INTERRUPTED, Bounds, Explorer
from steersman.check.follow import Follower
from steersman.check.options import BOUNDS, CLAIMS, CUTTING, REDUCTION, chosen, split
from steersman.check.scenario import Scenario
from steersman.check.search import Walker
from steersman.check.story import Story
from steersman.check.verdict import Verdict, Violation
from steersman.check.watchdog import Watchdog

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


def check(scenario: Scenario, **options: Any) -> Verdict:
    """Explores every interleaving of a scenario within the bounds, or with `walks` that many random ones.

    The options are those of `options.OPTIONS`: `lag`: events a controller's cache may be behind; `crashes`,
    `conflicts`: how many of them may happen on any path; `atomic`: whole reconciles are single steps … The verdict is
    COMPLETE when everything within these bounds was explored, BOUNDED when one of the `max_…` ended the search first.
    Raises `TypeError` for an option that there is none of.
    """
    values = chosen(options)
    session = sessions[-1] if sessions else None
    if session is not None:
        values |= session.overrides
    schedule = None if session is None else session.replay
    if schedule is not None:
        values |= schedule.bounds
    walking = (values["walks"], values["seed"])
    progress = None if session is None else session.progress
    bounds = Bounds(**split(values, BOUNDS))
    switches = {**split(values, REDUCTION), **split(values, CLAIMS)}
    explorer = Explorer(scenario, bounds, **switches, progress=progress)
    verdict = _found(explorer, walking, schedule, session is not None and session.lenient)
    verdict.controllers = scenario.controllers()
    if session is not None:
        verdict.excused = verdict.cut and (schedule is not None or not session.overrides.keys().isdisjoint(CUTTING))
    for listener in sessions:
        listener.verdicts.append(verdict)
    if sessions and verdict.incomplete == INTERRUPTED:
        raise KeyboardInterrupt  # whoever listens has the partial verdict, and is to stop as well
    return verdict


def _found(explorer: Explorer, walking: tuple[int, int], schedule: saved.Saved | None, lenient: bool) -> Verdict:
    """The verdict of a search, of walks or of a replay, with its violations explained."""
    collecting = gc.isenabled()
    gc.disable()  # a collection stalls for seconds at a million states, and the search makes hardly any cycles
    try:
        with Watchdog(explorer, watchdog.LIMIT):
            if schedule is not None:
                explorer.assume_reads(schedule.reads)
                verdict = Follower(explorer, schedule.schedule, lenient).run()
            else:
                verdict = Walker(explorer, *walking).run() if walking[0] else explorer.run()
            for violation in verdict.violations:
                _explain(explorer, violation)
    finally:
        if collecting:
            gc.enable()
    return verdict


def _explain(explorer: Explorer, violation: Violation) -> None:
    first = explorer.world_at([])
    violation.story = Story(first, violation.actions, violation.cycle)
    text = text_of(violation.story)
    if violation.other:
        text += "\n  but also:\n" + text_of(Story(first, violation.other))
    violation.explanation = text
