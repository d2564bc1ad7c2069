"""Re-execution against everything Python code can do between two calls."""

import itertools
import random
import time

import pytest

import steersman as sm
from steersman.check.explore import Bounds, Explorer
from steersman.kernel.transition import apply, enabled
from tests.check.models import config, controller, key


def explored(reconcile, *, objects=("a",), users=(), twice=True, max_states=2_000, **bounds):
    """A search with one controller, whose `reconcile` is a function (client, key)."""
    w = sm.Scenario("reexec")
    for name in objects:
        w.apply(config(name, v="0"))
    w.run(controller("subject", reconcile))
    for number, do in enumerate(users):
        w.user(f"u{number}", do)
    explorer = Explorer(w, Bounds(max_states=max_states, **bounds), twice=twice)
    return explorer, explorer.run()


def findings(verdict):
    return {violation.name: violation for violation in verdict.violations if violation.kind == "finding"}


def data(explorer, name="a"):
    """The different data of an object at rest."""
    return {tuple(sorted((state[key(name)].data or {}).items())) for state in explorer.ends()}


# -- Suspend ---------------------------------------------------------------------------------------------------------


def test_finally_runs_without_effect():
    """Suspend passes through `finally`; what that calls is not done, and not recorded."""

    def reconcile(c, at):
        if c.get(at).data.v == "1":
            return
        try:
            c.patch(at, {"data": {"v": "1"}})
        finally:
            c.patch(at, {"data": {"end": "yes"}})

    explorer, verdict = explored(reconcile)
    assert verdict.complete and not findings(verdict)
    assert data(explorer) == {(("end", "yes"), ("v", "1"))}
    labels = {action.label for action in explorer.graph.actions}
    assert "cont subject/ConfigMap default/a#3" in labels, "the patch of finally is a call like any other, later"


def test_a_crash_runs_no_finally():
    def reconcile(c, at):
        if c.get(at).data.v == "1":
            return
        try:
            c.patch(at, {"data": {"v": "1"}})
            c.get(at)
        finally:
            c.patch(at, {"data": {"end": "yes"}})

    explorer, verdict = explored(reconcile, crashes=1)
    assert verdict.complete
    assert data(explorer) == {(("end", "yes"), ("v", "1")), (("v", "1"),)}


def test_except_exception_does_not_catch_it():
    def reconcile(c, at):
        try:
            c.get(at)
            c.patch(at, {"data": {"v": "1"}})
        except Exception:
            c.patch(at, {"data": {"v": "caught"}})

    explorer, verdict = explored(reconcile)
    assert verdict.complete and not findings(verdict)
    assert data(explorer) == {(("v", "1"),)}


def test_swallowing_it_is_a_finding():
    def reconcile(c, at):
        try:
            c.patch(at, {"data": {"v": "1"}})
        except BaseException:
            return

    _, verdict = explored(reconcile)
    violation = findings(verdict)["swallowed-suspend"]
    assert "subject on ConfigMap default/a" in violation.message and "catch Exception" in violation.message


def test_after_it_every_call_suspends_and_nothing_is_recorded():
    def reconcile(c, at):
        try:
            c.get(at)
        except BaseException:
            c.patch(at, {"data": {"v": "never"}})

    explorer, _ = explored(reconcile)
    assert data(explorer) == {(("v", "0"),)}


def test_generators_and_nested_calls():
    def reconcile(c, at):
        def items():
            for name in ("a", "b"):
                found = c.get(key(name))
                if found is not None:
                    yield found

        def changed():
            for found in items():
                if found.data.v != "1":
                    yield c.patch(found, {"data": {"v": "1"}})

        list(changed())

    explorer, verdict = explored(reconcile, objects=("a", "b"))
    assert verdict.complete and not findings(verdict)
    assert data(explorer, "a") == data(explorer, "b") == {(("v", "1"),)}


# -- state of its own ------------------------------------------------------------------------------------------------


class Counter(sm.Controller):
    kind = "v1/ConfigMap"

    def __init__(self):
        self.seen = 0

    def reconcile(self, c, at):
        self.seen += 1
        c.get(at)


