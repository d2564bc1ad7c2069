"""Random walks: fixed seeds find the known bugs, repeat, minimise, and are always BOUNDED."""

import pytest

import steersman as sm
from examples.check import false_ready, live_volumes, over_creation
from steersman.check.explore import Bounds, Explorer
from steersman.check.search import Walker
from tests.check.models import config, controller, key

BUGS = {
    "over-creation": (lambda: over_creation.scenario(over_creation.NaiveReplicaSet), {"lag": 1}, 20),
    "live volumes": (lambda: live_volumes.scenario(live_volumes.CleanByName), {"lag": 1}, 600),
    "false ready": (lambda: false_ready.scenario(false_ready.Existence), {"crashes": 1}, 60),
}
FIXED = {
    "over-creation": (lambda: over_creation.scenario(over_creation.CarefulReplicaSet), {"lag": 1}, 20),
    "live volumes": (lambda: live_volumes.scenario(live_volumes.CleanByUid), {"lag": 1}, 60),
    "false ready": (lambda: false_ready.scenario(false_ready.Success), {"crashes": 1, "conflicts": 1}, 60),
}


def walk(case, seed=1):
    make, bounds, walks = case
    return Walker(Explorer(make(), Bounds(**bounds)), walks, seed).run()


@pytest.mark.parametrize("name", BUGS)
def test_walks_find_the_bug_and_shorten_it(name):
    verdict = walk(BUGS[name])
    found = [violation for violation in verdict.violations if violation.kind == "always"]
    assert found and verdict.word == "BOUNDED" and "random walks" in verdict.summary()
    make, bounds, _ = BUGS[name]
    explorer = Explorer(make(), Bounds(**bounds))
    verdict = explorer.run()
    shortest = min(len(v.actions) for v in verdict.violations if v.name == found[0].name)
    assert shortest <= len(found[0].actions) <= shortest + 4


@pytest.mark.parametrize("name", FIXED)
def test_walks_find_nothing_in_the_fixed_one(name):
    assert walk(FIXED[name]).holds


def test_a_seed_is_a_run():
    one, two = walk(BUGS["false ready"], 5), walk(BUGS["false ready"], 5)
    assert [v.actions for v in one.violations] == [v.actions for v in two.violations]
    assert (one.states, one.transitions) == (two.states, two.transitions)


def test_what_is_learned_on_a_walk_starts_the_walks_again():
    """A kind that is read without being watched is learned in the middle; nothing is counted or reported twice."""
    w = sm.Scenario("learning")
    w.apply(config("o"))
    w.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}})
    secret = sm.Key("", "Secret", "default", "s")

    def reconcile(c, at):
        if c.get(secret).metadata.labels and c.elapsed(c.get(at).metadata.creationTimestamp, 0):
            c.apply(config("o", v="1"))

    w.run(controller("reader", reconcile))
    w.user(
        "label",
        lambda c: (c.patch(secret, {"metadata": {"labels": {"a": "b"}}}), c.patch(key("o"), {"data": {"n": "1"}})),
    )
    w.converges(lambda s: s[key("o")].data.v == "1").confluent()
    verdict = Walker(Explorer(w, Bounds(lag=1)), 30, 0).run()
    names = [violation.name for violation in verdict.violations]
    assert sorted(names) == ["confluence", "converges", "missing watch"]


def test_ends_are_compared_in_one_form():
    """One walk ends before it is learned that generations count, another one learns it: they end in the same state."""

    def reconcile(self, c, at):
        found = c.get(at).metadata.annotations or {}
        if found.get("x") and not found.get("y"):
            c.get(key(f"generation-{c.get(at).metadata.generation}"))

    w = sm.Scenario("one end")
    web = w.apply(over_creation.WEB)
    w.run(type("Reader", (sm.Controller,), {"kind": "apps/v1/ReplicaSet", "reconcile": reconcile}))
    for name in "xy":
        w.user(name, lambda c, name=name: c.patch(web, {"metadata": {"annotations": {name: "1"}}}))
    w.confluent()
    for seed in range(8):
        explorer = Explorer(w)
        verdict = Walker(explorer, 12, seed).run()
        assert verdict.holds and verdict.converged == 1 and not explorer.system.canon.ranks


def test_walks_of_chance_and_raw_time_say_so():
    w = sm.Scenario("raw")
    w.apply(config("o"))
    w.run(controller("timer", lambda c, at: c.get(at).data.v or c.patch(at, {"data": {"v": str(c.now())}})))
    assert "raw time" in Walker(Explorer(w), 2, 0).run().incomplete
    verdict = Explorer(w).run()
    assert verdict.word == "BOUNDED" and "timer reads the raw time" in verdict.incomplete
    w = sm.Scenario("chance")
    w.apply(config("o"))
    w.run(controller("drawer", lambda c, at: c.get(at).data.v or c.patch(at, {"data": {"v": c.random()}})))
    verdict = Explorer(w).run()
    assert verdict.word == "BOUNDED" and "drawer draws random numbers" in verdict.incomplete
