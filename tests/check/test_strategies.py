"""Strategies: each is a function of the seed, and does what its name says."""

import itertools

import pytest

import steersman as sm
from examples.check import false_ready
from steersman.check.explore import Bounds, Explorer
from steersman.check.mistake import ScenarioError
from steersman.check.search import Walker
from steersman.check.strategies import STRATEGIES, WITHIN, Strategy
from steersman.kernel.action import NO_KEY, Action
from tests.check.models import writers

STEPS = [Action("start", who, NO_KEY) for who in "abcd"]
FAULTS = [Action("crash", "a", NO_KEY), Action("conflict", "a", NO_KEY)]


def drawn(strategy, seed, steps=WITHIN, actions=STEPS):
    draw = strategy.walk(seed)
    return [draw.choose(list(actions)) for _ in range(steps)]


def changes(taken):
    return sum(a.who != b.who for a, b in itertools.pairwise(taken))


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_seed_is_a_run(name):
    strategy = Strategy(name)
    assert drawn(strategy, 7, actions=STEPS + FAULTS) == drawn(strategy, 7, actions=STEPS + FAULTS)
    runs = [
        Walker(Explorer(false_ready.scenario(false_ready.Existence), Bounds(crashes=1)), 6, 3, strategy).run()
        for _ in "ab"
    ]
    assert [v.actions for v in runs[0].violations] == [v.actions for v in runs[1].violations]
    assert (runs[0].states, runs[0].transitions) == (runs[1].states, runs[1].transitions)


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_pct_changes_priorities_less_than_its_depth(depth):
    counts = [changes(drawn(Strategy("pct", depth), seed)) for seed in range(30)]
    assert max(counts) == depth - 1 if depth < 4 else 2 <= max(counts) <= 3
    assert len({drawn(Strategy("pct", depth), seed)[0].who for seed in range(30)}) == len(STEPS)


@pytest.mark.parametrize("delays", [0, 1, 3])
def test_delays_are_bounded(delays):
    """Without a delay the first actor goes on; each delay passes the turn on, and nothing else does."""
    counts = [changes(drawn(Strategy("delay", delays=delays), seed)) for seed in range(20)]
    assert max(counts) <= delays and (not delays or max(counts) > 0)


def test_an_actor_that_can_do_nothing_loses_its_turn():
    draw = Strategy("delay", delays=0).walk(0)
    taken = [draw.choose(STEPS[:2]), draw.choose(STEPS[1:2]), draw.choose(STEPS[:2])]
    assert [action.who for action in taken] == ["a", "b", "b"]


def test_a_swarm_goes_without_some_faults():
    used = set()
    for seed in range(40):
        used.add(frozenset(a.op for a in drawn(Strategy("swarm"), seed, 200, STEPS + FAULTS)) - {"start"})
    assert used == {frozenset(), frozenset(["crash"]), frozenset(["conflict"]), frozenset(["crash", "conflict"])}
    assert Strategy("swarm").walk(0).choose([]) is None


def test_random_takes_no_order():
    assert changes(drawn(Strategy("random"), 1)) > WITHIN / 2 and changes(drawn(Strategy("random"), 2)) > WITHIN / 2


def test_the_verdict_names_the_strategy():
    verdict = sm.check(writers(2, False), walks=3, strategy="pct", pct_depth=3)
    assert "walks 3, seed 0, strategy pct, pct-depth 3" in verdict.summary()
    assert "strategy delay, delays 1" in sm.check(writers(2, False), walks=1, strategy="delay", delays=1).summary()
    with pytest.raises(
        ScenarioError, match="strategy 'best' is unknown; choose one of mixed, random, pct, delay, swarm"
    ):
        sm.check(writers(2, False), walks=1, strategy="best")
