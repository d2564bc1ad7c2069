"""Why a run writes for ever: each cause is told, with who and what."""

import pytest

import steersman as sm
from tests.check.models import config, controller, key


def livelock(scenario, name, **bounds):
    (violation,) = sm.check(scenario, **bounds).violations
    assert (violation.kind, violation.name) == ("livelock", name)
    assert violation.cycle
    return violation.message


def writes(**data):
    """Makes an object say this, and does nothing when it does."""

    def reconcile(c, at):
        found = c.get(at)
        if any(found.data.get(name) != value for name, value in data.items()):
            c.patch(at, {"data": data})

    return reconcile


@pytest.mark.parametrize("atomic", [False, True])
@pytest.mark.parametrize("claimed", [False, True])
def test_a_fight_names_both_and_the_field(atomic, claimed):
    w = sm.Scenario("fight")
    w.apply(config("a"))
    w.run(controller("gitops", writes(replicas="2", team="x")), controller("scaler", writes(replicas="5", by="me")))
    if claimed:
        w.converges()
    text = livelock(w, "no fight over a field", atomic=atomic)
    first, steps = text.split("\n")
    assert first.startswith("gitops and scaler fight over ConfigMap default/a data.replicas: ")
    assert 'gitops sets "2"' in first and 'scaler sets "5"' in first
    assert "repeat for ever and write each time; taking part: gitops, scaler" in steps
    w.without("no fight over a field")
    assert sm.check(w, atomic=atomic).holds is not claimed


def test_a_fight_over_whether_it_is_there():
    def makes(c, at):
        if c.get(key("b")) is None:
            c.create(config("b"))

    def removes(c, at):
        if c.get(key("b")) is not None:
            c.delete(key("b"))

    w = sm.Scenario("there")
    w.apply(config("a"))
    w.run(controller("maker", makes, map_event=lambda *_: [key("a")]))
    w.run(controller("sweeper", removes, map_event=lambda *_: [key("a")]))
    text = livelock(w, "no fight over a field")
    assert text.startswith("maker and sweeper fight over ConfigMap default/b: ")
    assert "maker creates it" in text and "sweeper removes it" in text


def test_a_write_that_is_not_idempotent():
    def toggle(c, at):
        c.patch(at, {"data": {"on": "no" if c.get(at).data.on == "yes" else "yes"}})

    w = sm.Scenario("toggle")
    w.apply(config("a", on="no"))
    text = livelock(w.run(controller("flip", toggle)), "no livelock")
    assert text.startswith(
        'a write that is not idempotent: flip changes ConfigMap default/a data.on again and again: to "yes", then "no"'
    )


def test_making_and_removing_again():
    def again(c, at):
        if c.get(key("b")) is None:
            c.create(config("b"))
        else:
            c.delete(key("b"))

    w = sm.Scenario("again")
    w.apply(config("a"))
    w.run(controller("maker", again, map_event=lambda *_: [key("a")]))
    text = livelock(w, "no livelock")
    assert "maker creates and removes ConfigMap default/b again and again" in text


def test_a_circle_of_writes():
    """Each of two answers the other; no field has two writers."""

    def ask(c, at):
        found = c.get(at)
        if found.data.answer == found.data.question:
            c.patch(at, {"data": {"question": "no" if found.data.question == "yes" else "yes"}})

    def answer(c, at):
        found = c.get(at)
        if found.data.answer != found.data.question:
            c.patch(at, {"data": {"answer": found.data.question}})

    w = sm.Scenario("circle")
    w.apply(config("a", question="no", answer="no"))
    w.run(controller("asks", ask), controller("replies", answer))
    text = livelock(w, "no livelock")
    assert text.startswith("a circle of writes: asks changes ConfigMap default/a data.question, so replies changes")


def test_what_takes_time_is_a_livelock_only_where_convergence_is_claimed():
    def beat(c, at):
        c.patch(at, {"data": {"beat": "no" if c.get(at).data.beat == "yes" else "yes"}})
        return 10

    def make():
        w = sm.Scenario("heart")
        w.apply(config("a", beat="no"))
        return w.run(
            controller("heart", beat, map_event=lambda self, event, find: [event.key] if not event.old else [])
        )

    sm.check(make()).assert_holds(complete=True)
    assert "not idempotent: heart changes" in livelock(make().converges(), "no livelock")


def test_a_loop_that_needs_no_time_is_told_rather_than_one_that_does():
    def beat(c, at):
        c.patch(at, {"data": {"beat": "no" if c.get(at).data.beat == "yes" else "yes"}})
        return 10

    w = sm.Scenario("hot")
    w.apply(config("a", beat="no"))
    (violation,) = sm.check(w.run(controller("heart", beat))).violations
    assert "fire" not in [action.op for action in violation.cycle]
