"""What the schema of a custom kind has to say against a value, in the words of kube-apiserver.

The slow road beside `steersman.api.intake`, taken once a value was refused. The checks of one node come in a fixed
order: its type, the junctors, what is asked of texts, numbers and lists, the choices, the fields. Sources of the
facts: kube-openapi `pkg/validation/validate` and `pkg/validation/errors` (what is checked, texts),
apiextensions-apiserver 0.36 `pkg/apiserver/validation` (how they become field errors), `pkg/apiserver/schema/listtype`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import orjson

from steersman.api.errors import Cause, quote, show
from steersman.api.formats import has_format
from steersman.api.intake import is_time
from steersman.api.pattern import compile_pattern
from steersman.api.schema import Schema

NEW: Final = object()
"""In the place of an old value: there is none, or none that belongs to the new one."""
WHOLE: Final = "<nil>"
"""How Kubernetes names the object itself, in errors that say no field."""
UNCHECKED: Final = Cause(
    "FieldValueInvalid",
    "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation",
    WHOLE,
)
"""What is added where rules in CEL were not tried, since the value has not the form they are written for."""
BLOCKING: Final = frozenset(
    f"FieldValue{reason}" for reason in ("NotSupported", "Required", "TooLong", "TooMany", "TypeInvalid")
)
"""Reasons of causes that keep the rules from being tried."""
MAX_CAUSES: Final = 32
"""Causes listed in one error: enough to mend a manifest in one go, bounded for hostile input."""
_SAFE: Final = (1 << 53) - 1
_JSON_TYPES: Final = {"map": "object", "list": "array"}
Outcome = tuple[list[Cause], int]
"""What is wrong, and how many checks were made: of several schemas that fail, the one with the most tells why."""


def faults(schema: Schema, value: Any, name: str, at: str = "", old: Any = NEW) -> list[Cause]:
    """What is wrong with `value`.

    Args:
        name: where messages say it is: `spec`; "" for a value that is judged by itself.
        at: what fields of causes begin with, where the value is judged by itself: `status`.
        old: what was in its place before. Parts that equal theirs are not judged again ("validation ratcheting").
    """
    causes, _ = _Walk(at).judge(schema, value, name, old)
    field = f"{at}.{name}" if at and name else at or name
    if old is NEW or old is None or not list(_twice(schema, old, field)):
        causes += _twice(schema, value, field)
    return causes[:MAX_CAUSES]


class _Walk:
    """One pass; `at` is what fields begin with."""

    __slots__ = ("at",)

    def __init__(self, at: str) -> None:
        self.at = at

    def field(self, name: str) -> str:
        """The field of a cause about the value of that name."""
        name = name.removeprefix(".")
        return f"{self.at}.{name}" if self.at and name else self.at or name or WHOLE

    def judge(self, schema: Schema, value: Any, name: str, old: Any = NEW) -> Outcome:
        """A value, with all inside it."""
        if old is not NEW and same(old, value):
            return [], 1
        if value is None:
            return self._type(schema, value, name) + self._choice(schema, value, name), 2
        checks: list[Callable[[], Outcome]] = [lambda: self._junctors(schema, value, name)]
        if isinstance(value, str):
            checks.append(lambda: (self._text(schema, value, name), 1))
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            checks.append(lambda: (self._number(schema, value, name), 1))
        elif isinstance(value, list):
            checks.append(lambda: self._items(schema, value, name, old))
        causes, made = self._type(schema, value, name), 2
        for check in checks:
            found, count = check()
            causes, made = causes + found, made + count + 1
        causes += self._choice(schema, value, name)
        if isinstance(value, dict):
            found, count = self._fields(schema, value, name, old)
            causes, made = causes + found, made + count + 1
        return causes, made + 1

    # -- one value -------------------------------------------------------------------------------------------------

    def _type(self, schema: Schema, value: Any, name: str) -> list[Cause]:
        wanted, found, form = json_types(schema), _type_of(value), schema.format
        if value is None:
            return [self._misfit(name, ",".join(wanted), "null")] if wanted and not schema.nullable else []
        kind, own = found
        whole = kind == "number" and abs(value) <= _SAFE and float(value).is_integer() and "integer" in wanted
        fits = kind in wanted or whole or (kind == "integer" and "number" in wanted)
        if form and kind not in ("string", "array") and not (fits or own == form):
            return [self._misfit(name, form, own)]
        if form and kind in ("string", "array") and not {"number", "integer"} & set(wanted):
            return []  # the format says whether it fits
        return [] if fits or not wanted else [self._misfit(name, ",".join(wanted), kind)]

    def _misfit(self, name: str, wanted: str, found: str) -> Cause:
        told = f"{name} in body must be of type {wanted}: {quote(found)}"
        return Cause.type_invalid(self.field(name), found, told)

    def _text(self, schema: Schema, value: str, name: str) -> list[Cause]:
        out: list[Cause] = []
        field = self.field(name)
        if schema.max_length is not None and len(value) > schema.max_length:
            out = [Cause.too_long(field, schema.max_length)]
        elif schema.min_length is not None and len(value) < schema.min_length:
            detail = f"{name} in body should be at least {schema.min_length} chars long"
            out = [Cause.invalid(field, value, detail)]
        elif schema.pattern and compile_pattern(schema.pattern).search(value) is None:
            out = [Cause.invalid(field, value, f"{name} in body should match '{schema.pattern}'")]
        if schema.format:
            fits = is_time(value) if schema.format == "date-time" else has_format(schema.format, value)
            if not fits:
                told = f"{name} in body must be of type {schema.format}: {quote(value)}"
                out.append(Cause.type_invalid(field, value, told))
        return out

    def _number(self, schema: Schema, value: float, name: str) -> list[Cause]:
        out: list[Cause] = []
        field = self.field(name)
        bits = {"int32": 31}.get(schema.format, 63) if schema.type == "integer" else 0
        if bits and not (float(value).is_integer() and -(1 << bits) <= value < 1 << bits):
            form = f" with format {schema.format}" if schema.format in ("int32", "int64") else " (default format)"
            out.append(Cause.invalid(self.at or WHOLE, "", f"Checked value must be of type integer{form} in {name}"))
        said = f"{name} in body should be "
        if schema.multiple_of and value % schema.multiple_of != 0:
            out.append(Cause.invalid(field, value, f"{said}a multiple of {show(schema.multiple_of)}"))
        least, most = schema.minimum, schema.maximum
        if least is not None and (value <= least if schema.exclusive_minimum else value < least):
            equal = "" if schema.exclusive_minimum else "or equal to "
            out.append(Cause.invalid(field, value, f"{said}greater than {equal}{show(least)}"))
        if most is not None and (value >= most if schema.exclusive_maximum else value > most):
            equal = "" if schema.exclusive_maximum else "or equal to "
            out.append(Cause.invalid(field, value, f"{said}less than {equal}{show(most)}"))
        return out

    def _choice(self, schema: Schema, value: Any, name: str) -> list[Cause]:
        if not schema.enum or value in schema.enum:
            return []
        choices = [choice if isinstance(choice, str) else show(choice) for choice in schema.enum]
        return [Cause.unsupported(self.field(name), value, choices)]

    # -- what is inside --------------------------------------------------------------------------------------------

    def _items(self, schema: Schema, value: list[Any], name: str, old: Any) -> Outcome:
        causes: list[Cause] = []
        made, field = 1, self.field(name)
        if schema.items is not None:
            for index, item in enumerate(value):
                found, count = self.judge(schema.items, item, f"{name}[{index}]", counterpart(schema, old, item))
                causes, made = causes + found[: MAX_CAUSES - len(causes)], made + count
        if schema.min_items is not None and len(value) < schema.min_items:
            detail = f"{name} in body should have at least {schema.min_items} items"
            causes.append(Cause.invalid(field, len(value), detail))
        if schema.max_items is not None and len(value) > schema.max_items:
            causes.append(Cause.too_many(field, len(value), schema.max_items))
        return causes, made

    def _fields(self, schema: Schema, value: dict[str, Any], name: str, old: Any) -> Outcome:
        causes: list[Cause] = []
        made, field = 0, self.field(name)
        dropped = [key for key, item in value.items() if item is None and _is_dropped(schema.fields.get(key))]
        if dropped:
            value = {key: item for key, item in value.items() if key not in dropped}
        if schema.min_fields is not None and len(value) < schema.min_fields:
            detail = f"{name} in body should have at least {schema.min_fields} properties"
            causes.append(Cause.invalid(field, len(value), detail))
        if schema.max_fields is not None and len(value) > schema.max_fields:
            causes.append(Cause.too_many(field, len(value), schema.max_fields))
        for key, item in value.items():
            child = schema.fields.get(key, schema.values)
            if child is not None:
                inside = f"{name}.{key}" if name or key not in schema.fields else key
                found, count = self.judge(child, item, inside, within(old, key))
                causes, made = causes + found[: MAX_CAUSES - len(causes)], made + count
        causes += [Cause.required(self.field(f"{name}.{key}")) for key in schema.required if key not in value]
        return causes, made

    def _junctors(self, schema: Schema, value: Any, name: str) -> Outcome:
        causes: list[Cause] = []
        made, told = 1, quote(name)

        def say(detail: str) -> None:
            causes.append(Cause.invalid(self.at or WHOLE, "", f"{told} must {detail}"))

        if schema.any_of:
            results = [self.judge(part, value, name) for part in schema.any_of]
            best = next((result for result in results if not result[0]), None)
            if best is None:
                say("validate at least one schema (anyOf)")
                best = max(results, key=lambda result: result[1])
            causes, made = causes + best[0], made + best[1]
        if schema.one_of:
            results = [self.judge(part, value, name) for part in schema.one_of]
            fitting = [result for result in results if not result[0]]
            if len(fitting) != 1:
                many = f"Found {len(fitting)} valid alternatives" if fitting else "Found none valid"
                say(f"validate one and only one schema (oneOf). {many}")
                best = max(results, key=lambda result: result[1])
                causes, made = (causes, made) if fitting else (causes + best[0], made + best[1])
        if schema.all_of:
            results = [self.judge(part, value, name) for part in schema.all_of]
            for found, count in results:
                causes, made = causes + found, made + count
            good = sum(not result[0] for result in results)
            if good < len(results):
                say("validate all the schemas (allOf)" + ("" if good else ". None validated"))
        if schema.not_of is not None and not self.judge(schema.not_of, value, name)[0]:
            say("not validate the schema (not)")
        return causes, made


def _is_dropped(child: Schema | None) -> bool:
    """Whether null, in the field of that schema, is the same as nothing."""
    return child is not None and not child.nullable


def json_types(schema: Schema) -> tuple[str, ...]:
    """The types of JSON that a schema allows; none for anything."""
    if schema.type == "int-or-string":
        return ("integer", "string")
    return () if schema.type == "any" else (_JSON_TYPES.get(schema.type, schema.type),)


def _type_of(value: Any) -> tuple[str, str]:
    """The type of a JSON value and the format that Go's type for it has."""
    if isinstance(value, bool):
        return "boolean", ""
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
        return "integer", "int64"
    if isinstance(value, (int, float)):
        return "number", "float64"
    return ("string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"), ""


