"""A person changes their mind while the first wish is being fulfilled."""

# ruff: noqa: RUF012  (controllers are declared as a person declares them)

from typing import Final

import steersman as sm
from tests.bugs.objects import (
    BOOLEAN,
    INTEGER,
    TEXT,
    config_key,
    config_map,
    custom,
    custom_key,
    made,
    pod,
    set_key,
    stateful_set,
)
from tests.bugs.row import Row

RING = custom("Ring", {"size": INTEGER}, {})
RING_KEY = custom_key("Ring")


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


# -- 11: two steps that are seen as one ------------------------------------------------------------------------------

RACK: Final = custom("Rack", {"nodes": INTEGER, "wish": INTEGER}, {"applied": INTEGER})
RACK_KEY: Final = custom_key("Rack")


class OneStepOnly(sm.Controller):
    """A rack loses one node at a time: a change by more is not allowed, and undone."""

    kind = "example.com/v1/Rack"
    undoes = True

    def reconcile(self, c, key):
        rack = c.get(key)
        wanted, applied = rack.spec.nodes, rack.status.applied
        if wanted < applied - 1:
            if self.undoes:
                c.patch(key, {"spec": {"nodes": applied}}, rv=rack.metadata.resourceVersion)
                return
            wanted = applied - 1
        if wanted != applied:
            c.patch(set_key("db"), {"spec": {"replicas": wanted}})
            c.patch_status(key, {"applied": wanted})


class StepByStep(OneStepOnly):
    """A change by more is made in steps."""

    undoes = False


def stepping(start):
    """A person who takes nodes away from a rack of `start`, one by one, until one is left."""

    def scenario(controller):
        w = sm.Scenario(controller.__name__)
        w.kind(RACK)
        w.apply(made("Rack", nodes=start) | {"status": {"applied": start}})
        w.apply(stateful_set("db", start))
        w.run(controller)

        def one_less(c):
            wish = c.get(RACK_KEY).spec.nodes - 1
            c.patch(RACK_KEY, {"spec": {"nodes": wish, "wish": wish}})

        w.user("one less", one_less)
        w.user("and another", one_less)
        w.converges(lambda s: s[set_key("db")].spec.replicas == s[RACK_KEY].spec.wish, name="as asked for last")
        return w

    return scenario


# -- 21: off and on again, seen as nothing ---------------------------------------------------------------------------

SHARDED: Final = custom("ReplicaSet", {"arbiter": BOOLEAN, "config": TEXT}, {})
SHARDED_KEY: Final = custom_key("ReplicaSet")


class MakesOrDeletes(sm.Controller):
    """An arbiter is made when it is switched on, and deleted when it is switched off."""

    kind = "example.com/v1/ReplicaSet"
    compares = False

    def reconcile(self, c, key):
        spec, found = c.get(key).spec, c.get(config_key("arbiter"))
        if spec.arbiter and found is None:
            c.create(config_map("arbiter", config=spec.config))
        elif not spec.arbiter and found is not None:
            c.delete(found)
        elif self.compares and found is not None and found.data.config != spec.config:
            c.patch(found, {"data": {"config": spec.config}})


class Compares(MakesOrDeletes):
    """One that is there is compared with what is asked for."""

    compares = True


def off_and_on(controller):
    """A person who switches an arbiter off to give it another configuration, and on again."""
    w = sm.Scenario(controller.__name__)
    w.kind(SHARDED)
    w.apply(made("ReplicaSet", arbiter=True, config="old"))
    w.apply(config_map("arbiter", config="old"))
    w.run(controller)

    def on(c):
        if not c.get(SHARDED_KEY).spec.arbiter:
            c.patch(SHARDED_KEY, {"spec": {"arbiter": True, "config": "new"}})

    w.user("off", lambda c: c.patch(SHARDED_KEY, {"spec": {"arbiter": False}}))
    w.user("on", on)

    def runs(s):
        spec, arbiter = s[SHARDED_KEY].spec, s[config_key("arbiter")]
        return arbiter.data.config == spec.config if spec.arbiter else not arbiter

    w.converges(runs, name="the arbiter is as asked for")
    return w


