"""A cache that still shows the setting of before: what it no longer asks for is done."""

# ruff: noqa: RUF012  (controllers are declared as a person declares them)

import steersman as sm
from tests.bugs.objects import BOOLEAN, INTEGER, config_key, config_map, custom, custom_key, made
from tests.bugs.row import Row

SIZED = custom("Sized", {"gi": INTEGER}, {})
SIZED_KEY = custom_key("Sized")


def the_cluster(_: object) -> list[sm.Key]:
    """Whatever happens to its volume or its secret is news for the cluster."""
    return [SIZED_KEY]


class Resize(sm.Controller):
    """Makes the volume as large as the cluster asks for. A stale, smaller size must not shrink it."""

    kind = "example.com/v1/Sized"
    watches = {"v1/ConfigMap": the_cluster}
    grows_only = False

    def reconcile(self, c, key):
        volume, wanted = c.get(config_key("volume")), c.get(key).spec.gi
        has = int(volume.data.gi)
        if wanted > has or (wanted < has and not self.grows_only):
            c.patch(volume, {"data": {"gi": str(wanted)}}, rv=volume.metadata.resourceVersion)


class GrowOnly(Resize):
    grows_only = True


def resizing(controller):
    w = sm.Scenario(controller.__name__)
    w.kind(SIZED)
    w.apply(made("Sized", gi=1))
    w.apply(config_map("volume", gi="1", largest="1"))
    w.run(controller)

    def grow(c):
        c.patch(SIZED_KEY, {"spec": {"gi": 2}})
        c.patch(config_key("volume"), {"data": {"gi": "2", "largest": "2"}})

    w.user("grow both by hand", grow)
    w.always("volumes never shrink", lambda s: s[config_key("volume")].data.gi >= s[config_key("volume")].data.largest)
    return w


SWITCHED = custom("Sized", {"tls": BOOLEAN}, {})


class Switch(sm.Controller):
    """Deletes the certificates of a cluster whose TLS is off."""

    kind = "example.com/v1/Sized"
    watches = {"v1/ConfigMap": the_cluster}
    fresh = False

    def reconcile(self, c, key):
        certificate = c.get(config_key("certificate"))
        if certificate is not None and not c.get(key, fresh=self.fresh).spec.tls:
            c.delete(certificate, uid=certificate.metadata.uid)


class FreshSwitch(Switch):
    """Asks the API server, not its cache, before it deletes."""

    fresh = True


def switching(controller):
    w = sm.Scenario(controller.__name__)
    w.kind(SWITCHED)
    w.apply(made("Sized", tls=False))
    w.run(controller)

    def switch_on(c):
        c.patch(SIZED_KEY, {"spec": {"tls": True}})
        c.create(config_map("certificate"))

    w.user("switch on", switch_on)
    w.always("a live certificate is kept", lambda s: not s[SIZED_KEY].spec.tls or s[config_key("certificate")])
    return w


ROWS = (
    Row(
        28,
        "rabbitmq/cluster-operator#653",
        "a volume size of before, smaller, is seen late: the volume is to shrink again; it may only grow",
        resizing,
        Resize,
        GrowOnly,
        ("volumes never shrink",),
        {"lag": 1},
    ),
    Row(
        39,
        "yugabyte/yugabyte-operator#35",
        "TLS was off, and is still seen to be: the certificates of the live cluster are deleted",
        switching,
        Switch,
        FreshSwitch,
        ("a live certificate is kept",),
        {"lag": 1},
    ),
)
