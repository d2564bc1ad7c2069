"""Every built-in controller is checked in a scenario of its own (targets): a stale view, a crash, a conflict."""

import pytest

import steersman as sm
from steersman.controllers.builtin import BY_NAME
from tests.check.targets import TARGETS

STATES = 40
WALKS = 6
UNSEEN = {"node-events", "certificatesigningrequest-approving-controller"}
"""One only tells people; the other judges who is authenticated, and in a check nobody is."""


def test_there_is_a_scenario_for_every_controller():
    assert set(TARGETS) == set(BY_NAME)


@pytest.mark.parametrize("name", TARGETS)
def test_it_holds_in_every_order_near_the_start_and_on_walks_to_the_end(name):
    faults = {"lag": 1, "crashes": 1, "conflicts": 1}
    sm.check(TARGETS[name](), max_states=STATES, **faults).assert_holds()
    sm.check(TARGETS[name](), walks=WALKS, max_depth=200, **faults).assert_holds()


@pytest.mark.parametrize("name", [name for name in TARGETS if name not in UNSEEN])
def test_a_controller_that_does_nothing_is_noticed(name, monkeypatch):
    monkeypatch.setattr(BY_NAME[name], "reconcile", lambda self, c, key: None)
    assert not sm.check(TARGETS[name](), walks=4, max_depth=100).holds
