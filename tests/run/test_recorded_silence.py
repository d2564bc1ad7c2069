"""As test_recorded_controllers: nodes that nobody plays a kubelet for; silence is judged sooner than in a cluster."""

import pytest

import steersman as sm
from steersman.controllers import nodehealth
from tests.run import recorded
from tests.run.scenarios import silence


@pytest.fixture(scope="module")
def root():
    with sm.testing.control_plane(virtual_nodes=0, controllers=["*", "-kubelet"]) as cp:
        yield cp


@pytest.mark.parametrize("name", silence.SCENARIOS)
def test_what_is_seen_is_what_was_recorded(root, name, monkeypatch):
    if name == "node-silent":
        monkeypatch.setattr(nodehealth, "GRACE", 10 * silence.BEAT)
    recorded.replay(root, name, virtual_nodes=0)
