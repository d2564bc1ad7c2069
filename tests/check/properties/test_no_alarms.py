"""No false alarms: the built-in controllers break nothing that is judged out of the box."""

import pytest

import steersman as sm
from tests.bench.bench_explore import scenario as rollout
from tests.check.targets import TARGETS

FAULTS = {"lag": 1, "crashes": 1, "conflicts": 1}


@pytest.mark.parametrize(
    "name", ["replicaset", "endpointslice-controller", "pod-garbage-collector", "garbage-collector"]
)
def test_everything_is_judged_and_compared(name):
    """COMPLETE: states at rest, ends and deletions too."""
    verdict = sm.check(TARGETS[name](), **FAULTS).assert_holds(complete=True)
    assert verdict.converged


@pytest.mark.parametrize("name", ["deployment", "statefulset", "daemonset", "job"])
def test_the_first_states_of_whole_reconciles(name):
    sm.check(TARGETS[name](), atomic=True, max_states=40, **FAULTS).assert_holds()


def test_a_rollout_with_garbage_collector_and_node():
    sm.check(rollout(1, 1), walks=2, **FAULTS).assert_holds()
