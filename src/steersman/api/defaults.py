"""Defaults: what is stored where the writer of an object left it out.

Built-in kinds get what kube-apiserver of release 1.36 gives them; custom kinds the defaults of their schema.
An object is filled part by part (its top-level fields), so that a spec shared by a thousand pods is filled
once. What needs more than one part, another object or the network is somebody else's: cluster IPs, stored
classes, what is made of an object's uid (`prepare`), service account admission.

Source of the facts: kubernetes `pkg/apis/*/v1/defaults.go`, `zz_generated.defaults.go`, `conversion.go`, the
`PrepareForCreate` of `pkg/registry/*`; apiextensions `pkg/apiserver/schema/defaulting` for custom kinds.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from steersman.api import pod_defaults, zeros
from steersman.api.filling import each, elements, inside, lacking, put, unset
from steersman.api.kinds import Kind
from steersman.api.rules import admission_rules, flow_rules, quota_rules, registration_rules
from steersman.api.schema import Schema
from steersman.kernel.value import EMPTY, Frozen, FrozenList, freeze

Fill = Callable[[Any], Any]

NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"
CLIENT_IP_SECONDS: Final = 10_800
MAX_INT32: Final = (1 << 31) - 1
# Kinds of one process: 60 built in, and as many custom ones as a test or a cluster registers.
KINDS_CACHED: Final = 1024


def fill(kind: Kind, part: str, value: Any, zeroed: bool = False) -> Any:
    """`value`, the frozen content of top-level field `part`, with its defaults.

    The very same object when nothing is to be added; else a copy of the changed paths. The value must have
    been taken in (`intake`); null is returned as it is. `zeroed`: intake filled in the zeros already.
    """
    if kind.custom:
        schema = kind.schema.fields.get(part)
        return value if schema is None else fill_schema(schema, value)
    if value is None:
        return None
    schema = kind.schema.fields.get(part)
    if schema is not None and not zeroed:
        value = zeros.fill(schema, value)
    filler = _FILLERS.get((kind.group, kind.kind, part))
    return value if filler is None else filler(value)


@lru_cache(KINDS_CACHED)
def missing_parts(kind: Kind) -> Mapping[str, Any]:
    """Part → value, filled, for the parts that an object has even when its writer left them out."""
    fields = kind.schema.fields
    if not kind.custom:
        needed = "spec" in fields and (fields["spec"].required or "spec" in kind.schema.required)
        empty = {part: value for part, value in zeros.shown(kind.schema).items() if part != "spec" or not needed}
        return {**empty, **_MISSING.get((kind.group, kind.kind), {})}
    return {
        name: fill_schema(child, freeze(child.default)) for name, child in fields.items() if child.default is not None
    }


def initial_status(kind: Kind, spec: Frozen | None) -> Frozen | None:
    """The status of a new object, whatever its writer put there; None: it has none."""
    if kind.custom:
        status = missing_parts(kind).get("status")
        return status if isinstance(status, Frozen) else None
    if kind.group == "" and kind.kind == "Pod":
        return pod_defaults.pod_status(spec or EMPTY)
    born = _STATUS.get((kind.group, kind.kind))
    if born is None:
        return zeros.shown(kind.schema).get("status")
    return zeros.fill(kind.schema.fields["status"], born)  # type: ignore[no-any-return]  # of an object, an object


def extra_labels(kind: Kind, name: str) -> Mapping[str, str]:
    """Labels that the server sets on every object of that kind and name."""
    return {NAMESPACE_LABEL: name} if kind.kind == "Namespace" and kind.group == "" and name else {}


def secret_data(data: Frozen | None, plain: Mapping[str, str]) -> Frozen:
    """The `data` of a Secret after its `stringData` (`plain`), which is never stored, was written over it."""
    encoded = {key: base64.b64encode(text.encode()).decode() for key, text in plain.items()}
    return Frozen({**(data or EMPTY), **encoded})


class _Plan(NamedTuple):
    """What a custom schema adds below one node. `nothing`: it adds nothing anywhere below."""

    defaults: Mapping[str, Any]
    fields: Mapping[str, Schema]
    values: Schema | None
    items: Schema | None

    @property
    def nothing(self) -> bool:
        return not self.defaults and not self.fields and self.values is None and self.items is None


_plans: dict[int, tuple[Schema, _Plan]] = {}


def fill_schema(schema: Schema, value: Any) -> Any:
    """`value` with the defaults of a custom kind's schema: only where the parent object is there."""
    if not isinstance(value, (dict, list)):
        return value
    plan = _plan(schema)
    if plan.nothing:
        return value
    if isinstance(value, list):
        items = plan.items
        return value if items is None else _fill_items(items, value)
    added = {name: default for name, default in plan.defaults.items() if name not in value}
    for name, item in value.items():
        child = plan.fields.get(name) or (plan.values if name not in schema.fields else None)
        if child is not None:
            filled = fill_schema(child, item)
            if filled is not item:
                added[name] = filled
    return Frozen({**value, **added}) if added else value


