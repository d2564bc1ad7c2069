"""DaemonSet: one pod on every node that takes it.

Source of the facts: Kubernetes 1.36, pkg/controller/daemon. What differs: expectations are facts (see `expectations`);
pods are deleted with their uid as precondition; nodes are gone through by name, not in any order; revisions that match
the selector no longer are not released.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, ClassVar, Final

from steersman.api.client import Client, key_of
from steersman.api.controller import Controller, Find
from steersman.api.errors import AlreadyExists, ApiError, Conflict
from steersman.controllers import history, owned, pods, rollout
from steersman.controllers.daemon_pods import Place, age_order, daemon_pod, is_updated, limits, target_of
from steersman.controllers.expectations import Expectations
from steersman.controllers.replicaset import NO_CONTENT
from steersman.kernel.effect import Event
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
KIND: Final = "apps/v1/DaemonSet"
POD: Final = "v1/Pod"
POD_GK: Final = ("", "Pod")
NODE: Final = "v1/Node"
NODE_GK: Final = ("", "Node")
BURST: Final = 250
"""Most pods created, and most deleted, in one reconcile, as in Kubernetes."""
FIRST_BACKOFF: Final = 1
MAX_BACKOFF: Final = 900
"""Seconds from a failed pod's removal to the next one's on the same node: doubled each time."""


class DaemonSet(Controller):
    """Keeps a pod on every node."""

    name = "daemonset"
    kind = KIND
    owns = (POD, history.KIND)
    watches: ClassVar[Mapping[str, Any]] = {NODE: lambda node: ()}

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """As `owned.woken` says; a node wakes as itself when it is new or gone or its labels or taints changed. (A pod
        that waits for a node that is gone is deleted by nobody else; Kubernetes does it when it next looks.) A revision
        wakes its DaemonSet, which may have numbered the next one before it saw this one (Kubernetes only notes that it
        came: pkg/controller/daemon, addHistory)."""
        if event.key.gk == history.GK:
            return [key for key in owned.woken(event, ("apps", "DaemonSet"), (history.GK,)) if key != event.key]
        if event.key.gk != NODE_GK:
            return owned.woken(event, ("apps", "DaemonSet"), (POD_GK,))
        old, new = event.old, event.new
        same = old is not None and new is not None and _place(old.value) == _place(new.value)
        return () if same else (event.key,)

    def reconcile(self, c: Client, key: Key) -> float | None:
        """Creates and deletes pods, then writes the status. Raises what the API refused."""
        if key.gk == POD_GK:
            owned.adopt_orphan(c, c.get(key), KIND, adopted=Expectations.adopted)
            return None
        if key.gk == NODE_GK:
            return self._look_at(c, key.name, c.get(key))
        ds = c.get(key)
        if ds is None:
            Expectations.forget(c, key)
            c.memory.pop(f"failed {key.namespace}/{key.name}", None)
            return None
        return self._sync(c, ds)

    def _look_at(self, c: Client, name: str, node: Json | None) -> float | None:
        """Brings the DaemonSets up to date that a changed node concerns."""
        again = None
        for ds in c.list(KIND):
            mine = [pod for pod in c.list(POD, ds["metadata"]["namespace"], owner=ds) if target_of(pod) == name]
            if node is None:
                concerned = any(_waits(pod) for pod in mine)
            else:
                runs, stays = Place(ds).judge(node)
                misplaced = (ds.get("status") or EMPTY).get("numberMisscheduled")
                concerned = (runs and not mine) or bool(mine and (not stays or misplaced))
            if concerned:
                again = self._sync(c, ds) or again
        return again

    def _sync(self, c: Client, ds: Json) -> float | None:
        if owned.is_terminating(ds):
            return None
        if not ds["spec"]["selector"].get("matchLabels") and not ds["spec"]["selector"].get("matchExpressions"):
            text = "This daemon set is selecting all pods. A non-empty selector is required."
            c.event(ds, "Warning", "SelectingAll", text)
            return None
        facts = Expectations(c, key_of(ds), ds["metadata"]["uid"])
        mine = owned.claim(c, ds, POD, adopted=facts.made)
        mine += facts.missing(mine, POD_GK, ds["metadata"]["namespace"])
        Turn(c, ds, mine, facts).take()
        return facts.again


def _waits(pod: Json) -> bool:
    """Whether a pod is not on its node yet, and nobody has asked it to go."""
    return not pod["spec"].get("nodeName") and not owned.is_terminating(pod)


def _place(node: Json) -> tuple[Any, Any]:
    """What of a node decides where pods go."""
    return node["metadata"].get("labels"), (node.get("spec") or EMPTY).get("taints")


class Turn:
    """A DaemonSet, its pods and the nodes during one reconcile."""

    def __init__(self, c: Client, ds: Json, mine: list[Any], facts: Expectations) -> None:
        self.c = c
        self.ds = ds
        self.mine = mine
        self.facts = facts
        self.before: Json = ds.get("status") or EMPTY
        place = Place(ds)
        self.verdicts = {node["metadata"]["name"]: place.judge(node) for node in c.list(NODE)}
        self.by_node: dict[str, list[Any]] = {}
        for pod in mine:
            node = target_of(pod)
            if node and not (pods.phase(pod) in pods.ENDED and owned.is_terminating(pod)):
                self.by_node.setdefault(node, []).append(pod)
        self._available: dict[str, bool] = {}

    def take(self) -> None:
        """Pods where they are missing or too much, one step of a rolling update, old revisions, the status."""
        current, old = self._find_revision()
        self.hash: str = current["metadata"]["labels"][history.HASH_LABEL]
        failed: ApiError | None = None
        try:
            if not self._manage() and (self.ds["spec"].get("updateStrategy") or EMPTY).get("type") != "OnDelete":
                self._roll()
            self._truncate(old)
        except ApiError as error:
            failed = error
        self._write_status()
        if failed is not None and NO_CONTENT not in failed.message:
            raise failed

    # -- revisions -------------------------------------------------------------------------------------------------

    def _find_revision(self) -> tuple[Any, list[Any]]:
        """(the revision of the template now, the others), after a rollback's renumbering or a creation."""
        data = history.data_of(self.ds)
        equal: list[Any] = []
        old: list[Any] = []
        for each in history.mine(self.c, self.ds):
            labels = each["metadata"].get("labels") or EMPTY
            if history.HASH_LABEL not in labels:
                added = {"metadata": {"labels": {history.HASH_LABEL: each["metadata"]["name"]}}}
                each = self.c.patch(each, added, rv=each["metadata"]["resourceVersion"])
            (equal if each.get("data") == data else old).append(each)
        number = max([each["revision"] for each in old], default=0) + 1
        if not equal:
            return self._create_revision(number), old
        current = equal[-1]
        self._drop_twins(current, equal[:-1])
        return (history.renumber(self.c, current, number) if current["revision"] < number else current), old

    def _create_revision(self, number: int) -> Any:
        hashed = rollout.template_hash(self.ds["spec"]["template"], self.before.get("collisionCount") or 0)
        made = history.body(self.ds, number, hashed)
        made["metadata"]["name"] = f"{self.ds['metadata']['name']}-{hashed}"
        try:
            return self.c.create(made)
        except AlreadyExists:
            found = self.c.get(key_of(made), fresh=True)
            if found is not None and found.get("data") == made["data"]:
                return found
            live = self.c.get(key_of(self.ds), fresh=True)
            if found is not None and live is not None and _collisions(live) == _collisions(self.ds):
                body = {"metadata": {"uid": self.ds["metadata"]["uid"]}}
                self.c.patch(self.ds, {**body, "status": {"collisionCount": _collisions(live) + 1}}, "status")
            raise

    def _drop_twins(self, kept: Json, twins: list[Any]) -> None:
        """Of several revisions of one template the last is kept; pods of the others become its own."""
        hashed = kept["metadata"]["labels"][history.HASH_LABEL]
        for pod in self.mine if twins else ():
            if (pod["metadata"].get("labels") or EMPTY).get(history.HASH_LABEL) != hashed:
                self.c.patch(pod, {"metadata": {"labels": {history.HASH_LABEL: hashed}}})
        for each in twins:
            self.c.delete(each, uid=each["metadata"]["uid"])

    def _truncate(self, old: list[Any]) -> None:
        """Deletes the oldest revisions that no pod is of, beyond revisionHistoryLimit."""
        surplus = len(old) - self.ds["spec"].get("revisionHistoryLimit", 10)
        live = {(pod["metadata"].get("labels") or EMPTY).get(history.HASH_LABEL) for pod in self.mine}
        unused = [each for each in old if each["metadata"]["labels"][history.HASH_LABEL] not in live]
        for each in unused[: max(0, surplus)]:
            self.c.delete(each, uid=each["metadata"]["uid"])

    # -- what is asked about a pod ---------------------------------------------------------------------------------

    def _is_ending(self, pod: Json) -> bool:
        return owned.is_terminating(pod) or self.facts.is_gone(pod)

    def _is_available(self, pod: Json) -> bool:
        uid = pod["metadata"]["uid"]
        if uid not in self._available:
            seconds = self.ds["spec"].get("minReadySeconds") or 0
            self._available[uid] = pods.is_available(self.c, pod, seconds)
        return self._available[uid]

    # -- pods --------------------------------------------------------------------------------------------------------

    def _manage(self) -> bool:
        """A pod for every node that lacks one, none where none belongs. Whether there was anything to do."""
        create: list[str] = []
        delete: list[Any] = []
        for node, (runs, stays) in self.verdicts.items():
            there = self.by_node.get(node)
            if runs and there is None:
                create.append(node)
            elif stays:
                needs, surplus = self._judge_node(node, there or [], runs)
                delete += surplus
                create += [node] if needs else []
            elif there:
                delete += [pod for pod in there if not self._is_ending(pod)]
        for node, there in self.by_node.items():
            if node not in self.verdicts:  # nobody else would ever delete a pod that waits for a node that is gone
                delete += [pod for pod in there if _waits(pod) and not self.facts.is_gone(pod)]
        self._sync_pods(create, delete)
        return bool(create or delete)

    def _judge_node(self, node: str, there: list[Any], runs: bool) -> tuple[bool, list[Any]]:
        """(whether a node where pods may stay needs one, which of its pods go)."""
        delete: list[Any] = []
        running: list[Any] = []
        for pod in sorted(there, key=age_order):
            if self._is_ending(pod):
                continue
            where = f"{pod['metadata']['namespace']}/{pod['metadata']['name']} on node {node}"
            if pods.phase(pod) == "Failed":
                if self._may_retry(node):
                    text = f"Found failed daemon pod {where}, will try to kill it"
                    self.c.event(self.ds, "Warning", "FailedDaemonPod", text)
                    delete.append(pod)
            elif pods.phase(pod) == "Succeeded":
                text = f"Found succeeded daemon pod {where}, will try to delete it"
                self.c.event(self.ds, "Normal", "SucceededDaemonPod", text)
                delete.append(pod)
            else:
                running.append(pod)
        if not limits(self.ds, 1)[0]:
            return False, [*delete, *running[1:]]
        if len(running) <= 1:
            return runs and not running, delete
        new = [pod for pod in running if (pod["metadata"].get("labels") or EMPTY).get(history.HASH_LABEL) == self.hash]
        old = [pod for pod in running if pod not in new]
        delete += [*new[1:], *old[1:]]
        if new and old and (pods.ready_since(old[0]) is None or self._is_available(new[0])):
            delete.append(old[0])
        return False, delete

    def _may_retry(self, node: str) -> bool:
        """Whether a failed pod may go now, so that there is a new one; each time it takes twice as long."""
        place = f"failed {self.ds['metadata']['namespace']}/{self.ds['metadata']['name']}"
        generation = self.before.get("observedGeneration") or 0
        known: Json = self.c.memory.get(place) or EMPTY
        if (known.get("uid"), known.get("generation")) != (self.ds["metadata"]["uid"], generation):
            known = {"uid": self.ds["metadata"]["uid"], "generation": generation, "nodes": EMPTY}
        last = known["nodes"].get(node)
        seconds = FIRST_BACKOFF
        if last is not None and not self.c.elapsed(last["since"], 2 * MAX_BACKOFF):
            if not self.c.after(last["since"], last["seconds"]):
                return False
            seconds = min(2 * last["seconds"], MAX_BACKOFF)
        entry = {"since": self.c.timestamp(), "seconds": seconds}
        self.c.memory[place] = {**known, "nodes": {**known["nodes"], node: entry}}
        return True

    def _sync_pods(self, create: list[str], delete: list[Any]) -> None:
        c, ds = self.c, self.ds
        try:
            for node in create[:BURST]:
                pod = c.create(daemon_pod(ds, node, self.hash))
                self.facts.made(pod)
                c.event(ds, "Normal", "SuccessfulCreate", f"Created pod: {pod['metadata']['name']}")
        except ApiError as error:
            c.event(ds, "Warning", "FailedCreate", f"Error creating: {error.message}")
            raise
        for pod in delete[:BURST]:
            with suppress(Conflict):  # the name is another pod's by now
                c.delete(pod, uid=pod["metadata"]["uid"])
            self.facts.gone(pod)
            c.event(ds, "Normal", "SuccessfulDelete", f"Deleted pod: {pod['metadata']['name']}")

    # -- the rolling update ------------------------------------------------------------------------------------------

    def _roll(self) -> None:
        """One step of a rolling update."""
        wanted = [node for node, (runs, _) in self.verdicts.items() if runs]
        surge, unavailable = limits(self.ds, len(wanted))
        by_node = {**{node: [] for node in wanted}, **self.by_node}
        pairs = {node: self._new_and_old(there) for node, there in sorted(by_node.items())}
        if surge:
            self._surge(pairs, surge, len(wanted))
        else:
            self._replace(pairs, unavailable)

    def _new_and_old(self, there: list[Any]) -> tuple[Any, Any] | None:
        """(pod of the current template, pod of another); None where there are several of one sort."""
        alive = [pod for pod in there if not self._is_ending(pod)]
        new = [pod for pod in alive if is_updated(self.ds, pod, self.hash)]
        old = [pod for pod in alive if pod not in new]
        if len(new) > 1 or len(old) > 1:
            return None
        return new[0] if new else None, old[0] if old else None

    def _replace(self, pairs: Mapping[str, tuple[Any, Any] | None], limit: int) -> None:
        """Deletes old pods: unavailable ones at once, others as far as `limit` allows."""
        missing = 0
        at_once: list[Any] = []
        candidates: list[Any] = []
        for pair in pairs.values():
            if pair is None or (pair[0] is None) == (pair[1] is None):
                missing += 1
            elif pair[0] is not None:
                missing += not self._is_available(pair[0])
            elif not self._is_available(pair[1]):
                at_once.append(pair[1])
                missing += 1
            elif missing < limit:
                candidates.append(pair[1])
        self._sync_pods([], at_once + candidates[: max(0, limit - missing)])

    def _surge(self, pairs: Mapping[str, tuple[Any, Any] | None], limit: int, wanted: int) -> None:
        """Creates new pods beside old ones, up to `limit` at a time, and deletes old ones whose new one is there."""
        surging = available = 0
        delete: list[Any] = []
        homeless: list[Any] = []
        at_once: list[str] = []
        candidates: list[str] = []
        for node, pair in pairs.items():
            if pair is None:
                surging += 1
                continue
            new, old = pair
            shown = old if old is not None else new
            fine = shown is not None and self._is_available(shown)
            available += fine
            if old is None:
                continue
            if new is not None:
                if self._is_available(new):
                    delete.append(old)
                else:
                    surging += 1
            elif not self.verdicts.get(node, (False, False))[0]:
                (homeless if fine else delete).append(old)
            elif not fine:
                at_once.append(node)
            elif surging < limit:
                candidates.append(node)
        delete += homeless[: max(0, available - wanted)]
        self._sync_pods(at_once + candidates[: max(0, limit - surging)], delete)

    # -- the status ----------------------------------------------------------------------------------------------------

    def _write_status(self) -> None:
        """Writes the counts where they changed; of several pods on a node the oldest counts."""
        there = {node: sorted(found, key=age_order) for node, found in self.by_node.items()}
        wanted = [node for node, (runs, _) in self.verdicts.items() if runs]
        shown = [there[node][0] for node in wanted if node in there]
        ready = [pod for pod in shown if pods.ready_since(pod) is not None]
        available = len([pod for pod in ready if self._is_available(pod)])
        misplaced = [node for node, (runs, _) in self.verdicts.items() if not runs and node in there]
        status: dict[str, Any] = {
            "currentNumberScheduled": len(shown),
            "numberMisscheduled": len(misplaced),
            "desiredNumberScheduled": len(wanted),
            "numberReady": len(ready),
            "observedGeneration": self.ds["metadata"]["generation"],
            "updatedNumberScheduled": len([p for p in shown if is_updated(self.ds, p, self.hash)]) or None,
            "numberAvailable": available or None,
            "numberUnavailable": len(wanted) - available or None,
        }
        changed = {field: value for field, value in status.items() if self.before.get(field) != value}
        if changed:
            body = {"metadata": {"uid": self.ds["metadata"]["uid"]}, "status": changed}
            self.c.patch(key_of(self.ds), body, "status")


def _collisions(ds: Json) -> int:
    return (ds.get("status") or EMPTY).get("collisionCount") or 0
