"""Which nodes can take a pod: kube-scheduler 1.36's node-local filters, column by column.

A filter works on the rows it is given: `passes` says for each whether the pod may go there, and `reasons` counts, over
rows it rejected, the words kube-scheduler uses. A node is charged to the first filter that rejects it, in the
order of `FILTERS`; those of `volumes` follow for a pod with claims. Absent until the full profile: NodeVolumeLimits,
PodTopologySpread, InterPodAffinity, DynamicResources (`absent.py` names a pod that needs them).
"""

from collections import Counter
from typing import NamedTuple, Protocol

import numpy as np

from steersman.api.select import tolerates
from steersman.sched.affinity import CONFLICT
from steersman.sched.nodes import Bools, Ints, NodeTable, Rows, Taints
from steersman.sched.pods import PodClass
from steersman.sched.resources import ports_conflict

UNSCHEDULABLE_TAINT = {"key": "node.kubernetes.io/unschedulable", "value": "", "effect": "NoSchedule"}
HARD_EFFECTS = ("NoSchedule", "NoExecute")
SOFT_EFFECT = "PreferNoSchedule"

NO_NODES = "no nodes available to schedule pods"


class Filter(Protocol):
    """`static` filters depend on the node object alone, the others also on the pods booked on the node."""

    name: str
    static: bool

    def passes(self, table: NodeTable, pod: PodClass, rows: Rows) -> Bools: ...

    def reasons(self, table: NodeTable, pod: PodClass, rejected: Ints) -> Counter[str]: ...


class NodeUnschedulable:
    """spec.unschedulable of the node, unless the pod tolerates the taint that goes with it."""

    name, static = "NodeUnschedulable", True

    def passes(self, table: NodeTable, pod: PodClass, rows: Rows) -> Bools:
        flags = table.unschedulable[rows]
        return ~flags | bool(flags.any() and tolerates(pod.tolerations, UNSCHEDULABLE_TAINT))

    def reasons(self, table: NodeTable, pod: PodClass, rejected: Ints) -> Counter[str]:
        return Counter({"node(s) were unschedulable": len(rejected)})


class NodeName:
    """spec.nodeName of the pod, if it names a node."""

    name, static = "NodeName", True

    def passes(self, table: NodeTable, pod: PodClass, rows: Rows) -> Bools:
        matches = np.full(_count(table, rows), not pod.node_name)
        if pod.node_name:
            row = table.row_of.get(pod.node_name, -1)
            matches[np.arange(table.size)[rows] == row] = True
        return matches

    def reasons(self, table: NodeTable, pod: PodClass, rejected: Ints) -> Counter[str]:
        return Counter({"node(s) didn't match the requested node name": len(rejected)})


class TaintVerdict(NamedTuple):
    """What a list of taints means to a pod class: whether it may go there, and how many soft taints it dislikes."""

    admitted: bool
    disliked: int


def taint_verdicts(table: NodeTable, pod: PodClass) -> tuple[Bools, Ints]:
    """Verdicts by taint class of the table: (admitted, disliked)."""
    verdicts = [_taint_verdict(pod, taints) for taints in table.taints.values]
    return np.array([v.admitted for v in verdicts], np.bool_), np.array([v.disliked for v in verdicts], np.int64)


def _taint_verdict(pod: PodClass, taints: Taints) -> TaintVerdict:
    verdict = pod.taint_verdicts.get(taints)
    if verdict is None:
        objects = [{"key": key, "value": value, "effect": effect} for key, value, effect in taints]
        hard = [taint for taint in objects if taint["effect"] in HARD_EFFECTS]
        soft = [taint for taint in objects if taint["effect"] == SOFT_EFFECT]
        # Only tolerations of that very effect, or of all effects, count against soft taints; `tolerates` sees to it.
        verdict = TaintVerdict(
            all(tolerates(pod.tolerations, taint) for taint in hard),
            sum(not tolerates(pod.tolerations, taint) for taint in soft),
        )
        pod.taint_verdicts[taints] = verdict
    return verdict


class TaintToleration:
    """NoSchedule and NoExecute taints need a toleration. (The message names no taint since release 1.35.)"""

    name, static = "TaintToleration", True

    def passes(self, table: NodeTable, pod: PodClass, rows: Rows) -> Bools:
        admitted, _ = taint_verdicts(table, pod)
        return admitted[table.taint_class[rows]]

    def reasons(self, table: NodeTable, pod: PodClass, rejected: Ints) -> Counter[str]:
        return Counter({"node(s) had untolerated taint(s)": len(rejected)})


class LabelVerdict(NamedTuple):
    """What a node's labels mean to a pod class: whether it may go there, and the weight of its preferences there."""

    admitted: bool
    weight: int


ELSEWHERE = LabelVerdict(False, 0)


def label_verdicts(table: NodeTable, pod: PodClass, rows: Rows) -> list[LabelVerdict]:
    """One verdict a row, worked out once for each distinct set of values of the labels that the pod reads."""
    affinity, memo = pod.affinity, pod.label_verdicts
    keys, reads_name = affinity.keys, affinity.reads_name
    if not keys and not reads_name:
        return [LabelVerdict(affinity.admits({}, ""), 0)] * _count(table, rows)
    names, labels, pinned = table.names, table.labels, affinity.pinned
    verdicts = []
    for row in _row_list(table, rows):
        if pinned is not None and names[row] not in pinned:
            verdicts.append(ELSEWHERE)
            continue
        own = labels[row]
        # Names are too many to remember, and each is asked once.
        seen = () if reads_name else tuple([own.get(key) for key in keys])
        verdict = None if reads_name else memo.get(seen)
        if verdict is None:
            verdict = LabelVerdict(affinity.admits(own, names[row]), affinity.weight(own, names[row]))
            if not reads_name:
                memo[seen] = verdict
        verdicts.append(verdict)
    return verdicts


