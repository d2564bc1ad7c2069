"""Two instances of one controller: two leaders, and the old and the new version in a roll-out."""

import pytest

import steersman as sm
from steersman.check.explore import Bounds, Explorer
from steersman.check.scenario import ScenarioError
from tests.check.faults.seeded import finds
from tests.check.models import config, key

FORGETFUL = ("missing watch",)
"""A controller that goes by what it remembers would do more if it were asked again without its memory."""


class Numbers(sm.Controller):
    """Gives every claim a number of its own, from a pool. It is the only one who does, so it takes no precaution."""

    kind = "v1/ConfigMap"
    careful = False

    def map_event(self, event, find):
        return [event.key] if event.key.name.startswith("claim") and event.old is None else []

    def reconcile(self, c, at):
        if c.get(at, fresh=True).data.number:
            return
        pool = c.get(key("pool"), fresh=True)
        rv = pool.metadata.resourceVersion if self.careful else ""
        c.patch(pool, {"data": {"next": str(int(pool.data.next) + 1)}}, rv=rv)
        c.patch(at, {"data": {"number": pool.data.next}})


class Precautious(Numbers):
    careful = True


def claims(controller):
    w = sm.Scenario(controller.__name__)
    w.apply(config("pool", next="1"))
    w.apply(config("claim-a"))
    w.apply(config("claim-b"))
    w.run(controller)

    def distinct(s):
        a, b = s[key("claim-a")].data.number, s[key("claim-b")].data.number
        return not a or a != b

    w.always("no number twice", distinct)
    w.converges(lambda s: s[key("claim-a")].data.number and s[key("claim-b")].data.number)
    return w


def test_two_leaders():
    verdict = finds(claims, Numbers, Precautious, "leaders")
    assert "numbers has a second leader" in str(verdict)
    assert "numbers(2) (ConfigMap default/claim-" in str(verdict)


class Signs(sm.Controller):
    """Leaves one mark, and remembers that it did."""

    kind = "v1/ConfigMap"

    def reconcile(self, c, at):
        if not c.memory.get("been"):
            c.memory["been"] = True
            marks = len(c.get(at).data or {})
            c.patch(at, {"data": {f"mark-{marks}": "x"}})


def test_both_leaders_sign_alike_and_remember_apart():
    w = sm.Scenario("signs")
    w.apply(config("a"))
    w.run(Signs)
    w.always("never more than two", lambda s: len(s[key("a")].data or {}) <= 2)
    w.always("never two", lambda s: len(s[key("a")].data or {}) <= 1)
    verdict = sm.check(w, leaders=1, without=FORGETFUL)
    assert [violation.name for violation in verdict.violations] == ["never two"]
    system = Explorer(w, Bounds(leaders=1)).system
    assert [loop.name for loop in system.loops] == ["signs", "signs(2)"] and system.actors == ("signs", "signs")


class Old(sm.Controller):
    """Writes the format that it knows."""

    kind = "v1/ConfigMap"
    format = "1"

    def reconcile(self, c, at):
        if c.get(at).data.format != self.format:
            c.patch(at, {"data": {"format": self.format}})


class Migrates(Old):
    """Writes the new format once, and then counts on it: the old version may come last."""

    format = "2"

    def reconcile(self, c, at):
        if not c.memory.get("migrated"):
            c.memory["migrated"] = True
            super().reconcile(c, at)


class Repairs(Old):
    format = "2"


def upgraded(new, **how):
    w = sm.Scenario(new.__name__)
    w.apply(config("a"))
    w.run(Old)
    w.upgrade(Old, new, **how)
    w.converges(lambda s: s[key("a")].data.format == "2")
    return w


def test_both_versions_live_during_a_roll_out():
    verdict = sm.check(upgraded(Migrates), without=FORGETFUL)
    text = str(verdict)
    assert [violation.kind for violation in verdict.violations] == ["converges"]
    assert (
        "old is upgraded: the new version starts" in text
        and "old runs once from here on: the old instance ends" in text
    )
    sm.check(upgraded(Repairs), crashes=1).assert_holds(complete=True)


def test_a_configuration_that_changes():
    sm.check(upgraded(Migrates, overlap=False), without=FORGETFUL).assert_holds(complete=True)


def test_mistakes():
    w = sm.Scenario("wrong").run(Old)
    with pytest.raises(ScenarioError, match=r"no controller is called 'migrates'.*there are: old"):
        w.upgrade(Migrates, Old)
    with pytest.raises(ScenarioError, match=r"'old' is upgraded twice"):
        w.upgrade("old", Repairs).upgrade(Old, Repairs)
    with pytest.raises(ScenarioError, match=r"takes Controller classes"):
        sm.Scenario("wrong").run(Old).upgrade("old", 3)


@pytest.mark.parametrize("new", [Migrates, Repairs])
def test_what_is_left_out_changes_no_verdict_of_a_roll_out(new):
    off = {"settle": False, "clusters": False, "sleep": False}
    plain = sm.check(upgraded(new), without=FORGETFUL, **off)
    assert [v.title for v in sm.check(upgraded(new), without=FORGETFUL).violations] == [
        v.title for v in plain.violations
    ]


class Declares(sm.Controller):
    """Says what it reads and writes."""

    kind = "v1/ConfigMap"
    reads = ("v1/ConfigMap:data.v",)
    writes = ("v1/ConfigMap:data.seen",)

    def reconcile(self, c, at):
        have = c.get(at)
        if have.data.seen != have.data.v:
            c.patch(at, {"data": {"seen": have.data.v}})


def test_two_instances_are_one_owner_of_what_they_write():
    w = sm.Scenario("declares")
    w.apply(config("a", v="1"))
    w.run(Declares)
    for verdict in (sm.check(w, leaders=1), sm.check(w.upgrade(Declares, Declares))):
        verdict.assert_holds(complete=True)
        assert "no field with two owners" in verdict.summary()
