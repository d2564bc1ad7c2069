"""R1: each reduction off gives the same verdict, the same states and the same stores at rest. D1: two processes with
different hash seeds search the same graph."""

import json
import os
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import steersman as sm
from examples.check import false_ready, live_volumes, over_creation
from steersman.check import explore
from steersman.check.explore import Bounds, Explorer
from steersman.check.follow import Follower
from steersman.check.properties.names import EVERY
from tests.check import kamera, models
from tests.check.models import (
    PLAIN,
    REMEMBERING,
    TIMED,
    grouped,
    outcome,
    program_scenario,
    programs,
    spawners,
    spawning,
    writers,
)
from tests.source import ROOT

SWITCHES = [{"read_memo": False}, {"write_memo": False}, {"read_memo": False, "write_memo": False}]
MIXED = (*PLAIN, "requeue", "remember", "stop if remembered")
LAW = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))

MODELS = {
    "trivial": (lambda: kamera.trivial()[0], {"lag": 1}),
    "foo/bar": (lambda: kamera.foo_bar()[0], {"crashes": 1, "conflicts": 1}),
    "duel": (lambda: kamera.toggle(kamera.Duel)[0], {"conflicts": 1}),
    "claim": (lambda: kamera.toggle(kamera.Claim)[0], {"lag": 1}),
    "writers": (lambda: writers(3, True), {}),
    "over-creation": (lambda: over_creation.scenario(over_creation.NaiveReplicaSet), {"lag": 1}),
    "expectations": (lambda: over_creation.scenario(over_creation.CarefulReplicaSet), {"lag": 1, "crashes": 1}),
    "false ready": (lambda: false_ready.scenario(false_ready.Existence), {"crashes": 1, "conflicts": 1}),
    "live volumes": (lambda: live_volumes.scenario(live_volumes.CleanByName), {"atomic": True, "lag": 1}),
}


def same(scenario, bounds, switches):
    plain, other = outcome(scenario, **bounds), outcome(scenario, switches=switches, **bounds)
    assert (plain is None) == (other is None)
    if plain is not None and other is not None:
        assert other.violated == plain.violated
        assert other.size == plain.size
        assert other.ends == plain.ends
        assert other.labels == plain.labels
    return plain


@pytest.mark.parametrize("switches", SWITCHES, ids=str)
@pytest.mark.parametrize("model", MODELS)
def test_memos_change_nothing(model, switches):
    make, bounds = MODELS[model]
    assert same(make(), bounds, switches) is not None


@LAW
@given(
    st.lists(programs(REMEMBERING), min_size=1, max_size=2),
    st.integers(0, 2),
    st.sampled_from([{}, {"lag": 1}, {"crashes": 1}, {"conflicts": 1}]),
    st.sampled_from(SWITCHES),
)
def test_memos_change_nothing_for_any_program(table, users, bounds, switches):
    same(program_scenario(table, users), {"limit": 500, **bounds}, switches)


@LAW
@given(st.lists(programs(TIMED), min_size=1, max_size=2), st.integers(0, 1), st.sampled_from(SWITCHES))
def test_memos_change_nothing_where_time_counts(table, users, switches):
    same(program_scenario(table, users), {"limit": 400}, switches)


# -- reductions of the graph: fewer states, the same verdict and the same ends -------------------------------------

REDUCTIONS = ("settle", "clusters", "sleep", "symmetry", "lazy")
WHOLE = dict.fromkeys(REDUCTIONS, False)
FAULTS = [
    {},
    {"lag": 1},
    {"crashes": 1},
    {"conflicts": 1},
    {"atomic": True},
    {"atomic": True, "crashes": 1},
    {"lag": 1, "crashes": 1},
    {"lag": 2},
    {"by_write": True, "crashes": 1, "conflicts": 1},
    {"by_write": True, "lag": 1},
    {"by_write": True, "lag": 2, "conflicts": 1},
]


def reduced(make, bounds, limit=4_000):
    """Compares every reduction alone, and all of them, with the whole graph; the sizes of the latter two."""
    whole = outcome(make(), limit=limit, switches=WHOLE, **bounds)
    if whole is None:
        return None
    found = None
    alone: list[dict[str, bool]] = [{**WHOLE, name: True} for name in REDUCTIONS]
    for switches in (*alone, {}):
        found = outcome(make(), limit=limit, switches=switches, **bounds)
        if found is not None:
            assert found.violated == whole.violated, switches
            assert found.ends == whole.ends, switches
            replays(make(), found, bounds)
    return whole, found


