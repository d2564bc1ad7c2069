"""The rows of kinds people look at less often: networking, policy, roles, storage, quotas, admission, devices.

Names, types, order and texts are those of Kubernetes' printers (pkg/printers/internalversion, release 1.36), and of
kube-aggregator for APIServices. See `columns`.
"""

from __future__ import annotations

from typing import Any, Final

from steersman.serve.table.ages import age, human
from steersman.serve.table.column import Columns
from steersman.serve.table.labels_text import labels_text, selector_text

GK = tuple[str, str]
NONE: Final = "<none>"
UNSET: Final = "<unset>"
UNKNOWN: Final = "<unknown>"
SHOWN: Final = 3
"""Addresses, hosts and ports shown of a longer list."""


def _age(obj: Any, now: int) -> str:
    return age(obj.metadata.creationTimestamp, now)


def _listed(items: list[str], count: int | None = None, empty: str = UNSET) -> str:
    total = len(items) if count is None else count
    text = ",".join(items[:SHOWN])
    return f"{text} + {total - SHOWN} more..." if total > SHOWN else text or empty


def _given(value: Any, default: Any) -> Any:
    """A field, or what is shown in its absence; zero and false are values."""
    return default if value == None else value  # noqa: E711 - ABSENT equals None


def _ingress(obj: Any, now: int) -> list[Any]:
    spec = obj.spec
    hosts = [rule["host"] for rule in spec.rules if rule.get("host")]
    shown = ",".join(hosts[:SHOWN]) or "*"
    if len(hosts) >= SHOWN and len(spec.rules) > SHOWN:
        shown += f" + {len(spec.rules) - SHOWN} more..."
    points = sorted({p.get("ip") or p.get("hostname") or "" for p in obj.status.loadBalancer.ingress} - {""})
    ports = "80, 443" if spec.tls else "80"
    return [obj.metadata.name, spec.ingressClassName or NONE, shown, ",".join(points), ports, _age(obj, now)]


def _default(obj: Any, annotation: str) -> str:
    marked = (obj.metadata.annotations or {}).get(annotation) == "true"
    return f"{obj.metadata.name} (default)" if marked else str(obj.metadata.name)


def _ingress_class(obj: Any, now: int) -> list[Any]:
    ref, name = obj.spec.parameters, _default(obj, "ingressclass.kubernetes.io/is-default-class")
    shown = f"{ref.kind}{'.' + ref.apiGroup if ref.apiGroup else ''}/{ref.name}" if ref else NONE
    return [name, obj.spec.controller or "", shown, _age(obj, now)]


def _network_policy(obj: Any, now: int) -> list[Any]:
    return [obj.metadata.name, selector_text(obj.spec.podSelector), _age(obj, now)]


_SOURCES: Final = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}


def _metric(spec: Any, status: Any) -> str:
    kind = _SOURCES.get(spec.get("type", ""))
    if kind is None:
        return "<unknown type>"
    source, found = spec.get(kind) or {}, (status or {}).get(kind) or {}
    target, current = source.get("target") or {}, found.get("current") or {}
    average = target.get("averageValue")
    if kind in ("resource", "containerResource"):
        name = source.get("name", "")
        if average is not None:
            return f"{name}: {current.get('averageValue', '0') if found else UNKNOWN}/{average}"
        used, wanted = current.get("averageUtilization"), target.get("averageUtilization")
        shown = UNKNOWN if used is None else f"{used}%"
        return f"{name}: {shown}/{'<auto>' if wanted is None else f'{wanted}%'}"
    if kind == "pods":
        return f"{current.get('averageValue', '0') if found else UNKNOWN}/{average}"
    if average is not None:
        return f"{current.get('averageValue', UNKNOWN)}/{average} (avg)"
    return f"{current.get('value', '0') if found else UNKNOWN}/{target.get('value')}"


