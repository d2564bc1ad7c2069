"""The World's transitions, one by one: queues, timers, workers, crashes, users, external systems, webhooks."""

from contextlib import suppress
from types import SimpleNamespace

import pytest

import steersman as sm
from steersman.api import errors
from steersman.check.explore import Bounds, Explorer
from steersman.check.scenario import ScenarioError
from steersman.kernel.action import Action
from steersman.kernel.effect import Call, Commit, Effect, Event, Request
from steersman.kernel.fingerprint import fingerprint
from steersman.kernel.harm import relist
from steersman.kernel.reexec import Learned
from steersman.kernel.transition import apply, enabled, step
from tests.check.models import config, controller, key

A = key("a")


def world_of(*controllers, objects=("a",), users=(), external=None, **bounds):
    w = sm.Scenario("world")
    for name in objects:
        w.apply(config(name, v="0"))
    w.run(*controllers)
    for number, do in enumerate(users):
        w.user(f"u{number}", do)
    for system, model in (external or {}).items():
        w.external(system, model)
    return w.world(Explorer(w, Bounds(**bounds)).system)


def labels(world):
    return [action.label for action in enabled(world)]


def take(world, *wanted):
    for label in wanted:
        (action,) = [action for action in enabled(world) if action.label == label]
        world = apply(world, action)
    return world


def reader(c, at):
    c.get(at)


def test_an_item_is_queued_once_and_not_run_while_it_is_in_flight():
    world = world_of(controller("r", reader))
    assert labels(world) == ["run r/ConfigMap default/a"]
    world.enqueue(0, A)
    assert len(world.pending) == 1
    world = take(world, "run r/ConfigMap default/a")
    world.enqueue(0, A)
    assert labels(world) == ["cont r/ConfigMap default/a#1"], (
        "queued, but one key is reconciled by one worker at a time"
    )
    assert labels(take(world, "cont r/ConfigMap default/a#1")) == ["run r/ConfigMap default/a"]


@pytest.mark.parametrize("workers", [1, 2])
def test_workers(workers):
    world = world_of(controller("r", reader, workers=workers), objects=("a", "b", "c"))
    world = take(world, "run r/ConfigMap default/a")
    runs = [label for label in labels(world) if label.startswith("run")]
    assert len(runs) == (0 if workers == 1 else 2)


def test_quiescent_and_atomic():
    world = world_of(controller("r", reader), atomic=True)
    assert not world.quiescent
    world = take(world, "run r/ConfigMap default/a")
    assert world.quiescent and labels(world) == []


def test_a_timer_moves_time_and_the_earlier_one_counts():
    def reconcile(c, at):
        c.requeue(20)
        return 10

    world = world_of(controller("r", reconcile))
    start = world.now
    world = take(world, "run r/ConfigMap default/a")
    assert world.quiescent and labels(world) == ["fire r/ConfigMap default/a"]
    world = take(world, "fire r/ConfigMap default/a")
    assert world.now == start + 10_000_000 and labels(world) == ["run r/ConfigMap default/a"]
    assert not world.wakes and not list(world.timers.items())


def test_timers_ring_in_any_order_and_time_never_goes_back():
    world = world_of(controller("slow", lambda c, at: 100), controller("fast", lambda c, at: 10), objects=("a",))
    start = world.now
    world = take(world, "run slow/ConfigMap default/a", "run fast/ConfigMap default/a", "fire slow/ConfigMap default/a")
    assert world.now == start + 100_000_000
    assert take(world, "fire fast/ConfigMap default/a").now == world.now


def test_after_wakes_when_it_becomes_true():
    seen = []

    def reconcile(c, at):
        seen.append(c.after(c.get(at).metadata.creationTimestamp, 30))

    w = sm.Scenario("after")
    w.apply(config("a"))
    w.run(controller("r", reconcile))
    explorer = Explorer(w, twice=False, settle=False)
    verdict = explorer.run()
    assert verdict.complete and set(seen) == {True, False}
    assert {action.op for action in explorer.graph.actions} == {"start", "run", "cont", "fire"}
    assert explorer.system.horizon == 30_000_000


def test_a_crash_is_possible_where_something_is_lost():
    def twice(c, at):
        c.patch(at, {"data": {"x": "1"}})
        c.get(at)

    world = world_of(controller("r", twice), crashes=1)
    assert "crash r" not in labels(world), "nothing done, nothing remembered: a restart changes nothing"
    world = take(world, "run r/ConfigMap default/a")
    assert "crash r" not in labels(world)
    world = take(world, "cont r/ConfigMap default/a#1")
    after = take(world, "crash r")
    assert labels(after) == ["run r/ConfigMap default/a"] and after.budgets == (0,)
    assert world.flights and not after.flights


