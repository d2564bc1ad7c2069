"""Which fields a value has and which a change touches: the field sets of managedFields, by schema.

Three questions, as structured-merge-diff answers them (facts from its documentation and behaviour):

* `present(schema, value)`: the set an applied configuration claims: leaves, items of associative lists, map keys.
* `added(schema, value)`: what appears when the value was absent before: the same, and every map and list itself.
* `compare(schema, old, new)`: what a change added or modified, and what it removed.

Lists without a type and structures marked atomic are one leaf. Where there is no schema, maps are granular and lists
atomic. Equal subtrees are skipped by identity first, then by one C-level comparison.

Go's plain structs, and slices without `omitempty`, are in every object of a built-in kind, be they empty. So they never
appear themselves, only what is in them does: `ALWAYS` names them, `appearing` is `added` for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import orjson

from steersman.api.schema import Schema
from steersman.kernel.fieldset import LEAF, NOTHING, FieldSet, node, union, unshared
from steersman.kernel.value import EMPTY, Frozen, FrozenList

Change = tuple[FieldSet, FieldSet]
SAME: Final[Change] = (NOTHING, NOTHING)
CACHED_ELEMENTS: Final = 1 << 14
"""Path elements remembered per table: all field names of Kubernetes and then some; users' keys cannot fill memory."""
_NO_FIELDS: Final[dict[str, Schema]] = {}
_METRIC_SOURCES: Final = frozenset(
    f"{name}MetricSource" for name in ("ContainerResource", "External", "Object", "Pods", "Resource")
)
ALWAYS: Final[dict[str, frozenset[str]]] = {
    "backend": frozenset({"HTTPIngressPath"}),
    "clientConfig": frozenset({"MutatingWebhook", "ValidatingWebhook"}),
    "containers": frozenset({"PodSpec"}),
    "daemonEndpoints": frozenset({"NodeStatus"}),
    "reportingComponent": frozenset({"Event"}),
    "reportingInstance": frozenset({"Event"}),
    "deprecatedSource": frozenset({"Event"}),
    "describedObject": frozenset({"ObjectMetricSource"}),
    "devices": frozenset({"AllocationResult", "ResourceClaimSpec"}),
    "drivers": frozenset({"CSINodeSpec"}),
    "jobTemplate": frozenset({"CronJobSpec"}),
    "kubeletEndpoint": frozenset({"NodeDaemonEndpoints"}),
    "lastState": frozenset({"ContainerStatus"}),
    "names": frozenset({"CustomResourceDefinitionSpec"}),
    "loadBalancer": frozenset({"IngressStatus", "ServiceStatus"}),
    "metric": frozenset({"ExternalMetricSource", "ObjectMetricSource", "PodsMetricSource"}),
    "nodeInfo": frozenset({"NodeStatus"}),
    "podAffinityTerm": frozenset({"WeightedPodAffinityTerm"}),
    "podSelector": frozenset({"NetworkPolicySpec"}),
    "pool": frozenset({"ResourceSliceSpec"}),
    "priorityLevelConfiguration": frozenset({"FlowSchemaSpec"}),
    "resources": frozenset({"Container", "EphemeralContainer", "PersistentVolumeClaimSpec"}),
    "scaleTargetRef": frozenset({"HorizontalPodAutoscalerSpec"}),
    "serviceName": frozenset({"StatefulSetSpec"}),
    "source": frozenset({"Event", "VolumeAttachmentSpec"}),
    "state": frozenset({"ContainerStatus"}),
    "strategy": frozenset({"DeploymentSpec"}),
    "target": _METRIC_SOURCES,
    "template": frozenset(
        {"DaemonSetSpec", "DeploymentSpec", "JobSpec", "PodTemplate", "ReplicaSetSpec", "StatefulSetSpec"}
    ),
    "updateStrategy": frozenset({"DaemonSetSpec", "StatefulSetSpec"}),
}
"""Field → the definitions in which it is a plain struct, or a list without `omitempty`. Source: the Go types of
k8s.io/api 0.36, by reflection; only fields that can be owned in parts. `metadata`, `spec` and `status` always are."""
_SECTIONS: Final = frozenset({"metadata", "spec", "status"})
_MAYBE_ALWAYS: Final = ALWAYS.keys() | _SECTIONS


def _granular(schema: Schema | None, value: Any) -> bool:
    """Whether a dict is owned field by field."""
    return isinstance(value, dict) and not (schema is not None and schema.atomic)


