"""R1: each reduction off gives the same verdict, the same states and the same stores at rest. D1: two processes with
different hash seeds search the same graph."""

import json
import os
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples.check import false_ready, live_volumes, over_creation
from tests.check import kamera
from tests.check.models import REMEMBERING, TIMED, outcome, program_scenario, programs, writers
from tests.source import ROOT

SWITCHES = [{"read_memo": False}, {"write_memo": False}, {"read_memo": False, "write_memo": False}]
LAW = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))

MODELS = {
    "trivial": (lambda: kamera.trivial()[0], {"lag": 1}),
    "foo/bar": (lambda: kamera.foo_bar()[0], {"crashes": 1, "conflicts": 1}),
    "duel": (lambda: kamera.toggle(kamera.Duel)[0], {"conflicts": 1}),
    "claim": (lambda: kamera.toggle(kamera.Claim)[0], {"lag": 1}),
    "writers": (lambda: writers(3, True), {}),
    "over-creation": (lambda: over_creation.scenario(over_creation.NaiveReplicaSet), {"lag": 1}),
    "expectations": (lambda: over_creation.scenario(over_creation.CarefulReplicaSet), {"lag": 1, "crashes": 1}),
    "false ready": (lambda: false_ready.scenario(false_ready.Existence), {"crashes": 1, "conflicts": 1}),
    "live volumes": (lambda: live_volumes.scenario(live_volumes.CleanByName), {"atomic": True, "lag": 1}),
}


def same(scenario, bounds, switches):
    plain, other = outcome(scenario, **bounds), outcome(scenario, switches=switches, **bounds)
    assert (plain is None) == (other is None)
    if plain is not None and other is not None:
        assert other.violated == plain.violated
        assert other.size == plain.size
        assert other.ends == plain.ends
        assert other.labels == plain.labels
    return plain


@pytest.mark.parametrize("switches", SWITCHES, ids=str)
@pytest.mark.parametrize("model", MODELS)
def test_memos_change_nothing(model, switches):
    make, bounds = MODELS[model]
    assert same(make(), bounds, switches) is not None


@LAW
@given(
    st.lists(programs(REMEMBERING), min_size=1, max_size=2),
    st.integers(0, 2),
    st.sampled_from([{}, {"lag": 1}, {"crashes": 1}, {"conflicts": 1}]),
    st.sampled_from(SWITCHES),
)
def test_memos_change_nothing_for_any_program(table, users, bounds, switches):
    same(program_scenario(table, users), {"limit": 500, **bounds}, switches)


@LAW
@given(st.lists(programs(TIMED), min_size=1, max_size=2), st.integers(0, 1), st.sampled_from(SWITCHES))
def test_memos_change_nothing_where_time_counts(table, users, switches):
    same(program_scenario(table, users), {"limit": 400}, switches)


SEARCH = """
import json, sys
sys.path.insert(0, {root!r})
from tests.laws.test_reduction_laws import MODELS
from tests.check.models import outcome
out = {{}}
for name in ("trivial", "expectations", "false ready", "claim"):
    make, bounds = MODELS[name]
    found = outcome(make(), **bounds)
    paths = [[a.label for a in v.actions] for v in found.explorer.verdict.violations]
    text = [str(v.message) for v in found.explorer.verdict.violations]
    out[name] = [found.size, found.labels, [str(end) for end in found.ends], paths, text]
print(json.dumps(out))
"""


def test_two_processes_search_the_same_graph():
    def searched(seed):
        done = subprocess.run(
            [sys.executable, "-c", SEARCH.format(root=str(ROOT))],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
        )
        return json.loads(done.stdout)

    assert searched("1") == searched("4242")
