"""managedFields of a status that one manager keeps writing: what `managed.record_update` gives, without a comparison.

A kubelet owns all of a pod's status but the few fields that were there before it and that it never changed. After its
next write it owns all fields of the new status but those of the few that still are as they were: to know that, one
looks at those few, not at everything. And which fields a status has follows from its *shape*, the names of its fields
and the keys of its items, in which the statuses of thousands of pods are alike.

`reported` answers None wherever that reasoning does not hold; the caller then takes the general road. Law
(tests/api/test_status_fields.py): both roads end in the same entries.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NamedTuple

import orjson

from steersman.api import fields
from steersman.api.kinds import Kind
from steersman.api.schema import Schema
from steersman.kernel.fieldset import LEAF, NOTHING, FieldSet, covers, difference, node
from steersman.kernel.object import Manager, Object, Section
from steersman.kernel.value import Frozen

STATUS: Final = ("f:status",)
REMEMBERED: Final = 1 << 12
"""Entries of each table: shapes of a kind are a few for every number of containers."""
ADDRESS: Final = ("ip",)
"""The key of lists whose items are named unlike those of any other object: no part of a shape."""
_ITEM: Final = node({"f:ip": LEAF}, True)
MANY_ENTRIES: Final = 8
"""With more entries than this, `record_update` may have to merge some."""

Walk = Callable[[Any, "list[Any]"], None]


class _Stranger(Exception):
    """The general road has to be taken."""


class Loose(NamedTuple):
    """A field of a status that belongs to nobody."""

    path: tuple[str, ...]
    """Its path elements."""
    steps: tuple[tuple[str, Any], ...]
    """The way to it: ("", name of a field) or (key, its value in an item)."""
    value: Any
    """A scalar; the type `dict` or `list` for a map or list that belongs to nobody itself."""

    def still_in(self, status: Frozen) -> bool:
        """Whether that status has the field, with the same value."""
        found: Any = status
        for key, wanted in self.steps:
            if not key:
                found = found.get(wanted)
            else:
                for item in found:
                    if item.get(key) == wanted:
                        found = item
                        break
                else:
                    return False
            if found is None:
                return False
        value = self.value
        if type(value) is type:
            return isinstance(found, value)
        return found == value and type(found) is type(value)


class Standing:
    """How the fields of a status are owned: one for all objects in which it is alike."""

    __slots__ = ("common", "loose", "owned")

    def __init__(self, common: FieldSet, loose: tuple[Loose, ...], owned: FieldSet) -> None:
        self.common = common
        """The fields of the status but for its lists of addresses."""
        self.loose = loose
        self.owned = owned
        """`common` without the loose ones."""


class Shapes:
    """The shapes of one status schema and the fields that go with each."""

    __slots__ = ("_apart", "_born", "_parent", "_sets", "_standings", "_walk")

    def __init__(self, parent: Schema) -> None:
        self._parent = parent
        schema = parent.fields["status"]
        self._apart = {
            name: child
            for name, child in schema.fields.items()
            if child.list_type == "map" and tuple(child.keys) == ADDRESS
        }
        """Lists of addresses: their fields are found anew for each status."""
        self._walk = _walk(schema, frozenset(self._apart))
        self._sets: dict[tuple[Any, ...], FieldSet] = {}
        self._standings: dict[tuple[Any, ...], Standing] = {}
        self._born: dict[Section, Standing] = {}

    def shape(self, status: Frozen) -> tuple[Any, ...]:
        """What the fields of a status depend on; of its lists of addresses, only how long they are."""
        shape: list[Any] = [len(status.get(name, ())) for name in self._apart]
        self._walk(status, shape)
        return tuple(shape)

    def standing(self, status: Frozen, loose: tuple[Loose, ...]) -> Standing:
        """How such a status is owned by a manager that owns all of it but `loose`. Raises `_Stranger`."""
        shape = self.shape(status)
        found = self._standings.get((shape, loose))
        if found is None:
            common = self.common(shape, status)
            free = _set_of(loose)
            if not covers(common, free):
                raise _Stranger
            _make_room(self._standings)
            found = self._standings[(shape, loose)] = Standing(common, loose, difference(common, free))
        return found

    def common(self, shape: tuple[Any, ...], status: Frozen) -> FieldSet:
        """The fields of a status of that shape, as `f:status`'s subtree, but for its lists of addresses."""
        found = self._sets.get(shape)
        if found is None:
            _make_room(self._sets)
            alike = {name: item for name, item in status.items() if name not in self._apart}
            found = self._sets[shape] = fields.appearing(self._parent, "status", alike) if alike else NOTHING
        return found

    def unowned(self, section: Section) -> Standing:
        """A status all of which belongs to nobody; pods that were bound in one second share it."""
        found = self._born.get(section)
        if found is None:
            _make_room(self._born)
            found = self._born[section] = self.found(section, NOTHING)
        return found

    def found(self, section: Section, owned: FieldSet) -> Standing:
        """How a status is owned of which one manager owns `owned`. Raises `_Stranger` when it claims what is not
        there, or when nobody owns an address."""
        status = section.value
        common = self.common(self.shape(status), status)
        present = self.with_addresses(common, status, NOTHING)
        if not covers(present, owned):
            raise _Stranger
        free = difference(present, owned)
        if not covers(common, free):
            raise _Stranger
        out: list[Loose] = []
        _loosen(self._parent.fields["status"], free, status, (), (), out)
        return self.standing(status, tuple(out))

    def with_addresses(self, owned: FieldSet, status: Frozen, before: FieldSet) -> FieldSet:
        """`owned` and the fields of this status' lists of addresses; `before`: what was owned of the last one."""
        names, kids = owned.names, owned.kids
        for name, schema in self._apart.items():
            items = status.get(name)
            if items is None:
                continue
            field = f"f:{name}"
            if len(items) != 1 or len(items[0]) != 1:
                if fields.elements(schema, items) is None:
                    raise _Stranger
                below = fields.added(schema, items)
            else:  # the usual case: one address and nothing else
                element = fields.key_element(schema.keys, [items[0].get(ADDRESS[0])])
                below = before.child(field)
                if below.names != (element,):
                    below = FieldSet((element,), (_ITEM,), True)
            at = bisect(names, field)
            names, kids = _with_name(names, field, at), (*kids[:at], below, *kids[at:])
        return owned if names is owned.names else FieldSet(names, kids, owned.member)

    def ordered(self, status: Frozen) -> bool:
        """Whether the order of its addresses can change without any of them changing."""
        return any(len(status.get(name, ())) != 1 for name in self._apart if name in status)


