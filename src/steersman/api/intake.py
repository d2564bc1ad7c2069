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

import re
from collections.abc import Callable
from functools import lru_cache
from operator import is_
from typing import Any, Final, NamedTuple

from steersman.api import quantity
from steersman.api.formats import has_format
from steersman.api.go_json import zero
from steersman.api.pattern import compile_pattern
from steersman.api.schema import Schema
from steersman.api.zeros import shown
from steersman.kernel.value import EMPTY, Frozen, FrozenList, ValueRefused, freeze

Take = Callable[[Any], Any]
INT32: Final = (-(1 << 31), (1 << 31) - 1)
INT64: Final = (-(1 << 63), (1 << 63) - 1)
SWITCH: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceSubresourceStatus"
"""A Go struct without fields behind a pointer: that it is there, empty, is all it says."""
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)\Z")


class Misfit(Exception):
    """The value does not fit; `explain` says why."""


@lru_cache(maxsize=1 << 12)
def is_time(text: str) -> bool:
    """Whether a text is a time as RFC 3339 has it."""
    return _TIME.match(text) is not None


@lru_cache(maxsize=1 << 12)
def _quantity(text: Any) -> str:
    return quantity.canonical(text if isinstance(text, str) else str(text))


def _take_string(value: Any) -> Any:
    if type(value) is str or value is None:
        return value
    raise Misfit


def _take_boolean(value: Any) -> Any:
    if type(value) is bool or value is None:
        return value
    raise Misfit


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


def _take_object(schema: Schema, how: How) -> Take:
    fields = schema.fields
    takers: dict[str, Take] = {}
    plain: dict[str, type] = {}
    """Fields whose every value of this type is fine as it is: most fields of most objects."""
    needed = frozenset(schema.required) if how.required else frozenset()
    custom, keep_unknown = how.custom, schema.preserve_unknown
    omitted: set[str] = set()
    """Fields that are left out when they are empty."""
    zeros = shown(schema) if how.zeros else EMPTY
    shown_always = zeros.keys()

    def learn(name: Any) -> Take:
        child = fields.get(name) if type(name) is str else None
        if child is None:
            if keep_unknown and type(name) is str:
                return _take_any
            raise Misfit
        made = takers[name] = _intake(child, how)
        if not (custom or name in schema.required) and _is_list_or_map(child):
            omitted.add(name)
        if made is _take_string:
            plain[name] = str
        elif made is _take_boolean:
            plain[name] = bool
        return made

    def take(value: Any) -> Any:
        if not isinstance(value, dict):
            if value is None:
                return None
            raise Misfit
        changed: dict[str, Any] = {}
        for name, item in value.items():
            if plain.get(name) is type(item):
                continue
            taken = (takers.get(name) or learn(name))(item)
            if taken is not item or item is None or (not item and name in omitted):
                changed[name] = taken
        if needed and not needed <= value.keys():
            raise Misfit
        if changed:
            out = _assemble(value, changed)
        elif shown_always and not shown_always <= value.keys():
            out = Frozen(value)
        else:
            return value if type(value) is Frozen else Frozen(value)
        if shown_always and not shown_always <= out.keys():
            dict.update(out, {name: zero for name, zero in zeros.items() if name not in out})
        return out

    def _assemble(value: dict[str, Any], changed: dict[str, Any]) -> Frozen:
        out = Frozen(value)
        dict.update(out, changed)  # still in hand: nobody else has seen it
        for name, item in changed.items():
            if item is None and not (custom and (name not in fields or fields[name].nullable)):
                if name in needed:
                    raise Misfit
                dict.__delitem__(out, name)
            elif not item and name in omitted:
                dict.__delitem__(out, name)
        return out

    return take


def has_fields(schema: Schema, custom: bool) -> bool:
    """Whether an object has declared fields and no others. One without any takes everything in a built-in kind, and
    nothing in a custom one, unless that preserves what it does not know."""
    return bool(schema.fields) or (custom and not schema.preserve_unknown and not schema.name)


def _is_list_or_map(schema: Schema) -> bool:
    return schema.type in ("list", "map") or (schema.type == "object" and not schema.fields and schema.name != SWITCH)


def _take_map(schema: Schema, how: How) -> Take:
    inner: list[Take] = []
    nullable = how.custom and (schema.values is None or schema.values.nullable)

    def take(value: Any) -> Any:
        if not isinstance(value, dict):
            if value is None:
                return None
            raise Misfit
        if not inner:
            inner.append(_take_any if schema.values is None else _intake(schema.values, how))
        taker = inner[0]
        out: dict[str, Any] = {}
        same = type(value) is Frozen
        for name, item in value.items():
            if type(name) is not str:
                raise Misfit
            taken = item if taker is _take_string and type(item) is str else taker(item)
            if taken is not item:
                same = False
            if taken is None and not nullable:
                same = False
                taken = None if how.custom or schema.values is None else freeze(zero(schema.values))
                if taken is None:
                    continue
            out[name] = taken
        return value if same else Frozen(out)

    return take


