"""Known bugs that need one stale read (rows of the corpus by number, sources there)."""

# ruff: noqa: RUF012  (controllers are declared as a person declares them)

import steersman as sm
from examples.check import live_volumes, over_creation
from tests.bugs.pair import BOOLEAN, INTEGER, config_key, config_map, custom, holds, made, reported

# -- 58: kubernetes/kubernetes pull 8138 -----------------------------------------------------------------------------


def test_58_pods_listed_before_expectations():
    verdict = reported(
        over_creation.scenario(over_creation.NaiveReplicaSet), "never more pods than replicas", "converges", lag=1
    )
    assert "STALE: its view is 1 event behind" in verdict.violations[0].explanation
    holds(over_creation.scenario(over_creation.NaiveReplicaSet))
    holds(over_creation.scenario(over_creation.CarefulReplicaSet), lag=1)


# -- 1: K8SSAND-559 --------------------------------------------------------------------------------------------------


def test_1_volumes_of_a_namesake():
    reported(live_volumes.scenario(live_volumes.CleanByName), "a ready StatefulSet keeps its volume", lag=1)
    holds(live_volumes.scenario(live_volumes.CleanByUid), lag=1)


# -- 28: rabbitmq cluster-operator 653 -------------------------------------------------------------------------------

SIZED = custom("Sized", {"gi": INTEGER}, {})
SIZED_KEY = sm.Key("example.com", "Sized", "default", "db")


def the_cluster(_: object) -> list[sm.Key]:
    """Whatever happens to its volume or its secret is news for the cluster."""
    return [SIZED_KEY]


class Resize(sm.Controller):
    """Makes the volume as large as the cluster asks for. A stale, smaller size must not shrink it."""

    kind = "example.com/v1/Sized"
    watches = {"v1/ConfigMap": the_cluster}
    grows_only = False

    def reconcile(self, c, key):
        wanted, volume = c.get(key).spec.gi, c.get(config_key("volume"))
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


def test_28_a_stale_smaller_size():
    reported(resizing(Resize), "volumes never shrink", lag=1)
    holds(resizing(Resize), atomic=True)
    holds(resizing(GrowOnly), lag=1)


# -- 39, 40: yugabyte-operator 35 and 36 -----------------------------------------------------------------------------

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


def test_39_a_stale_switch_deletes_live_secrets():
    verdict = reported(switching(Switch), "a live certificate is kept", lag=1)
    assert "STALE" in verdict.violations[0].explanation
    holds(switching(Switch))
    holds(switching(FreshSwitch), lag=1)
