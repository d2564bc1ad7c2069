"""Strategic merge patch: a merge patch that knows which lists are merged, by which key, and takes orders.

Lists with the patch strategy `merge` are merged item by item; `$patch: replace | delete`, `$retainKeys`,
`$deleteFromPrimitiveList/FIELD` and `$setElementOrder/FIELD` say what a plain merge cannot. Neither document nor patch
is changed; what a patch does not touch is shared with the document.

Source of the facts: apimachinery `pkg/util/strategicpatch`, release 1.36, against which tests/api/strategic.json was
recorded. Where its answer is 500 for a patch that is merely wrong, this is a 422 with its text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cmp_to_key
from typing import Any, Final

from steersman.api.errors import ApiError, bad_request, unprocessable
from steersman.api.go_json import OBJECT, unmarshal
from steersman.api.patching.patch import check_json
from steersman.api.schema import Schema
from steersman.kernel.value import FrozenList

Json = Any
PATCH: Final = "$patch"
RETAIN: Final = "$retainKeys"
DELETE_FROM: Final = "$deleteFromPrimitiveList"
SET_ORDER: Final = "$setElementOrder"
BAD_DELETE_FROM: Final = "invalid patch format of primitive list"
BAD_RETAIN: Final = "invalid patch format of retainKeys"
BAD_ORDER: Final = "invalid patch format of setElementOrder list"
LISTS_OF_LISTS: Final = "lists of lists are not supported"
EXACT_SORT: Final = 20
"""Items up to which Go's stable sort is an insertion sort: beyond, its answer to an order that is none is its own."""
MAX_SHOWN: Final = 1000
"""Characters of a value in an error."""


def strategic_merge(document: Mapping[str, Any], patch: Any, schema: Schema) -> dict[str, Any]:
    """The document after the patch. Raises `ApiError`: 400 for a malformed patch, 422 for one that cannot be merged."""
    if patch is None:
        patch = {}
    if not isinstance(patch, dict):
        raise bad_request(unmarshal(patch, OBJECT))
    check_json(patch)
    return _merge(document, patch, schema)


# -- objects ---------------------------------------------------------------------------------------------------


def _merge(original: Mapping[str, Any] | None, patch: Mapping[str, Any], schema: Schema | None) -> dict[str, Any]:
    if PATCH in patch:
        return _directed(patch[PATCH], patch)
    out = dict(original or {})
    left = dict(patch)
    _retain(out, left)
    _merge_ordered(out, left, schema)
    for key, value in sorted(left.items(), key=_deletions_first):  # Go goes by chance
        deletes = key.startswith(DELETE_FROM)
        name = _after(key, DELETE_FROM) if deletes else key
        if value is None:
            out.pop(name, None)
        elif name not in out or _type(out[name]) != _type(value):
            if not deletes:
                _put(out, name, _without_nulls(value))
        elif isinstance(value, dict):
            below, strategy, _ = _lookup(schema, name)
            out[name] = value if strategy == "replace" else _merge(out[name], value, below)
        elif isinstance(value, list):
            below, strategy, merge_key = _lookup(schema, name)
            if strategy == "merge" or deletes:
                out[name] = _merge_list(out[name], value, _items_of(below), merge_key, deletes)
            else:
                out[name] = value
        else:
            out[name] = value
    return out


def _deletions_first(member: tuple[str, Any]) -> bool:
    return not member[0].startswith(DELETE_FROM)


def _directed(directive: Any, patch: Mapping[str, Any]) -> dict[str, Any]:
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != PATCH}
    if directive == "delete":
        return {}
    raise _refused(f"unknown patch type: {_as_text(directive)} in map: {_shown(patch)}")


def _put(out: dict[str, Any], name: str, value: Any) -> None:
    kept = _without_directives(value)
    if kept is GONE:
        out.pop(name, None)
    else:
        out[name] = kept


def _retain(out: dict[str, Any], patch: dict[str, Any]) -> None:
    if RETAIN not in patch:
        return
    kept = patch.pop(RETAIN)
    if not isinstance(kept, list) or any(isinstance(name, (dict, list)) for name in kept):
        raise bad_request(BAD_RETAIN)
    names = {name for name in kept if isinstance(name, str)}
    for key, value in patch.items():
        if value is not None and not key.startswith((DELETE_FROM, SET_ORDER)) and key not in names:
            raise bad_request(BAD_RETAIN)
    for key in [key for key in out if key not in names]:
        del out[key]


