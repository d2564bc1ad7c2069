"""Caches that lag tree by tree: all that queues of kinds allow, and more, which is not reported."""

import pytest

import steersman as sm
from examples.check import live_volumes, over_creation
from steersman.check.explore import Bounds, Explorer
from steersman.kernel.effect import Event
from steersman.kernel.store import Store
from steersman.kernel.view import Cursors
from tests.check.models import config, key, outcome


class Pair(sm.Controller):
    """Sees two lamps. They are switched on one after the other."""

    kind = "v1/ConfigMap"
    wrong = ("off", "on")

    def map_event(self, event, find):
        return [key("note")] if event.key.name in ("first", "second") else []

    def reconcile(self, c, at):
        seen = tuple([lamp.data.light for lamp in c.list("v1/ConfigMap") if lamp.metadata.name != "note"])
        if seen == self.wrong:
            c.patch(at, {"data": {"seen": "yes"}})


class Possible(Pair):
    wrong = ("on", "off")


def lamps(controller):
    w = sm.Scenario(controller.__name__)
    for name in ("first", "second", "note"):
        w.apply(config(name, light="off"))
    w.run(controller)

    def switch(c):
        c.patch(key("first"), {"data": {"light": "on"}})
        c.patch(key("second"), {"data": {"light": "on"}})

    w.user("switch", switch)
    w.always("not seen", lambda s: not s[key("note")].data.seen)
    return w


OFF = ("missing watch",)


def test_what_no_queue_allows_is_not_reported():
    sm.check(lamps(Pair), lag=2, without=OFF).assert_holds(complete=True)
    verdict = sm.check(lamps(Pair), lag=2, trees=True, without=OFF)
    assert verdict.holds and not verdict.complete
    assert [violation.name for violation in verdict.unconfirmed] == ["not seen"]
    assert "only where trees of objects overtake each other: always: not seen" in verdict.summary()
    assert "cursors by tree" in verdict.summary()


def test_what_a_queue_allows_is_reported():
    for trees in (False, True):
        verdict = sm.check(lamps(Possible), lag=2, trees=trees, without=OFF)
        assert [violation.name for violation in verdict.violations] == ["not seen"], str(verdict)
    assert "deliver possible/ConfigMap default/first" in [action.label for action in verdict.violations[0].actions]


@pytest.mark.parametrize(
    ("make", "bounds"),
    [
        (lambda: over_creation.scenario(over_creation.NaiveReplicaSet), {"lag": 1}),
        (lambda: live_volumes.scenario(live_volumes.CleanByName), {"lag": 1, "atomic": True}),
    ],
)
def test_a_stale_bug_is_found_and_confirmed(make, bounds):
    plain, trees = sm.check(make(), **bounds), sm.check(make(), **bounds, trees=True)
    assert {v.name for v in plain.violations} <= {v.name for v in trees.violations} and not trees.unconfirmed


def test_all_that_queues_allow():
    for controller in (Pair, Possible):
        plain = outcome(lamps(controller), lag=2, switches={"settle": False, "clusters": False})
        trees = outcome(lamps(controller), lag=2, trees=True, switches={"settle": False, "clusters": False})
        assert set(plain.ends) <= set(trees.ends) and set(plain.violated) <= set(trees.violated)


def test_the_order_in_which_trees_changed_is_no_part_of_a_state():
    explorer = Explorer(lamps(Pair), Bounds())
    store = explorer.scenario.world(explorer.system).store
    first, second = store.get(key("first")), store.get(key("second"))
    one, other = (Event(1, first.key, first, first.at(9)), store), (Event(2, second.key, second, second.at(10)), store)
    assert Cursors().behind(*one).behind(*other) == Cursors().behind(*other).behind(*one)


def test_a_view_with_cursors_shows_the_head_with_what_waits_undone():
    w = sm.Scenario("two")
    w.apply(config("a", v="1"))
    w.apply(config("b", v="1"))
    w.run(Pair)
    explorer = Explorer(w, Bounds())
    before = w.world(explorer.system).store
    a, b = before.get(key("a")), before.get(key("b"))
    head: Store = before.fork()
    head.put(a.at(90))
    head.remove(b.key, 91)
    view = Cursors().behind(Event(90, a.key, a, a.at(90)), before).behind(Event(91, b.key, b, None), head)
    assert view.moves() == [a.key, b.key]
    assert view.seen(head).get(a.key).rv == a.rv and view.seen(head).get(b.key) is b
    seen, rest = view.moved(b.key)
    assert seen.type == "DELETED" and rest.seen(head).get(b.key) is None and rest.seen(head).get(a.key).rv == a.rv
