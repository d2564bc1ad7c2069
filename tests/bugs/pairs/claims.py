"""Volume claims: whose they are, and who may use them."""

import steersman as sm
from steersman.controllers import claims, statefulset
from steersman.controllers.claims import Claims
from steersman.controllers.garbage import GarbageCollector
from steersman.controllers.protection import ClaimProtection
from steersman.controllers.statefulset import StatefulSet
from tests.bugs.objects import claim_key, set_key, stateful_set
from tests.bugs.row import Row

SET = set_key("db")
POD = sm.Key("", "Pod", "default", "db-0")
CLAIM = claim_key("data-db-0")


class TakesWhatIsThere(Claims):
    def is_stale(self, pod):
        return False


class EagerTurn(statefulset.Turn):
    def __init__(self, c, sts, *rest):
        super().__init__(c, sts, *rest)
        self.claims = TakesWhatIsThere(c, sts)


class Eager(StatefulSet):
    """Creates a pod although the claim of the last one of its name is about to go with that."""

    turn = EagerTurn


def own_claim(s):
    """No claim belongs to an earlier pod than the one that mounts it."""
    claim, pod = s[CLAIM], s[POD]
    if not claim or not pod:
        return True
    owners = [owner.uid for owner in claim.metadata.get("ownerReferences") or () if owner.kind == "Pod"]
    return not owners or owners == [pod.metadata.uid]


def with_claims():
    """A StatefulSet of one pod with a claim."""
    body = stateful_set("db", 1)
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    body["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": spec}]
    return body


def scaled_down_and_up(controller):
    w = sm.Scenario(controller.__name__)
    w.run(controller, GarbageCollector)
    body = with_claims()
    body["spec"]["persistentVolumeClaimRetentionPolicy"] = {"whenScaled": "Delete", "whenDeleted": "Retain"}
    w.apply(body)
    w.user("scale down", lambda c: c.patch(SET, {"spec": {"replicas": 0}}))
    w.user("scale up", lambda c: c.patch(SET, {"spec": {"replicas": 1}}))
    w.always("a pod has a claim of its own", own_claim)
    return w


# -- 84: a claim that is about to go ----------------------------------------------------------------------------------


class TakesWhatGoes(Claims):
    """A claim that is there will do."""

    def ensure(self, pod):
        for template, name in claims.names(self.sts, claims.ordinal_of(pod["metadata"]["name"])[1]):
            if self.c.get(claim_key(name)) is None and "uid" not in pod["metadata"]:
                self.c.create(self._body(template, name))


class HastyTurn(statefulset.Turn):
    def __init__(self, c, sts, *rest):
        super().__init__(c, sts, *rest)
        self.claims = TakesWhatGoes(c, sts)


class Hasty(StatefulSet):
    """Makes a pod again while its claim is still going, and does not look at claims after that."""

    turn = HastyTurn


def replaced(controller):
    """A person who wants a server to start on an empty volume: claim and pod are deleted."""
    w = sm.Scenario(controller.__name__)
    w.run(controller, ClaimProtection)
    body = with_claims()
    body["spec"]["template"]["spec"]["nodeName"] = "n1"
    w.apply(body)

    def replace(c):
        c.delete(CLAIM)
        c.delete(POD, grace=0)

    def has_its_claim(s):
        return s[POD] and s[CLAIM] and not s[CLAIM].metadata.deletionTimestamp

    w.user("start anew", replace)
    w.converges(has_its_claim, name="a pod has its claim")
    return w


ROWS = (
    Row(
        47,
        "pravega/zookeeper-operator#513",
        "scaled up again before the claim of the last pod of that name is gone: the new pod loses it",
        scaled_down_and_up,
        Eager,
        StatefulSet,
        ("a pod has a claim of its own",),
        {"atomic": True},
    ),
    Row(
        84,
        "kubernetes/kubernetes#74374",
        "a pod is made again while its claim is still being deleted: it starts on what is about to go",
        replaced,
        Hasty,
        StatefulSet,
        ("a pod has its claim", "no leaked finalizer"),
        {"atomic": True},
        shows=("user: start anew",),
    ),
)