def _merge_ordered(out: dict[str, Any], patch: dict[str, Any], schema: Schema | None) -> None:
    """Merges the lists whose order the patch gives, and takes both out of it."""
    for key in [key for key in patch if key.startswith(SET_ORDER)]:
        order = patch.pop(key)
        _need(order, list)
        name = _after(key, SET_ORDER)
        before: Any = out.get(name)
        coming: Any = patch.get(name)
        if name in out:
            _need(before, list)
        if name in patch:
            _need(coming, list)
        below, strategy, merge_key = _lookup(schema, name, as_list=True)
        _check_order(coming or [], order, merge_key)
        if name in out and name in patch:
            merged = coming
            if strategy == "merge":
                merged = _merge_list(before, coming, _items_of(below), merge_key, False)
        elif name in out:
            merged = before
        elif name in patch:
            merged = _without_directives(coming)
        else:
            continue
        out[name] = _ordered(merged, order, before or [], coming or [], merge_key)
        patch.pop(name, None)


def _ordered(merged: list[Any], order: list[Any], before: list[Any], coming: list[Any], merge_key: str) -> list[Any]:
    mine, others = _partition(merged, order, merge_key)
    is_map = _element_type(before, coming) is dict
    return _normalized(mine, others, order, before, merge_key, is_map)


def _check_order(coming: list[Any], order: list[Any], merge_key: str) -> None:
    """Raises when an item of the patch's list is not in the order it gives, or in another place."""
    if not order or not coming:
        return
    wanted = coming
    if merge_key:
        wanted = [item for item in coming if _need(item, dict).get(PATCH) != "delete"]
    at = step = 0
    while at < len(wanted) and step < len(order):
        if isinstance(wanted[at], dict) and PATCH in wanted[at]:
            at += 1
            continue
        if _same_key(wanted[at], order[step], merge_key):
            at += 1
        step += 1
    if at < len(wanted):
        text = f"The order in patch list:\n{_shown(coming)}\n doesn't match {SET_ORDER} list:\n{_shown(order)}\n"
        raise _refused(text)


def _same_key(one: Any, other: Any, merge_key: str) -> bool:
    if not merge_key:
        return bool(_scalar(one) == _scalar(other))
    return bool(_scalar(_key_of(one, merge_key)) == _scalar(_key_of(other, merge_key)))


# -- lists -----------------------------------------------------------------------------------------------------


def _merge_list(
    original: list[Any], patch: list[Any], items: Schema | None, merge_key: str, deletes: bool
) -> list[Any]:
    if not original and not patch:
        return original
    is_map = _element_type(original, patch) is dict
    if not is_map:
        if deletes:
            gone = {_scalar(item) for item in patch}
            return [item for item in original if _scalar(item) not in gone]
        merged = _deduplicated([*original, *patch])
    else:
        if not merge_key:
            raise _refused(f"cannot merge lists without merge key for {_go_kind(items)}")
        original, patch = _specials_applied(original, patch, merge_key)
        merged, original = _merge_items(original, patch, merge_key, items)
    mine, others = _partition(merged, patch, merge_key)
    return _normalized(mine, others, patch, original, merge_key, is_map)


