"""An answer that is an error, and is not taken for one."""

# ruff: noqa: RUF012  (controllers are declared as a person declares them)

from typing import Final

import steersman as sm
from tests.bugs.objects import INTEGER, TEXT, claim, config_map, custom, custom_key, key_of, made, pod
from tests.bugs.row import Row

# -- 92: no answer is taken for done ---------------------------------------------------------------------------------

WANTED: Final = config_map("replicas")


class GivesUp(sm.Controller):
    """Makes a pod; an error is swallowed, and nothing wakes it again."""

    kind = "v1/ConfigMap"
    watches = {"v1/Pod": lambda obj: [key_of(WANTED)]}
    swallows = True

    def reconcile(self, c, key):
        if c.get(key_of(pod("db-0"))) is not None:
            return
        try:
            c.create(pod("db-0"))
        except sm.ApiError:
            if not self.swallows:
                raise


class TriesAgain(GivesUp):
    """An error goes up: the key comes back with back-off."""

    swallows = False


def replicas(controller):
    """Somebody who wants one pod."""
    w = sm.Scenario(controller.__name__)
    w.apply(WANTED)
    w.run(controller)
    w.converges(lambda s: s.count("v1/Pod") == 1, name="there are as many pods as asked for")
    return w


# -- 105: no answer is taken for "not there" --------------------------------------------------------------------------

RING: Final = "ring"
VOLUME: Final = claim("server-data-dc1-1")


class NoAnswerIsAbsent(sm.Controller):
    """Takes a node out of a ring that is to be smaller, and deletes its volume when the ring does not know it."""

    kind = "example.com/v1/CassandraDatacenter"
    careless = True

    def reconcile(self, c, key):
        if c.get(key).spec.size > 1 or c.get(key_of(VOLUME), fresh=True) is None:
            return
        state = self.state(c)
        if state == "absent":
            c.delete(key_of(VOLUME))
            return
        if state == "normal":
            c.external(RING, "decommission")
        c.requeue(1)

    def state(self, c):
        """What the ring says of the node."""
        try:
            return c.external(RING, "state")
        except sm.ApiError:
            if not self.careless:
                raise
            return "absent"


class NoAnswerIsNone(NoAnswerIsAbsent):
    """Asks again."""

    careless = False


def ring(request, state):
    """A ring with one node: it streams its data when it is told to leave, and is absent after that."""
    if request == "decommission":
        return None, "leaving" if state == "normal" else state
    return state, "absent" if state == "leaving" else state


def smaller(controller):
    """A person who wants one node less."""
    w = sm.Scenario(controller.__name__)
    w.kind(custom("CassandraDatacenter", {"size": INTEGER}, {}))
    w.apply(made("CassandraDatacenter", size=2))
    w.apply(VOLUME)
    w.external(RING, ring, state="normal")
    w.run(controller)
    smaller = {"spec": {"size": 1}}
    w.user("scale down", lambda c: c.patch(custom_key("CassandraDatacenter"), smaller))
    w.always("a node in the ring has its volume", lambda s: s.external(RING) == "absent" or s[key_of(VOLUME)])
    return w


# -- 103: a node that never came is counted on ------------------------------------------------------------------------

CLAIM: Final = "example.com/v1/NodeClaim"
CLOUD: Final = "cloud"
OLD: Final = custom_key("NodeClaim", "old")
NEW: Final = custom_key("NodeClaim", "new")


class Launches(sm.Controller):
    """Has a machine made for each claim of a node; says so when there is none to be had."""

    kind = CLAIM

    def reconcile(self, c, key):
        found = c.get(key)
        if found is None or found.status.phase:
            return
        phase = "Ready" if c.external(CLOUD, "launch") else "Failed"
        c.patch_status(key, {"phase": phase}, rv=found.metadata.resourceVersion)


def cloud(request, state):
    """Launches machines while it has some."""
    return (None, "sold out") if request == "sell" else (state != "sold out", state)


class CountsOnClaims(sm.Controller):
    """Gives up the old node of some pods as soon as there is a claim of a new one."""

    kind = CLAIM

    def reconcile(self, c, key):
        new = c.get(NEW)
        if new is not None and self.counts(new) and c.get(OLD) is not None:
            c.delete(OLD)

    def counts(self, new):
        """Whether pods can go there."""
        return True


class CountsOnNodes(CountsOnClaims):
    """Only when the node is there."""

    def counts(self, new):
        return new.status.phase == "Ready"


def consolidating(controller):
    """Pods on an old node; a new one is claimed that would do for them."""
    w = sm.Scenario(controller.__name__)
    w.kind(custom("NodeClaim", {}, {"phase": TEXT}))
    w.apply(made("NodeClaim", "old") | {"status": {"phase": "Ready"}})
    w.external(CLOUD, cloud, state="")
    w.run(controller, Launches)
    w.user("others take all machines", lambda c: c.external(CLOUD, "sell"))
    w.user("claim", lambda c: c.create(made("NodeClaim", "new")))
    w.converges(lambda s: any(each.status.phase == "Ready" for each in s.list(CLAIM)), name="pods have a node")
    return w


ROWS = (
    Row(
        92,
        "kubernetes/kubernetes#67662",
        "a pod is to be made and the request times out: the controller ignores the error, and never tries again",
        replicas,
        GivesUp,
        TriesAgain,
        ("there are as many pods as asked for",),
        {"timeouts": 1},
        {"timeouts": 2, "lost_replies": 1, "crashes": 1},
    ),
    Row(
        103,
        "kubernetes-sigs/karpenter#1293",
        "nodes are given up for one that is claimed; it was never launched, and there is none to run on",
        consolidating,
        CountsOnClaims,
        CountsOnNodes,
        ("pods have a node",),
        shows=("user: others take all machines",),
    ),
    Row(
        105,
        "k8ssandra/cass-operator#973",
        "the node cannot be asked for the ring, and that is read as its absence: the volume of a node that has not "
        "left is deleted",
        smaller,
        NoAnswerIsAbsent,
        NoAnswerIsNone,
        ("a node in the ring has its volume",),
        {"external_errors": 1},
    ),
)
