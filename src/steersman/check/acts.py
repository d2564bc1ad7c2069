"""What befalls pods and nodes, and what people may do that nobody scripted: faults that are ordinary API requests.

Facts: Kubernetes' documents on pod disruptions (eviction by request and by a kubelet that is short of memory) and on
nodes (a kubelet that falls silent; the control plane's taint then), Acto for edits that are made from the schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from steersman.api.begin import Api
from steersman.api.client import Client, key_of
from steersman.api.kinds import UnknownKind
from steersman.api.schema import Schema
from steersman.check.rest import name_of
from steersman.controllers.node_zones import UNREACHABLE
from steersman.controllers.nodehealth import KUBELETS
from steersman.kernel.effect import GK
from steersman.kernel.object import Key, Object
from steersman.kernel.reexec import Exchange
from steersman.kernel.store import Store
from steersman.kernel.value import ABSENT, thaw

POD: Final[GK] = ("", "Pod")
NODE: Final[GK] = ("", "Node")
MAX_LEAVES: Final = 32
"""Fields of an object that `edits` changes: a search over more of them would not end."""
UNEDITED: Final = frozenset(["apiVersion", "kind", "metadata", "status"])
KEPT: Final = frozenset(["Namespace", "CustomResourceDefinition"])
"""Kinds that `edits` leaves alone: what is below them would go with them."""


class Act:
    """One fault: what it can happen to, and what it does. `number` tells its variants, from 1."""

    who = ""
    """Who does it: part of the label."""
    words: tuple[str, ...] = ()
    """What each variant is, after the name of the object."""

    def __init__(self, api: Api) -> None:
        self.api = api

    def targets(self, store: Store) -> Iterator[tuple[Key, int]]:
        """The objects it can happen to now, and the variants."""
        raise NotImplementedError

    def does(self, client: Client, key: Key, number: int) -> None:
        """Makes the requests. What is refused is not done."""
        raise NotImplementedError

    def do(self, exchange: Exchange, key: Key, number: int) -> None:
        """The same, by way of the kernel's exchange."""
        self.does(Client(exchange, self.api, self.who), key, number)

    def says(self, key: Key, number: int) -> str:
        """It in words."""
        return f"{name_of(key)} {self.words[number - 1]}"


def _alive(store: Store) -> Iterator[Object]:
    """Pods that have not ended, and are not asked to."""
    for pod in store.list(POD):
        status = pod.value.get("status") or {}
        if status.get("phase") not in ("Succeeded", "Failed") and not pod.meta.value.get("deletionTimestamp"):
            yield pod


def _condition(obj: Mapping[str, Any], type_: str) -> str:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((each["status"] for each in conditions if each["type"] == type_), "")


