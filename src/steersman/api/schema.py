"""Schemas: what Kubernetes knows about the shape of a value.

One node type, `Schema`, serves built-in kinds (compiled from the official definitions by
scripts/compile_kinds.py) and custom kinds (steersman.api.crd.structural). Patch, apply, defaulting, pruning and
validation walk the same nodes.

Sources: the OpenAPI definitions of Kubernetes 1.36; "Structural schemas" and "Extend the Kubernetes API
with CustomResourceDefinitions" in the Kubernetes documentation; the merge rules of list and map types in
"Server-Side Apply" there.
"""

from __future__ import annotations

import difflib
import importlib.resources
import zlib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final, NoReturn

import orjson

Json = Any
"""A JSON value: None, bool, int, float, str, list of them, dict from str to them."""

OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
MICRO_TIME: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime"


class SchemaError(ValueError):
    """A schema that cannot be used. The text names the place, the fault and the remedy."""


_EMPTY: Final[Mapping[str, Any]] = {}
_ABSENT: Final[dict[str, Any]] = {
    "name": "",
    "type": "any",
    "fields": _EMPTY,
    "values": None,
    "items": None,
    "list_type": "",
    "keys": (),
    "key_defaults": _EMPTY,
    "atomic": False,
    "required": (),
    "nullable": False,
    "preserve_unknown": False,
    "embedded": False,
    "enum": (),
    "format": "",
    "pattern": "",
    "minimum": None,
    "maximum": None,
    "exclusive_minimum": False,
    "exclusive_maximum": False,
    "multiple_of": None,
    "min_length": None,
    "max_length": None,
    "min_items": None,
    "max_items": None,
    "min_fields": None,
    "max_fields": None,
    "default": None,
    "merge_key": "",
    "merge_strategy": "",
    "all_of": (),
    "any_of": (),
    "one_of": (),
    "not_of": None,
    "rules": (),
}
_TUPLES: Final = ("keys", "required", "enum")


class Schema:
    """An immutable node. Nodes are shared and compared by identity; never change their dicts.

    A node of a built-in definition is filled on the first access of any attribute; from then on attributes
    are plain slots. Definitions may refer to themselves, so a walk must follow the value, not the schema.
    """

    __slots__ = ("_expand", *_ABSENT)

    name: str
    """Definition name such as `io.k8s.api.core.v1.PodSpec`; "" for an anonymous node."""
    type: str
    """object | map | list | string | integer | number | boolean | any | int-or-string | quantity."""
    fields: Mapping[str, Schema]
    """object: its declared fields, in sorted order."""
    values: Schema | None
    """map: the schema of every value."""
    items: Schema | None
    """list: the schema of every element."""
    list_type: str
    """list: atomic | set | map. An untyped list is atomic. "" for other types."""
    keys: tuple[str, ...]
    """list of type map: the fields of an element that identify it, in the order Kubernetes declares them."""
    key_defaults: Mapping[str, Json]
    """list of type map: values of key fields that an element may leave out."""
    atomic: bool
    """object, map, any: replaced and owned as a whole (x-kubernetes-map-type: atomic)."""
    required: tuple[str, ...]
    """object: fields that must be present."""
    nullable: bool
    """null is accepted. In built-in kinds it means "not set" and is dropped; in custom kinds it is stored."""
    preserve_unknown: bool
    """object, any: undeclared fields are kept. Elsewhere they are pruned, or refused under strict checking."""
    embedded: bool
    """A complete object of some kind (RawExtension, x-kubernetes-embedded-resource)."""
    enum: tuple[Json, ...]
    format: str
    """int32 | int64 | double | byte | date-time | …; both Time and MicroTime (see `name`) are date-time."""
    pattern: str
    """A regular expression as written, in Go's syntax: `steersman.api.pattern.compile_pattern(it).search`."""
    minimum: float | None
    maximum: float | None
    exclusive_minimum: bool
    exclusive_maximum: bool
    multiple_of: float | None
    min_length: int | None
    max_length: int | None
    min_items: int | None
    max_items: int | None
    min_fields: int | None
    max_fields: int | None
    default: Json
    """Custom kinds: the value an absent field gets. None: no default."""
    merge_key: str
    """Strategic merge patch: the key of a merged list ("" when it is replaced)."""
    merge_strategy: str
    """Strategic merge patch: merge | replace | retainKeys | "merge,retainKeys" | ""."""
    all_of: tuple[Schema, ...]
    """Value validations only (no pruning, no defaults) that must all hold; likewise the next three."""
    any_of: tuple[Schema, ...]
    one_of: tuple[Schema, ...]
    not_of: Schema | None
    rules: tuple[Mapping[str, Json], ...]
    """x-kubernetes-validations as written: CEL rules, kept for whoever can evaluate them."""

    def __init__(self, **facts: Any) -> None:
        unknown = facts.keys() - _ABSENT.keys()
        if unknown:
            raise TypeError(f"Schema has no attributes {sorted(unknown)}")
        _fill(self, facts)

    @classmethod
    def lazy(cls, expand: Callable[[], Mapping[str, Any]]) -> Schema:
        """A node whose attributes `expand()` gives, called once, on first use."""
        node = object.__new__(cls)
        object.__setattr__(node, "_expand", expand)
        return node

    def __getattr__(self, attribute: str) -> Any:
        # Python comes here only while the slot is empty, that is, before the node is filled.
        if attribute not in _ABSENT:
            raise AttributeError(f"Schema has no attribute {attribute!r}")
        expand = object.__getattribute__(self, "_expand")
        if expand is not None:
            _fill(self, expand())
        return object.__getattribute__(self, attribute)

    def __setattr__(self, attribute: str, value: Any) -> NoReturn:
        raise AttributeError("a Schema is immutable; use evolve()")

    def __delattr__(self, attribute: str) -> NoReturn:
        raise AttributeError("a Schema is immutable; use evolve()")

    def __repr__(self) -> str:
        return f"Schema({self.name or self.type})"

    def __getstate__(self) -> dict[str, Any]:
        return {attribute: getattr(self, attribute) for attribute in _ABSENT}

    def __setstate__(self, facts: Mapping[str, Any]) -> None:
        _fill(self, facts)

    def __copy__(self) -> Schema:
        return self

    def __deepcopy__(self, memo: object) -> Schema:
        return self

    def facts(self) -> dict[str, Any]:
        """Attribute → value, without the attributes that say nothing."""
        every = {a: getattr(self, a) for a in _ABSENT}
        return {a: v for a, v in every.items() if v != _ABSENT[a]}

    def evolve(self, **changes: Any) -> Schema:
        """A new node with some attributes changed."""
        return Schema(**{**self.facts(), **changes})

    def child(self, field: str) -> Schema | None:
        """The schema under a field of an object or a key of a map; None when none is declared."""
        return self.fields.get(field) or self.values


