"""What is judged at rest: one more reconcile, orphans, finalizers, requests that can never be right."""

import pytest

import steersman as sm
from steersman.check.properties.names import EVERY
from steersman.controllers.garbage import GarbageCollector
from tests.check.models import config, controller, key


def names(verdict):
    return [violation.name for violation in verdict.violations]


def message(scenario, name, **bounds):
    """The only violation's message; it is gone when the property is turned off, by the scenario or by the check."""
    (violation,) = sm.check(scenario, **bounds).violations
    assert (violation.kind, violation.name) == (name, name)
    sm.check(scenario, without=[name], **bounds).assert_holds()
    scenario.without(name)
    sm.check(scenario, **bounds).assert_holds()
    return violation.message


def one(reconcile, *objects, **attributes):
    w = sm.Scenario("one")
    for obj in objects or (config("a"),):
        w.apply(obj)
    return w.run(controller("worker", reconcile, **attributes))


# -- one more reconcile ----------------------------------------------------------------------------------------------


def only_new(self, event, find):
    """An event filter that drops everything but what is new."""
    return [event.key] if event.old is None else []


def test_an_event_that_a_filter_drops():
    def copy(c, at):
        if c.get(at).data.copy != c.get(at).data.v:
            c.patch(at, {"data": {"copy": c.get(at).data.v}})

    w = one(copy, config("a", v="1"), map_event=only_new)
    w.user("change", lambda c: c.patch(key("a"), {"data": {"v": "2"}}))
    assert message(w, "missing watch") == (
        'a reconcile of ConfigMap default/a by worker would change ConfigMap default/a data.copy (sets "2"), but '
        "nothing wakes it: it looks at this ConfigMap without being woken when they change"
    )


def test_what_is_read_without_a_watch():
    def copy(c, at):
        secret = c.get(sm.Key("", "Secret", "default", "s"))
        if secret is not None and c.get(at).data.seen != "yes":
            c.patch(at, {"data": {"seen": "yes"}})

    w = one(copy)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}}
    w.user("make", lambda c: c.create(secret))
    text = message(w, "missing watch", lag=1, crashes=1)
    assert text.endswith("but nothing wakes it: it looks at Secrets without being woken when they change")


def test_a_timer_is_a_watch_too():
    def poll(c, at):
        if c.get(sm.Key("", "Secret", "default", "s")) is not None and c.get(at).data.seen != "yes":
            c.patch(at, {"data": {"seen": "yes"}})
        return 10

    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}}
    w = one(poll).user("make", lambda c: c.create(secret))
    sm.check(w).assert_holds(complete=True)


def test_a_toggle_is_not_idempotent():
    def toggle(c, at):
        c.patch(at, {"data": {"on": "no" if c.get(at).data.on == "yes" else "yes"}})

    w = one(toggle, map_event=only_new)
    assert message(w, "idempotent at rest").startswith(
        "another reconcile of ConfigMap default/a by worker changes ConfigMap default/a data.on"
    )


@pytest.mark.parametrize("call", ["timestamp", "random"])
def test_a_value_that_is_new_each_time(call):
    """Chance gives the same in every run of a check, and time stands still: the loop would not show."""

    def stamp(c, at):
        c.patch(at, {"data": {"seen": getattr(c, call)()}})

    (violation,) = sm.check(one(stamp)).violations
    assert (violation.kind, violation.name) == ("livelock", "no livelock")
    assert violation.message == (
        f"a value that is new each time: worker writes into ConfigMap default/a data.seen what c.{call}() gave; that "
        "write wakes it, so it goes on for ever"
    )
    sm.check(one(stamp, map_event=only_new)).assert_holds()


def test_a_time_that_is_written_once_is_no_livelock():
    def stamp(c, at):
        if not c.get(at).data.seen:
            c.patch(at, {"data": {"seen": c.timestamp()}})

    sm.check(one(stamp)).assert_holds(complete=True)


# -- what is left ----------------------------------------------------------------------------------------------------

CHILD = config("child")


def adopting(c, at):
    """Makes a child of `a`, and does not look whether `a` is still the one it saw."""
    owner = c.get(at)
    if owner is not None and at.name == "a" and c.get(key("child")) is None:
        refs = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": owner.metadata.uid, "controller": True}]
        c.create({**CHILD, "metadata": {**CHILD["metadata"], "ownerReferences": refs}})


class Collector(sm.Controller):
    """A collector that trusts its cache: what it saw without an owner it does not look at again."""

    kind = "*"

    def reconcile(self, c, key):
        pass


def orphaned(collector):
    w = one(adopting)
    if collector is not None:
        w.run(collector)
    return w.user("delete", lambda c: c.delete(key("a")))


def test_an_orphan_is_told_where_somebody_collects():
    text = message(orphaned(Collector), "no orphan")
    assert text == "ConfigMap default/child is left, but its owner ConfigMap a (the one it names by uid) is gone"
    sm.check(orphaned(GarbageCollector)).assert_holds(complete=True)
    alone = sm.check(orphaned(None)).assert_holds(complete=True)
    assert f"not judged: no orphan, since no garbage collector runs: {text}" in str(alone)


def test_a_finalizer_that_nobody_removes():
    def cleans_up(c, at):
        found = c.get(at)
        if found is None:
            return
        if not found.metadata.deletionTimestamp and not found.metadata.finalizers:
            c.patch(at, {"metadata": {"finalizers": ["example.com/zone"]}})
        elif found.metadata.deletionTimestamp and found.data.clean == "yes":
            c.patch(at, {"metadata": {"finalizers": None}})

    w = one(cleans_up).user("delete", lambda c: c.delete(key("a")))
    text = message(w, "no leaked finalizer")
    assert text == "ConfigMap default/a is being deleted, but nobody removes its finalizer 'example.com/zone'"


