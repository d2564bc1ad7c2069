"""Every built-in controller under each fault of the catalogue by itself. Workloads, which need longer runs, have a file
of their own."""

import pytest

from tests.check.sift import OUTSIDE, SINGLE, walked
from tests.check.targets import TARGETS, workloads

WALKS = 3


@pytest.mark.parametrize("name", [name for name in TARGETS if name not in workloads.TARGETS])
def test_each_fault_by_itself(name):
    for faults in SINGLE:
        if OUTSIDE.isdisjoint(faults):
            walked(name, WALKS, faults).assert_holds()
