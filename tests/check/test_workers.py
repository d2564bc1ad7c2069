"""Walks in several processes find what one process finds, in the same order."""

import os
import signal
import threading
import time

import pytest

import steersman as sm
from examples.check import false_ready, live_volumes
from steersman.check import search
from steersman.check.explore import Bounds, Explorer
from steersman.check.search import Walker
from tests.check import kamera
from tests.check.models import config, controller, writers

CASES = {
    "false ready": (lambda: false_ready.scenario(false_ready.Existence), {"crashes": 1}),
    "live volumes": (lambda: live_volumes.scenario(live_volumes.CleanByName), {"lag": 1}),
    "foo/bar": (lambda: kamera.foo_bar()[0], {}),
    "writers": (lambda: writers(3, True), {}),
}


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Other processes start after two walks."""
    monkeypatch.setattr(search, "ALONE", 2)


def walk(scenario, workers, walks=25, **bounds):
    walker = Walker(Explorer(scenario, Bounds(**bounds)), walks, 1, workers=workers)
    return walker.run(), walker


def facts(verdict, walker):
    found = [(v.kind, v.name, v.message, v.actions, v.other) for v in verdict.violations]
    return found, verdict.states, verdict.transitions, verdict.converged, verdict.incomplete, list(walker.ends.items())


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("case", CASES)
def test_more_processes_change_nothing(case, workers):
    make, bounds = CASES[case]
    assert facts(*walk(make(), workers, **bounds)) == facts(*walk(make(), 1, **bounds))


def rarely(do, after=3):
    """A scenario whose controller does something in other processes only."""
    here = os.getpid()

    def reconcile(c, key):
        c.get(key)
        if os.getpid() != here:
            do(c, key)

    w = sm.Scenario("rarely")
    w.apply(config("a"))
    w.run(controller("does", reconcile))
    for number in range(after):
        w.user(
            f"u{number}", lambda c, n=number: c.patch(sm.Key("", "ConfigMap", "default", "a"), {"data": {f"k{n}": "1"}})
        )
    return w


def test_what_is_found_elsewhere_is_told():
    def wrong(c, key):
        raise AssertionError("found elsewhere")

    verdict, _ = walk(rarely(wrong), 2)
    (violation,) = [v for v in verdict.violations if v.name == "raised"]
    assert "found elsewhere" in violation.message and verdict.incomplete == "random walks"


def test_what_is_learned_elsewhere_starts_all_walks_again():
    """Only there a kind is read through a cache that nobody said is read."""
    verdict, _ = walk(rarely(lambda c, key: c.list("v1/Secret")), 2, lag=1)
    assert verdict.reads == ("does Secret",) and verdict.incomplete == "random walks"


def test_raw_time_that_is_read_elsewhere_is_told():
    assert walk(rarely(lambda c, key: c.now()), 2)[0].incomplete == "does reads the raw time; use c.after"


def test_a_process_that_dies_ends_the_walks():
    start = time.monotonic()
    verdict, _ = walk(rarely(lambda c, key: os.kill(os.getpid(), signal.SIGKILL)), 2)
    assert verdict.incomplete == "random walks, a process of them has died" and verdict.transitions
    assert time.monotonic() - start < 20


def test_ctrl_c_gives_what_was_found():
    timer = threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    verdict, walker = walk(rarely(lambda c, key: None), 2, walks=10_000_000)
    assert verdict.incomplete == "interrupted" and verdict.transitions and walker.ends


def test_time_is_up_for_all():
    verdict, _ = walk(rarely(lambda c, key: None), 2, walks=10_000_000, max_seconds=1.0)
    assert verdict.incomplete == "random walks, stopped after 1 s"
