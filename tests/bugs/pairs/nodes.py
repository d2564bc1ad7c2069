"""Nodes that go, come back under the same name, or refuse what they are given."""

# ruff: noqa: RUF012  (controllers are declared as a person declares them)

from typing import Final

import steersman as sm
from tests.bugs.objects import config_key, config_map, key_of, pod
from tests.bugs.row import Row

POD: Final = sm.Key("", "Pod", "default", "db-0")


def node(name):
    """A node."""
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


def bound(name, where, **labels):
    """A pod on a node."""
    body = pod(name, **labels)
    body["spec"]["nodeName"] = where
    return body


# -- 56: two nodes run one pod ----------------------------------------------------------------------------------------


class RunsWhatItSees(sm.Controller):
    """Runs the pods of its node: a ConfigMap stands for the process. A pod that goes is stopped first."""

    kind = "v1/Pod"
    node = "n1"
    fresh = False

    def reconcile(self, c, key):
        process = config_key(self.node)
        found, runs = c.get(key, fresh=self.fresh), c.get(process, fresh=True) is not None
        mine = found is not None and found.spec.nodeName == self.node
        if mine and not found.metadata.deletionTimestamp:
            if not runs:
                c.create(config_map(self.node))
            return
        if runs:
            c.delete(process)
        if mine:
            c.delete(key, uid=found.metadata.uid, grace=0)


class RunsWhatThereIs(RunsWhatItSees):
    """Asks the API server before it runs anything."""

    fresh = True


def moving(kubelet):
    """A person moves the pod of a StatefulSet to another node."""
    w = sm.Scenario(kubelet.__name__)
    w.apply(bound("db-0", "n1"))
    w.apply(config_map("n1"))
    w.run(n1=kubelet, n2=type(kubelet.__name__, (kubelet,), {"node": "n2"}))

    def again(c):
        if c.get(POD) is None:
            c.create(bound("db-0", "n2"))

    w.user("delete", lambda c: c.delete(POD))
    w.user("make it elsewhere", again)
    w.always("one pod runs once", lambda s: not (s[config_key("n1")] and s[config_key("n2")]))
    return w


# -- 89: bound to what is gone ----------------------------------------------------------------------------------------


class Binds(sm.Controller):
    """Puts pods on the one node that it sees."""

    kind = "v1/Pod"

    def reconcile(self, c, key):
        found, nodes = c.get(key), c.list("v1/Node")
        if found is not None and not found.spec.nodeName and nodes:
            c.bind(found, nodes[0].metadata.name)


class PodsOfNodes(sm.Controller):
    """Deletes the pods of a node that is gone, when it goes."""

    kind = "v1/Node"

    def reconcile(self, c, key):
        if c.get(key, fresh=True) is None:
            for each in c.list("v1/Pod", "default", fresh=True):
                if each.spec.nodeName == key.name:
                    c.delete(each, grace=0)


class PodsOfNodesAlways(PodsOfNodes):
    """Looks at each pod that is put on a node, too."""

    watches = {"v1/Pod": lambda obj: [sm.Key("", "Node", "", obj.spec.nodeName)] if obj.spec.nodeName else []}


def node_goes(collector):
    """A node is deleted while a pod is put on it."""
    w = sm.Scenario(collector.__name__)
    w.apply(node("n1"))
    w.apply(pod("db-0"))
    w.run(Binds, collector)
    w.user("delete the node", lambda c: c.delete(key_of(node("n1"))))
    w.converges(lambda s: not s[POD].spec.nodeName, name="no pod waits on a node that is gone")
    return w


# -- 91: another node of the same name --------------------------------------------------------------------------------


class ByName(sm.Controller):
    """Deletes pods whose node is gone."""

    kind = "v1/Node"
    watches = {"v1/Pod": lambda obj: [sm.Key("", "Node", "", obj.spec.nodeName)]}

    def reconcile(self, c, key):
        found = c.get(key)
        for each in c.list("v1/Pod", "default"):
            if each.spec.nodeName == key.name and self.lost(each, found):
                c.delete(each, grace=0)

    def lost(self, each, found):
        """Whether a pod's node is gone."""
        return found is None


class ByUid(ByName):
    """Pods say which incarnation of the node they are on."""

    def lost(self, each, found):
        return found is None or each.metadata.labels.node != found.metadata.labels.machine


def replaced(collector):
    """A node is deleted and made again under its name: another machine."""
    w = sm.Scenario(collector.__name__)
    first, second = node("n1"), node("n1")
    first["metadata"]["labels"], second["metadata"]["labels"] = {"machine": "m1"}, {"machine": "m2"}
    w.apply(first)
    w.apply(bound("db-0", "n1", node="m1"))
    w.run(collector)

    def again(c):
        if c.get(key_of(second)) is None:
            c.create(second)

    w.user("delete", lambda c: c.delete(key_of(first)))
    w.user("make it again", again)
    w.converges(lambda s: not s[POD], name="no pod is kept of a machine that is gone")
    return w


# -- 87: refused, and made again --------------------------------------------------------------------------------------


class Refuses(sm.Controller):
    """A node under pressure that takes no pods."""

    kind = "v1/Pod"

    def reconcile(self, c, key):
        found = c.get(key)
        if found is not None and found.status.phase != "Failed":
            c.patch_status(key, {"phase": "Failed"})


class MakesAgain(sm.Controller):
    """Replaces a pod that has failed, at once."""

    kind = "v1/Pod"
    patience = 0

    def reconcile(self, c, key):
        found = c.get(key)
        if found is None:
            c.create(bound("db-0", "n1"))
        elif found.status.phase == "Failed" and self.may(c, found):
            c.delete(key, grace=0)

    def may(self, c, found):
        """Whether it is time."""
        return True


class BacksOff(MakesAgain):
    """Leaves a pod that has failed for a minute."""

    def may(self, c, found):
        return c.after(found.metadata.creationTimestamp, 60)


def under_pressure(controller):
    """A pod for a node that takes none."""
    w = sm.Scenario(controller.__name__)
    w.apply(bound("db-0", "n1"))
    w.run(controller, Refuses)
    return w


ROWS = (
    Row(
        56,
        "kubernetes/kubernetes#59848, kubernetes/kubernetes#60478",
        "a kubelet lists from an API server that is behind, and runs a pod that has been moved: two nodes run it",
        moving,
        RunsWhatItSees,
        RunsWhatThereIs,
        ("one pod runs once",),
        {"rewinds": 1},
    ),
    Row(
        87,
        "kubernetes/kubernetes#30628, kubernetes/kubernetes#65240, kubernetes/kubernetes#72593",
        "a node refuses a pod, its controller makes it again at once: a hot loop",
        under_pressure,
        MakesAgain,
        BacksOff,
        ("livelock",),
        shows=("from here on, for ever:",),
    ),
    Row(
        89,
        "kubernetes/kubernetes#12545",
        "a node is deleted while a pod is put on it: the pod waits there for ever",
        node_goes,
        PodsOfNodes,
        PodsOfNodesAlways,
        ("no pod waits on a node that is gone",),
        shows=("user: delete the node",),
    ),
    Row(
        91,
        "kubernetes/kubernetes#132182",
        "a node is deleted and made again under its name before its pods are looked at: they are kept",
        replaced,
        ByName,
        ByUid,
        ("no pod is kept of a machine that is gone",),
        shows=("user: delete", "user: make it again"),
    ),
)
