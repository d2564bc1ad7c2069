"""What kube-apiserver adds to a pod's spec, and to the template of one, where the writer left it out.

Some defaults are for pods only, not for templates: requests from limits, enableServiceLinks, host ports of
the host's network. Priority is given by an admission plugin that is always on, so it is here too, as far as
it needs no PriorityClass to be read. The tolerations for not-ready and unreachable nodes (300 s) come from
another admission plugin, DefaultTolerationSeconds, which can be switched off; they are NOT added.

Source of the facts: kubernetes `pkg/apis/core/v1/defaults.go`, `zz_generated.defaults.go`, `conversion.go`,
`plugin/pkg/admission/priority`, `pkg/apis/core/v1/helper/qos`, release 1.36.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from steersman.api import quantity
from steersman.api.filling import each, inside, lacking, put, unset
from steersman.kernel.value import EMPTY, Frozen, FrozenList

# Distinct images and quantities of one cluster; an entry is about 200 bytes.
CACHE_SIZE: Final = 4096

SYSTEM_PRIORITIES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""The two PriorityClasses that every cluster has."""

_SPEC: Final = {"dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler"}
_SPEC_POINTERS: Final = {"securityContext": EMPTY, "terminationGracePeriodSeconds": 30}
_CONTAINER: Final = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
_PROBE: Final = {"failureThreshold": 3, "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1}
_HTTP_GET: Final = {"path": "/", "scheme": "HTTP"}
_TCP: Final = {"protocol": "TCP"}
_MODE: Final = {"defaultMode": 0o644}
_AZURE_DISK: Final = {"cachingMode": "ReadWrite", "fsType": "ext4", "kind": "Shared", "readOnly": False}
_RBD: Final = {"keyring": "/etc/ceph/keyring", "pool": "rbd", "user": "admin"}
_CONTAINER_LISTS: Final = ("containers", "initContainers", "ephemeralContainers")

_DOMAIN = r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(?::[0-9]+)?"
_WORD = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_TAG = r"(?::([\w][\w.-]{0,127}))?"
_DIGEST = r"(@[A-Za-z][\w+.-]*:[0-9a-fA-F]{32,})?"
_IMAGE = re.compile(rf"(?:{_DOMAIN}/)?{_WORD}(?:/{_WORD})*{_TAG}{_DIGEST}", re.ASCII)
_MAX_IMAGE: Final = 1024  # longer references exist nowhere, and the regular expression is for short texts


@lru_cache(CACHE_SIZE)
def pull_policy(image: str) -> str:
    """`Always` for an image with the tag `latest`, or with neither tag nor digest; else `IfNotPresent`.

    An image that is no reference at all gets `IfNotPresent`, as in kube-apiserver.
    """
    found = _IMAGE.fullmatch(image) if len(image) <= _MAX_IMAGE else None
    if found is None:
        return "IfNotPresent"
    tag = found[1] or ("" if found[2] else "latest")
    return "Always" if tag == "latest" else "IfNotPresent"


def pod_spec(spec: Frozen) -> Frozen:
    """The spec of a Pod, filled."""
    for name in ("containers", "initContainers"):
        spec = each(spec, name, _requests_from_limits)
    spec = _pod_resources(spec)
    spec = lacking(spec, {"enableServiceLinks": True})
    if spec.get("terminationGracePeriodSeconds", 0) < 0:  # of a pod only: templates keep what they say
        spec = put(spec, "terminationGracePeriodSeconds", 1)
    if spec.get("hostNetwork"):
        for name in ("containers", "initContainers"):
            spec = each(spec, name, lambda container: each(container, "ports", _host_port))
    return _priority(template_spec(spec))


def template_spec(spec: Frozen) -> Frozen:
    """The pod spec inside a template, filled."""
    spec = lacking(unset(spec, _SPEC), _SPEC_POINTERS)
    spec = _service_account(spec)
    spec = each(spec, "volumes", _volume)
    for name in _CONTAINER_LISTS:
        spec = each(spec, name, _container)
    return inside(spec, "overhead", resource_list)


def template(value: Frozen) -> Frozen:
    """A pod template: `{"metadata": …, "spec": …}`, filled."""
    return inside(value, "spec", template_spec)


def claim_spec(spec: Frozen) -> Frozen:
    """The spec of a PersistentVolumeClaim, filled."""
    return lacking(inside(spec, "resources", resources), {"volumeMode": "Filesystem"})


def resources(value: Frozen) -> Frozen:
    """A ResourceRequirements object, its amounts rounded up to thousandths."""
    return inside(inside(value, "limits", resource_list), "requests", resource_list)


def resource_list(amounts: Frozen) -> Frozen:
    """Resource name → quantity, each rounded up to thousandths, the finest step the API keeps."""
    changed = {name: rounded for name, text in amounts.items() if (rounded := _whole_milli(text)) != text}
    return Frozen({**amounts, **changed}) if changed else amounts


@lru_cache(CACHE_SIZE)
def _whole_milli(text: Any) -> Any:
    try:
        amount = quantity.parse(text)
    except quantity.QuantityError:
        return text
    if amount.nano % quantity.MILLI_IN_NANO == 0:
        return text
    return str(quantity.Quantity(amount.milli() * quantity.MILLI_IN_NANO, amount.format))


def _priority(spec: Frozen) -> Frozen:
    """What the Priority admission plugin sets when no PriorityClass of the user's has to be read."""
    name = spec.get("priorityClassName")
    if name in SYSTEM_PRIORITIES:
        spec = lacking(spec, {"priority": SYSTEM_PRIORITIES[name]})
    elif not name:
        spec = lacking(spec, {"priority": 0})
    else:
        return spec
    return lacking(spec, {"preemptionPolicy": "PreemptLowerPriority"})


def _service_account(spec: Frozen) -> Frozen:
    """The two names of one field are kept equal; the newer one decides."""
    name = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if not name:
        return spec
    if spec.get("serviceAccountName") == name and spec.get("serviceAccount") == name:
        return spec
    return Frozen({**spec, "serviceAccountName": name, "serviceAccount": name})


def _host_port(port: Frozen) -> Frozen:
    wanted = port.get("containerPort")
    return unset(port, {"hostPort": wanted}) if wanted else port


def _requests_from_limits(container: Frozen) -> Frozen:
    return inside(container, "resources", _copy_limits)


def _copy_limits(value: Frozen) -> Frozen:
    limits = value.get("limits")
    if not isinstance(limits, Frozen) or not limits:
        return value
    requests = value.get("requests", EMPTY)
    return put(value, "requests", lacking(requests, limits))


def _container(container: Frozen) -> Frozen:
    container = lacking(unset(container, _CONTAINER), {"resources": EMPTY})
    if not container.get("imagePullPolicy"):
        container = put(container, "imagePullPolicy", pull_policy(container.get("image") or ""))
    container = each(container, "ports", lambda port: unset(port, _TCP))
    container = each(container, "env", _env)
    container = inside(container, "resources", resources)
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        container = inside(container, name, _probe)
    return inside(container, "lifecycle", _lifecycle)


def _env(variable: Frozen) -> Frozen:
    return inside(variable, "valueFrom", _field_ref)


def _field_ref(value: Frozen) -> Frozen:
    return inside(value, "fieldRef", lambda ref: unset(ref, {"apiVersion": "v1"}))


def _probe(probe: Frozen) -> Frozen:
    probe = inside(unset(probe, _PROBE), "httpGet", _http_get)
    return inside(probe, "grpc", lambda grpc: lacking(grpc, {"service": ""}))


def _http_get(action: Frozen) -> Frozen:
    return unset(action, _HTTP_GET)


def _lifecycle(lifecycle: Frozen) -> Frozen:
    for name in ("postStart", "preStop"):
        lifecycle = inside(lifecycle, name, lambda handler: inside(handler, "httpGet", _http_get))
    return lifecycle


def _volume(volume: Frozen) -> Frozen:
    if len(volume) <= ("name" in volume):
        return put(volume, "emptyDir", EMPTY)
    for name, fill in _VOLUMES.items():
        if name in volume:
            volume = inside(volume, name, fill)
    return volume


def _downward(source: Frozen) -> Frozen:
    return each(source, "items", _field_ref)


def _projection(source: Frozen) -> Frozen:
    source = inside(source, "downwardAPI", _downward)
    return inside(source, "serviceAccountToken", lambda token: lacking(token, {"expirationSeconds": 3600}))


def _claim_template(value: Frozen) -> Frozen:
    return inside(value, "volumeClaimTemplate", lambda claim: inside(claim, "spec", claim_spec))


def _image_volume(source: Frozen) -> Frozen:
    return unset(source, {"pullPolicy": pull_policy(source.get("reference") or "")})


_VOLUMES: Final = {
    "azureDisk": lambda source: lacking(source, _AZURE_DISK),
    "configMap": lambda source: lacking(source, _MODE),
    "downwardAPI": lambda source: _downward(lacking(source, _MODE)),
    "ephemeral": _claim_template,
    "hostPath": lambda source: lacking(source, {"type": ""}),
    "image": _image_volume,
    "iscsi": lambda source: unset(source, {"iscsiInterface": "default"}),
    "projected": lambda source: each(lacking(source, _MODE), "sources", _projection),
    "rbd": lambda source: unset(source, _RBD),
    "scaleIO": lambda source: unset(source, {"fsType": "xfs", "storageMode": "ThinProvisioned"}),
    "secret": lambda source: lacking(source, _MODE),
}


def _pod_resources(spec: Frozen) -> Frozen:
    """Requests and limits of the pod as a whole, completed from its containers once the writer gave some."""
    whole = spec.get("resources")
    if not isinstance(whole, Frozen):
        return spec
    limits, requests = whole.get("limits", EMPTY), whole.get("requests", EMPTY)
    if not limits and not requests:
        return spec
    huge = {n: q for n, q in _aggregate(spec, "limits").items() if n.startswith("hugepages-") and n not in requests}
    limits = lacking(limits, huge)
    if limits:
        own = {n: q for n, q in _aggregate(spec, "requests").items() if n in ("cpu", "memory")}
        supported = {n: q for n, q in limits.items() if n in ("cpu", "memory") or n.startswith("hugepages-")}
        requests = lacking(requests, own)
        requests = lacking(requests, supported)
    filled = {"limits": limits, "requests": requests}
    changed = {n: v for n, v in filled.items() if v and whole.get(n) is not v}
    return put(spec, "resources", Frozen({**whole, **changed})) if changed else spec


def _aggregate(spec: Frozen, which: str) -> dict[str, str]:
    """What a pod's containers need together: the running ones summed, or an init container that needs more.

    An init container that restarts always (a sidecar) counts as running from its turn on.
    """
    total: dict[str, quantity.Quantity] = {}
    peak: dict[str, quantity.Quantity] = {}
    sidecars: dict[str, quantity.Quantity] = {}
    for container in spec.get("containers", ()):
        _add(total, _amounts(container, which))
    for container in spec.get("initContainers", ()):
        amounts = _amounts(container, which)
        if container.get("restartPolicy") == "Always":
            _add(total, amounts)
            _add(sidecars, amounts)
            amounts = dict(sidecars)
        else:
            _add(amounts, sidecars)
        for name, amount in amounts.items():
            peak[name] = max(peak.get(name, amount), amount)
    for name, amount in peak.items():
        total[name] = max(total.get(name, amount), amount)
    return {name: str(amount) for name, amount in sorted(total.items())}


def _amounts(container: Mapping[str, Any], which: str) -> dict[str, quantity.Quantity]:
    listed = (container.get("resources") or EMPTY).get(which) or EMPTY
    return {name: quantity.parse(text) for name, text in listed.items()}


def _add(total: dict[str, quantity.Quantity], amounts: Mapping[str, quantity.Quantity]) -> None:
    for name, amount in amounts.items():
        total[name] = total[name] + amount if name in total else amount


def qos_class(spec: Mapping[str, Any]) -> str:
    """`Guaranteed`, `Burstable` or `BestEffort`, from the cpu and memory of the pod or of its containers."""
    whole = spec.get("resources") or EMPTY
    parts: list[Mapping[str, Any]]
    if whole.get("requests") or whole.get("limits"):
        parts = [whole]
    else:
        containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
        parts = [container.get("resources") or EMPTY for container in containers]
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    every_limit = True
    for part in parts:
        _sum_qos(requests, part.get("requests"))
        every_limit = _sum_qos(limits, part.get("limits")) == 2 and every_limit
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if every_limit and requests == limits else "Burstable"


def _sum_qos(total: dict[str, int], amounts: Mapping[str, Any] | None) -> int:
    """Adds cpu and memory to the total; says how many of the two are more than zero."""
    found = 0
    for name in ("cpu", "memory"):
        amount = quantity.milli(amounts[name]) if amounts and name in amounts else 0
        if amount > 0:
            total[name] = total.get(name, 0) + amount
            found += 1
    return found


def pod_status(spec: Mapping[str, Any]) -> Frozen:
    """The status of a pod at its creation."""
    status: dict[str, Any] = {"phase": "Pending", "qosClass": qos_class(spec)}
    if spec.get("schedulingGates"):
        gated = {
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "reason": "SchedulingGated",
            "status": "False",
            "type": "PodScheduled",
        }
        status["conditions"] = FrozenList([Frozen(gated)])
    return Frozen(status)


def reported_status(status: Frozen) -> Frozen:
    """The status of a pod as a node wrote it: the first of podIPs and podIP are one."""
    address = status.get("podIP")
    listed = status.get("podIPs")
    first = listed[0].get("ip") if listed else None
    if address:  # it decides, where they differ
        return status if first == address else put(status, "podIPs", FrozenList([Frozen({"ip": address})]))
    return put(status, "podIP", first) if first else status