def test_a_controller_that_keeps_something_on_itself_is_told_where_to():
    w = sm.Scenario("sealed")
    w.apply(config("a"))
    w.run(Counter)
    verdict = Explorer(w, Bounds()).run()
    violation = findings(verdict)["raised"]
    assert "SealedError" in violation.message and "c.memory['seen']" in violation.message
    assert f"{__file__}, line " in violation.message


def test_memory_does_not_leak_between_branches():
    """Two orders of two events: each path remembers its own."""

    def reconcile(c, at):
        order = [*c.memory.get("order", ()), at.name]
        c.memory["order"] = order
        if len(order) == 2:
            c.patch(key("out"), {"data": {"order": " ".join(order)}})

    def only(self, event, find):
        return [event.key] if event.old is None and event.key.name in "ab" else []

    w = sm.Scenario("memory")
    for name in ("a", "b", "out"):
        w.apply(config(name))
    w.run(controller("subject", reconcile, map_event=only))
    explorer = Explorer(w, Bounds())
    assert explorer.run().complete
    assert {state[key("out")].data.order for state in explorer.ends()} == {"a b", "b a"}


def test_memory_is_lost_in_a_crash():
    def reconcile(c, at):
        count = c.memory.get("count", 0) + 1
        if count == 3:
            return None
        c.memory["count"] = count
        c.patch(at, {"data": {"count": str(count)}})
        c.get(at)
        return 10

    explorer, verdict = explored(reconcile, crashes=1)
    assert verdict.complete
    counts = set()
    for number in range(len(explorer.graph)):
        world = explorer.world_at(explorer.graph.path(number))
        for action in enabled(world):
            if action.op == "crash":
                counts.add(world.memory.get(0, {}).get("count"))
                after = apply(world, action)
                assert after.memory == {} and not after.flights and list(after.pending) == [(0, key("a"))]
    assert counts == {None, 1, 2}, "it may crash between two writes, and between two reconciles with something to lose"


def test_workers_share_what_they_remember():
    """Two keys at a time: what one remembers is not undone by the other one's older copy."""

    def reconcile(c, at):
        c.get(at)
        c.memory[at.name] = True
        c.get(at)

    w = sm.Scenario("workers")
    w.apply(config("a"))
    w.apply(config("b"))
    w.run(controller("subject", reconcile, workers=2))
    explorer = Explorer(w, Bounds())
    assert explorer.run().complete
    for recurrence in explorer.graph.recurrences():
        world = explorer.world_at(explorer.graph.path(recurrence.states[0]))
        assert sorted(world.memory[0]) == ["a", "b"]


def test_memory_values_are_frozen():
    def reconcile(c, at):
        c.memory.setdefault("list", []).append(1)
        c.memory["list"].append(2)
        c.get(at)

    _, verdict = explored(reconcile)
    assert "cannot be changed in place" in findings(verdict)["raised"].message


# -- what must be the same again -------------------------------------------------------------------------------------


def test_chance_is_found():
    chance = random.Random(7)

    def reconcile(c, at):
        c.patch(at, {"data": {"v": str(chance.random())}})

    _, verdict = explored(reconcile, max_states=50)
    violation = findings(verdict)["non-determinism"]
    assert "subject on ConfigMap default/a: the same reads led first to patch" in violation.message
    assert violation.message.count('"v":"0.') == 2, "both bodies are shown"


def test_the_clock_is_found():
    def reconcile(c, at):
        c.patch(at, {"data": {"v": str(time.perf_counter_ns())}})

    _, verdict = explored(reconcile, max_states=50)
    assert "non-determinism" in findings(verdict)


def test_a_counter_in_the_module_is_found():
    counter = itertools.count()

    def reconcile(c, at):
        c.memory["n"] = next(counter)

    _, verdict = explored(reconcile, max_states=50)
    assert "non-determinism" in findings(verdict)


def test_an_effect_after_another_number_of_calls_is_found():
    flip = itertools.cycle([True, False])

    def reconcile(c, at):
        if next(flip):
            c.get(at)
        c.patch(at, {"data": {"v": "1"}})

    _, verdict = explored(reconcile, max_states=50)
    assert "non-determinism" in findings(verdict)


