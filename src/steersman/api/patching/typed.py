"""What structured-merge-diff makes of values: laying one over another, and taking fields out.

Values are plain JSON as it was sent or is shown: null and empty are not absent here, for an applied configuration
speaks of them. What is not changed is shared. Which fields a value has, and which a change touches, is in
`steersman.api.fields`.

Source of the facts: structured-merge-diff 6.3, `typed/merge.go`, `typed/remove.go`, `merge/update.go`, against which
tests/api/patching/applies.json.xz was recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from steersman.api import fields
from steersman.api.schema import Schema
from steersman.kernel.fieldset import LEAF, FieldSet, covers, difference, intersection, node, union
from steersman.kernel.value import Frozen, FrozenList


def merge(schema: Schema | None, old: Any, new: Any) -> Any:
    """`new` laid over `old`: maps by key, associative lists by item, everything else replaced. An empty or null map or
    list says nothing about what is in the old one."""
    if old is new:
        return old
    atomic = schema is not None and schema.atomic
    if isinstance(old, dict) and not atomic:
        if new is None or isinstance(new, dict):
            return old if old and not new else _merge_maps(schema, old, new)
    elif isinstance(old, list) and schema is not None and schema.list_type in ("map", "set"):
        if not new and old and (new is None or isinstance(new, list)):
            return old
        before, after = fields.named_items(schema, old), fields.named_items(schema, new)
        if before is not None and after is not None:
            items = _merge_items(schema, old, before, dict(zip(after, new, strict=True)))
            same = len(items) == len(old) and all(a is b for a, b in zip(items, old, strict=True))
            return old if same else FrozenList(items)
    return old if _identical(old, new) else new


def _merge_maps(schema: Schema | None, old: dict[str, Any], new: dict[str, Any] | None) -> Any:
    if not new:
        return old if new == old else new
    laid = {
        name: merge(fields.child_schema(schema, name), old[name], item) if name in old else item
        for name, item in new.items()
    }
    if all(name in old and old[name] is item for name, item in laid.items()):
        return old
    return Frozen({**old, **laid})


def _identical(old: Any, new: Any) -> bool:
    """Whether two values are equal and would be stored as the same bytes: Python has 1 == True == 1.0."""
    if type(old) in (str, bool, int, float) or old is None:
        return type(old) is type(new) and bool(old == new)
    return bool(old == new) and orjson.dumps(old) == orjson.dumps(new)


def _merge_items(schema: Schema, old: list[Any], names: list[str], new: dict[str, Any]) -> list[Any]:
    """Items of both lists, `names` being the elements of the old one. The applied order wins among the applied ones; an
    item that only the object has follows the one it followed there, as far as that goes."""
    theirs: dict[str, Any] = {}
    for name, item in zip(names, old, strict=True):
        theirs[name] = None if name in theirs else item  # what is there twice is not merged with, but replaced
    coming = list(new)
    shared = [name for name in coming if name in theirs]
    out: list[Any] = []
    done: set[str] = set()
    left = right = turn = 0

    def take(name: str) -> None:
        done.add(name)
        before = theirs.get(name)
        out.append(new[name] if before is None else merge(schema.items, before, new[name]))

    while left < len(names) or right < len(coming):
        if left < len(names):
            name = names[left]
            if right < len(coming):
                if name == coming[right]:
                    take(name)
                    left, right, turn = left + 1, right + 1, turn + 1
                    continue
                if name in new and turn < len(shared) and shared[turn] != name:
                    left += 1  # its turn comes later
                    continue
            if name not in new:
                out.append(old[left])
                left += 1
                continue
            if name in done:
                left += 1
        if right < len(coming):
            take(coming[right])
            turn += turn < len(shared) and shared[turn] == coming[right]
            right += 1
    return out


def without(schema: Schema | None, value: Any, gone: FieldSet) -> Any:
    """`value` without the fields and items that are members of `gone`, with all that is in them. What becomes empty
    stays, empty. Of what is atomic nothing can be taken alone: it becomes empty."""
    if isinstance(value, dict):
        if schema is not None and schema.atomic:
            return Frozen()
        below = dict(zip(gone.names, gone.kids, strict=True))
        out = {}
        for name, item in value.items():
            kid = below.get(f"f:{name}")
            if kid is None:
                out[name] = item
            elif not kid.member:
                out[name] = without(fields.child_schema(schema, name), item, kid) if kid.names else item
        return Frozen(out)
    if isinstance(value, list):
        names = None if schema is None else fields.named_items(schema, value)
        if schema is None or names is None:
            return FrozenList()
        below = dict(zip(gone.names, gone.kids, strict=True))
        kept = []
        for name, item in zip(names, value, strict=True):
            kid = below.get(name)
            if kid is None or not kid.member:
                kept.append(item if kid is None or not kid.names else without(schema.items, item, kid))
        return FrozenList(kept)
    return value


def with_holders(schema: Schema | None, found: FieldSet) -> FieldSet:
    """The set with every declared field a member of which something below is one."""
    kids = {}
    for name, kid in zip(found.names, found.kids, strict=True):
        if not kid.names:
            kids[name] = kid
            continue
        field = name.startswith("f:")
        child = fields.child_schema(schema, name[2:]) if field else (None if schema is None else schema.items)
        made = with_holders(child, kid)
        kids[name] = union(made, LEAF) if field and schema is not None and name[2:] in schema.fields else made
    return node(kids, found.member)


def pruned(
    schema: Schema, merged: Mapping[str, Any], last: FieldSet, claimed: FieldSet, others: Iterable[FieldSet]
) -> dict[str, Any]:
    """`merged` without what is in `last`, which its manager applied before, and neither in `claimed`, which it applies
    now, nor in `others`, which others own."""
    body = dict(merged)
    if covers(claimed, last):
        return body
    kept = claimed
    for owned in others:
        kept = union(kept, owned)
    parts = {name[2:]: body[name[2:]] for name in last.names if name[2:] in body}
    whole = with_holders(schema, fields.present(schema, parts))
    last = with_holders(schema, last)
    left = without(schema, parts, last)
    now = with_holders(schema, fields.present(schema, left))
    left = without(schema, parts, difference(whole, union(now, with_holders(schema, kept))))
    now = with_holders(schema, fields.present(schema, left))
    gone = intersection(difference(whole, now), last)  # what nobody owns is not this manager's to take away
    if gone:
        left = without(schema, parts, gone)
        for part in parts:
            if part in left:
                body[part] = left[part]
            else:
                del body[part]
    return body
