"""What objects have without anybody's asking: the status they are born with, and metadata that follows from a spec.

Source of the facts: Kubernetes 1.36, SetDefaults_Job (pkg/apis/batch/v1/defaults.go), SetDefaults_ReplicationController
(pkg/apis/core/v1/defaults.go), pkg/registry/apps/daemonset/strategy.go and pkg/apis/apps/v1/conversion.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from steersman.api import defaults, status_part
from steersman.api.kinds import GK, Kind
from steersman.kernel.object import Object, Section
from steersman.kernel.value import EMPTY, Frozen, FrozenList

REMEMBERED: Final = 1 << 12
"""Statuses that are shared; those of new objects are few."""
TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
_shared: dict[tuple[GK, Any], Section] = {}


def initial_status(kind: Kind, spec: Section | None, time: str) -> Section | None:
    """The status an object is born with at `time`; one section for all pods of one QoS class."""
    if spec is not None and spec.born is not None:
        return spec.born
    status = defaults.initial_status(kind, None if spec is None else spec.value)
    if status is None:
        return None
    if status.get("conditions") and kind.gk == ("", "Pod"):  # it is gated since now
        timed = [Frozen({**condition, "lastTransitionTime": time}) for condition in status["conditions"]]
        return Section(Frozen({**status, "conditions": FrozenList(timed)}))
    if kind.gk in status_part.TIMED:
        return Section(Frozen(status_part.prepared(kind, None, status, time)))
    made = Section(status)
    if len(_shared) >= REMEMBERED:
        _shared.clear()
    shared = _shared.setdefault((kind.gk, made.digest), made)
    if spec is not None:
        spec.born = shared
    return shared


def split_node_name(kind: Kind, spec: Section | None) -> tuple[Section | None, str | None]:
    """A pod's spec without nodeName, and the nodeName: thousands of bound pods share the former."""
    if spec is None or kind.gk != ("", "Pod"):
        return spec, None
    if "nodeName" not in spec.value:
        return spec, None
    rest = Frozen({field: item for field, item in spec.value.items() if field != "nodeName"})
    return Section(rest), spec.value["nodeName"] or None


def complete_meta(kind: Kind, meta: dict[str, Any], spec: Mapping[str, Any], old: Object | None) -> None:
    """Adds to the metadata of a version what follows from its spec; in place, one look-up for most kinds."""
    fill = META.get(kind.gk)
    if fill is not None:
        fill(meta, spec, old)


def _labels_of_template(meta: dict[str, Any], spec: Mapping[str, Any], old: Object | None) -> None:
    """An object without labels takes those of its pods."""
    labels = ((spec.get("template") or EMPTY).get("metadata") or EMPTY).get("labels")
    if labels and not meta.get("labels"):
        meta["labels"] = labels


def _template_generation(meta: dict[str, Any], spec: Mapping[str, Any], old: Object | None) -> None:
    """How often the template of a DaemonSet has changed, which nobody else can write."""
    number = 1
    if old is not None:
        known = (old.meta.value.get("annotations") or EMPTY).get(TEMPLATE_GENERATION, "0")
        number = int(known) + ((old.spec_value or EMPTY).get("template") != spec.get("template"))
    meta["annotations"] = Frozen({**meta.get("annotations", EMPTY), TEMPLATE_GENERATION: str(number)})


META: Final[Mapping[GK, Callable[[dict[str, Any], Mapping[str, Any], Object | None], None]]] = {
    ("apps", "DaemonSet"): _template_generation,
    ("batch", "Job"): _labels_of_template,
    ("", "ReplicationController"): _labels_of_template,
}