def test_the_order_of_a_set_is_found():
    def reconcile(c, at):
        wanted = {"x", "y", "z"}
        first = next(iter(wanted))
        if c.get(at).data.v == "0":
            c.patch(at, {"data": {"v": first}})

    _, verdict = explored(reconcile)
    violation = findings(verdict)["set-order"]
    assert "another order of a set led first to patch" in violation.message


def test_sorted_sets_are_fine():
    def reconcile(c, at):
        wanted = {"x", "y"} | frozenset(["z"])
        for name in sorted(wanted):
            if not c.get(at).data.get(name):
                c.patch(at, {"data": {name: "1"}})

    _, verdict = explored(reconcile)
    assert verdict.complete and verdict.holds


def test_arithmetic_on_resource_versions_is_found():
    def reconcile(c, at):
        found = c.get(at)
        if found.data.v == "0" and int(found.metadata.resourceVersion) % 2:
            c.patch(at, {"data": {"v": "odd"}})
        elif found.data.v == "0":
            c.patch(at, {"data": {"v": "even"}})

    _, verdict = explored(reconcile)
    violation = findings(verdict)["resource-version"]
    assert "only ever to be compared" in violation.message


def test_comparing_resource_versions_is_fine():
    def reconcile(c, at):
        one, two = c.get(at), c.get(at)
        same = one.metadata.resourceVersion == two.metadata.resourceVersion
        if one.data.v == "0":
            c.patch(at, {"data": {"v": "same" if same else "other"}}, rv=two.metadata.resourceVersion)

    explorer, verdict = explored(reconcile, users=[lambda c: c.patch(key("a"), {"data": {"u": "1"}})])
    assert verdict.complete and not findings(verdict)
    assert {state[key("a")].data.v for state in explorer.ends()} == {"same", "other"}


def test_a_resource_version_in_a_patch_is_a_precondition():
    """As client-go's optimistic lock writes it: it names the version that was read, in both executions of a step."""

    def reconcile(c, at):
        found = c.get(at)
        if found.data.v == "0":
            meta = {"resourceVersion": found.metadata.resourceVersion}
            c.patch(at, {"metadata": meta, "data": {"v": "1"}})

    explorer, verdict = explored(reconcile, users=[lambda c: c.patch(key("a"), {"data": {"u": "1"}})])
    assert verdict.complete and not findings(verdict)
    assert {state[key("a")].data.v for state in explorer.ends()} == {"1"}


def test_changed_and_changed_back_between_two_reads():
    """The same content at another revision is another version: a write that names it is not refused."""

    def reconcile(c, at):
        if c.memory.get("done"):
            return
        c.memory["done"] = True
        one, two = c.get(at), c.get(at)
        if one.data == two.data:
            same = one.metadata.resourceVersion == two.metadata.resourceVersion
            c.patch(at, {"data": {"seen": "same" if same else "other"}}, rv=two.metadata.resourceVersion)

    toggles = [lambda c, v=v: c.patch(key("a"), {"data": {"v": v}}) for v in "10"]
    explorer, verdict = explored(reconcile, users=toggles)
    assert verdict.complete and not findings(verdict)
    assert {state[key("a")].data.seen for state in explorer.ends()} >= {"same", "other"}


def test_paths_that_share_a_prefix_met_it_at_other_revisions():
    """One path reads `a` before it was changed and changed back, another one after: what they read is equal, its
    revision is not. Where the second one goes on alone, its reads must still agree with each other."""

    def reconcile(c, at):
        if at != key("a"):
            return
        one, mark, two = c.get(at), c.get(key("mark")), c.get(at)
        same = one.metadata.resourceVersion == two.metadata.resourceVersion
        if mark.data.v == "1" and not two.data.seen:
            c.patch(at, {"data": {"seen": "same" if same else "other"}}, rv=two.metadata.resourceVersion)

    def back(c):
        c.patch(key("a"), {"data": {"v": "0"}})
        c.patch(key("mark"), {"data": {"v": "1"}})

    users = [lambda c: c.patch(key("a"), {"data": {"v": "1"}}), back]
    explorer, verdict = explored(reconcile, objects=("a", "mark"), users=users)
    assert verdict.complete and verdict.holds
    run, cont = "run subject/ConfigMap default/a", "cont subject/ConfigMap default/a#"
    for labels, expected in (
        (["user u0", "user u1", run, cont + "1", cont + "2", cont + "3"], "same"),
        ([run, cont + "1", "user u0", "user u1", cont + "2", cont + "3"], "other"),
    ):
        world = explorer.world_at([])
        for label in labels:
            (action,) = [action for action in enabled(world) if action.label == label]
            world = apply(world, action)
        ((_, flight),) = world.flights.items()
        assert flight.node.effect.what.body["data"]["seen"] == expected
        (action,) = [action for action in enabled(world) if action.label == cont + "4"]
        assert apply(world, action).store.get(key("a")).value.data.seen == expected, "and it is not refused"