# -- 26: what only those get that are still wanted ------------------------------------------------------------------


NIFI: Final = custom("Nifi", {"nodes": INTEGER}, {"node2": TEXT})
NIFI_KEY: Final = custom_key("Nifi")


class OnlyTheWanted(sm.Controller):
    """A node joins in three steps, and leaves gracefully when it has joined. Only nodes that are wanted join."""

    kind = "example.com/v1/Nifi"
    watches = {"v1/Pod": lambda obj: [NIFI_KEY]}
    also_those_that_go = False

    def reconcile(self, c, key):
        nifi, node = c.get(key), c.get(sm.Key("", "Pod", "default", "node-2"))
        state, wanted = nifi.status.node2, nifi.spec.nodes == 2
        if wanted and node is None:
            c.create(pod("node-2"))
            c.patch_status(key, {"node2": "Required"})
        elif state == "Required":
            c.patch_status(key, {"node2": "Running"})
        elif self.also_those_that_go and node is not None and not state:
            c.patch_status(key, {"node2": "Required"})
        elif state == "Running" and (wanted or self.also_those_that_go):
            c.patch_status(key, {"node2": "Succeeded"})
        elif not wanted and node is not None and state == "Succeeded":
            c.delete(node, grace=0)


class WhoeverIsThere(OnlyTheWanted):
    """Whatever was begun with a node is finished."""

    also_those_that_go = True


def nifi(controller):
    """A cluster of two nodes that a person scales down at once."""
    w = sm.Scenario(controller.__name__)
    w.kind(NIFI)
    w.apply(made("Nifi", nodes=2))
    w.run(controller)
    w.user("scale down", lambda c: c.patch(NIFI_KEY, {"spec": {"nodes": 1}}))
    w.converges(lambda s: s.count("v1/Pod") == 0, name="what is not wanted goes")
    return w


ROWS = (
    Row(
        8,
        "instaclustr/cassandra-operator#410",
        "a node is decommissioned, and scaled back before the next reconcile: it stays decommissioned for ever",
        ring,
        Decommission,
        Recommission,
        ("all nodes joined",),
        harder={"crashes": 1, "conflicts": 1},
        shows=("user: scale down", "user: scale back", "decommissioned"),
    ),
    Row(
        47,
        "pravega/zookeeper-operator#513",
        "scaled up before the volume of the server that went is gone: the new server starts on old data and never gets "
        "ready, and volumes are deleted only when all servers are ready",
        reusing,
        ScaleUpAtOnce,
        GateOnTheVolume,
        ("every server is ready",),
        harder={"crashes": 1},
    ),
    Row(
        11,
        "Orange-OpenSource/casskop#342, Orange-OpenSource/casskop#357",
        "two steps down are seen as one, which is not allowed: the second wish of the person is undone",
        stepping(3),
        OneStepOnly,
        StepByStep,
        ("as asked for last",),
        harder={"crashes": 1},
        shows=("user: one less", "user: and another"),
    ),
    Row(
        21,
        "PSMDB-585",
        "an arbiter is switched off and on again, and the controller sees neither: it stays as it was",
        off_and_on,
        MakesOrDeletes,
        Compares,
        ("the arbiter is as asked for",),
        harder={"lag": 1, "crashes": 1},
        shows=("user: off", "user: on"),
    ),
    Row(
        26,
        "konpyutaika/nifikop#86",
        "a node is no longer wanted while it joins: it never gets as far as a node must be to leave, and stays",
        nifi,
        OnlyTheWanted,
        WhoeverIsThere,
        ("what is not wanted goes",),
        harder={"conflicts": 1, "crashes": 1},
        shows=("user: scale down",),
    ),
)
