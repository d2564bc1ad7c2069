"""Known bugs that need only an order of events, or a refusal: races, livelocks, deadlocks."""

# ruff: noqa: RUF012  (controllers are declared as a person declares them)

import steersman as sm
from tests.bugs.pair import INTEGER, TEXT, config_key, config_map, custom, holds, made, reported, set_key, stateful_set

# -- 94: kubernetes/kubernetes issue 25238 and its like --------------------------------------------------------------

APP = custom("App", {"image": TEXT, "replicas": INTEGER}, {})
APP_KEY = sm.Key("example.com", "App", "default", "db")


class Operator(sm.Controller):
    """Writes a StatefulSet from its own object, replicas included."""

    kind = "example.com/v1/App"
    watches = {"apps/v1/StatefulSet": lambda obj: [APP_KEY]}
    owns_replicas = True

    def reconcile(self, c, key):
        app, servers = c.get(key), c.get(set_key("db"))
        if servers is None:
            c.create(stateful_set("db", app.spec.replicas))
        elif self.owns_replicas and servers.spec.replicas != app.spec.replicas:
            c.patch(servers, {"spec": {"replicas": app.spec.replicas}})


class LeavesReplicas(Operator):
    """Sets replicas once; from then on they are the autoscaler's."""

    owns_replicas = False


class Autoscaler(sm.Controller):
    """Wants three."""

    kind = "apps/v1/StatefulSet"

    def reconcile(self, c, key):
        servers = c.get(key)
        if servers is not None and servers.spec.replicas != 3:
            c.patch(key, {"spec": {"replicas": 3}})


def scaling(operator):
    w = sm.Scenario(operator.__name__)
    w.kind(APP)
    w.apply(made("App", replicas=1))
    w.run(operator, Autoscaler)
    w.converges(lambda s: s[set_key("db")].spec.replicas == 3)
    return w


def test_94_two_controllers_fight_over_replicas():
    verdict = reported(scaling(Operator), "livelock")
    (violation,) = verdict.violations
    assert {action.who for action in violation.cycle} == {"operator", "autoscaler"}
    assert "from here on, for ever:" in violation.explanation
    assert "spec.replicas: 3 → 1" in violation.explanation and "spec.replicas: 1 → 3" in violation.explanation
    holds(scaling(LeavesReplicas), lag=1)


# -- 97: prometheus-operator 4519 ------------------------------------------------------------------------------------


class Recreate(sm.Controller):
    """A field that cannot be changed differs: delete and make again, at each look."""

    kind = "example.com/v1/App"
    watches = {"v1/ConfigMap": lambda obj: [APP_KEY]}
    waits = False

    def reconcile(self, c, key):
        wanted, found = c.get(key).spec.image, c.get(config_key("db"))
        if found is None:
            c.create(config_map("db", image=wanted))
        elif found.data.image != wanted:
            if self.waits and found.metadata.deletionTimestamp:
                return
            c.patch(found, {"metadata": {"labels": {"attempt": self.attempt(found)}}})
            c.delete(found)

    def attempt(self, found):
        """Every attempt writes: a name, a checksum, an annotation."""
        return "a" if (found.metadata.labels or {}).get("attempt") == "b" else "b"


class WaitsForTheEnd(Recreate):
    """Does nothing while the old one is going."""

    waits = True


class Finalizer(sm.Controller):
    """Whoever holds the old one back lets it go when a person says so."""

    kind = "v1/ConfigMap"

    def reconcile(self, c, key):
        found = c.get(key)
        held = found is not None and found.metadata.deletionTimestamp and found.metadata.finalizers
        if held and c.get(config_key("released")) is not None:
            c.patch(key, {"metadata": {"finalizers": None}})


def recreating(controller, released):
    old = config_map("db", image="old")
    old["metadata"]["finalizers"] = ["example.com/wait"]
    w = sm.Scenario(controller.__name__)
    w.kind(APP)
    w.apply(made("App", image="new"))
    w.apply(old)
    if released:
        w.apply(config_map("released"))
    w.run(controller, Finalizer)
    w.converges(lambda s: not released or s[config_key("db")].data.image == "new")
    return w


def test_97_a_hot_loop_while_the_old_one_is_going():
    verdict = reported(recreating(Recreate, released=False), "livelock")
    assert "recreate" in {action.who for action in verdict.violations[0].cycle}
    holds(recreating(WaitsForTheEnd, released=False))
    holds(recreating(WaitsForTheEnd, released=True))


# -- 8: cassandra-operator 410 ---------------------------------------------------------------------------------------

RING = custom("Ring", {"size": INTEGER}, {})
RING_KEY = sm.Key("example.com", "Ring", "default", "db")


class Decommission(sm.Controller):
    """Scaling down decommissions the last node first, and removes it in the next reconcile."""

    kind = "example.com/v1/Ring"
    watches = {"v1/ConfigMap": lambda obj: [RING_KEY]}
    takes_back = False

    def reconcile(self, c, key):
        size, node = c.get(key).spec.size, c.get(config_key("node-2"))
        if node is None:
            if size == 2:
                c.create(config_map("node-2", state="joined"))
        elif size < 2 and node.data.state == "joined":
            c.patch(node, {"data": {"state": "decommissioned"}})
        elif size < 2:
            c.delete(node)
        elif self.takes_back and node.data.state == "decommissioned":
            c.patch(node, {"data": {"state": "joined"}})


