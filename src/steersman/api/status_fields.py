"""managedFields of a status that one manager keeps writing: what `managed.record_update` gives, without a comparison.

A kubelet owns all of a pod's status but the few fields that were there before it and that it never changed. After its
next write it owns all fields of the new status but those of the few that still are as they were: to know that, one
looks at those few, not at everything. And which fields a status has follows from its *shape*, the names of its fields
and the keys of its items, in which the statuses of thousands of pods are alike.

`reported` answers None wherever that reasoning does not hold; the caller then takes the general road. Law
(tests/api/test_status_fields.py): both roads end in the same entries.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, NamedTuple

import orjson

from steersman.api import fields
from steersman.api.intake import ADDRESS, UNLIKE, Misfit, Trace, intake
from steersman.api.kinds import Kind
from steersman.api.schema import Schema
from steersman.kernel.fieldset import NOTHING, Deferred, FieldSet, covers, difference, node, unshared
from steersman.kernel.object import Manager, Object, Section
from steersman.kernel.value import Frozen

STATUS: Final = ("f:status",)
OBSERVED: Final = "observedGeneration"
REMEMBERED: Final = 1 << 12
"""Entries of each table: shapes of a kind are a few for every number of containers."""
MAX_LATER: Final = 64
"""Next states remembered of one: a status goes through few."""
MANY_ENTRIES: Final = 8
"""With more entries than this, `record_update` may have to merge some."""


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


class _Place:
    """A map, list or item of a status below which fields are loose. Fields go by their place among the loose ones."""

    __slots__ = ("below", "loose", "scalars", "wanted")

    def __init__(self) -> None:
        self.wanted: type | None = None
        """What it must be, where it is loose itself."""
        self.scalars: list[tuple[str, Any, int]] = []
        """Loose fields of it, and their values."""
        self.below: dict[tuple[str, Any], _Place] = {}
        self.loose: list[int] = []
        """All of it, itself included."""

    def add(self, number: int, field: Loose) -> None:
        """Adds a loose field of the status whose place this is."""
        at, inner = self, type(field.value) is type
        for step in field.steps if inner else field.steps[:-1]:
            at.loose.append(number)
            at = at.below.setdefault(step, _Place())
        at.loose.append(number)
        if inner:
            at.wanted = field.value
        else:
            at.scalars.append((field.steps[-1][1], field.value, number))

    def lost(self, found: Any, out: list[int]) -> None:
        """Adds what a status no longer has with the same value; `found`: what is at this place."""
        if self.wanted is not None and not isinstance(found, self.wanted):
            out += self.loose
            return
        for name, value, number in self.scalars:
            item = found.get(name)
            if item != value or type(item) is not type(value):
                out.append(number)
        for (key, wanted), place in self.below.items():
            if not key:
                item = found.get(wanted)
            else:
                for item in found:
                    if item.get(key) == wanted:
                        break
                else:
                    item = None
            if item is None:
                out += place.loose
            else:
                place.lost(item, out)


class Standing:
    """How the fields of a status are owned: one for all objects in which it is alike."""

    __slots__ = ("common", "later", "loose", "observed", "owned", "place", "shape")

    def __init__(self, shape: tuple[Any, ...], common: FieldSet, loose: tuple[Loose, ...], owned: FieldSet) -> None:
        self.shape = shape
        self.common = common
        """The fields of the status but for its lists of addresses."""
        self.loose = loose
        self.observed = any(isinstance(names, tuple) and OBSERVED in names for names in shape)
        """Whether such a status tells of a generation that was seen, at its top or in a condition."""
        self.owned = owned
        """`common` without the loose ones."""
        self.place = _Place()
        for number, field in enumerate(loose):
            self.place.add(number, field)
        self.later: dict[tuple[Any, ...], tuple[Standing, bool]] = {}
        """What comes after it, by the shape of the next status and what this loses: and whether it adds any field."""


class Shapes:
    """The shapes of one status schema and the fields that go with each."""

    __slots__ = ("_apart", "_born", "_parent", "_sets", "_standings", "_take")

    def __init__(self, parent: Schema) -> None:
        self._parent = parent
        schema = parent.fields["status"]
        self._apart = {
            name: child
            for name, child in schema.fields.items()
            if child.list_type == "map" and tuple(child.keys) == ADDRESS
        }
        """Lists of addresses: their fields are found anew for each status."""
        self._take = intake(schema, False, zeros=True)
        self._sets: dict[tuple[Any, ...], FieldSet] = {}
        self._standings: dict[tuple[Any, ...], Standing] = {}
        self._born: dict[Section, Standing] = {}

    def shape(self, section: Section) -> tuple[Any, ...]:
        """What the fields of a status depend on; of its lists of addresses, only how long they are."""
        shape = section.shape
        if shape is None:  # it was not taken in just now
            trace: Trace = []
            try:
                self._take(section.value, trace)
            except Misfit:
                raise _Stranger from None
            shape = section.shape = tuple(trace)
        return shape

    def standing(self, section: Section, loose: tuple[Loose, ...]) -> Standing:
        """How such a status is owned by a manager that owns all of it but `loose`. Raises `_Stranger`."""
        shape = self.shape(section)
        found = self._standings.get((shape, loose))
        if found is None:
            common = self.common(section)
            free = _set_of(loose)
            if not covers(common, free):
                raise _Stranger
            _make_room(self._standings)
            found = self._standings[(shape, loose)] = Standing(shape, common, loose, difference(common, free))
        return found

    def later(self, last: Standing, section: Section) -> tuple[Standing, bool]:
        """How a status is owned by a manager that owned all of the last one but its loose fields; and whether it has
        any field that was not there. Raises `_Stranger`."""
        lost: list[int] = []
        last.place.lost(section.value, lost)
        key = (section.shape or self.shape(section), *lost)
        found = last.later.get(key)
        if found is None:
            kept = tuple([field for number, field in enumerate(last.loose) if number not in lost])
            standing = self.standing(section, kept)
            if len(last.later) >= MAX_LATER:
                last.later.clear()
            found = last.later[key] = (standing, not covers(last.common, standing.common))
        return found

    def common(self, section: Section) -> FieldSet:
        """The fields of a status of that shape, as `f:status`'s subtree, but for its lists of addresses."""
        shape = self.shape(section)
        found = self._sets.get(shape)
        if found is None:
            if UNLIKE in shape:
                raise _Stranger
            _make_room(self._sets)
            alike = {name: item for name, item in section.value.items() if name not in self._apart}
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
        common = self.common(section)
        present = self.with_addresses(common, status)
        if not covers(present, owned):
            raise _Stranger
        free = difference(present, owned)
        if not covers(common, free):
            raise _Stranger
        out: list[Loose] = []
        _loosen(self._parent.fields["status"], free, status, (), (), out)
        return self.standing(section, tuple(out))

    def with_addresses(self, owned: FieldSet, status: Frozen) -> FieldSet:
        """`owned` and the fields of this status' lists of addresses. Raises `_Stranger` when they have no keys."""
        texts: list[Any] = []
        some = False
        for name in self._apart:
            items = status.get(name)
            if items is None:
                texts.append(None)
            elif len(items) == 1 and len(items[0]) == 1 and (text := items[0].get(ADDRESS[0])):
                texts.append(text)  # the usual case: one address and nothing else
                some = True
            else:
                return self._added(owned, [status.get(name) for name in self._apart])
        return Deferred(self._with_each, owned, *texts) if some else owned

    def _with_each(self, owned: FieldSet, *texts: Any) -> FieldSet:
        return self._added(owned, [text and [{ADDRESS[0]: text}] for text in texts])

    def _added(self, owned: FieldSet, lists: list[Any]) -> FieldSet:
        """`owned` and the fields of these lists, of which some may be missing, in the order of the schema's fields."""
        kids = dict(zip(owned.names, owned.kids, strict=True))
        for (name, schema), items in zip(self._apart.items(), lists, strict=True):
            if items is not None:
                if fields.elements(schema, items) is None:
                    raise _Stranger
                kids[f"f:{name}"] = fields.added(schema, items)
        return unshared(kids, owned.member)

    def ordered(self, status: Frozen) -> bool:
        """Whether the order of its addresses can change without any of them changing."""
        for name in self._apart:
            items = status.get(name)
            if items is not None and len(items) != 1:
                return True
        return False


