"""A crash between two writes: half done work is taken for done, or for not begun."""

from contextlib import suppress
from functools import partial
from typing import Final

import steersman as sm
from tests.bugs.objects import (
    INTEGER,
    TEXT,
    claim,
    claim_key,
    config_key,
    config_map,
    custom,
    custom_key,
    key_of,
    made,
    pod,
    secret,
    set_key,
    stateful_set,
)
from tests.bugs.row import Row

CLUSTER: Final = custom("Cluster", {"size": INTEGER, "config": TEXT}, {"phase": TEXT, "size": INTEGER})
CLUSTER_KEY: Final = custom_key("Cluster")


def ensure(c, obj):
    """Creates an object, unless it is there."""
    with suppress(sm.AlreadyExists):
        c.create(obj)


# -- 2, 20, 35: the first part stands for all ------------------------------------------------------------------------


class FirstMeansAll(sm.Controller):
    """Sets up TLS in several parts. Begins only where the first is missing."""

    kind = "example.com/v1/Cluster"
    parts: tuple = ()

    def reconcile(self, c, key):
        if c.get(key_of(self.parts[0])) is None:
            for part in self.parts:
                ensure(c, part)


class EachByItself(FirstMeansAll):
    """Every part is looked for."""

    def reconcile(self, c, key):
        for part in self.parts:
            if c.get(key_of(part)) is None:
                ensure(c, part)


def setting_up(parts, controller):
    """A cluster without TLS; `parts`: what that is made of."""
    w = sm.Scenario(controller.__name__)
    w.kind(CLUSTER)
    w.kind(custom("Certificate", {}, {}))
    w.apply(made("Cluster", size=1))
    w.run(type(controller.__name__, (controller,), {"parts": parts}))
    w.converges(lambda s: all(s[key_of(part)] for part in parts), name="TLS is complete")
    return w


KEYSTORES: Final = (secret("db-ca-keystore"), secret("db-keystore"), config_map("db-config"))
CERTIFICATES: Final = (made("Certificate", "db-ssl"), made("Certificate", "db-ssl-internal"))


# -- 3: the label says what was only begun ---------------------------------------------------------------------------


class LabelThenStart(sm.Controller):
    """Labels a pod as starting and tells the server in it to start (its status stands for what the server does);
    waits for those that are starting."""

    kind = "v1/Pod"
    asks_again = False

    def reconcile(self, c, key):
        found = c.get(key)
        state, ready = found.metadata.labels.state, found.status.phase == "Running"
        if state == "Ready-to-Start":
            c.patch(key, {"metadata": {"labels": {"state": "Starting"}}})
            c.patch_status(key, {"phase": "Running"})
        elif state == "Starting" and ready:
            c.patch(key, {"metadata": {"labels": {"state": "Started"}}})
        elif state == "Starting" and self.asks_again:
            c.patch_status(key, {"phase": "Running"})


class AsksAgain(LabelThenStart):
    """A server that is starting and not ready is told again."""

    asks_again = True


def starting(controller):
    """A pod whose server waits to be started."""
    w = sm.Scenario(controller.__name__)
    server = w.apply(pod("db-0", state="Ready-to-Start"))
    w.run(controller)
    w.converges(lambda s: s[server].metadata.labels.state == "Started", name="every server is started")
    return w


# -- 12: a note that is written too late -----------------------------------------------------------------------------


class ShrinkThenNote(sm.Controller):
    """Scales a StatefulSet down, and deletes the volume of the server that went when its own notes say so."""

    kind = "example.com/v1/Cluster"

    def reconcile(self, c, key):
        cluster, servers = c.get(key), c.get(set_key("db"))
        if cluster.status.phase == "Finalizing":
            c.delete(config_key("volume-1"))
            c.patch_status(key, {"phase": "Running"})
        elif cluster.spec.size < servers.spec.replicas:
            self.shrink(c, key, servers, cluster.spec.size)

    def shrink(self, c, key, servers, size):
        c.patch(servers, {"spec": {"replicas": size}})
        c.patch_status(key, {"phase": "Finalizing"})


