"""As test_recorded_controllers: what scales, serves, stores, starts at its time, and drives away."""

import pytest

import steersman as sm
from tests.run import recorded
from tests.run.scenarios import autoscalers, cronjobs, devices, nodes, services, storage, tokens

OTHERS = [
    name for part in (autoscalers, cronjobs, nodes, services, storage, devices, tokens) for name in part.SCENARIOS
]


@pytest.fixture(scope="module")
def root():
    with recorded.hurried(), sm.testing.control_plane(virtual_nodes=0, instant=True) as cp:
        yield cp


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_seen_is_what_was_recorded(root, name):
    recorded.replay(root, name)
