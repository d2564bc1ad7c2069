"""Scenarios of Kamera's own tests, written afresh from their description: what they must give is stated there.

After them five of ours in which the two differ in what they find; scripts/kamera has the same in Go, for Kamera.
"""

from __future__ import annotations

from typing import Any

from steersman.api.controller import Controller
from steersman.check.scenario import Scenario

GROUP = "kamera.example"


def custom_kind(name: str, spec: dict[str, Any], status: dict[str, Any]) -> dict[str, Any]:
    """A CustomResourceDefinition with a status subresource."""
    plural = f"{name.lower()}s"
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}
    schema["properties"]["status"] = {"type": "object", "properties": status}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
    }
    names = {"plural": plural, "kind": name, "singular": name.lower()}
    spec_of = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": spec_of,
    }


TEXT = {"type": "string"}
FOO = custom_kind("Foo", {"mode": TEXT}, {"state": TEXT})
TOGGLE = custom_kind("Toggle", {"desired": TEXT}, {"owner": TEXT})


def foo(mode: str) -> dict[str, Any]:
    """One Foo in a mode, with an empty status."""
    return {"apiVersion": f"{GROUP}/v1", "kind": "Foo", "metadata": {"name": "x"}, "spec": {"mode": mode}}


class Walk(Controller):
    """trivial: "" → A-1 → A-Final, then nothing."""

    kind = f"{GROUP}/v1/Foo"

    def reconcile(self, c, key):
        following = {"": "A-1", "A-1": "A-Final"}.get(c.get(key).status.state or "")
        if following:
            c.patch_status(key, {"state": following})


def trivial() -> tuple[Scenario, Any]:
    """Two copies of one controller on one object."""
    w = Scenario("trivial")
    w.kind(FOO)
    key = w.apply(foo("A"))
    w.run(foo=Walk, bar=Walk)
    w.converges(lambda s: s[key].status.state == "A-Final").confluent()
    return w, key


STEPS = {
    "A": {"": "A-1", "B-1": "A-1", "A-1": "A-2", "A-2": "A-Final"},
    "B": {"": "B-1", "A-1": "B-1", "B-1": "B-2", "B-2": "B-Final"},
}


class FooWalk(Controller):
    """foo/bar: walks the status by mode."""

    kind = f"{GROUP}/v1/Foo"

    def reconcile(self, c, key):
        obj = c.get(key)
        following = STEPS[obj.spec.mode].get(obj.status.state or "")
        if following:
            c.patch_status(key, {"state": following})


class BarFlip(Controller):
    """foo/bar: once, flips the mode at A-1 or B-1; helps over the last step."""

    kind = f"{GROUP}/v1/Foo"

    def reconcile(self, c, key):
        obj = c.get(key)
        mode, state = obj.spec.mode, obj.status.state
        done = (obj.metadata.annotations or {}).get("bar-done")
        flipped = {"A-1": "B", "B-1": "A"}.get(state)
        if flipped and not done:
            c.patch(key, {"metadata": {"annotations": {"bar-done": "true"}}, "spec": {"mode": flipped}})
        elif state == "A-2":
            c.patch_status(key, {"state": "A-Final"})
        elif state == "B-2" and mode == "B":
            c.patch_status(key, {"state": "B-Final"})


def foo_bar() -> tuple[Scenario, Any]:
    """Whose turn it is decides how it ends."""
    w = Scenario("foo/bar")
    w.kind(FOO)
    key = w.apply(foo("A"))
    w.run(foo=FooWalk, bar=BarFlip)
    w.confluent()
    return w, key


class Claim(Controller):
    """racecondition: claims an object that nobody owns, or that is meant for it."""

    kind = f"{GROUP}/v1/Toggle"

    def reconcile(self, c, key):
        obj = c.get(key)
        me, owner = c.manager, obj.status.owner
        if not owner or (obj.spec.desired == me and owner != me):
            c.patch_status(key, {"owner": me})


class Duel(Controller):
    """dueling: always writes its own name."""

    kind = f"{GROUP}/v1/Toggle"

    def reconcile(self, c, key):
        c.patch_status(key, {"owner": c.manager})


def toggle(controller: type[Controller]) -> tuple[Scenario, Any]:
    """Two copies of a controller, alpha and beta, on an object that is meant for alpha."""
    w = Scenario(controller.__name__.lower())
    w.kind(TOGGLE)
    key = w.apply(
        {"apiVersion": f"{GROUP}/v1", "kind": "Toggle", "metadata": {"name": "x"}, "spec": {"desired": "alpha"}}
    )
    w.run(alpha=controller, beta=controller)
    w.converges(lambda s: s[key].status.owner == "alpha").confluent()
    return w, key


HOUR = 3600.0
CLOCKED = custom_kind(
    "Clocked",
    {"mode": TEXT},
    {
        "conditions": {
            "type": "array",
            "items": {"type": "object", "properties": {"type": TEXT, "status": TEXT, "lastTransitionTime": TEXT}},
        }
    },
)