class NoteThenShrink(ShrinkThenNote):
    """Writes down what it is about to do first; whoever finds the note does the rest, whatever was done already."""

    def reconcile(self, c, key):
        cluster, servers = c.get(key), c.get(set_key("db"))
        if cluster.spec.size < servers.spec.replicas and cluster.status.phase != "Finalizing":
            c.patch_status(key, {"phase": "Finalizing"})
        elif cluster.status.phase == "Finalizing":
            c.patch(servers, {"spec": {"replicas": cluster.spec.size}})
            c.delete(config_key("volume-1"))
            c.patch_status(key, {"phase": "Running"})


def shrinking(controller):
    w = sm.Scenario(controller.__name__)
    w.kind(CLUSTER)
    w.apply(made("Cluster", size=1))
    w.apply(stateful_set("db", 2))
    w.apply(config_map("volume-1"))
    w.run(controller)
    w.converges(lambda s: not s[config_key("volume-1")] and s[CLUSTER_KEY].status.phase == "Running", name="no leak")
    return w


# -- 24: a flag that is written too late ----------------------------------------------------------------------------


class ConfigThenFlag(sm.Controller):
    """Writes the new configuration, and flags that the servers must be restarted; it sees the need by comparing the
    configuration it finds with the one that is asked for."""

    kind = "example.com/v1/Cluster"

    def reconcile(self, c, key):
        cluster, found = c.get(key), c.get(config_key("config"))
        if found.data.text != cluster.spec.config:
            c.patch(config_key("config"), {"data": {"text": cluster.spec.config}})
            c.patch_status(key, {"phase": "ConfigOutOfSync"})
        elif cluster.status.phase == "ConfigOutOfSync":
            c.patch(config_key("server"), {"data": {"running": found.data.text}})
            c.patch_status(key, {"phase": "Running"})


class CompareWithWhatRuns(ConfigThenFlag):
    """Compares with what the server runs: no flag to lose."""

    def reconcile(self, c, key):
        wanted = c.get(key).spec.config
        if c.get(config_key("config")).data.text != wanted:
            c.patch(config_key("config"), {"data": {"text": wanted}})
        if c.get(config_key("server")).data.running != wanted:
            c.patch(config_key("server"), {"data": {"running": wanted}})


def configuring(controller):
    w = sm.Scenario(controller.__name__)
    w.kind(CLUSTER)
    w.apply(made("Cluster", config="new"))
    w.apply(config_map("config", text="old"))
    w.apply(config_map("server", running="old"))
    w.run(controller)
    w.converges(lambda s: s[config_key("server")].data.running == "new", name="the configuration is applied")
    return w


# -- 30: what is to be changed is known by what is deleted ---------------------------------------------------------


class DeleteThenGrow(sm.Controller):
    """A StatefulSet's volume size cannot be changed: delete the set, grow the volume, make the set again."""

    kind = "example.com/v1/Cluster"

    def reconcile(self, c, key):
        size = c.get(key).spec.size
        servers = c.get(set_key("db"))
        if servers is None:
            self.remake(c, size)
        elif servers.spec.replicas != size:
            c.delete(servers)
            c.patch(config_key("volume"), {"data": {"gi": str(size)}})
            self.remake(c, size)

    def remake(self, c, size):
        ensure(c, stateful_set("db", size))


class GrowFirst(DeleteThenGrow):
    """The volume is looked at by itself."""

    def reconcile(self, c, key):
        size = c.get(key).spec.size
        if c.get(config_key("volume")).data.gi != str(size):
            c.patch(config_key("volume"), {"data": {"gi": str(size)}})
        servers = c.get(set_key("db"))
        if servers is not None and servers.spec.replicas != size:
            c.delete(servers)
            servers = None
        if servers is None:
            self.remake(c, size)


def growing(controller):
    w = sm.Scenario(controller.__name__)
    w.kind(CLUSTER)
    w.apply(made("Cluster", size=2))
    w.apply(stateful_set("db", 1))
    w.apply(config_map("volume", gi="1"))
    w.run(controller)
    w.converges(
        lambda s: s[config_key("volume")].data.gi == "2" and s[set_key("db")].spec.replicas == 2,
        name="the volume grows",
    )
    return w


