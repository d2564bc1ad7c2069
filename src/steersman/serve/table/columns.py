"""The columns `kubectl get` shows for each kind, with the function that fills a row.

Names, order, priorities (1: only with `-o wide`) and cell texts are those of Kubernetes' own printers
(pkg/printers/internalversion, release 1.36), since people and scripts read them. Kinds without an entry have NAME and
AGE; custom kinds have what their definition says (`custom_columns`). Cells read frozen values by attribute: what is
absent is falsy and empty.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from steersman.api.kinds import Kind
from steersman.kernel.value import freeze
from steersman.serve.table.ages import age, between
from steersman.serve.table.column import Columns
from steersman.serve.table.custom_columns import custom_columns
from steersman.serve.table.kind_rows import KIND_COLUMNS
from steersman.serve.table.labels_text import selector_text
from steersman.serve.table.pod_row import NONE, pod_cells

GK = tuple[str, str]


def _plain(obj: Any, now: int) -> list[Any]:
    return [obj.metadata.name, age(obj.metadata.creationTimestamp, now)]


PLAIN: Final = Columns(("Name", "Age"), _plain)


def _template(obj: Any, selector: bool = True) -> list[Any]:
    """Containers, images and selector of a workload."""
    containers = obj.spec.template.spec.containers
    cells = [",".join(c["name"] for c in containers), ",".join(c.get("image", "") for c in containers)]
    return [*cells, selector_text(obj.spec.selector)] if selector else cells


def _deployment(obj: Any, now: int) -> list[Any]:
    status = obj.status
    wanted = obj.spec.replicas
    return [
        obj.metadata.name,
        f"{status.readyReplicas or 0}/{0 if wanted == None else wanted}",  # noqa: E711 - ABSENT equals None
        status.updatedReplicas or 0,
        status.availableReplicas or 0,
        age(obj.metadata.creationTimestamp, now),
        *_template(obj),
    ]


def _replicaset(obj: Any, now: int) -> list[Any]:
    status = obj.status
    counts = [obj.spec.replicas or 0, status.replicas or 0, status.readyReplicas or 0]
    return [obj.metadata.name, *counts, age(obj.metadata.creationTimestamp, now), *_template(obj)]


def _statefulset(obj: Any, now: int) -> list[Any]:
    ready = f"{obj.status.readyReplicas or 0}/{obj.spec.replicas or 0}"
    return [obj.metadata.name, ready, age(obj.metadata.creationTimestamp, now), *_template(obj, selector=False)]


def _daemonset(obj: Any, now: int) -> list[Any]:
    s = obj.status
    counts = [s.desiredNumberScheduled, s.currentNumberScheduled, s.numberReady, s.updatedNumberScheduled]
    nodes = obj.spec.template.spec.nodeSelector or {}
    return [
        obj.metadata.name,
        *[count or 0 for count in counts],
        s.numberAvailable or 0,
        ",".join(f"{key}={value}" for key, value in sorted(nodes.items())) or NONE,
        age(obj.metadata.creationTimestamp, now),
        *_template(obj),
    ]


def _namespace(obj: Any, now: int) -> list[Any]:
    return [obj.metadata.name, obj.status.phase or "", age(obj.metadata.creationTimestamp, now)]


def _node(obj: Any, now: int) -> list[Any]:
    status = obj.status
    told = [c for c in status.conditions if c.get("type") == "Ready"]
    state = ("Ready" if told[0].get("status") == "True" else "NotReady") if told else "Unknown"
    if obj.spec.unschedulable:
        state += ",SchedulingDisabled"
    roles = set()
    for label, value in (obj.metadata.labels or {}).items():
        if label.startswith("node-role.kubernetes.io/") and label.partition("/")[2]:
            roles.add(label.partition("/")[2])
        elif label == "kubernetes.io/role" and value:
            roles.add(value)
    info = status.nodeInfo
    addresses = {a.get("type"): a.get("address") for a in reversed(list(status.addresses))}
    return [
        obj.metadata.name,
        state,
        ",".join(sorted(roles)) or NONE,
        age(obj.metadata.creationTimestamp, now),
        info.kubeletVersion or "",
        addresses.get("InternalIP") or NONE,
        addresses.get("ExternalIP") or NONE,
        info.osImage or "<unknown>",
        info.kernelVersion or "<unknown>",
        info.containerRuntimeVersion or "<unknown>",
    ]


def _service(obj: Any, now: int) -> list[Any]:
    spec = obj.spec
    kind = spec.type or "ClusterIP"
    outside = list(spec.externalIPs)
    if kind == "ExternalName":
        external = spec.externalName or NONE
    elif kind == "LoadBalancer":
        ingress = [i.get("ip") or i.get("hostname") or "" for i in obj.status.loadBalancer.ingress]
        external = ",".join([*ingress, *outside]) or "<pending>"
    else:
        external = ",".join(outside) or NONE
    ports = []
    for port in spec.ports:
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        ports.append(f"{port.get('port')}{node}/{port.get('protocol', 'TCP')}")
    address = next(iter(spec.clusterIPs), spec.clusterIP or NONE)
    selector = ",".join(f"{key}={value}" for key, value in sorted((spec.selector or {}).items()))
    shown_age = age(obj.metadata.creationTimestamp, now)
    return [obj.metadata.name, kind, address, external, ",".join(ports) or NONE, shown_age, selector or NONE]


def _configmap(obj: Any, now: int) -> list[Any]:
    size = len(obj.data) + len(obj.binaryData)
    return [obj.metadata.name, size, age(obj.metadata.creationTimestamp, now)]


def _secret(obj: Any, now: int) -> list[Any]:
    return [obj.metadata.name, obj.type or "", len(obj.data), age(obj.metadata.creationTimestamp, now)]


def _job(obj: Any, now: int) -> list[Any]:
    status, spec = obj.status, obj.spec
    holds = [c.get("type") for c in status.conditions if c.get("status") == "True"]
    known = ("Complete", "Failed")
    state = next((condition for condition in known if condition in holds), "")
    if not state and obj.metadata.deletionTimestamp:
        state = "Terminating"
    rest = (
        ("Suspended", "Suspended"),
        ("FailureTarget", "FailureTarget"),
        ("SuccessCriteriaMet", "SuccessCriteriaMet"),
    )
    state = state or next((shown for condition, shown in rest if condition in holds), "Running")
    done = status.succeeded or 0
    if spec.completions:
        completions = f"{done}/{spec.completions}"
    else:
        completions = f"{done}/1 of {spec.parallelism}" if (spec.parallelism or 0) > 1 else f"{done}/1"
    duration = ""
    if status.startTime:
        duration = (
            between(status.startTime, status.completionTime) if status.completionTime else age(status.startTime, now)
        )
    created = age(obj.metadata.creationTimestamp, now)
    return [obj.metadata.name, state, completions, duration, created, *_template(obj)]


def _cronjob(obj: Any, now: int) -> list[Any]:
    spec, last = obj.spec, obj.status.lastScheduleTime
    containers = spec.jobTemplate.spec.template.spec.containers
    return [
        obj.metadata.name,
        spec.schedule or "",
        spec.timeZone or NONE,
        str(bool(spec.suspend)),
        len(obj.status.active),
        age(last, now) if last else NONE,
        age(obj.metadata.creationTimestamp, now),
        ",".join(c["name"] for c in containers),
        ",".join(c.get("image", "") for c in containers),
        selector_text(spec.jobTemplate.spec.selector),
    ]


def _event(obj: Any, now: int) -> list[Any]:
    first = age(obj.firstTimestamp or obj.eventTime, now)
    series = obj.series
    last = age(series.lastObservedTime, now) if series else age(obj.lastTimestamp, now) if obj.lastTimestamp else first
    count = (series.count if series else obj.get("count")) or 1
    about = obj.involvedObject
    target = (about.kind or "").lower() + (f"/{about.name}" if about.name else "")
    component = obj.source.component or obj.reportingComponent or ""
    host = obj.source.host or obj.reportingInstance or ""
    return [
        last,
        obj.type or "",
        obj.reason or "",
        target,
        about.fieldPath or "",
        f"{component}, {host}" if host else component,
        (obj.message or "").strip(),
        first,
        count,
        obj.metadata.name,
    ]


MODES: Final = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _modes(modes: Any) -> str:
    return ",".join(short for mode, short in MODES.items() if mode in modes)


def _claim(obj: Any, now: int) -> list[Any]:
    spec, status = obj.spec, obj.status
    bound = bool(spec.volumeName)
    return [
        obj.metadata.name,
        "Terminating" if obj.metadata.deletionTimestamp else status.phase or "",
        spec.volumeName or "",
        (status.capacity.storage or "0") if bound else "",
        _modes(status.accessModes) if bound else "",
        spec.storageClassName or "",
        spec.volumeAttributesClassName or "<unset>",
        age(obj.metadata.creationTimestamp, now),
        spec.volumeMode or "<unset>",
    ]


def _volume(obj: Any, now: int) -> list[Any]:
    spec, status = obj.spec, obj.status
    claim = spec.claimRef
    return [
        obj.metadata.name,
        spec.capacity.storage or "0",
        _modes(spec.accessModes),
        spec.persistentVolumeReclaimPolicy or "",
        "Terminating" if obj.metadata.deletionTimestamp else status.phase or "",
        f"{claim.namespace or ''}/{claim.name or ''}" if claim else "",
        spec.storageClassName or "",
        spec.volumeAttributesClassName or "<unset>",
        status.reason or "",
        age(obj.metadata.creationTimestamp, now),
        spec.volumeMode or "<unset>",
    ]


def _lease(obj: Any, now: int) -> list[Any]:
    return [obj.metadata.name, obj.spec.holderIdentity or "", age(obj.metadata.creationTimestamp, now)]


def _created_at(obj: Any, _now: int) -> list[Any]:
    return [obj.metadata.name, obj.metadata.creationTimestamp or "<unknown>"]


_CREATED: Final = Columns(("Name", "Created At"), _created_at)
"""Of kinds for which kube-apiserver has no printer."""
_WORKLOAD: Final = ("Containers*", "Images*", "Selector*")
COLUMNS: Final[dict[GK, Columns]] = {
    **KIND_COLUMNS,
    ("", "Pod"): Columns(
        ("Name", "Ready", "Status", "Restarts", "Age", "IP*", "Node*", "Nominated Node*", "Readiness Gates*"), pod_cells
    ),
    ("apps", "Deployment"): Columns(("Name", "Ready", "Up-to-date", "Available", "Age", *_WORKLOAD), _deployment),
    ("apps", "ReplicaSet"): Columns(("Name", "#Desired", "#Current", "#Ready", "Age", *_WORKLOAD), _replicaset),
    ("apps", "StatefulSet"): Columns(("Name", "Ready", "Age", "Containers*", "Images*"), _statefulset),
    ("apps", "DaemonSet"): Columns(
        (
            *("Name", "#Desired", "#Current", "#Ready", "#Up-to-date", "#Available", "Node Selector", "Age"),
            *_WORKLOAD,
        ),
        _daemonset,
    ),
    ("", "Namespace"): Columns(("Name", "Status", "Age"), _namespace),
    ("", "Node"): Columns(
        (
            *("Name", "Status", "Roles", "Age", "Version", "Internal-IP*", "External-IP*", "OS-Image*"),
            *("Kernel-Version*", "Container-Runtime*"),
        ),
        _node,
    ),
    ("", "Service"): Columns(("Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "Selector*"), _service),
    ("", "ConfigMap"): Columns(("Name", "Data", "Age"), _configmap),
    ("", "Secret"): Columns(("Name", "Type", "Data", "Age"), _secret),
    ("", "ServiceAccount"): PLAIN,
    ("batch", "Job"): Columns(("Name", "Status", "Completions", "Duration", "Age", *_WORKLOAD), _job),
    ("batch", "CronJob"): Columns(
        ("Name", "Schedule", "Timezone", "?Suspend", "#Active", "Last Schedule", "Age", *_WORKLOAD), _cronjob
    ),
    ("", "Event"): Columns(
        (
            *("Last Seen", "Type", "Reason", "Object", "Subobject*", "Source*", "Message", "First Seen*"),
            *("Count*", "Name*"),
        ),
        _event,
    ),
    ("", "PersistentVolumeClaim"): Columns(
        (
            *("Name", "Status", "Volume", "Capacity", "Access Modes", "StorageClass", "VolumeAttributesClass"),
            *("Age", "VolumeMode*"),
        ),
        _claim,
    ),
    ("", "PersistentVolume"): Columns(
        (
            *("Name", "Capacity", "Access Modes", "Reclaim Policy", "Status", "Claim", "StorageClass"),
            *("VolumeAttributesClass", "Reason", "Age", "VolumeMode*"),
        ),
        _volume,
    ),
    ("coordination.k8s.io", "Lease"): Columns(("Name", "Holder", "Age"), _lease),
    ("", "LimitRange"): _CREATED,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _CREATED,
    ("rbac.authorization.k8s.io", "Role"): _CREATED,
    ("rbac.authorization.k8s.io", "ClusterRole"): _CREATED,
    ("storage.k8s.io", "CSIStorageCapacity"): _CREATED,
}


@lru_cache(1 << 10)
def columns_of(kind: Kind) -> Columns:
    """The columns of a kind."""
    if kind.origin is not None:
        return custom_columns(kind.origin)
    columns = COLUMNS.get(kind.gk, PLAIN)
    if kind.alias is None:
        return columns
    down, row = kind.alias.down, columns.row  # rows are written for the stored shape
    return columns._replace(row=lambda obj, now: row(freeze(down(obj)), now))