def guarded(makes_it):
    """An object that may go once nothing names it; the other one is its controller's own, or somebody else's."""
    user = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "user", "namespace": "default"}}
    users = {"v1/Secret": lambda secret: [key("a")]}

    def guard(c, at):
        found = c.get(at)
        if found is None:
            return
        held = found.metadata.finalizers
        secrets = c.list("v1/Secret", "default")
        if makes_it and not found.metadata.deletionTimestamp and not secrets:
            c.create(user)
        if not found.metadata.deletionTimestamp and not held:
            c.patch(at, {"metadata": {"finalizers": ["example.com/in-use"]}})
        elif found.metadata.deletionTimestamp and held and not secrets:
            c.patch(at, {"metadata": {"finalizers": None}})

    objects = [config("a")] if makes_it else [config("a"), user]
    return one(guard, *objects, watches=users).user("delete", lambda c: c.delete(key("a")))


def test_what_is_protected_while_another_uses_it_is_no_leak():
    sm.check(guarded(False)).assert_holds(complete=True)


def test_what_waits_for_its_controllers_own_creature_is_a_leak():
    assert "example.com/in-use" in message(guarded(True), "no leaked finalizer")


def test_finalizers_of_kubernetes_wait_for_somebody_who_runs():
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "v", "namespace": "default", "finalizers": ["kubernetes.io/pvc-protection"]},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    volume = sm.Key("", "PersistentVolumeClaim", "default", "v")
    w = one(lambda c, at: None, config("a"), claim).user("delete", lambda c: c.delete(volume))
    sm.check(w).assert_holds(complete=True)
    idle = controller("idle", lambda c, at: None, watches={"v1/PersistentVolumeClaim": lambda obj: []})
    assert "kubernetes.io/pvc-protection" in message(w.run(idle), "no leaked finalizer")


def test_a_request_that_can_never_be_right():
    def wrong(c, at):
        c.patch(at, {"data": {"a/b": "x"}})

    text = message(one(wrong), "convergence")
    assert text.startswith("worker on ConfigMap default/a fails every time: Invalid: ")


def test_a_claim_says_it_in_place_of_the_default():
    def wrong(c, at):
        c.patch(at, {"data": {"a/b": "x"}})

    w = one(wrong).converges(lambda s: s[key("a")].data.done)
    assert names(sm.check(w)) == ["converges"]


def test_who_waits_for_others_may_fail_for_ever():
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "absent"}}
    sm.check(one(lambda c, at: c.create(secret))).assert_holds(complete=True)


# -- where a search was cut short, on walks, on replays --------------------------------------------------------------


def test_a_search_that_was_cut_short_judges_what_it_saw_at_rest():
    def done(c, at):
        if c.get(at).data.done != "yes":
            c.patch(at, {"data": {"done": "yes"}})

    held = config("a")
    held["metadata"]["finalizers"] = ["example.com/f"]
    w = one(done, held).user("delete", lambda c: c.delete(key("a")))
    whole = sm.check(w, conflicts=2)
    assert names(whole) == ["no leaked finalizer"]
    cut = sm.check(w, conflicts=2, max_states=whole.states - 1)
    assert cut.incomplete and names(cut) == ["no leaked finalizer"]
    assert sm.check(w, max_states=3).holds, "nothing it saw is at rest"


def test_walks():
    w = orphaned(Collector)
    found = sm.check(w, walks=20)
    assert names(found) == ["no orphan"]
    assert not sm.check(w, walks=20, without=["no-orphan"]).violations


# -- names -----------------------------------------------------------------------------------------------------------


def test_an_unknown_name():
    with pytest.raises(sm.check.ScenarioError, match="no property 'no orphans'; there are: convergence, "):
        sm.Scenario().without("no orphans")


def test_every_property_is_explained(run):
    code, out, _ = run(None, "--explain")
    assert code == 0
    for about in EVERY:
        assert about.name in out
        code, text, _ = run(None, "--explain", about.name)
        assert code == 0 and all(f"  {label}:" in text for label in ("why", "cause", "fix", "off"))
        code, again, _ = run(None, "--explain", about.name.replace(" ", "-").upper())
        assert again == text
    code, out, err = run(None, "--explain", "nonsense")
    assert code == 2 and not out and "no property 'nonsense'; there are: " in err


def test_the_command_turns_one_off(run):
    text = """
class Wrong(sm.Controller):
    kind = "v1/ConfigMap"
    def reconcile(self, c, key):
        c.patch(key, {"data": {"a/b": "x"}})

def scenario_wrong():
    w = sm.Scenario("wrong")
    w.apply(OBJECT)
    return w.run(Wrong)
"""
    assert run(text)[0] == 1
    assert run(text, "--without", "convergence", "--without", "no orphan")[0] == 0
    code, _, err = run(text, "--without", "nonsense")
    assert code == 2 and "no property 'nonsense'" in err


# -- what is elsewhere -----------------------------------------------------------------------------------------------


def counter(request, state):
    """A system that counts what it is told."""
    if request == "get":
        return state["n"], state
    return None, {"n": min(state["n"] + 1, 5)}


def test_a_call_that_is_not_idempotent():
    w = one(lambda c, at: c.external("counter", "add"), map_event=only_new).external("counter", counter, state={"n": 0})
    text = message(w, "idempotent at rest")
    assert text.startswith("another reconcile of ConfigMap default/a by worker changes what is outside")


def test_a_system_that_was_reset():
    def keep(c, at):
        if c.external("counter", "get") == 0:
            c.external("counter", "add")

    w = one(keep, config("a"), map_event=only_new).external("counter", counter, state={"n": 0})
    sm.check(w).assert_holds(complete=True)
