"""What needs no budget: garbage collection and the end of a namespace are processes whose steps come between anybody's,
webhooks and defaults change what is written. And where crashes fall: after every write."""

import pytest

import steersman as sm
from steersman.check.explore import Bounds, Explorer
from steersman.controllers.garbage import GarbageCollector
from steersman.controllers.namespace import NamespaceController
from tests.check.faults.test_outside import HOOK
from tests.check.models import config, controller, key

CHILD = sm.Key("", "Secret", "default", "child")


class ByName(sm.Controller):
    """Has a Secret made for a ConfigMap; one of that name will do, whoever it belongs to."""

    kind = "v1/ConfigMap"
    owns = ("v1/Secret",)
    by_uid = False

    def reconcile(self, c, at):
        parent, child = c.get(at, fresh=True), c.get(CHILD, fresh=True)
        if parent is None or parent.metadata.deletionTimestamp or parent.data.ready:
            return
        uid = parent.metadata.uid
        if child is not None and self.by_uid and child.metadata.ownerReferences[0].uid != uid:
            raise (
                RuntimeWarning("the old one is not gone yet") if False else sm.ApiError(409, "Conflict", "not gone yet")
            )
        if child is None:
            owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": at.name, "uid": uid, "controller": True}
            meta = {"name": "child", "namespace": "default", "ownerReferences": [owner]}
            c.create({"apiVersion": "v1", "kind": "Secret", "metadata": meta})
        c.patch(at, {"data": {"ready": "yes"}}, rv=parent.metadata.resourceVersion if self.by_uid else "")


class ByUid(ByName):
    by_uid = True


def remade(controller):
    w = sm.Scenario(controller.__name__)
    w.apply(config("parent"))
    w.run(controller, GarbageCollector)

    def remake(c):
        c.delete(key("parent"), propagation="Background")
        c.create(config("parent"))

    w.user("remake", remake)
    w.converges(lambda s: s[CHILD] and s[CHILD].metadata.ownerReferences[0].uid == s[key("parent")].metadata.uid)
    return w


def test_background_deletion_comes_late():
    verdict = sm.check(remade(ByName), without=("missing watch", "idempotent at rest"))
    found = next(violation for violation in verdict.violations if violation.kind == "converges")
    who = [action.who for action in found.actions]
    assert "garbage-collector" in who and who.index("remake") < len(who) - 1 - who[::-1].index("garbage-collector")
    sm.check(remade(ByUid), max_states=20_000).assert_holds()


def test_the_end_of_a_namespace_is_a_process():
    writer = controller("writer", lambda c, at: c.get(at))
    w = sm.Scenario("namespace")
    for name in ("a", "b"):
        w.apply({**config(name), "metadata": {"name": name, "namespace": "one"}})
    w.run(writer, NamespaceController)
    w.user("delete", lambda c: c.delete(sm.Key("", "Namespace", "", "one")))
    left = []

    def note(s):
        namespace = s[sm.Key("", "Namespace", "", "one")]
        ending = bool(namespace and namespace.metadata.deletionTimestamp)
        left.append((bool(namespace), ending, len(s.list("v1/ConfigMap", namespace="one"))))
        return True

    w.always("noted", note)
    w.converges(lambda s: not s[sm.Key("", "Namespace", "", "one")])
    sm.check(w).assert_holds(complete=True)
    assert {(True, False, 2), (True, True, 2), (True, True, 1), (True, True, 0), (False, False, 0)} <= set(left)


def test_a_crash_falls_after_every_write():
    def three(c, at):
        have = c.get(at).data or {}
        for name in ("one", "two", "three"):
            if name not in have:
                c.patch(at, {"data": {name: "done"}})
        c.memory["through"] = True

    w = sm.Scenario("three writes")
    w.apply(config("a"))
    w.run(controller("three", three))
    explorer = Explorer(w, Bounds(crashes=1), settle=False)
    explorer.run()
    graph = explorer.graph
    crashed = set()
    for state in range(len(graph)):
        if any(graph.actions[action].op == "crash" for action, _ in graph.edges(state)):
            crashed.add(tuple(explorer.state_at(state)[key("a")].data or ()))
    assert {("one",), ("one", "two"), ("one", "two", "three")} == crashed


class ComparesAll(sm.Controller):
    """Is ready when what is there is what it wrote: a webhook that adds something keeps it from that (bug 98)."""

    kind = "v1/ConfigMap"
    own_fields = False

    def reconcile(self, c, at):
        if at.name != "a":
            return
        child = c.get(key("child"))
        if child is None:
            c.create(config("child", colour="red"))
            return
        same = child.data.colour == "red" if self.own_fields else dict(child.data) == {"colour": "red"}
        if same and not c.get(at).data.ready:
            c.patch(at, {"data": {"ready": "yes"}})


class ComparesItsOwn(ComparesAll):
    own_fields = True


@pytest.mark.parametrize(("made", "holds"), [(ComparesAll, False), (ComparesItsOwn, True)])
def test_a_webhook_that_changes_what_is_written(made, holds):
    class Woken(made):
        watches = {"v1/ConfigMap": lambda obj: [key("a")]}  # noqa: RUF012

    w = sm.Scenario(made.__name__)
    w.apply(config("a"))
    w.apply(HOOK)
    w.webhook("defaults.example.com", lambda request: {"patch": [{"op": "add", "path": "/data/size", "value": "1"}]})
    w.run(Woken)
    w.converges(lambda s: s[key("a")].data.ready)
    assert sm.check(w).holds is holds


def test_a_defaulted_field_is_not_what_was_written():
    class Restores(sm.Controller):
        kind = "v1/Service"
        watches = {"v1/Service": lambda obj: [sm.Key("", "Service", "default", "web")]}  # noqa: RUF012

        def reconcile(self, c, at):
            have, wanted = c.get(at), {"ports": [{"port": 80}], "selector": {"app": "web"}}
            if have is not None and have.spec.ports != wanted["ports"]:
                c.patch(
                    at,
                    {"metadata": {"annotations": {"n": str(1 - int((have.metadata.annotations or {}).get("n", 0)))}}},
                )

    w = sm.Scenario("defaults")
    w.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}})
    w.run(Restores)
    w.converges()
    assert "livelock" in [violation.kind for violation in sm.check(w).violations]
