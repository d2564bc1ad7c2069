"""What the classes of a cluster must look like: StorageClass, PriorityClass, RuntimeClass, and the kinds of CSI.

Source of the facts: kubernetes `pkg/apis/{storage,scheduling,node}/validation`, release 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from steersman.api import quantity
from steersman.api.errors import Cause
from steersman.api.rules import rules
from steersman.api.rules.rules import Causes, Object, chosen
from steersman.kernel.value import EMPTY, EMPTY_LIST

MAX_PARAMETERS: Final = 512
MAX_PARAMETER_BYTES: Final = 256 * 1024
MAX_DRIVER_NAME: Final = 63
MAX_ERROR: Final = 1024
MAX_NODE_ID: Final = 192
HIGHEST_USER_PRIORITY: Final = 1_000_000_000
SYSTEM: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def provisioner(out: Causes, path: str, text: Any) -> None:
    """The provisioner of a StorageClass."""
    if not text:
        out.append(Cause.required(path))
    else:
        rules.named(out, path, text.lower(), rules.qualified_name)


def parameters(out: Causes, path: str, found: Mapping[str, str]) -> None:
    """The parameters of a StorageClass or a VolumeAttributesClass."""
    if len(found) > MAX_PARAMETERS:
        out.append(Cause.too_long(path, MAX_PARAMETERS))
        return
    if "" in found:
        out.append(Cause.invalid(path, "", "field can not be empty."))
    if sum(len(key.encode()) + len(text.encode()) for key, text in found.items()) > MAX_PARAMETER_BYTES:
        out.append(Cause.too_long(path, MAX_PARAMETER_BYTES))


def attributes(out: Causes, path: str, found: Any) -> None:
    """The parameters of a VolumeAttributesClass, of which there must be some."""
    parameters(out, path, found)
    if not found:
        out.append(Cause.required(path, "must contain at least one key/value pair"))


def reclaim_policy(out: Causes, path: str, text: Any) -> None:
    """The reclaimPolicy of a StorageClass."""
    if text and text not in ("Delete", "Retain"):
        out.append(Cause.unsupported(path, text, ("Delete", "Retain")))


def binding_mode(out: Causes, path: str, text: Any) -> None:
    """The volumeBindingMode of a StorageClass."""
    chosen(out, path, text or None, ("Immediate", "WaitForFirstConsumer"))


def topologies(out: Causes, path: str, terms: Any) -> None:
    """The allowedTopologies of a StorageClass."""
    seen: list[dict[str, frozenset[str]]] = []
    for index, term in enumerate(terms or ()):
        at, found = f"{path}[{index}].matchLabelExpressions", {}
        for place, rule in enumerate(term.get("matchLabelExpressions") or ()):
            here, key, values = f"{at}[{place}]", rule.get("key") or "", rule.get("values") or EMPTY_LIST
            rules.named(out, f"{here}.key", key, rules.qualified_name)
            if not values:
                out.append(Cause.required(f"{here}.values"))
            for position, value in enumerate(values):
                if value in values[:position]:
                    out.append(Cause.duplicate(f"{here}.values[{position}]", value))
            if key in found:
                out.append(Cause.duplicate(f"{here}.key", key))
            found[key] = frozenset(values)
        if found in seen:
            out.append(Cause.duplicate(at, ""))
        seen.append(found)


def driver_name(out: Causes, path: str, text: Any) -> None:
    """The name of a CSI driver."""
    if not text:
        out.append(Cause.required(path))
        return
    if len(text) > MAX_DRIVER_NAME:
        out.append(Cause.too_long(path, MAX_DRIVER_NAME))
    out.extend(Cause.invalid(path, text, problem) for problem in rules.dns_subdomain(text.lower()))


def attachment(out: Causes, path: str, spec: Object) -> None:
    """The spec of a VolumeAttachment."""
    driver_name(out, f"{path}.attacher", spec.get("attacher"))
    source, at = spec.get("source") or EMPTY, f"{path}.source"
    inline, name = source.get("inlineVolumeSpec"), source.get("persistentVolumeName")
    detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if inline is None and name is None:
        out.append(Cause.required(at, detail))
    elif inline is not None and name is not None:
        out.append(Cause.forbidden(at, detail))
    elif name is not None:
        if not name:
            out.append(Cause.required(f"{at}.persistentVolumeName", "must specify non empty persistentVolumeName"))
        rules.named(out, f"{at}.persistentVolumeName", name, rules.dns_subdomain)
    rules.named(out, f"{path}.nodeName", spec.get("nodeName") or "", rules.dns_subdomain)


def attachment_status(out: Causes, path: str, status: Object) -> None:
    """The status of a VolumeAttachment."""
    for field in ("attachError", "detachError"):
        error = status.get(field) or EMPTY
        if len(error.get("message") or "") > MAX_ERROR:
            out.append(Cause.too_long(f"{path}.{field}.message", MAX_PARAMETER_BYTES))
        code = error.get("errorCode")
        if code is not None and code < 0:
            detail = f"must be between 0 and {rules.MAX_INT32}, inclusive"
            out.append(Cause.invalid(f"{path}.{field}.errorCode", code, detail))


def driver(out: Causes, path: str, spec: Object) -> None:
    """The spec of a CSIDriver."""
    for field, shown in (
        ("attachRequired", "attachedRequired"),
        ("podInfoOnMount", "podInfoOnMount"),
        ("storageCapacity", "storageCapacity"),
        ("fsGroupPolicy", "fsGroupPolicy"),
        ("seLinuxMount", "seLinuxMount"),
    ):
        if spec.get(field) is None:
            out.append(Cause.required(f"{path}.{shown}"))
    policies = ("File", "None", "ReadWriteOnceWithFSType")
    chosen(out, f"{path}.fsGroupPolicy", spec.get("fsGroupPolicy"), policies)
    seen: set[str] = set()
    for index, request in enumerate(spec.get("tokenRequests") or ()):
        at, audience = f"{path}.tokenRequests[{index}]", request.get("audience") or ""
        if audience in seen:
            out.append(Cause.duplicate(f"{at}.audience", audience))
        seen.add(audience)
        seconds = request.get("expirationSeconds")
        if seconds is not None and seconds < 600:
            detail = "may not specify a duration less than 10 minutes"
            out.append(Cause.invalid(f"{at}.expirationSeconds", seconds, detail))
        if seconds is not None and seconds > 1 << 32:
            detail = "may not specify a duration larger than 2^32 seconds"
            out.append(Cause.invalid(f"{at}.expirationSeconds", seconds, detail))
    for index, mode in enumerate(spec.get("volumeLifecycleModes") or ()):
        if mode not in ("Ephemeral", "Persistent"):
            out.append(Cause.unsupported(f"{path}.volumeLifecycleModes[{index}]", mode, ("Ephemeral", "Persistent")))


def csi_node(out: Causes, path: str, spec: Object) -> None:
    """The spec of a CSINode."""
    seen: set[str] = set()
    for index, found in enumerate(spec.get("drivers") or ()):
        at, name = f"{path}.drivers[{index}]", found.get("name") or ""
        driver_name(out, f"{at}.name", name)
        if name in seen:
            out.append(Cause.duplicate(f"{at}.name", name))
        seen.add(name)
        node = found.get("nodeID") or ""
        if not node:
            out.append(Cause.required(f"{at}.nodeID"))
        elif len(node) > MAX_NODE_ID:
            out.append(Cause.invalid(f"{at}.nodeID", node, f"must be {MAX_NODE_ID} characters or less"))
        rules.not_negative(out, f"{at}.allocatable", found.get("allocatable") or EMPTY, "count")
        for place, key in enumerate(found.get("topologyKeys") or ()):
            rules.named(out, f"{at}.topologyKeys[{place}]", key, rules.qualified_name)
            if key in found["topologyKeys"][:place]:
                out.append(Cause.duplicate(f"{at}.topologyKeys[{place}]", key))


def capacity(out: Causes, path: str, text: Any) -> None:
    """The capacity of a CSIStorageCapacity."""
    if text and quantity.parse(text).nano < 0:
        out.append(Cause.invalid(path, text, rules.NEGATIVE))


def capacity_class(out: Causes, path: str, text: Any) -> None:
    """The storageClassName of a CSIStorageCapacity."""
    rules.named(out, path, text or "", rules.dns_subdomain)


def preemption(out: Causes, path: str, text: Any) -> None:
    """The preemptionPolicy of a PriorityClass."""
    chosen(out, path, text or None, ("Never", "PreemptLowerPriority"))


def priority(out: Causes, name: str, parts: Mapping[str, Any]) -> None:
    """The value of a PriorityClass, which its name restricts."""
    value = parts.get("value") or 0
    if name.startswith("system-"):
        known, why = SYSTEM.get(name), ""
        if known is None:
            why = f"{name} is not a known system priority class"
        elif value != known:
            why = f"value of {name} PriorityClass must be {known}"
        elif parts.get("globalDefault"):
            why = f"globalDefault of {name} PriorityClass must be false"
        if why:
            detail = f"priority class names with 'system-' prefix are reserved for system use only. error: {why}"
            out.append(Cause.forbidden("metadata.name", detail))
    elif value > HIGHEST_USER_PRIORITY:
        detail = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        out.append(Cause.forbidden("value", detail))


def handler(out: Causes, path: str, text: Any) -> None:
    """The handler of a RuntimeClass."""
    if not text:
        out.append(Cause.required(path))
    else:
        rules.named(out, path, text, rules.dns_label)


def overhead(out: Causes, path: str, found: Object) -> None:
    """The overhead of a RuntimeClass."""
    rules.requirements(out, path, {"limits": found.get("podFixed") or EMPTY})
