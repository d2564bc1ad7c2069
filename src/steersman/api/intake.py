"""Intake: one pass over a value from outside that checks its shape and freezes it.

For every schema node a small closure is made on first use. The closures take the fast road: the first thing that
does not fit raises `Misfit`, without a path. Only then `explain` walks the value again, slowly, and says everything
that is wrong, in Kubernetes' words, with paths. A value that is frozen and was taken in before costs one attribute
read (`Section.valid`).

What is done on the way, as kube-apiserver's decoding does it: null fields, and empty lists and maps that are not
required, are dropped in built-in kinds (Go's `omitempty`), quantities are brought to canonical form, undeclared fields
are found.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import is_
from typing import Any, Final, NamedTuple

from steersman.api import go_time, quantity, structs
from steersman.api.crd.constraints import constrained, fits
from steersman.api.fields import item_element
from steersman.api.go_json import zero
from steersman.api.schema import MICRO_TIME, Schema
from steersman.api.zeros import shown
from steersman.kernel.value import EMPTY, Frozen, FrozenList, ValueRefused, freeze

Take = Callable[..., Any]
"""Takes a value in; of objects, maps and associative lists, also with a trace to append to."""
Trace = list[Any]
"""What the field set of a value depends on, with the names of its fields and what tells its items apart; of lists of
addresses, only how long they are."""
TakeTraced = Callable[[Any, Trace], Any]
UNLIKE: Final = object()
"""In a trace: here the field set depends on more than names."""
ADDRESS: Final = ("ip",)
"""The key of lists whose items are named unlike those of any other object."""
MAX_TIMES: Final = 1 << 12
"""Times remembered: those of a minute and more, where everything is stamped with the second."""
INT32: Final = (-(1 << 31), (1 << 31) - 1)
INT64: Final = (-(1 << 63), (1 << 63) - 1)
SWITCH: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceSubresourceStatus"
"""A Go struct without fields behind a pointer: that it is there, empty, is all it says."""
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)\Z")


class Misfit(Exception):
    """The value does not fit; `explain` says why."""


@lru_cache(maxsize=1 << 12)
def _quantity(text: Any) -> str:
    return quantity.canonical(text if isinstance(text, str) else str(text))


def take_string(value: Any) -> Any:
    """A string, or null. Raises `Misfit`."""
    if type(value) is str or value is None:
        return value
    raise Misfit


def _take_bytes(value: Any) -> Any:
    """Text in base64, written as Go writes it: without line breaks, and with no bits to spare."""
    if value is None:
        return None
    if type(value) is not str:
        raise Misfit
    try:
        made = binascii.b2a_base64(binascii.a2b_base64(value, strict_mode=True), newline=False).decode()
    except ValueError:
        made = _broken_lines(value)
    return value if made == value else made


def _broken_lines(value: str) -> str:
    """Base64 in several lines, in one. Raises Misfit."""
    text = value.replace("\n", "").replace("\r", "")
    if len(text) == len(value):
        raise Misfit
    try:
        return binascii.b2a_base64(binascii.a2b_base64(text, strict_mode=True), newline=False).decode()
    except ValueError:
        raise Misfit from None


def take_boolean(value: Any) -> Any:
    """A boolean, or null. Raises `Misfit`."""
    if type(value) is bool or value is None:
        return value
    raise Misfit


_FINE: Final[Mapping[Take, type]] = {take_string: str, take_boolean: bool}


@lru_cache(maxsize=MAX_TIMES)
def is_time(text: str) -> bool:
    """Whether a text is a time as RFC 3339 has it."""
    return _TIME.match(text) is not None


def _take_go_time(layout: str) -> Take:
    """Of built-in kinds: a time in the one form in which it is kept."""
    seen: set[str] = set()

    def take(value: Any) -> Any:
        if value is None or (type(value) is str and value in seen):
            return value
        if type(value) is not str or go_time.fault(value, layout):
            raise Misfit
        made = go_time.canonical(value, layout)
        if made != value:
            return made
        if len(seen) >= MAX_TIMES:
            seen.clear()
        seen.add(value)
        return value

    take.seen = seen  # type: ignore[attr-defined]  # for code that looks there itself: `skeleton`
    return take


_TAKE_SECONDS: Final = _take_go_time(go_time.SECONDS)
_TAKE_MICROS: Final = _take_go_time(go_time.MICROS)


def _take_time(value: Any) -> Any:
    if value is None or (type(value) is str and is_time(value)):
        return value
    raise Misfit


def _take_quantity(value: Any) -> Any:
    if value is None:
        return None
    if type(value) in (str, int, float):
        try:
            made = _quantity(value)
        except ValueError:
            raise Misfit from None
        return value if made == value else made  # the same object where it can be: parts are told apart by identity
    raise Misfit


def _take_int_or_string(value: Any) -> Any:
    if value is None or type(value) is str or (type(value) is int and INT32[0] <= value <= INT32[1]):
        return value
    raise Misfit


def _take_any(value: Any) -> Any:
    try:
        return freeze(value)
    except ValueRefused:
        raise Misfit from None


def _take_integer(schema: Schema) -> Take:
    low, high = INT32 if schema.format == "int32" else INT64

    def take(value: Any) -> Any:
        if type(value) is int and low <= value <= high:
            return value
        if type(value) is float and value.is_integer() and low <= value <= high:
            return int(value)
        if value is None:
            return None
        raise Misfit

    return take


def _take_number(value: Any) -> Any:
    if value is None or type(value) is float or type(value) is int:
        return _take_any(value)  # not every float is a JSON number
    raise Misfit


class How(NamedTuple):
    """How values are taken in; see `intake`."""

    required: bool
    custom: bool = False
    zeros: bool = False
    """Fill in what Kubernetes shows of fields that nobody set, as `zeros.fill` does, in the same pass."""


class Want(NamedTuple):
    """What a field must be."""

    take: Take
    follow: TakeTraced | None
    """The same with a trace; None where its field set does not depend on its value."""
    omit: bool
    """Whether it is left out when it is empty, or zero."""


class Fields:
    """The fields of an object, learned as they are met."""

    __slots__ = ("_how", "_schema", "needed", "omits", "plain", "wants")

    def __init__(self, schema: Schema, how: How) -> None:
        self._schema = schema
        self._how = how
        self.plain: dict[str, type] = {}
        """Fields whose every value of this type is fine as it is: most fields of most objects."""
        self.omits = frozenset() if how.custom else structs.omitted(schema) - frozenset(schema.required)
        """Fields of these that are left out when they are "", 0 or false."""
        self.wants: dict[str, Want] = {}
        self.needed = frozenset(schema.required) if how.required else frozenset()

    def want(self, name: Any) -> Want:
        """What a field must be. Raises `Misfit` when there is none of that name."""
        schema, how = self._schema, self._how
        child = schema.fields.get(name) if type(name) is str else None
        if child is None:
            if schema.preserve_unknown and type(name) is str:
                return Want(_take_any, None, False)
            raise Misfit
        taker = _intake(child, how)
        kept = how.custom or name in schema.required or name in structs.kept(schema)
        omit = name in self.omits or (not kept and _is_list_or_map(child))
        found = self.wants[name] = Want(taker, _traced(child, taker), omit)
        if taker in _FINE:
            self.plain[name] = _FINE[taker]
        return found

    def drop(self, out: Frozen, changed: dict[str, Any]) -> bool:
        """Leaves out what is null or empty; says whether any of it was traced. Raises `Misfit`."""
        fields, followed = self._schema.fields, False
        for name, item in changed.items():
            if item is None:
                if self._how.custom and (name not in fields or fields[name].nullable):
                    continue
                if name in self.needed:
                    raise Misfit
            elif item or name not in self.wants or not self.wants[name].omit:
                continue
            dict.__delitem__(out, name)
            followed = followed or (name in self.wants and self.wants[name].follow is not None)
        return followed


def _take_object(schema: Schema, how: How) -> Take:
    fields = Fields(schema, how)
    plain, wants, want, drop, needed = fields.plain, fields.wants, fields.want, fields.drop, fields.needed
    omits = fields.omits
    zeros = shown(schema) if how.zeros else EMPTY
    always = zeros.keys()

    def take(value: Any, trace: Trace | None = None) -> Any:
        if not isinstance(value, dict):
            if value is None:
                return None
            raise Misfit
        changed: dict[str, Any] | None = None
        dropping, at = False, 0
        if trace is not None:
            at = len(trace)
            trace.append(None)
        for name, item in value.items():
            if plain.get(name) is type(item) and (item or name not in omits):
                continue
            taker, follow, omit = wants.get(name) or want(name)
            taken = taker(item) if follow is None or trace is None else follow(item, trace)
            if taken is item and taken is not None and (taken or not omit):
                continue
            if changed is None:
                changed = {}
            changed[name] = taken
            if taken is None or (omit and not taken):
                dropping = True
        if needed and not needed <= value.keys():
            raise Misfit
        if changed is not None:
            out = Frozen(value)
            dict.update(out, changed)  # still in hand: nobody else has seen it
            if dropping and drop(out, changed) and trace is not None:
                del trace[at:]
                return take(out, trace)
        elif type(value) is Frozen and always <= value.keys():
            out = value
        else:
            out = Frozen(value)
        for name in always:
            if name not in out:
                zero = zeros[name]
                dict.__setitem__(out, name, zero)
                if trace is not None and (follow := (wants.get(name) or want(name)).follow) is not None:
                    follow(zero, trace)
        if trace is not None:
            trace[at] = tuple(out)
        return out

    return take


def _traced(schema: Schema, take: Take) -> TakeTraced | None:
    """How a field is taken in and traced; None where its field set does not depend on its value."""
    if schema.type in ("object", "map") and not schema.atomic:
        return take
    if schema.list_type in ("map", "set") and schema.items is not None:
        return take
    return _take_unlike if schema.type == "any" and not schema.atomic else None


def _take_unlike(value: Any, trace: Trace) -> Any:
    """A value of no declared type, which may be a map of anything."""
    trace.append(UNLIKE if isinstance(value, dict) else None)
    return _take_any(value)


def has_fields(schema: Schema, custom: bool) -> bool:
    """Whether an object has declared fields and no others. One without any takes everything in a built-in kind, and
    nothing in a custom one, unless that preserves what it does not know."""
    return bool(schema.fields) or (custom and not schema.preserve_unknown and not schema.name)


def _is_list_or_map(schema: Schema) -> bool:
    return schema.type in ("list", "map") or (schema.type == "object" and not schema.fields and schema.name != SWITCH)


def _take_map(schema: Schema, how: How) -> Take:
    inner: list[Take] = []
    nullable = how.custom and (schema.values is None or schema.values.nullable)
    follow: TakeTraced | None = None

    def take(value: Any, trace: Trace | None = None) -> Any:
        nonlocal follow
        if not isinstance(value, dict):
            if value is None:
                return None
            raise Misfit
        if not inner:
            inner.append(_take_any if schema.values is None else _intake(schema.values, how))
            follow = _take_unlike if schema.values is None else _traced(schema.values, inner[0])
        taker = inner[0]
        at = 0
        if trace is not None:
            at = len(trace)
            trace.append(None)
        out: dict[str, Any] = {}
        same = type(value) is Frozen
        for name, item in value.items():
            if type(name) is not str:
                raise Misfit
            if follow is not None and trace is not None:
                taken = follow(item, trace)
            else:
                taken = item if taker is take_string and type(item) is str else taker(item)
            if taken is not item:
                same = False
            if taken is None and not nullable:
                same = False
                taken = None if how.custom or schema.values is None else freeze(zero(schema.values))
                if taken is None:
                    continue
            out[name] = taken
        if trace is not None:
            trace[at] = tuple(out)
        return value if same else Frozen(out)

    return take


def _take_list(schema: Schema, how: How) -> Take:
    inner: list[Take] = []
    nullable = how.custom and (schema.items is None or schema.items.nullable)
    addresses = tuple(schema.keys) == ADDRESS
    deep = schema.items is not None and has_fields(schema.items, how.custom) and not addresses

    def take(value: Any, trace: Trace | None = None) -> Any:
        if not isinstance(value, list):
            if value is None:
                return None
            raise Misfit
        if not inner:
            inner.append(_take_any if schema.items is None else _intake(schema.items, how))
        taker = inner[0]
        if trace is None:
            out = [taker(item) for item in value]
        else:
            at = len(trace)
            trace.append(len(value))
            out = [taker(item, trace) for item in value] if deep else [taker(item) for item in value]
            if not addresses:
                trace[at] = _named(schema, out)
        if None in out and not nullable:
            raise Misfit
        if type(value) is FrozenList and all(map(is_, out, value)):
            return value
        return FrozenList(out)

    return take


def _named(schema: Schema, items: list[Any]) -> object:
    """What tells the items of an associative list apart; `UNLIKE` when nothing does."""
    if schema.list_type == "set" or len(schema.keys) != 1:
        names = tuple([item_element(schema, item) for item in items])
    else:
        key = schema.keys[0]
        names = tuple([None if item is None else item.get(key) for item in items])
    return UNLIKE if None in names or len(set(names)) != len(names) else names


def _with_constraints(schema: Schema, take: Take, custom: bool) -> Take:
    """Adds the checks of one value that custom kinds ask for; built-in kinds only ever need `enum`."""
    if not custom or not constrained(schema):
        return take

    def checked(value: Any) -> Any:
        taken = take(value)
        if taken is not None and not fits(schema, taken):
            raise Misfit
        return taken

    return checked


_compiled: dict[tuple[int, How], tuple[Schema, Take]] = {}


@lru_cache(maxsize=1 << 12)
def intake(schema: Schema, required: bool, custom: bool = False, zeros: bool = False) -> Take:
    """The function that takes a value in under `schema`: returns it frozen, or raises `Misfit`.

    `required`: whether missing required fields are an error (not in the status of a built-in kind, whose Go types
    have zero values there). `custom`: a custom kind, whose value constraints are checked and whose nulls may stay.
    `zeros`: see `How`.
    """
    return _intake(schema, How(required, custom, zeros))


def _intake(schema: Schema, how: How) -> Take:
    key = (id(schema), how)
    found = _compiled.get(key)
    if found is None:
        take = _with_constraints(schema, _compile(schema, how), how.custom)
        found = _compiled[key] = (schema, take)  # the schema is kept alive, so its id stays its own
    return found[1]


def _compile(schema: Schema, how: How) -> Take:
    kind = schema.type
    if kind == "object":
        return _take_object(schema, how) if has_fields(schema, how.custom) else _take_map(schema, how)
    if kind == "map":
        return _take_map(schema, how)
    if kind == "list":
        return _take_list(schema, how)
    if kind == "integer":
        return _take_integer(schema)
    if kind == "string" and schema.format == "date-time":
        if how.custom:
            return _take_time
        return _TAKE_MICROS if schema.name == MICRO_TIME else _TAKE_SECONDS
    if kind == "string" and schema.format == "byte" and not how.custom:
        return _take_bytes
    simple: dict[str, Take] = {
        "string": take_string,
        "boolean": take_boolean,
        "number": _take_number,
        "quantity": _take_quantity,
        "int-or-string": _take_int_or_string,
    }
    return simple.get(kind, _take_any)


ANYTHING: Final = Schema(type="any", preserve_unknown=True)
"""Of fields that are kept without being declared."""


def field_schema(schema: Schema, name: str) -> Schema | None:
    """What a field of an object must be; None: there is no such field. Some schemas keep what they do not declare."""
    declared = schema.fields.get(name)
    return ANYTHING if declared is None and schema.preserve_unknown else declared
