"""What the subresources `ephemeralcontainers` and `resize` of a pod may change, and what they may not.

Source of rules and texts: kubernetes pkg/registry/core/pod/strategy.go, and ValidatePodEphemeralContainersUpdate and
ValidatePodResize in pkg/apis/core/validation/validation.go, release 1.36 with its default features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from steersman.api import pod_resources
from steersman.api.errors import Cause, quote
from steersman.api.pod_defaults import qos_class
from steersman.api.references import MIRROR
from steersman.api.rules.change_rules import told
from steersman.kernel.object import Object
from steersman.kernel.value import EMPTY, Frozen

EPHEMERAL: Final = "ephemeralcontainers"
RESIZE: Final = "resize"
PARTS: Final = frozenset({EPHEMERAL, RESIZE})
POD: Final = ("", "Pod")
RESIZED: Final = ("cpu", "memory")
"""Resources that can be changed while a pod runs."""
ONLY_RESIZED: Final = "only cpu and memory resources are mutable"
ONLY_RESIZED_INIT: Final = "only cpu and memory resources for init or sidecar containers are mutable"
_RESIZE_FIELDS: Final = ("resources", "resizePolicy")
Json = Mapping[str, Any]


def narrowed(part: str, spec: Json) -> dict[str, Any]:
    """What of an applied spec a subresource takes."""
    if part == EPHEMERAL:
        return {name: spec[name] for name in ("ephemeralContainers",) if name in spec}
    out: dict[str, Any] = {name: spec[name] for name in ("resources",) if name in spec}
    for group in ("containers", "initContainers"):
        if group in spec:
            kept = ("name", *_RESIZE_FIELDS)
            out[group] = [{name: each[name] for name in kept if name in each} for each in spec[group]]
    return out


def revised(part: str, old: Object, given: Json) -> tuple[Frozen, list[Cause]]:
    """The spec of a pod after a write of `given` to a subresource, without nodeName; and what is wrong with the change.
    Whether the new spec is a valid one is judged elsewhere."""
    before: Json = EMPTY if old.spec is None else old.spec.value
    annotations = old.meta.value.get("annotations") or EMPTY
    if MIRROR in annotations:
        what = "do not support ephemeral containers" if part == EPHEMERAL else "cannot be resized"
        return Frozen(before), [Cause.forbidden("", f"static pods {what}")]
    return _ephemeral(before, given) if part == EPHEMERAL else _resized(old, before, given)


def _ephemeral(before: Json, given: Json) -> tuple[Frozen, list[Cause]]:
    """Ephemeral containers are only ever added."""
    after = {each.get("name"): each for each in given.get("ephemeralContainers") or ()}
    causes = []
    for each in before.get("ephemeralContainers") or ():
        name = quote(each["name"])
        if each["name"] not in after:
            causes.append(
                Cause.forbidden(
                    "spec.ephemeralContainers", f"existing ephemeral containers {name} may not be removed\n"
                )
            )
        elif after[each["name"]] != each:
            changed = told(each, after[each["name"]], "")
            detail = f"existing ephemeral containers {name} may not be changed\n{changed}"
            causes.append(Cause.forbidden("spec.ephemeralContainers", detail))
    return _with(before, ephemeralContainers=given.get("ephemeralContainers")), causes


def _resized(old: Object, before: Json, given: Json) -> tuple[Frozen, list[Cause]]:
    if (before.get("os") or EMPTY).get("name") == "windows":
        return Frozen(before), [Cause.forbidden("", "windows pods cannot be resized")]
    if causes := _order(before, given):
        return Frozen(before), causes
    new = _with(
        before,
        containers=_merged(before.get("containers"), given.get("containers")),
        initContainers=_merged(before.get("initContainers"), given.get("initContainers")),
        resources=given.get("resources"),
    )
    status = old.status_value or EMPTY
    quality = status.get("qosClass") or qos_class(before)
    causes = []
    if quality != qos_class(new):
        causes.append(Cause.invalid("spec", quality, "Pod QOS Class may not change as a result of resizing"))
    if not _node_resizes(status):
        causes.append(Cause.forbidden("spec", "Pod running on node without support for resize"))
    causes += _whole(before.get("resources"), new.get("resources"))
    if status.get("nodeAllocatableResourceClaimStatuses"):
        causes.append(Cause.forbidden("spec", "pods with node allocatable resource claims cannot be resized"))
    for group in ("initContainers", "containers"):
        pairs = list(zip(before.get(group) or (), new.get(group) or (), strict=True))
        for index, (was, now) in enumerate(pairs):
            causes += _removed(f"spec.{group}[{index}].resources", was.get("resources"), now.get("resources"))
    for was, now in zip(before.get("containers") or (), new.get("containers") or (), strict=True):
        if not _alike(was, now):
            causes.append(Cause.forbidden("spec", ONLY_RESIZED))
    for index, (was, now) in enumerate(
        zip(before.get("initContainers") or (), new.get("initContainers") or (), strict=True)
    ):
        causes += _init(f"spec.initContainers[{index}]", was, now)
    return new, causes


def _order(before: Json, given: Json) -> list[Cause]:
    """Containers keep their number, names and order."""
    causes = []
    for group in ("containers", "initContainers"):
        was, now = before.get(group) or (), given.get(group) or ()
        if len(was) != len(now):
            causes.append(Cause.forbidden(f"spec.{group}", f"{group} may not be added or removed on resize"))
            continue
        for index, (one, other) in enumerate(zip(was, now, strict=True)):
            if one.get("name") != other.get("name"):
                at = f"spec.{group}[{index}].name"
                causes.append(Cause.forbidden(at, f"{group} may not be renamed or reordered on resize"))
    return causes


def _merged(before: Sequence[Json] | None, given: Sequence[Json] | None) -> list[Json] | None:
    """The containers there are, with the resources and resize policies given."""
    if before is None:
        return None
    fields = _RESIZE_FIELDS
    return [
        _with(was, **{field: now.get(field) for field in fields}) for was, now in zip(before, given or (), strict=True)
    ]


def _node_resizes(status: Json) -> bool:
    """Whether the pod's node can resize it: then it tells the resources of containers that run."""
    for each in status.get("containerStatuses") or ():
        if (each.get("state") or EMPTY).get("running") is not None:
            return each.get("resources") is not None
    return True


