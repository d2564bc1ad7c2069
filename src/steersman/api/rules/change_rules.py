"""What an update may not change.

The judge sees one part of the object, before and after; rules that need two parts at once (a claim may be
shrunk down to the capacity in its status, say) take the strict side.
Source of the facts: the `Validate…Update` functions of kubernetes `pkg/apis/*/validation`, release 1.36.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from steersman.api import quantity
from steersman.api.errors import Cause, show
from steersman.api.rules.rules import IMMUTABLE, MAX_INT32, Causes, Object
from steersman.api.rules.volume_rules import SOURCES
from steersman.kernel.value import EMPTY, EMPTY_LIST

POD_FIELDS: Final = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
STATEFUL_FIELDS: Final = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
MAX_SHOWN: Final = 8
"""Changed fields told in one message: enough to see what an edit did, short enough to read."""
WHEN_IMMUTABLE: Final = "field is immutable when `immutable` is set"
_ONLY_ADDITIONS: Final = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"


def differences(old: Any, new: Any, path: str) -> Iterator[str]:
    """The fields in which two values differ, as `path: before → after`."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted({*old, *new}):
            yield from differences(old.get(name), new.get(name), f"{path}.{name}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from differences(before, after, f"{path}[{index}]")
    elif old != new or type(old) is not type(new):
        yield f"{path}: {_shown(old)} → {_shown(new)}"


def _shown(value: Any) -> str:
    return "not set" if value is None else show(value)


def told(old: Any, new: Any, path: str) -> str:
    """The differences as lines for people, the first `MAX_SHOWN`."""
    lines = list(differences(old, new, path))
    more = [f"… and {len(lines) - MAX_SHOWN} more"] if len(lines) > MAX_SHOWN else []
    return "\n".join(["", *lines[:MAX_SHOWN], *more])


def fixed(out: Causes, path: str, old: Object, new: Object, *fields: str) -> None:
    """Fields that keep the value they were created with."""
    for field in fields:
        if old.get(field) != new.get(field):
            out.append(Cause.invalid(f"{path}.{field}", new.get(field), IMMUTABLE))


def pod_spec(out: Causes, path: str, old: Object, new: Object) -> None:
    """The spec of a pod in a namespace of Kubernetes' rules."""
    for field in ("containers", "initContainers"):
        if len(old.get(field) or ()) != len(new.get(field) or ()):
            detail = "pod updates may not add or remove containers"
            out.append(Cause.forbidden(f"{path}.{field}", detail))
            return
        for index, container in enumerate(new.get(field) or ()):
            image, at = container.get("image") or "", f"{path}.{field}[{index}].image"
            if not image:
                out.append(Cause.required(at))
            elif image != image.strip():
                out.append(Cause.invalid(at, image, "must not have leading or trailing whitespace"))
    if not _deadline(out, path, old, new):
        return
    _tolerations(out, f"{path}.tolerations", old.get("tolerations"), new.get("tolerations"))
    _gates(out, f"{path}.schedulingGates", old.get("schedulingGates"), new.get("schedulingGates"))
    judged = _without_updatable(old, new)
    if old.get("schedulingGates"):
        judged = _without_gated(out, path, old, judged)
    if judged != old:
        detail = f"pod updates may not change fields other than {POD_FIELDS}"
        out.append(Cause.forbidden(path, detail + told(old, judged, path)))


def _deadline(out: Causes, path: str, old: Object, new: Object) -> bool:
    """A deadline may be set, or drawn nearer. Says whether to go on."""
    before, after = old.get("activeDeadlineSeconds"), new.get("activeDeadlineSeconds")
    at = f"{path}.activeDeadlineSeconds"
    if after is None:
        if before is not None:
            out.append(Cause.invalid(at, None, "must not update from a positive integer to nil value"))
        return True
    if not 0 <= after <= MAX_INT32:
        out.append(Cause.invalid(at, after, f"must be between 0 and {MAX_INT32}, inclusive"))
    elif before is not None and before < after:
        out.append(Cause.invalid(at, after, "must be less than or equal to previous value"))
    else:
        return True
    return False


def _tolerations(out: Causes, path: str, old: Any, new: Any) -> None:
    def kept(before: Object) -> bool:
        bare = {name: value for name, value in before.items() if name != "tolerationSeconds"}
        return any(
            bare == {name: value for name, value in after.items() if name != "tolerationSeconds"} for after in new or ()
        )

    if not all(kept(before) for before in old or ()):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        out.append(Cause.forbidden(path, detail))


def _gates(out: Causes, path: str, old: Any, new: Any) -> None:
    before = [gate.get("name") for gate in old or ()]
    for index, gate in enumerate(new or ()):
        if gate.get("name") not in before:
            detail = f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
            out.append(Cause.forbidden(f"{path}[{index}].name", detail))


def _without_updatable(old: Object, new: Object) -> dict[str, Any]:
    """The new spec with the old values of every field that may change."""
    judged = dict(new)
    for field in ("containers", "initContainers"):
        if field in new:
            pairs = zip(new[field], old.get(field) or EMPTY_LIST, strict=True)
            judged[field] = [_with(after, "image", before.get("image")) for after, before in pairs]
    fields = ["activeDeadlineSeconds", "tolerations", "schedulingGates"]
    if old.get("terminationGracePeriodSeconds", 0) < 0 and new.get("terminationGracePeriodSeconds") == 1:
        fields.append("terminationGracePeriodSeconds")
    for field in fields:
        judged = _with(judged, field, old.get(field))
    return judged


def _with(value: Object, field: str, item: Any) -> dict[str, Any]:
    changed = dict(value)
    if item is None:
        changed.pop(field, None)
    else:
        changed[field] = item
    return changed


def _without_gated(out: Causes, path: str, old: Object, new: dict[str, Any]) -> dict[str, Any]:
    """While a pod is gated, its choice of nodes may be narrowed."""
    before, after = old.get("nodeSelector") or EMPTY, new.get("nodeSelector") or EMPTY
    if any(after.get(key) != value for key, value in before.items()):
        out.append(Cause.invalid(f"{path}.nodeSelector", after, _ONLY_ADDITIONS))
    new = _with(new, "nodeSelector", old.get("nodeSelector"))
    old_affinity, new_affinity = old.get("affinity") or EMPTY, new.get("affinity") or EMPTY
    old_node, new_node = old_affinity.get("nodeAffinity"), new_affinity.get("nodeAffinity")
    if old_node != new_node:
        _node_affinity(out, f"{path}.affinity.nodeAffinity", old_node or EMPTY, new_node or EMPTY)
        affinity = _with(new_affinity, "nodeAffinity", old_node)
        new = _with(new, "affinity", affinity if affinity or "affinity" in old else None)
    return new


def _node_affinity(out: Causes, path: str, old: Object, new: Object) -> None:
    field = "requiredDuringSchedulingIgnoredDuringExecution"
    before = (old.get(field) or EMPTY).get("nodeSelectorTerms") or EMPTY_LIST
    after = (new.get(field) or EMPTY).get("nodeSelectorTerms") or EMPTY_LIST
    at = f"{path}.{field}.nodeSelectorTerms"
    if before and len(before) != len(after):
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        out.append(Cause.invalid(at, after, detail))
        return
    for index, (was, term) in enumerate(zip(before, after, strict=False)):
        for part in ("matchExpressions", "matchFields"):
            kept = (term.get(part) or [])[: len(was.get(part) or ())]
            if list(kept) != list(was.get(part) or ()):
                detail = "only additions are allowed (no mutations or deletions)"
                out.append(Cause.invalid(f"{at}[{index}]", term, detail))
                break


def selector(out: Causes, path: str, old: Object, new: Object) -> None:
    """Deployments, ReplicaSets, DaemonSets: the selector stays."""
    fixed(out, path, old, new, "selector")


def stateful_set(out: Causes, path: str, old: Object, new: Object) -> None:
    """The spec of a StatefulSet: only some fields may change."""
    judged = dict(new)
    for field in STATEFUL_FIELDS:
        judged = _with(judged, field, old.get(field))
    if judged != old:
        *others, last = (f"'{field}'" for field in STATEFUL_FIELDS)
        listed = f"{', '.join(others)} and {last}"
        detail = f"updates to statefulset spec for fields other than {listed} are forbidden"
        out.append(Cause.forbidden(path, detail))


_SCHEDULING: Final = ("affinity", "nodeSelector", "tolerations", "schedulingGates")


def job(out: Causes, path: str, old: Object, new: Object) -> None:
    """The spec of a Job. While it is suspended, where its pods go may change."""
    both = (old.get("completions"), new.get("completions"))
    elastic = (
        new.get("completionMode") == "Indexed" and None not in both and new.get("completions") == new.get("parallelism")
    )
    if not elastic:
        fixed(out, path, old, new, "completions")
    fixed(out, path, old, new, "selector")
    before, after = old.get("template"), new.get("template")
    if before != after and not (old.get("suspend") and _same_but_placed(before, after)):
        out.append(Cause.invalid(f"{path}.template", after, IMMUTABLE))
    fixed(out, path, old, new, "completionMode", "podFailurePolicy", "backoffLimitPerIndex")
    fixed(out, path, old, new, "managedBy", "successPolicy")


def _same_but_placed(old: Any, new: Any) -> bool:
    def bare(template: Any) -> dict[str, Any]:
        template = template or EMPTY
        spec = {n: v for n, v in (template.get("spec") or EMPTY).items() if n not in _SCHEDULING}
        return {**{n: v for n, v in template.items() if n not in ("metadata", "spec")}, "spec": spec}

    return bare(old) == bare(new)


def claim_spec(out: Causes, path: str, old: Object, new: Object) -> None:
    """The spec of a PersistentVolumeClaim: bound once, grown, nothing else."""
    judged = dict(new)
    if not old.get("volumeName"):
        judged = _with(judged, "volumeName", old.get("volumeName"))
    if "storageClassName" not in old:
        judged.pop("storageClassName", None)
    judged = _with(judged, "volumeAttributesClassName", old.get("volumeAttributesClassName"))
    before, after = _storage(old), _storage(new)
    if before is not None and after is not None:
        requests = _with(new["resources"]["requests"], "storage", old["resources"]["requests"]["storage"])
        judged["resources"] = _with(new["resources"], "requests", requests)
    if judged != old:
        detail = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        )
        out.append(Cause.forbidden(path, detail + told(old, judged, path)))
    if before is not None and after is not None and after < before:
        detail = "field can not be less than previous value"
        out.append(Cause.forbidden(f"{path}.resources.requests.storage", detail))
    if old.get("volumeAttributesClassName") and "volumeAttributesClassName" not in new:
        detail = "update from non-nil value to nil is forbidden"
        out.append(Cause.forbidden(f"{path}.volumeAttributesClassName", detail))


