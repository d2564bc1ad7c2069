"""Quota: what an object counts for, and which quotas count it.

Usage is a function of the objects there are. Whoever asks (admission, the quota controller) sums it over the store; no
running number can drift from what it counts. Source of the facts: kubernetes `pkg/quota/v1` (evaluators of pods,
services and claims), apiserver `pkg/quota/v1` (generic counts), release 1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from steersman.api import pod_resources
from steersman.api.kinds import Kind
from steersman.api.pod_defaults import qos_class
from steersman.api.pod_resources import Amounts
from steersman.api.quantity import NANO, Quantity
from steersman.api.rules.rules import native
from steersman.api.times import parse_time
from steersman.kernel.effect import MICRO
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
POD: Final = ("", "Pod")
SERVICE: Final = ("", "Service")
CLAIM: Final = ("", "PersistentVolumeClaim")
EVENTS: Final = frozenset({("", "Event"), ("events.k8s.io", "Event")})
"""Kinds that no quota counts."""
ALIASES: Final[Mapping[tuple[str, str], str]] = {
    ("", "ConfigMap"): "configmaps",
    ("", "ResourceQuota"): "resourcequotas",
    ("", "ReplicationController"): "replicationcontrollers",
    ("", "Secret"): "secrets",
}
"""Older names of counts."""
COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
POD_NAMES: Final = frozenset(["pods", *[p + n for n in COMPUTE for p in ("", "requests.", "limits.")]])
SERVICE_NAMES: Final = frozenset({"services", "services.nodeports", "services.loadbalancers"})
CLAIM_NAMES: Final = ("persistentvolumeclaims", "requests.storage")
BY_CLASS: Final = ".storageclass.storage.k8s.io/"
MUST_BE_SET: Final = tuple(p + n for n in ("cpu", "memory") for p in ("", "requests.", "limits."))
"""Resources that every container has to name where a quota counts them."""
CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"


def one(count: int = 1) -> Quantity:
    """A plain number."""
    return Quantity(count * NANO)


def count_name(kind: Kind) -> str:
    """The resource that counts objects of a kind: `count/deployments.apps`."""
    return f"count/{kind.resource}"


def concerns(kind: Kind, names: Iterable[str]) -> list[str]:
    """Those of a quota's resources that objects of this kind use, sorted."""
    return sorted(name for name in names if _is_of(kind, name))


def _is_of(kind: Kind, name: str) -> bool:
    if name == count_name(kind) or name == ALIASES.get(kind.gk):
        return True
    if kind.gk == POD:
        if name.startswith(("hugepages-", "requests.hugepages-")) or name in POD_NAMES:
            return True
        extended = not native(name) or name.startswith("requests.deviceclass.resource.kubernetes.io/")
        return extended and name.startswith("requests.")
    if kind.gk == CLAIM:
        return name in CLAIM_NAMES or name.endswith(tuple(BY_CLASS + part for part in CLAIM_NAMES))
    return kind.gk == SERVICE and name in SERVICE_NAMES


# -- usage -----------------------------------------------------------------------------------------------------


def usage(kind: Kind, value: Json, now: int) -> Amounts:
    """Resource → what this object uses at `now` (microseconds), by every name it goes by."""
    out = {count_name(kind): one()}
    if kind.gk in ALIASES:
        out[ALIASES[kind.gk]] = one()
    if kind.gk == POD:
        if not ended(value, now):
            out.update(_pod(value.get("spec") or EMPTY))
    elif kind.gk == SERVICE:
        out.update(_service(value.get("spec") or EMPTY))
    elif kind.gk == CLAIM:
        out.update(_claim(value))
    return out


def ended(pod: Json, now: int) -> bool:
    """Whether a pod uses nothing any more: it is done, or should have been gone by now."""
    if (pod.get("status") or EMPTY).get("phase") in ("Succeeded", "Failed"):
        return True
    due = overdue_at(pod)
    return due is not None and now > due


def overdue_at(pod: Json) -> int | None:
    """When a pod under deletion stops counting, in microseconds; None when it is not under deletion."""
    meta = pod["metadata"]
    begun, grace = meta.get("deletionTimestamp"), meta.get("deletionGracePeriodSeconds")
    return None if not begun or grace is None else parse_time(begun) + grace * MICRO


def _pod(spec: Json) -> Amounts:
    requests, limits = pod_resources.totals(spec, "requests"), pod_resources.totals(spec, "limits")
    overhead = pod_resources.parsed(spec.get("overhead"))
    pod_resources.add(requests, overhead)
    pod_resources.add(limits, {name: amount for name, amount in overhead.items() if name in limits})
    return _compute(requests, limits)


def _compute(requests: Amounts, limits: Amounts) -> Amounts:
    out = {"pods": one()}
    for name in COMPUTE:
        if name in requests:
            out[name] = out[f"requests.{name}"] = requests[name]
        if name in limits:
            out[f"limits.{name}"] = limits[name]
    for name, amount in requests.items():
        if name.startswith("hugepages-"):
            out[name] = out[f"requests.{name}"] = amount
        elif not native(name) or name.startswith("deviceclass.resource.kubernetes.io/"):
            out[f"requests.{name}"] = amount
    return out


