"""A reconcile that neither calls nor ends is stopped, named with its line, and the search goes on."""

import os
import threading
import time

import pytest

import steersman as sm
from steersman.check import watchdog
from tests.check.models import config, controller


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(watchdog, "LIMIT", 0.2)


def hanging():
    w = sm.Scenario("hanging")
    w.apply(config("a"))
    w.apply(config("b"))

    def reconcile(c, at):
        if at.name == "a":
            while c.get(at):
                pass
            number = 0
            while True:
                number += 1  # HERE
        c.patch(at, {"data": {"done": "yes"}})

    def spin(c, at):
        if c.get(at).data.done or at.name == "b":
            return
        number = 0
        while True:
            number += 1

    w.run(controller("spinner", spin), controller("worker", lambda c, at: at.name == "b" and reconcile(c, at)))
    return w


def found(verdict):
    (violation,) = [v for v in verdict.violations if v.name == "hangs"]
    assert violation.message.startswith("spinner on ConfigMap default/a: ran for 0.2 s without a call (")
    assert f"{__file__}, line " in violation.message and "in spin" in violation.message
    assert verdict.complete, "the search went on to its end"


def test_in_the_main_thread():
    found(sm.check(hanging()))


def test_in_another_thread():
    out = []
    thread = threading.Thread(target=lambda: out.append(sm.check(hanging())))
    thread.start()
    thread.join(60)
    found(out[0])


def test_many_short_executions_are_left_alone():
    w = sm.Scenario("busy")
    w.apply(config("a"))

    def reconcile(c, at):
        number = int(c.get(at).data.n or 0)
        sum(range(20_000))
        if number < 300:
            c.patch(at, {"data": {"n": str(number + 1)}})

    w.run(controller("worker", reconcile))
    sm.check(w).assert_holds(complete=True)


def only(reconcile):
    w = sm.Scenario("only")
    w.apply(config("a"))
    w.run(controller("one", reconcile))
    return [(each.name, each.message) for each in sm.check(w).violations]


def test_who_sleeps_is_woken():
    begun = time.perf_counter()
    ((name, _),) = only(lambda c, at: time.sleep(60))
    assert name == "hangs" and time.perf_counter() - begun < 30


def test_nobody_ends_or_forks_the_process():
    ((name, message),) = only(lambda c, at: os._exit(0))
    assert name == "raised" and "os._exit(0) is not done in a check" in message
    here = os.getpid()
    ((name, message),) = only(lambda c, at: os.fork())
    assert name == "raised" and "os.fork() is not done" in message and os.getpid() == here
    assert "Watchdog" not in repr(os._exit) and "Watchdog" not in repr(os.fork)


@pytest.mark.filterwarnings("ignore:coroutine")
def test_a_reconcile_that_never_ran_is_no_pass():
    async def later(c, at): ...

    def bit_by_bit(c, at):
        yield c.get(at)

    for reconcile in (bit_by_bit, later):
        found = only(reconcile)
        assert found and all(name == "raised" and "nothing of it ran" in message for name, message in found)


@pytest.mark.parametrize("delay", [float("nan"), float("inf")])
def test_a_delay_that_is_none_is_told(delay):
    ((name, _),) = only(lambda c, at: delay)
    assert name == "raised"


@pytest.mark.parametrize("failure", [GeneratorExit(), BaseExceptionGroup("both", [SystemExit()])], ids=repr)
def test_what_is_no_exception_is_told_too(failure):
    def fail(c, at):
        raise failure

    ((name, _),) = only(fail)
    assert name == "raised"