def _storage(spec: Object) -> quantity.Quantity | None:
    text = ((spec.get("resources") or EMPTY).get("requests") or EMPTY).get("storage")
    return None if text is None else quantity.parse(text)


def volume_spec(out: Causes, path: str, old: Object, new: Object) -> None:
    """The spec of a PersistentVolume: its source stays."""
    before = {name: old[name] for name in (*SOURCES, "local") if name in old}
    after = {name: new[name] for name in (*SOURCES, "local") if name in new}
    if before != after:
        detail = "spec.persistentvolumesource is immutable after creation"
        out.append(Cause.forbidden(f"{path}.persistentvolumesource", detail + told(before, after, path)))
    if old.get("volumeMode") != new.get("volumeMode"):
        out.append(Cause.invalid("volumeMode", new.get("volumeMode"), IMMUTABLE))


def service(out: Causes, path: str, old: Object, new: Object) -> None:
    """The spec of a Service: its address stays, unless it becomes or was a mere name."""
    if "ExternalName" in (old.get("type"), new.get("type")):
        return
    before, after = old.get("clusterIP"), new.get("clusterIP")
    if before and before != after:
        out.append(Cause.invalid(f"{path}.clusterIPs[0]", [after] if after else None, "may not change once set"))
    families = (old.get("ipFamilies") or [None])[0], (new.get("ipFamilies") or [None])[0]
    if families[0] and families[0] != families[1]:
        listed = new.get("ipFamilies")
        out.append(Cause.invalid(f"{path}.ipFamilies[0]", listed, "may not change once set"))
    for field, what in (("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")):
        second, now = (old.get(field) or [])[1:], new.get(field) or []
        if second and len(now) > 1 and now[1:] != second:
            out.append(Cause.invalid(f"{path}.{field}[1]", now, "may not change once set"))
        elif second and len(now) == 1 and new.get("ipFamilyPolicy") != "SingleStack":
            detail = f"must be 'SingleStack' to release the secondary {what}"
            out.append(Cause.invalid(f"{path}.ipFamilyPolicy", new.get("ipFamilyPolicy"), detail))
    if new.get("type") == "LoadBalancer" == old.get("type"):
        if old.get("loadBalancerClass") != new.get("loadBalancerClass"):
            detail = "may not change once set"
            out.append(Cause.invalid(f"{path}.loadBalancerClass", new.get("loadBalancerClass"), detail))
        checks = old.get("healthCheckNodePort"), new.get("healthCheckNodePort")
        if checks[0] and checks[1] and checks[0] != checks[1]:
            out.append(Cause.forbidden(f"{path}.healthCheckNodePort", IMMUTABLE))


