"""metadata.generation: which kinds have one, and what counts it.

Source of the facts: Kubernetes 1.36, PrepareForCreate and PrepareForUpdate in pkg/registry/*/*/strategy.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from steersman.api.kinds import GK, Kind
from steersman.kernel.object import Object, Section

NONE: Final[frozenset[GK]] = frozenset(
    {("", name) for name in ("LimitRange", "Namespace", "Node", "PersistentVolume", "PersistentVolumeClaim")}
    | {("", name) for name in ("ResourceQuota", "Service")}
    | {
        ("apiregistration.k8s.io", "APIService"),
        ("coordination.k8s.io", "Lease"),
        ("certificates.k8s.io", "CertificateSigningRequest"),
    }
    | {("storage.k8s.io", name) for name in ("CSIDriver", "CSINode", "VolumeAttachment")}
    | {("autoscaling", "HorizontalPodAutoscaler"), ("networking.k8s.io", "ServiceCIDR")}
    | {("resource.k8s.io", "ResourceClaim"), ("resource.k8s.io", "ResourceClaimTemplate")}
)
"""Kinds with a spec that are born without a generation."""
COUNTED_REST: Final[frozenset[GK]] = frozenset(
    {("discovery.k8s.io", "EndpointSlice"), ("scheduling.k8s.io", "PriorityClass"), ("", "PodTemplate")}
    | {("admissionregistration.k8s.io", f"{name}WebhookConfiguration") for name in ("Mutating", "Validating")}
)
"""Kinds without a spec that have one; it counts changes of everything but metadata."""
STAYS: Final[GK] = ("scheduling.k8s.io", "PriorityClass")
"""Of these, one whose generation stays 1."""
BEGINS_LATE: Final[GK] = ("storage.k8s.io", "CSIDriver")
"""A kind whose generation begins with the first change of its spec."""
WITH_LABELS: Final[GK] = ("discovery.k8s.io", "EndpointSlice")
"""A kind whose generation counts changes of labels, too."""

WITH_ANNOTATIONS: Final[GK] = ("apps", "Deployment")
"""A kind whose generation counts changes of annotations, too."""


def born(kind: Kind, spec: Section | None) -> bool:
    """Whether a new object has a generation."""
    return kind.custom or kind.gk in COUNTED_REST or (spec is not None and kind.gk not in NONE)


def count(kind: Kind, meta: dict[str, Any], old: Object, respecified: bool, rest: bool, status: bool) -> None:
    """Counts a change, in the metadata of the new version: of the spec, of the rest, of a status that is written with
    the object."""
    counts = respecified
    if kind.custom:
        counts = counts or rest or status
    elif kind.gk == WITH_ANNOTATIONS:
        counts = respecified or (meta.get("annotations") or {}) != (old.meta.value.get("annotations") or {})
    elif kind.gk in COUNTED_REST:
        counts = kind.gk != STAYS and (rest or (kind.gk == WITH_LABELS and _labels(meta) != _labels(old.meta.value)))
    if counts and ("generation" in meta or kind.gk == BEGINS_LATE):
        meta["generation"] = meta.get("generation", 0) + 1


def _labels(meta: Mapping[str, Any]) -> Any:
    return meta.get("labels") or {}
