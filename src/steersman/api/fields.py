"""Which fields a value has and which a change touches: the field sets of managedFields, by schema.

Three questions, as structured-merge-diff answers them (facts from its documentation and behaviour):

* `present(schema, value)`: the set an applied configuration claims. Leaves, and items of associative lists.
* `added(schema, value)`: what appears when the value was absent before: the same, and every map and list itself.
* `compare(schema, old, new)`: what a change added or modified, and what it removed.

Lists without a type and structures marked atomic are one leaf. Where there is no schema, maps are granular and lists
atomic. Equal subtrees are skipped by identity first, then by one C-level comparison.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import orjson

from steersman.api.schema import Schema
from steersman.kernel.fieldset import LEAF, NOTHING, FieldSet, node

Change = tuple[FieldSet, FieldSet]
SAME: Final[Change] = (NOTHING, NOTHING)
_NO_FIELDS: Final[dict[str, Schema]] = {}


def _granular(schema: Schema | None, value: Any) -> bool:
    """Whether a dict is owned field by field."""
    return isinstance(value, dict) and not (schema is not None and schema.atomic)


def _child(schema: Schema | None, name: str) -> Schema | None:
    if schema is None:
        return None
    found = schema.fields.get(name)
    return schema.values if found is None else found


@lru_cache(maxsize=1 << 14)
def _field(name: str) -> str:
    return "f:" + name


@lru_cache(maxsize=1 << 14)
def _key_element(keys: tuple[str, ...], values: tuple[Any, ...]) -> str:
    return "k:" + orjson.dumps(dict(zip(keys, values, strict=True)), option=orjson.OPT_SORT_KEYS).decode()


@lru_cache(maxsize=1 << 12)
def _set_element(value: Any) -> str:
    return "v:" + orjson.dumps(value).decode()


def item_element(schema: Schema, item: Any) -> str | None:
    """The path element of a list item (`k:{"name":"web"}`, `v:"x"`); None when it has no usable key."""
    if schema.list_type == "set":
        return None if isinstance(item, (dict, list)) else _set_element(item)
    if not isinstance(item, dict):
        return None
    values = []
    for name in schema.keys:
        value = item.get(name, schema.key_defaults.get(name))
        if value is None or isinstance(value, (dict, list)):
            return None
        values.append(value)
    return _key_element(schema.keys, tuple(values))


def items_by_element(schema: Schema | None, value: Any) -> dict[str, Any] | None:
    """The items of an associative list by path element; None when the list is atomic or its keys are unusable
    (missing or not unique), for then it can only be owned as a whole."""
    if schema is None or schema.list_type not in ("map", "set") or not isinstance(value, list):
        return None
    out: dict[str, Any] = {}
    for item in value:
        element = item_element(schema, item)
        if element is None or element in out:
            return None
        out[element] = item
    return out


def present(schema: Schema | None, value: Any) -> FieldSet:
    """The set of fields of an applied configuration; see the module's text."""
    if isinstance(value, dict) and value and _granular(schema, value):
        out = {}
        for name, item in value.items():
            below = present(_child(schema, name), item)
            out[_field(name)] = below
        return node(out)
    if isinstance(value, list) and schema is not None:
        items = items_by_element(schema, value)
        if items:
            return node({element: present(schema.items, item) | LEAF for element, item in items.items()})
    return LEAF


def added(schema: Schema | None, value: Any) -> FieldSet:
    """The set of fields that appear together with `value`; the value itself is a member."""
    if isinstance(value, dict):
        if value and not (schema is not None and schema.atomic):
            return node({_field(name): added(_child(schema, name), item) for name, item in value.items()}, True)
        return LEAF
    if isinstance(value, list) and schema is not None and schema.list_type in ("map", "set"):
        items = items_by_element(schema, value)
        if items:
            return node({element: added(schema.items, item) for element, item in items.items()}, True)
    return LEAF


def compare(schema: Schema | None, old: Any, new: Any) -> Change:
    """(added or modified, removed) between two values, both present."""
    if old is new or old == new:
        return SAME
    if isinstance(old, dict) and isinstance(new, dict) and not (schema is not None and schema.atomic):
        return _compare_maps(schema, old, new)
    if schema is not None and schema.list_type in ("map", "set"):
        before, after = items_by_element(schema, old), items_by_element(schema, new)
        if before is not None and after is not None:
            return _compare_items(schema, before, after)
    return LEAF, NOTHING


def _compare_maps(schema: Schema | None, old: dict[str, Any], new: dict[str, Any]) -> Change:
    fields = _NO_FIELDS if schema is None else schema.fields
    others = None if schema is None else schema.values
    changed: dict[str, FieldSet] = {}
    removed: dict[str, FieldSet] = {}
    for name, item in new.items():
        before = old.get(name)
        if before is item:
            continue
        if before is None:
            changed[_field(name)] = added(fields.get(name, others), item)
            continue
        if isinstance(item, (dict, list)):
            change, gone = compare(fields.get(name, others), before, item)
            if change:
                changed[_field(name)] = change
            if gone:
                removed[_field(name)] = gone
        elif before != item or type(before) is not type(item):
            changed[_field(name)] = LEAF
    for name, item in old.items():
        if name not in new:
            removed[_field(name)] = added(fields.get(name, others), item)
    return node(changed), node(removed)


def _compare_items(schema: Schema, old: dict[str, Any], new: dict[str, Any]) -> Change:
    changed: dict[str, FieldSet] = {}
    removed: dict[str, FieldSet] = {}
    for element, item in new.items():
        before = old.get(element)
        if before is None:
            changed[element] = added(schema.items, item)
            continue
        change, gone = compare(schema.items, before, item)
        if change:
            changed[element] = change
        if gone:
            removed[element] = gone
    for element, item in old.items():
        if element not in new:
            removed[element] = added(schema.items, item)
    if not changed and not removed:  # equal items in another order: the list as a whole was modified
        return LEAF, NOTHING
    return node(changed), node(removed)
