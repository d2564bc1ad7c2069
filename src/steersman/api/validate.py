"""Validation: what kube-apiserver says about an object that is well formed and yet not valid.

Each function gives the causes of a refusal, none if all is well; `errors.invalid` makes an answer of them. A
value must have been taken in (`intake`) and filled (`defaults`), so types are right and required defaults are
there. Custom kinds are judged by their schema, in intake, and by their metadata, here.

An object is judged part by part, so that a spec shared by a thousand pods is judged once; the few rules that need
two parts, or the name, are in `whole`.
Source of the facts: kubernetes `pkg/apis/*/validation` and `pkg/registry/*`, release 1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from steersman.api import names
from steersman.api.crd import crd_rules
from steersman.api.errors import Cause
from steersman.api.kinds import Kind
from steersman.api.rules import (
    admission_rules,
    change_rules,
    claim_rules,
    class_rules,
    data_rules,
    event_rules,
    flow_rules,
    internal,
    job_rules,
    metadata_rules,
    network_rules,
    pod_rules,
    quota_rules,
    registration_rules,
    role_rules,
    rules,
    scaling_rules,
    scheduling_rules,
    service_rules,
    volume_rules,
    workload_rules,
)
from steersman.api.rules.metadata_rules import metadata, metadata_change
from steersman.api.rules.rules import Causes, Object
from steersman.kernel.value import EMPTY

__all__ = [
    "TOGETHER",
    "WHOLE",
    "change",
    "frozen_data",
    "judged_parts",
    "metadata",
    "metadata_change",
    "on_create",
    "part",
    "together",
    "unborn",
    "undecoded",
    "whole",
]

DEFINITIONS: Final = "customresourcedefinitions.apiextensions.k8s.io"
REVISION: Final = ("apps", "ControllerRevision")
"""Its `data` is any object, the empty one, too."""

Rule = Callable[[Causes, str, Any], None]
ChangeRule = Callable[[Causes, str, Any, Any], None]
Where = tuple[str, str, str]
"""Group, kind and part."""


def part(kind: Kind, part: str, value: Any) -> list[Cause]:
    """What is wrong with `value`, the content of top-level field `part`; None: the field is absent."""
    rule = None if kind.custom else _RULES.get((kind.group, kind.kind, part))
    if rule is None:
        return []
    out: list[Cause] = []
    rule(out, part, EMPTY if value is None else value)
    return out


def undecoded(kind: Kind, data: Any) -> list[Cause]:
    """What is wrong with a top-level `data` that kube-apiserver keeps as it was sent, and judges as such."""
    fine = kind.gk != REVISION or isinstance(data, dict)
    return [] if fine else [Cause.required("data", "data must be a valid JSON object")]


def on_create(kind: Kind, part: str, value: Any) -> list[Cause]:
    """What is wrong with `value` only because the object is being created."""
    out: list[Cause] = []
    if (kind.group, kind.kind, part) == ("", "Pod", "spec") and value:
        pod_rules.pod_create(out, part, value)
    return out


def unborn(kind: Kind, body: Mapping[str, Any]) -> list[Cause]:
    """What is wrong with a body whose spec is not valid only because the object is being created."""
    spec = body.get("spec")
    return crd_rules.unborn(spec) if kind.resource == DEFINITIONS and isinstance(spec, dict) else []


def change(kind: Kind, part: str, old: Any, new: Any) -> list[Cause]:
    """What of top-level field `part` may not change from `old` to `new`; None: the field is absent.

    `part` judges the new value by itself. The main resource is meant: a change through a subresource
    (binding, resize, ephemeralcontainers) has rules of its own, and so has the data of a ConfigMap or Secret,
    whose `immutable` is another part: see `frozen_data`.
    """
    if old == new or kind.custom:
        return []
    out: list[Cause] = []
    where = (kind.group, kind.kind, part)
    if where in _FIXED:
        out.append(Cause.invalid(part, _as_go(part, new), _FIXED[where]))
    elif rule := _CHANGES.get(where):
        rule(out, part, EMPTY if old is None else old, EMPTY if new is None else new)
    return out


def _as_go(part: str, value: Any) -> Any:
    """A value as an error of kube-apiserver shows it: a roleRef as its internal Go struct (1.36)."""
    if part != "roleRef" or not isinstance(value, dict):
        return value
    return internal.shown(value, internal.ROLE_REF)


def frozen_data(kind: Kind, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Cause]:
    """What may not change in a ConfigMap or Secret whose `immutable` was true; both objects whole."""
    if kind.group or kind.kind not in ("ConfigMap", "Secret") or old.get("immutable") is not True:
        return []
    fields = ("data", "binaryData") if kind.kind == "ConfigMap" else ("data",)
    changed = [field for field in fields if (old.get(field) or EMPTY) != (new.get(field) or EMPTY)]
    if new.get("immutable") is not True:
        changed.insert(0, "immutable")
    return [Cause.forbidden(field, change_rules.WHEN_IMMUTABLE) for field in changed]


def judged_parts(kind: Kind) -> tuple[str, ...]:
    """The parts whose absence is judged too: pass None to `part` for those an object lacks."""
    return () if kind.custom else _JUDGED.get((kind.group, kind.kind), ())


def whole(kind: Kind, name: str, parts: Mapping[str, Any]) -> list[Cause]:
    """What is wrong between the parts of an object; `parts` are its top-level fields but for metadata and status."""
    rule = None if kind.custom else WHOLE.get((kind.group, kind.kind))
    if rule is None:
        return []
    out: list[Cause] = []
    rule(out, name, parts)
    return out


def together(kind: Kind, meta: Mapping[str, Any], new: Any) -> list[Cause]:
    """What does not go together in an object: its metadata, as its writer wants it, and its parts."""
    out: list[Cause] = []
    TOGETHER[kind.gk](out, meta, new.spec_value or EMPTY, EMPTY if new.rest is None else new.rest.value)
    return out


def _staying(*fields: str) -> ChangeRule:
    return lambda out, path, old, new: change_rules.fixed(out, path, old, new, *fields)


def _same_priority(out: Causes, path: str, old: Any, new: Any) -> None:
    out.append(Cause.forbidden(path, "may not be changed in an update."))


def _namespace(out: Causes, path: str, spec: Object) -> None:
    for text in spec.get("finalizers") or ():
        problems = rules.qualified_name(text)
        if not problems and "/" not in text and text not in metadata_rules.STANDARD_FINALIZERS:
            problems = ("name is neither a standard finalizer name nor is it fully qualified",)
        out.extend(Cause.invalid(f"{path}.finalizers", text, problem) for problem in problems)


def _namespace_status(out: Causes, path: str, status: Object) -> None:
    rules.chosen(out, f"{path}.phase", status.get("phase"), ("Active", "Terminating"))


def _node(out: Causes, path: str, spec: Object) -> None:
    # Kubernetes tells them at metadata.taints, where they were in its first versions.
    scheduling_rules.taints(out, "metadata.taints", spec.get("taints"))


def _node_status(out: Causes, path: str, status: Object) -> None:
    for field in ("capacity", "allocatable"):
        for name, text in (status.get(field) or EMPTY).items():
            at = f"{path}.{field}[{name}]"
            rules.named(out, at, name, rules.qualified_name)
            rules.amount(out, at, name, text)


def _lease(out: Causes, path: str, spec: Object) -> None:
    seconds, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if seconds is not None and seconds <= 0:
        out.append(Cause.invalid(f"{path}.leaseDurationSeconds", seconds, "must be greater than 0"))
    if transitions is not None and transitions < 0:
        out.append(Cause.invalid(f"{path}.leaseTransitions", transitions, rules.NEGATIVE))
    strategy = spec.get("strategy")
    if strategy is not None and "/" not in strategy:
        rules.chosen(out, f"{path}.strategy.strategy", strategy, ("OldestEmulationVersion",))
    if spec.get("preferredHolder") and not strategy:
        detail = "may only be specified if `strategy` is defined"
        out.append(Cause.forbidden(f"{path}.preferredHolder", detail))


def _role_ref(out: Causes, path: str, ref: Object, namespaced: bool = True) -> None:
    group = "rbac.authorization.k8s.io"
    rules.chosen(out, f"{path}.apiGroup", ref.get("apiGroup"), (group,))
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    if (ref.get("kind") or "") not in kinds:
        out.append(Cause.unsupported(f"{path}.kind", ref.get("kind") or "", kinds))
    if not ref.get("name"):
        out.append(Cause.required(f"{path}.name"))
    else:
        rules.named(out, f"{path}.name", ref["name"], names.path_segment)


def _cluster_role_ref(out: Causes, path: str, ref: Object) -> None:
    _role_ref(out, path, ref, namespaced=False)


def _template(out: Causes, path: str, value: Any) -> None:
    pod_rules.template(out, path, value)


_RBAC: Final = role_rules.GROUP
_NET: Final = "networking.k8s.io"
_STORAGE: Final = "storage.k8s.io"
_DEVICES: Final = "resource.k8s.io"
_ADMISSION: Final = "admissionregistration.k8s.io"
_RULES: Final[Mapping[Where, Rule]] = {
    (_ADMISSION, "ValidatingWebhookConfiguration", "webhooks"): admission_rules.webhooks,
    (_ADMISSION, "MutatingWebhookConfiguration", "webhooks"): admission_rules.webhooks,
    (_ADMISSION, "ValidatingAdmissionPolicy", "spec"): admission_rules.validating_policy,
    (_ADMISSION, "ValidatingAdmissionPolicyBinding", "spec"): admission_rules.validating_binding,
    (_ADMISSION, "MutatingAdmissionPolicy", "spec"): admission_rules.mutating_policy,
    (_ADMISSION, "MutatingAdmissionPolicyBinding", "spec"): admission_rules.mutating_binding,
    ("", "Pod", "spec"): pod_rules.pod_spec,
    ("", "Pod", "status"): pod_rules.pod_status,
    ("", "PodTemplate", "template"): _template,
    ("", "ReplicationController", "spec"): workload_rules.replication_controller,
    ("", "Service", "spec"): service_rules.service,
    ("", "PersistentVolumeClaim", "spec"): volume_rules.claim_spec,
    ("", "PersistentVolume", "spec"): volume_rules.volume_spec,
    ("", "Namespace", "spec"): _namespace,
    ("", "Namespace", "status"): _namespace_status,
    ("", "Node", "spec"): _node,
    ("", "Node", "status"): _node_status,
    ("", "ConfigMap", "data"): data_rules.keys,
    ("", "ConfigMap", "binaryData"): data_rules.keys,
    ("", "Secret", "data"): data_rules.secret_data,
    ("apps", "Deployment", "spec"): workload_rules.deployment,
    ("apps", "ReplicaSet", "spec"): workload_rules.replica_set,
    ("apps", "DaemonSet", "spec"): workload_rules.daemon_set,
    ("apps", "StatefulSet", "spec"): workload_rules.stateful_set,
    (*REVISION, "revision"): workload_rules.revision_number,
    ("batch", "Job", "spec"): workload_rules.job,
    ("batch", "CronJob", "spec"): workload_rules.cron_job,
    ("apiextensions.k8s.io", "CustomResourceDefinition", "spec"): crd_rules.spec,
    ("coordination.k8s.io", "Lease", "spec"): _lease,
    (_DEVICES, "ResourceClaim", "spec"): claim_rules.claim,
    (_DEVICES, "ResourceClaim", "status"): claim_rules.status,
    (_DEVICES, "ResourceClaimTemplate", "spec"): claim_rules.template,
    (_DEVICES, "DeviceClass", "spec"): claim_rules.device_class,
    (_DEVICES, "ResourceSlice", "spec"): claim_rules.resource_slice,
    ("", "LimitRange", "spec"): quota_rules.limit_range,
    ("", "ResourceQuota", "spec"): quota_rules.resource_quota,
    ("autoscaling", "HorizontalPodAutoscaler", "spec"): scaling_rules.autoscaler,
    ("autoscaling", "HorizontalPodAutoscaler", "status"): scaling_rules.autoscaler_status,
    ("policy", "PodDisruptionBudget", "spec"): scaling_rules.disruption_budget,
    ("policy", "PodDisruptionBudget", "status"): scaling_rules.budget_status,
    (_NET, "Ingress", "spec"): network_rules.ingress,
    (_NET, "IngressClass", "spec"): network_rules.ingress_class,
    (_NET, "NetworkPolicy", "spec"): network_rules.network_policy,
    (_NET, "IPAddress", "spec"): network_rules.ip_address_spec,
    (_NET, "ServiceCIDR", "spec"): network_rules.service_cidr,
    ("", "Endpoints", "subsets"): network_rules.endpoint_subsets,
    ("discovery.k8s.io", "EndpointSlice", "addressType"): network_rules.address_type,
    ("discovery.k8s.io", "EndpointSlice", "ports"): network_rules.endpoint_ports,
    (_STORAGE, "StorageClass", "provisioner"): class_rules.provisioner,
    (_STORAGE, "StorageClass", "parameters"): class_rules.parameters,
    (_STORAGE, "StorageClass", "reclaimPolicy"): class_rules.reclaim_policy,
    (_STORAGE, "StorageClass", "volumeBindingMode"): class_rules.binding_mode,
    (_STORAGE, "StorageClass", "allowedTopologies"): class_rules.topologies,
    (_STORAGE, "VolumeAttributesClass", "driverName"): class_rules.driver_name,
    (_STORAGE, "VolumeAttributesClass", "parameters"): class_rules.attributes,
    (_STORAGE, "VolumeAttachment", "spec"): class_rules.attachment,
    (_STORAGE, "VolumeAttachment", "status"): class_rules.attachment_status,
    (_STORAGE, "CSIDriver", "spec"): class_rules.driver,
    (_STORAGE, "CSINode", "spec"): class_rules.csi_node,
    (_STORAGE, "CSIStorageCapacity", "capacity"): class_rules.capacity,
    (_STORAGE, "CSIStorageCapacity", "storageClassName"): class_rules.capacity_class,
    ("scheduling.k8s.io", "PriorityClass", "preemptionPolicy"): class_rules.preemption,
    ("node.k8s.io", "RuntimeClass", "handler"): class_rules.handler,
    ("node.k8s.io", "RuntimeClass", "overhead"): class_rules.overhead,
    (*registration_rules.GK, "status"): registration_rules.status,
    (_RBAC, "Role", "rules"): role_rules.role,
    (_RBAC, "ClusterRole", "rules"): role_rules.cluster_role,
    (_RBAC, "ClusterRole", "aggregationRule"): role_rules.aggregation,
    (_RBAC, "RoleBinding", "subjects"): role_rules.subjects,
    (_RBAC, "ClusterRoleBinding", "subjects"): role_rules.cluster_subjects,
    (_RBAC, "RoleBinding", "roleRef"): _role_ref,
    (_RBAC, "ClusterRoleBinding", "roleRef"): _cluster_role_ref,
}

_JUDGED: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("", "Pod"): ("spec",),
    ("", "PodTemplate"): ("template",),
    ("", "ReplicationController"): ("spec",),
    ("", "Service"): ("spec",),
    ("", "PersistentVolumeClaim"): ("spec",),
    ("", "PersistentVolume"): ("spec",),
    ("apps", "Deployment"): ("spec",),
    ("apps", "ReplicaSet"): ("spec",),
    ("apps", "DaemonSet"): ("spec",),
    ("apps", "StatefulSet"): ("spec",),
    ("batch", "Job"): ("spec",),
    ("batch", "CronJob"): ("spec",),
    ("autoscaling", "HorizontalPodAutoscaler"): ("spec",),
    (_NET, "Ingress"): ("spec",),
    (_NET, "IngressClass"): ("spec",),
    (_NET, "IPAddress"): ("spec",),
    (_NET, "ServiceCIDR"): ("spec",),
    ("discovery.k8s.io", "EndpointSlice"): ("addressType",),
    (_STORAGE, "StorageClass"): ("provisioner",),
    (_STORAGE, "VolumeAttributesClass"): ("driverName", "parameters"),
    (_STORAGE, "VolumeAttachment"): ("spec",),
    (_STORAGE, "CSIStorageCapacity"): ("storageClassName",),
    ("node.k8s.io", "RuntimeClass"): ("handler",),
    (_DEVICES, "ResourceSlice"): ("spec",),
    (_RBAC, "RoleBinding"): ("roleRef",),
    (_RBAC, "ClusterRoleBinding"): ("roleRef",),
}

WHOLE: Final[Mapping[tuple[str, str], Callable[[Causes, str, Mapping[str, Any]], None]]] = {
    ("", "ConfigMap"): data_rules.config_map,
    ("", "Event"): event_rules.event,
    REVISION: workload_rules.revision,
    ("discovery.k8s.io", "EndpointSlice"): network_rules.endpoint_slice,
    ("scheduling.k8s.io", "PriorityClass"): class_rules.priority,
    flow_rules.SCHEMA: flow_rules.schema,
    flow_rules.LEVEL: flow_rules.level,
    registration_rules.GK: registration_rules.service,
}
"""What is judged of several parts together, or with the name."""

TOGETHER: Final[Mapping[tuple[str, str], Callable[[Causes, Mapping[str, Any], Object, Object], None]]] = {
    ("", "Event"): event_rules.placed,
    ("", "Secret"): data_rules.typed_secret,
    ("batch", "Job"): job_rules.selected,
}
"""What is judged of the metadata and the parts (spec, rest) together, once they are complete."""

METADATA_LAST: Final = frozenset({("", "Event")})
"""Kinds whose own rules leave the metadata out: it is judged after them, when they find nothing."""

_CHANGES: Final[Mapping[Where, ChangeRule]] = {
    (_DEVICES, "ResourceClaim", "spec"): claim_rules.claim_change,
    ("", "Pod", "spec"): change_rules.pod_spec,
    ("", "Service", "spec"): change_rules.service,
    ("", "PersistentVolumeClaim", "spec"): change_rules.claim_spec,
    ("", "PersistentVolume", "spec"): change_rules.volume_spec,
    ("", "Node", "spec"): change_rules.node_spec,
    ("apps", "Deployment", "spec"): change_rules.selector,
    ("apps", "ReplicaSet", "spec"): change_rules.selector,
    ("apps", "DaemonSet", "spec"): change_rules.selector,
    ("apps", "StatefulSet", "spec"): change_rules.stateful_set,
    ("batch", "Job", "spec"): change_rules.job,
    ("", "ResourceQuota", "spec"): quota_rules.quota_scopes,
    (_NET, "IngressClass", "spec"): _staying("controller"),
    (_NET, "IPAddress", "spec"): _staying("parentRef"),
    (_NET, "ServiceCIDR", "spec"): change_rules.service_cidr,
    (_STORAGE, "CSIDriver", "spec"): change_rules.csi_driver,
    (_STORAGE, "CSINode", "spec"): change_rules.csi_node,
    ("scheduling.k8s.io", "PriorityClass", "value"): _same_priority,
}

# Parts that keep the value they were created with, and what a change of them is told.
_FIXED: Final[Mapping[Where, str]] = {
    ("", "Secret", "type"): rules.IMMUTABLE,
    ("apps", "ControllerRevision", "data"): rules.IMMUTABLE,
    ("discovery.k8s.io", "EndpointSlice", "addressType"): rules.IMMUTABLE,
    ("node.k8s.io", "RuntimeClass", "handler"): rules.IMMUTABLE,
    ("resource.k8s.io", "ResourceClaimTemplate", "spec"): rules.IMMUTABLE,
    ("scheduling.k8s.io", "PriorityClass", "preemptionPolicy"): rules.IMMUTABLE,
    ("storage.k8s.io", "StorageClass", "reclaimPolicy"): rules.IMMUTABLE,
    ("storage.k8s.io", "VolumeAttachment", "spec"): rules.IMMUTABLE,
    ("storage.k8s.io", "VolumeAttributesClass", "driverName"): rules.IMMUTABLE,
    ("storage.k8s.io", "VolumeAttributesClass", "parameters"): rules.IMMUTABLE,
    ("storage.k8s.io", "CSIStorageCapacity", "nodeTopology"): rules.IMMUTABLE,
    ("storage.k8s.io", "CSIStorageCapacity", "storageClassName"): rules.IMMUTABLE,
    ("storage.k8s.io", "StorageClass", "provisioner"): rules.IMMUTABLE,
    ("storage.k8s.io", "StorageClass", "parameters"): rules.IMMUTABLE,
    ("storage.k8s.io", "StorageClass", "volumeBindingMode"): rules.IMMUTABLE,
    (_RBAC, "RoleBinding", "roleRef"): "cannot change roleRef",
    (_RBAC, "ClusterRoleBinding", "roleRef"): "cannot change roleRef",
}