def node_spec(out: Causes, path: str, old: Object, new: Object) -> None:
    """The spec of a Node: what a cloud or an address plan gave it stays."""
    for field, shown in (("podCIDRs", "podCIDR"), ("providerID", "providerID")):
        if old.get(field) and old.get(field) != new.get(field):
            detail = f'node updates may not change {shown} except from "" to valid'
            out.append(Cause.forbidden(f"{path}.{field}", detail))


def service_cidr(out: Causes, path: str, old: Object, new: Object) -> None:
    """The spec of a ServiceCIDR: a second block may be added."""
    before, after, at = list(old.get("cidrs") or ()), list(new.get("cidrs") or ()), f"{path}.cidrs"
    if len(before) != len(after) and (len(before), len(after)) != (1, 2):
        out.append(Cause.invalid(at, after, IMMUTABLE))
        return
    for index, block in enumerate(before):
        if block != after[index]:
            out.append(Cause.invalid(f"{at}[{index}]", after[index], IMMUTABLE))


def csi_driver(out: Causes, path: str, old: Object, new: Object) -> None:
    """The spec of a CSIDriver. Kubernetes misspells the first field."""
    if old.get("attachRequired") != new.get("attachRequired"):
        out.append(Cause.invalid(f"{path}.attachedRequired", new.get("attachRequired"), IMMUTABLE))
    fixed(out, path, old, new, "volumeLifecycleModes")


def csi_node(out: Causes, path: str, old: Object, new: Object) -> None:
    """The spec of a CSINode: a driver keeps what it is, but for how many volumes it can hold."""
    before = {driver.get("name"): driver for driver in old.get("drivers") or ()}
    for driver in new.get("drivers") or ():
        known = before.get(driver.get("name"))
        if known is not None and _without(known, "allocatable") != _without(driver, "allocatable"):
            out.append(Cause.invalid(f"{path}.drivers", driver, IMMUTABLE))


def _without(value: Object, field: str) -> dict[str, Any]:
    return {name: item for name, item in value.items() if name != field}