def _take_list(schema: Schema, how: How) -> Take:
    inner: list[Take] = []
    nullable = how.custom and (schema.items is None or schema.items.nullable)

    def take(value: Any) -> Any:
        if not isinstance(value, list):
            if value is None:
                return None
            raise Misfit
        if not inner:
            inner.append(_take_any if schema.items is None else _intake(schema.items, how))
        taker = inner[0]
        out = [taker(item) for item in value]
        if None in out and not nullable:
            raise Misfit
        if type(value) is FrozenList and all(map(is_, out, value)):
            return value
        return FrozenList(out)

    return take


_CONSTRAINTS: Final = (
    "format",
    "pattern",
    "minimum",
    "maximum",
    "multiple_of",
    "min_length",
    "max_length",
    "min_items",
    "max_items",
    "min_fields",
    "max_fields",
    "not_of",
)


def constrained(schema: Schema) -> bool:
    """Whether a custom kind asks more of a value than its type."""
    return bool(
        schema.enum
        or schema.all_of
        or schema.any_of
        or schema.one_of
        or schema.list_type in ("map", "set")
        or any(getattr(schema, name) not in (None, "") for name in _CONSTRAINTS)
    )


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
        return _take_time
    simple: dict[str, Take] = {
        "string": _take_string,
        "boolean": _take_boolean,
        "number": _take_number,
        "quantity": _take_quantity,
        "int-or-string": _take_int_or_string,
    }
    return simple.get(kind, _take_any)


def fits(schema: Schema, value: Any) -> bool:
    """Whether one value (not its children) meets what a custom kind asks for beside its type; `crd.faults` says why
    not."""
    if schema.enum and value not in schema.enum:
        return False
    if isinstance(value, str):
        inside = _text_fits(schema, value)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        inside = _number_fits(schema, value)
    elif isinstance(value, list):
        inside = _list_fits(schema, value)
    elif isinstance(value, dict):
        inside = _between(schema.min_fields, len(value), schema.max_fields)
    else:
        inside = True
    return (
        inside
        and all(_holds(part, value) for part in schema.all_of)
        and (not schema.any_of or any(_holds(part, value) for part in schema.any_of))
        and (not schema.one_of or sum(_holds(part, value) for part in schema.one_of) == 1)
        and (schema.not_of is None or not _holds(schema.not_of, value))
    )


def _holds(part: Schema, value: Any) -> bool:
    """Whether a value, with all inside it, meets one part of a junctor."""
    if not fits(part, value):
        return False
    if isinstance(value, dict):
        if any(name not in value for name in part.required):
            return False
        return all(_holds(child, value[name]) for name, child in part.fields.items() if name in value)
    if isinstance(value, list) and part.items is not None:
        return all(_holds(part.items, item) for item in value)
    return True


def _between(least: int | None, size: int, most: int | None) -> bool:
    return (least is None or size >= least) and (most is None or size <= most)


def _text_fits(schema: Schema, value: str) -> bool:
    if schema.format and schema.format != "date-time" and not has_format(schema.format, value):
        return False
    if schema.pattern and compile_pattern(schema.pattern).search(value) is None:
        return False
    return _between(schema.min_length, len(value), schema.max_length)


def _number_fits(schema: Schema, value: float) -> bool:
    if schema.minimum is not None and (value <= schema.minimum if schema.exclusive_minimum else value < schema.minimum):
        return False
    if schema.maximum is not None and (value >= schema.maximum if schema.exclusive_maximum else value > schema.maximum):
        return False
    return not schema.multiple_of or value % schema.multiple_of == 0


def _list_fits(schema: Schema, value: list[Any]) -> bool:
    if not _between(schema.min_items, len(value), schema.max_items):
        return False
    if schema.list_type == "set":
        return not any(item in value[:index] for index, item in enumerate(value))
    if schema.list_type == "map":
        seen: list[tuple[Any, ...]] = []
        for item in value:
            if isinstance(item, dict):
                key = tuple([item.get(name, schema.key_defaults.get(name)) for name in schema.keys])
                if key in seen:
                    return False
                seen.append(key)
    return True


ANYTHING: Final = Schema(type="any", preserve_unknown=True)
"""Of fields that are kept without being declared."""


def field_schema(schema: Schema, name: str) -> Schema | None:
    """What a field of an object must be; None: there is no such field. Some schemas keep what they do not declare."""
    declared = schema.fields.get(name)
    return ANYTHING if declared is None and schema.preserve_unknown else declared
