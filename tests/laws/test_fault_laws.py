"""Faults: without a budget nothing changes, with one the graph without it is a part of the new one; and states that a
fault leads to are told apart where their futures differ."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples.check import false_ready, over_creation
from steersman.check.explore import Bounds, Explorer
from steersman.kernel.faults import BY_NAME, FAULTY
from tests.check import kamera
from tests.check.differential import attack
from tests.check.models import REMEMBERING, TIMED, program_scenario, programs

NUMBERS = {
    "trivial": (lambda: kamera.trivial()[0], {}, (63, 114)),
    "foo/bar": (lambda: kamera.foo_bar()[0], {"crashes": 1, "conflicts": 1}, (348, 685)),
    "careful": (lambda: over_creation.scenario(over_creation.CarefulReplicaSet), {"lag": 1, "crashes": 1}, (74, 151)),
    "naive": (lambda: over_creation.scenario(over_creation.NaiveReplicaSet), {"lag": 2, "conflicts": 1}, (248, 392)),
    "false ready": (lambda: false_ready.scenario(false_ready.Existence), {"crashes": 1}, (29, 28)),
}
"""States and transitions as they were before there were other faults than crashes and conflicts."""


def graph(make, **bounds):
    explorer = Explorer(make(), Bounds(**bounds), settle=False, clusters=False, lazy=False)
    explorer.run()
    return explorer.graph


def labels(graph):
    """Every transition, as states and labels, in the order of the search."""
    return [(n, graph.actions[action].label, target) for n in range(len(graph)) for action, target in graph.edges(n)]


@pytest.mark.parametrize("name", NUMBERS)
def test_without_a_budget_the_graph_is_the_one_of_before(name):
    make, bounds, size = NUMBERS[name]
    plain = graph(make, **bounds)
    assert (len(plain), plain.transitions) == size
    none = graph(make, **dict.fromkeys(BY_NAME, 0) | bounds)
    assert labels(none) == labels(plain)


@pytest.mark.parametrize("fault", BY_NAME)
def test_what_happens_without_the_fault_is_the_graph_without_it(fault):
    make, bounds = (lambda: false_ready.scenario(false_ready.Success)), {"max_states": 5_000}
    plain, more = graph(make, **bounds), graph(make, **bounds, **{fault: 1})
    same = {0: 0}
    for state in range(len(plain)):
        here = {plain.actions[action].label: target for action, target in plain.edges(state)}
        edges = list(more.edges(same[state]))
        there = {
            more.actions[action].label: target for action, target in edges if more.actions[action].op not in FAULTY
        }
        assert list(here) == list(there)
        for label, target in here.items():
            assert same.setdefault(target, there[label]) == there[label]
    assert len(set(same.values())) == len(plain)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(programs(REMEMBERING), min_size=1, max_size=2) | st.lists(programs(TIMED), min_size=1, max_size=1),
    st.integers(0, 2),
    st.sampled_from(sorted(BY_NAME)),
    st.sampled_from([{}, {"lag": 1}, {"lag": 2, "trees": True}]),
)
def test_states_that_are_taken_for_one_have_the_same_futures(table, users, fault, lagging):
    report = attack(program_scenario(table, users), keep=3, limit=250, **{fault: 1}, **lagging)
    assert not report.differences, report.differences[0]
