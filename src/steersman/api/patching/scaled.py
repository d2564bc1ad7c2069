"""Who owns the replicas of a workload that is written through its Scale.

kube-apiserver keeps the owners of a Scale apart: those of its workload's entries that have the replicas, by the names
they have in autoscaling/v1. So a Scale of which nobody is on record is written as such an object is: an update notes
nobody, and an apply notes first who was there before. And back in the workload, updates are other managers than before,
by their version: what they own beside the replicas loses them (Kubernetes shows that entry twice until the next write),
and one that owns nothing else has no time.

Source of the facts: apimachinery `pkg/util/managedfields/scalehandler.go`, release 1.36.
"""

from __future__ import annotations

from typing import Any, Final

from steersman.api.crd.custom import ScalePaths
from steersman.api.kinds import Kind
from steersman.api.patching.declared import BEFORE_FIRST_APPLY
from steersman.kernel.fieldset import LEAF, FieldSet, difference, intersection, node
from steersman.kernel.object import Manager, Object

Managers = tuple[Manager, ...]
BUILTIN: Final = ScalePaths(("spec", "replicas"), ("status", "replicas"), ())
"""Where built-in workloads have their numbers; their selectors are objects, written as text."""


def paths(kind: Kind) -> ScalePaths:
    """Where a workload has its numbers."""
    return BUILTIN if kind.origin is None or kind.origin.scale is None else kind.origin.scale


def nested(obj: Object, path: tuple[str, ...]) -> Any:
    """The value at a path of field names; None where there is none."""
    value: Any = obj.value
    for field in path:
        value = value.get(field) if isinstance(value, dict) else None
    return value


def owned(kind: Kind, managers: Managers) -> bool:
    """Whether anybody is on record for the replicas."""
    replicas = _replicas(kind)
    return any(intersection(entry.fields, replicas) for entry in managers)


def before_first_apply(kind: Kind, old: Object) -> Managers:
    """The entries before an apply of a Scale: what nobody owns was there before."""
    if owned(kind, old.managers) or not nested(old, paths(kind).replicas):
        return old.managers
    entry = Manager(BEFORE_FIRST_APPLY, "Update", "scale", kind.api_version, "", _replicas(kind))
    return (*old.managers, entry)


def after(kind: Kind, managers: Managers) -> Managers:
    """The entries after a write through a Scale."""
    replicas = _replicas(kind)
    out = []
    for entry in managers:
        if entry.operation == "Update" and intersection(entry.fields, replicas):
            left = difference(entry.fields, replicas)
            entry = entry._replace(fields=left) if left else entry._replace(time="")
        out.append(entry)
    return managers if out == [*managers] else tuple(out)


def _replicas(kind: Kind) -> FieldSet:
    found = LEAF
    for name in reversed(paths(kind).replicas):
        found = node({f"f:{name}": found})
    return found
