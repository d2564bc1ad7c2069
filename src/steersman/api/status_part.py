"""What a write to an object's status keeps of the metadata that is sent with it, and what the server adds.

kube-apiserver has a rule per kind: most take labels, annotations, owners and finalizers as they are sent; some keep
those there are. Nowhere does such a write change the spec.

Source of the facts: Kubernetes 1.36, `PrepareForUpdate` of the status strategies in pkg/registry/*/*/strategy.go, and
of custom kinds in apiextensions-apiserver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from steersman.api.errors import Cause
from steersman.api.kinds import GK, Kind
from steersman.api.managed import OPEN_META
from steersman.kernel.object import EMPTY_SECTION, Object, Section
from steersman.kernel.value import EMPTY

KEEPS_ALL: Final[frozenset[GK]] = frozenset(
    {
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("apiregistration.k8s.io", "APIService"),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
        ("networking.k8s.io", "ServiceCIDR"),
        ("resource.k8s.io", "ResourceClaim"),
        ("storage.k8s.io", "VolumeAttachment"),
    }
)
"""Kinds of which a write to the status changes no metadata at all, as it is with custom ones."""
KEPT: Final[Mapping[GK, tuple[str, ...]]] = {("", "Pod"): ("ownerReferences",), ("apps", "Deployment"): ("labels",)}
"""Metadata that stays as it is for other kinds."""
TIMED: Final[frozenset[GK]] = frozenset({("", "PersistentVolume")})
"""Kinds that are born with a time in their status."""

WITH_SPEC: Final[frozenset[GK]] = frozenset({("", "Pod"), ("", "Service")})
"""Kinds whose status is judged beside the spec."""


def taken_meta(kind: Kind) -> tuple[str, ...]:
    """The metadata that a write to the status of this kind may change."""
    if kind.custom or kind.gk in KEEPS_ALL:
        return ()
    kept = KEPT.get(kind.gk)
    return OPEN_META if kept is None else tuple([field for field in OPEN_META if field not in kept])


def changes_meta(kind: Kind, old: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    """Whether the metadata sent with a status says anything new."""
    if given is old:
        return False
    return any((given.get(field) or None) != old.get(field) for field in taken_meta(kind))


def prepared(kind: Kind, old: Section | None, new: Any, time: str, observed: bool = True) -> Any:
    """The status that was sent, with what the server keeps or notes of it; `time` is now (RFC 3339). `observed`:
    whether the old one may tell of a generation that was seen."""
    prepare = _PREPARED.get(kind.gk)
    return new if prepare is None or not isinstance(new, dict) else prepare(old or EMPTY_SECTION, new, time, observed)


def causes(kind: Kind, old: Object, status: Mapping[str, Any]) -> list[Cause]:
    """What is wrong with a status beside the spec there is; what is wrong with it alone is judged elsewhere."""
    if kind.gk == ("", "Pod") and old.node and status.get("nominatedNodeName"):
        detail = "may not be set on pods that are already bound to a node"
        return [Cause.forbidden("status.nominatedNodeName", detail)]
    balanced = kind.gk == ("", "Service") and (status.get("loadBalancer") or EMPTY).get("ingress")
    if balanced and (old.spec_value or EMPTY).get("type") != "LoadBalancer":
        detail = "may only be used when `spec.type` is 'LoadBalancer'"
        return [Cause.forbidden("status.loadBalancer.ingress", detail)]
    return []


def _pod(section: Section, new: Mapping[str, Any], time: str, observed: bool) -> Mapping[str, Any]:
    """A pod's QoS class and the generations that a kubelet has seen are not forgotten."""
    if new.get("qosClass") and not (observed and b'"observedGeneration"' in section.raw):
        return new  # nearly always, and without a look at what the old one says
    old = section.peek()
    kept: dict[str, Any] = {
        field: old[field] for field in ("qosClass", "observedGeneration") if field in old and not new.get(field)
    }
    before = old.get("conditions") or ()
    if any("observedGeneration" in condition for condition in before) and isinstance(new.get("conditions"), list):
        seen = {condition["type"]: condition.get("observedGeneration") for condition in reversed(before)}
        kept["conditions"] = [_seen(condition, seen) for condition in new["conditions"]]
    return {**new, **kept} if kept else new


def _seen(condition: Any, seen: Mapping[str, Any]) -> Any:
    if not isinstance(condition, dict) or condition.get("observedGeneration"):
        return condition
    generation = seen.get(str(condition.get("type")))
    return {**condition, "observedGeneration": generation} if generation else condition


def _volume(section: Section, new: Mapping[str, Any], time: str, _observed: bool) -> Mapping[str, Any]:
    """When a volume's phase changed last."""
    old = section.peek()
    field = "lastPhaseTransitionTime"
    since = old.get(field)
    if old.get("phase") == new.get("phase"):
        return new if new.get(field) or since is None else {**new, field: since}
    return {**new, field: time} if new.get(field) in (None, since) else new


_PREPARED: Final[Mapping[GK, Callable[[Section, Mapping[str, Any], str, bool], Mapping[str, Any]]]] = {
    ("", "Pod"): _pod,
    ("", "PersistentVolume"): _volume,
}