def _fill_items(items: Schema, value: list[Any]) -> Any:
    filled = [fill_schema(items, item) for item in value]
    changed = any(new is not old for new, old in zip(filled, value, strict=True))
    return FrozenList(filled) if changed else value


def _plan(schema: Schema) -> _Plan:
    found = _plans.get(id(schema))
    if found is None:
        plan = _make_plan(schema)
        found = _plans[id(schema)] = (schema, plan)  # the schema is kept alive, so its id stays its own
    return found[1]


def _make_plan(schema: Schema) -> _Plan:
    defaults = {
        name: fill_schema(child, freeze(child.default))
        for name, child in schema.fields.items()
        if child.default is not None
    }
    fields = {name: child for name, child in schema.fields.items() if not _plan(child).nothing}
    values = schema.values if schema.values is not None and not _plan(schema.values).nothing else None
    items = schema.items if schema.items is not None and not _plan(schema.items).nothing else None
    return _Plan(defaults, fields, values, items)


def _deployment(spec: Frozen) -> Frozen:
    spec = lacking(spec, {"progressDeadlineSeconds": 600, "replicas": 1, "revisionHistoryLimit": 10})
    quarter = {"maxSurge": "25%", "maxUnavailable": "25%"}
    spec = put(spec, "strategy", _rolling(spec.get("strategy", EMPTY), quarter))
    return inside(spec, "template", pod_defaults.template)


def _rolling(strategy: Frozen, defaults: Mapping[str, Any]) -> Frozen:
    strategy = unset(strategy, {"type": "RollingUpdate"})
    if strategy["type"] != "RollingUpdate":
        return strategy
    return put(strategy, "rollingUpdate", lacking(strategy.get("rollingUpdate", EMPTY), defaults))


def _replica_set(spec: Frozen) -> Frozen:
    return inside(lacking(spec, {"replicas": 1}), "template", pod_defaults.template)


def _replication_controller(spec: Frozen) -> Frozen:
    labels = (spec.get("template", EMPTY).get("metadata") or EMPTY).get("labels")
    return _replica_set(unset(spec, {"selector": labels}) if labels else spec)


def _daemon_set(spec: Frozen) -> Frozen:
    strategy = _rolling(spec.get("updateStrategy", EMPTY), {"maxSurge": 0, "maxUnavailable": 1})
    spec = put(lacking(spec, {"revisionHistoryLimit": 10}), "updateStrategy", strategy)
    return inside(spec, "template", pod_defaults.template)


def _stateful_set(spec: Frozen) -> Frozen:
    spec = lacking(unset(spec, {"podManagementPolicy": "OrderedReady"}), {"replicas": 1, "revisionHistoryLimit": 10})
    strategy = spec.get("updateStrategy", EMPTY)
    if not strategy.get("type"):
        strategy = lacking(unset(strategy, {"type": "RollingUpdate"}), {"rollingUpdate": EMPTY})
    if strategy["type"] == "RollingUpdate":
        strategy = inside(strategy, "rollingUpdate", lambda rolling: lacking(rolling, {"partition": 0}))
    spec = put(spec, "updateStrategy", strategy)
    retention = spec.get("persistentVolumeClaimRetentionPolicy", EMPTY)
    retention = unset(retention, {"whenDeleted": "Retain", "whenScaled": "Retain"})
    spec = put(spec, "persistentVolumeClaimRetentionPolicy", retention)
    spec = each(spec, "volumeClaimTemplates", _claim_template)
    return inside(spec, "template", pod_defaults.template)


def _claim_template(claim: Frozen) -> Frozen:
    claim = unset(claim, {"apiVersion": "v1", "kind": "PersistentVolumeClaim"})
    claim = put(claim, "status", unset(claim.get("status", EMPTY), {"phase": "Pending"}))
    return inside(claim, "spec", pod_defaults.claim_spec)


