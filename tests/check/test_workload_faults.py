"""Every controller of workloads under each fault of the catalogue by itself."""

import pytest

from tests.check.sift import OUTSIDE, SINGLE, walked
from tests.check.targets import workloads

WALKS = 3


@pytest.mark.parametrize("name", workloads.TARGETS)
def test_each_fault_by_itself(name):
    for faults in SINGLE:
        if OUTSIDE.isdisjoint(faults):
            walked(name, WALKS, faults).assert_holds()
