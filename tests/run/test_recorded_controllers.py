"""Our controllers leave behind what the real kube-controller-manager 1.36 left: objects, conditions, Events.

The vectors are recorded by scripts/record_controllers.py.
"""

import difflib

import pytest

import steersman as sm
from tests.run import scenarios

SECONDS = 8.0
RECORDED = scenarios.load()


@pytest.fixture(scope="module")
def root():
    with sm.testing.control_plane(virtual_nodes=0, instant=True) as cp:
        yield cp


@pytest.mark.parametrize("name", sorted(scenarios.SCENARIOS))
def test_what_is_seen_is_what_was_recorded(root, name):
    plane = root.workspace(virtual_nodes=3)
    c = plane.client
    c.wait(lambda: c.list("v1/ServiceAccount", scenarios.NAMESPACE), SECONDS, "the default account")

    def settled(c, step):
        wanted = RECORDED[name][step]
        try:
            c.wait(lambda: scenarios.seen(c) == wanted, SECONDS)
        except TimeoutError:
            differs = difflib.unified_diff(
                wanted, scenarios.seen(c), "kube-controller-manager", "ours", lineterm="", n=0
            )
            pytest.fail(f"step {step}:\n" + "\n".join(differs))
        return wanted

    assert len(list(scenarios.play(c, name, settled))) == len(RECORDED[name])