def _autoscaler(obj: Any, now: int) -> list[Any]:
    spec, status, ref = obj.spec, obj.status, obj.spec.scaleTargetRef
    told = list(status.currentMetrics)
    shown = [_metric(m, told[i] if i < len(told) else None) for i, m in enumerate(spec.metrics)]
    metrics = ", ".join(shown[:2]) or NONE
    if len(shown) > 2:
        metrics += f" + {len(shown) - 2} more..."
    least = _given(spec.minReplicas, None)
    return [
        obj.metadata.name,
        f"{ref.kind or ''}/{ref.name or ''}",
        metrics,
        UNSET if least is None else str(least),
        spec.maxReplicas or 0,
        status.currentReplicas or 0,
        _age(obj, now),
    ]


def _budget(obj: Any, now: int) -> list[Any]:
    bounds = [str(_given(bound, "N/A")) for bound in (obj.spec.minAvailable, obj.spec.maxUnavailable)]
    return [obj.metadata.name, *bounds, obj.status.disruptionsAllowed or 0, _age(obj, now)]


def _containers(template: Any) -> list[str]:
    containers = template.spec.containers
    return [",".join(c.get(field, "") for c in containers) for field in ("name", "image")]


def _replication_controller(obj: Any, now: int) -> list[Any]:
    status = obj.status
    counts = [obj.spec.replicas or 0, status.replicas or 0, status.readyReplicas or 0]
    return [obj.metadata.name, *counts, _age(obj, now), *_containers(obj.spec.template), labels_text(obj.spec.selector)]


def _pod_template(obj: Any, _now: int) -> list[Any]:
    return [obj.metadata.name, *_containers(obj.template), labels_text(obj.template.metadata.labels)]


def _endpoints(obj: Any, now: int) -> list[Any]:
    found: list[str] = []
    for subset in obj.subsets:
        ports = subset.get("ports") or [None]
        for port in ports:
            for address in subset.get("addresses") or ():
                ip = address.get("ip", "")
                host = f"[{ip}]" if ":" in ip else ip
                found.append(ip if port is None else f"{host}:{port.get('port', 0)}")
    return [obj.metadata.name, _listed(found, empty=NONE if not obj.subsets else ""), _age(obj, now)]


def _endpoint_slice(obj: Any, now: int) -> list[Any]:
    ports = [str(port.get("port") if port.get("port") is not None else port.get("name") or "*") for port in obj.ports]
    addresses = [address for endpoint in obj.endpoints for address in endpoint.get("addresses") or ()]
    return [obj.metadata.name, obj.addressType or "", _listed(ports), _listed(addresses), _age(obj, now)]


def _binding(obj: Any, now: int) -> list[Any]:
    ref = obj.roleRef
    named: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in obj.subjects:
        name = subject.get("name", "")
        if subject.get("kind") == "ServiceAccount" and subject.get("namespace"):
            name = f"{subject['namespace']}/{name}"
        named.setdefault(subject.get("kind", ""), []).append(name)
    shown = [", ".join(named[kind]) for kind in ("User", "Group", "ServiceAccount")]
    return [obj.metadata.name, f"{ref.kind or ''}/{ref.name or ''}", _age(obj, now), *shown]


def _signing_request(obj: Any, now: int) -> list[Any]:
    spec, told = obj.spec, {condition.get("type") for condition in obj.status.conditions}
    state = "Denied" if "Denied" in told else "Approved" if "Approved" in told else "Pending"
    state += (",Failed" if "Failed" in told else "") + (",Issued" if obj.status.certificate else "")
    seconds = _given(spec.expirationSeconds, None)
    lasts = NONE if seconds is None else human(seconds)
    return [obj.metadata.name, _age(obj, now), spec.signerName or NONE, spec.username or "", lasts, state]


def _storage_class(obj: Any, now: int) -> list[Any]:
    return [
        _default(obj, "storageclass.kubernetes.io/is-default-class"),
        obj.provisioner or "",
        obj.reclaimPolicy or "Delete",
        obj.volumeBindingMode or "Immediate",
        bool(obj.allowVolumeExpansion),
        _age(obj, now),
    ]


