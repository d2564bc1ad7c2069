"""What a person may write and what the program makes of it are not the same."""

from __future__ import annotations

from typing import Final

import steersman as sm
from tests.bugs.objects import INTEGER, custom, custom_key, made, service
from tests.bugs.row import Row

# -- 38: a value that means "off" is not allowed ---------------------------------------------------------------------

CLUSTER_KEY: Final = custom_key("YBCluster")
OFF: Final = -1
"""The port that means: no user interface, as the program's text says."""


class UserInterface(sm.Controller):
    """Has a Service for the user interface of a database, unless its port is `OFF`."""

    kind = "example.com/v1/YBCluster"

    def reconcile(self, c, key):
        cluster, found = c.get(key), c.get(sm.Key("", "Service", "default", "ui"))
        if cluster.spec.uiPort == OFF:
            if found is not None:
                c.delete(found)
        elif found is None:
            c.create(service("ui"))


class AtLeastOne(UserInterface):
    """Its definition allows ports from 1 on."""

    least = 1


class AlsoOff(UserInterface):
    """Its definition allows what the program understands."""

    least = OFF


def switching_off(controller):
    """A person who switches the user interface off."""
    w = sm.Scenario(controller.__name__)
    w.kind(custom("YBCluster", {"uiPort": {**INTEGER, "minimum": controller.least}}, {}))
    w.apply(made("YBCluster", uiPort=7000))
    w.run(controller)
    w.user("switch off", lambda c: c.patch(CLUSTER_KEY, {"spec": {"uiPort": OFF}}))
    w.converges(lambda s: not s.count("v1/Service"), name="what was switched off is off")
    return w


# -- 17: what is not there any more is read --------------------------------------------------------------------------

SHARDED: Final = custom("Sharded", {"sharding": {"type": "object", "properties": {"size": INTEGER}}}, {"size": INTEGER})
SHARDED_KEY: Final = custom_key("Sharded")


class TakesItForGranted(sm.Controller):
    """Says how many config servers a sharded cluster has."""

    kind = "example.com/v1/Sharded"

    def reconcile(self, c, key):
        self.say(c, key, c.get(key).spec["sharding"]["size"])

    def say(self, c, key, size):
        """Writes it down."""
        if c.get(key).status.size != size:
            c.patch_status(key, {"size": size})


class LooksWhetherItIsThere(TakesItForGranted):
    """None, where sharding is off."""

    def reconcile(self, c, key):
        sharding = c.get(key).spec.get("sharding")
        self.say(c, key, sharding["size"] if sharding else 0)


def sharding(controller):
    """A person who switches sharding off, and on again."""
    w = sm.Scenario(controller.__name__)
    w.kind(SHARDED)
    w.apply(made("Sharded", sharding={"size": 3}))
    w.run(controller)
    w.user("disable", lambda c: c.patch(SHARDED_KEY, {"spec": {"sharding": None}}))
    w.user("enable", lambda c: c.patch(SHARDED_KEY, {"spec": {"sharding": {"size": 3}}}))
    return w


ROWS = (
    Row(
        17,
        "PSMDB-434",
        "sharding is disabled, and what was said of it is read nevertheless: the controller panics",
        sharding,
        TakesItForGranted,
        LooksWhetherItIsThere,
        ("raised",),
        harder={"lag": 1},
        shows=("user: disable",),
    ),
    Row(
        38,
        "yugabyte/yugabyte-operator#33",
        "a port of -1 means that there is no user interface, but the definition refuses it: it cannot be switched off",
        switching_off,
        AtLeastOne,
        AlsoOff,
        ("what was switched off is off",),
        shows=("user: switch off",),
    ),
)
