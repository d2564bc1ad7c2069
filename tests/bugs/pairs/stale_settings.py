"""A controller restarts on an API server that is behind, where a setting is still what it was: what it asks for is done
again. The cures ask the API server before they take anything away, or never go back."""

# ruff: noqa: RUF012  (controllers are declared as a person declares them)

from functools import partial
from typing import Final

import steersman as sm
from tests.bugs.objects import (
    BOOLEAN,
    INTEGER,
    budget,
    claim,
    claim_key,
    custom,
    custom_key,
    key_of,
    made,
    secret,
    service,
    set_key,
    stateful_set,
)
from tests.bugs.row import Row

CLUSTER_KEY: Final = custom_key("Cluster")
KIND: Final = "example.com/v1/Cluster"

# -- 33, 39, 40: a switch --------------------------------------------------------------------------------------------

SWITCHED: Final = custom("Cluster", {"on": BOOLEAN}, {"on": BOOLEAN})


class Switch(sm.Controller):
    """Makes a part of a cluster when it is switched on, and deletes it when it is switched off."""

    kind = KIND
    part: dict = {}
    looks_again = False

    def reconcile(self, c, key):
        cluster, part = c.get(key), c.get(key_of(self.part), fresh=True)
        on = bool(cluster.spec.on)
        if on and part is None:
            c.create(self.part)
        elif not on and part is not None and not (self.looks_again and c.get(key, fresh=True).spec.on):
            c.delete(part)
        if bool(cluster.status.on) != on:
            c.patch_status(key, {"on": on}, rv=cluster.metadata.resourceVersion)


class LooksAgain(Switch):
    """Asks the API server whether it is really off before it deletes anything."""

    looks_again = True


def switching(part, controller):
    """A cluster that a person switches something on in; `part`: what it needs for that."""
    w = sm.Scenario(controller.__name__)
    w.kind(SWITCHED)
    w.apply(made("Cluster", on=False))
    w.run(type(controller.__name__, (controller,), {"part": part}))
    w.user("switch on", lambda c: c.patch(CLUSTER_KEY, {"spec": {"on": True}}))
    w.always("what is switched on keeps its parts", lambda s: not s[CLUSTER_KEY].status.on or s[key_of(part)])
    return w


# -- 10: a number ----------------------------------------------------------------------------------------------------

LIMITED: Final = custom("Cluster", {"maxUnavailable": INTEGER}, {"maxUnavailable": INTEGER})


class Remake(sm.Controller):
    """A disruption budget is deleted and made again when its number is another one."""

    kind = KIND
    looks_again = False

    def reconcile(self, c, key):
        cluster, found = c.get(key, fresh=self.looks_again), c.get(key_of(budget("db", 1)), fresh=True)
        wanted = cluster.spec.maxUnavailable
        if found is not None and found.spec.maxUnavailable != wanted:
            c.delete(found)
            found = None
        if found is None:
            c.create(budget("db", wanted))
        if cluster.status.maxUnavailable != wanted:
            c.patch_status(key, {"maxUnavailable": wanted}, rv=cluster.metadata.resourceVersion)


class RemakesWhatIsAskedFor(Remake):
    """Asks the API server how many may be unavailable."""

    looks_again = True


def limiting(controller):
    """A cluster of which a person lets fewer pods be unavailable."""
    w = sm.Scenario(controller.__name__)
    w.kind(LIMITED)
    w.apply(made("Cluster", maxUnavailable=2) | {"status": {"maxUnavailable": 2}})
    limit = w.apply(budget("db", 2))
    w.run(controller)
    w.user("limit", lambda c: c.patch(CLUSTER_KEY, {"spec": {"maxUnavailable": 1}}))

    def kept(s):
        in_force = s[CLUSTER_KEY].spec.maxUnavailable == s[CLUSTER_KEY].status.maxUnavailable
        return not in_force or s[limit].spec.maxUnavailable == s[CLUSTER_KEY].spec.maxUnavailable

    w.always("a limit that is in force stays in force", kept)
    return w


# -- 28: a size that only grows --------------------------------------------------------------------------------------

SIZED: Final = custom("Cluster", {"gi": INTEGER}, {"gi": INTEGER})


class Resize(sm.Controller):
    """A volume of another size than the cluster asks for: the StatefulSet is deleted, the volume resized, and the set
    made again."""

    kind = KIND
    grows_only = False

    def reconcile(self, c, key):
        cluster, volume = c.get(key), c.get(claim_key("data-db-0"), fresh=True)
        wanted, has = cluster.spec.gi, int(volume.spec.resources.requests.storage.removesuffix("Gi"))
        servers = c.get(set_key("db"), fresh=True)
        if wanted > has or (wanted < has and not self.grows_only):
            if servers is not None:
                c.delete(servers)
                servers = None
            c.patch(volume, {"spec": {"resources": {"requests": {"storage": f"{wanted}Gi"}}}})
        if servers is None:
            c.create(stateful_set("db", 1))
        if cluster.status.gi != wanted:
            c.patch_status(key, {"gi": wanted}, rv=cluster.metadata.resourceVersion)


class GrowOnly(Resize):
    """A volume that is larger than asked for is left alone."""

    grows_only = True


def resizing(controller):
    """A cluster whose volume a person makes larger."""
    w = sm.Scenario(controller.__name__)
    w.kind(SIZED)
    w.apply(made("Cluster", gi=1) | {"status": {"gi": 1}})
    w.apply(claim("data-db-0", 1))
    servers = w.apply(stateful_set("db", 1))
    w.run(controller)
    w.user("grow", lambda c: c.patch(CLUSTER_KEY, {"spec": {"gi": 2}}))

    def kept(s):
        resized = s[CLUSTER_KEY].spec.gi == s[CLUSTER_KEY].status.gi
        return not resized or s[servers]

    w.always("a cluster of the size that was asked for keeps running", kept)
    return w


ROWS = (
    Row(
        10,
        "Orange-OpenSource/casskop#321",
        "the number of pods that may be unavailable is seen as it was: the disruption budget is deleted and made again "
        "with the old number",
        limiting,
        Remake,
        RemakesWhatIsAskedFor,
        ("a limit that is in force stays in force",),
        {"rewinds": 1},
    ),
    Row(
        28,
        "rabbitmq/cluster-operator#653",
        "a smaller volume size of before is seen again: the StatefulSet is deleted, to shrink what may only grow",
        resizing,
        Resize,
        GrowOnly,
        ("a cluster of the size that was asked for keeps running",),
        {"rewinds": 1},
    ),
    *[
        Row(
            number,
            source,
            f"{setting} was off, and is seen to be off again after a restart: {what} of the live cluster is deleted",
            partial(switching, part),
            Switch,
            LooksAgain,
            ("what is switched on keeps its parts",),
            {"rewinds": 1},
        )
        for number, source, setting, what, part in (
            (33, "PXC-763", "ProxySQL", "the StatefulSet", stateful_set("db-proxysql", 1)),
            (39, "yugabyte/yugabyte-operator#35", "TLS", "the Secret", secret("yb-master-yugabyte-tls-cert")),
            (40, "yugabyte/yugabyte-operator#36", "the user interface", "the Service", service("yb-tserver-ui")),
        )
    ],
)