def child_schema(schema: Schema | None, name: str) -> Schema | None:
    """The schema of a field or map value; None where there is none."""
    if schema is None:
        return None
    found = schema.fields.get(name)
    return schema.values if found is None else found


class _Field(dict[str, str]):
    """Path elements of field names; bounded, for map keys are the users' own."""

    def __missing__(self, name: str) -> str:
        if len(self) >= CACHED_ELEMENTS:
            self.clear()
        made = self[name] = "f:" + name
        return made


_FIELD: Final = _Field()
_by_value: dict[str, dict[Any, str]] = {}
_NO_ELEMENTS: Final[dict[Any, str]] = {}


@lru_cache(maxsize=CACHED_ELEMENTS)
def _opening(name: str) -> str:
    return f"k:{{{orjson.dumps(name).decode()}:"


def key_element(names: Sequence[str], values: Sequence[Any]) -> str:
    """The path element of the item with these keys."""
    if len(names) == 1:
        return f"{_opening(names[0])}{orjson.dumps(values[0]).decode()}}}"
    return "k:" + orjson.dumps(dict(zip(names, values, strict=True)), option=orjson.OPT_SORT_KEYS).decode()


@lru_cache(maxsize=1 << 12)
def _set_element(value: Any) -> str:
    return "v:" + orjson.dumps(value).decode()


def item_element(schema: Schema, item: Any) -> str | None:
    """The path element of a list item (`k:{"name":"web"}`, `v:"x"`); None when it has no usable key."""
    if schema.list_type == "set":
        return None if isinstance(item, (dict, list)) else _set_element(item)
    if not isinstance(item, dict):
        return None
    keys = schema.keys
    if len(keys) == 1:
        name = keys[0]
        value = item.get(name)
        if type(value) is str:
            known = _by_value.get(name)
            if known is None:
                known = _by_value[name] = {}
            element = known.get(value)
            if element is None:
                if len(known) >= CACHED_ELEMENTS:
                    known.clear()
                element = known[value] = key_element([name], [value])
            return element
    names, values = [], []
    for name in keys:
        value = item.get(name, schema.key_defaults.get(name))
        if isinstance(value, (dict, list)):
            return None
        if value is not None:  # a key may be optional (ResourceClaim's shareID); it then is not part of the identity
            names.append(name)
            values.append(value)
    return key_element(names, values) if names else None


def named_items(schema: Schema | None, value: Any) -> list[str] | None:
    """The path elements of an associative list's items, in order, some perhaps more than once; None when the list is
    atomic or an item has no usable key, for then it can only be owned as a whole."""
    if schema is None or schema.list_type not in ("map", "set") or not isinstance(value, list):
        return None
    out: list[str] = []
    key = schema.keys[0] if len(schema.keys) == 1 else ""
    known = _by_value.get(key, _NO_ELEMENTS)
    for item in value:
        text = item.get(key) if key and isinstance(item, dict) else None
        element = known.get(text) if type(text) is str else None
        if element is None:
            element = item_element(schema, item)
        if element is None:
            return None
        out.append(element)
    return out


def elements(schema: Schema | None, value: Any) -> list[str] | None:
    """`named_items` where no two items have the same path element, else None."""
    out = named_items(schema, value)
    return out if out is None or len(set(out)) == len(out) else None


def items_by_element(schema: Schema | None, value: Any) -> dict[str, Any] | None:
    """The items of an associative list by path element, or None as `elements` has it."""
    found = elements(schema, value)
    return None if found is None else dict(zip(found, value, strict=True))


def _grouped(schema: Schema | None, value: Any) -> dict[str, list[Any]] | None:
    """The items of an associative list by path element, where some have the same; None where it is owned as a whole."""
    names = named_items(schema, value)
    if names is None:
        return None
    out: dict[str, list[Any]] = {}
    for name, item in zip(names, value, strict=True):
        out.setdefault(name, []).append(item)
    return out


def _present_items(schema: Schema, value: list[Any]) -> FieldSet:
    """Items of which some are there more than once: those belong to who has them all."""
    groups = _grouped(schema, value)
    if groups is None:
        return LEAF
    return node({name: LEAF if len(g) > 1 else union(present(schema.items, g[0]), LEAF) for name, g in groups.items()})


