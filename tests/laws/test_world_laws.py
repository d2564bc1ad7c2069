"""Worlds: apply leaves the given one as it is, enabled Actions are sorted and can all be taken, and every way that
joins meets the same world."""

import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steersman.check.explore import Bounds, Explorer
from steersman.kernel.faults import BY_NAME
from steersman.kernel.fingerprint import fingerprint
from steersman.kernel.system import Learned
from steersman.kernel.transition import apply, enabled, step
from tests.check.models import REMEMBERING, TIMED, program_scenario, programs

LAW = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
TABLES = st.lists(programs(REMEMBERING), min_size=1, max_size=2) | st.lists(programs(TIMED), min_size=1, max_size=2)
BOUNDS = st.sampled_from(
    [{}, {"lag": 1}, {"crashes": 1}, {"lag": 1, "crashes": 1, "conflicts": 1}, {"lag": 2}, {"atomic": True, "lag": 1}]
    + [{name: 1, "lag": 1} for name in BY_NAME]
    + [dict.fromkeys(BY_NAME, 1)]
)


def picture(world):
    """Everything a world is, by value."""
    return (
        fingerprint(world),
        world.store.sum_canonical,
        [(obj.key, obj.rv, obj.content) for obj in world.store.objects()],
        sorted(world.pending),
        world.sum_pending,
        [(item, flight.node, list(flight.versions), flight.wrote) for item, flight in sorted(world.flights.items())],
        {loop: dict(memory) for loop, memory in world.memory.items()},
        {place: [event.rev for event, _ in view.waiting] for place, view in world.views.items()},
        dict(world.wakes),
        [key for key, _ in world.timers.items()],
        (world.budgets, world.users, world.now, list(world.drawn)),
    )


def walk(explorer, seed, steps, visit):
    """A random walk; `visit(world, actions)` sees every world on it."""
    while True:
        try:
            chance = random.Random(seed)
            world = explorer.scenario.world(explorer.system)
            for _ in range(steps):
                actions = enabled(world)
                visit(world, actions)
                if not actions:
                    break
                world = apply(world, chance.choice(actions))
            return
        except Learned as learned:
            explorer.system.learn(learned)


@LAW
@given(TABLES, st.integers(0, 2), BOUNDS, st.integers(0, 99))
def test_apply_leaves_the_given_world_as_it_is(table, users, bounds, seed):
    def visit(world, actions):
        before = picture(world)
        for action in actions:
            after = apply(world, action)
            assert picture(world) == before
            again = picture(after)
            fork = world.fork()
            step(fork, action)
            assert picture(fork) == again, "a step on a fork is apply"
            assert picture(world) == before
            kept = after.fork()
            for following in enabled(after)[:2]:
                step(after, following)
                assert picture(kept) == again, "a world that goes on leaves its forks as they are"
                break

    walk(Explorer(program_scenario(table, users), Bounds(**bounds)), seed, 25, visit)


@LAW
@given(TABLES, st.integers(0, 2), BOUNDS, st.integers(0, 99))
def test_enabled_actions_are_sorted_distinct_and_stable_text(table, users, bounds, seed):
    def visit(world, actions):
        assert actions == sorted(actions)
        labels = [action.label for action in actions]
        assert len(set(labels)) == len(labels)
        assert all(label == label.strip() and "\n" not in label for label in labels)
        assert enabled(world.fork()) == actions

    walk(Explorer(program_scenario(table, users), Bounds(**bounds)), seed, 40, visit)


@LAW
@given(TABLES, st.integers(0, 2), st.integers(0, 99))
def test_running_sums_are_the_sums(table, users, seed):
    """The canonical sum of the store and that of the queues are kept running; counted anew they are the same."""
    from steersman.kernel.identity import term
    from steersman.kernel.object import MASK

    def visit(world, actions):
        canon = world.system.canon
        assert world.store.sum_canonical == sum(canon.of(obj) for obj in world.store.objects()) & MASK
        assert world.sum_pending == sum(term("pending", *item) for item in world.pending)
        assert sorted((at, *item) for item, at in world.wakes.items()) == [key for key, _ in world.timers.items()]

    walk(Explorer(program_scenario(table, users), Bounds(lag=1, crashes=1)), seed, 40, visit)