def _make_room(table: dict[Any, Any]) -> None:
    if len(table) >= REMEMBERED:
        table.clear()


@lru_cache(maxsize=REMEMBERED)
def _with_name(names: tuple[str, ...], name: str, at: int) -> tuple[str, ...]:
    """One tuple for all statuses of a shape."""
    return (*names[:at], name, *names[at:])


@lru_cache(maxsize=REMEMBERED)
def _set_of(loose: tuple[Loose, ...]) -> FieldSet:
    tree: dict[str, Any] = {}
    for field in loose:
        at = tree
        for name in field.path:
            at = at.setdefault(name, {})
        at["."] = True

    def build(at: dict[str, Any]) -> FieldSet:
        return node({name: build(below) for name, below in at.items() if name != "."}, "." in at)

    return build(tree)


def _loosen(
    schema: Schema | None, free: FieldSet, value: Any, path: tuple[str, ...], steps: tuple[Any, ...], out: list[Loose]
) -> None:
    """Lists the fields of a set and their values. Raises `_Stranger` for what cannot be found again by steps."""
    if free.member:
        inner = isinstance(value, (dict, list))
        if inner and not free.names:
            raise _Stranger  # one leaf, or empty: only a comparison can tell
        out.append(Loose(path, steps, (dict if isinstance(value, dict) else list) if inner else value))
    for name, below in zip(free.names, free.kids, strict=True):
        if isinstance(value, dict):
            step: tuple[str, Any] = ("", name[2:])
            item, inside = value[name[2:]], fields.child_schema(schema, name[2:])
        elif schema is not None and schema.list_type == "map" and len(schema.keys) == 1:
            step = (schema.keys[0], orjson.loads(name[2:])[schema.keys[0]])
            item = next((one for one in value if one.get(step[0]) == step[1]), None)
            inside = schema.items
        else:
            raise _Stranger
        _loosen(inside, below, item, (*path, name), (*steps, step), out)


_shapes: dict[int, Shapes] = {}
_schemas: dict[int, Schema] = {}
"""Keeps the schemas alive, so that their ids stay their own."""


def _shapes_of(schema: Schema) -> Shapes:
    found = _shapes.get(id(schema))
    if found is None:
        _schemas[id(schema)] = schema
        found = _shapes[id(schema)] = Shapes(schema)
    return found