def _make_room(table: dict[Any, Any]) -> None:
    if len(table) >= REMEMBERED:
        table.clear()


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
    status = new.status.value
    shapes = _shapes_of(kind.schema)
    try:
        last = old.standing
        if last is None:
            last = shapes.unowned(old.status) if mine is None else shapes.found(old.status, mine.fields.kids[0])
        standing, grown = shapes.later(last, new.status)
        # The same fields in the same order, and not the same bytes: some value differs.
        differs = standing is last and not shapes.ordered(status)
        if not (differs or grown) and not _touches(kind.schema, old.status, status):
            return None
        owned = shapes.with_addresses(standing.owned, status)
    except _Stranger:
        return None
    if owned is standing.owned and not owned:
        return None
    new.standing = standing
    new.status.shape = standing.shape  # one for all of them
    others = old.managers if mine is None else tuple([entry for entry in old.managers if entry is not mine])
    return (*others, Manager(name, "Update", "status", kind.api_version, time, FieldSet(STATUS, (owned,), False)))


def _touches(schema: Schema, old: Section, new: Frozen) -> bool:
    """Whether a write adds or modifies any field, rather than only removing some or changing their order."""
    before = old.peek()
    return bool(before != new and fields.compare(schema.fields.get("status"), before, new)[0])