def _whole(before: Json | None, new: Json | None) -> list[Cause]:
    """The resources of the whole pod."""
    if before and new is None:
        return [Cause.forbidden("spec.resources", "pod-level resources cannot be removed")]
    causes = _removed("spec.resources", before, new, "pod-level resource ")
    if (before or new) and not _same_others(before, new):
        causes.append(Cause.forbidden("spec", f"{ONLY_RESIZED} at pod-level"))
    return causes


def _removed(path: str, before: Json | None, new: Json | None, what: str = "resource ") -> list[Cause]:
    causes = []
    for part in ("requests", "limits"):
        was, now = (before or EMPTY).get(part) or EMPTY, (new or EMPTY).get(part) or EMPTY
        if any(name not in now for name in was):
            causes.append(Cause.forbidden(f"{path}.{part}", f"{what}{part} cannot be removed"))
    return causes


def _init(path: str, was: Json, now: Json) -> list[Cause]:
    if was == now:
        return []
    causes = [] if _alike(was, now) else [Cause.forbidden(path, ONLY_RESIZED_INIT)]
    restarts = any(each.get("restartPolicy") == "RestartContainer" for each in now.get("resizePolicy") or ())
    if restarts and now.get("restartPolicy") != "Always":
        detail = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
        causes.append(Cause.forbidden(path, detail))
    return causes


def _alike(was: Json, now: Json) -> bool:
    """Whether two versions of a container differ in cpu and memory at most."""
    bare = [{name: value for name, value in each.items() if name != "resources"} for each in (was, now)]
    return bare[0] == bare[1] and _same_others(was.get("resources"), now.get("resources"))


def _same_others(before: Json | None, new: Json | None) -> bool:
    """Whether resources other than cpu and memory are the same. Claims may not even be there, as in Kubernetes."""
    was, now = before or EMPTY, new or EMPTY
    for part in ("requests", "limits"):
        amounts = [pod_resources.parsed(each.get(part)) for each in (was, now)]
        others = [{name: amount for name, amount in each.items() if name not in RESIZED} for each in amounts]
        if others[0] != others[1]:
            return False
    return not was.get("claims") and not now.get("claims")


def _with(value: Json, **changed: Any) -> Frozen:
    """The value with some fields changed; what is empty is left out."""
    out = {**value, **changed}
    return Frozen({name: item for name, item in out.items() if name not in changed or item})
