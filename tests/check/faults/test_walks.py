"""Random walks meet faults, and what they find is shortened to the one fault that it takes."""

import pytest

import steersman as sm
from tests.check.faults.test_answers import Absent, OnTimeout, decommission, written
from tests.check.faults.test_instances import Numbers, claims
from tests.check.faults.test_outside import Nodes, volumes
from tests.check.faults.test_watches import Stale, recreated


@pytest.mark.parametrize(
    ("make", "buggy", "fault", "op"),
    [
        (decommission, Absent, "errors", "error"),
        (written, OnTimeout, "timeouts", "timeout"),
        (claims, Numbers, "leaders", "lead"),
        (volumes, Nodes, "external_errors", "external-error"),
        (recreated, Stale, "rewinds", "rewind"),
    ],
)
def test_walks_find_what_a_search_finds(make, buggy, fault, op):
    verdict = sm.check(make(buggy), **{fault: 2}, walks=150, seed=1)
    assert verdict.violations, str(verdict)
    for violation in verdict.violations:
        ops = [action.op for action in violation.actions]
        assert ops.count(op) == 1, "one is enough, and what is not needed is left out"
