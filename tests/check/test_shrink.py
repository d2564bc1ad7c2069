"""Minimisation: what is left reproduces, and no single step of it can be dropped."""

import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples.check import over_creation
from steersman.check.explore import Bounds, Explorer
from steersman.check.scenario import State
from steersman.check.shrink import minimise, replay
from steersman.kernel.action import Action
from steersman.kernel.schedule import Schedule
from steersman.kernel.transition import apply, enabled
from tests.check.models import REMEMBERING, key, program_scenario, programs


def numbered(items):
    return [Action("user", str(item)) for item in items]


@given(st.lists(st.integers(0, 6), max_size=30), st.sets(st.integers(0, 6), max_size=3))
def test_every_needed_step_stays_once(items, needed):
    def reproduces(candidate):
        return list(candidate) if needed <= {int(action.who) for action in candidate} else None

    left = minimise(numbered(items), reproduces)
    if needed <= set(items):
        assert sorted(int(action.who) for action in left) == sorted(needed)
    else:
        assert left == numbered(items), "what does not reproduce is left alone"


def test_a_budget_is_kept():
    calls = 0

    def reproduces(candidate):
        nonlocal calls
        calls += 1
        return list(candidate) if len(candidate) > 90 else None

    left = minimise(numbered(range(200)), reproduces, budget=20)
    assert calls <= 21 and len(left) > 90


def walked(explorer, seed, stop):
    """A random walk up to a state in which `stop` is true, or None."""
    world = explorer.scenario.world(explorer.system)
    chance, taken = random.Random(seed), []
    for _ in range(150):
        actions = enabled(world)
        if not actions:
            return None
        action = chance.choice(actions)
        world = apply(world, action)
        taken.append(action)
        if stop(world):
            return taken
    return None


def one_minimal(explorer, taken, stop):
    first = explorer.scenario.world(explorer.system)

    def reproduces(candidate):
        done, _, found = replay(first, candidate, stop)
        return done if found else None

    left = minimise(taken, reproduces)
    assert reproduces(left) == left, "it is a run as it stands: nothing of it is skipped"
    assert len(left) <= len(taken)
    for at in range(len(left)):
        assert reproduces(left[:at] + left[at + 1 :]) is None, f"step {at + 1} can be dropped"
    return left


def test_an_over_creation_is_minimal():
    scenario = over_creation.scenario(over_creation.NaiveReplicaSet)
    explorer = Explorer(scenario, Bounds(lag=1))
    explorer.run()
    web = key("web")._replace(group="apps", kind="ReplicaSet")

    def stop(world):
        return State(world.store, scenario.kinds).count("v1/Pod", owner=web) > 1

    lengths = set()
    for seed in range(12):
        taken = walked(explorer, seed, stop)
        if taken is not None:
            lengths.add(len(one_minimal(explorer, taken, stop)))
    assert lengths, "some walk finds it"
    assert min(lengths) == 10, "as short as the shortest way the search finds"


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(programs(REMEMBERING), min_size=2, max_size=2), st.integers(0, 5))
def test_any_program_is_minimal(table, seed):
    scenario = program_scenario(table, users=1)
    explorer = Explorer(scenario, Bounds(max_states=300))
    explorer.run()

    def stop(world):
        found = world.store.get(key("a"))
        return found is not None and found.value.data.v == "1" and world.users == ()

    taken = walked(explorer, seed, stop)
    if taken is not None:
        left = one_minimal(explorer, taken, stop)
        again = Schedule.loads(Schedule(action.label for action in left).dumps())
        assert list(again) == [action.label for action in left]
