"""Between any two calls of a reconcile something else may happen: others' writes, crashes, refusals, stale caches."""

import pytest

import steersman as sm
from steersman.check.explore import Bounds, Explorer
from steersman.check.follow import Follower
from steersman.check.search import Walker
from steersman.kernel.transition import apply, enabled
from tests.check.models import config, controller, key

COUNTER = key("counter")


def counting(c, key, careful):
    """Adds one, once; done is remembered in an object of its own."""
    mine = sm.Key("", "ConfigMap", "default", c.manager)
    if key != COUNTER or c.get(mine).data.done:
        return
    found = c.get(COUNTER)
    number = int(found.data.n) + 1
    if careful:
        c.update({**found, "data": {"n": str(number)}})
    else:
        c.patch(COUNTER, {"data": {"n": str(number)}})
    c.patch(mine, {"data": {"done": "yes"}})


def two_counters(careful):
    w = sm.Scenario(f"careful {careful}")
    for name in ("one", "two"):
        w.apply(config(name))
    w.apply(config("counter", n="0"))
    for name in ("one", "two"):
        w.run(controller(name, lambda c, key: counting(c, key, careful)))
    w.converges(lambda s: s[COUNTER].data.n == "2")
    return w


def test_a_lost_update_is_found_between_two_calls():
    verdict = Explorer(two_counters(careful=False), Bounds()).run()
    (violation,) = [v for v in verdict.violations if v.kind == "converges"]
    last = {}
    for number, action in enumerate(violation.actions):
        last[action.label] = number
    reads = [last[f"cont {who}/ConfigMap default/counter#2"] for who in ("one", "two")]
    writes = [last[f"cont {who}/ConfigMap default/counter#3"] for who in ("one", "two")]
    assert max(reads) < min(writes), "read, read, write, write"


def test_whole_reconciles_cannot_show_it():
    Explorer(two_counters(careful=False), Bounds(atomic=True)).run().assert_holds(complete=True)


def test_a_write_with_its_reads_shows_what_a_cache_that_lags_lets_it_read():
    """What is read with the write that follows is as old as the cache, and no older."""
    Explorer(two_counters(careful=False), Bounds(by_write=True)).run().assert_holds(complete=True)
    verdict = Explorer(two_counters(careful=False), Bounds(by_write=True, lag=1)).run()
    (violation,) = [v for v in verdict.violations if v.kind == "converges"]
    Follower(Explorer(two_counters(careful=False), Bounds(lag=1)), violation.schedule).run()
    assert {action.op for action in violation.actions} <= {"run", "cont", "deliver"}
    walked = Walker(Explorer(two_counters(careful=False), Bounds(by_write=True, lag=1)), 40, 0).run()
    (violation,) = [v for v in walked.violations if v.kind == "converges"]
    assert {action.op for action in violation.actions} <= {"run", "cont", "deliver"}


@pytest.mark.parametrize("fault", ["crashes", "conflicts", "errors", "lost_replies"])
def test_faults_befall_each_write_where_writes_are_steps(fault):
    """Those of every write of the calls as steps, and no others."""
    ops = {"crashes": "crash", "conflicts": "conflict", "errors": "error", "lost_replies": "lose-reply"}
    found = []
    for by_write in (False, True):
        bounds = Bounds(by_write=by_write, **{fault: 1})
        explorer = Explorer(two_counters(careful=True), bounds, settle=False, clusters=False, sleep=False)
        explorer.run()
        actions = explorer.graph.actions
        found.append({action.label for action in actions if action.op == ops[fault]})
    assert found[0] == found[1] and found[0]


def test_a_resource_version_prevents_it():
    explorer = Explorer(two_counters(careful=True), Bounds())
    verdict = explorer.run().assert_holds(complete=True)
    assert verdict.states > 20
    refused = [
        node
        for node in nodes(explorer.system.reexec)
        if node.outcome is not None and isinstance(node.outcome.value, sm.Conflict)
    ]
    assert refused, "the second writer was refused (409) on some path"


def nodes(reexec):
    work = list(reexec._roots.values())
    while work:
        node = work.pop()
        yield node
        work.extend(node.children.values())


def two_writes(repairs):
    w = sm.Scenario("two writes")
    w.apply(config("o"))

    def reconcile(c, at):
        found = c.get(key("o")).data
        if not found.first:
            c.patch(key("o"), {"data": {"first": "yes"}})
            c.patch(key("o"), {"data": {"second": "yes"}})
        elif repairs and not found.second:
            c.patch(key("o"), {"data": {"second": "yes"}})

    w.run(controller("writer", reconcile))
    w.converges(lambda s: s[key("o")].data.second == "yes")
    return w