def _service(spec: Json) -> Amounts:
    ports = spec.get("ports") or ()
    out = {"services": one(), "services.loadbalancers": one(0), "services.nodeports": one(0)}
    if spec.get("type") == "NodePort":
        out["services.nodeports"] = one(len(ports))
    elif spec.get("type") == "LoadBalancer":
        chosen = ports
        if spec.get("allocateLoadBalancerNodePorts") is False:
            chosen = [port for port in ports if port.get("nodePort")]
        out["services.nodeports"] = one(len(chosen))
        out["services.loadbalancers"] = one()
    return out


def _claim(value: Json) -> Amounts:
    spec = value.get("spec") or EMPTY
    notes = value["metadata"].get("annotations") or EMPTY
    name = notes.get(CLASS_ANNOTATION, spec.get("storageClassName") or "")
    out = {"persistentvolumeclaims": one()}
    asked = pod_resources.of(spec, "requests").get("storage")
    if asked is not None:
        given = pod_resources.parsed((value.get("status") or EMPTY).get("allocatedResources")).get("storage")
        size = given if given is not None and given > asked else asked
        out["requests.storage"] = size if size.nano % NANO == 0 else Quantity(size.value() * NANO, size.format)
    if name:
        out.update({f"{name}{BY_CLASS}{part}": amount for part, amount in list(out.items())})
    return out


# -- which quota counts what -----------------------------------------------------------------------------------


def counts(kind: Kind, value: Json, spec: Json) -> bool:
    """Whether a quota of this spec counts the object at all: its resources and every one of its scopes match."""
    scopes = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    scopes += (spec.get("scopeSelector") or EMPTY).get("matchExpressions") or ()
    if not concerns(kind, spec.get("hard") or ()):
        return False
    return all(_in_scope(kind, value, scope) for scope in scopes)


def _in_scope(kind: Kind, value: Json, scope: Json) -> bool:
    spec, name = value.get("spec") or EMPTY, scope.get("scopeName", "")
    if kind.gk == CLAIM and name == "VolumeAttributesClass":
        return _selects(scope, _attribute_classes(value))
    rule = _POD_SCOPES.get(name) if kind.gk == POD else None
    if name == "PriorityClass" and kind.gk == POD:
        found = spec.get("priorityClassName")
        return _selects(scope, [found] if found else [])
    return rule is not None and rule(spec)


def _selects(scope: Json, found: list[str]) -> bool:
    wanted, operator = scope.get("values") or (), scope.get("operator")
    if operator == "Exists":
        return bool(found)
    if operator == "DoesNotExist":
        return not found
    if operator == "NotIn":
        return not found or any(name not in wanted for name in found)
    return any(name in wanted for name in found)


def _attribute_classes(claim: Json) -> list[str]:
    spec, status = claim.get("spec") or EMPTY, claim.get("status") or EMPTY
    modifying = (status.get("modifyVolumeStatus") or EMPTY).get("targetVolumeAttributesClassName")
    names = [spec.get("volumeAttributesClassName"), status.get("currentVolumeAttributesClassName"), modifying]
    return sorted({name for name in names if name})


def is_terminating(spec: Json) -> bool:
    """Whether a pod has a deadline (the scope Terminating)."""
    deadline = spec.get("activeDeadlineSeconds")
    return deadline is not None and deadline >= 0


def _crosses(spec: Json) -> bool:
    affinity = spec.get("affinity") or EMPTY
    for part in (affinity.get("podAffinity") or EMPTY, affinity.get("podAntiAffinity") or EMPTY):
        terms = list(part.get("requiredDuringSchedulingIgnoredDuringExecution") or ())
        for weighted in part.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            terms.append(weighted.get("podAffinityTerm") or EMPTY)
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms):
            return True
    return False


_POD_SCOPES: Final[Mapping[str, Callable[[Json], bool]]] = {
    "Terminating": is_terminating,
    "NotTerminating": lambda spec: not is_terminating(spec),
    "BestEffort": lambda spec: qos_class(spec) == "BestEffort",
    "NotBestEffort": lambda spec: qos_class(spec) != "BestEffort",
    "CrossNamespacePodAffinity": _crosses,
}


def unset(spec: Json, names: Iterable[str]) -> str:
    """What containers of a pod must name and do not, in words; "" when nothing is missing."""
    needed = [name for name in MUST_BE_SET if name in names]
    level = pod_resources.of(spec, "requests") | pod_resources.of(spec, "limits")
    if any(name in pod_resources.POD_LEVEL or name.startswith("hugepages-") for name in level):
        return ""
    missing: dict[str, set[str]] = {}
    for group in ("containers", "initContainers"):
        for container in spec.get(group) or ():
            known = _compute(pod_resources.of(container, "requests"), pod_resources.of(container, "limits"))
            for name in needed:
                if name not in known:
                    missing.setdefault(name, set()).add(str(container.get("name")))
    told = [f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing)]
    return f"must specify {'; '.join(told)}" if told else ""


def shown(amounts: Amounts) -> str:
    """Amounts as messages show them: `cpu=1,memory=2Gi`."""
    return ",".join(f"{name}={amounts[name]}" for name in sorted(amounts))
