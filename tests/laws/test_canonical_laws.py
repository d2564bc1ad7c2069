"""C1: the table of canonical form off gives the same verdict. And an attack: worlds with equal fingerprints must have
the same futures, whichever way they were reached."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import steersman as sm
from examples.check import false_ready, live_volumes, over_creation
from tests.check import kamera
from tests.check.differential import attack
from tests.check.models import REMEMBERING, TIMED, config, controller, key, outcome, program_scenario, programs
from tests.laws.test_reduction_laws import MODELS

LAW = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))


def same_verdict(scenario, bounds):
    plain, raw = outcome(scenario, **bounds), outcome(scenario, switches={"canonical": False}, **bounds)
    if plain is None or raw is None:
        return False
    assert raw.violated == plain.violated
    assert raw.size[0] >= plain.size[0]
    return True


@pytest.mark.parametrize("model", [name for name in MODELS if name != "duel"])
def test_the_table_off_gives_the_same_verdict(model):
    make, bounds = MODELS[model]
    assert same_verdict(make(), bounds)


@LAW
@given(
    st.lists(programs(REMEMBERING), min_size=1, max_size=2),
    st.integers(0, 2),
    st.sampled_from([{}, {"lag": 1}, {"crashes": 1}]),
)
def test_the_table_off_gives_the_same_verdict_for_any_program(table, users, bounds):
    same_verdict(program_scenario(table, users), {"limit": 600, **bounds})


@LAW
@given(st.lists(programs(TIMED), min_size=1, max_size=2), st.integers(0, 1))
def test_the_table_off_gives_the_same_verdict_where_time_counts(table, users):
    same_verdict(program_scenario(table, users), {"limit": 500})


# -- the attack ----------------------------------------------------------------------------------------------------


def survives(scenario, least=0, **bounds):
    report = attack(scenario, **bounds)
    assert not report.differences, report.differences[0]
    assert report.joined >= least, "an attack on few joined states proves nothing"
    return report


@pytest.mark.parametrize("bounds", [{}, {"lag": 1}, {"crashes": 1, "conflicts": 1}, {"lag": 1, "crashes": 1}], ids=str)
@pytest.mark.parametrize("make", [kamera.trivial, kamera.foo_bar], ids=["trivial", "foo/bar"])
def test_kamera_scenarios(make, bounds):
    survives(make()[0], keep=3, **bounds)


def test_the_examples():
    survives(over_creation.scenario(over_creation.CarefulReplicaSet), lag=1, crashes=1, conflicts=1)
    survives(false_ready.scenario(false_ready.Existence), lag=1, crashes=1, conflicts=1)
    survives(live_volumes.scenario(live_volumes.CleanByName), lag=1, keep=2, limit=3_000)


@LAW
@given(
    st.lists(programs(REMEMBERING), min_size=1, max_size=2),
    st.integers(0, 2),
    st.sampled_from([{}, {"lag": 1}, {"crashes": 1}, {"lag": 2}]),
)
def test_any_program(table, users, bounds):
    survives(program_scenario(table, users), keep=3, limit=400, **bounds)


@LAW
@given(st.lists(programs(TIMED), min_size=1, max_size=2), st.integers(0, 2), st.sampled_from([{}, {"lag": 1}]))
def test_any_program_with_time(table, users, bounds):
    survives(program_scenario(table, users), keep=3, limit=400, **bounds)


def ticking(other):
    """Time passes, since one controller asks to be called again; another one looks at the age of an object."""
    w = sm.Scenario("time")
    w.apply(config("tick"))

    def tick(c, at):
        if at == key("tick") and c.memory.get("n", 0) < 2:
            c.memory["n"] = c.memory.get("n", 0) + 1
            return 20
        return None

    w.run(controller("ticker", tick), controller("looker", other))
    w.user("make", lambda c: c.create(config("o")))
    return w


def test_elapsed():
    """How long ago an object was made is not in the store's canonical form; it must be in the fingerprint."""

    def look(c, at):
        found = c.get(at)
        if found is not None and at == key("o") and c.elapsed(found.metadata.creationTimestamp, 10):
            c.patch(at, {"data": {"old": "yes"}})

    w = ticking(look)
    w.user("touch", lambda c: c.patch(key("o"), {"data": {"touched": "yes"}}))
    survives(w)


def test_after():
    def look(c, at):
        found = c.get(at)
        if found is not None and at == key("o") and c.after(found.metadata.creationTimestamp, 10):
            c.patch(at, {"data": {"old": "yes"}})

    survives(ticking(look))
    survives(ticking(look), lag=1, keep=2)


def test_a_time_that_is_written_and_compared():
    def look(c, at):
        found = c.get(at)
        if found is None or at != key("o"):
            return
        if not found.data.since:
            c.patch(at, {"data": {"since": c.timestamp()}})
        elif c.after(found.data.since, 10) and not found.data.old:
            c.patch(at, {"data": {"old": "yes"}})

    survives(ticking(look))


def test_who_was_made_first():
    """Nobody asks for the time, but somebody sorts by it."""

    def look(c, at):
        items = [item for item in c.list("v1/ConfigMap", "default") if item.metadata.name != "tick"]
        items.sort(key=lambda item: item.metadata.creationTimestamp)
        if len(items) == 2 and at == key("tick"):
            c.patch(key("tick"), {"data": {"first": items[0].metadata.name}})

    w = ticking(look)
    w.user("another", lambda c: c.create(config("a")))
    survives(w)