def _fill(node: Schema, facts: Mapping[str, Any]) -> None:
    put = object.__setattr__
    for attribute, absent in _ABSENT.items():
        put(node, attribute, facts.get(attribute, absent))
    put(node, "_expand", None)  # last: another thread may be filling the same node with equal values


RAW: Final = "io.k8s.apimachinery.pkg.runtime.RawExtension"
"""Any JSON, of which Kubernetes knows no parts: it is owned as a whole."""


def _zero_keys(items: Schema, keys: Iterable[str]) -> dict[str, Json]:
    """Keys that an item may leave out because Go has a zero value for them, which the published schemas have as their
    default: those of required fields, and the name of a LocalObjectReference."""
    known = [key for key in keys if key in items.required or items.name.endswith(".LocalObjectReference")]
    return {key: 0 if items.fields[key].type == "integer" else "" for key in known if key in items.fields}


class Definitions:
    """Named schemas, each built on first use from the compiled form that scripts/compile_kinds.py writes.

    Equal anonymous nodes are one node, so most strings and numbers of all kinds share a handful.
    """

    __slots__ = ("_compiled", "_named", "_shared")

    def __init__(self, compiled: Mapping[str, Any]) -> None:
        self._compiled = compiled
        self._named: dict[str, Schema] = {}
        self._shared: dict[bytes, Schema] = {}

    def names(self) -> list[str]:
        """Every definition name, sorted."""
        return sorted(self._compiled)

    def get(self, name: str) -> Schema:
        """The definition of that name. Raises SchemaError with the nearest names when there is none."""
        node = self._named.get(name)
        if node is not None:
            return node
        compiled = self._compiled.get(name)
        if compiled is None:
            near = difflib.get_close_matches(name, self.names(), 3)
            hint = f"; did you mean {' or '.join(near)}?" if near else "; Definitions.names() lists all"
            raise SchemaError(f"no definition {name!r}{hint}")
        node = Schema.lazy(lambda: self._facts(compiled, name))
        return self._named.setdefault(name, node)

    def _node(self, compiled: Mapping[str, Any]) -> Schema:
        if len(compiled) == 1 and "ref" in compiled:
            return self.get(compiled["ref"])
        text = orjson.dumps(compiled)
        node = self._shared.get(text)
        if node is None:
            node = self._shared.setdefault(text, Schema.lazy(lambda: self._facts(compiled, "")))
        return node

    def _facts(self, compiled: Mapping[str, Any], name: str) -> dict[str, Any]:
        facts = dict(compiled)
        if "ref" in facts:  # a reference with changes, such as claimRef's granular merge
            return {**self.get(facts.pop("ref")).facts(), **facts}
        for attribute in _TUPLES:
            if attribute in facts:
                facts[attribute] = tuple(facts[attribute])
        if "fields" in facts:
            facts["fields"] = {field: self._node(child) for field, child in facts["fields"].items()}
        for attribute in ("items", "values"):
            if attribute in facts:
                facts[attribute] = self._node(facts[attribute])
        facts["name"] = name
        if name == RAW:
            facts["atomic"] = True
        if facts.get("list_type") == "map":
            facts["key_defaults"] = {**_zero_keys(facts["items"], facts["keys"]), **facts.get("key_defaults", _EMPTY)}
        return facts


def packaged(name: str) -> bytes:
    """The content of a file of steersman/api/data."""
    return importlib.resources.files("steersman.api").joinpath("data", name).read_bytes()


@cache
def compiled_data() -> Mapping[str, Any]:
    """The content of data/kinds.json.z: `kubernetes`, `sources`, `kinds`, `definitions` (data/README.md)."""
    data: Mapping[str, Any] = orjson.loads(zlib.decompress(packaged("kinds.json.z")))
    return data


@cache
def definitions() -> Definitions:
    """The definitions of Kubernetes 1.36, shared by everybody in the process."""
    return Definitions(compiled_data()["definitions"])
