"""Every built-in controller is checked in a scenario of its own (targets): views two events behind, two crashes, two
conflicts. `make check-targets` looks further."""

import pytest

import steersman as sm
from steersman.controllers.builtin import BY_NAME
from tests.check.sift import TWICE, searched, walked
from tests.check.targets import TARGETS

STATES = 40
WALKS = {"mixed": 4, "delay": 2, "swarm": 2}
UNSEEN = {"node-events", "certificatesigningrequest-approving-controller"}
"""One only tells people; the other judges who is authenticated, and in a check nobody is."""


def of(target):
    """The controller that a target is for."""
    return target.partition(":")[0]


def test_there_is_a_scenario_for_every_controller():
    assert {of(name) for name in TARGETS} == set(BY_NAME)


@pytest.mark.parametrize("name", TARGETS)
def test_it_holds_in_every_order_near_the_start_and_on_walks_to_the_end(name):
    searched(name, STATES, TWICE).assert_holds()
    for strategy, walks in WALKS.items():
        walked(name, walks, TWICE, strategy=strategy).assert_holds()


@pytest.mark.parametrize("name", [name for name in TARGETS if name not in UNSEEN])
def test_a_controller_that_does_nothing_is_noticed(name, monkeypatch):
    monkeypatch.setattr(BY_NAME[of(name)], "reconcile", lambda self, c, key: None)
    assert not sm.check(TARGETS[name](), walks=4, max_depth=100).holds