class Recommission(Decommission):
    """A node that is wanted again joins again."""

    takes_back = True


def ring(controller):
    w = sm.Scenario(controller.__name__)
    w.kind(RING)
    w.apply(made("Ring", size=2))
    w.apply(config_map("node-2", state="joined"))
    w.run(controller)

    def scale(size):
        return lambda c: c.patch(RING_KEY, {"spec": {"size": size}})

    w.user("scale down", scale(1))
    w.user("scale back", scale(2))
    w.converges(
        lambda s: s[RING_KEY].spec.size == 1 or s[config_key("node-2")].data.state == "joined", name="all nodes joined"
    )
    return w


def test_8_scaled_back_in_the_middle():
    verdict = reported(ring(Decommission), "converges")
    labels = [action.label for action in verdict.violations[0].actions]
    assert "user scale down" in labels and "user scale back" in labels
    holds(ring(Recommission))
    holds(ring(Recommission), crashes=1, conflicts=1)


# -- 92: kubernetes/kubernetes issue 67662 ---------------------------------------------------------------------------


class GivesUp(sm.Controller):
    """Updates an object; a refusal is swallowed, and nothing wakes it again."""

    kind = "v1/ConfigMap"
    swallows = True

    def reconcile(self, c, key):
        found = c.get(key)
        if found.data.state == "done":
            return
        try:
            c.update({**found, "data": {"state": "done"}})
        except sm.ApiError:
            if not self.swallows:
                raise


class TriesAgain(GivesUp):
    """A refusal goes up: the key comes back with back-off."""

    swallows = False


def updating(controller):
    w = sm.Scenario(controller.__name__)
    w.apply(config_map("db"))
    w.run(controller)
    w.converges(lambda s: s[config_key("db")].data.state == "done")
    return w


def test_92_a_refusal_that_is_ignored():
    reported(updating(GivesUp), "converges", conflicts=1, by="conflict")
    holds(updating(GivesUp))
    holds(updating(TriesAgain), conflicts=2, crashes=1)


# -- 47: zookeeper-operator 513 --------------------------------------------------------------------------------------


class ScaleUpAtOnce(sm.Controller):
    """Grows whenever it is asked to; deletes the volumes of servers that are gone only when all servers are ready. A
    server that starts on an old volume never gets ready."""

    kind = "example.com/v1/Ring"
    watches = {"v1/ConfigMap": lambda obj: [RING_KEY]}
    gated = False

    def reconcile(self, c, key):
        size = c.get(key).spec.size
        volume, server = c.get(config_key("volume-2")), c.get(config_key("server-2"))
        if size == 1 and server is not None:
            c.delete(server)
        elif size == 1 and volume is not None:
            c.delete(volume)
        elif size == 2 and server is None:
            if volume is None:
                c.create(config_map("volume-2", data="new"))
                c.create(config_map("server-2", ready="yes"))
            elif not self.gated:
                c.create(config_map("server-2", ready="no"))
            else:
                c.delete(volume)


class GateOnTheVolume(ScaleUpAtOnce):
    """An old volume goes before a server comes."""

    gated = True


def reusing(controller):
    w = sm.Scenario(controller.__name__)
    w.kind(RING)
    w.apply(made("Ring", size=2))
    w.apply(config_map("volume-2", data="old"))
    w.apply(config_map("server-2", ready="yes"))
    w.run(controller)

    def scale(size):
        return lambda c: c.patch(RING_KEY, {"spec": {"size": size}})

    w.user("scale down", scale(1))
    w.user("scale up", scale(2))
    w.converges(
        lambda s: s[RING_KEY].spec.size == 1 or s[config_key("server-2")].data.ready == "yes",
        name="every server is ready",
    )
    return w


def test_47_a_server_on_an_old_volume():
    reported(reusing(ScaleUpAtOnce), "converges")
    holds(reusing(GateOnTheVolume))
    holds(reusing(GateOnTheVolume), lag=1)


# -- 70: kubernetes/kubernetes issue 85353 ---------------------------------------------------------------------------


class NoWatchOnItsOutput(sm.Controller):
    """Writes a copy when the source changes, and never looks at the copy again."""

    kind = "example.com/v1/App"

    def reconcile(self, c, key):
        wanted, copy = c.get(key).spec.image, c.get(config_key("copy"))
        if copy is None:
            c.create(config_map("copy", image=wanted))
        elif copy.data.image != wanted:
            c.patch(copy, {"data": {"image": wanted}})


class WatchesItsOutput(NoWatchOnItsOutput):
    watches = {"v1/ConfigMap": lambda obj: [APP_KEY]}


def copying(controller):
    w = sm.Scenario(controller.__name__)
    w.kind(APP)
    w.apply(made("App", image="one"))
    w.run(controller)
    w.user("spoil", lambda c: c.patch(config_key("copy"), {"data": {"image": "spoilt"}}))
    w.user("delete", lambda c: c.delete(config_key("copy")))
    w.converges(lambda s: s[config_key("copy")].data.image == "one")
    return w


def test_70_a_copy_that_is_never_repaired():
    reported(copying(NoWatchOnItsOutput), "converges")
    holds(copying(WatchesItsOutput))
    holds(copying(WatchesItsOutput), lag=1)
