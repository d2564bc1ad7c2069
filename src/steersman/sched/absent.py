"""Constraints a pod can state that this scheduler does not evaluate yet, so that they are named and never just ignored.

Hard ones would be filters in kube-scheduler: a pod that has one is not placed (or, if the user chose so, placed with a
note). Soft ones would only move scores: the pod is placed, with a note. The plug-ins' names are kube-scheduler 1.36's.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

DISK_SOURCES = ("gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd")
"""Volume sources that only one pod or node may use at a time (kube-scheduler's VolumeRestrictions)."""


@dataclass(frozen=True, slots=True)
class Unsupported:
    """One constraint: the field that states it, the plug-in that would evaluate it, and whether it is hard."""

    field: str
    plugin: str
    hard: bool


def unsupported(pod: Mapping[str, Any]) -> tuple[Unsupported, ...]:
    """The constraints in this pod's spec that are not evaluated, in the order of the plug-ins."""
    spec = pod.get("spec") or {}
    return (*_volumes(spec), *_spread(spec), *_pod_affinity(spec), *_claims(spec))


def _volumes(spec: Mapping[str, Any]) -> Iterator[Unsupported]:
    for index, volume in enumerate(spec.get("volumes") or ()):
        for source in DISK_SOURCES:
            if volume.get(source):
                yield Unsupported(f"spec.volumes[{index}].{source}", "VolumeRestrictions", True)


def _spread(spec: Mapping[str, Any]) -> Iterator[Unsupported]:
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        hard = constraint.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule"
        yield Unsupported(f"spec.topologySpreadConstraints[{index}]", "PodTopologySpread", hard)


def _pod_affinity(spec: Mapping[str, Any]) -> Iterator[Unsupported]:
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = (spec.get("affinity") or {}).get(kind) or {}
        for field, hard in (
            ("requiredDuringSchedulingIgnoredDuringExecution", True),
            ("preferredDuringSchedulingIgnoredDuringExecution", False),
        ):
            if terms.get(field):
                yield Unsupported(f"spec.affinity.{kind}.{field}", "InterPodAffinity", hard)


def _claims(spec: Mapping[str, Any]) -> Iterator[Unsupported]:
    if spec.get("resourceClaims"):
        yield Unsupported("spec.resourceClaims", "DynamicResources", True)


def refusal(constraints: tuple[Unsupported, ...]) -> str:
    """Why a pod is not placed, and what to do; empty if no constraint is hard."""
    hard = [constraint for constraint in constraints if constraint.hard]
    if not hard:
        return ""
    fields = ", ".join(f"{constraint.field} ({constraint.plugin})" for constraint in hard)
    return (
        f"this scheduler does not evaluate {fields} yet; remove it from the pod, "
        "or simulate with --ignore-unsupported, which places pods without it"
    )


def note(constraints: tuple[Unsupported, ...], volumes: str = "") -> str:
    """What was left out of account in placing a pod; empty if nothing was. `volumes`: what is wrong with its claims."""
    if volumes:
        return f"placed without regard to its volumes: {volumes}"
    if not constraints:
        return ""
    fields = ", ".join(f"{constraint.field} ({constraint.plugin})" for constraint in constraints)
    return f"placed without regard to {fields}: not evaluated yet"
