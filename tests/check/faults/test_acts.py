"""Faults that are requests: what befalls pods and nodes, and what people do that nobody scripted."""

import steersman as sm
from steersman.check.explore import Bounds, Explorer
from steersman.kernel.transition import enabled
from tests.check.faults.seeded import finds
from tests.check.models import config, key

POD = sm.Key("", "Pod", "default", "web")


def pod(name, node="one"):
    spec = {"containers": [{"name": "web", "image": "web:1"}], **({"nodeName": node} if node else {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


class Keeps(sm.Controller):
    """Keeps a pod; one that has ended is a pod too."""

    kind = "v1/ConfigMap"
    watches = {"v1/Pod": lambda obj: [key("a")]}  # noqa: RUF012
    replaces = False

    def reconcile(self, c, at):
        have = c.get(POD, fresh=True)
        if have is None:
            c.create(pod("web"))
        elif self.replaces and have.status.phase == "Failed":
            c.delete(have, grace=0)


class Replaces(Keeps):
    replaces = True


def kept(controller):
    w = sm.Scenario(controller.__name__)
    w.apply(config("a"))
    w.run(controller)
    w.converges(lambda s: s[POD] and s[POD].status.phase != "Failed")
    return w


def test_a_pod_that_its_kubelet_ends():
    verdict = finds(kept, Keeps, Replaces, "pod_failures")
    assert "Pod default/web is ended by its kubelet" in str(verdict)


class MakesOnce(sm.Controller):
    """Makes a pod, notes that it did, and never looks again."""

    kind = "v1/ConfigMap"
    watches = {"v1/Pod": lambda obj: [key("a")]}  # noqa: RUF012
    looks = False

    def reconcile(self, c, at):
        have = c.get(at)
        if have.data.made and not (self.looks and c.get(POD, fresh=True) is None):
            return
        if c.get(POD, fresh=True) is None:
            c.create(pod("web", node=""))
        if not have.data.made:
            c.patch(at, {"data": {"made": "yes"}})


class LooksAgain(MakesOnce):
    looks = True


def made(controller):
    w = sm.Scenario(controller.__name__)
    w.apply(config("a"))
    w.run(controller)
    w.converges(lambda s: s.count("v1/Pod") == 1)
    return w


def test_a_pod_that_is_evicted():
    finds(made, MakesOnce, LooksAgain, "evictions", without=("no orphan",))


def node(name):
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    meta = {"name": name}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": {"conditions": [ready]}}


class Places(sm.Controller):
    """Chooses a node for something, and does not look at it again."""

    kind = "v1/ConfigMap"
    watches = {"v1/Node": lambda obj: [key("a")]}  # noqa: RUF012
    looks = False

    def reconcile(self, c, at):
        have = c.get(at)
        good = [n.metadata.name for n in c.list("v1/Node") if n.status.conditions[0].status == "True"]
        if good and (not have.data.node or (self.looks and have.data.node not in good)):
            c.patch(at, {"data": {"node": good[0]}})


class Moves(Places):
    looks = True


def placed(controller):
    w = sm.Scenario(controller.__name__)
    w.apply(config("a"))
    for name in ("one", "two"):
        w.apply(node(name))
    w.run(controller)

    def on_a_good_one(s):
        found = s[sm.Key("", "Node", "", s[key("a")].data.node)]
        return found and found.status.conditions[0].status == "True"

    w.converges(on_a_good_one)
    return w


def test_a_node_that_fails():
    verdict = finds(placed, Places, Moves, "node_failures")
    assert "Node one is gone" in str(verdict) or "Node one falls silent" in str(verdict)


class Merges(sm.Controller):
    """Copies what somebody asks for; what is not asked for any more stays (bug 53)."""

    kind = "v1/ConfigMap"
    exact = False

    def reconcile(self, c, at):
        source, copy = c.get(key("source")), c.get(key("copy"))
        wanted = {} if source is None else dict(source.data or {})
        have = dict(copy.data or {})
        gone = dict.fromkeys(have.keys() - wanted.keys()) if self.exact else {}
        if gone or any(have.get(name) != value for name, value in wanted.items()):
            c.patch(copy, {"data": {**wanted, **gone}})


class Exact(Merges):
    exact = True


def copied(controller):
    w = sm.Scenario(controller.__name__)
    w.apply(config("source", colour="red"))
    w.run(controller)
    w.user("copy", lambda c: c.create(config("copy")))
    w.converges(lambda s: not s[key("source")] or dict(s[key("source")].data or {}) == dict(s[key("copy")].data or {}))
    return w


class AfterTheCopy(Merges):
    """Waits until there is a copy."""

    def reconcile(self, c, at):
        if c.get(key("copy")) is not None:
            super().reconcile(c, at)


class ExactAfterTheCopy(AfterTheCopy):
    exact = True


def test_a_field_that_somebody_takes_away():
    verdict = finds(copied, AfterTheCopy, ExactAfterTheCopy, "edits")
    assert "somebody takes away data.colour of ConfigMap default/source" in str(verdict)


WIDGET = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, minimum: 1, maximum: 3}
              mode: {type: string, enum: [slow, fast]}
              tls: {type: boolean}
              note: {type: string}
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: w}
spec: {size: 3, mode: slow}
"""


def test_edits_follow_from_the_schema():
    class Nothing(sm.Controller):
        kind = "example.com/v1/Widget"

        def reconcile(self, c, at):
            c.get(at)

    w = sm.Scenario("widgets")
    w.apply(WIDGET)
    w.run(Nothing)
    explorer = Explorer(w, Bounds(edits=2))
    world = w.world(explorer.system)
    words = [explorer.system.acts["edit"].says(a.key, a.number) for a in enabled(world) if a.op == "edit"]
    assert [text.replace(" of Widget default/w", "") for text in words] == [
        "somebody deletes Widget default/w",
        "somebody sets spec.mode",
        "somebody takes away spec.mode",
        "somebody sets spec.size",
        "somebody takes away spec.size",
        "somebody sets spec.tls",
    ]
    verdict = explorer.run()
    assert verdict.holds and verdict.complete
    specs = {tuple(sorted(s.list("example.com/v1/Widget")[0].spec.items())) for s in every_state(explorer)}
    assert (("mode", "fast"), ("size", 3)) in specs and (("mode", "slow"), ("size", 2)) in specs


def every_state(explorer):
    states = [explorer.state_at(number) for number in range(len(explorer.graph))]
    return [state for state in states if state.list("example.com/v1/Widget")]
