"""R1 for faults: what is left out changes no verdict, whichever fault may happen."""

import pytest

import steersman as sm
from examples.check import false_ready
from steersman.kernel.faults import BY_NAME
from tests.check import kamera
from tests.check.faults.test_outside import Hasty, databases
from tests.check.faults.test_watches import Stale, recreated


def verdict(make, fault, **switches):
    found = sm.check(make(), **{fault: 1}, **switches)
    return sorted({violation.title for violation in found.violations}), found.complete, found.converged


@pytest.mark.parametrize("fault", BY_NAME)
def test_reductions_change_no_verdict(fault):
    off = {"settle": False, "clusters": False, "sleep": False, "read_memo": False, "write_memo": False}
    for make in (
        lambda: false_ready.scenario(false_ready.Existence),
        lambda: recreated(Stale),
        lambda: databases(Hasty),
        lambda: kamera.trivial()[0],
    ):
        assert verdict(make, fault) == verdict(make, fault, **off)
