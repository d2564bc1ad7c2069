"""The scheduler without its wiring: events in, decisions out, deterministic, with no clock and no randomness.

Every pod that waits for a node is judged on every node (kube-scheduler looks at a sample from 100 nodes on: absent
until the full profile). What was worked out for one pod class is retained in columns, and only rows that changed since
are worked out again, so that placing many pods of one template costs a few vector operations each.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from steersman.sched.absent import note, refusal
from steersman.sched.filters import LOAD_FILTERS, STATIC_FILTERS, Diagnosis, diagnose, no_node_message
from steersman.sched.nodes import Bools, ChangeLog, Ints, NodeTable, PodKey, Rows
from steersman.sched.pods import DEFAULT_SCHEDULER, Classes, Pod, PodClass
from steersman.sched.queue import Entry, Queue
from steersman.sched.scores import (
    AFFINITY_WEIGHT,
    TAINT_WEIGHT,
    affinity_weight,
    disliked_taints,
    normalised,
    resource_score,
)
from steersman.sched.volumes import PLUGINS, Storage, volume_filters

VIEW_LIMIT = 64
"""Pod classes whose columns are retained; one takes about 34 bytes a node."""
PATCH_SHARE = 8
"""If more than one in this many rows changed, all are worked out anew: cheaper than picking rows."""

STORAGE_PLUGINS = frozenset(PLUGINS)
FREED_BY_PODS = frozenset({"NodeResourcesFit", "NodePorts", "VolumeRestrictions"})
"""The filters that a pod's going away can satisfy."""
UNEVALUATED = ("unsupported",)
"""Stands for the filter of a pod that is refused for a constraint nobody evaluates: no event helps it."""


