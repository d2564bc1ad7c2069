"""A crash between two writes: half done work is taken for done, or for not begun."""

from contextlib import suppress

import steersman as sm
from tests.bugs.objects import INTEGER, TEXT, config_key, config_map, custom, custom_key, made, set_key, stateful_set
from tests.bugs.row import Row

CLUSTER = custom("Cluster", {"size": INTEGER, "config": TEXT}, {"phase": TEXT, "size": INTEGER})
CLUSTER_KEY = custom_key("Cluster")


def ensure(c, obj):
    """Creates an object, unless it is there."""
    with suppress(sm.AlreadyExists):
        c.create(obj)


class FirstMeansAll(sm.Controller):
    """Sets up TLS: a keystore, a certificate for outside, one for inside. Begins only where there is no keystore."""

    kind = "example.com/v1/Cluster"
    parts = ("keystore", "ssl", "ssl-internal")

    def reconcile(self, c, key):
        if c.get(config_key(self.parts[0])) is None:
            for part in self.parts:
                ensure(c, config_map(part))


class EachByItself(FirstMeansAll):
    """Every part is looked for."""

    def reconcile(self, c, key):
        for part in self.parts:
            if c.get(config_key(part)) is None:
                ensure(c, config_map(part))


def setting_up(controller):
    w = sm.Scenario(controller.__name__)
    w.kind(CLUSTER)
    w.apply(made("Cluster", size=1))
    w.run(controller)
    w.converges(lambda s: s.count("v1/ConfigMap") == 3, name="TLS is complete")
    return w


# -- a note that is written too late ------


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


# -- 24


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


# -- 30


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


ROWS = (
    Row(
        2,
        "K8SSAND-1023",
        "a crash right after the Secret of the certificate authority's keystore was made: the rest is never set up",
        setting_up,
        FirstMeansAll,
        EachByItself,
        ("TLS is complete",),
        {"crashes": 1},
        {"crashes": 2, "conflicts": 1},
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
)
