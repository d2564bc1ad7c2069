"""No false alarms: controllers that are right are told nothing of, with everything judged out of the box."""

import pytest

import steersman as sm
from tests.check.correct import CORRECT, outside
from tests.check.models import outcome
from tests.check.sift import OUTSIDE, SINGLE, TWICE

STATES = 40
WALKS = 2
ABSENT = frozenset(["webhook_errors", "pod_failures", "evictions", "node_failures"])
"""Faults of what none of these scenarios has."""
OUTSIDERS = frozenset([make.__name__ for make in outside.EVERY])


@pytest.mark.parametrize("name", CORRECT)
def test_stale_views_crashes_and_conflicts(name):
    sm.check(CORRECT[name](), max_states=STATES, **TWICE).assert_holds()
    sm.check(CORRECT[name](), walks=WALKS, max_depth=200, **TWICE).assert_holds()


@pytest.mark.parametrize("name", CORRECT)
def test_each_fault_by_itself(name):
    for faults in SINGLE:
        if not ABSENT.isdisjoint(faults) or (name not in OUTSIDERS and not OUTSIDE.isdisjoint(faults)):
            continue
        sm.check(CORRECT[name](), max_states=STATES, atomic=True, **faults).assert_holds()
        sm.check(CORRECT[name](), walks=1, max_depth=200, **faults).assert_holds()


@pytest.mark.parametrize(
    ("name", "bounds"),
    [
        ("aggregated_status", TWICE),
        ("json_patch", TWICE),
        ("one_after_another", {"lag": 1}),
        ("hot_reload", {"lag": 1}),
    ],
)
def test_reductions_under_lag_leave_the_ends_as_they_are(name, bounds):
    """A busy controller hears late; a delivery takes work off its hands; two events come at once."""
    plain = outcome(CORRECT[name](), switches={"lazy": False, "settle": False}, **bounds)
    for switches in ({}, {"lazy": False}, {"settle": False}):
        reduced = outcome(CORRECT[name](), switches=switches, **bounds)
        assert (reduced.violated, reduced.ends) == (plain.violated, plain.ends) == ([], plain.ends)
