"""The plain twin of the scheduler: one pod, all nodes, all pods, straight from the formulas, with nothing retained.

It is what `core` is tested against, and what a check of a small world may use instead. It shares with `core` only the
reading of objects (`resources`, `affinity`, `absent`); filters, scores and messages are written again, node by node.
Sources of the formulas: `filters.py` and `scores.py`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from steersman.api.references import claims_of
from steersman.api.select import first_untolerated, tolerates
from steersman.sched.absent import note, refusal, unsupported
from steersman.sched.affinity import NodeAffinity
from steersman.sched.core import Decision
from steersman.sched.resources import Resources, allocatable, host_ports, ports_conflict
from steersman.sched.volumes import Storage

Json = Mapping[str, Any]


class PlainNode(NamedTuple):
    """A node and what the pods on it take."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Json, ...]
    unschedulable: bool
    offers: Mapping[str, int]
    used: Mapping[str, int]
    used_for_scoring: tuple[int, int]
    pods: int
    ports: tuple[tuple[str, str, int], ...]


def plain_schedule(
    pod: Json,
    nodes: Iterable[Json],
    pods: Iterable[Json],
    tie: Callable[[int], int] | None = None,
    *,
    ignore_unsupported: bool = False,
    storage: Storage | None = None,
) -> Decision:
    """Where the pod goes, or why nowhere: what `Scheduler.schedule` decides in a cluster of these nodes and pods.

    Pods without a node, and pods that ended, take no room. Raises ValueError for an unreadable quantity.
    """
    key = (pod["metadata"].get("namespace", ""), pod["metadata"]["name"])
    read = read_nodes(nodes, pods)
    constraints = unsupported(pod)
    if not ignore_unsupported and (why := refusal(constraints)):
        return Decision(key, None, f"0/{len(read)} nodes are available: {why}.")
    claims = claims_of(pod)
    known = storage or Storage()
    volumes = known.problem(key, claims)
    if volumes and not ignore_unsupported:
        return Decision(key, None, f"0/{len(read)} nodes are available: {volumes}.")
    best, message = plain_best(pod, read, None if volumes else known)
    if not best:
        return Decision(key, None, message)
    chosen = tie(len(best)) if tie and len(best) > 1 else 0
    waits = () if volumes else known.unbound(key[0], claims)
    return Decision(key, best[chosen], note(constraints, volumes), waits)


def plain_best(pod: Json, nodes: list[PlainNode], storage: Storage | None = None) -> tuple[list[str], str]:
    """The nodes of the greatest score by name, and the message if there is none."""
    scores, message = plain_scores(pod, nodes, storage)
    return [name for name, score in scores.items() if score == max(scores.values())], message


def plain_scores(pod: Json, nodes: list[PlainNode], storage: Storage | None = None) -> tuple[dict[str, int], str]:
    """The total score of each node that can take the pod, in the order of the nodes, and the message if none can."""
    if not nodes:
        return {}, "no nodes available to schedule pods"
    affinity = NodeAffinity.of(pod.get("spec") or {})
    if affinity.pinned == frozenset():
        return {}, f"0/{len(nodes)} nodes are available: pod affinity terms conflict."
    reasons: Counter[str] = Counter()
    feasible: list[PlainNode] = []
    for node in nodes:
        if affinity.pinned is not None and node.name not in affinity.pinned:
            rejected = ["node(s) didn't satisfy plugin(s) [NodeAffinity]"]
        else:
            rejected = _rejections(pod, affinity, node)
            if not rejected and storage is not None and (claims := claims_of(pod)):
                key = (pod["metadata"].get("namespace", ""), pod["metadata"]["name"])
                rejected = storage.rejection(key, claims, node.name, node.labels)[1]
        reasons.update(rejected)
        if not rejected:
            feasible.append(node)
    if not feasible:
        words = sorted(f"{count} {reason}" for reason, count in reasons.items())
        return {}, f"0/{len(nodes)} nodes are available: {', '.join(words)}."
    return _scores(pod, affinity, feasible), ""


