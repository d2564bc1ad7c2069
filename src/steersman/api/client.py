"""The client a controller is given: its only way to the world.

The same client serves check, simulate and run; only what stands behind `exchange` differs. Reads come from the
controller's own view (a cache that may lag) unless `fresh=True`. Everything read is frozen; `steersman.thaw` copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, Final

from steersman.api.begin import Api
from steersman.api.crd.definition import CRD, declared_kinds
from steersman.api.errors import ApiError
from steersman.api.events import Said
from steersman.api.eviction import Eviction, evict
from steersman.api.kinds import Kind, Kinds, UnknownKind
from steersman.api.times import MICRO, parse_time, time_text
from steersman.kernel.effect import Effect, ListQuery, Request
from steersman.kernel.object import Key, Object
from steersman.kernel.store import EVERY, NAMED
from steersman.kernel.value import EMPTY, Frozen, freeze

Exchange = Callable[[Effect], Any]


_values: dict[Object, Frozen] = {}
VALUES_KEPT: Final = 1 << 14
"""Stored versions whose value is kept put together: a controller of hundreds of pods reads them all for each event of
one. Emptied when full; at under 1 KB each, what they share with the store left out."""


def value_of(obj: Object) -> Frozen:
    """`obj.value` of a version that was read from a store, and so does not change any more."""
    found = _values.get(obj)
    if found is None:
        if len(_values) >= VALUES_KEPT:
            _values.clear()
        found = _values[obj] = obj.value
    return found


class Memory(MutableMapping[str, Any]):
    """What a controller remembers from one reconcile to the next. Lost in a crash. JSON values only; reads give frozen
    values, so that remembering something new is always an assignment."""

    __slots__ = ("_items", "changed", "looked")

    def __init__(self, items: Frozen | None) -> None:
        self._items: dict[str, Any] = dict(items or EMPTY)
        self.changed = False
        self.looked: dict[str, None] = {}
        """The names that were looked at; "*" for all of them."""

    def __getitem__(self, name: str) -> Any:
        self.looked[name] = None
        return self._items[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._items[name] = freeze(value)
        self.changed = True

    def __delitem__(self, name: str) -> None:
        del self._items[name]
        self.changed = True

    def __iter__(self) -> Iterator[str]:
        self.looked["*"] = None
        return iter(sorted(self._items))

    def __len__(self) -> int:
        self.looked["*"] = None
        return len(self._items)

    def frozen(self) -> Frozen | None:
        """What is kept; None when nothing is."""
        return Frozen(self._items) if self._items else None


def _unpinned(body: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """A body without its resourceVersion, and that: it is a precondition, and no part of what is written."""
    meta = body.get("metadata") or EMPTY
    version = meta.get("resourceVersion", "")
    if not version:
        return body, ""
    return {**body, "metadata": {field: value for field, value in meta.items() if field != "resourceVersion"}}, version


def key_of(obj: Mapping[str, Any], kinds: Kinds | None = None) -> Key:
    """The key of an object as it was read or written. Raises `ValueError` when a part is missing."""
    api_version, kind = obj.get("apiVersion"), obj.get("kind")
    meta = obj.get("metadata") or EMPTY
    if not api_version or not kind:
        raise ValueError("an object needs apiVersion and kind; give a Key instead if you have only its name")
    group = api_version.rpartition("/")[0]
    return Key(group, kind, meta.get("namespace") or "", meta.get("name") or "")


class Client:
    """Reads and writes for one actor. Objects are JSON values; a `Key` or an object names what is meant."""

    __slots__ = ("_exchange", "api", "manager", "memory", "wake", "wake_after")

    def __init__(self, exchange: Exchange, api: Api, manager: str, memory: Memory | None = None) -> None:
        self._exchange = exchange
        self.api = api
        self.manager = manager
        self.memory = Memory(None) if memory is None else memory
        self.wake: int | None = None
        """The earliest time at which a `c.after` that was asked too early becomes true (microseconds)."""
        self.wake_after: int | None = None

    # -- names -------------------------------------------------------------------------------------------------

    def kind(self, text: str) -> Kind:
        """The kind a text names: `apps/v1/Deployment`, `v1/Pod`, `deploy`. Raises `UnknownKind`."""
        try:
            return self.api.kinds.find(text)
        except UnknownKind:
            return self.kinds().find(text)

    def kind_of(self, group: str, kind: str) -> Kind:
        """The kind of a group and exact name. Raises `UnknownKind`."""
        try:
            return self.api.kinds.get(group, kind)
        except UnknownKind:
            return self.kinds().get(group, kind)

    def kinds(self) -> Kinds:
        """Every kind there is. Which custom ones there are, the definitions say: a live read of them."""
        return self.api.declaring(declared_kinds(self._list(ListQuery(CRD, None), True)))

    def key(self, kind: str, name: str, namespace: str = "") -> Key:
        """The key of an object of a kind."""
        found = self.kind(kind)
        return Key(found.group, found.kind, namespace if found.namespaced else "", name)

    @staticmethod
    def _key(ref: Any) -> Key:
        """The key that a Key or an object names. Raises `TypeError` for anything else, a kind's text above all."""
        if isinstance(ref, Key):
            return ref
        if not isinstance(ref, Mapping):
            raise TypeError(f"a Key or an object is expected, not {ref!r}; make one: c.key('v1/Pod', name, namespace)")
        return key_of(ref)

    # -- reads -------------------------------------------------------------------------------------------------

    def get(self, ref: Any, fresh: bool = False) -> Any:
        """The object, frozen; None when it is not there (yet, in this view)."""
        if isinstance(ref, str):
            raise TypeError(f"c.get takes a Key or an object: c.key({ref!r}, name, namespace)")
        found: Object | None = self._exchange(Effect("get", self._key(ref), fresh))
        return None if found is None else value_of(found)

    def dependents(self, owner: Any) -> list[Any]:
        """The objects of every kind that name `owner` (an object, or its uid) among their owners, as they are now."""
        uid = owner if isinstance(owner, str) else owner["metadata"]["uid"]
        return [obj.value for obj in self._list(ListQuery(EVERY, None, "owner", uid), True)]

    def namesakes(self, kind: Kind, name: str) -> list[Any]:
        """The objects of a kind with this name in any namespace, as they are now."""
        return [obj.value for obj in self._list(ListQuery(kind.gk, None, NAMED, name), True)]

    def list(
        self,
        kind: str,
        namespace: str | None = None,
        *,
        labels: Any = "",
        fields: str = "",
        owner: Any = None,
        node: str = "",
        fresh: bool = False,
    ) -> list[Any]:
        """Objects of a kind in (namespace, name) order. `labels`: a selector as text or as a LabelSelector object;
        `owner`: an object, or its uid; `node`: pods bound to a node. The last two cost only their result."""
        found = self.kind(kind)
        query = self.api.query(found, namespace, labels, fields)
        if owner is not None:
            uid = owner if isinstance(owner, str) else owner["metadata"]["uid"]
            query = query._replace(by="owner", value=uid)
        elif node:
            query = query._replace(by="node", value=node)
        return [value_of(obj) for obj in self._list(query, fresh)]

    def _list(self, query: ListQuery, fresh: bool) -> tuple[Object, ...]:
        items: tuple[Object, ...] = self._exchange(Effect("list", query, fresh))
        return items

    # -- writes ------------------------------------------------------------------------------------------------

    def _write(self, verb: str, key: Key, body: Any, subresource: str = "", **options: Any) -> Any:
        given = {name: value for name, value in options.items() if value}
        request = Request(verb, key, body, subresource, manager=self.manager, options=Frozen(given))
        value = self._exchange(Effect("write", request))
        return value.value if isinstance(value, Object) else value

    def create(self, obj: Mapping[str, Any]) -> Any:
        """Creates an object (or, with metadata.generateName, one of a new name); returns it. Raises
        `AlreadyExists`, `Invalid`, `NotFound` (no such namespace), `Forbidden`."""
        return self._write("create", key_of(obj), obj)

    def update(self, obj: Mapping[str, Any], subresource: str = "") -> Any:
        """Replaces an object. With the resourceVersion it was read with, a version that is no longer the newest is
        refused (`Conflict`)."""
        obj, version = _unpinned(obj)
        return self._write("update", key_of(obj), obj, subresource, rv=version)

    def update_status(self, obj: Mapping[str, Any]) -> Any:
        """Replaces the status of an object; the rest of `obj` is ignored but for its resourceVersion."""
        return self.update(obj, "status")

    def patch(self, ref: Any, patch: Any, subresource: str = "", *, rv: str = "", form: str = "") -> Any:
        """A merge patch (a mapping: null removes) or a JSON patch (a list of operations). `rv` is a precondition
        (`Conflict`), and so is a `metadata.resourceVersion` in a mapping.

        `form="strategic"`: a strategic merge patch, which merges the lists of built-in kinds by their keys.
        """
        form = form or ("json" if isinstance(patch, list) else "merge")
        if not rv and "metadata" in patch and form != "json":
            patch, rv = _unpinned(patch)
        return self._write("patch", self._key(ref), patch, subresource, patch=form, rv=rv)

    def patch_status(self, ref: Any, status: Mapping[str, Any], *, rv: str = "") -> Any:
        """A merge patch of the status alone."""
        return self.patch(ref, {"status": status}, "status", rv=rv)

    def apply(self, obj: Mapping[str, Any], *, force: bool = False, subresource: str = "") -> Any:
        """Server-side apply under this controller's name. Raises `Conflict` naming the other managers."""
        return self._write("apply", key_of(obj), obj, subresource, force=force)

    def delete(self, ref: Any, *, uid: str = "", rv: str = "", grace: int | None = None, propagation: str = "") -> bool:
        """Deletes an object; False when it was not there. `uid` and `rv` are preconditions (`Conflict`);
        `propagation`: Background, Foreground or Orphan; by default what the kind and its finalizers say."""
        options: dict[str, Any] = {"uid": uid, "rv": rv}
        if propagation:
            options["propagation"] = propagation
        if grace is not None:
            options["grace"] = grace
        request = Request("delete", self._key(ref), None, manager=self.manager, options=Frozen(options))
        try:
            self._exchange(Effect("write", request))
        except Exception as error:
            if getattr(error, "reason", "") == "NotFound":
                return False
            raise
        return True

    def evict(self, pod: Any, *, uid: str = "", rv: str = "", grace: int | None = None) -> None:
        """Evicts a pod: deletes it, unless its PodDisruptionBudget forbids it (`TooManyRequests`)."""
        options: dict[str, Any] = {"uid": uid, "rv": rv}
        if grace is not None:
            options["grace"] = grace
        eviction = Eviction(evict(self.api.kinds, self._key(pod), options, self.manager))
        while eviction.effect is not None:
            try:
                value = self._exchange(eviction.effect)
            except ApiError as error:
                eviction.refuse(error)
            else:
                eviction.answer(value)

    def bind(self, pod: Any, node: str) -> Any:
        """Places a pod on a node."""
        return self._write("create", self._key(pod), {"target": {"kind": "Node", "name": node}}, "binding")

    def event(self, obj: Mapping[str, Any], type_: str, reason: str, message: str, source: str = "") -> None:
        """Tells people something about an object that was read: a core/v1 Event, counted and aggregated. `type_` is
        Normal or Warning; `source` the component that says so, by default this controller's name with "-controller".

        Nothing waits for it and nothing fails with it. In check it is not part of the state, in simulate it is
        dropped."""
        self._exchange(Effect("event", Said(obj, type_, reason, message, source or f"{self.manager}-controller")))

    def create_part(self, ref: Any, subresource: str, body: Any) -> Any:
        """Asks for a subresource of an object, such as a Secret's token."""
        return self._write("create", self._key(ref), body, subresource)

    # -- time, randomness, the outside -------------------------------------------------------------------------

    def after(self, time: str | int, seconds: float) -> bool:
        """Whether `seconds` have passed since `time`; if not, this key is reconciled again when they have."""
        at = self._micro(time)
        delay = round(seconds * MICRO)
        if self._exchange(Effect("after", (at, delay))):
            return True
        due = at + delay
        self.wake = due if self.wake is None else min(self.wake, due)
        return False

    def elapsed(self, time: str | int, seconds: float) -> bool:
        """Whether `seconds` have passed since `time`."""
        passed: bool = self._exchange(Effect("after", (self._micro(time), round(seconds * MICRO))))
        return passed

    @staticmethod
    def _micro(time: str | int) -> int:
        return parse_time(time) if isinstance(time, str) else time

    def now(self) -> int:
        """Microseconds since the epoch. What depends on it cannot be proved: prefer `after` and `elapsed`."""
        now: int = self._exchange(Effect("now", None))
        return now

    def timestamp(self) -> str:
        """The time as RFC 3339 text, to be written into an object for people to read."""
        return time_text(self._exchange(Effect("stamp", None)) // MICRO)

    def requeue(self, after: float) -> None:
        """Reconciles this key again in `after` seconds."""
        due = round(after * MICRO)
        self.wake_after = due if self.wake_after is None else min(self.wake_after, due)

    def random(self, size: int = 8) -> str:
        """`size` random bytes as hexadecimal text."""
        text: str = self._exchange(Effect("random", (self.manager, size)))
        return text

    def external(self, system: str, request: Any) -> Any:
        """Asks an external system (DNS, a cloud): a model in check and simulate, a driver in run."""
        return self._exchange(Effect("external", (system, freeze(request))))
