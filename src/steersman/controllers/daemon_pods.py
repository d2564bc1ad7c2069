"""Where a DaemonSet's pods belong, and what they look like. Pure.

Source of the facts: Kubernetes 1.36, pkg/controller/daemon/{daemon_controller.go,util/daemonset_util.go}.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from steersman.api.select import NodeSelector, tolerates
from steersman.controllers import history
from steersman.controllers.replicaset import new_pod
from steersman.controllers.rollout import share
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
NAME_FIELD: Final = "metadata.name"
GENERATION: Final = "deprecated.daemonset.template.generation"
GENERATION_LABEL: Final = "pod-template-generation"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_NODE: Final = "node.kubernetes.io/"
TOLERATED: Final = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
"""Taints of sick and cordoned nodes, which daemons outlast."""
ON_HOST: Final = ("network-unavailable", "NoSchedule")
"""And this one, where they use the node's own network."""


def tolerations(spec: Json) -> list[Json]:
    """The tolerations of a daemon's pod: its template's, and those that every daemon has."""
    out = list(spec.get("tolerations") or ())
    for name, effect in (*TOLERATED, ON_HOST) if spec.get("hostNetwork") else TOLERATED:
        added = {"key": _NODE + name, "operator": "Exists", "effect": effect}
        same = [n for n, each in enumerate(out) if {k: v for k, v in each.items() if k != "tolerationSeconds"} == added]
        if same:
            out[same[0]] = added
        else:
            out.append(added)
    return out


class Place:
    """Which nodes a DaemonSet's pods may run on."""

    def __init__(self, ds: Json) -> None:
        spec = ds["spec"]["template"]["spec"]
        self._node = spec.get("nodeName") or ""
        self._labels = (spec.get("nodeSelector") or EMPTY).items()
        required = ((spec.get("affinity") or EMPTY).get("nodeAffinity") or EMPTY).get(REQUIRED)
        self._required = None if required is None else NodeSelector.compile(required, lenient=True)
        self._tolerations = tolerations(spec)

    def judge(self, node: Json) -> tuple[bool, bool]:
        """(whether a pod should run on a node, whether one that is there may go on)."""
        name = node["metadata"]["name"]
        labels = node["metadata"].get("labels") or EMPTY
        if self._node not in ("", name) or not self._labels <= labels.items():
            return False, False
        if self._required is not None and not self._required.matches(labels, name):
            return False, False
        hurting = [taint for taint in node.get("spec", EMPTY).get("taints") or () if self._is_hurt_by(taint)]
        if not hurting:
            return True, True
        return False, all(taint["effect"] != "NoExecute" for taint in hurting)

    def _is_hurt_by(self, taint: Json) -> bool:
        return taint["effect"] in ("NoSchedule", "NoExecute") and not tolerates(self._tolerations, taint)


def target_of(pod: Json) -> str:
    """The node a daemon's pod is on or waits for; "" where it does not say."""
    spec = pod["spec"]
    if spec.get("nodeName"):
        return spec["nodeName"]  # type: ignore[no-any-return]
    required = ((spec.get("affinity") or EMPTY).get("nodeAffinity") or EMPTY).get(REQUIRED) or EMPTY
    for term in required.get("nodeSelectorTerms") or ():
        for each in term.get("matchFields") or ():
            if each["key"] == NAME_FIELD and each["operator"] == "In":
                return each["values"][0] if len(each["values"]) == 1 else ""
    return ""


def generation_of(ds: Json) -> str:
    """The template generation older clients set; "" for none."""
    text = (ds["metadata"].get("annotations") or EMPTY).get(GENERATION, "")
    return text if text.lstrip("-").isdecimal() else ""


def is_updated(ds: Json, pod: Json, hashed: str) -> bool:
    """Whether a pod is of the current template."""
    labels = pod["metadata"].get("labels") or EMPTY
    generation = generation_of(ds)
    return labels.get(history.HASH_LABEL) == hashed or bool(generation and labels.get(GENERATION_LABEL) == generation)


def daemon_pod(ds: Json, node: str, hashed: str) -> dict[str, Any]:
    """The pod for a node: the scheduler binds it, and can bind it nowhere else."""
    made = new_pod(ds)
    spec = made["spec"]
    labels = {**(made["metadata"].get("labels") or EMPTY), history.HASH_LABEL: hashed}
    if generation_of(ds):
        labels[GENERATION_LABEL] = generation_of(ds)
    term = {"matchFields": [{"key": NAME_FIELD, "operator": "In", "values": [node]}]}
    affinity = spec.get("affinity") or EMPTY
    pinned = {**(affinity.get("nodeAffinity") or EMPTY), REQUIRED: {"nodeSelectorTerms": [term]}}
    return {
        **made,
        "metadata": {**made["metadata"], "labels": labels},
        "spec": {**spec, "affinity": {**affinity, "nodeAffinity": pinned}, "tolerations": tolerations(spec)},
    }


def limits(ds: Json, desired: int) -> tuple[int, int]:
    """(most pods beyond one a node, most nodes without an available pod) of a rolling update; never both 0."""
    strategy = ds["spec"].get("updateStrategy") or EMPTY
    rolling = strategy.get("rollingUpdate") or EMPTY
    if strategy.get("type") != "RollingUpdate":
        return 0, 0
    surge = share(rolling.get("maxSurge", 0), desired, up=True)
    unavailable = share(rolling.get("maxUnavailable", 1), desired, up=True)
    return (0, 1) if desired and not surge and not unavailable else (surge, unavailable)


def age_order(pod: Json) -> tuple[bool, str, str]:
    """Sort key: bound ones first, then the older."""
    meta = pod["metadata"]
    return not pod["spec"].get("nodeName"), meta["creationTimestamp"], meta["name"]