def test_generations_of_versions_in_flight():
    """Two writers of observedGeneration, one of them slow: what it writes is new, or the same once more."""

    def observe(self, c, at):
        found = c.get(at)
        if found.status.observedGeneration != found.metadata.generation:
            c.patch_status(at, {"observedGeneration": found.metadata.generation, "replicas": 0})

    observer = type("Observer", (sm.Controller,), {"kind": "apps/v1/ReplicaSet", "reconcile": observe})
    w = sm.Scenario("generations")
    web = w.apply(over_creation.WEB)
    w.run(first=observer, second=observer)
    for number in range(3):
        w.user(f"scale{number}", lambda c, n=number: c.patch(web, {"spec": {"replicas": n % 2}}))
    survives(w)
    survives(w, lag=1, keep=2, limit=3_000)


def test_a_generation_that_is_copied_counts_as_it_is():
    """An annotation holds the generation: that of the object must not be ranked any more."""

    def copy(self, c, at):
        found = c.get(at)
        if (found.metadata.annotations or {}).get("seen") != str(found.metadata.generation):
            c.patch(at, {"metadata": {"annotations": {"seen": str(found.metadata.generation)}}})

    def toggle(self, c, at):
        found = c.get(at)
        if found.metadata.generation < 6:
            c.patch(at, {"spec": {"replicas": 1 - found.spec.replicas}})

    kind = {"kind": "apps/v1/ReplicaSet"}
    copier = type("Copier", (sm.Controller,), {**kind, "reconcile": copy})
    toggler = type("Toggler", (sm.Controller,), {**kind, "reconcile": toggle})
    w = sm.Scenario("copied")
    web = w.apply(over_creation.WEB)
    w.run(copier, toggler)
    w.always("no wrong copy", lambda s: s[web])
    survives(w)


def test_deleted_and_made_again():
    """uids and names are drawn again only when nothing mentions them any more."""

    def make(c, at):
        for name in ("a", "b"):
            if c.get(key(name)) is None:
                c.create(config(name))

    def break_(c, at):
        for item in c.list("v1/ConfigMap", "default"):
            if item.data.doomed:
                c.delete(item, uid=item.metadata.uid)

    w = sm.Scenario("again")
    w.apply(config("a"))
    w.run(controller("maker", make), controller("breaker", break_))
    w.user("doom", lambda c: c.patch(key("a"), {"data": {"doomed": "yes"}}))
    survives(w, keep=3)
    survives(w, keep=3, lag=1, limit=3_000)


def test_two_memories():
    def remember(c, at):
        seen = list(c.memory.get("seen", ()))
        if at.name not in seen:
            c.memory["seen"] = sorted([*seen, at.name])[:2]
            c.patch(at, {"data": {c.manager: str(len(seen))}})

    w = sm.Scenario("memories")
    w.apply(config("a"))
    w.apply(config("b"))
    w.run(controller("one", remember), controller("two", remember))
    survives(w, keep=3)
    survives(w, keep=3, crashes=1, limit=3_000)


def looked_at_twice():
    """Somebody reads, and writes only what is still as it was read; meanwhile it may have changed, and changed back."""

    def bump(c, at):
        found = c.get(at)
        if not found.data.seen:
            c.update({**found, "data": {**found.data, "seen": "yes"}})

    w = sm.Scenario("changed back")
    w.apply(config("a", v="0"))
    w.run(controller("bumper", bump, map_event=lambda self, event, find: [event.key] if event.old is None else []))
    w.user("there", lambda c: c.patch(key("a"), {"data": {"v": "1"}}))
    w.user("back", lambda c: c.patch(key("a"), {"data": {"v": "0"}}))
    return w


def test_changed_and_changed_back():
    survives(looked_at_twice(), conflicts=1)


# -- does the attack see anything? -----------------------------------------------------------------------------------


def aged():
    def look(c, at):
        found = c.get(at)
        if found is not None and at == key("o") and c.elapsed(found.metadata.creationTimestamp, 10):
            c.patch(at, {"data": {"old": "yes"}})

    return ticking(look)


def observed():
    def observe(self, c, at):
        found = c.get(at)
        if found.status.observedGeneration != found.metadata.generation:
            c.patch_status(at, {"observedGeneration": found.metadata.generation, "replicas": 0})

    observer = type("Observer", (sm.Controller,), {"kind": "apps/v1/ReplicaSet", "reconcile": observe})
    w = sm.Scenario("generations")
    web = w.apply(over_creation.WEB)
    w.run(first=observer, second=observer)
    for number in range(3):
        w.user(f"scale{number}", lambda c, n=number: c.patch(web, {"spec": {"replicas": n % 2}}))
    return w


@pytest.mark.parametrize(
    ("part", "nothing", "make"),
    [("_times", 0, aged), ("_ranks", 0, observed), ("places", (), looked_at_twice)],
    ids=["times", "ranks", "places"],
)
def test_the_attack_finds_a_hole(monkeypatch, part, nothing, make):
    """Without one of its parts the fingerprint is unsound, and the attack says so."""
    assert not attack(make()).differences
    monkeypatch.setattr(f"steersman.kernel.fingerprint.{part}", lambda *_: nothing)
    assert attack(make()).differences