def _specials_applied(original: list[Any], patch: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """Both lists after the items of the patch that are orders; these are gone from it."""
    plain: list[Any] = []
    replaces = False
    for item in patch:
        if PATCH not in item:
            plain.append(item)
        elif item[PATCH] == "delete":
            if merge_key not in item:
                raise _no_key(item, merge_key)
            gone = _scalar(item[merge_key])
            original = [one for one in original if merge_key not in one or _scalar(one[merge_key]) != gone]
        elif item[PATCH] == "replace":
            replaces = True
        elif item[PATCH] == "merge":
            raise _refused("merging lists cannot yet be specified in the patch")
        else:
            raise _refused(f"unknown patch type: {_as_text(item[PATCH])} in map: {_shown(item)}")
    return (plain, []) if replaces else (original, plain)


def _merge_items(
    original: list[Any], patch: list[Any], merge_key: str, items: Schema | None
) -> tuple[list[Any], list[Any]]:
    """(the merged items, those of them that were there before), each item in its first place."""
    out = list(original)
    where: dict[Any, int] = {}
    for index, item in enumerate(out):
        if merge_key in item:
            where.setdefault(_scalar(item[merge_key]), index)
    for item in patch:
        key = _scalar(_key_of(item, merge_key))
        found = where.get(key)
        if found is None:
            where[key] = len(out)
            out.append(item)
            continue
        out[found] = _merge(out[found], item, items)
        if merge_key in out[found]:
            where.setdefault(_scalar(out[found][merge_key]), found)
    return out, out[: len(original)]


def _deduplicated(items: list[Any]) -> list[Any]:
    """Without what is there twice, the last item taking the place of each one that goes, as Go's loop has it."""
    seen: set[Any] = set()
    out = list(items)
    at = 0
    while at < len(out):
        key = _scalar(out[at])
        if key not in seen:
            seen.add(key)
            at += 1
            continue
        last = out.pop()
        if at < len(out):
            out[at] = last
    return out


def _partition(merged: list[Any], by: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """The merged items that the patch names, and the others."""
    if merge_key:
        for item in [*merged, *by] if merged else []:
            _need(item, dict)
        named = {_scalar(item[merge_key]) for item in by if merge_key in item} if merged else set()
        keys = [_scalar(_key_of(item, merge_key)) for item in merged]
    else:
        named, keys = {_scalar(item) for item in by}, [_scalar(item) for item in merged]
    mine = [item for item, key in zip(merged, keys, strict=True) if key in named]
    return mine, [item for item, key in zip(merged, keys, strict=True) if key not in named]


def _normalized(
    mine: list[Any], others: list[Any], order: list[Any], before: list[Any], merge_key: str, is_map: bool
) -> list[Any]:
    """The patch's items in its order and the server's in theirs, interleaved by the order there was."""
    mine = _sorted(mine, order, merge_key, is_map)
    others = _sorted(others, before, merge_key, is_map)
    places = _places(before, merge_key, is_map)
    out: list[Any] = []
    i = j = 0
    while i < len(others) and j < len(mine):
        left = places.get(_place_key(others[i], merge_key, is_map), -1)
        right = places.get(_place_key(mine[j], merge_key, is_map), -1)
        if 0 <= left < right:
            out.append(others[i])
            i += 1
        else:
            out.append(mine[j])
            j += 1
    return FrozenList([*out, *others[i:], *mine[j:]])


def _sorted(items: list[Any], order: list[Any], merge_key: str, is_map: bool) -> list[Any]:
    deleted: list[Any] = []
    if is_map:
        for item in [*items, *order]:
            _key_of(item, merge_key)
        deleted = [item for item in items if item.get(PATCH) == "delete"]
        items = [item for item in items if item.get(PATCH) != "delete"]
    places = _places(order, merge_key, is_map)
    ranked = [(places.get(_place_key(item, merge_key, is_map), -1), item) for item in items]
    if all(rank >= 0 for rank, _ in ranked):
        ranked.sort(key=lambda pair: pair[0])
    elif len(ranked) <= EXACT_SORT:
        _insertion_sort(ranked)
    else:
        ranked.sort(key=cmp_to_key(_by_place))
    return [*[item for _, item in ranked], *deleted]


def _by_place(one: tuple[int, Any], other: tuple[int, Any]) -> int:
    return one[0] - other[0] if one[0] >= 0 and other[0] >= 0 else 0


def _insertion_sort(ranked: list[tuple[int, Any]]) -> None:
    """Go's, with a comparison that calls an item without a place less than any other."""
    for index in range(1, len(ranked)):
        at = index
        while at > 0:
            one, other = ranked[at][0], ranked[at - 1][0]
            if one >= 0 and other >= 0 and one >= other:
                break
            ranked[at], ranked[at - 1] = ranked[at - 1], ranked[at]
            at -= 1


def _places(order: Iterable[Any], merge_key: str, is_map: bool) -> dict[Any, int]:
    out: dict[Any, int] = {}
    for index, item in enumerate(order):
        out.setdefault(_place_key(item, merge_key, is_map), index)
    return out


def _place_key(item: Any, merge_key: str, is_map: bool) -> Any:
    if not is_map:
        return _scalar(item)
    return _scalar(item.get(merge_key)) if isinstance(item, dict) else _scalar(None)


# -- values ----------------------------------------------------------------------------------------------------

GONE: Final[Any] = object()
"""Instead of a value: there is none."""


def _without_directives(value: Any) -> Any:
    """The value without the objects that are orders, at any depth; `GONE` when it is one itself."""
    if isinstance(value, dict):
        if PATCH in value:
            return GONE
        kept = {key: _without_directives(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item is not GONE}
    if isinstance(value, list):
        return [item for item in map(_without_directives, value) if item is not GONE]
    return value


def _without_nulls(value: Any) -> Any:
    """The value without null members, at any depth; nulls that are items of lists stay."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def _type(value: Any) -> type | None:
    """The Go type as far as it matters: objects and lists each are one, whoever made them."""
    if isinstance(value, dict):
        return dict
    return list if isinstance(value, list) else None if value is None else type(value)


def _element_type(*lists: list[Any]) -> type | None:
    """The one type of all items. Raises 422 when there are several, none at all, or it is a list."""
    found: list[type | None] = []
    for items in lists:
        for item in items:
            kind = _type(item)
            if not found and kind is list:
                raise _refused(LISTS_OF_LISTS)
            if found and kind != found[0]:
                raise _refused(f"list element types are not identical: {_shown(list(lists))}")
            found = found or [kind]
    if not found:
        raise _refused("no elements in any of the given slices")
    return found[0]


def _scalar(value: Any) -> Any:
    """What is compared: 1, 1.0 and true are three values."""
    if isinstance(value, (dict, list)):
        raise _refused(f"{_shown(value)} cannot be compared: give a text or a number")
    return (type(value), value)


def _key_of(item: Any, merge_key: str) -> Any:
    _need(item, dict)
    if merge_key not in item:
        raise _no_key(item, merge_key)
    return item[merge_key]


def _no_key(item: Mapping[str, Any], merge_key: str) -> ApiError:
    return _refused(f"map: {_shown(item)} does not contain declared merge key: {merge_key}")


def _need(value: Any, wanted: type) -> Any:
    if not isinstance(value, wanted):
        raise _refused(f"expected a {_go_type(wanted())}, but received a {_go_type(value)}")
    return value


def _after(key: str, prefix: str) -> str:
    head, slash, name = key.partition("/")
    if not slash or head != prefix:
        raise bad_request(BAD_DELETE_FROM if prefix == DELETE_FROM else BAD_ORDER)
    return name


# -- the schema ------------------------------------------------------------------------------------------------


def _lookup(schema: Schema | None, name: str, as_list: bool = False) -> tuple[Schema | None, str, str]:
    """(schema, patch strategy, merge key) of a field."""
    found = None if schema is None else schema.fields.get(name)
    if found is None:
        if schema is not None and not schema.fields and schema.type in ("map", "object"):
            raise _refused("merging an object in json but data type is not struct, instead is: map")
        struct = "" if schema is None else schema.name.rpartition(".")[2]
        raise _refused(f'unable to find api field in struct {struct} for the json field "{name}"')
    if as_list and found.type != "list":
        raise _refused("expected slice or array type, but got: struct")
    strategies = [word for word in found.merge_strategy.split(",") if word != "retainKeys"]
    return found, strategies[0] if strategies else "", found.merge_key


def _items_of(schema: Schema | None) -> Schema | None:
    return None if schema is None else schema.items


# -- texts -----------------------------------------------------------------------------------------------------


def _refused(text: str) -> ApiError:
    return unprocessable(text)


def _go_kind(items: Schema | None) -> str:
    return "map" if items is not None and items.type == "map" else "struct"


_GO_TYPES: Final[Mapping[type | None, str]] = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    None: "%!s(<nil>)",
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
}


def _go_type(value: Any) -> str:
    return _GO_TYPES.get(_type(value), type(value).__name__)


def _as_text(value: Any) -> str:
    """Go's %s."""
    return value if isinstance(value, str) else f"%!s({_go_type(value)}={_shown(value)})"


def _shown(value: Any) -> str:
    """Go's %v, cut."""
    text = _plain(value)
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{_plain(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(_plain, value)) + "]"
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)
