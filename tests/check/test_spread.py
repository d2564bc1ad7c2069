"""A search in several processes finds what one process finds: the same states, numbers, transitions and violations."""

import os
import signal
import threading
import time

import pytest

import steersman as sm
from steersman.check import part, spread
from steersman.check.explore import Bounds, Explorer
from steersman.check.mistake import ScenarioError
from tests.bench.bench_explore import scenario as deployments
from tests.check.models import config, controller, key, writers
from tests.laws.test_reduction_laws import MODELS

WHOLE = dict.fromkeys(("settle", "clusters", "sleep", "symmetry", "lazy"), False)
MERGED = {"clusters": False, "symmetry": False}
RUNS = {
    **{name: (make, bounds) for name, (make, bounds) in MODELS.items()},
    "foo/bar lag": (MODELS["foo/bar"][0], {"lag": 1}),
    "over-creation lag 2": (MODELS["over-creation"][0], {"lag": 2}),
    "false ready, few steps": (MODELS["false ready"][0], {"crashes": 1, "lag": 1, "max_depth": 9}),
    "duel cut": (MODELS["duel"][0], {"conflicts": 1, "max_transitions": 150}),
    "deployments": (lambda: deployments(1, 2), {"lag": 1}),
}


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Other processes start at once, and send little at a time."""
    monkeypatch.setattr(spread, "ALONE", 5)
    monkeypatch.setattr(spread, "SHARE", 1)
    monkeypatch.setattr(part, "CHUNK", 3)


@pytest.fixture
def started(monkeypatch):
    """The processes that were started."""
    out = []
    start = spread._Process.__init__

    def counted(self, *args):
        start(self, *args)
        out.append(self.process)

    monkeypatch.setattr(spread._Process, "__init__", counted)
    return out


def search(scenario, workers, switches=MERGED, **bounds):
    explorer = Explorer(scenario, Bounds(**bounds), workers=workers, **switches)
    explorer.run()
    return explorer


def facts(explorer):
    """Everything about a search but seconds and what the memos did."""
    verdict, graph = explorer.verdict, explorer.graph
    found = [(v.kind, v.name, v.message, v.actions, v.cycle, v.other) for v in verdict.violations]
    edges = [[(graph.actions[action].label, target) for action, target in graph.edges(n)] for n in range(len(graph))]
    arrays = (graph.parent.tolist(), graph.stores.tolist(), edges)
    numbers = (verdict.states, verdict.transitions, verdict.converged, verdict.depth, verdict.frontier)
    return found, verdict.incomplete, numbers, explorer.ways, verdict.reads, verdict.reductions, arrays


@pytest.mark.parametrize("switches", [MERGED, WHOLE], ids=["reduced", "whole"])
@pytest.mark.parametrize("model", RUNS)
def test_more_processes_change_nothing(model, switches, started):
    make, bounds = RUNS[model]
    bounds = {"max_states": 600, **bounds}
    one = facts(search(make(), 1, switches, **bounds))
    assert not started
    for workers in (2, 3):
        assert facts(search(make(), workers, switches, **bounds)) == one
    assert started or one[2][0] < 30
    assert not any(process.is_alive() for process in started)


def busy(do=lambda c, key: None, users=6):
    """People change an object in every order; when it was changed a few times the controller does something beside."""

    def reconcile(c, name):
        if len(c.get(name).data) >= users - 1:
            do(c, name)

    w = sm.Scenario("busy")
    w.apply(config("a"))
    w.run(controller("does", reconcile))
    for number in range(users):
        w.user(f"u{number}", lambda c, n=number: c.patch(key("a"), {"data": {f"k{n}": "1"}}))
    return w


def test_a_claim_that_is_broken_elsewhere_is_told_as_here():
    def claimed():
        w = busy()
        w.always("few", lambda s: len(s[key("a")].data) < 5)
        return w

    one, two = (facts(search(claimed(), workers)) for workers in (1, 2))
    assert one == two and [v[:2] for v in one[0]] == [("always", "few")]


def test_what_is_found_elsewhere_is_told():
    def wrong(c, name):
        raise AssertionError("found elsewhere")

    verdict = search(busy(wrong), 2, {**MERGED, "settle": False}).verdict
    assert any("found elsewhere" in v.message and v.actions for v in verdict.violations)


def test_a_controller_that_is_another_one_in_each_process_is_named():
    here = os.getpid()

    def wakes(c, name):
        if os.getpid() != here:
            c.now()

    verdict = search(busy(wakes), 2).verdict
    assert "was found in another process and is not possible here" in str(verdict.failed) and verdict.cut


def test_what_is_learned_elsewhere_starts_the_search_again():
    verdict = search(busy(lambda c, name: c.list("v1/Secret"), 4), 2, lag=1).verdict
    assert verdict.reads == ("does Secret",) and verdict.complete


def test_raw_time_that_is_read_elsewhere_is_told():
    assert search(busy(lambda c, name: c.now()), 2).verdict.incomplete == "does reads the raw time; use c.after"


def test_a_process_that_dies_ends_the_search_with_what_was_found(started):
    start, here = time.monotonic(), os.getpid()

    def dies(c, name):
        if os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)

    verdict = search(busy(dies), 2, {**MERGED, "settle": False}).verdict
    assert verdict.incomplete == "stopped: a process of the search has died" and verdict.cut and verdict.transitions
    assert started and not any(process.is_alive() for process in started)
    assert time.monotonic() - start < 20


def test_ctrl_c_gives_what_was_found(started):
    timer = threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    verdict = search(deployments(3, 3), 2, {**WHOLE}, lag=2).verdict
    assert verdict.incomplete == "interrupted" and verdict.cut and verdict.transitions
    assert started and not any(process.is_alive() for process in started)


def test_time_is_up_for_all():
    verdict = search(deployments(3, 3), 2, WHOLE, lag=2, max_seconds=1.0).verdict
    assert verdict.incomplete == "stopped after 1 s" and verdict.frontier


def test_memory_is_shared():
    verdict = search(deployments(3, 3), 2, WHOLE, lag=2, max_memory=1, max_states=3_000).verdict
    assert "MB of memory" in verdict.incomplete


def test_what_compares_everything_stays_in_one_process_where_it_works(started, monkeypatch):
    monkeypatch.setattr(spread, "SHARE", 0)
    verdict = sm.check(writers(4, False), workers=2)
    assert verdict.complete and not started and "one process (for clusters)" in verdict.reductions


def test_and_is_given_up_where_it_does_not(started):
    verdict = sm.check(busy(), workers=2)
    assert verdict.complete and started and "clusters off (several processes)" in verdict.reductions
    assert "clusters off (several processes)" in str(verdict)
    one = sm.check(busy(), clusters=False, symmetry=False)
    assert (verdict.states, verdict.transitions) == (one.states, one.transitions)


def test_more_processes_than_any_machine_has_are_refused():
    with pytest.raises(ScenarioError, match="workers=257: a check is spread over at most 256 processes"):
        sm.check(writers(2, False), workers=257)