def test_a_crash_loses_the_news_of_a_deletion():
    world = world_of(controller("r", reader), users=[lambda c: c.delete(A)], crashes=1)
    world = take(world, "run r/ConfigMap default/a", "cont r/ConfigMap default/a#1", "user u0")
    assert labels(world) == ["crash r", "run r/ConfigMap default/a"]
    assert labels(take(world, "crash r")) == []


def test_a_crash_at_a_lag_drops_the_views():
    world = world_of(controller("r", reader), users=[lambda c: c.delete(A)], crashes=1, lag=1)
    world = take(world, "run r/ConfigMap default/a", "cont r/ConfigMap default/a#1", "user u0")
    assert "deliver r/ConfigMap" in labels(world)
    world = take(world, "crash r")
    assert not world.views and labels(world) == []


def test_relist_jumps_to_the_head():
    world = world_of(controller("r", reader), users=[lambda c: c.patch(A, {"data": {"v": "1"}})], lag=1)
    world = take(world, "user u0").fork()
    world.pending.clear()
    relist(world, 0, ("", "ConfigMap"))
    assert not world.views and list(world.pending) == [(0, A)]


def test_a_user_acts_once_and_is_refused_in_silence():
    world = world_of(
        controller("r", reader), users=[lambda c: c.create(config("a")), lambda c: c.patch(A, {"data": {"v": "1"}})]
    )
    assert [label for label in labels(world) if label.startswith("user")] == ["user u0", "user u1"]
    world = take(world, "user u0", "user u1")
    assert world.users == () and world.store.get(A).value.data.v == "1"


def test_an_injected_conflict_only_where_there_can_be_one():
    def reconcile(c, at):
        c.get(at)
        c.create(config("new"))
        c.patch(at, {"data": {"x": "1"}})

    world = world_of(controller("r", reconcile), conflicts=1)
    world = take(world, "run r/ConfigMap default/a")
    assert labels(world) == ["cont r/ConfigMap default/a#1"]
    world = take(world, "cont r/ConfigMap default/a#1")
    assert labels(world) == ["cont r/ConfigMap default/a#2"], "a create does not conflict"
    world = take(world, "cont r/ConfigMap default/a#2")
    assert "conflict r/ConfigMap default/a#3" in labels(world)
    before = world.store.rev
    after = take(world, "conflict r/ConfigMap default/a#3")
    assert after.store.rev == before and after.budgets == (0,) and (0, A) in after.pending


def test_external_systems_are_functions():
    seen = []

    def reconcile(c, at):
        seen.append(c.external("dns", {"name": at.name}))

    world = world_of(controller("r", reconcile), external={"dns": lambda request: {"ip": "10.0.0.1", **request}})
    take(world, "run r/ConfigMap default/a", "cont r/ConfigMap default/a#1")
    assert seen[-1] == {"ip": "10.0.0.1", "name": "a"}


def test_an_external_system_may_refuse():
    def reconcile(c, at):
        try:
            c.external("dns", 1)
        except sm.Forbidden:
            c.patch(at, {"data": {"dns": "forbidden"}})

    def refuse(request):
        raise errors.forbidden("", "", "not yours")

    world = world_of(controller("r", reconcile), external={"dns": refuse}, atomic=True)
    assert take(world, "run r/ConfigMap default/a").store.get(A).value.data.dns == "forbidden"


def test_a_model_that_fails_is_the_scenarios_fault():
    world = world_of(controller("r", lambda c, at: c.external("dns", 1)), external={"dns": lambda request: 1 / 0})
    world = take(world, "run r/ConfigMap default/a")
    with pytest.raises(ScenarioError, match=r"the model of 'dns' failed: ZeroDivisionError: .*test_world\.py, line"):
        take(world, "cont r/ConfigMap default/a#1")


def test_who_reads_a_kind_through_a_cache_is_learned():
    world = world_of(controller("r", lambda c, at: c.list("v1/Secret")), lag=1)
    world = take(world, "run r/ConfigMap default/a")
    with pytest.raises(Learned) as caught:
        take(world, "cont r/ConfigMap default/a#1")
    assert (caught.value.loop, caught.value.gk) == (0, ("", "Secret"))
    world.system.learn(caught.value)
    assert ("", "Secret") in world.system.informers[0]


