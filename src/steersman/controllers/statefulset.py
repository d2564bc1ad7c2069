"""StatefulSet: pods with names, an order and volumes of their own.

Source of the facts: Kubernetes 1.36, pkg/controller/statefulset. Its feature gate MaxUnavailableStatefulSet is off by
default in 1.36, so `maxUnavailable` is not heeded: one pod is updated at a time. What differs: pods are deleted with
their uid as precondition, so a slow cache cannot delete a pod's successor; expectations are facts (see `expectations`);
claims are watched, where Kubernetes has a lister of them and no handler (there a pod whose claim somebody deleted waits
for whatever event comes next); a stored revision is compared as it is, without the defaults of a newer
release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, ClassVar, Final

from steersman.api.client import Client, key_of
from steersman.api.controller import Controller, Find
from steersman.api.errors import AlreadyExists, ApiError, Conflict
from steersman.controllers import claims, history, owned, pods
from steersman.controllers.claims import Claims, in_range, ordinal_of, start, storage_matches, with_storage
from steersman.controllers.expectations import Expectations
from steersman.controllers.replicaset import new_pod
from steersman.kernel.effect import Event
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
KIND: Final = "apps/v1/StatefulSet"
POD: Final = "v1/Pod"
POD_GK: Final = ("", "Pod")
NAME_LABEL: Final = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL: Final = "apps.kubernetes.io/pod-index"
BURST: Final = 500
"""Pods made in one reconcile, as of a ReplicaSet: two milliards of replicas must not be two milliards of pods in
memory, as they are to Kubernetes. The first pod that is made wakes the StatefulSet for the rest."""


class StatefulSet(Controller):
    """Keeps pods of consecutive ordinals alive, each at its revision."""

    name = "statefulset"
    kind = KIND
    owns = (POD,)
    watches: ClassVar[Mapping[str, Any]] = {claims.KIND: lambda claim: ()}

    @property
    def turn(self) -> type[Turn]:
        """What one reconcile is: a subclass may do it in another way."""
        return Turn

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """See `owned.woken`. A claim wakes the StatefulSet it is of, when it is gone, is going or changes owners."""
        if event.key.gk != claims.GK:
            return owned.woken(event, ("apps", "StatefulSet"), (POD_GK,))
        if event.old is not None and event.new is not None and claims.matter(event.old) == claims.matter(event.new):
            return ()
        sets = find("stateful", event.key.namespace)
        return [each.key for each in sets if claims.is_named(each.value, event.key.name)]

    def reconcile(self, c: Client, key: Key) -> float | None:
        """Brings pods and claims a step further, then the status. Raises what the API refused."""
        if key.gk == POD_GK:
            owned.adopt_orphan(c, c.get(key), KIND, is_member, adopted=Expectations.adopted)
            return None
        sts = c.get(key)
        if sts is None:
            Expectations.forget(c, key)
            return None
        revisions = history.mine(c, sts)
        facts = Expectations(c, key, sts["metadata"]["uid"])
        mine = owned.claim(c, sts, POD, is_member, adopted=facts.made)
        mine += facts.missing(mine, POD_GK, key.namespace)
        self.turn(c, sts, revisions, mine, facts).take()
        return facts.again


def is_member(sts: Json, pod: Json) -> bool:
    """Whether a pod's name makes it one of the StatefulSet's."""
    return ordinal_of(pod["metadata"]["name"])[0] == sts["metadata"]["name"]  # type: ignore[no-any-return]


class Turn:
    """A StatefulSet and its pods during one reconcile."""

    def __init__(self, c: Client, sts: Json, revisions: list[Any], mine: list[Any], facts: Expectations) -> None:
        self.c = c
        self.sts = sts
        self.revisions = revisions
        self.mine = mine
        self.facts = facts
        self.before: Json = sts.get("status") or EMPTY
        self.collisions: int = self.before.get("collisionCount") or 0
        self.monotonic = sts["spec"].get("podManagementPolicy") != "Parallel"
        self.claims = Claims(c, sts)
        self._available: dict[str, bool] = {}
        self._ending = [pod["metadata"]["uid"] for pod in mine if self._is_terminating(pod)]

    def take(self) -> None:
        """One step, the status, and old revisions beyond the limit."""
        self._find_revisions()
        self.counts = self._counted(self.mine)
        failed: ApiError | None = None
        if not owned.is_terminating(self.sts):
            try:
                self._update()
            except ApiError as error:
                failed = error
        self._write_status()
        self._truncate()
        if failed is not None:
            raise failed

    # -- revisions -------------------------------------------------------------------------------------------------

    def _find_revisions(self) -> None:
        """The revision of the template now (found, renumbered for a rollback, or created), and the current one."""
        known = self.revisions
        number = known[-1]["revision"] + 1 if known else 1
        data = history.data_of(self.sts)
        equal = [each for each in known if each.get("data") == data]
        if equal and equal[-1] is known[-1]:
            update = known[-1]
        elif equal:
            update = history.renumber(self.c, equal[-1], number)
        else:
            update, self.collisions = history.create(self.c, self.sts, number, self.collisions)
        name = self.before.get("currentRevision")
        self.update: Any = update
        self.current: Any = next((each for each in known if each["metadata"]["name"] == name), update)

    def _truncate(self) -> None:
        """Deletes the oldest revisions that nothing uses, beyond revisionHistoryLimit."""
        live = {_name(self.current), _name(self.update), *[_revision(pod) for pod in self.mine]}
        unused = [each for each in self.revisions if _name(each) not in live]
        limit = self.sts["spec"].get("revisionHistoryLimit", 10)
        for each in unused[: max(0, len(unused) - limit)] if limit >= 0 else ():
            self.c.delete(each, uid=each["metadata"]["uid"])

    # -- pods --------------------------------------------------------------------------------------------------------

    def _update(self) -> None:
        """Replicas first, then what is too much, then (RollingUpdate) the newest revision. In order, each waits for
        those before it."""
        sts = self.sts
        first = start(sts)
        by_ordinal = {ordinal_of(_name(pod))[1]: pod for pod in self.mine}
        asked = range(first, first + sts["spec"]["replicas"])
        missing = list(islice((number for number in asked if number not in by_ordinal), BURST))
        numbers = sorted([*missing, *[number for number in by_ordinal if number in asked]])
        replicas = [by_ordinal.get(number) or self._new_pod(number) for number in numbers]
        condemned = [by_ordinal[number] for number in sorted(by_ordinal, reverse=True) if not in_range(sts, number)]
        sick = next((pod for pod in [*replicas, *reversed(condemned)] if self._is_unavailable(pod)), None)
        done = (
            self._all(replicas, self._keep)
            and self._all(condemned, self._align)
            and self._all(condemned, lambda pod: self._remove(pod, sick))
        )
        self.counts = self._counted([*replicas, *condemned])
        if len(missing) < BURST and done and (sts["spec"].get("updateStrategy") or EMPTY).get("type") != "OnDelete":
            self._roll(replicas)

    def _all(self, each: list[Any], act: Callable[[Any], bool]) -> bool:
        """Acts on every pod; where the order counts, only as far as the first that is to be waited for."""
        return all(act(pod) or not self.monotonic for pod in each)

    def _keep(self, pod: Json) -> bool:
        """Creates a pod, replaces one that ended, repairs identity and claims. Whether to go on with the next."""
        if pods.phase(pod) in pods.ENDED:
            if not self._is_terminating(pod):
                self._delete(pod)
            return False
        if "uid" not in pod["metadata"]:
            if self.claims.is_stale(pod):
                return False
            self._create(pod)
            if self.monotonic:
                return False
        elif pods.phase(pod) == "Pending":
            self.claims.ensure(pod)
            self.claims.align(pod)
        if self.monotonic and (self._is_terminating(pod) or not _is_running(pod) or not self._is_available(pod)):
            return False
        if "uid" in pod["metadata"] and not self._is_terminating(pod):
            self._repair(pod)
        return True

    def _repair(self, pod: Json) -> None:
        name = _name(pod)
        ordinal = ordinal_of(name)[1]
        labels = pod["metadata"].get("labels") or EMPTY
        patch: dict[str, Any] = {}
        if labels.get(NAME_LABEL) != name:
            patch["metadata"] = {"labels": {NAME_LABEL: name, INDEX_LABEL: str(ordinal)}}
        if not storage_matches(self.sts, ordinal, {"volumes": (), **pod["spec"]}):
            self.claims.ensure(pod)
            patch["spec"] = {"volumes": with_storage(self.sts, ordinal, pod["spec"])["volumes"]}
        if not self.claims.matches(pod):
            self.claims.align(pod)
        if patch:
            self.c.patch(pod, patch, rv=pod["metadata"]["resourceVersion"])

    def _align(self, pod: Json) -> bool:
        """The claims of a pod that is too much go with it, where the policy says so."""
        if not self.claims.matches(pod):
            self.claims.align(pod)
        return True

    def _remove(self, pod: Json, sick: Json | None) -> bool:
        """Deletes a pod that is too much; in order, once it is available or the first of those that are not."""
        if self._is_terminating(pod):
            return False
        waits = not _is_running(pod) or not self._is_available(pod)
        if not (self.monotonic and waits and pod is not sick):
            self._delete(pod)
        return False

    def _roll(self, replicas: list[Any]) -> None:
        """Deletes the last pod that is not of the newest revision, unless one after it is not available yet."""
        rolling = (self.sts["spec"].get("updateStrategy") or EMPTY).get("rollingUpdate") or EMPTY
        kept = start(self.sts) + (rolling.get("partition") or 0)
        for pod in reversed([pod for pod in replicas if ordinal_of(_name(pod))[1] >= kept]):
            if _revision(pod) != _name(self.update) and not self._is_terminating(pod):
                self._delete(pod)
                self.counts["currentReplicas"] = max(0, self.counts["currentReplicas"] - 1)
                return
            if self._is_unavailable(pod):
                return

    def _new_pod(self, ordinal: int) -> dict[str, Any]:
        """The pod of an ordinal as it is to be created: below the partition of the current revision, else of the
        newest one."""
        sts = self.sts
        strategy = sts["spec"].get("updateStrategy") or EMPTY
        rolling = strategy.get("rollingUpdate")
        kept = (self.before.get("currentReplicas") or 0) if rolling is None else rolling.get("partition") or 0
        is_current = ordinal < start(sts) + kept and (rolling is not None or strategy.get("type") == "RollingUpdate")
        revision = self.current if is_current else self.update
        made = new_pod(history.restored(sts, revision))
        name = f"{sts['metadata']['name']}-{ordinal}"
        made["metadata"]["name"] = name
        made["metadata"]["labels"] = {
            **(made["metadata"].get("labels") or EMPTY),
            NAME_LABEL: name,
            INDEX_LABEL: str(ordinal),
            history.HASH_LABEL: _name(revision),
        }
        made["spec"] = {**with_storage(sts, ordinal, made["spec"]), "hostname": name}
        if sts["spec"].get("serviceName"):
            made["spec"]["subdomain"] = sts["spec"]["serviceName"]
        return made

    def _create(self, pod: Json) -> None:
        try:
            self.claims.ensure(pod)
            self.facts.made(self.c.create(pod))
            self.claims.align(pod)
        except AlreadyExists:  # the cache is slow
            raise
        except ApiError as error:
            self._tell("Create", pod, error)
            raise
        self._tell("Create", pod)

    def _delete(self, pod: Json) -> None:
        try:
            self.c.delete(pod, uid=pod["metadata"]["uid"])
        except Conflict:  # the name is a successor's by now
            self.facts.gone(pod)
            return
        except ApiError as error:
            self._tell("Delete", pod, error)
            raise
        self.facts.gone(pod)
        self._tell("Delete", pod)

    def _tell(self, verb: str, pod: Json, error: ApiError | None = None) -> None:
        what = f"{verb} Pod {_name(pod)} in StatefulSet {_name(self.sts)}"
        if error is None:
            self.c.event(self.sts, "Normal", f"Successful{verb}", f"{what} successful")
        else:
            self.c.event(self.sts, "Warning", f"Failed{verb}", f"{what} failed error: {error.message}")

    # -- what is asked about a pod -----------------------------------------------------------------------------------

    def _is_terminating(self, pod: Json) -> bool:
        return owned.is_terminating(pod) or ("uid" in pod["metadata"] and self.facts.is_gone(pod))

    def _is_available(self, pod: Json) -> bool:
        uid = pod["metadata"].get("uid")
        if uid is None:
            return False
        if uid not in self._available:
            seconds = self.sts["spec"].get("minReadySeconds") or 0
            self._available[uid] = pods.is_available(self.c, pod, seconds)
        return self._available[uid]

    def _is_unavailable(self, pod: Json) -> bool:
        return self._is_terminating(pod) or not self._is_available(pod)

    # -- the status ----------------------------------------------------------------------------------------------------

    def _counted(self, these: list[Any]) -> dict[str, int]:
        """Counts of the pods as they were before this reconcile."""
        there = [pod for pod in these if "uid" in pod["metadata"]]
        alive = [_revision(pod) for pod in there if pod["metadata"]["uid"] not in self._ending]
        ready = [pod for pod in there if _is_running(pod)]
        return {
            "replicas": len(there),
            "readyReplicas": len(ready),
            "availableReplicas": len([pod for pod in ready if self._is_available(pod)]),
            "currentReplicas": alive.count(_name(self.current)),
            "updatedReplicas": alive.count(_name(self.update)),
        }

    def _write_status(self) -> None:
        """Writes the status where it changed. A rolling update is complete when every replica is new and ready."""
        counts, wanted = self.counts, self.sts["spec"]["replicas"]
        current = _name(self.current)
        rolling = (self.sts["spec"].get("updateStrategy") or EMPTY).get("type") == "RollingUpdate"
        if rolling and wanted == counts["updatedReplicas"] == counts["readyReplicas"] == counts["replicas"]:
            counts["currentReplicas"], current = wanted, _name(self.update)
        status: dict[str, Any] = {
            "observedGeneration": self.sts["metadata"]["generation"],
            "replicas": counts["replicas"],
            "availableReplicas": counts["availableReplicas"],
            "currentRevision": current,
            "updateRevision": _name(self.update),
            "collisionCount": self.collisions,
        }
        for field in ("readyReplicas", "currentReplicas", "updatedReplicas"):
            status[field] = counts[field] or None
        changed = {field: value for field, value in status.items() if self.before.get(field) != value}
        if changed:
            body = {"metadata": {"uid": self.sts["metadata"]["uid"]}, "status": changed}
            self.c.patch(key_of(self.sts), body, "status")


def _name(obj: Json) -> str:
    return obj["metadata"]["name"]  # type: ignore[no-any-return]


def _revision(pod: Json) -> str:
    """The name of the revision a pod was made of; "" for none."""
    return (pod["metadata"].get("labels") or EMPTY).get(history.HASH_LABEL, "")  # type: ignore[no-any-return]


def _is_running(pod: Json) -> bool:
    """Running and ready."""
    return pods.phase(pod) == "Running" and pods.ready_since(pod) is not None
