"""Known bugs that need a crash between two writes: half done work is taken for done, or for not begun."""

from contextlib import suppress

import steersman as sm
from examples.check import false_ready
from tests.bugs.pair import INTEGER, TEXT, config_key, config_map, custom, holds, made, reported, set_key, stateful_set

# -- the third bug of the main job: existence is taken for success ---------------------------------------------------


def test_existence_for_success():
    reported(false_ready.scenario(false_ready.Existence), "Ready only with a schema", crashes=1, by="crash")
    holds(false_ready.scenario(false_ready.Existence))
    holds(false_ready.scenario(false_ready.Success), crashes=1, conflicts=1)


# -- 2: K8SSAND-1023; 20: PSMDB-579; 35: PXC-897 ---------------------------------------------------------------------

CLUSTER = custom("Cluster", {"size": INTEGER, "config": TEXT}, {"phase": TEXT, "size": INTEGER})
CLUSTER_KEY = sm.Key("example.com", "Cluster", "default", "db")


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


def test_2_set_up_is_never_finished():
    reported(setting_up(FirstMeansAll), "converges", crashes=1, by="crash")
    holds(setting_up(FirstMeansAll), conflicts=1)
    holds(setting_up(EachByItself), crashes=2)


# -- 12: casskop 370 -------------------------------------------------------------------------------------------------


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


def test_12_a_volume_leaks():
    reported(shrinking(ShrinkThenNote), "converges", crashes=1, by="crash")
    holds(shrinking(ShrinkThenNote))
    holds(shrinking(NoteThenShrink), crashes=2)


# -- 24: nifikop 49 --------------------------------------------------------------------------------------------------


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


def test_24_a_configuration_is_never_applied():
    reported(configuring(ConfigThenFlag), "converges", crashes=1, by="crash")
    holds(configuring(ConfigThenFlag))
    holds(configuring(CompareWithWhatRuns), crashes=2)


# -- 30: rabbitmq cluster-operator 782 -------------------------------------------------------------------------------


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


def test_30_a_volume_never_grows():
    reported(growing(DeleteThenGrow), "converges", crashes=1, by="crash")
    holds(growing(DeleteThenGrow))
    holds(growing(GrowFirst), crashes=2)


# -- 74: kubernetes/kubernetes issue 109748 --------------------------------------------------------------------------


class CollectOnNews(sm.Controller):
    """Deletes the children of a parent when it hears that the parent is gone."""

    kind = "v1/ConfigMap"
    looks_at_start = False

    def reconcile(self, c, key):
        if key.name == "parent" and c.get(key) is None:
            c.delete(config_key("child"))
        elif self.looks_at_start and key.name == "child" and c.get(config_key("parent"), fresh=True) is None:
            c.delete(key)


class CollectAtStartToo(CollectOnNews):
    """Looks at every child after a start: what was missed while it was down."""

    looks_at_start = True


def collecting(controller):
    w = sm.Scenario(controller.__name__)
    w.apply(config_map("parent"))
    w.apply(config_map("child"))
    w.run(controller)
    w.user("delete", lambda c: c.delete(config_key("parent")))
    w.converges(lambda s: not s[config_key("child")], name="children are collected")
    return w


def test_74_news_that_is_lost_while_the_collector_is_down():
    reported(collecting(CollectOnNews), "converges", crashes=1, by="crash")
    holds(collecting(CollectOnNews))
    holds(collecting(CollectAtStartToo), crashes=2)
    holds(collecting(CollectAtStartToo), crashes=1, lag=1)
