"""Deployment: rolls the pods of one template over to the next, keeping old ReplicaSets to go back to.

Source of the facts: Kubernetes 1.36, pkg/controller/deployment. What differs and cannot be seen in any object at rest:
the conditions of one reconcile are written at its end, at once; the revision annotation is written through the status,
by a patch of its own; under Recreate the old pods are looked for live.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from steersman.api.client import Client, key_of
from steersman.api.controller import Controller, Find
from steersman.api.errors import AlreadyExists, ApiError
from steersman.controllers import deployment_status as ds
from steersman.controllers import owned, rollout
from steersman.controllers.conditions import find
from steersman.controllers.pods import ENDED, phase
from steersman.kernel.effect import Event
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
KIND: Final = "apps/v1/Deployment"
SET: Final = "apps/v1/ReplicaSet"
SET_GK: Final = ("apps", "ReplicaSet")
RESYNC: Final = 5.0
"""Seconds between two looks at old pods that no ReplicaSet's status tells of any more (Recreate)."""


class Deployment(Controller):
    """Keeps one ReplicaSet per template, and moves replicas to the newest."""

    name = "deployment"
    kind = KIND
    owns = (SET,)

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """See `owned.woken`."""
        return owned.woken(event, ("apps", "Deployment"), (SET_GK,))

    def reconcile(self, c: Client, key: Key) -> float | None:
        """One step of a rollout, then the status. Raises `Conflict` when what it read is no longer the newest."""
        if key.gk == SET_GK:
            owned.adopt_orphan(c, c.get(key), KIND)
            return None
        d = c.get(key)
        return None if d is None else Rollout(c, d, owned.claim(c, d, SET)).step()


