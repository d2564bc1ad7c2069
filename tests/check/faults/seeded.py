"""How a fault is tested: it finds a bug that was put there, no other fault does, and the mended controller passes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import steersman as sm
from steersman.check import Verdict
from steersman.check.explore import Bounds, Explorer
from steersman.kernel.faults import BY_NAME, BY_OP
from steersman.kernel.schedule import Replay, Schedule
from steersman.kernel.system import Learned
from steersman.kernel.transition import apply, enabled

Make = Callable[[Any], sm.Scenario]
MAX_STATES = 20_000
"""States of one small search: enough for what two calls and one fault can do."""


def finds(make: Make, buggy: Any, mended: Any, fault: str, *, also: Collection[str] = (), **bounds: Any) -> Verdict:
    """`fault` alone finds the bug, and the others find nothing (`also`: those that share its cause). Edits are left
    out: they change what is asked for, which the property of a small scenario takes for granted."""
    sm.check(make(mended), **{fault: 1}, **bounds).assert_holds(complete=True)
    sm.check(make(buggy), **bounds).assert_holds(complete=True)
    for other in BY_NAME:
        if other not in (fault, "edits", *also):
            sm.check(make(buggy), **{other: 1}, max_states=MAX_STATES, **bounds).assert_holds()
    verdict = sm.check(make(buggy), **{fault: 1}, **bounds)
    assert verdict.violations, str(verdict)
    assert f"{fault.replace('_', '-')} 1" in verdict.summary()
    for violation in verdict.violations:
        ops = [action.op for action in violation.actions]
        assert BY_NAME[fault].op in ops, str(verdict)
        assert not (BY_OP.keys() - {BY_NAME[fault].op}) & set(ops)
        replays(make(buggy), violation, verdict, **{fault: 1}, **bounds)
    return verdict


def replays(scenario: sm.Scenario, violation: Any, verdict: Verdict, **bounds: Any) -> None:
    """The schedule of a violation leads to the same store each time it is followed, label by label."""
    bounds.pop("without", None)
    ends = []
    for _ in range(2):
        explorer = Explorer(scenario, Bounds(**bounds))
        explorer.assume_reads(verdict.reads)
        ends.append(_followed(explorer, violation.schedule))
    assert ends[0] == ends[1]


def _followed(explorer: Explorer, schedule: Schedule) -> Any:
    while True:
        world = explorer.scenario.world(explorer.system)
        policy = Replay(schedule)
        try:
            while (action := policy.choose(world, enabled(world))) is not None:
                world = apply(world, action)
        except Learned as learned:
            explorer.system.learn(learned)
        else:
            return [(obj.key, obj.rv, obj.content) for obj in world.store.objects()], world.outside