def _attributes_class(obj: Any, now: int) -> list[Any]:
    return [obj.metadata.name, obj.driverName or "", _age(obj, now)]


def _priority_class(obj: Any, now: int) -> list[Any]:
    policy = obj.preemptionPolicy or ""
    return [obj.metadata.name, obj.value or 0, bool(obj.globalDefault), _age(obj, now), policy]


def _runtime_class(obj: Any, now: int) -> list[Any]:
    return [obj.metadata.name, obj.handler or "", _age(obj, now)]


def _attachment(obj: Any, now: int) -> list[Any]:
    spec = obj.spec
    volume = spec.source.persistentVolumeName or ""
    attached = bool(obj.status.attached)
    return [obj.metadata.name, spec.attacher or "", volume, spec.nodeName or "", attached, _age(obj, now)]


def _csi_node(obj: Any, now: int) -> list[Any]:
    return [obj.metadata.name, len(obj.spec.drivers), _age(obj, now)]


def _csi_driver(obj: Any, now: int) -> list[Any]:
    spec = obj.spec
    audiences = ",".join(request.get("audience", "") for request in spec.tokenRequests)
    return [
        obj.metadata.name,
        bool(_given(spec.attachRequired, True)),
        bool(spec.podInfoOnMount),
        bool(spec.storageCapacity),
        audiences if spec.tokenRequests else UNSET,
        bool(spec.requiresRepublish),
        ",".join(spec.volumeLifecycleModes) or NONE,
        _age(obj, now),
    ]


def _revision(obj: Any, now: int) -> list[Any]:
    owner = next((ref for ref in obj.metadata.ownerReferences if ref.get("controller")), None)
    shown = NONE
    if owner is not None:
        group = owner.get("apiVersion", "").rpartition("/")[0]
        shown = f"{owner.get('kind', '').lower()}{'.' + group if group else ''}/{owner.get('name', '')}"
    return [obj.metadata.name, shown, obj.revision or 0, _age(obj, now)]


def _quota(obj: Any, now: int) -> list[Any]:
    hard, used = obj.status.hard or {}, obj.status.used or {}
    shown: dict[bool, list[str]] = {False: [], True: []}
    for name in sorted(hard):
        shown[name.startswith("limits.")].append(f"{name}: {used.get(name, '0')}/{hard[name]}")
    return [obj.metadata.name, ", ".join(shown[False]), ", ".join(shown[True]), _age(obj, now)]


def _component(obj: Any, _now: int) -> list[Any]:
    healthy = next((c for c in obj.conditions if c.get("type") == "Healthy"), None)
    if healthy is None:
        return [obj.metadata.name, "Unknown", "", ""]
    state = "Healthy" if healthy.get("status") == "True" else "Unhealthy"
    return [obj.metadata.name, state, healthy.get("message", ""), healthy.get("error", "")]


def _api_service(obj: Any, now: int) -> list[Any]:
    service = obj.spec.service
    name = f"{service.namespace}/{service.name}" if service else "Local"
    told = next((c for c in obj.status.conditions if c.get("type") == "Available"), None)
    state = "Unknown" if told is None else told.get("status", "")
    if state == "False" and told is not None:
        state = f"False ({told.get('reason', '')})"
    return [obj.metadata.name, name, state, _age(obj, now)]


def _claim(obj: Any, now: int) -> list[Any]:
    gone, status = bool(obj.metadata.deletionTimestamp), obj.status
    states = ["deleted"] if gone else []
    if status.allocation:
        states += ["allocated", "reserved"] if status.reservedFor else ["allocated"]
    elif not gone:
        states.append("pending")
    return [obj.metadata.name, ",".join(states), _age(obj, now)]


def _slice(obj: Any, now: int) -> list[Any]:
    spec = obj.spec
    return [obj.metadata.name, spec.nodeName or "", spec.driver or "", spec.pool.name or "", _age(obj, now)]