class Rollout:
    """A Deployment and its ReplicaSets during one reconcile."""

    def __init__(self, c: Client, d: Json, sets: list[Any]) -> None:
        self.c = c
        self.d = d
        self.before: Json = d.get("status") or EMPTY
        self.conditions = ds.Conditions(self.before.get("conditions") or (), c.timestamp)
        self.new: Any = rollout.newest_of(d, sets)
        self.old: list[Any] = [rs for rs in sets if self.new is None or not _same(rs, self.new)]

    @property
    def all(self) -> list[Any]:
        """Every ReplicaSet, the newest last."""
        return self.old if self.new is None else [*self.old, self.new]

    def step(self) -> float | None:
        """What is to be done now. Returns seconds until it is to be called again, or None."""
        spec = self.d["spec"]
        if owned.is_terminating(self.d):
            self.write_status()
            return None
        self._note_pause()
        if spec.get("paused"):
            self._sync()
            return None
        if self._is_scaled():
            self._sync()
            return None
        if rollout.is_rolling(self.d):
            self._roll()
            return None
        return self._recreate()

    # -- the strategies ----------------------------------------------------------------------------------------

    def _roll(self) -> None:
        self._ensure_new()
        if self._grow_new() or self._shrink_old():
            self._finish()
            return
        if ds.is_complete(self.d, self.before):
            self._clean_up()
        self._finish()

    def _recreate(self) -> float | None:
        self._adopt_revision()
        active = [rs for rs in self.old if rollout.replicas(rs)]
        for rs in active:
            self._scale(rs, 0)
        if active:
            self._finish()
            return None
        running = self._old_pods()
        if running:
            self._finish()
            return RESYNC if running == "untold" else None
        self._ensure_new()
        if rollout.replicas(self.new) != rollout.replicas(self.d):
            self._scale(self.new, rollout.replicas(self.d))
        if ds.is_complete(self.d, self.before):
            self._clean_up()
        self._finish()
        return None

    def _old_pods(self) -> str:
        """Whether pods of old ReplicaSets are left: "told" where a status will tell when they are gone."""
        for rs in self.old:
            status = rs.get("status") or EMPTY
            seen = status.get("observedGeneration", 0) >= rs["metadata"]["generation"]
            if status.get("replicas") or status.get("terminatingReplicas") or not seen:
                return "told"
        for rs in self.old:
            pods = self.c.list("v1/Pod", rs["metadata"]["namespace"], owner=rs, fresh=True)
            if any(phase(pod) not in ENDED for pod in pods):
                return "untold"
        return ""

    def _sync(self) -> None:
        """Scaling, and all there is to do while the Deployment is paused."""
        self._adopt_revision()
        self._scale_all()
        if self.d["spec"].get("paused"):
            self._clean_up()
        self.write_status()

    # -- the newest ReplicaSet -----------------------------------------------------------------------------------

    def _revision(self) -> int:
        return max([rollout.number(rs, rollout.REVISION) for rs in self.old], default=0) + 1

    def _ensure_new(self) -> None:
        """The ReplicaSet of the current template: found, or created."""
        if self.new is None:
            self._create_new()
        else:
            self._adopt_revision()

    def _adopt_revision(self) -> None:
        """Brings annotations and minReadySeconds of the newest ReplicaSet up to date, if there is one."""
        if self.new is None:
            return
        d, rs = self.d, self.new
        patch: dict[str, Any] = {}
        lacking = rollout.inherited(d, rs, self._revision(), exists=True)
        if lacking:
            patch["metadata"] = {"annotations": lacking}
        wanted = d["spec"].get("minReadySeconds") or 0
        if (rs["spec"].get("minReadySeconds") or 0) != wanted:
            patch["spec"] = {"minReadySeconds": wanted}
        if patch:
            self._replace(rs, self.c.patch(rs, patch, rv=rs["metadata"]["resourceVersion"]))
        self._mark_revision()
        if ds.deadline(d) is not None and self.conditions.get("Progressing") is None:
            name = rs["metadata"]["name"]
            self._progressing("True", "FoundNewReplicaSet", f'Found new replica set "{name}"')

    def _create_new(self) -> None:
        c, d = self.c, self.d
        body = self._new_body()
        name = body["metadata"]["name"]
        created = True
        try:
            self.new = c.create(body)
        except AlreadyExists:
            found = c.get(key_of(body), fresh=True)
            mine = found is not None and owned.controlled_by(found, d["metadata"]["uid"])
            if not mine or not rollout.same_template(found["spec"]["template"], d["spec"]["template"]):
                if found is not None:
                    self._write({"collisionCount": (self.before.get("collisionCount") or 0) + 1})
                raise
            self.new, created = found, False  # ours: the cache is slow
        except ApiError as error:
            text = f'Failed to create new replica set "{name}": {error.message}'
            if ds.deadline(d) is not None:
                self._progressing("False", "ReplicaSetCreateError", text)
                self._write({"conditions": self.conditions.items})
            c.event(d, "Warning", "ReplicaSetCreateError", text)
            raise
        size = rollout.replicas(self.new)
        if created and size:
            c.event(d, "Normal", "ScalingReplicaSet", f"Scaled up replica set {name} from 0 to {size}")
        self._mark_revision()
        if created and ds.deadline(d) is not None:
            self._progressing("True", "NewReplicaSetCreated", f'Created new replica set "{name}"')

    def _new_body(self) -> dict[str, Any]:
        d, spec = self.d, self.d["spec"]
        hashed = rollout.template_hash(spec["template"], self.before.get("collisionCount") or 0)
        given = spec["template"].get("metadata") or EMPTY
        labels = {**(given.get("labels") or EMPTY), rollout.HASH_LABEL: hashed}
        selector = {**spec["selector"]}
        selector["matchLabels"] = {**(selector.get("matchLabels") or EMPTY), rollout.HASH_LABEL: hashed}
        body: dict[str, Any] = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": f"{d['metadata']['name']}-{hashed}",
                "namespace": d["metadata"]["namespace"],
                "labels": labels,
                "ownerReferences": [owned.controller_ref(d)],
            },
            "spec": {
                "replicas": rollout.new_count(d, self.old, 0),
                "selector": selector,
                "template": {**spec["template"], "metadata": {**given, "labels": labels}},
            },
        }
        if spec.get("minReadySeconds"):
            body["spec"]["minReadySeconds"] = spec["minReadySeconds"]
        body["metadata"]["annotations"] = rollout.inherited(d, body, self._revision(), exists=False)
        return body

    def _mark_revision(self) -> None:
        """The Deployment shows the revision of its newest ReplicaSet."""
        revision = (self.new["metadata"].get("annotations") or EMPTY).get(rollout.REVISION)
        shown = (self.d["metadata"].get("annotations") or EMPTY).get(rollout.REVISION)
        if revision and shown != revision:
            meta = {"uid": self.d["metadata"]["uid"], "annotations": {rollout.REVISION: revision}}
            self.c.patch(self.d, {"metadata": meta}, "status")  # which counts no generation

    # -- scaling -----------------------------------------------------------------------------------------------

    def _replace(self, rs: Json, updated: Any) -> Any:
        if self.new is not None and _same(rs, self.new):
            self.new = updated
        else:
            self.old = [updated if _same(rs, each) else each for each in self.old]
        return updated

    def _scale(self, rs: Json, size: int) -> None:
        """Gives a ReplicaSet its size, and notes the Deployment's limits on it."""
        patch: dict[str, Any] = {}
        have = rs["metadata"].get("annotations") or EMPTY
        limits = rollout.limits(self.d)
        if any(have.get(name) != value for name, value in limits.items()):
            patch["metadata"] = {"annotations": limits}
        if rollout.replicas(rs) != size:
            patch["spec"] = {"replicas": size}
        if patch:
            self._replace(rs, self.c.patch(rs, patch, rv=rs["metadata"]["resourceVersion"]))
        before = rollout.replicas(rs)
        if before != size:
            way, name = ("up" if before < size else "down"), rs["metadata"]["name"]
            text = f"Scaled {way} replica set {name} from {before} to {size}"
            self.c.event(self.d, "Normal", "ScalingReplicaSet", text)

    def _grow_new(self) -> bool:
        size = rollout.replicas(self.new)
        wanted = rollout.replicas(self.d)
        if size < wanted:
            wanted = rollout.new_count(self.d, self.all, size)
        if size == wanted:
            return False
        self._scale(self.new, wanted)
        return True

    def _shrink_old(self) -> bool:
        """Scales old ReplicaSets down as far as availability allows: unhealthy pods first."""
        if not sum([rollout.replicas(rs) for rs in self.old]):
            return False
        d, new = self.d, self.new
        least = rollout.replicas(d) - rollout.max_unavailable(d)
        unavailable = rollout.replicas(new) - rollout.counted([new], "availableReplicas")
        may_go = sum([rollout.replicas(rs) for rs in self.all]) - least - unavailable
        if may_go <= 0:
            return False
        gone = 0
        for rs in rollout.by_age(self.old):
            sick = rollout.replicas(rs) - rollout.counted([rs], "availableReplicas")
            if gone < may_go and rollout.replicas(rs) and sick > 0:
                taken = min(may_go - gone, sick)
                self._scale(rs, rollout.replicas(rs) - taken)
                gone += taken
        spare = rollout.counted(self.all, "availableReplicas") - least
        healthy = 0
        for rs in rollout.by_age(self.old):
            taken = min(rollout.replicas(rs), spare - healthy)
            if taken > 0:
                self._scale(rs, rollout.replicas(rs) - taken)
                healthy += taken
        return gone + healthy > 0

    def _is_scaled(self) -> bool:
        """Whether `replicas` was changed since the active ReplicaSets were last scaled."""
        for rs in self.all:
            desired = (rs["metadata"].get("annotations") or EMPTY).get(rollout.DESIRED)
            if rollout.replicas(rs) and desired is not None and desired != str(rollout.replicas(self.d)):
                return True
        return False

    def _scale_all(self) -> None:
        d = self.d
        active = [rs for rs in self.all if rollout.replicas(rs)]
        only = active[0] if len(active) == 1 else None
        if not active:
            only = self.new if self.new is not None else (rollout.by_age(self.old) or [None])[-1]
        if only is not None:
            if rollout.replicas(only) != rollout.replicas(d):
                self._scale(only, rollout.replicas(d))
            return
        if self._is_saturated():
            for rs in active:
                if not _same(rs, self.new):
                    self._scale(rs, 0)
            return
        if rollout.is_rolling(d):
            self._scale_in_proportion(active)

    def _is_saturated(self) -> bool:
        """The newest ReplicaSet has all that is wanted, and they are available."""
        if self.new is None:
            return False
        wanted = rollout.replicas(self.d)
        desired = (self.new["metadata"].get("annotations") or EMPTY).get(rollout.DESIRED)
        available = rollout.counted([self.new], "availableReplicas")
        return rollout.replicas(self.new) == wanted and desired == str(wanted) and available == wanted

    def _scale_in_proportion(self, active: list[Any]) -> None:
        d = self.d
        allowed = rollout.replicas(d) + rollout.max_surge(d) if rollout.replicas(d) else 0
        to_add = allowed - sum([rollout.replicas(rs) for rs in active])
        ordered = rollout.by_size(active, newer_first=to_add > 0)
        sizes = []
        added = 0
        for rs in ordered:
            part = rollout.proportion(rs, d, to_add, added)
            added += part
            sizes.append(rollout.replicas(rs) + part)
        sizes[0] = max(0, sizes[0] + to_add - added)
        for rs, size in zip(ordered, sizes, strict=True):
            self._scale(rs, size)

    def _clean_up(self) -> None:
        """Deletes the oldest revisions beyond revisionHistoryLimit."""
        limit = self.d["spec"].get("revisionHistoryLimit")
        kept = [rs for rs in self.old if not owned.is_terminating(rs)]
        if limit is None or len(kept) <= limit:
            return
        kept.sort(key=lambda rs: (rollout.number(rs, rollout.REVISION), rs["metadata"]["creationTimestamp"]))
        for rs in kept[: len(kept) - limit]:
            status = rs.get("status") or EMPTY
            observed = status.get("observedGeneration", 0) >= rs["metadata"]["generation"]
            if status.get("replicas") or rollout.replicas(rs) or not observed:
                continue
            self.c.delete(rs, uid=rs["metadata"]["uid"])

    # -- the status ----------------------------------------------------------------------------------------------

    def _progressing(self, status: str, reason: str, message: str, again: bool = False) -> None:
        self.conditions.set("Progressing", status, reason, message, again)

    def _note_pause(self) -> None:
        if ds.deadline(self.d) is None:
            return
        current = self.conditions.get("Progressing")
        reason = None if current is None else current["reason"]
        if reason == ds.TIMED_OUT:
            return  # a deadline that passed is not hidden by a pause
        paused = bool(self.d["spec"].get("paused"))
        if paused and reason != "DeploymentPaused":
            self._progressing("Unknown", "DeploymentPaused", "Deployment is paused")
        elif not paused and reason == "DeploymentPaused":
            self._progressing("Unknown", "DeploymentResumed", "Deployment is resumed")

    def _finish(self) -> None:
        """The status during and after a rollout."""
        status = ds.counts(self.d, self.all, self.new)
        self.conditions.set_available(self.d, status)  # before the progress, which then stands behind it
        self._judge_progress(status)
        failure = None
        for rs in [self.new, *self.old] if self.new is not None else self.old:
            failure = failure or find((rs.get("status") or EMPTY).get("conditions") or (), "ReplicaFailure")
        if failure is None:
            self.conditions.drop("ReplicaFailure")
        else:
            self.conditions.set("ReplicaFailure", failure["status"], failure["reason"], failure.get("message", ""))
        self.write_status(status)

    def _judge_progress(self, status: Json) -> None:
        """Progressing: done, moving, or past its deadline."""
        d, current = self.d, self.conditions.get("Progressing")
        seconds = ds.deadline(d)
        if seconds is None:
            self.conditions.drop("Progressing")
            return
        was_done = current is not None and current["reason"] == ds.AVAILABLE
        if was_done and (status["replicas"] or 0) == (status["updatedReplicas"] or 0):
            return
        subject = f'Deployment "{d["metadata"]["name"]}"'
        if self.new is not None:
            subject = f'ReplicaSet "{self.new["metadata"]["name"]}"'
        if ds.is_complete(d, status):
            self._progressing("True", ds.AVAILABLE, f"{subject} has successfully progressed.")
        elif ds.has_progressed(self.before, status):
            self._progressing("True", "ReplicaSetUpdated", f"{subject} is progressing.", again=True)
        elif (
            current is not None
            and not was_done
            and (current["reason"] == ds.TIMED_OUT or self.c.after(current["lastUpdateTime"], seconds))
        ):
            self._progressing("False", ds.TIMED_OUT, f"{subject} has timed out progressing.")

    def write_status(self, status: dict[str, Any] | None = None) -> None:
        """Writes what changed of the status."""
        status = ds.counts(self.d, self.all, self.new) if status is None else status
        self.conditions.set_available(self.d, status)
        self._write({**status, "conditions": self.conditions.items or None})

    def _write(self, fields: Mapping[str, Any]) -> None:
        changed = {field: value for field, value in fields.items() if self.before.get(field) != value}
        if changed:
            body = {"metadata": {"uid": self.d["metadata"]["uid"]}, "status": changed}
            self.c.patch(self.d, body, "status")


def _same(a: Json, b: Json) -> bool:
    return a["metadata"]["uid"] == b["metadata"]["uid"]  # type: ignore[no-any-return]
