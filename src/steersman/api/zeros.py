"""Zeros: what Kubernetes shows of a field that nobody has set.

Its answers are the JSON of Go structs: a field without omitempty is there even when it is zero, and so is every struct
that is no pointer (`status: {}`). Clients see it, managedFields owns it, so it is filled in when an object is taken in.
The table, data/zeros.json, is made by scripts/compile_zeros.py. Times that are not set, which Go writes as null, are
left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from operator import is_not
from typing import Any, Final

import orjson

from steersman.api.schema import Schema, packaged
from steersman.kernel.value import EMPTY, Frozen, FrozenList, freeze

COMPLETE: Final = frozenset({"io.k8s.api.core.v1.PodSpec"})
"""Definitions that `pod_defaults` completes: a pod's spec is not walked a second time."""


MAX_LAYOUTS: Final = 1 << 9
"""Sets of field names remembered for one node: objects of a kind have few."""
Layout = tuple[Mapping[str, Any], "tuple[tuple[str, _Plan], ...]"]


class _Plan:
    """What is shown at one node, and below which fields, or in the elements, there is more."""

    __slots__ = ("fields", "inner", "layouts", "shown")

    def __init__(self, shown: Mapping[str, Any], fields: Mapping[str, _Plan], inner: _Plan | None) -> None:
        self.shown = shown
        self.fields = fields
        self.inner = inner
        self.layouts: dict[tuple[str, ...], Layout] = {}

    def layout(self, names: tuple[str, ...]) -> Layout:
        """Of an object with these fields: what it lacks, and the fields to go into."""
        found = self.layouts.get(names)
        if found is None:
            if len(self.layouts) >= MAX_LAYOUTS:
                self.layouts.clear()
            lacking = {name: zero for name, zero in self.shown.items() if name not in names}
            below = tuple([(name, child) for name, child in self.fields.items() if name in names])
            found = self.layouts[names] = (lacking, below)
        return found


NOTHING: Final = _Plan({}, {}, None)
_plans: dict[int, tuple[Schema, _Plan]] = {}


@cache
def _table() -> Mapping[str, Mapping[str, Any]]:
    found: Mapping[str, Mapping[str, Any]] = orjson.loads(packaged("zeros.json"))
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


def _complete(plan: _Plan, items: list[Any]) -> bool:
    """Whether nothing is missing in any item: seen fast where all have the same fields, as conditions do."""
    first = items[0]
    if plan.fields or plan.inner is not None or not isinstance(first, dict):
        return False
    names = tuple(first)
    return not plan.layout(names)[0] and all(tuple(item) == names for item in items)


def _filled(plan: _Plan, value: Any) -> Any:
    if isinstance(value, list):
        inner = plan.inner
        if inner is None or not value or _complete(inner, value):
            return value
        items = [_filled(inner, item) for item in value]
        return FrozenList(items) if any(map(is_not, items, value)) else value
    if not isinstance(value, dict):
        return value
    if plan.inner is not None:
        each = {name: _filled(plan.inner, item) for name, item in value.items()}
        return Frozen(each) if any(map(is_not, each.values(), value.values())) else value
    names = tuple(value)
    lacking, below = plan.layouts.get(names) or plan.layout(names)
    changed: dict[str, Any] = {}
    for name, child in below:
        item = value[name]
        filled = _filled(child, item)
        if filled is not item:
            changed[name] = filled
    if not lacking and not changed:
        return value
    out = Frozen(value)
    dict.update(out, lacking)  # still in hand: nobody else has seen it
    dict.update(out, changed)
    return out


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