def _walk(schema: Schema, apart: frozenset[str] = frozenset()) -> Walk:
    """The function that appends to a list what the field set of a struct depends on, but for the fields `apart`."""
    below: dict[tuple[str, ...], tuple[tuple[str, Walk], ...]] = {}
    walks: dict[str, Walk | None] = {}

    def plan(names: tuple[str, ...]) -> tuple[tuple[str, Walk], ...]:
        found = []
        for name in names:
            if name not in walks:
                child = fields.child_schema(schema, name)
                walks[name] = None if name in apart or child is None else _walk_of(child)
            walk = walks[name]
            if walk is not None:
                found.append((name, walk))
        if len(below) >= REMEMBERED:
            below.clear()
        return below.setdefault(names, tuple(found))

    def walk(value: Any, out: list[Any]) -> None:
        names = tuple(value)
        out.append(names)
        inside = below.get(names)
        for name, inner in plan(names) if inside is None else inside:
            inner(value[name], out)

    return walk


def _walk_of(schema: Schema) -> Walk | None:
    """The walk below a field; None where its set does not depend on its value."""
    if schema.type in ("object", "map") and not schema.atomic:
        return _walk(schema) if schema.fields or schema.values is not None else _any_map
    if schema.list_type in ("map", "set") and schema.items is not None:
        return _walk_items(schema, schema.items)
    return _unlike if schema.type == "any" and not schema.atomic else None


def _unlike(value: Any, out: list[Any]) -> None:
    """A value of no declared type, which may be a map of anything."""
    if isinstance(value, dict):
        raise _Stranger
    out.append(None)


def _any_map(value: Any, out: list[Any]) -> None:
    for item in value.values():
        _unlike(item, out)
    out.append(tuple(value))


def _walk_items(schema: Schema, items: Schema) -> Walk:
    keys = schema.keys
    inner: list[Walk] = []  # made on first use: definitions may refer to themselves

    def walk(value: Any, out: list[Any]) -> None:
        if schema.list_type == "set" or len(keys) != 1:
            names = tuple([fields.item_element(schema, item) for item in value])
        else:
            names = tuple([item.get(keys[0]) for item in value])
        if len(set(names)) != len(names) or None in names:
            raise _Stranger  # its items cannot be told apart
        out.append(names)
        if isinstance(value, list) and value and isinstance(value[0], dict):
            if not inner:
                inner.append(_walk(items))
            for item in value:
                inner[0](item, out)

    return walk


# -- the next entries ------------------------------------------------------------------------------------------


def reported(kind: Kind, old: Object, new: Object, name: str, time: str) -> tuple[Manager, ...] | None:
    """managedFields after manager `name` wrote the status of `new` at `time`, and `new.standing` with it; None: take
    the general road. Only for a write that changed nothing but the status, whose digest differs."""
    if kind.custom or old.status is None or new.status is None:
        return None
    mine: Manager | None = None
    for entry in old.managers:
        if entry.name == name and entry.operation == "Update" and entry.subresource == "status":
            if entry.fields.names != STATUS:
                return None
            mine = entry
        elif "f:status" in entry.fields.names:
            return None
    if mine is None and len(old.managers) > MANY_ENTRIES:
        return None
    before = NOTHING if mine is None else mine.fields.kids[0]
    status = new.status.value
    shapes = _shapes_of(kind.schema)
    try:
        last = old.standing
        if last is None:
            last = shapes.unowned(old.status) if mine is None else shapes.found(old.status, before)
        loose = last.loose
        kept = [field for field in loose if field.still_in(status)]
        standing = shapes.standing(status, loose if len(kept) == len(loose) else tuple(kept))
        # The same fields in the same order, and not the same bytes: some value differs.
        differs = standing is last and not shapes.ordered(status)
        if not differs and covers(last.common, standing.common) and not _touches(kind.schema, old.status, status):
            return None
        owned = shapes.with_addresses(standing.owned, status, before)
    except _Stranger:
        return None
    if not owned:
        return None
    new.standing = standing
    others = old.managers if mine is None else tuple([entry for entry in old.managers if entry is not mine])
    return (*others, Manager(name, "Update", "status", kind.api_version, time, FieldSet(STATUS, (owned,), False)))


def _touches(schema: Schema, old: Section, new: Frozen) -> bool:
    """Whether a write adds or modifies any field, rather than only removing some or changing their order."""
    before = old.peek()
    return bool(before != new and fields.compare(schema.fields.get("status"), before, new)[0])
