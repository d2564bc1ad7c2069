"""A pod placed on a node: what a Binding writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from steersman.kernel.object import Object, Section
from steersman.kernel.value import EMPTY, Frozen, FrozenList

INTERN_LIMIT: Final = 1 << 16
"""Statuses of bound pods that are kept to be shared."""
_bound: dict[tuple[Section | None, str], Section] = {}


def bind(old: Object, node_name: str, time: str, given: Mapping[str, Any] = EMPTY) -> Object:
    """A pod placed on a node at `time`: its spec stays shared, its condition PodScheduled turns true, and it gets the
    labels and annotations `given`. Nobody manages what a binding writes, as in Kubernetes."""
    place = (old.status, time)
    status = _bound.get(place)
    if status is None:
        if len(_bound) >= INTERN_LIMIT:
            _bound.clear()
        status = _bound[place] = _scheduled(old.status, time)
    meta = old.meta
    if given:
        added = {field: given[field] for field in ("labels", "annotations") if given.get(field)}
        merged = {field: Frozen({**meta.value.get(field, EMPTY), **value}) for field, value in added.items()}
        meta = Section(Frozen({**meta.value, **merged})) if merged else meta
    return Object(old.key, old.api_version, 0, meta, old.spec, old.rest, status, old.managers, node_name)


def _scheduled(old: Section | None, time: str) -> Section:
    """A pod's status with PodScheduled true; pods of one birth that are bound in one second share it."""
    before: Mapping[str, Any] = EMPTY if old is None else old.value
    value = {field: item for field, item in before.items() if field != "nominatedNodeName"}
    given = value.get("conditions", ())
    kept = [condition for condition in given if condition.get("type") != "PodScheduled"]
    known = next((c for c in given if c.get("type") == "PodScheduled" and c.get("status") == "True"), None)
    condition = known or Frozen({"type": "PodScheduled", "status": "True", "lastTransitionTime": time})
    value["conditions"] = FrozenList([*kept, condition])
    return Section(Frozen(value))
