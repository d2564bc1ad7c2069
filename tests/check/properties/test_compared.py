"""What is judged by comparison: ends, and deletions, against the run that nothing disturbs."""

from contextlib import suppress

import pytest

import steersman as sm
from steersman.check.properties.changes import Slot
from steersman.check.properties.shape import difference, shape
from tests.check.models import config, controller, key
from tests.controllers.worlds import replicaset


def only(scenario, name, **bounds):
    (violation,) = sm.check(scenario, **bounds).violations
    assert (violation.kind, violation.name) == (name, name)
    sm.check(scenario, without=[name], **bounds).assert_holds()
    return violation


def one(reconcile, *objects, **attributes):
    w = sm.Scenario("one")
    for obj in objects or (config("a"),):
        w.apply(obj)
    return w.run(controller("worker", reconcile, **attributes))


def test_a_crash_that_leaves_half():
    """Two writes, the first of which stands for both."""

    def setup(c, at):
        if at.name == "a" and c.get(key("first")) is None:
            c.create(config("first"))
            c.create(config("second"))

    found = only(one(setup), "same end as without faults", crashes=1)
    assert found.message == (
        "every run without lag and faults ends in one state; not this one: ConfigMap default/second is missing"
    )
    assert "crash" in [action.op for action in found.actions]
    sm.check(one(setup)).assert_holds(complete=True)


def test_a_stale_read_that_deletes():
    """A volume that is wanted again is deleted, since the wish is seen late, and made again: the end is right."""
    at_volume = sm.Key("", "Secret", "default", "volume")
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "volume", "namespace": "default"}}

    def volume(c, at):
        there = c.get(at_volume, fresh=True)
        wanted = c.get(at).data.wanted
        if wanted == "yes" and there is None:
            c.create(body)
        elif wanted != "yes" and there is not None:
            c.delete(at_volume)

    w = one(volume, config("a", wanted="no"), watches={"v1/Secret": lambda secret: [key("a")]})
    w.user("want", lambda c: (c.patch(key("a"), {"data": {"wanted": "yes"}}), c.create(body)))
    found = only(w, "no extra deletion", lag=1)
    assert found.message == (
        "Secret default/volume is deleted more often than without lag and faults (it never is), and should have "
        "stayed: worker would have left it, had it looked at what is true"
    )
    assert found.actions[-1].op == "cont"
    assert "STALE" in found.explanation and "- Secret default/volume" in found.explanation
    sm.check(w).assert_holds(complete=True)


def test_a_status_that_would_be_another_if_it_were_written_anew():
    """What it counts in a cache that is behind is never counted again; no phase and no condition tells."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}}

    def count(c, at):
        web = c.get(at)
        if not c.list("v1/Secret", "default"):
            with suppress(sm.AlreadyExists):
                c.create(secret)
        if (web.get("status") or {}).get("observedGeneration") != web.metadata.generation:
            found = len(c.list("v1/Secret", "default"))
            c.patch_status(at, {"replicas": found, "observedGeneration": web.metadata.generation})

    def scenario():
        w = sm.Scenario("count")
        w.apply(replicaset(0))
        owner = sm.Key("apps", "ReplicaSet", "default", "web")
        return w.run(controller("worker", count, kind="apps/v1/ReplicaSet", watches={"v1/Secret": lambda _: [owner]}))

    found = only(scenario(), "same end as without faults", lag=1)
    text = "ReplicaSet.apps default/web status.replicas is 0, not 1, as it would be if it were written anew"
    assert found.message.endswith(text.replace(".apps", "")) or found.message.endswith(text)
    sm.check(scenario(), conflicts=1, errors=1).assert_holds(complete=True)


def test_a_status_that_tells_what_happened_is_history():
    """Whether the Secret was there already is not to be found out again."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}}

    def make(c, at):
        if not (c.get(at).get("status") or {}).get("observedGeneration"):
            try:
                c.create(secret)
                made = 1
            except sm.ApiError:
                made = 0
            if c.get(sm.Key("", "Secret", "default", "s"), fresh=True) is not None:
                c.patch_status(at, {"replicas": made, "observedGeneration": 1})

    w = sm.Scenario("history").run(controller("worker", make, kind="apps/v1/ReplicaSet"))
    w.apply(replicaset(0))
    verdict = sm.check(w, lost_replies=1).assert_holds(complete=True)
    assert verdict.converged == 2


def test_calls_that_interleave():
    """Both read, then both write: one addition is lost. Whole reconciles lose none."""

    def add(c, at):
        mark = f"by-{c.manager}"
        found = c.get(at)
        if not found.data.get(mark):
            c.patch(at, {"data": {mark: "x", "sum": str(int(found.data.sum) + 1)}})

    w = one(add, config("a", sum="0"))
    w.run(controller("other", add))
    found = only(w, "confluence")
    text = "every run with whole reconciles ends in one state; not this one: ConfigMap default/a data."
    assert found.message.startswith(text)
    sm.check(w, atomic=True).assert_holds(complete=True)


def test_first_come_first_served_is_meant():
    def take(c, at):
        if not c.get(at).data.owner:
            c.patch(at, {"data": {"owner": c.manager}}, rv=c.get(at).metadata.resourceVersion)

    w = one(take)
    w.run(controller("other", take))
    sm.check(w).assert_holds(complete=True)
    sm.check(w, conflicts=1, crashes=1).assert_holds(complete=True)
    assert [v.name for v in sm.check(w.confluent()).violations] == ["confluence"]


def test_names_that_are_drawn_do_not_count():
    """A crash between making a child and noting its name: the child is deleted, another one is made, and all is as it
    was. What was made in addition may be deleted in addition."""

    def child(c, at):
        if at.name != "a" or c.get(at).data.child:
            return
        for left in c.list("v1/ConfigMap", "default", labels="of=a"):
            c.delete(left)
        meta = {"generateName": "child-", "namespace": "default", "labels": {"of": "a"}}
        made = c.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
        c.patch(at, {"data": {"child": made.metadata.name}})

    sm.check(one(child), crashes=1).assert_holds(complete=True)
    sm.check(one(child), crashes=2, conflicts=1).assert_holds(complete=True)


def test_shapes():
    def store(*objects):
        w = one(lambda c, at: None, *objects)
        return shape(w.world(w.system()).store)

    first = store(config("a", v="1"), config("b"))
    assert difference(first, first) == ""
    assert difference(first, store(config("a", v="2"), config("b"))) == 'ConfigMap default/a data.v is "2", not "1"'
    assert difference(first, store(config("a", v="1"))) == "ConfigMap default/b is missing"
    assert difference(first, store(config("a", v="1"), config("b"), config("c"))) == "ConfigMap default/c is left over"
    assert (Slot("", "ConfigMap", "default", "a"), 1) in [(slot, count) for (slot, _), count in first.items()]


@pytest.mark.parametrize("bounds", [{"max_states": 3}, {"walks": 3}])
def test_what_is_not_finished_is_not_compared(bounds):
    def setup(c, at):
        if at.name == "a" and c.get(key("first")) is None:
            c.create(config("first"))
            c.create(config("second"))

    assert not sm.check(one(setup), crashes=1, **bounds).violations