def _cidr(obj: Any, now: int) -> list[Any]:
    return [obj.metadata.name, ",".join(obj.spec.cidrs), _age(obj, now)]


def _address(obj: Any, now: int) -> list[Any]:
    ref, shown = obj.spec.parentRef, NONE
    if ref:
        shown = f"{ref.resource or ''}{'.' + ref.group if ref.group else ''}".lower()
        shown += f"/{ref.namespace}" if ref.namespace else ""
        shown += f"/{ref.name or ''}"
    return [obj.metadata.name, shown, _age(obj, now)]


def _webhooks(obj: Any, now: int) -> list[Any]:
    return [obj.metadata.name, len(obj.webhooks), _age(obj, now)]


def _admission_policy(obj: Any, now: int) -> list[Any]:
    kind = obj.spec.paramKind
    shown = f"{kind.apiVersion or ''}/{kind.kind or ''}" if kind else UNSET
    return [obj.metadata.name, len(obj.spec.validations or obj.spec.mutations), shown, _age(obj, now)]


def _policy_binding(obj: Any, now: int) -> list[Any]:
    ref, shown = obj.spec.paramRef, UNSET
    if ref and ref.name:
        shown = f"{ref.namespace or '*'}/{ref.name}"
    elif ref and ref.selector:
        shown = selector_text(ref.selector)
    return [obj.metadata.name, obj.spec.policyName or "", shown, _age(obj, now)]


def _flow_schema(obj: Any, now: int) -> list[Any]:
    spec = obj.spec
    dangling = next((c.get("status", "?") for c in obj.status.conditions if c.get("type") == "Dangling"), "?")
    method = spec.distinguisherMethod.type or NONE
    level = spec.priorityLevelConfiguration.name or ""
    return [obj.metadata.name, level, spec.matchingPrecedence or 0, method, _age(obj, now), dangling]


def _priority_level(obj: Any, now: int) -> list[Any]:
    limited = obj.spec.limited
    queues: list[Any] = [NONE] * 3
    if limited and limited.limitResponse.queuing:
        found = limited.limitResponse.queuing
        queues = [found.queues or 0, found.handSize or 0, found.queueLengthLimit or 0]
    shares = _given(limited.nominalConcurrencyShares, NONE)
    return [obj.metadata.name, obj.spec.type or "", shares, *queues, _age(obj, now)]


_ADMISSION: Final = "admissionregistration.k8s.io"
_FLOW: Final = "flowcontrol.apiserver.k8s.io"
_NET: Final = "networking.k8s.io"
_RBAC: Final = "rbac.authorization.k8s.io"
_STORAGE: Final = "storage.k8s.io"
_BINDING: Final = Columns(("Name", "Role", "Age", "Users*", "Groups*", "ServiceAccounts*"), _binding)
_HOOKS: Final = Columns(("Name", "#Webhooks", "Age"), _webhooks)
_VALIDATING: Final = Columns(("Name", "#Validations", "ParamKind", "Age"), _admission_policy)
_MUTATING: Final = Columns(("Name", "#Mutations", "ParamKind", "Age"), _admission_policy)
_POLICY_BINDING: Final = Columns(("Name", "PolicyName", "ParamRef", "Age"), _policy_binding)

