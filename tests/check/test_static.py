"""Footprints: declared ones, learned ones, and what a check and `--static` say of them."""

import pytest

import steersman as sm
from steersman.check.explore import Bounds, Explorer
from steersman.check.footprints import analysis
from tests.check.models import config, controller, key


def seen(*reconciles, objects=(), **attributes):
    """The footprints of controllers over ConfigMap a, as texts."""
    w = sm.Scenario("seen")
    w.apply(config("a", x="1", y="2"))
    for obj in objects:
        w.apply(obj)
    for number, reconcile in enumerate(reconciles):
        w.run(controller(f"c{number}", reconcile, **attributes))
    explorer = Explorer(w, Bounds(max_states=200))
    explorer.run()
    found = analysis(w, explorer.system)
    return [
        (" ".join([str(f) for f in one.reads if f.path != ("exists",)]), " ".join([str(f) for f in one.writes]))
        for one in found.footprints
    ]


def test_fields_that_are_looked_at():
    def look(c, at):
        found = c.get(at)
        if found.data.x == "1" and found.metadata.labels and "z" not in found["data"]:
            return

    ((reads, writes),) = seen(look)
    assert reads == "ConfigMap:data.x ConfigMap:metadata.labels" and writes == ""


@pytest.mark.parametrize(
    ("look", "reads"),
    [
        (lambda obj: list(obj.data), "ConfigMap:data"),
        (lambda obj: obj.data == {"x": "1"}, "ConfigMap:data"),
        (lambda obj: {**obj}, ""),
        (lambda obj: sm.thaw(obj), ""),
        (lambda obj: dict(obj), ""),
        (lambda obj: sm.thaw(obj)["data"]["x"], ""),
        (lambda obj: obj["data"]["x"], "ConfigMap:data.x"),
        (lambda obj: obj.get("data", {}).get("q"), "ConfigMap:data.q"),
        (lambda obj: "q" in obj.data, "ConfigMap:data.q"),
        (lambda obj: (obj.metadata.name, obj.metadata.uid, obj.kind), ""),
        (lambda obj: [value for name, value in obj.data.items()], "ConfigMap:data"),
    ],
)
def test_what_is_a_look(look, reads):
    ((found, _),) = seen(lambda c, at: (look(c.get(at)), None)[1])
    assert found == reads


def test_fields_that_are_written():
    def write(c, at):
        found = c.get(at)
        if at.name == "a":
            c.update({**found, "data": {"x": "1", "y": "3"}})

    def patch(c, at):
        c.patch(at, {"metadata": {"labels": {"by": "me"}}})

    def json_patch(c, at):
        c.patch(at, [{"op": "add", "path": "/metadata/annotations", "value": {"a": "b"}}])

    def make(c, at):
        if c.get(key("b")) is None:
            c.create(config("b", v="1"))

    found = [writes for _, writes in seen(write, patch, json_patch, make)]
    assert found == [
        "ConfigMap:data.y",
        "ConfigMap:metadata.labels.by",
        "ConfigMap:metadata.annotations",
        "ConfigMap:exists",
    ]


def test_pods_that_are_bound_and_evicted():
    """A binding and an eviction are no fields of the pod that is written."""
    at = sm.Key("", "Pod", "default", "p")

    def write(c, _at):
        c.bind(at, "n1")
        c.evict(at, grace=0)

    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    ((_, writes),) = seen(write, objects=[body])
    assert writes == "Pod:exists Pod:spec.nodeName"


def test_items_of_lists_have_owners_of_their_own():
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": [{"name": "web", "image": "web:1"}]},
    }
    at_pod = sm.Key("", "Pod", "default", "p")

    def condition(c, at):
        held = list(c.get(at_pod).status.conditions or [])
        mine = {"type": f"Seen-{c.manager}", "status": "True"}
        if mine not in held:
            c.patch_status(at_pod, {"conditions": [*held, mine]})

    (_, first), (_, second) = seen(condition, condition, objects=[pod])
    assert first == "Pod:status.conditions[Seen-c0]" and second == "Pod:status.conditions[Seen-c1]"


class Narrow(sm.Controller):
    kind = "v1/ConfigMap"
    reads = ("v1/Secret:data",)
    writes = ("v1/ConfigMap:data.x",)

    def reconcile(self, c, key):
        if c.get(key).data.x != "1":
            c.patch(key, {"data": {"x": "1", "z": "1"}})


class Wide(sm.Controller):
    kind = "v1/ConfigMap"
    reads = ("v1/Secret:data",)
    writes = ("v1/ConfigMap:data",)

    def reconcile(self, c, key):
        c.get(key)


def declared(*classes):
    w = sm.Scenario("declared")
    w.apply(config("a"))
    return w.run(*classes)


def test_two_owners_that_say_so_are_refused():
    verdict = sm.check(declared(Narrow, Wide))
    (violation,) = verdict.violations
    assert violation.name == "one owner a field" and not violation.actions
    assert violation.message == "two owners of ConfigMap:data.x: narrow and wide write it"
    sm.check(declared(Narrow, Wide).without("one owner a field")).assert_holds()


def test_a_verdict_tells_what_is_known():
    verdict = sm.check(declared(Narrow))
    assert verdict.static == "narrow writes ConfigMap:data.z, but does not declare it"
    assert verdict.summary().endswith(f"\n  static: {verdict.static}")


def test_a_declaration_that_cannot_be_read():
    class Wrong(Narrow):
        writes = ("v1/ConfigMop:data",)

    with pytest.raises(sm.check.ScenarioError, match="controller 'wrong': 'v1/ConfigMop:data': "):
        sm.check(declared(Wrong))


TEXT = """
class Up(sm.Controller):
    kind = "v1/ConfigMap"
    def reconcile(self, c, key):
        if c.get(key).data.a != "1":
            c.patch(key, {"data": {"a": "1"}})

class Down(sm.Controller):
    kind = "v1/ConfigMap"
    def reconcile(self, c, key):
        found = c.get(key)
        if found.data.b != found.data.a:
            c.patch(key, {"data": {"b": found.data.a or "0"}})

class Back(sm.Controller):
    kind = "v1/ConfigMap"
    def reconcile(self, c, key):
        if c.get(key).data.b == "2":
            c.patch(key, {"data": {"a": "2"}})

def scenario_line():
    w = sm.Scenario("line")
    w.apply(OBJECT)
    return w.run(Up, Down)

def test_fight():
    w = sm.Scenario("fight")
    w.apply(OBJECT)
    w.user("two", lambda c: c.patch(sm.Key("", "ConfigMap", "default", "a"), {"data": {"b": "2"}}))
    sm.check(w.run(Up, Back)).assert_holds()
"""


def test_the_command_says_it_without_a_search(run):
    code, out, _ = run(TEXT, "--static", name="::scenario_line")
    assert code == 0 and out.startswith("line: no circle of reads and writes, no field with two owners\n")
    assert "down (learned)\n    reads ConfigMap:data.a, data.b, exists\n    writes ConfigMap:data.b\n" in out
    assert "So every fair run converges, as long as" in out and "COMPLETE" not in out
    code, out, _ = run(TEXT, "--static", name="::test_fight")
    assert code == 1 and "REFUSED: two owners of ConfigMap default/a (ConfigMap:data.a): up and back write it" in out