def present(schema: Schema | None, value: Any) -> FieldSet:
    """The set of fields of an applied configuration; see the module's text. An empty associative list has none."""
    if isinstance(value, dict) and value and _granular(schema, value):
        declared = _NO_FIELDS if schema is None else schema.fields
        others = None if schema is None else schema.values
        out = {}
        for name, item in value.items():
            child = declared.get(name)
            if child is None:  # the key of a map is itself a member
                out[_FIELD[name]] = union(present(others, item), LEAF)
                continue
            below = present(child, item)
            if below is not NOTHING:
                out[_FIELD[name]] = below
        return node(out)
    if isinstance(value, list) and schema is not None:
        items = items_by_element(schema, value)
        if items is not None:
            return node({element: union(present(schema.items, item), LEAF) for element, item in items.items()})
        return _present_items(schema, value)
    return LEAF


def added(schema: Schema | None, value: Any) -> FieldSet:
    """The set of fields that appear together with `value`; the value itself is a member."""
    if isinstance(value, dict):
        if not value or (schema is not None and schema.atomic):
            return LEAF
        deep = {
            name: added(child_schema(schema, name), item)
            for name, item in value.items()
            if isinstance(item, (dict, list))
        }
        if not deep:
            return _leaf_fields(tuple(value), True)
        return node({_FIELD[name]: deep.get(name, LEAF) for name in value}, True)
    if isinstance(value, list) and schema is not None and schema.list_type in ("map", "set"):
        known = _by_value.get(schema.keys[0] if len(schema.keys) == 1 else "", _NO_ELEMENTS)
        before = len(known)
        items = items_by_element(schema, value)
        if items:
            found = {element: added(schema.items, item) for element, item in items.items()}
            return node(found, True) if len(known) == before else unshared(found, True)
        if items is None:
            return union(_present_items(schema, value), LEAF)
    return LEAF


def is_always(schema: Schema | None, name: str) -> bool:
    """Whether a field of a built-in kind is there in every object; see the module's text."""
    if schema is None or not schema.name:
        return False
    if name in _SECTIONS:
        found = schema.fields.get(name)
        return found is not None and found.type == "object" and not found.atomic
    holders = ALWAYS.get(name)
    return holders is not None and schema.name.rpartition(".")[2] in holders


def appearing(schema: Schema | None, name: str, value: Any) -> FieldSet:
    """What appears with field `name` of an object of this schema, which lacked it: `added`, or less when it is always
    there. Empty for an empty struct."""
    child = child_schema(schema, name)
    if not is_always(schema, name):
        return added(child, value)
    if isinstance(value, dict) and not (child is not None and child.atomic):
        out = {}
        for inner, item in value.items():
            below = appearing(child, inner, item)
            if below is not NOTHING:
                out[_FIELD[inner]] = below
        return node(out)
    if value == "" or value == EMPTY:  # what Go shows empty does not appear
        return NOTHING
    below = added(child, value)
    return node(dict(zip(below.names, below.kids, strict=True))) if below.names else below


def compare(schema: Schema | None, old: Any, new: Any) -> Change:
    """(added or modified, removed) between two values, both present and not equal."""
    if old is None or new is None:
        return _compare_null(schema, old, new)
    if isinstance(old, dict) and isinstance(new, dict) and not (schema is not None and schema.atomic):
        return _compare_maps(schema, old, new)
    if schema is not None and schema.list_type in ("map", "set"):
        before, after = elements(schema, old), elements(schema, new)
        if before is not None and after is not None:
            if before == after:
                return _compare_pairs(schema, before, old, new)
            return _compare_items(schema, dict(zip(before, old, strict=True)), dict(zip(after, new, strict=True)))
        old_groups, new_groups = _grouped(schema, old), _grouped(schema, new)
        if old_groups is not None and new_groups is not None:
            return _compare_groups(schema, old_groups, new_groups)
    if isinstance(old, dict) or isinstance(new, dict):
        gone = added(schema, old)  # one of them is no map: what was below goes, what is below now appears
        return added(schema, new), node(dict(zip(gone.names, gone.kids, strict=True)))
    return LEAF, NOTHING


def _compare_null(schema: Schema | None, old: Any, new: Any) -> Change:
    """A change from or to null: what was in a map or list goes, what is in it now appears; it is there before and
    after."""
    found = added(schema, new if old is None else old)
    if not found.names:
        return LEAF, NOTHING
    below = node(dict(zip(found.names, found.kids, strict=True)))
    return (below, NOTHING) if old is None else (NOTHING, below)