def test_a_crash_between_two_writes():
    Explorer(two_writes(False), Bounds()).run().assert_holds(complete=True)
    verdict = Explorer(two_writes(False), Bounds(crashes=1)).run()
    violation = verdict.violations[0]
    assert [action.op for action in violation.actions].count("crash") == 1
    Explorer(two_writes(True), Bounds(crashes=1)).run().assert_holds(complete=True)


def conflicting(retries):
    w = sm.Scenario("conflicting")
    w.apply(config("o"))

    def reconcile(c, at):
        found = c.get(at)
        if found.data.done:
            return
        try:
            c.update({**found, "data": {"done": "yes"}})
        except sm.Conflict:
            if retries:
                raise

    w.run(controller("writer", reconcile))
    w.converges(lambda s: s[key("o")].data.done == "yes")
    return w


def test_an_injected_conflict():
    Explorer(conflicting(False), Bounds()).run().assert_holds(complete=True)
    verdict = Explorer(conflicting(False), Bounds(conflicts=1)).run()
    violation = verdict.violations[0]
    assert [other.name for other in verdict.violations] == ["converges", "missing watch"]
    assert [action.op for action in violation.actions].count("conflict") == 1
    Explorer(conflicting(True), Bounds(conflicts=1)).run().assert_holds(complete=True)
    Explorer(conflicting(True), Bounds(conflicts=3)).run().assert_holds(complete=True)


def test_a_stale_read_at_lag_one():
    """The cache has not seen the change: the read is old at lag 1, new at lag 0, and new when it is asked fresh."""

    def read(lag, fresh):
        w = sm.Scenario("stale")
        w.apply(config("o", v="0"))
        w.run(controller("reader", lambda c, at: c.get(at, fresh=fresh) and c.get(at)))
        w.user("change", lambda c: c.patch(key("o"), {"data": {"v": "1"}}))
        labels = ["user change", "run reader/ConfigMap default/o", "cont reader/ConfigMap default/o#1"]
        world = driven(w, labels, lag=lag)
        ((_, flight),) = world.flights.items()
        return flight.node.outcome.value.value.data.v

    assert read(0, False) == "1"
    assert read(1, False) == "0"
    assert read(1, True) == "1"


def driven(scenario, labels, **bounds):
    """The world after some Actions."""
    world = scenario.world(Explorer(scenario, Bounds(**bounds)).system)
    for label in labels:
        (action,) = [action for action in enabled(world) if action.label == label]
        world = apply(world, action)
    return world


@pytest.mark.parametrize("lag", [1, 2])
def test_a_view_is_never_further_behind_than_the_lag(lag):
    w = sm.Scenario("far behind")
    w.apply(config("o"))
    w.run(controller("reader", lambda c, at: c.get(at) and None))
    for number in range(4):
        w.user(f"u{number}", lambda c, n=number: c.patch(key("o"), {"data": {"n": str(n)}}))
    explorer = Explorer(w, Bounds(lag=lag))
    verdict = explorer.run()
    assert verdict.complete
    behind = set()
    for number in range(len(explorer.graph)):
        world = explorer.world_at(explorer.graph.path(number))
        for view in world.views.values():
            behind.add(len(view.waiting))
            revisions = [event.rev for event, _ in view.waiting]
            assert revisions == sorted(revisions), "events are delivered in order"
            event, before = view.waiting[0]
            assert before.get(event.key).rv == event.old.rv, "the view shows what was before the first of them"
    assert behind == set(range(1, lag + 1)), "and every lag up to it happens"


def test_a_kind_that_is_only_read_lags_too():
    """The search learns which kinds a controller reads, and starts again with views of them."""
    w = sm.Scenario("learned")
    w.apply(config("o", v="0"))
    w.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {}})
    secret = sm.Key("", "Secret", "default", "s")

    def reconcile(c, at):
        if c.get(secret).metadata.labels and not c.get(at).data.seen:
            c.patch(at, {"data": {"seen": "yes"}})

    w.run(controller("reader", reconcile))
    w.user(
        "label",
        lambda c: (c.patch(secret, {"metadata": {"labels": {"a": "b"}}}), c.patch(key("o"), {"data": {"v": "1"}})),
    )
    w.converges(lambda s: s[key("o")].data.seen == "yes", name="sees the label")
    Explorer(w, Bounds()).run().assert_holds(complete=True)
    verdict = Explorer(w, Bounds(lag=1)).run()
    assert [violation.name for violation in verdict.violations] == ["sees the label", "missing watch"], (
        "it does not watch secrets"
    )
