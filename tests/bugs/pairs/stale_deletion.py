"""A controller restarts on an API server that is behind, sees that its object is being deleted, and deletes its parts.
But somebody has made it again since then under the same name: the names are the same, the uids are not."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import steersman as sm
from tests.bugs.objects import GROUP, TEXT, claim, custom, custom_key, made, secret, stateful_set
from tests.bugs.row import Row

FINALIZER: Final = f"{GROUP}/cleanup"
KEPT: Final = "a live cluster keeps what is its own"


class Operator(sm.Controller):
    """Gives a cluster its part, reports it running, and cleans up when it goes."""

    part: Any
    """The body of what belongs to it, known by its name."""

    def reconcile(self, c, key):
        cluster = c.get(key)
        if cluster is None:
            self.gone(c, key)
        elif cluster.metadata.deletionTimestamp:
            self.going(c, cluster)
        elif c.get(self.part_key(), fresh=True) is None:
            c.create(self.part)
        elif cluster.status.phase != "Running":
            c.patch_status(key, {"phase": "Running"}, rv=cluster.metadata.resourceVersion)

    def part_key(self):
        """The key of what belongs to it."""
        return sm.Key(*self.group_and_kind(), "default", self.part["metadata"]["name"])

    def group_and_kind(self):
        """Of the part."""
        group, _, _ = self.part["apiVersion"].rpartition("/")
        return group, self.part["kind"]

    def gone(self, c, key):
        """The cluster is not there."""

    def going(self, c, cluster):
        """The cluster is being deleted: so is its part, and then the finalizer goes."""
        c.delete(self.part_key())
        c.patch(cluster, {"metadata": {"finalizers": None}}, rv=cluster.metadata.resourceVersion)


class LooksWho(Operator):
    """Asks the API server whether the cluster of this uid is still there before it deletes anything."""

    def going(self, c, cluster):
        live = c.get(cluster, fresh=True)
        if live is not None and live.metadata.uid == cluster.metadata.uid:
            super().going(c, cluster)


class AfterTheEnd(Operator):
    """Cleans up when the cluster is gone: it holds no finalizer."""

    def gone(self, c, key):
        c.delete(self.part_key())


class LooksWhetherItIsBack(AfterTheEnd):
    """Asks the API server whether the cluster is really gone, and how the part was before that."""

    def gone(self, c, key):
        part = c.get(self.part_key(), fresh=True)
        if part is not None and c.get(key, fresh=True) is None:
            c.delete(part, uid=part.metadata.uid)


def running(kind: str, finalizers: tuple[str, ...], operator: type[Operator], part: Any) -> sm.Scenario:
    """A running cluster that somebody deletes and makes again."""
    key = custom_key(kind)
    watches = {f"{part['apiVersion']}/{part['kind']}": lambda _part: [key]}
    cls = type(operator.__name__, (operator,), {"kind": f"{GROUP}/v1/{kind}", "part": part, "watches": watches})
    body = made(kind)
    body["metadata"]["finalizers"] = list(finalizers)
    w = sm.Scenario(operator.__name__)
    w.kind(custom(kind, {}, {"phase": TEXT}))
    w.apply(body | {"status": {"phase": "Running"}})
    w.apply(part)
    w.run(cls)
    w.user("delete", lambda c: c.delete(key))
    w.user("make it again", lambda c: c.create(body))
    kept = cls().part_key()

    def keeps(s):
        live = s[key].status.phase == "Running" and not s[key].metadata.deletionTimestamp
        return not live or s[kept]

    w.always(KEPT, keeps)
    return w


def finalized(kind: str, part: Any, operator: type[Operator]) -> sm.Scenario:
    """Its operator cleans up under a finalizer."""
    return running(kind, (FINALIZER,), operator, part)


def soft(kind: str, part: Any, operator: type[Operator]) -> sm.Scenario:
    """Its operator cleans up afterwards."""
    return running(kind, (), operator, part)


SEEN_AGAIN: Final = (
    (1, "k8ssandra/cass-operator#118", "CassandraDatacenter", "the volume", claim("server-data-dc1")),
    (6, "instaclustr/cassandra-operator#402", "CassandraDataCenter", "the volume", claim("data-volume-cassandra")),
    (9, "Orange-OpenSource/casskop#316", "CassandraCluster", "the volume", claim("data-cassandra-dc1")),
    (15, "PSMDB-430", "PerconaServerMongoDB", "the volume", claim("mongod-data-rs0")),
    (27, "rabbitmq/cluster-operator#648", "RabbitmqCluster", "the StatefulSet", stateful_set("db-server", 1)),
    (31, "PXC-716", "PerconaXtraDBCluster", "the volume", claim("datadir-pxc")),
    (43, "pravega/zookeeper-operator#312", "ZookeeperCluster", "the volume", claim("data-zookeeper")),
)
ROWS = [
    *[
        Row(
            number,
            source,
            f"the end of a {kind} of the same name is seen again after a restart: {what} of the live one is deleted",
            partial(finalized, kind, part),
            Operator,
            LooksWho,
            (KEPT,),
            {"rewinds": 1},
        )
        for number, source, kind, what, part in SEEN_AGAIN
    ],
    Row(
        13,
        "elastic/cloud-on-k8s#5249",
        "an Elasticsearch of the same name is seen to be gone again after a restart: the Secret of the live one, which "
        "no owner reference holds, is deleted",
        partial(soft, "Elasticsearch", secret("elastic-user")),
        AfterTheEnd,
        LooksWhetherItIsBack,
        (KEPT,),
        {"rewinds": 1},
    ),
]
