"""A person changes their mind while the first wish is being fulfilled."""

# ruff: noqa: RUF012  (controllers are declared as a person declares them)

import steersman as sm
from tests.bugs.objects import INTEGER, config_key, config_map, custom, custom_key, made
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
        harder={"lag": 1},
    ),
)