def test_a_template_that_is_filled_again_and_again():
    """The body of a call is what it was when it was made, whatever the controller does with its dict afterwards."""
    template = config("?")

    def reconcile(c, at):
        if at.name.startswith("made"):
            return
        for name in ("made-1", "made-2"):
            template["metadata"]["name"] = name
            template["data"] = {"for": name}
            if c.get(key(name)) is None:
                c.create(template)

    explorer, verdict = explored(reconcile)
    assert verdict.complete and verdict.holds
    (end,) = explorer.ends()
    assert [end[key(name)].data["for"] for name in ("made-1", "made-2")] == ["made-1", "made-2"]


# -- endings ---------------------------------------------------------------------------------------------------------


def test_an_endless_reconcile_is_ended(monkeypatch):
    monkeypatch.setattr("steersman.kernel.reexec.MAX_CALLS", 300)

    def reconcile(c, at):
        while True:
            c.get(at)

    _, verdict = explored(reconcile, twice=False, max_states=1_000)
    assert "made 300 calls in one reconcile" in findings(verdict)["endless"].message


def test_a_refused_request_is_part_of_life():
    def reconcile(c, at):
        c.create(config("a"))

    _, verdict = explored(reconcile)
    assert verdict.complete and not findings(verdict)


def test_any_other_exception_is_a_finding_and_the_search_goes_on():
    def reconcile(c, at):
        found = c.get(at)
        if found.data.v == "1":
            raise KeyError("spec")
        c.patch(at, {"data": {"v": "1"}})

    explorer, verdict = explored(reconcile)
    assert verdict.complete
    message = findings(verdict)["raised"].message
    assert "subject on ConfigMap default/a: raised KeyError: 'spec'" in message and f"{__file__}, line " in message
    assert data(explorer) == {(("v", "1"),)}


def test_sys_exit_is_an_exception_like_any_other():
    def reconcile(c, at):
        raise SystemExit(3)

    _, verdict = explored(reconcile)
    assert "SystemExit" in findings(verdict)["raised"].message


@pytest.mark.parametrize("value", [float("nan"), object(), {1: 2}])
def test_what_is_no_json_is_refused_and_named(value):
    def reconcile(c, at):
        c.patch(at, {"data": {"v": value}})

    _, verdict = explored(reconcile, max_states=200)
    assert verdict.states > 1
    assert not findings(verdict).keys() - {"raised"}


def test_a_finding_comes_with_the_way_to_it():
    def reconcile(c, at):
        if c.get(at).data.v == "1":
            raise RuntimeError("here")

    explorer, verdict = explored(reconcile, users=[lambda c: c.patch(key("a"), {"data": {"v": "1"}})])
    violation = findings(verdict)["raised"]
    world = explorer.world_at(violation.actions[:-1])
    assert violation.actions[-1] in enabled(world)
    apply(world, violation.actions[-1])
    assert "user u0" in [action.label for action in violation.actions]


def test_a_finding_survives_a_search_that_starts_again():
    """What was found before something was learned is found again."""

    def reconcile(c, at):
        if at.name == "a":
            raise RuntimeError("early")
        c.list("v1/Secret")

    _, verdict = explored(reconcile, objects=("a", "b"), lag=1)
    assert "early" in findings(verdict)["raised"].message
    assert verdict.reads == ("subject Secret",)