# -- 37: what is to be cleaned up is known by what is deleted first --------------------------------------------------


class SetThenVolumes(sm.Controller):
    """A cluster that goes: its StatefulSet is deleted, then its volumes, then the finalizer goes. Where there is no
    StatefulSet (any more), there is nothing to clean up."""

    kind = "example.com/v1/Cluster"

    def reconcile(self, c, key):
        cluster = c.get(key)
        if cluster is None or not cluster.metadata.deletionTimestamp:
            return
        self.clean(c)
        c.patch(key, {"metadata": {"finalizers": None}})

    def clean(self, c):
        if c.get(set_key("db")) is not None:
            c.delete(set_key("db"))
            c.delete(claim_key("data-db-0"))


class EachPart(SetThenVolumes):
    """Every part is deleted, whatever else is there."""

    def clean(self, c):
        c.delete(set_key("db"))
        c.delete(claim_key("data-db-0"))


def deleting(controller):
    """A cluster that is being deleted."""
    w = sm.Scenario(controller.__name__)
    w.kind(CLUSTER)
    body = made("Cluster", size=1)
    body["metadata"]["finalizers"] = ["example.com/volumes"]
    w.apply(body)
    w.apply(stateful_set("db", 1))
    w.apply(claim("data-db-0"))
    w.run(controller)
    w.user("delete", lambda c: c.delete(CLUSTER_KEY))
    w.converges(lambda s: not s.count("v1/PersistentVolumeClaim"), name="no volume leaks")
    return w


ROWS = (
    Row(
        2,
        "K8SSAND-1023",
        "a crash right after the Secret of the certificate authority's keystore was made: the rest is never set up",
        partial(setting_up, KEYSTORES),
        FirstMeansAll,
        EachByItself,
        ("TLS is complete",),
        {"crashes": 1},
        {"crashes": 2, "conflicts": 1},
    ),
    Row(
        3,
        "K8SSAND-1362",
        "a crash right after a pod was labelled as starting: its server is never told to start",
        starting,
        LabelThenStart,
        AsksAgain,
        ("every server is started",),
        {"crashes": 1},
        {"crashes": 2},
    ),
    Row(
        12,
        "Orange-OpenSource/casskop#370",
        "a crash after the StatefulSet was shrunk, before the status says so: the volume of the server that went leaks",
        shrinking,
        ShrinkThenNote,
        NoteThenShrink,
        ("no leak",),
        {"crashes": 1},
        {"crashes": 2},
    ),
    Row(
        20,
        "PSMDB-579",
        "a crash after the Certificate for outside was made and before the one for inside: it is never made",
        partial(setting_up, CERTIFICATES),
        FirstMeansAll,
        EachByItself,
        ("TLS is complete",),
        {"crashes": 1},
        {"crashes": 2, "conflicts": 1},
    ),
    Row(
        24,
        "konpyutaika/nifikop#49",
        "a crash after the configuration was written, before the status says that it is out of step: the servers are "
        "never restarted",
        configuring,
        ConfigThenFlag,
        CompareWithWhatRuns,
        ("the configuration is applied",),
        {"crashes": 1},
        {"crashes": 2},
    ),
    Row(
        30,
        "rabbitmq/cluster-operator#782",
        "a crash after the StatefulSet was deleted and before its volume has grown: the set is made again with the new "
        "size, and the volume never grows",
        growing,
        DeleteThenGrow,
        GrowFirst,
        ("the volume grows",),
        {"crashes": 1},
        {"crashes": 2},
    ),
    Row(
        35,
        "PXC-897",
        "a crash after the Certificate for outside was made: the one for inside is never made",
        partial(setting_up, CERTIFICATES),
        FirstMeansAll,
        EachByItself,
        ("TLS is complete",),
        {"crashes": 1},
        {"crashes": 2, "conflicts": 1},
    ),
    Row(
        37,
        "PXC-979",
        "a crash after the StatefulSet of a cluster that goes was deleted: what was to be deleted after it stays",
        deleting,
        SetThenVolumes,
        EachPart,
        ("no volume leaks",),
        {"crashes": 1},
        {"crashes": 2},
    ),
)