def read_nodes(nodes: Iterable[Json], pods: Iterable[Json]) -> list[PlainNode]:
    """The nodes by name, each with what the pods on it take."""
    on: dict[str, list[Json]] = {}
    for pod in pods:
        if (name := (pod.get("spec") or {}).get("nodeName")) and not _ended(pod):
            on.setdefault(name, []).append(pod)
    by_name = sorted(nodes, key=lambda node: node["metadata"]["name"])
    return [_read_node(node, on.get(node["metadata"]["name"], [])) for node in by_name]


def _ended(pod: Json) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _read_node(node: Json, pods: list[Json]) -> PlainNode:
    spec, metadata = node.get("spec") or {}, node["metadata"]
    requests = [Resources.of_pod(pod) for pod in pods]
    used: Counter[str] = Counter()
    for request in requests:
        used.update(dict(request.amounts))
    return PlainNode(
        name=metadata["name"],
        labels=metadata.get("labels") or {},
        taints=tuple(spec.get("taints") or ()),
        unschedulable=bool(spec.get("unschedulable")),
        offers=allocatable(node),
        used=used,
        used_for_scoring=(sum(r.counted[0] for r in requests), sum(r.counted[1] for r in requests)),
        pods=len(pods),
        ports=tuple(port for pod in pods for port in host_ports(pod)),
    )


def _rejections(pod: Json, affinity: NodeAffinity, node: PlainNode) -> list[str]:
    """Why the first filter that rejects this node does so; empty if all pass."""
    spec = pod.get("spec") or {}
    tolerations = spec.get("tolerations") or ()
    cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    if node.unschedulable and not tolerates(tolerations, cordon):
        return ["node(s) were unschedulable"]
    if spec.get("nodeName") and spec["nodeName"] != node.name:
        return ["node(s) didn't match the requested node name"]
    if first_untolerated(node.taints, tolerations) is not None:
        return ["node(s) had untolerated taint(s)"]
    if not affinity.admits(node.labels, node.name):
        return ["node(s) didn't match Pod's node affinity/selector"]
    if any(ports_conflict(wanted, taken) for wanted in host_ports(pod) for taken in node.ports):
        return ["node(s) didn't have free ports for the requested pod ports"]
    short = ["Too many pods"] if node.pods + 1 > node.offers.get("pods", 0) else []
    for resource, amount in Resources.of_pod(pod).amounts:
        if node.used.get(resource, 0) + amount > node.offers.get(resource, 0):
            short.append(f"Insufficient {resource}")
    return short


def _scores(pod: Json, affinity: NodeAffinity, nodes: list[PlainNode]) -> dict[str, int]:
    """Total score by node name, over the feasible nodes."""
    request = Resources.of_pod(pod)
    tolerations = (pod.get("spec") or {}).get("tolerations") or ()
    disliked = {
        node.name: sum(
            taint.get("effect") == "PreferNoSchedule" and not tolerates(tolerations, taint) for taint in node.taints
        )
        for node in nodes
    }
    weights = {node.name: affinity.weight(node.labels, node.name) for node in nodes}
    most_disliked, most_weight = max(disliked.values()), max(weights.values())
    totals = {}
    for node in nodes:
        taint = 100 - 100 * disliked[node.name] // most_disliked if most_disliked else 100
        label = 100 * weights[node.name] // most_weight if most_weight else 0
        totals[node.name] = _least_allocated(request, node) + _balanced(request, node) + 3 * taint + 2 * label
    return totals


def _least_allocated(request: Resources, node: PlainNode) -> int:
    shares = []
    for resource, used, asked in zip(("cpu", "memory"), node.used_for_scoring, request.scored, strict=True):
        offered = node.offers.get(resource, 0)
        if offered:
            shares.append(max(0, offered - used - asked) * 100 // offered)
    return sum(shares) // len(shares) if shares else 0


def _balanced(request: Resources, node: PlainNode) -> int:
    asked = (request.amount("cpu"), request.amount("memory"))
    if asked == (0, 0):
        return 0
    return 50 + (50 + _balance(node, asked) - _balance(node, (0, 0))) // 2


def _balance(node: PlainNode, asked: tuple[int, int]) -> int:
    shares = [
        min(1.0, (node.used.get(resource, 0) + amount) / node.offers[resource])
        for resource, amount in zip(("cpu", "memory"), asked, strict=True)
        if node.offers.get(resource, 0)
    ]
    deviation = abs((shares[0] - shares[1]) / 2) if len(shares) == 2 else 0.0
    return int((1 - deviation) * 100.0)