def test_learned_is_not_swallowed_by_a_user_who_catches_everything():
    def careless(c):
        with suppress(Exception):
            c.apply(config("a", v="1"))

    w = sm.Scenario("careless")
    w.apply(config("a", v="0"))
    w.run(controller("r", reader))
    w.user("careless", careless)
    w.converges(lambda s: s[A].data.v in ("0", "1"))
    explorer = Explorer(w)
    assert explorer.run().complete and explorer.system.canon.managers, "managedFields count where somebody applies"


# -- webhooks: a write in two halves ---------------------------------------------------------------------------------


def behind_a_webhook(world, answer):
    """The same world, whose patches ask somebody first."""
    system = world.system
    inner = system.begin

    def begin(store, request):
        outcome = inner(store, request)
        if request.verb == "patch" and isinstance(outcome, Commit):
            return Call("webhook", "may it?", lambda allowed: answer(allowed, outcome))
        return outcome

    system.begin = begin
    system.call = lambda kind, question: "yes"
    return world


def patching(c, at):
    if c.get(at).data.v == "0":
        c.patch(at, {"data": {"v": "1"}})


def test_call_and_commit_are_actions_of_their_own():
    world = behind_a_webhook(
        world_of(controller("r", patching), users=[lambda c: c.delete(A)]), lambda allowed, outcome: outcome
    )
    world = take(world, "run r/ConfigMap default/a", "cont r/ConfigMap default/a#1", "cont r/ConfigMap default/a#2")
    assert "call r/ConfigMap default/a#2" in labels(world) and world.store.get(A).value.data.v == "0"
    called = take(world, "call r/ConfigMap default/a#2")
    assert "commit r/ConfigMap default/a#2" in labels(called) and called.store.get(A).value.data.v == "0"
    assert take(called, "commit r/ConfigMap default/a#2").store.get(A).value.data.v == "1"
    raced = take(called, "user u0", "commit r/ConfigMap default/a#2")
    assert raced.store.get(A) is None and (0, A) in raced.pending, "the slot changed meanwhile: a conflict"
    assert len({fingerprint(w) for w in (world, called)}) == 2, "who waits for what is part of the state"


def test_a_webhook_that_refuses():
    def refuse(allowed, outcome):
        raise errors.forbidden("configmaps", "a", "denied by policy")

    world = behind_a_webhook(world_of(controller("r", patching)), refuse)
    world = take(world, "run r/ConfigMap default/a", "cont r/ConfigMap default/a#1", "cont r/ConfigMap default/a#2")
    world = take(world, "call r/ConfigMap default/a#2")
    assert world.store.get(A).value.data.v == "0" and (0, A) in world.pending


# -- what is not enabled ---------------------------------------------------------------------------------------------


def test_an_unknown_action_is_refused():
    world = world_of(controller("r", reader))
    with pytest.raises(ValueError, match="no such action: dance r"):
        step(world.fork(), Action("dance", "r"))


def test_nobody_answers():
    world = world_of(controller("r", reader))
    world.system.external = None
    with pytest.raises(LookupError, match=r"w\.external"):
        world.perform(0, Effect("external", ("dns", 1)))


def test_a_component_that_cannot_be_told_apart_is_not_searched():
    world = world_of(controller("r", reader)).fork()
    world.system.components = (SimpleNamespace(name="kubelets", next_deadline=lambda state: None),)
    world.components = ["state"]
    with pytest.raises(TypeError, match=r"kubelets has no identity\(state, now\)"):
        fingerprint(world)


def test_events_are_those_of_the_last_step():
    world = world_of(controller("r", reader), users=[lambda c: c.patch(A, {"data": {"v": "1"}})])
    after = take(world, "user u0")
    (event,) = after.events
    assert isinstance(event, Event) and event.type == "MODIFIED" and event.old.value.data.v == "0"
    assert take(after, "run r/ConfigMap default/a").events == []


def test_requests_are_the_actors_own():
    """Whatever a controller claims, the actor of a request is the controller."""
    seen = []
    world = world_of(controller("r", lambda c, at: c.patch(at, {"data": {"v": "1"}})))
    inner = world.system.begin

    def begin(store, request: Request):
        seen.append((request.actor, request.manager, request.now))
        return inner(store, request)

    world.system.begin = begin
    take(world, "run r/ConfigMap default/a", "cont r/ConfigMap default/a#1")
    assert seen == [("r", "r", world.now)]