_K = TypeVar("_K")
_V = TypeVar("_V")


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of one pod: a node, or None with kube-scheduler's message.

    `message` is empty for a plain placement, and says which constraints were left out of account if there were any.
    """

    pod: PodKey
    node: str | None
    message: str = ""
    claims: tuple[str, ...] = ()
    """Those of its claims that have to be told the node, and be bound, before the pod is."""


class View:
    """Columns of one pod class over the node table, brought up to date row by row."""

    def __init__(self, kind: PodClass) -> None:
        self._kind = kind
        self._seen_nodes = self._seen_load = -1
        self._admitted = np.zeros(0, np.bool_)
        self._score = np.zeros(0, np.int64)
        self._disliked = np.zeros(0, np.int64)
        self._weight = np.zeros(0, np.int64)
        self._uneven = False

    def best(self, table: NodeTable) -> Ints:
        """Rows of the feasible nodes with the greatest total score, in no order; empty if none is feasible."""
        self._refresh(table)
        return _greatest(self.totals(table) if self._uneven else self._score[: table.size])

    def totals(self, table: NodeTable) -> Ints:
        """Column: the total score of each node, -1 where the pod cannot go."""
        self._refresh(table)
        return _total(self._score[: table.size], self._disliked[: table.size], self._weight[: table.size])

    def _refresh(self, table: NodeTable) -> None:
        whole = self._score.shape[0] != table.capacity
        if whole:
            self._admitted = np.zeros(table.capacity, np.bool_)
            self._score, self._disliked, self._weight = np.full((3, table.capacity), -1, np.int64)
        nodes = _stale(table.node_changes, -1 if whole else self._seen_nodes, table.size)
        load = _stale(table.load_changes, -1 if whole else self._seen_load, table.size)
        if nodes is not None:
            self._judge_nodes(table, nodes)
            self._judge_load(table, nodes)
        if load is not None and not isinstance(nodes, slice):
            self._judge_load(table, load)
        self._seen_nodes, self._seen_load = table.node_changes.position, table.load_changes.position

    def _judge_nodes(self, table: NodeTable, rows: Rows) -> None:
        """What depends on node objects alone."""
        self._admitted[rows] = _admitted(table, self._kind, rows)
        self._disliked[rows] = disliked_taints(table, self._kind, rows)
        self._weight[rows] = affinity_weight(table, self._kind, rows)
        # While nobody dislikes or prefers any node, these two scores are the same for all and change no order.
        self._uneven = bool(self._disliked[: table.size].any() or self._weight[: table.size].any())

    def _judge_load(self, table: NodeTable, rows: Rows) -> None:
        """What depends on the pods booked."""
        self._score[rows] = _score(table, self._kind, rows, self._admitted[rows])


def best_among(table: NodeTable, kind: PodClass, rows: Ints) -> Ints:
    """What `View.best` gives for a pod class that can go to none but these few rows, with nothing retained."""
    score = _score(table, kind, rows, _admitted(table, kind, rows))
    total = _total(score, disliked_taints(table, kind, rows), affinity_weight(table, kind, rows))
    return rows[_greatest(total)]


def _admitted(table: NodeTable, kind: PodClass, rows: Rows) -> Bools:
    admitted = STATIC_FILTERS[0].passes(table, kind, rows)
    for each in STATIC_FILTERS[1:]:
        admitted = admitted & each.passes(table, kind, rows)
    return admitted


def _score(table: NodeTable, kind: PodClass, rows: Rows, admitted: Bools) -> Ints:
    """The score of the resources, or -1 where the pod cannot go."""
    feasible = admitted
    for each in LOAD_FILTERS:
        if each.name != "NodePorts" or kind.load.ports:
            feasible = feasible & each.passes(table, kind, rows)
    return np.where(feasible, resource_score(table, kind, rows), -1)


def _total(score: Ints, disliked: Ints, weight: Ints) -> Ints:
    """All scores with their weights, or -1 where `score` is."""
    feasible = score >= 0
    taints = normalised(disliked, feasible, reverse=True)
    labels = normalised(weight, feasible, reverse=False)
    return np.where(feasible, score + TAINT_WEIGHT * taints + AFFINITY_WEIGHT * labels, -1)


def _greatest(total: Ints) -> Ints:
    greatest = total.max(initial=-1)
    return np.flatnonzero(total == greatest) if greatest >= 0 else np.zeros(0, np.int64)


def _stale(log: ChangeLog, seen: int, size: int) -> Rows | None:
    """The rows to work out again: None for none, or a slice for all."""
    changed = log.since(seen) if seen >= 0 else None
    if changed is None or len(changed) * PATCH_SHARE > size + PATCH_SHARE:
        return slice(0, size)
    rows = sorted({row for row in changed if row < size})
    return np.array(rows, np.int64) if rows else None


class Scheduler:
    """Nodes, pods and a queue; told of changes, asked for decisions.

    tie(n) picks one of n nodes of equal score, which are in the order of their names; without it the first is taken.
    scheduler_name: pods of other schedulers are booked where they are and otherwise left alone.
    ignore_unsupported: place pods although they have a hard constraint that is not evaluated, or claims that nobody
        knows (with a note).
    """

    def __init__(
        self,
        tie: Callable[[int], int] | None = None,
        *,
        scheduler_name: str = DEFAULT_SCHEDULER,
        ignore_unsupported: bool = False,
    ) -> None:
        self._tie = tie
        self._name = scheduler_name
        self._lenient = ignore_unsupported
        self._classes = Classes()
        self.storage = Storage()
        self._reset()

    def _reset(self) -> None:
        self._table = NodeTable()
        self._queue = Queue()
        self._pending: dict[PodKey, Pod] = {}  # this scheduler's pods without a node, and those assumed
        self._tried: dict[PodKey, Entry] = {}  # of those assumed: their place in the queue, should binding fail
        self._uids: dict[PodKey, str] = {}  # every pod known
        self._mounts: dict[PodKey, tuple[str, ...]] = {}  # the claims of those that have a node, or are assumed to
        self.storage.users.clear()
        self._views: dict[PodClass, View] = {}
        self._diagnoses: dict[PodClass, tuple[tuple[int, int, int], Diagnosis]] = {}

    # Events

    def node_upsert(self, node: Mapping[str, Any]) -> None:
        """A node is new or changed. Raises ValueError, naming it, for an unreadable quantity."""
        if self._table.upsert(node):
            self._queue.move(lambda entry: entry.plugins != UNEVALUATED)

    def node_delete(self, name: str) -> None:
        """A node is gone. Its pods stay booked under its name until they are deleted."""
        self._table.delete(name)

    def pod_upsert(self, pod: Mapping[str, Any]) -> None:
        """A pod is new or changed. Raises ValueError, naming it, for an unreadable quantity or time."""
        seen = self._classes.read(pod)
        key = seen.key
        if self._uids.get(key, seen.uid) != seen.uid:
            self.pod_delete(key)  # another incarnation: the deletion of the first was not seen
        if seen.ended:
            self.pod_delete(key)
            return
        self._uids[key] = seen.uid
        if seen.node_name:
            self._bound(seen)
        elif self._table.is_assumed(key):
            self._pending[key] = seen
        elif seen.scheduler == self._name and not seen.deleting and not seen.gated:
            self._wanted(seen)
        else:
            self._drop(key)

    def pod_delete(self, key: PodKey) -> None:
        """A pod, (namespace, name), is gone. Unknown ones are no error: the deletion may be seen twice."""
        self._uids.pop(key, None)
        self._drop(key)
        self._unmount(key)
        if self._table.forget(key):
            self._pods_freed()

    def forget(self, key: PodKey, now_us: int) -> None:
        """The binding of a decision failed at `now_us`: give the room back and try the pod again after a back-off."""
        if not self._table.is_assumed(key):
            return
        self._table.forget(key)
        self._unmount(key)
        self._queue.retry(self._tried.pop(key), now_us)
        self._pods_freed()

    def rebuild(self, nodes: Iterable[Mapping[str, Any]], pods: Iterable[Mapping[str, Any]]) -> None:
        """Start afresh from what exists. As after a restart, back-offs and bindings under way are not remembered."""
        self._reset()
        for node in nodes:
            self.node_upsert(node)
        for pod in pods:
            self.pod_upsert(pod)

    # Decisions

    def schedule(self, now_us: int, limit: int) -> list[Decision]:
        """Decide for at most `limit` pods that are ready at `now_us`, in the order of the queue.

        A pod that is given a node counts there at once (it is *assumed*), until its binding is seen or `forget` is
        called. A pod that is not waits for an event and its back-off.
        """
        decisions: list[Decision] = []
        while len(decisions) < limit and (entry := self._queue.pop(now_us)) is not None:
            pod = self._pending[entry.key]
            if why := "" if self._lenient else refusal(pod.kind.constraints):
                failure = Diagnosis(no_node_message(self._table.size, why), UNEVALUATED)
            elif (why := self.storage.problem(pod.key, pod.claims) if pod.claims else "") and not self._lenient:
                failure = Diagnosis(no_node_message(self._table.size, why), ("VolumeBinding",))
            elif node := self._choose(replace(pod, claims=()) if why else pod):
                self._table.assume(pod.key, node, pod.kind.load)
                self._tried[pod.key] = entry
                self._mount(pod)
                waits = self.storage.unbound(pod.key[0], pod.claims) if pod.claims and not why else ()
                decisions.append(Decision(pod.key, node, note(pod.kind.constraints, why), waits))
                continue
            else:
                failure = self._diagnose(pod)
            self._queue.fail(entry, now_us, failure.plugins)
            decisions.append(Decision(pod.key, None, failure.message))
        return decisions

    def next_deadline(self) -> int | None:
        """When `schedule` will have something to do: 0 for at once, None for not before an event; else microseconds."""
        return self._queue.next_deadline()

    def best_nodes(self, pod: Mapping[str, Any]) -> tuple[str, ...]:
        """The nodes of the greatest score for this pod, by name, as booked now; empty if none can take it."""
        seen = self._classes.read(pod)
        rows = self._best(seen.kind.at(seen.node_name))
        return tuple(sorted(self._table.names[row] for row in rows))

    def scores(self, pod: Mapping[str, Any]) -> dict[str, int]:
        """The total score of each node that can take this pod, by name, as booked now."""
        seen = self._classes.read(pod)
        totals = self._view(seen.kind.at(seen.node_name)).totals(self._table)
        rows = np.flatnonzero(totals >= 0)
        return dict(sorted((self._table.names[row], int(totals[row])) for row in rows))

    # Whole

    def state(self) -> tuple[Any, ...]:
        """Canonical contents: (nodes and bookings, pods to place, those assumed, queue). Equal states decide alike."""
        pending = tuple((key, self._pending[key].uid) for key in sorted(self._pending))
        tried = tuple(self._tried[key] for key in sorted(self._tried))
        return self._table.state(), pending, tried, self._queue.state()

    def copy(self) -> "Scheduler":
        """An independent scheduler in the same state (columns of pod classes are worked out again when needed)."""
        other = Scheduler(self._tie, scheduler_name=self._name, ignore_unsupported=self._lenient)
        other._table, other._queue = self._table.copy(), self._queue.copy()
        other._pending, other._uids, other._tried = self._pending.copy(), self._uids.copy(), self._tried.copy()
        other._mounts, other.storage = self._mounts.copy(), self.storage.copy()
        other._classes = self._classes  # only remembers what it has read
        return other

    def _drop(self, key: PodKey) -> None:
        """The pod is not, or not any more, one to find a node for."""
        self._pending.pop(key, None)
        self._tried.pop(key, None)
        self._queue.remove(key)

    def storage_seen(self, gk: tuple[str, str], namespace: str, name: str, value: Mapping[str, Any] | None) -> None:
        """A claim, a volume or a class of storage is new, changed or (None) gone."""
        self.storage.seen(gk, namespace, name, value)
        self._queue.move(lambda entry: not STORAGE_PLUGINS.isdisjoint(entry.plugins))

    def _mount(self, pod: Pod) -> None:
        if pod.claims:
            self._mounts[pod.key] = pod.claims
            self.storage.use(pod.key, pod.claims)

    def _unmount(self, key: PodKey) -> None:
        claims = self._mounts.pop(key, ())
        if claims:
            self.storage.release(key, claims)

    def _bound(self, pod: Pod) -> None:
        self._drop(pod.key)
        self._mount(pod)
        if self._table.confirm(pod.key, pod.node_name, pod.kind.load):
            self._pods_freed()

    def _wanted(self, pod: Pod) -> None:
        before = self._pending.get(pod.key)
        self._pending[pod.key] = pod
        if before is None and self._table.forget(pod.key):  # it was on a node: its binding was taken back
            self._pods_freed()
        if before is None or before.priority != pod.priority:
            self._queue.add(pod.key, pod.priority, pod.created)
        elif before.kind is not pod.kind:
            self._queue.reconsider(pod.key)

    def _pods_freed(self) -> None:
        self._queue.move(lambda entry: not entry.plugins or not FREED_BY_PODS.isdisjoint(entry.plugins))

    def _choose(self, pod: Pod) -> str | None:
        rows = self._reachable(pod) if pod.claims else self._best(pod.kind)
        if not len(rows):
            return None
        if len(rows) == 1:
            return self._table.names[int(rows[0])]
        rank = self._table.rank[rows]
        chosen = self._tie(len(rows)) if self._tie else 0
        if not 0 <= chosen < len(rows):
            raise ValueError(f"tie({len(rows)}) gave {chosen}; it must give a number from 0 to {len(rows) - 1}")
        place = int(rank.argmin()) if chosen == 0 else int(np.argpartition(rank, chosen)[chosen])
        return self._table.names[int(rows[place])]

    def _reachable(self, pod: Pod) -> Ints:
        """The best rows for a pod with claims. Each node is asked: volumes belong to the pod, not to its class."""
        table, pinned = self._table, pod.kind.affinity.pinned
        rows = [
            row
            for name, row in table.row_of.items()
            if (pinned is None or name in pinned)
            and not self.storage.rejection(pod.key, pod.claims, name, table.labels[row])[0]
        ]
        return best_among(table, pod.kind, np.array(sorted(rows), np.int64))

    def _best(self, kind: PodClass) -> Ints:
        if (pinned := kind.affinity.pinned) is not None:
            rows = sorted(self._table.row_of[name] for name in pinned if name in self._table.row_of)
            return best_among(self._table, kind, np.array(rows, np.int64))
        return self._view(kind).best(self._table)

    def _view(self, kind: PodClass) -> View:
        view = self._views.pop(kind, None) or View(kind)
        _remember(self._views, kind, view)
        return view

    def _diagnose(self, pod: Pod) -> Diagnosis:
        """Why no node can take such pods: worked out once for all of them that fail before anything changes."""
        kind = pod.kind
        if pod.claims:
            return diagnose(self._table, kind, volume_filters(self.storage, pod.key, pod.claims))
        now = (self._table.node_changes.position, self._table.load_changes.position, self._table.size)
        at, diagnosis = self._diagnoses.pop(kind, ((), None))
        if diagnosis is None or at != now:
            diagnosis = diagnose(self._table, kind)
        _remember(self._diagnoses, kind, (now, diagnosis))
        return diagnosis


def _remember(memo: dict[_K, _V], key: _K, value: _V) -> None:
    """Put at the end, and keep within the limit: the first is the one unused for longest."""
    memo[key] = value
    if len(memo) > VIEW_LIMIT:
        del memo[next(iter(memo))]