def _job(spec: Frozen) -> Frozen:
    if "completions" not in spec and "parallelism" not in spec:
        spec = lacking(spec, {"completions": 1})
    tries = MAX_INT32 if "backoffLimitPerIndex" in spec else 6
    replaced = "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"
    spec = lacking(
        spec,
        {
            "backoffLimit": tries,
            "completionMode": "NonIndexed",
            "manualSelector": False,
            "parallelism": 1,
            "podReplacementPolicy": replaced,
            "suspend": False,
        },
    )
    return _job_template_spec(spec)


def _job_template_spec(spec: Frozen) -> Frozen:
    """What a Job's spec gets also inside a CronJob, whose jobs are completed when they are created."""
    spec = inside(spec, "podFailurePolicy", lambda policy: each(policy, "rules", _failure_rule))
    return inside(spec, "template", pod_defaults.template)


def _failure_rule(rule: Frozen) -> Frozen:
    return each(rule, "onPodConditions", lambda condition: unset(condition, {"status": "True"}))


def _cron_job(spec: Frozen) -> Frozen:
    spec = unset(spec, {"concurrencyPolicy": "Allow"})
    spec = lacking(spec, {"failedJobsHistoryLimit": 1, "successfulJobsHistoryLimit": 3, "suspend": False})
    return inside(spec, "jobTemplate", lambda template: inside(template, "spec", _job_template_spec))


def _service(spec: Frozen) -> Frozen:
    spec = unset(spec, {"sessionAffinity": "None", "type": "ClusterIP"})
    if spec["sessionAffinity"] == "ClientIP":
        config = spec.get("sessionAffinityConfig", EMPTY)
        client = lacking(config.get("clientIP", EMPTY), {"timeoutSeconds": CLIENT_IP_SECONDS})
        spec = put(spec, "sessionAffinityConfig", put(config, "clientIP", client))
    spec = each(spec, "ports", _service_port)
    kind = spec["type"]
    outside = kind in ("NodePort", "LoadBalancer") or (kind == "ClusterIP" and spec.get("externalIPs"))
    if outside:
        spec = unset(spec, {"externalTrafficPolicy": "Cluster"})
    if kind in ("ClusterIP", "NodePort", "LoadBalancer"):
        spec = lacking(spec, {"internalTrafficPolicy": "Cluster"})
    if kind == "LoadBalancer":
        spec = lacking(spec, {"allocateLoadBalancerNodePorts": True})
    return spec


def _service_port(port: Frozen) -> Frozen:
    port = unset(port, {"protocol": "TCP"})
    return unset(port, {"targetPort": port["port"]}) if port.get("port") else port


def _service_status(status: Frozen) -> Frozen:
    def ingress(point: Frozen) -> Frozen:
        return lacking(point, {"ipMode": "VIP"}) if point.get("ip") else point

    return inside(status, "loadBalancer", lambda balancer: each(balancer, "ingress", ingress))


def _claim_status(status: Frozen) -> Frozen:
    status = unset(status, {"phase": "Pending"})
    return inside(status, "capacity", pod_defaults.resource_list)


def _volume_spec(spec: Frozen) -> Frozen:
    spec = unset(spec, {"persistentVolumeReclaimPolicy": "Retain"})
    spec = inside(lacking(spec, {"volumeMode": "Filesystem"}), "capacity", pod_defaults.resource_list)
    return inside(spec, "hostPath", lambda source: lacking(source, {"type": ""}))


def _node_status(status: Frozen) -> Frozen:
    for name in ("capacity", "allocatable"):
        status = inside(status, name, pod_defaults.resource_list)
    return lacking(status, {"allocatable": status["capacity"]}) if "capacity" in status else status


