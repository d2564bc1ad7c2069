"""A cache that does not yet show what was just created: it is created again."""

# ruff: noqa: RUF012  (controllers are declared as a person declares them)

from functools import partial
from typing import Any, Final

import steersman as sm
from examples.check import over_creation
from tests.bugs.objects import TEXT, config_map, custom, custom_key, made
from tests.bugs.row import Row

OWNER: Final = custom("Owner", {}, {"phase": TEXT})
OWNER_KEY: Final = custom_key("Owner")
KIND: Final = "example.com/v1/Owner"


def the_owner(_part):
    """Whatever happens to a part is news for its owner."""
    return [OWNER_KEY]


class FromTheCache(sm.Controller):
    """Gives its owner one part for each role, under a name that is drawn; looks into its cache for those that there
    are."""

    kind = KIND
    watches = {"v1/ConfigMap": the_owner}
    roles: tuple[str, ...] = ("a",)

    def reconcile(self, c, key):
        owner = c.get(key)
        for role in self.roles:
            if not self.parts(c, role):
                self.make(c, role)
        if owner.status.phase != "Made":
            c.patch_status(key, {"phase": "Made"})

    def parts(self, c, role, fresh=False):
        """The parts of a role that it sees."""
        return c.list("v1/ConfigMap", "default", labels=f"role={role}", fresh=fresh)

    def make(self, c, role):
        """Makes one more."""
        body = config_map("")
        body["metadata"] = {"generateName": f"{role}-", "namespace": "default", "labels": {"role": role}}
        c.create(body)


class ByItsName(FromTheCache):
    """Each part has a name that follows from its role: it cannot be made twice."""

    def make(self, c, role):
        body = config_map(f"part-{role}")
        body["metadata"]["labels"] = {"role": role}
        try:
            c.create(body)
        except sm.AlreadyExists:
            c.requeue(1)


class Waits(FromTheCache):
    """Waits until the cache shows what it made, but not for ever: then it gives up, to try again later."""

    def make(self, c, role):
        super().make(c, role)
        if not self.parts(c, role):
            c.requeue(1)


class BothWays(FromTheCache):
    """Also deletes what is too much, by what it sees."""

    def reconcile(self, c, key):
        super().reconcile(c, key)
        for extra in self.parts(c, "a")[1:]:
            c.delete(extra)


class SeenFresh(BothWays):
    """Asks the API server what there is."""

    def parts(self, c, role, fresh=True):
        return super().parts(c, role, fresh=True)


class Issues(Waits):
    """Has the one request signed that it sees; of several it does not know which, and stops."""

    def reconcile(self, c, key):
        seen = self.parts(c, "a")
        if not seen:
            self.make(c, "a")
        elif len(seen) == 1 and c.get(key).status.phase != "Issued":
            c.patch_status(key, {"phase": "Issued"})


class IssuesByName(Issues):
    """The request has a name that follows from the revision."""

    make = ByItsName.make


def one_each(roles: tuple[str, ...], controller: type[sm.Controller]) -> sm.Scenario:
    """An owner without parts."""
    w = sm.Scenario(controller.__name__)
    w.kind(OWNER)
    w.apply(made("Owner"))
    attributes: dict[str, Any] = {"roles": roles}
    w.run(type(controller.__name__, (controller,), attributes))
    w.always("never more than asked for", lambda s: s.count("v1/ConfigMap") <= len(roles))
    w.converges(lambda s: s.count("v1/ConfigMap") == len(roles), name="all that is asked for")
    return w


def issuing(controller: type[sm.Controller]) -> sm.Scenario:
    """A certificate that is to be issued."""
    w = sm.Scenario(controller.__name__)
    w.kind(OWNER)
    w.apply(made("Owner"))
    w.run(controller)
    w.converges(lambda s: s[OWNER_KEY].status.phase == "Issued", name="the certificate is issued")
    return w


MORE: Final = ("never more than asked for",)
ROWS = (
    Row(
        58,
        "kubernetes/kubernetes#8138",
        "pods are listed before it is checked that what was created has been seen: one pod too many",
        over_creation.scenario,
        over_creation.NaiveReplicaSet,
        over_creation.CarefulReplicaSet,
        ("never more pods than replicas", "converges"),
        {"lag": 1},
    ),
    Row(
        61,
        "ai-dynamo/grove#122",
        "a burst of events and a list of pods that is behind: too many are made, and deleted again",
        partial(one_each, ("a",)),
        BothWays,
        SeenFresh,
        MORE,
        {"lag": 1},
    ),
    Row(
        63,
        "kubernetes-sigs/cluster-api#13649",
        "the wait for the cache ends before it shows the MachineSet that was made: the next try makes another",
        partial(one_each, ("a",)),
        Waits,
        ByItsName,
        MORE,
        {"lag": 1},
    ),
    Row(
        64,
        "kubernetes-sigs/cluster-api#5274",
        "the MachineDeployments of a topology are listed from a cache that is behind: three are made for two",
        partial(one_each, ("a", "b")),
        FromTheCache,
        ByItsName,
        MORE,
        {"lag": 1},
    ),
    Row(
        65,
        "cert-manager/cert-manager#3565, cert-manager/cert-manager#4956",
        "the wait for the cache ends before it shows the request that was made: a second one of the same revision is "
        "made, and issuing stops for ever",
        issuing,
        Issues,
        IssuesByName,
        ("the certificate is issued",),
        {"lag": 1},
    ),
)