class Append(Controller):
    """simclock: one condition more each time, with the time, and again in an hour until there are three."""

    kind = f"{GROUP}/v1/Clocked"

    def map_event(self, event, find):
        return [event.key] if event.old is None else []

    def reconcile(self, c, key):
        found = list(c.get(key).status.conditions or ())
        if len(found) == 3:
            return None
        found.append({"type": f"C{len(found)}", "status": "True", "lastTransitionTime": c.timestamp()})
        c.patch_status(key, {"conditions": found})
        return HOUR


def simclock() -> tuple[Scenario, Any]:
    """Time passes only where somebody waits for it."""
    w = Scenario("simclock")
    w.kind(CLOCKED)
    meta = {"name": "x"}
    key = w.apply({"apiVersion": f"{GROUP}/v1", "kind": "Clocked", "metadata": meta, "spec": {"mode": "A"}})
    w.run(Append)
    w.converges(lambda s: len(s[key].status.conditions or ()) == 3).confluent()
    return w, key


def bare(name: str, schema: dict[str, Any] | None = None) -> dict[str, Any]:
    """A kind whose status has these fields."""
    return custom_kind(name, {"owner": TEXT}, schema or {})


def named(kind: str, name: str = "x", **metadata: Any) -> dict[str, Any]:
    """An object with a name, and nothing else."""
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": name, **metadata}, "spec": {}}


class Take(Controller):
    """lock: takes it when it is free, and then says that it has won. A stale view must not let two win."""

    kind = f"{GROUP}/v1/Lock"

    def reconcile(self, c, key):
        lock = c.get(key)
        if not lock.spec.owner:
            c.update({**lock, "spec": {"owner": c.manager}})
            c.create(named("Won", c.manager, namespace=key.namespace))


def lock() -> tuple[Scenario, Any]:
    """Two who want a lock. The API server refuses the second: its resourceVersion is old."""
    w = Scenario("lock")
    w.kind(bare("Lock"))
    w.kind(bare("Won"))
    key = w.apply(named("Lock"))
    w.run(alpha=Take, beta=Take)
    w.always("one wins", lambda s: s.count(f"{GROUP}/v1/Won") < 2)
    return w, key


class Start(Controller):
    """order: says that it has started, and then starts. A crash between the two is never made good."""

    kind = f"{GROUP}/v1/Order"

    def reconcile(self, c, key):
        if not c.get(key).status.started:
            c.patch_status(key, {"started": "yes"})
            c.create(named("Work", key.name, namespace=key.namespace))


class StartFirst(Controller):
    """order, mended: starts, unless it has, and then says so."""

    kind = f"{GROUP}/v1/Order"

    def reconcile(self, c, key):
        if not c.get(key).status.started:
            if c.get(c.key(f"{GROUP}/v1/Work", key.name, key.namespace), fresh=True) is None:
                c.create(named("Work", key.name, namespace=key.namespace))
            c.patch_status(key, {"started": "yes"})


def order(controller: type[Controller] = Start) -> tuple[Scenario, Any]:
    """Work that is to be there in the end."""
    w = Scenario("order")
    w.kind(bare("Order", {"started": TEXT}))
    w.kind(bare("Work"))
    key = w.apply(named("Order"))
    w.run(controller)
    w.converges(lambda s: s.count(f"{GROUP}/v1/Work") == 1)
    return w, key


class Count(Controller):
    """census: how many have the label."""

    kind = f"{GROUP}/v1/Census"

    def reconcile(self, c, key):
        count = str(len(c.list(f"{GROUP}/v1/Item", key.namespace, labels="app=web")))
        if c.get(key).status.count != count:
            c.patch_status(key, {"count": count})


def census() -> tuple[Scenario, Any]:
    """One of two objects has the label."""
    w = Scenario("census")
    w.kind(bare("Census", {"count": TEXT}))
    w.kind(bare("Item"))
    key = w.apply(named("Census"))
    w.apply(named("Item", "web", labels={"app": "web"}))
    w.apply(named("Item", "other"))
    w.run(Count)
    w.converges(lambda s: s[key].status.count == "1")
    return w, key


class Poll(Controller):
    """poll: looks again after a while, until it has looked three times. Its own writes do not wake it."""

    kind = f"{GROUP}/v1/Poll"

    def map_event(self, event, find):
        return [event.key] if event.old is None else []

    def reconcile(self, c, key):
        seen = c.get(key).status.seen or ""
        if len(seen) == 3:
            return None
        c.patch_status(key, {"seen": seen + "I"})
        return HOUR


def poll() -> tuple[Scenario, Any]:
    """It comes to rest after three looks."""
    w = Scenario("poll")
    w.kind(bare("Poll", {"seen": TEXT}))
    key = w.apply(named("Poll"))
    w.run(Poll)
    w.converges(lambda s: s[key].status.seen == "III")
    return w, key


class Delete(Controller):
    """held: deletes what it sees."""

    kind = f"{GROUP}/v1/Held"

    def reconcile(self, c, key):
        held = c.get(key)
        if held is not None and not held.metadata.deletionTimestamp:
            c.delete(key)


def held() -> tuple[Scenario, Any]:
    """A finalizer that nobody takes away: the object goes on being deleted."""
    w = Scenario("held")
    w.kind(bare("Held"))
    key = w.apply(named("Held", finalizers=[f"{GROUP}/hold"]))
    w.run(Delete)
    w.converges(lambda s: s[key].metadata.deletionTimestamp is not None)
    return w, key