# -- what was there before -----------------------------------------------------------------------------------------


def same(old: Any, value: Any) -> bool:
    """Whether two values are the same JSON: Python has 1 == True."""
    if old != value:
        return False
    option = orjson.OPT_SORT_KEYS
    return orjson.dumps(old, option=option) == orjson.dumps(value, option=option)


def within(old: Any, name: Any) -> Any:
    """The old value of a field or of a map's key."""
    return old.get(name, NEW) if isinstance(old, dict) and isinstance(name, str) else NEW


def counterpart(schema: Schema, old: Any, item: Any) -> Any:
    """The old item of a list with keys that has the keys of `item`. Items of other lists have no past."""
    if not isinstance(old, list) or not schema.keys or not isinstance(item, dict):
        return NEW
    keys = [item.get(key, schema.key_defaults.get(key)) for key in schema.keys]
    for before in old:
        if isinstance(before, dict) and keys == [before.get(k, schema.key_defaults.get(k)) for k in schema.keys]:
            return before
    return NEW


# -- sets and maps -------------------------------------------------------------------------------------------------


def _twice(schema: Schema, value: Any, path: str) -> Iterator[Cause]:
    """What is there a second time in lists whose elements must differ."""
    if isinstance(value, dict):
        for name, item in value.items():
            if name in schema.fields:
                yield from _twice(schema.fields[name], item, f"{path}.{name}" if path else name)
            elif schema.values is not None:
                yield from _twice(schema.values, item, f"{path}[{name}]")
    elif isinstance(value, list):
        yield from _repeated(schema, value, path)
        for index, item in enumerate(value if schema.items is not None else ()):
            assert schema.items is not None
            yield from _twice(schema.items, item, f"{path}[{index}]")


def _repeated(schema: Schema, value: list[Any], path: str) -> Iterator[Cause]:
    if schema.list_type not in ("set", "map"):
        return
    keys = value
    if schema.list_type == "map":
        for index, item in enumerate(value):
            if item is not None and not isinstance(item, dict):
                detail = "must be an object for an array of list-type map"
                yield Cause.invalid(f"{path}[{index}]", item, detail)
                return
        keys = [{key: item[key] for key in schema.keys if key in item} for item in (item or {} for item in value)]
    seen: dict[bytes, int] = {}
    for index, key in enumerate(keys):
        mark = orjson.dumps(key, option=orjson.OPT_SORT_KEYS)
        seen[mark] = seen.get(mark, 0) + 1
        if seen[mark] == 2:  # a third one is not told again
            yield Cause.duplicate(f"{path}[{index}]", key)