def _compare_groups(schema: Schema, old: dict[str, list[Any]], new: dict[str, list[Any]]) -> Change:
    """Two lists, of which some items are there more than once: those are compared as one."""
    changed: dict[str, FieldSet] = {}
    removed: dict[str, FieldSet] = {}
    for name in dict.fromkeys((*old, *new)):
        before, after = old.get(name, []), new.get(name, [])
        change, gone = NOTHING, NOTHING
        if len(before) > 1 and len(after) > 1:
            change = NOTHING if before == after else LEAF
        elif len(before) == len(after):
            change, gone = SAME if before == after else compare(schema.items, before[0], after[0])
        else:
            if before:
                gone = LEAF if len(before) > 1 else added(schema.items, before[0])
            if after:
                change = LEAF if len(after) > 1 else added(schema.items, after[0])
        if change:
            changed[name] = change
        if gone:
            removed[name] = gone
    return node(changed), node(removed)


def _compare_pairs(schema: Schema, names: list[str], old: list[Any], new: list[Any]) -> Change:
    """Two lists with the same items in the same order: the common case."""
    changed: dict[str, FieldSet] = {}
    removed: dict[str, FieldSet] = {}
    for name, before, after in zip(names, old, new, strict=True):
        if before is not after and before != after:
            change, gone = compare(schema.items, before, after)
            if change is not NOTHING:
                changed[name] = change
            if gone is not NOTHING:
                removed[name] = gone
    return node(changed), node(removed)


def _compare_maps(schema: Schema | None, old: dict[str, Any], new: dict[str, Any]) -> Change:
    fields = _NO_FIELDS if schema is None else schema.fields
    others = None if schema is None else schema.values
    changed: dict[str, FieldSet] = {}
    removed: dict[str, FieldSet] = {}
    leaves: list[str] = []
    met = 0
    for name, item in new.items():
        before = old.get(name)
        if before is None:
            if item is None and name in old:
                met += 1
                continue
            if name in old:
                met += 1
                below, gone = _compare_null(fields.get(name, others), None, item)
                if below is not NOTHING:
                    changed[_FIELD[name]] = below
                continue
            if name in _MAYBE_ALWAYS:
                below = appearing(schema, name, item)
            elif isinstance(item, (dict, list)):
                below = added(fields.get(name, others), item)
            else:
                below = LEAF
            if below is not NOTHING:
                changed[_FIELD[name]] = below
            continue
        met += 1
        if before is item:
            continue
        kind = type(item)
        if kind is Frozen or kind is FrozenList or kind is dict or kind is list:
            if before == item:
                continue
            change, gone = compare(fields.get(name, others), before, item)
            if change is not NOTHING:
                changed[_FIELD[name]] = change
            if gone is not NOTHING:
                removed[_FIELD[name]] = gone
        elif item is None:
            change, gone = _compare_null(fields.get(name, others), before, None)
            if change is not NOTHING:
                changed[_FIELD[name]] = change
            if gone is not NOTHING:
                removed[_FIELD[name]] = gone
        elif before != item or type(before) is not kind:
            leaves.append(name)
            gone = compare(fields.get(name, others), before, item)[1] if isinstance(before, dict) else NOTHING
            if gone is not NOTHING:
                removed[_FIELD[name]] = gone
    if met < len(old):
        for name, item in old.items():
            if name not in new:
                below = (
                    appearing(schema, name, item) if name in _MAYBE_ALWAYS else added(fields.get(name, others), item)
                )
                if below is not NOTHING:
                    removed[_FIELD[name]] = below
    if not changed:
        return _leaf_fields(tuple(leaves), False), node(removed) if removed else NOTHING
    for name in leaves:
        changed[_FIELD[name]] = LEAF
    return node(changed), node(removed) if removed else NOTHING


@lru_cache(maxsize=1 << 12)
def _leaf_fields(names: tuple[str, ...], member: bool) -> FieldSet:
    """The set of some fields that are all leaves: most structs are scalars only, and change in the same ways."""
    return node({_FIELD[name]: LEAF for name in names}, member)


def _compare_items(schema: Schema, old: dict[str, Any], new: dict[str, Any]) -> Change:
    changed: dict[str, FieldSet] = {}
    removed: dict[str, FieldSet] = {}
    for element, item in new.items():
        before = old.get(element)
        if before is None:
            changed[element] = added(schema.items, item)
        elif before != item:
            change, gone = compare(schema.items, before, item)
            if change is not NOTHING:
                changed[element] = change
            if gone is not NOTHING:
                removed[element] = gone
    for element, item in old.items():
        if element not in new:
            removed[element] = added(schema.items, item)
    return node(changed), node(removed)  # both empty for equal items in another order: nobody owns the order