KIND_COLUMNS: Final[dict[GK, Columns]] = {
    ("", "ReplicationController"): Columns(
        ("Name", "#Desired", "#Current", "#Ready", "Age", "Containers*", "Images*", "Selector*"),
        _replication_controller,
    ),
    ("", "PodTemplate"): Columns(("Name", "Containers", "Images", "Pod Labels"), _pod_template),
    ("", "Endpoints"): Columns(("Name", "Endpoints", "Age"), _endpoints),
    ("", "ResourceQuota"): Columns(("Name", "Request", "Limit", "Age"), _quota),
    ("", "ComponentStatus"): Columns(("Name", "Status", "Message", "Error"), _component),
    ("discovery.k8s.io", "EndpointSlice"): Columns(
        ("Name", "AddressType", "Ports", "Endpoints", "Age"), _endpoint_slice
    ),
    ("apps", "ControllerRevision"): Columns(("Name", "Controller", "Revision", "Age"), _revision),
    ("autoscaling", "HorizontalPodAutoscaler"): Columns(
        ("Name", "Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age"), _autoscaler
    ),
    ("policy", "PodDisruptionBudget"): Columns(
        ("Name", "Min Available", "Max Unavailable", "#Allowed Disruptions", "Age"), _budget
    ),
    (_NET, "Ingress"): Columns(("Name", "Class", "Hosts", "Address", "Ports", "Age"), _ingress),
    (_NET, "IngressClass"): Columns(("Name", "Controller", "Parameters", "Age"), _ingress_class),
    (_NET, "NetworkPolicy"): Columns(("Name", "Pod-Selector", "Age"), _network_policy),
    (_NET, "ServiceCIDR"): Columns(("Name", "CIDRs", "Age"), _cidr),
    (_NET, "IPAddress"): Columns(("Name", "ParentRef", "Age"), _address),
    (_RBAC, "RoleBinding"): _BINDING,
    (_RBAC, "ClusterRoleBinding"): _BINDING,
    ("certificates.k8s.io", "CertificateSigningRequest"): Columns(
        ("Name", "Age", "SignerName", "Requestor", "RequestedDuration", "Condition"), _signing_request
    ),
    (_STORAGE, "StorageClass"): Columns(
        ("Name", "Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion", "Age"), _storage_class
    ),
    (_STORAGE, "VolumeAttributesClass"): Columns(("Name", "DriverName", "Age"), _attributes_class),
    (_STORAGE, "VolumeAttachment"): Columns(("Name", "Attacher", "PV", "Node", "?Attached", "Age"), _attachment),
    (_STORAGE, "CSINode"): Columns(("Name", "#Drivers", "Age"), _csi_node),
    (_STORAGE, "CSIDriver"): Columns(
        (
            *("Name", "?AttachRequired", "?PodInfoOnMount", "?StorageCapacity", "TokenRequests"),
            *("?RequiresRepublish", "Modes", "Age"),
        ),
        _csi_driver,
    ),
    ("scheduling.k8s.io", "PriorityClass"): Columns(
        ("Name", "#Value", "?Global-Default", "Age", "PreemptionPolicy"), _priority_class
    ),
    ("node.k8s.io", "RuntimeClass"): Columns(("Name", "Handler", "Age"), _runtime_class),
    ("resource.k8s.io", "ResourceClaim"): Columns(("Name", "State", "Age"), _claim),
    ("resource.k8s.io", "ResourceSlice"): Columns(("Name", "Node", "Driver", "Pool", "Age"), _slice),
    ("apiregistration.k8s.io", "APIService"): Columns(("Name", "Service", "Available", "Age"), _api_service),
    (_ADMISSION, "MutatingWebhookConfiguration"): _HOOKS,
    (_ADMISSION, "ValidatingWebhookConfiguration"): _HOOKS,
    (_ADMISSION, "ValidatingAdmissionPolicy"): _VALIDATING,
    (_ADMISSION, "MutatingAdmissionPolicy"): _MUTATING,
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): _POLICY_BINDING,
    (_ADMISSION, "MutatingAdmissionPolicyBinding"): _POLICY_BINDING,
    (_FLOW, "FlowSchema"): Columns(
        ("Name", "PriorityLevel", "MatchingPrecedence", "DistinguisherMethod", "Age", "MissingPL"), _flow_schema
    ),
    (_FLOW, "PriorityLevelConfiguration"): Columns(
        ("Name", "Type", "NominalConcurrencyShares", "Queues", "HandSize", "QueueLengthLimit", "Age"),
        _priority_level,
    ),
}