def replays(scenario, found, bounds):
    """What a reduced search reports is a run of the whole system."""
    for violation in found.explorer.verdict.violations:
        explorer = Explorer(scenario, Bounds(**{**bounds, "by_write": False}))
        explorer.assume_reads(found.explorer.verdict.reads)
        Follower(explorer, violation.schedule).run()  # raises where a step is not possible


@pytest.mark.parametrize("model", MODELS)
def test_reductions_change_no_verdict(model):
    make, bounds = MODELS[model]
    whole, found = reduced(make, bounds)
    assert found.size <= whole.size


@LAW
@given(st.lists(programs(REMEMBERING), min_size=1, max_size=3), st.integers(0, 2), st.sampled_from(FAULTS))
def test_reductions_change_no_verdict_of_any_program(table, users, bounds):
    reduced(lambda: program_scenario(table, users), bounds, 600)


@LAW
@given(st.lists(programs(TIMED), min_size=1, max_size=2), st.integers(0, 2), st.sampled_from(FAULTS))
def test_reductions_change_no_verdict_where_time_counts(table, users, bounds):
    reduced(lambda: program_scenario(table, users), bounds, 600)


@LAW
@given(
    st.lists(programs(MIXED, 4), min_size=1, max_size=2),
    st.lists(programs(MIXED, 4), min_size=1, max_size=2),
    st.integers(0, 2),
    st.integers(0, 2),
    st.sampled_from([{}, {"conflicts": 1}, {"atomic": True}, {"atomic": True, "errors": 1}]),
)
def test_reductions_change_no_verdict_about_two_groups(table, other, users, joint, bounds):
    reduced(lambda: grouped(table, other, users, joint), bounds, 1_000)


@LAW
@given(
    st.lists(spawners(), min_size=1, max_size=3),
    st.sampled_from([{}, {"conflicts": 1}, {"crashes": 1}, {"atomic": True}, {"atomic": True}]),
)
def test_reductions_change_no_verdict_where_names_are_generated(table, bounds):
    reduced(lambda: spawning(table), bounds, 1_000)


@LAW
@given(
    st.lists(programs(REMEMBERING), min_size=1, max_size=3),
    st.integers(0, 2),
    st.sampled_from([{}, {"lag": 1}, {"crashes": 1}, {"lag": 2, "conflicts": 1}]),
    st.sampled_from([{"settle": False, "clusters": False}, {"clusters": False}, {}]),
)
def test_sleep_changes_no_graph(table, users, bounds, switches):
    """What is known without being executed is what executing it gives: the same states, transitions and labels."""
    every = outcome(program_scenario(table, users), limit=800, switches={**switches, "sleep": False}, **bounds)
    some = outcome(program_scenario(table, users), limit=800, switches=switches, **bounds)
    assert (every is None) == (some is None)
    if every is not None:
        assert (some.size, some.labels, some.targets) == (every.size, every.labels, every.targets)
        assert (some.violated, some.ends) == (every.violated, every.ends)


# -- factored: where a search finds that all is well, it is so in the whole graph ----------------------------------

LAGGING = [
    {"lag": 1},
    {"lag": 2},
    {"lag": 1, "crashes": 1},
    {"lag": 1, "conflicts": 1},
    {"lag": 1, "crashes": 1, "conflicts": 1},
    {"lag": 1, "errors": 1},
    {"lag": 1, "lost_replies": 1},
]


