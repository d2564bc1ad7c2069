"""Every controller of workloads under each fault of the catalogue by itself."""

import pytest

import steersman as sm
from tests.check.sift import OUTSIDE, SINGLE, walked
from tests.check.targets import target, workloads


@pytest.mark.parametrize("name", workloads.TARGETS)
def test_each_fault_by_itself(name):
    """One walk each, of both kinds of strategy `mixed` in turn."""
    for seed, faults in enumerate(SINGLE):
        if OUTSIDE.isdisjoint(faults):
            walked(name, 1, faults, seed=seed).assert_holds()


def test_a_pod_that_came_and_went_unseen_is_made_again():
    """To the end, whole reconciles: the StatefulSet took the pod for one that is only not seen yet."""
    verdict = sm.check(target("statefulset"), unobserved=1, atomic=True, max_states=4_000)
    verdict.assert_holds(complete=True)
