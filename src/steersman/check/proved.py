"""A search that grows large is tried as a factored one (`reduce.factored`): where that finds that all is well, it is
so, and the verdict is made of it. In every other case nothing has happened, and the search goes on."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Final

from steersman.check.reduce.factored import Factored
from steersman.check.reduce.lineage import Timers, Unfit
from steersman.check.scenario import judge, state_of
from steersman.kernel.system import Learned
from steersman.kernel.world import World

if TYPE_CHECKING:
    from steersman.check.explore import Explorer

FIRST_STATES: Final = 5_000
"""States of a search before it is tried: a smaller one is done in a second, and shows every step."""
SHARE: Final = 0.5
"""Of the seconds of a search that has a limit: the rest is for going on."""
PARTS: Final = ("system", "graph", "removed", "defaults", "ways")
"""What of an explorer the trial has its own of."""


def prove(explorer: Explorer, start: float) -> bool:
    """Whether all is well. The explorer has the factored search's graph and judgement then; else it is as before."""
    bounds, verdict = explorer.bounds, explorer.verdict
    if verdict.violations or bounds.max_depth is not None or bounds.max_transitions is not None:
        return False
    if not Factored.suits(explorer.system):
        return False
    before = {name: getattr(explorer, name) for name in PARTS}
    proof = None
    try:
        proof = _searched(explorer, start)
    except Unfit:
        explorer.reducer.proof = None
    finally:
        if proof is None or verdict.violations:
            proof = explorer.reducer.proof = None
            for name, value in before.items():
                setattr(explorer, name, value)
            verdict.violations.clear()
    return proof is not None


def _searched(explorer: Explorer, start: float) -> Factored | None:
    """A factored search that came to its end, and was judged; None where there is none."""
    bounds, verdict = explorer.bounds, explorer.verdict
    recall = explorer.system.reexec.recall
    explorer.system = explorer.new_system()
    explorer.system.reexec.recall = recall
    seen: dict[int, bool] = {}

    def good(world: World) -> bool:
        place = world.contents
        if place not in seen:
            claims = [prop for prop in explorer.scenario.properties if prop.kind == "always"]
            state = state_of(explorer.scenario, world)
            seen[place] = all(judge(prop, state) is None for prop in claims)
        return seen[place]

    def stop(states: int) -> bool:
        late = bounds.max_seconds is not None and perf_counter() - start > SHARE * bounds.max_seconds
        many = bounds.max_states is not None and states >= bounds.max_states
        return late or many or bool(explorer.look(lambda: None))

    timers = False
    while Factored.suits(explorer.system):
        factored = Factored(explorer.system, explorer.scenario.world(explorer.system), good, stop, timers)
        try:
            if not factored.run() or len(factored.graph) > (bounds.max_states or len(factored.graph)):
                return None
            break
        except Learned as learned:
            explorer.system.learn(learned)
        except Timers:
            timers = True
    else:
        return None
    explorer.reducer.proof, explorer.graph, explorer.removed = factored, factored.graph, factored.removed
    explorer.defaults, explorer.ways = explorer.defaults.anew(), []
    explorer.judge()
    verdict.depth = len(factored.graph.path(len(factored.graph) - 1))
    return factored
