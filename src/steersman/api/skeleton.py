"""Skeletons: values that are built alike are taken in by code that was written for them.

The closures of `intake` look up every field of every object. The statuses of thousands of pods have the same fields in
the same order, down to their containers; once some of them came by, a function is made for their skeleton: straight
code that checks each name and each value where it expects it, and makes the frozen value and its trace. Whatever does
not fit is None, and goes the long way, which alone says what is wrong. Law (tests/api/test_skeleton.py): both ways give
the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from steersman.api.intake import (
    ADDRESS,
    INT32,
    INT64,
    UNLIKE,
    Fields,
    How,
    Misfit,
    Take,
    Trace,
    has_fields,
    intake,
    take_boolean,
    take_string,
)
from steersman.api.schema import Schema
from steersman.api.zeros import shown
from steersman.kernel.value import EMPTY, Frozen, FrozenList

AFTER: Final = 16
"""Values without a function of their own after which one is made; each further one of the same fields needs twice as
many. Making one takes as long as some fifty values."""
PER_LAYOUT: Final = 8
"""Functions for values with the same fields at the top, of which the first that fits is taken."""
LAYOUTS: Final = 64
"""Sets of fields at the top that are told apart; what comes later goes the long way."""
MAX_NODES: Final = 400
"""Objects, lists and scalars of a value for which a function is made: a status of twenty containers has as many."""
STATUS: Final = How(required=False, zeros=True)
"""How the statuses of built-in kinds are taken in."""

Shape = tuple[Any, ...]
Made = Callable[[dict[str, Any]], "tuple[Frozen, Shape] | None"]


class _Unfit(Exception):
    """No function can be made for this value."""


class Skeletons:
    """The functions made for the values of one schema."""

    __slots__ = ("_made", "_missed", "_schema", "_take", "_tried")

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._take: Take = intake(schema, STATUS.required, STATUS.custom, STATUS.zeros)
        self._made: dict[Shape, list[Made]] = {}
        self._missed: dict[Shape, int] = {}
        self._tried: dict[Shape, int] = {}
        """How often a function was tried to be made for values with these fields: some cannot have any."""

    def take(self, value: Any) -> tuple[Frozen, Shape] | None:
        """The frozen value and the trace of a value that is built like others before; None: go the long way."""
        if type(value) is not dict:
            return None
        names = tuple(value)
        made = self._made.get(names)
        if made is not None:
            try:
                for number, function in enumerate(made):
                    found = function(value)
                    if found is not None:
                        if number:
                            made[0], made[number] = function, made[0]
                        return found
            except Misfit:
                return None
        self._miss(names, value)
        return None

    def _miss(self, names: Shape, value: dict[str, Any]) -> None:
        missed = self._missed.get(names, 0) + 1
        if missed == 1 and len(self._missed) >= LAYOUTS:
            return
        self._missed[names] = missed
        tried = self._tried.get(names, 0)
        if missed < AFTER << tried or tried >= PER_LAYOUT:
            return
        self._tried[names] = tried + 1
        try:
            trace: Trace = []
            taken = self._take(value, trace)
            function = _Writing(self._schema).function(value)
            if function(value) == (taken, tuple(trace)):
                self._made.setdefault(names, []).append(function)
        except (_Unfit, Misfit, RecursionError):
            pass


@lru_cache(maxsize=1 << 10)
def _skeletons(schema: Schema) -> Skeletons:
    return Skeletons(schema)


def status_like_others(schema: Schema, value: Any) -> tuple[Frozen, Shape] | None:
    """See `Skeletons.take`; `schema` is that of a status of a built-in kind."""
    return _skeletons(schema).take(value)


class _Writing:
    """One function being written, from a value like those it is for."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._lines: list[str] = []
        self._known: dict[str, Any] = {
            "Frozen": Frozen,
            "FrozenList": FrozenList,
            "put": dict.__setitem__,
            "drop": dict.__delitem__,
        }
        self._count = 0

    def function(self, value: dict[str, Any]) -> Made:
        """The function. Raises `_Unfit`."""
        shape: list[str] | None = []
        out = self._object(self._schema, value, "value", shape, checked=True)
        traced = f"({', '.join(shape)},)" if shape else "()"
        text = "\n ".join(["def made(value):", *self._lines, f"return {out}, {traced}"])
        exec(compile(text, "<skeleton>", "exec"), self._known)
        return self._known["made"]  # type: ignore[no-any-return]

    def _name(self) -> str:
        self._count += 1
        if self._count > MAX_NODES:
            raise _Unfit
        return f"v{self._count}"

    def _keep(self, value: Any) -> str:
        """The name under which the function finds a value: nothing of it gets into its text."""
        name = f"k{len(self._known)}"
        self._known[name] = value
        return name

    def _unless(self, test: str) -> None:
        self._lines.append(f"if not ({test}): return None")

    def _object(
        self, schema: Schema, value: Mapping[str, Any], at: str, shape: list[str] | None, checked: bool = False
    ) -> str:
        """Writes how an object is taken in; the expression of what it becomes."""
        names = tuple(value)
        if not all(type(name) is str for name in names):
            raise _Unfit
        if not checked:
            self._unless(f"type({at}) is dict and tuple({at}) == {self._keep(names)}")
        fields = None if not has_fields(schema, STATUS.custom) else Fields(schema, STATUS)
        place = -1
        if shape is not None:
            place = len(shape)
            shape.append("")
        items = [self._name() for _ in names]
        if items:
            self._lines.append(f"{', '.join(items)}, = {at}.values()")
        changed: dict[str, str] = {}
        dropped: list[str] = []
        tests: list[str] = []
        nested: list[tuple[str, Any, str]] = []
        for name, item in zip(names, items, strict=True):
            here = value[name]
            child, take, omit = self._field(schema, fields, name)
            if here is None and fields is None:  # in a map it becomes a zero, or is left out: seldom
                raise _Unfit
            if here is None or (omit and not here):
                tests.append(_empty(here, item))
                dropped.append(name)
            elif isinstance(here, (dict, list)):
                nested.append((name, child, item))
            else:
                tests.append(self._scalar(child, take, item, here, omit))
        if tests:
            self._unless(" and ".join(tests))
        for name, child, item in nested:
            changed[name] = self._nested(child, value[name], item, shape)
        return self._finished(schema, fields, names, at, changed, dropped, shape, place)

    def _field(self, schema: Schema, fields: Fields | None, name: str) -> tuple[Schema, Take, bool]:
        if fields is None:  # a map
            if schema.values is None:
                raise _Unfit
            return schema.values, intake(schema.values, False, False, True), False
        if name not in schema.fields:
            raise _Unfit
        take, _, omit = fields.want(name)
        return schema.fields[name], take, omit

    def _scalar(self, schema: Schema, take: Take, item: str, here: Any, omit: bool) -> str:
        some = f" and {item}" if omit else ""
        if take is take_string and type(here) is str:
            return f"type({item}) is str{some}"
        if take is take_boolean and type(here) is bool:
            return f"type({item}) is bool{some}"
        if schema.type == "integer" and type(here) is int:
            low, high = INT32 if schema.format == "int32" else INT64
            return f"type({item}) is int and {low} <= {item} <= {high}{some}"
        if take(here) is not here or type(here) is not str:
            raise _Unfit
        seen = getattr(take, "seen", None)
        known = "" if seen is None else f"{item} in {self._keep(seen)} or "
        return f"type({item}) is str and ({known}{self._keep(take)}({item}) is {item}){some}"

    def _nested(self, schema: Schema, value: Any, at: str, shape: list[str] | None) -> str:
        """Writes how an object or list below is taken in; the expression of what it becomes."""
        if isinstance(value, dict):
            if schema.type not in ("object", "map") or (schema.type == "map" and schema.values is None):
                raise _Unfit
            return self._object(schema, value, at, None if schema.atomic else shape)
        if schema.type != "list" or schema.items is None:
            raise _Unfit
        return self._list(schema, schema.items, value, at, shape if schema.list_type in ("map", "set") else None)

    def _list(self, schema: Schema, each: Schema, value: list[Any], at: str, shape: list[str] | None) -> str:
        self._unless(f"type({at}) is list and len({at}) == {len(value)}")
        items = [self._name() for _ in value]
        if items:
            self._lines.append(f"{', '.join(items)}, = {at}")
        addresses = tuple(schema.keys) == ADDRESS
        deep = has_fields(each, STATUS.custom) and not addresses
        place = -1
        if shape is not None:
            place = len(shape)
            shape.append(str(len(value)))
        out, names = [], []
        for item, here in zip(items, value, strict=True):
            if isinstance(here, dict) and has_fields(each, STATUS.custom):
                out.append(self._object(each, here, item, shape if deep else None))
                if shape is not None and not addresses:
                    names.append(self._told(schema, out[-1], here))
            elif isinstance(here, str) and (shape is None or addresses):
                self._unless(self._scalar(each, intake(each, False, False, True), item, here, False))
                out.append(item)
            else:
                raise _Unfit
        if shape is not None and not addresses:
            told = f"({', '.join(names)},)" if names else "()"
            if len(names) > 1:
                self._unless(f"len({{{', '.join(names)}}}) == {len(names)}")
            shape[place] = told
        return f"FrozenList(({', '.join(out)},))" if out else "FrozenList()"

    def _told(self, schema: Schema, made: str, here: Mapping[str, Any]) -> str:
        """What tells an item from the others: the text in the one field that is its key."""
        key = here.get(schema.keys[0]) if len(schema.keys) == 1 and schema.list_type != "set" else None
        if not key or type(key) is not str:
            raise _Unfit
        name = self._name()
        self._lines.append(f"{name} = {made}[{self._keep(schema.keys[0])}]")
        return name

    def _finished(
        self,
        schema: Schema,
        fields: Fields | None,
        names: Shape,
        at: str,
        changed: Mapping[str, str],
        dropped: list[str],
        shape: list[str] | None,
        place: int,
    ) -> str:
        """Writes the making of the frozen object; its name."""
        out = self._name()
        self._lines.append(f"{out} = Frozen({at})")
        for name, made in changed.items():
            self._lines.append(f"put({out}, {self._keep(name)}, {made})")
        for name in dropped:
            self._lines.append(f"drop({out}, {self._keep(name)})")
        kept = [name for name in names if name not in dropped]
        zeros = shown(schema) if fields is not None else EMPTY
        for name, zero in zeros.items():
            if name not in kept:
                kept.append(name)
                self._lines.append(f"put({out}, {self._keep(name)}, {self._keep(zero)})")
                follow = None if fields is None else fields.want(name).follow
                if shape is not None and follow is not None:
                    trace: Trace = []
                    follow(zero, trace)
                    if UNLIKE in trace:
                        raise _Unfit
                    shape.extend([self._keep(part) for part in trace])
        if shape is not None:
            shape[place] = self._keep(tuple(kept))
        return out


def _empty(here: Any, item: str) -> str:
    """The test for a value that is left out."""
    if here is None or here is False:
        return f"{item} is {here}"
    if type(here) not in (str, int, dict, list):
        raise _Unfit
    return f"type({item}) is {type(here).__name__} and not {item}"