def proved_as_whole(make, bounds, limit):
    """Compares a search that is tried as a factored one at once with the whole graph; whether it was one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(explore, "FIRST_STATES", 0)
        found = outcome(make(), limit=limit, **bounds)
    proof = None if found is None else found.explorer.reducer.proof
    if proof is None:
        return False
    whole = outcome(make(), limit=limit, switches={**WHOLE, "factored": False}, **bounds)
    if whole is None:
        return False
    assert not found.explorer.verdict.violations and not whole.explorer.verdict.violations
    assert found.ends == whole.ends
    stores = {proof.world(state).contents for state in range(len(proof.graph))}
    assert stores == set(whole.explorer.stores) or (proof.inner.timers and stores > set(whole.explorer.stores))
    return True


@pytest.mark.parametrize("bounds", [LAGGING[0], LAGGING[3]], ids=str)
def test_factored_shows_the_same_stores(bounds):
    assert proved_as_whole(MODELS["expectations"][0], bounds, 60_000)


@LAW
@given(st.lists(programs(MIXED), min_size=1, max_size=3), st.integers(0, 2), st.sampled_from(LAGGING), st.booleans())
def test_factored_changes_no_verdict_of_any_program(table, users, bounds, claims):
    proved_as_whole(lambda: program_scenario(table, users, claims), bounds, 1_500)


@LAW
@given(st.lists(spawners(), min_size=1, max_size=2), st.sampled_from(LAGGING))
def test_factored_changes_no_verdict_where_names_are_generated(table, bounds):
    proved_as_whole(lambda: spawning(table), bounds, 1_500)


def copying(name, source, target, **attributes):
    """A controller that copies a value from one object to another; woken by the kind, for the target only."""

    def copy(c, key):
        if key.name != target:
            return
        value = c.get(models.key(source)).data.v
        if c.get(key).data.v != value:
            c.patch(key, {"data": {"v": value}})

    return models.controller(name, copy, **attributes)


def blind():
    """A controller that is not woken by what it reads: what comes too late is never copied."""
    w = sm.Scenario("blind")
    w.apply(models.config("a", v="0"))
    w.apply(models.config("b", v="0"))
    w.run(copying("copy", "a", "b", map_event=lambda self, event, find: [event.key] if event.key.name == "b" else []))
    w.user("set", lambda c: c.patch(models.key("a"), {"data": {"v": "1"}}))
    w.converges(lambda s: s[models.key("b")].data.v == "1")
    return w


def torn():
    """A controller that reads two objects which somebody changes one after the other: between the calls it sees the
    old first and the new second, which never were there together."""
    w = sm.Scenario("torn")
    for name in ("a", "b", "seen"):
        w.apply(models.config(name, v="0"))

    def look(c, key):
        first, second = c.get(models.key("a")).data.v, c.get(models.key("b")).data.v
        if (first, second) == ("0", "1") and c.get(models.key("seen")).data.v == "0":
            c.patch(models.key("seen"), {"data": {"v": "1"}})

    def change(c, key):
        if c.get(models.key("a")).data.v == "0":
            c.patch(models.key("a"), {"data": {"v": "1"}})
        if c.get(models.key("b")).data.v == "0":
            c.patch(models.key("b"), {"data": {"v": "1"}})

    w.run(models.controller("look", look, map_event=lambda self, event, find: [models.key("seen")]))
    w.run(models.controller("change", change, map_event=lambda self, event, find: [models.key("a")]))
    w.always("nothing torn", lambda s: s[models.key("seen")].data.v == "0")
    return w


def forgetful():
    """What one item remembers decides what another one of its controller does, and nothing tells that one."""
    w = sm.Scenario("forgetful")
    for name in ("a", "b"):
        w.apply(models.config(name, v="0"))

    def run(c, key):
        if key.name == "a":
            c.memory["go"] = "yes"
        elif c.memory.get("go") and c.get(key).data.v == "0":
            c.patch(key, {"data": {"v": "1"}})

    w.run(models.controller("f", run, map_event=lambda self, event, find: [event.key] if event.old is None else []))
    w.confluent()
    return w


def fighting():
    """Two controllers fight for ever over one object; a third spoils another one, once. Who only looks at the fight
    never sees it (the ignoring problem)."""
    w = sm.Scenario("fighting")
    for name in ("fought", "spoilt"):
        w.apply(models.config(name, v="0"))

    def only(name):
        return {"map_event": lambda self, event, find: [event.key] if event.key.name == name else []}

    for value in ("1", "2"):
        w.run(
            models.controller(f"a{value}", lambda c, key, v=value: c.patch(key, {"data": {"v": v}}), **only("fought"))
        )
    w.run(models.controller("spoil", lambda c, key: c.patch(key, {"data": {"v": "9"}}), **only("spoilt")))
    w.always("not spoilt", lambda s: s[models.key("spoilt")].data.v == "0")
    return w


def together():
    """Two controllers that have nothing to do with each other, and a claim about what both do."""
    w = sm.Scenario("together")
    for name in ("a", "b"):
        w.apply(models.config(name, v="0"))

    def count(c, key):
        value = int(c.get(key).data.v)
        if value < 2:
            c.patch(key, {"data": {"v": str(value + 1)}})

    for name in ("a", "b"):
        only = {"map_event": lambda self, event, find, name=name: [event.key] if event.key.name == name else []}
        w.run(models.controller(f"count-{name}", count, **only))
    w.always("never one and one", lambda s: (s[models.key("a")].data.v, s[models.key("b")].data.v) != ("1", "1"))
    return w


def listening():
    """A controller that hears of one object only while another one is there: who takes that away decides whom a write
    wakes, and neither reads nor writes anything of the other."""
    w = sm.Scenario("listening")
    meta = {"name": "open", "namespace": "default"}
    w.apply({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"ports": [{"port": 80}]}})
    for name in ("told", "heard"):
        w.apply(models.config(name, v="0"))

    def write(c, key):
        if c.get(key).data.v == "0":
            c.patch(key, {"data": {"v": "1"}})

    def hears(self, event, find):
        told = event.old is not None and event.key.name == "told" and any(find("services", "default"))
        return [models.key("heard")] if told else []

    def only_told(self, event, find):
        return [event.key] if event.key.name == "told" else []

    w.run(models.controller("shut", lambda c, key: c.delete(key), kind="v1/Service"))
    w.run(models.controller("tell", write, map_event=only_told))
    w.run(models.controller("hear", write, map_event=hears))
    return w.confluent()


BAD = {
    "listening": (listening, "confluence"),
    "blind": (blind, "converges"),
    "torn": (torn, "always"),
    "forgetful": (forgetful, "confluence"),
    "fighting": (fighting, "always"),
    "together": (together, "always"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("bounds", [{}, {"atomic": True}, {"lag": 1}], ids=str)
def test_what_is_wrong_stays_to_be_found(name, bounds):
    make, kind = BAD[name]
    if name == "torn" and bounds.get("atomic"):
        return
    reduced(make, bounds)
    assert kind in {violation.kind for violation in Explorer(make(), Bounds(**bounds)).run().violations}


@pytest.mark.parametrize(
    ("program", "word"),
    [
        ((("spawn", 2), ("raise", 0), ("count", 0)), "symmetry"),
        ((("spawn", 2), ("raise", 0), ("drop first", 2)), "symmetry off (s0 tells generated names apart)"),
        ((("spawn", 2), ("parse", 0)), "symmetry off (s0 tells generated names apart)"),
    ],
)
def test_symmetry_is_off_where_names_are_told_apart(program, word):
    explorer = Explorer(spawning([program]), Bounds(atomic=True, max_states=60))
    explorer.run()
    assert explorer.verdict.reductions[-1] == word


def test_symmetry_makes_one_of_what_differs_in_names():
    """Three objects that are raised one by one: in every order, but any two of one height are alike."""
    program = (("spawn", 2), ("raise", 0))
    found = [
        Explorer(spawning([program]), Bounds(atomic=True), settle=False, symmetry=symmetry).run()
        for symmetry in (False, True)
    ]
    assert all(verdict.complete for verdict in found)
    assert found[1].states * 3 < found[0].states * 2


def test_independent_writers_reconcile_once_each():
    """Where Kamera makes N times N! reconciles. (The properties out of the box ask for one more of each at rest.)"""
    for count in (4, 7):
        explorer = Explorer(writers(count, False), Bounds(atomic=True), without=[about.name for about in EVERY])
        verdict = explorer.run()
        assert verdict.complete and verdict.holds and verdict.converged == 1
        assert (verdict.states, verdict.transitions) == (count + 1, count)
        assert explorer.system.reexec.ended == count


SEARCH = """
import json, sys
sys.path.insert(0, {root!r})
from tests.laws.test_reduction_laws import MODELS
from tests.check.models import outcome
out = {{}}
for name in ("trivial", "expectations", "false ready", "claim"):
    make, bounds = MODELS[name]
    found = outcome(make(), **bounds)
    paths = [[a.label for a in v.actions] for v in found.explorer.verdict.violations]
    text = [str(v.message) for v in found.explorer.verdict.violations]
    out[name] = [found.size, found.labels, [str(end) for end in found.ends], paths, text]
print(json.dumps(out))
"""


def test_two_processes_search_the_same_graph():
    def searched(seed):
        done = subprocess.run(
            [sys.executable, "-c", SEARCH.format(root=str(ROOT))],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
        )
        return json.loads(done.stdout)

    assert searched("1") == searched("4242")
