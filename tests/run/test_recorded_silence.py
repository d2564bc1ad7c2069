"""As test_recorded_controllers: nodes that nobody plays a kubelet for, judged sooner than after their time of grace."""

import pytest

import steersman as sm
from steersman.controllers import nodehealth
from tests.run import recorded
from tests.run.scenarios import silence


@pytest.fixture(scope="module")
def root():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nodehealth, "GRACE", 10 * silence.BEAT)
        with sm.testing.control_plane(virtual_nodes=0, controllers=["*", "-kubelet"]) as cp:
            yield cp


@pytest.mark.parametrize("name", silence.SCENARIOS)
def test_what_is_seen_is_what_was_recorded(root, name):
    recorded.replay(root, name, virtual_nodes=0)