class NodeAffinity:
    """nodeSelector and required node affinity, by labels and by metadata.name."""

    name, static = "NodeAffinity", True

    def passes(self, table: NodeTable, pod: PodClass, rows: Rows) -> Bools:
        return np.array([verdict.admitted for verdict in label_verdicts(table, pod, rows)], np.bool_)

    def reasons(self, table: NodeTable, pod: PodClass, rejected: Ints) -> Counter[str]:
        return Counter({"node(s) didn't match Pod's node affinity/selector": len(rejected)})


class NodePorts:
    """The host ports a pod asks for are free."""

    name, static = "NodePorts", False

    def passes(self, table: NodeTable, pod: PodClass, rows: Rows) -> Bools:
        free = np.ones(table.size, np.bool_)
        for wanted in pod.load.ports:
            _, protocol, port = wanted
            for row, addresses in table.port_users(protocol, port):
                if any(ports_conflict(wanted, (address, protocol, port)) for address in addresses):
                    free[row] = False
        return free[rows]

    def reasons(self, table: NodeTable, pod: PodClass, rejected: Ints) -> Counter[str]:
        return Counter({"node(s) didn't have free ports for the requested pod ports": len(rejected)})


class NodeResourcesFit:
    """A pod more, and each resource the pod asks for, within what the node can allocate."""

    name, static = "NodeResourcesFit", False

    def passes(self, table: NodeTable, pod: PodClass, rows: Rows) -> Bools:
        fits = table.pods[rows] < table.pods_allowed[rows]
        for resource, amount in pod.load.resources.amounts:
            line = table.resource_row.get(resource)
            if line is None:  # no node offers it and no pod has it
                return np.zeros(_count(table, rows), np.bool_)
            fits &= amount <= table.allocatable[line, rows] - table.requested[line, rows]
        return fits

    def reasons(self, table: NodeTable, pod: PodClass, rejected: Ints) -> Counter[str]:
        counts: Counter[str] = Counter()
        counts["Too many pods"] = int((table.pods[rejected] >= table.pods_allowed[rejected]).sum())
        for resource, amount in pod.load.resources.amounts:
            line = table.resource_row.get(resource)
            free = 0 if line is None else table.allocatable[line, rejected] - table.requested[line, rejected]
            counts[f"Insufficient {resource}"] = int((np.broadcast_to(free, rejected.shape) < amount).sum())
        return +counts


FILTERS: tuple[Filter, ...] = (
    NodeUnschedulable(),
    NodeName(),
    TaintToleration(),
    NodeAffinity(),
    NodePorts(),
    NodeResourcesFit(),
)
"""In kube-scheduler's order, which decides the filter a node is charged to."""

STATIC_FILTERS = tuple(each for each in FILTERS if each.static)
LOAD_FILTERS = tuple(each for each in FILTERS if not each.static)


class Diagnosis(NamedTuple):
    """Why no node can take a pod: kube-scheduler's message, and the filters that rejected some node, sorted."""

    message: str
    plugins: tuple[str, ...]


def diagnose(table: NodeTable, pod: PodClass, more: tuple[Filter, ...] = ()) -> Diagnosis:
    """Look at every node again, filter by filter. To be called when no node is feasible. `more`: of this pod alone."""
    if not table.size:
        return Diagnosis(NO_NODES, ())
    pinned = pod.affinity.pinned
    if pinned is not None and not pinned:
        return Diagnosis(no_node_message(table.size, CONFLICT), (NodeAffinity.name,))
    counts: Counter[str] = Counter()
    plugins: set[str] = set()
    remaining = np.arange(table.size)
    if pinned is not None:
        named = sorted(table.row_of[name] for name in pinned if name in table.row_of)
        remaining = np.array(named, np.int64)
        if elsewhere := table.size - len(named):
            counts[f"node(s) didn't satisfy plugin(s) [{NodeAffinity.name}]"] = elsewhere
            plugins.add(NodeAffinity.name)
    for each in (*FILTERS, *more):
        passed = each.passes(table, pod, remaining)
        rejected = remaining[~passed]
        if len(rejected):
            counts.update(each.reasons(table, pod, rejected))
            plugins.add(each.name)
        remaining = remaining[passed]
    return Diagnosis(no_node_message(table.size, histogram(counts)), tuple(sorted(plugins)))


def histogram(counts: Counter[str]) -> str:
    """Reasons with the number of nodes, sorted as texts (framework/types.go FitError)."""
    return ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))


def no_node_message(nodes: int, why: str) -> str:
    """The message of a pod that none of so many nodes can take."""
    return f"0/{nodes} nodes are available: {why}."


def _count(table: NodeTable, rows: Rows) -> int:
    return table.size if isinstance(rows, slice) else len(rows)


def _row_list(table: NodeTable, rows: Rows) -> list[int]:
    return list(range(table.size)) if isinstance(rows, slice) else rows.tolist()
