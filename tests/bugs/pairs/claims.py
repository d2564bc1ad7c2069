"""Volume claims: whose they are, and who may use them."""

import steersman as sm
from steersman.controllers import statefulset
from steersman.controllers.claims import Claims
from steersman.controllers.garbage import GarbageCollector
from steersman.controllers.statefulset import StatefulSet
from tests.bugs.objects import set_key, stateful_set
from tests.bugs.row import Row

SET = set_key("db")


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
    claim = s[sm.Key("", "PersistentVolumeClaim", "default", "data-db-0")]
    pod = s[sm.Key("", "Pod", "default", "db-0")]
    if not claim or not pod:
        return True
    owners = [owner.uid for owner in claim.metadata.get("ownerReferences") or () if owner.kind == "Pod"]
    return not owners or owners == [pod.metadata.uid]


def scaled_down_and_up(controller):
    w = sm.Scenario(controller.__name__)
    w.run(controller, GarbageCollector)
    body = stateful_set("db", 1)
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    body["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": claim}]
    body["spec"]["persistentVolumeClaimRetentionPolicy"] = {"whenScaled": "Delete", "whenDeleted": "Retain"}
    w.apply(body)
    w.user("scale down", lambda c: c.patch(SET, {"spec": {"replicas": 0}}))
    w.user("scale up", lambda c: c.patch(SET, {"spec": {"replicas": 1}}))
    w.always("a pod has a claim of its own", own_claim)
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
)
