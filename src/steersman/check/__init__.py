"""Check: find what real controllers do wrong, or show that within stated bounds they do not."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from steersman.check import saved, watchdog
from steersman.check.explain import explain
from steersman.check.explore import INTERRUPTED, Bounds, Explorer
from steersman.check.follow import Follower
from steersman.check.scenario import Scenario, ScenarioError, State
from steersman.check.search import Walker
from steersman.check.verdict import Verdict, Violation
from steersman.check.watchdog import Watchdog

__all__ = ["Bounds", "Explorer", "Scenario", "ScenarioError", "State", "Verdict", "Violation", "check", "sessions"]

BOUNDING = frozenset({"walks", "max_states", "max_depth", "max_transitions", "max_seconds", "max_memory"})
"""Options that make a verdict BOUNDED."""

sessions: list[Session] = []
"""Who listens to checks: the command line and the pytest plugin. The innermost is last."""


class Session:
    """Hears of every verdict, and may change the bounds of every check (command-line options win)."""

    def __init__(self, overrides: dict[str, Any] | None = None) -> None:
        self.overrides = overrides or {}
        self.verdicts: list[Verdict] = []
        self.replay: Path | None = None
        """A schedule to follow instead of searching."""
        self.progress: Callable[[Verdict], None] | None = None


def check(
    scenario: Scenario,
    *,
    lag: int = 0,
    crashes: int = 0,
    conflicts: int = 0,
    atomic: bool = False,
    walks: int = 0,
    seed: int = 0,
    max_states: int | None = None,
    max_depth: int | None = None,
    max_transitions: int | None = None,
    max_seconds: float | None = None,
    max_memory: int | None = None,
    read_memo: bool = True,
    write_memo: bool = True,
    canonical: bool = True,
) -> Verdict:
    """Explores every interleaving of a scenario within the bounds, or with `walks` that many random ones.

    `lag`: events a controller's cache may be behind; `crashes`, `conflicts`: how many of them may happen on any path;
    `atomic`: whole reconciles are single steps. The verdict is COMPLETE when everything within these bounds was
    explored, BOUNDED when one of the `max_…` ended the search first (`max_memory`: megabytes, by default three quarters
    of the machine's).
    """
    chosen: dict[str, Any] = {
        "lag": lag,
        "crashes": crashes,
        "conflicts": conflicts,
        "atomic": atomic,
        "walks": walks,
        "seed": seed,
        "max_states": max_states,
        "max_depth": max_depth,
        "max_transitions": max_transitions,
        "max_seconds": max_seconds,
        "max_memory": max_memory,
        "read_memo": read_memo,
        "write_memo": write_memo,
        "canonical": canonical,
    }
    session = sessions[-1] if sessions else None
    if session is not None:
        chosen |= session.overrides
    schedule = None if session is None or session.replay is None else saved.read(session.replay)
    if schedule is not None:
        chosen |= schedule.bounds
    walking = (chosen.pop("walks"), chosen.pop("seed"))
    memos = {name: chosen.pop(name) for name in ("read_memo", "write_memo", "canonical")}
    progress = None if session is None else session.progress
    explorer = Explorer(scenario, Bounds(**chosen), **memos, progress=progress)
    verdict = _found(explorer, walking, schedule)
    if session is not None:
        verdict.excused = verdict.cut and (schedule is not None or not session.overrides.keys().isdisjoint(BOUNDING))
    for listener in sessions:
        listener.verdicts.append(verdict)
    if sessions and verdict.incomplete == INTERRUPTED:
        raise KeyboardInterrupt  # whoever listens has the partial verdict, and is to stop as well
    return verdict


def _found(explorer: Explorer, walking: tuple[int, int], schedule: saved.Saved | None) -> Verdict:
    """The verdict of a search, of walks or of a replay, with its violations explained."""
    collecting = gc.isenabled()
    gc.disable()  # a collection stalls for seconds at a million states, and the search makes hardly any cycles
    try:
        with Watchdog(explorer, watchdog.LIMIT):
            if schedule is not None:
                explorer.assume_reads(schedule.reads)
                verdict = Follower(explorer, schedule.schedule).run()
            else:
                verdict = Walker(explorer, *walking).run() if walking[0] else explorer.run()
            for violation in verdict.violations:
                violation.explanation = _explained(explorer, violation)
    finally:
        if collecting:
            gc.enable()
    return verdict


def _explained(explorer: Explorer, violation: Violation) -> str:
    text = explain(explorer.world_at([]), violation.actions, violation.cycle)
    if violation.other:
        text += "\n  but also:\n" + explain(explorer.world_at([]), violation.other)
    return text


class _CallableModule(ModuleType):
    """`steersman.check` is this package and, called, its function: `sm.check(scenario)`."""

    def __call__(self, scenario: Scenario, **options: Any) -> Verdict:
        return check(scenario, **options)


sys.modules[__name__].__class__ = _CallableModule
