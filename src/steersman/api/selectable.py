"""By which fields the objects of a kind can be selected, and what they have there.

Source of the facts: kubernetes `pkg/apis/*/v1/conversion.go` (which labels there are) and the `SelectableFields` of
`pkg/registry/*/strategy.go` (what they stand for), release 1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from steersman.api.field_select import METADATA, field_of
from steersman.api.kinds import Kind
from steersman.kernel.object import Object

GK = tuple[str, str]

_FIELDS: Final[Mapping[GK, tuple[str, ...]]] = {
    ("", "Pod"): ("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
                  "spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName"),
    ("", "Event"): ("involvedObject.apiVersion", "involvedObject.fieldPath", "involvedObject.kind",
                    "involvedObject.name", "involvedObject.namespace", "involvedObject.resourceVersion",
                    "involvedObject.uid", "reason", "reportingComponent", "source", "type"),
    ("", "Namespace"): ("status.phase",),
    ("", "Node"): ("spec.unschedulable",),
    ("", "ReplicationController"): ("status.replicas",),
    ("", "Secret"): ("type",),
    ("", "Service"): ("spec.clusterIP", "spec.type"),
    ("batch", "Job"): ("status.successful",),
    ("certificates.k8s.io", "CertificateSigningRequest"): ("spec.signerName",),
    ("resource.k8s.io", "ResourceSlice"): ("spec.nodeName", "spec.driver"),
}  # fmt: skip
"""Fields beside name and namespace."""
_OLD_NAMES: Final[Mapping[GK, Mapping[str, str]]] = {("", "Pod"): {"spec.host": "spec.nodeName"}}


def _names(kind: GK) -> Mapping[str, str]:
    found = {name: name for name in (*METADATA, *_FIELDS.get(kind, ()))}
    return MappingProxyType({**found, **_OLD_NAMES.get(kind, {})})


_NAMES: Final = {gk: _names(gk) for gk in _FIELDS}
_ANY: Final = _names(("", ""))


def selectable(kind: Kind) -> Mapping[str, str]:
    """The fields a kind can be selected by, and the names that `selected` knows them by."""
    if kind.alias is not None:
        return {**_ANY, **kind.alias.fields}
    if kind.origin is None:
        return _NAMES.get(kind.gk, _ANY)
    return {**_ANY, **{name: name for name in kind.origin.selectable}}


def selected(obj: Object, path: str) -> Any:
    """The value of a selectable field of an object; "" where there is none."""
    special = _SPECIAL.get((*obj.key.gk, path))
    return field_of(obj, path) if special is None else special(obj)


def _event_source(obj: Object) -> Any:
    return field_of(obj, "source.component") or field_of(obj, "reportingComponent")


def _pod_address(obj: Object) -> Any:
    addresses = field_of(obj, "status.podIPs")
    return (addresses[0].get("ip") or "") if addresses else ""


_SPECIAL: Final[Mapping[tuple[str, str, str], Callable[[Object], Any]]] = {
    ("", "Event", "source"): _event_source,
    ("", "Node", "spec.unschedulable"): lambda obj: bool(field_of(obj, "spec.unschedulable")),
    ("", "Pod", "spec.hostNetwork"): lambda obj: bool(field_of(obj, "spec.hostNetwork")),
    ("", "Pod", "status.podIP"): _pod_address,
    ("", "Pod", "status.podIPs"): lambda _: "",  # a name that Kubernetes knows, and never has a value for
    ("", "ReplicationController", "status.replicas"): lambda obj: field_of(obj, "status.replicas") or 0,
    ("batch", "Job", "status.successful"): lambda obj: field_of(obj, "status.succeeded") or 0,
}
"""Fields that are not what stands at their path, or have a value where nothing does."""
