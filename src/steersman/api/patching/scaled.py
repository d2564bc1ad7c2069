"""Who owns the replicas of a workload that is written through its Scale.

kube-apiserver keeps the owners of a Scale apart: those of its workload's entries that have the replicas, by the names
they have in autoscaling/v1. So a Scale of which nobody is on record is written as such an object is: an update notes
nobody, and an apply notes first who was there before. And back in the workload, updates are other managers than before,
by their version: what they own beside the replicas loses them (Kubernetes shows that entry twice until the next write),
and one that owns nothing else has no time.

Source of the facts: apimachinery `pkg/util/managedfields/scalehandler.go`, release 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from steersman.api.crd.custom import ScalePaths
from steersman.api.kinds import Kind, Kinds
from steersman.api.patching.declared import BEFORE_FIRST_APPLY
from steersman.api.patching.patch import merge_patch
from steersman.api.select import LabelSelector
from steersman.kernel.fieldset import LEAF, FieldSet, difference, intersection, node
from steersman.kernel.object import Manager, Object

Managers = tuple[Manager, ...]
SCALE: Final = "io.k8s.api.autoscaling.v1.Scale"
SHOWN: Final = ("name", "namespace", "uid", "creationTimestamp", "resourceVersion")
"""Metadata of a workload that its Scale shows."""
BUILTIN: Final = ScalePaths(("spec", "replicas"), ("status", "replicas"), ())
"""Where built-in workloads have their numbers; their selectors are objects, written as text."""


def paths(kind: Kind) -> ScalePaths:
    """Where a workload has its numbers."""
    return BUILTIN if kind.origin is None or kind.origin.scale is None else kind.origin.scale


def nested(whole: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """What a workload has at a path of field names; None where there is nothing."""
    value: Any = whole
    for field in path:
        value = value.get(field) if isinstance(value, dict) else None
    return value


def scale_of(kind: Kind, whole: Mapping[str, Any]) -> dict[str, Any]:
    """The Scale of a workload."""
    meta, at, selector = whole["metadata"], paths(kind), _selector(kind, whole)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: meta[name] for name in SHOWN if name in meta},
        "spec": {"replicas": _number(whole, at.replicas, 0 if kind.custom else 1)},
        "status": {"replicas": _number(whole, at.status_replicas, 0), **({"selector": selector} if selector else {})},
    }


def with_replicas(kind: Kind, replicas: Any) -> dict[str, Any]:
    """What a Scale says of the workload itself, as a merge patch."""
    said: Any = replicas
    for field in reversed(paths(kind).replicas):
        said = {field: said}
    made: dict[str, Any] = said
    return made


def _number(whole: Mapping[str, Any], path: tuple[str, ...], absent: int) -> int:
    found = nested(whole, path)
    return absent if found is None or type(found) is not int else found


def _selector(kind: Kind, whole: Mapping[str, Any]) -> str:
    """The selector of the pods, as text: custom kinds keep it so."""
    if kind.origin is not None:
        found = nested(whole, paths(kind).selector) if paths(kind).selector else ""
        return found if isinstance(found, str) else ""
    selector = nested(whole, ("spec", "selector"))
    if kind.gk == ("", "ReplicationController"):  # its selector is a plain map
        selector = {"matchLabels": selector} if selector else None
    return str(LabelSelector.compile(selector)) if selector else ""


class Seen(NamedTuple):
    """A workload as admission sees it when its Scale is written: between it and the Scale, as `Kind.alias` is between
    versions."""

    kind: Kind
    whole: Mapping[str, Any]

    def up(self, whole: dict[str, Any]) -> dict[str, Any]:
        """The Scale of the workload."""
        return scale_of(self.kind, whole)

    def down(self, scale: dict[str, Any]) -> Mapping[str, Any]:
        """The workload with the replicas of a Scale."""
        replicas = nested(scale, ("spec", "replicas")) or 0
        made: Mapping[str, Any] = merge_patch(self.whole, with_replicas(self.kind, replicas))
        return made


def seen(kind: Kind, whole: Mapping[str, Any]) -> Kind:
    """The kind of a workload, as admission sees it when its Scale is written."""
    return replace(kind, schema=Kinds.definition(SCALE), alias=Seen(kind, whole))


def owned(kind: Kind, managers: Managers) -> bool:
    """Whether anybody is on record for the replicas."""
    replicas = _replicas(kind)
    return any(intersection(entry.fields, replicas) for entry in managers)


def before_first_apply(kind: Kind, old: Object) -> Managers:
    """The entries before an apply of a Scale: what nobody owns was there before."""
    if owned(kind, old.managers) or not nested(old.value, paths(kind).replicas):
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
