"""Our controllers leave behind what the real kube-controller-manager 1.36 left: objects, conditions, Events.

The vectors are recorded by scripts/record_controllers.py.
"""

import pytest

import steersman as sm
from tests.run import recorded, scenarios
from tests.run.scenarios import workloads


@pytest.fixture(scope="module")
def root():
    with recorded.hurried(), sm.testing.control_plane(virtual_nodes=0, instant=True) as cp:
        yield cp


def test_every_scenario_is_recorded():
    assert {name: len(steps) for name, steps in scenarios.SCENARIOS.items()} == {
        name: len(steps) for name, steps in recorded.RECORDED.items()
    }


@pytest.mark.parametrize("name", workloads.SCENARIOS)
def test_what_is_seen_of_workloads_is_what_was_recorded(root, name):
    recorded.replay(root, name)
