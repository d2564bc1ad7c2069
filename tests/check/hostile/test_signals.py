"""Ctrl-C while a search goes on: at once in code of theirs, else between two expansions; never within one."""

import os
import signal
import threading

import pytest

from steersman.check import guard
from steersman.check.explore import Bounds, Explorer
from steersman.check.watchdog import Watchdog
from tests.check.models import writers


@pytest.fixture(autouse=True)
def heard():
    """A test run in the background of a shell ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_it_waits_for_the_search_to_take_it():
    done = []
    with pytest.raises(KeyboardInterrupt), guard.held():
        assert guard.hold(threading.get_ident()), "the first waits"
        assert not guard.hold(threading.get_ident()), "the second does not"
        done.append(1)
        guard.take()
        done.append(2)
    assert done == [1]
    assert not guard.hold(threading.get_ident()), "nobody holds it any more"


def test_what_was_not_taken_comes_at_the_end():
    with pytest.raises(KeyboardInterrupt), guard.held():
        guard.hold(threading.get_ident())


@pytest.mark.parametrize("after", range(1, 40, 3))
def test_a_search_that_is_interrupted_anywhere_gives_a_whole_graph(after, monkeypatch):
    """The signal comes while a world is added to the graph; what is judged then is what a shorter search had."""
    explorer = Explorer(writers(3, True), Bounds(), settle=False, clusters=False, sleep=False)
    identity, count = explorer.reducer.identity, [0]

    def adding(*args):
        count[0] += 1
        if count[0] == after:
            os.kill(os.getpid(), signal.SIGINT)
        return identity(*args)

    monkeypatch.setattr(explorer.reducer, "identity", adding)
    with Watchdog(explorer):
        verdict = explorer.run()
    assert verdict.incomplete == "interrupted"
    graph = explorer.graph
    assert all(0 <= target < len(graph) for state in range(len(graph)) for _, target in graph.edges(state))
    assert len(graph) == verdict.states


def test_in_code_of_theirs_it_comes_at_once():
    w = writers(3, True)
    w.always("slow", lambda s: os.kill(os.getpid(), signal.SIGINT) or _for_ever())
    explorer = Explorer(w, Bounds())
    with Watchdog(explorer, 60):
        assert explorer.run().incomplete == "interrupted"


def _for_ever():
    while True:
        pass
