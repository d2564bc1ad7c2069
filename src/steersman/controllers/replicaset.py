"""ReplicaSet and ReplicationController: as many pods of one template as were asked for.

A ReplicationController is seen as the ReplicaSet it would be: its selector is a map of labels, and its status does not
count pods that terminate. Source of the facts: Kubernetes 1.36, pkg/controller/replicaset and replication. What
differs: expectations are facts that never expire (see `expectations`), pods are created one by one rather than in
growing batches (it stops at the first refusal, as those do), and of pods that are equally old to Kubernetes'
logarithmic eye the newest goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, ClassVar, Final

from steersman.api.client import Client, key_of
from steersman.api.controller import Controller, Find
from steersman.api.errors import ApiError, Conflict
from steersman.controllers import owned, pods
from steersman.controllers.conditions import condition, find, without
from steersman.controllers.expectations import Expectations
from steersman.kernel.effect import GK, Event
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
POD: Final = "v1/Pod"
POD_GK: Final = ("", "Pod")
BURST: Final = 500
"""Most pods created or deleted in one reconcile, as in Kubernetes; the events of these wake it for the rest."""
NO_CONTENT: Final = "because it is being terminated"
"""How a create in a namespace that goes away is refused: nothing to try again."""


class ReplicaSet(Controller):
    """Keeps `spec.replicas` pods alive."""

    name = "replicaset"
    kind = "apps/v1/ReplicaSet"
    owns = (POD,)
    gk: ClassVar[GK] = ("apps", "ReplicaSet")
    source: ClassVar[str] = "replicaset-controller"
    """Who its Events are by."""
    counts_terminating: ClassVar[bool] = True
    """Whether its status says how many pods terminate."""

    @staticmethod
    def shown(owner: Json) -> Json:
        """The owner as a ReplicaSet."""
        return owner

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """See `owned.woken`."""
        return owned.woken(event, self.gk, (POD_GK,))

    def reconcile(self, c: Client, key: Key) -> float | None:
        """Creates or deletes pods, then writes the status; raises what the API refused."""
        if key.gk == POD_GK:
            owned.adopt_orphan(c, c.get(key), self.kind, shown=self.shown, adopted=Expectations.adopted)
            return None
        found = c.get(key)
        if found is None:
            Expectations.forget(c, key)
            return None
        rs = self.shown(found)
        facts = Expectations(c, key, rs["metadata"]["uid"])
        mine = owned.claim(c, rs, POD, adopted=facts.made)
        mine += facts.missing(mine, POD_GK, key.namespace)
        active = [pod for pod in mine if pods.is_active(pod) and not facts.is_gone(pod)]
        failed: tuple[str, ApiError] | None = None
        if not owned.is_terminating(rs):
            failed = self._scale(c, rs, active, facts)
        status = _status(c, rs, mine, active, failed)
        if not self.counts_terminating:
            del status["terminatingReplicas"]
        told = _write_status(c, rs, status)
        if failed is not None and NO_CONTENT not in failed[1].message:
            raise failed[1]
        return None if told else facts.again

    def _scale(self, c: Client, rs: Json, active: list[Any], facts: Expectations) -> tuple[str, ApiError] | None:
        """Creates what is missing or deletes what is too much; (reason, error) where that was refused."""
        missing = rs["spec"]["replicas"] - len(active)
        try:
            for _ in range(min(missing, BURST)):
                pod = c.create(new_pod(rs))
                facts.made(pod)
                c.event(rs, "Normal", "SuccessfulCreate", f"Created pod: {pod['metadata']['name']}", self.source)
        except ApiError as error:
            if NO_CONTENT not in error.message:
                c.event(rs, "Warning", "FailedCreate", f"Error creating: {error.message}", self.source)
            return "FailedCreate", error
        if missing >= 0:
            return None
        try:
            for pod in _victims(c, rs, active, -missing)[:BURST]:
                with suppress(Conflict):  # the name is somebody else's by now: this pod is gone
                    c.delete(pod, uid=pod["metadata"]["uid"])
                    c.event(rs, "Normal", "SuccessfulDelete", f"Deleted pod: {pod['metadata']['name']}", self.source)
                facts.gone(pod)
        except ApiError as error:
            c.event(rs, "Warning", "FailedDelete", f"Error deleting: {error.message}", self.source)
            return "FailedDelete", error
        return None


class ReplicationController(ReplicaSet):
    """The same of ReplicationControllers."""

    name = "replicationcontroller"
    kind = "v1/ReplicationController"
    gk = ("", "ReplicationController")
    source = "replication-controller"
    counts_terminating = False

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """The same, where there is one in the pod's namespace: elsewhere a pod's event costs one look."""
        if event.key.gk == POD_GK and next(iter(find("replications", event.key.namespace)), None) is None:
            return ()
        return owned.woken(event, self.gk, (POD_GK,))

    @staticmethod
    def shown(owner: Json) -> Json:
        spec = owner["spec"]
        selector = {"matchLabels": spec.get("selector") or EMPTY}
        return {**owner, "spec": {**spec, "selector": selector}}


def new_pod(rs: Json) -> dict[str, Any]:
    """The pod a ReplicaSet creates: its template, a generated name, and the ReplicaSet as controller."""
    template = rs["spec"]["template"]
    given = template.get("metadata") or EMPTY
    meta = {part: given[part] for part in ("labels", "annotations", "finalizers") if given.get(part)}
    meta["namespace"] = rs["metadata"]["namespace"]
    meta["generateName"] = rs["metadata"]["name"] + "-"
    meta["ownerReferences"] = [owned.controller_ref(rs)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]}


def _victims(c: Client, rs: Json, active: list[Any], count: int) -> list[Any]:
    """The pods to delete. The ranks are read only where they can decide."""
    if count >= len(active):
        return active
    ordered = sorted(active, key=lambda pod: pods.deletion_order(pod, EMPTY))
    if pods.cheap_order(ordered[count - 1]) == pods.cheap_order(ordered[count]):
        ranks = _ranks(c, rs, active)
        ordered.sort(key=lambda pod: pods.deletion_order(pod, ranks))
    return ordered[:count]


def _ranks(c: Client, rs: Json, active: list[Any]) -> dict[str, int]:
    """By node, how many active pods of this ReplicaSet and its siblings (same controller) are on it."""
    related = list(active)
    owner = owned.controller_of(rs)
    if owner is not None:
        for sibling in c.list(f"{rs['apiVersion']}/{rs['kind']}", rs["metadata"]["namespace"], owner=owner["uid"]):
            if sibling["metadata"]["uid"] != rs["metadata"]["uid"] and owned.controlled_by(sibling, owner["uid"]):
                related += c.list(POD, rs["metadata"]["namespace"], owner=sibling)
    ranks: dict[str, int] = {}
    for pod in related:
        node = pod["spec"].get("nodeName")
        if node and pods.is_active(pod):
            ranks[node] = ranks.get(node, 0) + 1
    return ranks


def _status(
    c: Client, rs: Json, mine: list[Any], active: list[Any], failed: tuple[str, ApiError] | None
) -> dict[str, Any]:
    """The status, as it follows from the pods before this reconcile."""
    wanted = (rs["spec"]["template"].get("metadata") or EMPTY).get("labels") or EMPTY
    ready = [pod for pod in active if pods.ready_since(pod) is not None]
    seconds = rs["spec"].get("minReadySeconds") or 0
    available = [pod for pod in ready if pods.is_available(c, pod, seconds)] if seconds else ready
    has_all = owned.remembered(lambda labels: wanted.items() <= (labels or EMPTY).items())
    labelled = [pod for pod in active if has_all(pod["metadata"].get("labels"))]
    ending = [pod for pod in mine if owned.is_terminating(pod) and pods.phase(pod) not in pods.ENDED]
    before = rs.get("status") or EMPTY
    return {
        "replicas": len(active),
        "fullyLabeledReplicas": len(labelled) or None,
        "readyReplicas": len(ready) or None,
        "availableReplicas": len(available) or None,
        "terminatingReplicas": len(ending),
        "observedGeneration": rs["metadata"]["generation"],
        "conditions": _conditions(c, before.get("conditions") or (), failed) or None,
    }


def _write_status(c: Client, rs: Json, status: Json) -> bool:
    """Writes the status where it changed. Whether it did: then that write wakes the ReplicaSet."""
    before = rs.get("status") or EMPTY
    changed = {field: value for field, value in status.items() if before.get(field) != value}
    if changed:
        c.patch(key_of(rs), {"metadata": {"uid": rs["metadata"]["uid"]}, "status": changed}, "status")
    return bool(changed)


def _conditions(c: Client, before: Iterable[Json], failed: tuple[str, ApiError] | None) -> list[Any]:
    """ReplicaFailure is set when a create or delete was refused, and goes with the first reconcile that is not."""
    conditions = list(before)
    current = find(conditions, "ReplicaFailure")
    if failed is None:
        return without(conditions, "ReplicaFailure") if current is not None else conditions
    if current is not None:
        return conditions
    reason, error = failed
    return [*conditions, condition("ReplicaFailure", "True", reason, error.message, c.timestamp())]