_CPU_METRIC: Final = freeze(
    [
        {
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
        }
    ]
)
_PERCENT: Final = {"type": "Percent", "value": 100, "periodSeconds": 15}
_PODS: Final = {"type": "Pods", "value": 4, "periodSeconds": 15}
_SCALE_UP: Final = freeze({"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [_PODS, _PERCENT]})
_SCALE_DOWN: Final = freeze({"selectPolicy": "Max", "policies": [_PERCENT]})


def _autoscaler(spec: Frozen) -> Frozen:
    spec = unset(lacking(spec, {"minReplicas": 1}), {"metrics": _CPU_METRIC})
    if not isinstance(spec.get("behavior"), dict):
        return spec
    behavior = spec["behavior"]
    for name, default in (("scaleUp", _SCALE_UP), ("scaleDown", _SCALE_DOWN)):
        behavior = put(behavior, name, lacking(behavior.get(name, EMPTY), default))
    return put(spec, "behavior", behavior)


def _ingress_class(spec: Frozen) -> Frozen:
    return inside(spec, "parameters", lambda ref: lacking(ref, {"scope": "Cluster"}))


def _csi_driver(spec: Frozen) -> Frozen:
    flags = ("podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount")
    spec = lacking(spec, {"attachRequired": True, **dict.fromkeys(flags, False)})
    spec = lacking(spec, {"fsGroupPolicy": "ReadWriteOnceWithFSType"})
    return unset(spec, {"volumeLifecycleModes": FrozenList(["Persistent"])})


def _claim_requests(spec: Frozen) -> Frozen:
    return inside(spec, "devices", lambda devices: each(devices, "requests", _device_request))


def _device_request(request: Frozen) -> Frozen:
    return each(inside(request, "exactly", _exact), "firstAvailable", _exact)


def _taint_times(spec: Frozen, time: str) -> Frozen:
    """Taints of devices, set just now where nothing else is said."""
    return each(
        spec, "devices", lambda device: each(device, "taints", lambda taint: lacking(taint, {"timeAdded": time}))
    )


def _toleration(given: Frozen) -> Frozen:
    return unset(given, {"operator": "Equal"})


def _allocated(status: Frozen) -> Frozen:
    def of_device(device: Frozen) -> Frozen:
        return each(device, "tolerations", _toleration)

    return inside(status, "allocation", lambda it: inside(it, "devices", lambda held: each(held, "results", of_device)))


def _exact(request: Frozen) -> Frozen:
    request = each(unset(request, {"allocationMode": "ExactCount"}), "tolerations", _toleration)
    return unset(request, {"count": 1}) if request["allocationMode"] == "ExactCount" else request


def _network_policy(spec: Frozen) -> Frozen:
    if not spec.get("policyTypes"):
        types = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
        spec = put(spec, "policyTypes", FrozenList(types))
    for name in ("ingress", "egress"):
        spec = each(spec, name, lambda rule: each(rule, "ports", lambda port: lacking(port, {"protocol": "TCP"})))
    return lacking(spec, {"podSelector": EMPTY})


def _definition(spec: Frozen) -> Frozen:
    spec = lacking(spec, {"conversion": Frozen({"strategy": "None"})})
    webhook = spec["conversion"].get("webhook", EMPTY).get("clientConfig", EMPTY)
    if isinstance(webhook.get("service"), dict):
        service = lacking(webhook["service"], {"port": 443})
        config = put(webhook, "service", service)
        spec = inside(spec, "conversion", lambda c: inside(c, "webhook", lambda w: put(w, "clientConfig", config)))
    kind = spec.get("names", EMPTY).get("kind", "")
    named = {"singular": kind.lower(), "listKind": f"{kind}List"} if kind else {}
    spec = inside(spec, "names", lambda names: unset(names, named))
    return each(spec, "versions", lambda version: lacking(version, {"served": False, "storage": False}))


def _subject(subject: Frozen) -> Frozen:
    group = "" if subject.get("kind") == "ServiceAccount" else "rbac.authorization.k8s.io"
    return unset(subject, {"apiGroup": group}) if group else subject


def _role_ref(ref: Frozen) -> Frozen:
    return unset(ref, {"apiGroup": "rbac.authorization.k8s.io"})


def _endpoint_port(port: Frozen) -> Frozen:
    return lacking(port, {"name": "", "protocol": "TCP"})


def _subset(subset: Frozen) -> Frozen:
    return each(subset, "ports", lambda port: unset(port, {"protocol": "TCP"}))


def _opaque(text: str) -> str:
    return text or "Opaque"


def _or(default: str) -> Fill:
    return lambda text: text or default


def _listed(fill_one: Callable[[Frozen], Frozen]) -> Fill:
    return lambda items: elements(items, fill_one) if isinstance(items, list) else items


_RBAC: Final = "rbac.authorization.k8s.io"
_ADMISSION: Final = "admissionregistration.k8s.io"
_ACTIVE: Final = Frozen({"phase": "Active"})
_PENDING: Final = Frozen({"phase": "Pending"})

_FILLERS: Final[Mapping[tuple[str, str, str], Fill]] = {
    ("", "Pod", "spec"): pod_defaults.pod_spec,
    ("", "Pod", "status"): pod_defaults.reported_status,
    ("", "PodTemplate", "template"): pod_defaults.template,
    ("", "ReplicationController", "spec"): _replication_controller,
    ("", "Service", "spec"): _service,
    ("", "Service", "status"): _service_status,
    ("", "Endpoints", "subsets"): _listed(_subset),
    ("", "PersistentVolumeClaim", "spec"): pod_defaults.claim_spec,
    ("", "PersistentVolumeClaim", "status"): _claim_status,
    ("", "PersistentVolume", "spec"): _volume_spec,
    ("", "PersistentVolume", "status"): lambda status: unset(status, {"phase": "Pending"}),
    ("", "Namespace", "status"): lambda status: unset(status, {"phase": "Active"}),
    ("", "Node", "status"): _node_status,
    ("", "Secret", "type"): _opaque,
    ("apps", "Deployment", "spec"): _deployment,
    ("apps", "ReplicaSet", "spec"): _replica_set,
    ("apps", "DaemonSet", "spec"): _daemon_set,
    ("apps", "StatefulSet", "spec"): _stateful_set,
    ("batch", "Job", "spec"): _job,
    ("batch", "CronJob", "spec"): _cron_job,
    ("autoscaling", "HorizontalPodAutoscaler", "spec"): _autoscaler,
    ("", "LimitRange", "spec"): quota_rules.fill_limits,
    (*flow_rules.SCHEMA, "spec"): flow_rules.fill_schema,
    (*flow_rules.LEVEL, "spec"): flow_rules.fill_level,
    (*registration_rules.GK, "spec"): registration_rules.fill_spec,
    ("networking.k8s.io", "NetworkPolicy", "spec"): _network_policy,
    ("networking.k8s.io", "IngressClass", "spec"): _ingress_class,
    ("resource.k8s.io", "ResourceClaim", "spec"): _claim_requests,
    ("resource.k8s.io", "ResourceClaim", "status"): _allocated,
    ("resource.k8s.io", "ResourceClaimTemplate", "spec"): lambda spec: inside(spec, "spec", _claim_requests),
    ("storage.k8s.io", "CSIDriver", "spec"): _csi_driver,
    ("apiextensions.k8s.io", "CustomResourceDefinition", "spec"): _definition,
    ("discovery.k8s.io", "EndpointSlice", "ports"): _listed(_endpoint_port),
    ("scheduling.k8s.io", "PriorityClass", "preemptionPolicy"): _or("PreemptLowerPriority"),
    ("storage.k8s.io", "StorageClass", "reclaimPolicy"): _or("Delete"),
    ("storage.k8s.io", "StorageClass", "volumeBindingMode"): _or("Immediate"),
    (_ADMISSION, "ValidatingWebhookConfiguration", "webhooks"): _listed(admission_rules.webhook),
    (_ADMISSION, "MutatingWebhookConfiguration", "webhooks"): _listed(admission_rules.mutating_webhook),
    (_ADMISSION, "ValidatingAdmissionPolicy", "spec"): admission_rules.policy,
    (_ADMISSION, "MutatingAdmissionPolicy", "spec"): admission_rules.policy,
    (_ADMISSION, "ValidatingAdmissionPolicyBinding", "spec"): admission_rules.binding,
    (_ADMISSION, "MutatingAdmissionPolicyBinding", "spec"): admission_rules.binding,
    (_RBAC, "RoleBinding", "roleRef"): _role_ref,
    (_RBAC, "RoleBinding", "subjects"): _listed(_subject),
    (_RBAC, "ClusterRoleBinding", "roleRef"): _role_ref,
    (_RBAC, "ClusterRoleBinding", "subjects"): _listed(_subject),
}

TIMED: Final[Mapping[tuple[str, str], Callable[[Frozen, str], Frozen]]] = {
    ("resource.k8s.io", "ResourceSlice"): _taint_times,
}
"""By kind: (spec, now in RFC 3339) → the spec with the times that nobody set."""

_MISSING: Final[Mapping[tuple[str, str], Mapping[str, Any]]] = {
    ("", "Namespace"): {"spec": EMPTY, "status": _ACTIVE},
    ("", "Secret"): {"type": "Opaque"},
    ("scheduling.k8s.io", "PriorityClass"): {"preemptionPolicy": "PreemptLowerPriority"},
    ("storage.k8s.io", "StorageClass"): {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
}

_STATUS: Final[Mapping[tuple[str, str], Frozen]] = {
    ("", "Namespace"): _ACTIVE,
    ("", "PersistentVolumeClaim"): _PENDING,
    ("", "PersistentVolume"): _PENDING,
}
