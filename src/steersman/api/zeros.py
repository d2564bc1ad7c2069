"""Zeros: what Kubernetes shows of a field that nobody has set.

Its answers are the JSON of Go structs: a field without omitempty is there even when it is zero, and so is every struct
that is no pointer (`status: {}`). Clients see it, managedFields owns it, so it is filled in when an object is taken in.
The table, data/zeros.json, is made by scripts/compile_zeros.py. Times that are not set, which Go writes as null, are
left out.
"""

from __future__ import annotations

import importlib.resources
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple

import orjson

from steersman.api.schema import Schema
from steersman.kernel.value import EMPTY, Frozen, FrozenList, freeze

COMPLETE: Final = frozenset({"io.k8s.api.core.v1.PodSpec"})
"""Definitions that `pod_defaults` completes: a pod's spec is not walked a second time."""


class _Plan(NamedTuple):
    """What is shown at one node, and below which fields, or in the elements, there is more."""

    shown: Mapping[str, Any]
    fields: Mapping[str, _Plan]
    inner: _Plan | None


NOTHING: Final = _Plan({}, {}, None)
_plans: dict[int, tuple[Schema, _Plan]] = {}


@cache
def _table() -> Mapping[str, Mapping[str, Any]]:
    found: Mapping[str, Mapping[str, Any]] = orjson.loads(
        importlib.resources.files("steersman.api").joinpath("data/zeros.json").read_bytes()
    )
    return {name: {field: freeze(value) for field, value in fields.items()} for name, fields in found.items()}


def shown(schema: Schema) -> Mapping[str, Any]:
    """Field → value of what an object of this definition shows when nothing is set. Values are frozen."""
    return _table().get(schema.name, EMPTY)


def fill(schema: Schema, value: Any) -> Any:
    """`value`, frozen, with what Kubernetes shows; the very same object when nothing is missing."""
    found = _plans.get(id(schema))
    if found is None:
        found = _plans[id(schema)] = (schema, _plan(schema, set()))  # kept alive, so its id stays its own
    return value if found[1] is NOTHING else _filled(found[1], value)


def _filled(plan: _Plan, value: Any) -> Any:
    if isinstance(value, list):
        inner = plan.inner
        if inner is None:
            return value
        items = [_filled(inner, item) for item in value]
        return FrozenList(items) if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if not isinstance(value, dict):
        return value
    added = {name: zero for name, zero in plan.shown.items() if name not in value}
    if plan.inner is not None:
        below = dict.fromkeys(value, plan.inner)
    else:
        below = {name: child for name, child in plan.fields.items() if name in value}
    for name, child in below.items():
        filled = _filled(child, value[name])
        if filled is not value[name]:
            added[name] = filled
    return Frozen({**value, **added}) if added else value


def _plan(schema: Schema, above: set[str]) -> _Plan:
    """Definitions that contain themselves show nothing there."""
    if schema.name in COMPLETE or schema.name in above:
        return NOTHING
    within = above | {schema.name} if schema.name else above
    fields = {name: found for name, child in schema.fields.items() if (found := _plan(child, within)) is not NOTHING}
    inner = schema.items or schema.values
    below = NOTHING if inner is None else _plan(inner, within)
    here = shown(schema)
    if not here and not fields and below is NOTHING:
        return NOTHING
    return _Plan(here, fields, None if below is NOTHING else below)
