"""A reconcile that neither calls nor ends is stopped, named with its line, and the search goes on."""

import threading

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
