"""How good a node is for a pod: kube-scheduler 1.36's default scores that look at one node at a time.

Present, with their weights: NodeResourcesFit as LeastAllocated (1), NodeResourcesBalancedAllocation (1), NodeAffinity
(2), TaintToleration (3). Absent until the full profile: PodTopologySpread (2), InterPodAffinity (2), ImageLocality (1).
Every score is 0 to 100 in int64 with truncating division, as in the sources (plug-ins noderesources, nodeaffinity,
tainttoleration, and DefaultNormalizeScore).
"""

import numpy as np

from steersman.sched.filters import label_verdicts, taint_verdicts
from steersman.sched.nodes import Bools, Ints, NodeTable, Rows
from steersman.sched.pods import PodClass
from steersman.sched.resources import CPU, MEMORY

MAX_SCORE = 100
FIT_WEIGHT = 1
BALANCE_WEIGHT = 1
AFFINITY_WEIGHT = 2
TAINT_WEIGHT = 3


def resource_score(table: NodeTable, pod: PodClass, rows: Rows) -> Ints:
    """The weighted scores that depend on what is booked on a node alone; no normalisation needed."""
    score = FIT_WEIGHT * least_allocated(table, pod, rows)
    requests = pod.load.resources
    if requests.amount(CPU) or requests.amount(MEMORY):  # else kube-scheduler skips the plug-in
        score += BALANCE_WEIGHT * balanced_allocation(table, pod, rows)
    return score


def least_allocated(table: NodeTable, pod: PodClass, rows: Rows) -> Ints:
    """The mean, over CPU and memory, of the free share in percent once the pod is there.

    Requests count with defaults for containers that ask for nothing. A resource the node does not offer is left out.
    """
    offered = table.allocatable[:2, rows]
    booked = table.nonzero[:, rows] + np.array([pod.load.resources.scored]).T
    has = offered > 0
    free = np.where(has & (booked <= offered), offered - booked, 0)
    shares = free * MAX_SCORE // np.where(has, offered, 1)
    result: Ints = shares.sum(axis=0) // np.maximum(has.sum(axis=0), 1)
    return result


def balanced_allocation(table: NodeTable, pod: PodClass, rows: Rows) -> Ints:
    """How much nearer the pod brings the shares of CPU and memory in use: 50 to 100, and 75 for no change."""
    requests = pod.load.resources
    offered, booked = table.allocatable[:2, rows], table.requested[:2, rows]
    wanted = np.array([[requests.amount(CPU)], [requests.amount(MEMORY)]])
    change = _balance(offered, booked + wanted) - _balance(offered, booked)
    half = MAX_SCORE // 2
    result: Ints = half + (half + change) // 2
    return result


def _balance(offered: Ints, booked: Ints) -> Ints:
    """(1 - standard deviation of the shares in use) in percent; 100 if the node does not offer both resources."""
    shares = np.minimum(booked / np.maximum(offered, 1), 1.0)
    deviation = np.where((offered > 0).all(axis=0), np.abs((shares[0] - shares[1]) / 2), 0.0)
    return ((1 - deviation) * float(MAX_SCORE)).astype(np.int64)


def disliked_taints(table: NodeTable, pod: PodClass, rows: Rows) -> Ints:
    """Raw score of TaintToleration: PreferNoSchedule taints without a toleration."""
    _, disliked = taint_verdicts(table, pod)
    return disliked[table.taint_class[rows]]


def affinity_weight(table: NodeTable, pod: PodClass, rows: Rows) -> Ints:
    """Raw score of NodeAffinity: the weights of the preferred terms that match."""
    return np.array([verdict.weight for verdict in label_verdicts(table, pod, rows)], np.int64)


def normalised(raw: Ints, feasible: Bools, *, reverse: bool) -> Ints:
    """Raw scores as percent of the greatest among feasible nodes (reversed: less is better)."""
    greatest = int(raw.max(where=feasible, initial=0))
    if not greatest:
        return np.full(raw.shape, MAX_SCORE if reverse else 0)
    share: Ints = MAX_SCORE * raw // greatest
    return MAX_SCORE - share if reverse else share