class PodFailures(Act):
    """A kubelet ends a pod, or reports that it is not ready any more."""

    who = "kubelet"
    words = ("is ended by its kubelet, which is short of memory: Failed, Evicted", "is not ready any more")

    def targets(self, store: Store) -> Iterator[tuple[Key, int]]:
        for pod in _alive(store):
            if pod.node:
                yield pod.key, 1
            if _condition(pod.value, "Ready") == "True":
                yield pod.key, 2

    def does(self, client: Client, key: Key, number: int) -> None:
        status = thaw(client.get(key, fresh=True)).get("status") or {}
        for condition in status.get("conditions") or ():
            if condition["type"] in ("Ready", "ContainersReady"):
                condition |= {"status": "False", "lastTransitionTime": client.timestamp()}
        if number == 1:
            status |= {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory. "}
        client.patch_status(key, status)


class Evictions(Act):
    """Somebody evicts a pod, as a drain does. Disruption budgets are heeded."""

    who = "user:drain"
    words = ("is evicted",)

    def targets(self, store: Store) -> Iterator[tuple[Key, int]]:
        for pod in _alive(store):
            yield pod.key, 1

    def does(self, client: Client, key: Key, number: int) -> None:
        client.evict(key)


class NodeFailures(Act):
    """A node falls silent, or goes away for good."""

    who = "node"
    words = ("falls silent: what its kubelet posted is Unknown, and it is tainted unreachable", "is gone")

    def targets(self, store: Store) -> Iterator[tuple[Key, int]]:
        for node in store.list(NODE):
            if _condition(node.value, "Ready") != "Unknown":
                yield node.key, 1
            yield node.key, 2

    def does(self, client: Client, key: Key, number: int) -> None:
        if number == 2:
            client.delete(key)
            return
        node = thaw(client.get(key, fresh=True))
        now = client.timestamp()
        about = {"status": "Unknown", "reason": "NodeStatusUnknown", "lastTransitionTime": now}
        about["message"] = "Kubelet stopped posting node status."
        have = (node.get("status") or {}).get("conditions") or []
        conditions = [{**each, **about} if each["type"] in KUBELETS else each for each in have]
        if not any(each["type"] == "Ready" for each in have):
            conditions.append({"type": "Ready", **about})
        client.patch_status(key, {"conditions": conditions})
        taints = (node.get("spec") or {}).get("taints") or []
        taint = {"key": UNREACHABLE, "effect": "NoExecute", "timeAdded": now}
        if not any(each["key"] == UNREACHABLE and each["effect"] == "NoExecute" for each in taints):
            client.patch(key, {"spec": {"taints": [*taints, taint]}})


# -- edits -----------------------------------------------------------------------------------------------------------


class Edit(NamedTuple):
    """A field that gets another value, ABSENT to take it away; `path` () stands for the whole object: deleted, or made
    again as it was applied."""

    path: tuple[str | int, ...]
    value: Any

    def fits(self, obj: Object | None) -> bool:
        """Whether it would change anything."""
        if not self.path:
            gone = obj is None
            return gone != (self.value is ABSENT) and (gone or not obj.meta.value.get("deletionTimestamp"))  # type: ignore[union-attr]
        if obj is None or obj.meta.value.get("deletionTimestamp"):
            return False
        return _at(obj.value, self.path[:-1]) is not ABSENT and _at(obj.value, self.path) != self.value


def _at(value: Any, path: Sequence[str | int]) -> Any:
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return ABSENT
    return value


class Edits(Act):
    """A person changes a field of what was applied, rolls it back, deletes the object or makes it again. Which values
    a field may get follows from its schema; what the API server refuses is not done."""

    who = "user:edit"

    def __init__(self, api: Api, objects: Sequence[dict[str, Any]]) -> None:
        super().__init__(api)
        self._objects = {key_of(obj): obj for obj in objects if obj["kind"] not in KEPT}
        self._edits: dict[Key, list[Edit]] = {}

    def of(self, key: Key) -> list[Edit]:
        """The edits of one applied object, in the order of their numbers."""
        found = self._edits.get(key)
        if found is None:
            found = self._edits[key] = list(self._made(key, self._objects[key]))
        return found

    def _made(self, key: Key, applied: dict[str, Any]) -> Iterator[Edit]:
        yield Edit((), ABSENT)
        yield Edit((), applied)
        try:
            kind = self.api.kinds.get(key.group, key.kind)
        except UnknownKind:
            return
        sections = {name: schema for name, schema in kind.schema.fields.items() if name not in UNEDITED}
        leaves = [
            leaf for name in sorted(sections) for leaf in _leaves((name,), applied.get(name, ABSENT), sections[name])
        ]
        for path, value, schema in leaves[:MAX_LEAVES]:
            others = list(_others(value, schema))
            if value is not ABSENT and isinstance(path[-1], str):
                others.append(ABSENT)
            yield from [Edit(path, other) for other in others]
            if others:
                yield Edit(path, value)

    def targets(self, store: Store) -> Iterator[tuple[Key, int]]:
        for key in self._objects:
            obj = store.get(key)
            for number, edit in enumerate(self.of(key), 1):
                if edit.fits(obj):
                    yield key, number

    def does(self, client: Client, key: Key, number: int) -> None:
        path, value = self.of(key)[number - 1]
        if not path:
            if value is ABSENT:
                client.delete(key)
            else:
                client.create(value)
            return
        pointer = "/" + "/".join([str(step).replace("~", "~0").replace("/", "~1") for step in path])
        client.patch(
            key,
            [
                {"op": "remove", "path": pointer}
                if value is ABSENT
                else {"op": "add" if isinstance(path[-1], str) else "replace", "path": pointer, "value": value}
            ],
        )

    def says(self, key: Key, number: int) -> str:
        path, value = self.of(key)[number - 1]
        name = name_of(key)
        if not path:
            return (
                f"somebody {'deletes' if value is ABSENT else 'makes'} {name}{'' if value is ABSENT else ' as it was'}"
            )
        field = "".join([f"[{step}]" if isinstance(step, int) else f".{step}" for step in path])[1:]
        return f"somebody {'takes away' if value is ABSENT else 'sets'} {field} of {name}"


def _leaves(path: tuple[str | int, ...], value: Any, schema: Schema | None) -> Iterator[tuple[Any, Any, Schema | None]]:
    """(path, value, schema) of the scalars that an object has; of a custom kind's declared ones also those it lacks."""
    if isinstance(value, Mapping):
        fields: Mapping[str, Schema] = {} if schema is None or schema.type != "object" else schema.fields
        own = schema is not None and not schema.name
        for name in sorted({*value, *(fields if own else ())}):
            below = fields.get(name) or (None if schema is None else schema.values)
            yield from _leaves((*path, name), value.get(name, ABSENT), below)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _leaves((*path, index), item, None if schema is None else schema.items)
    else:
        yield path, value, schema


def _others(value: Any, schema: Schema | None) -> Iterator[Any]:
    """Other values a field may have: the nearest ones."""
    type_ = "any" if schema is None else schema.type
    if schema is not None and schema.enum:
        yield from [other for other in schema.enum if other != value][:1]
    elif value is ABSENT:
        if type_ == "boolean":
            yield True
        elif type_ == "integer":
            yield int(schema.minimum or 1) if schema is not None else 1
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        for other in (value + 1, value - 1):
            low, high = (None, None) if schema is None else (schema.minimum, schema.maximum)
            if (low is None or other >= low) and (high is None or other <= high) and (other >= 0 or value < 0):
                yield other
    elif isinstance(value, str) and type_ in ("string", "any") and not (schema and (schema.pattern or schema.format)):
        yield f"{value}-x"


def acts(api: Api, objects: Sequence[dict[str, Any]]) -> dict[str, Act]:
    """The acts of a scenario, by their Actions."""
    return {
        "fail-pod": PodFailures(api),
        "evict": Evictions(api),
        "fail-node": NodeFailures(api),
        "edit": Edits(api, objects),
    }
