"""The garbage collector: dependents follow their owners, go before them, or are let go.

What has owners none of which is there any more is deleted. An owner with the finalizer `foregroundDeletion` waits for
those of its dependents that block it; one with `orphan` takes itself off their lists first. Whether an owner is there,
and who depends on whom, is read live: a cache that has not seen an owner yet must not cost its dependents their life.

Source of the facts: Kubernetes 1.36, pkg/controller/garbagecollector (attemptToDeleteItem, processTransitions,
attemptToOrphanWorker, addDependentToOwners). A dependent in a namespace looks for owners of namespaced kinds in its
own namespace only; a cluster-scoped one cannot have them, and an object with such a reference is left alone, and so is
one with a reference to a kind that nobody knows (yet).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from steersman.api.client import Client, key_of
from steersman.api.controller import EVERY_KIND, Controller, Find
from steersman.api.deletion import FOREGROUND, NEVER_OWNERS, ORPHAN, waits_for
from steersman.api.kinds import Kind, UnknownKind
from steersman.kernel.effect import Event
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
FEW: Final = 32
"""References that are looked up one by one; more are looked up in whole lists, one for each kind, and nobody is told
which of them are wrong."""
AT_A_TIME: Final = 1_000
"""Dependents orphaned in one reconcile; it is called again for the rest."""
KIND_MAY_COME: Final = 30.0
"""Seconds after which an owner of an unknown kind is looked for again: its definition may come later."""


class Owners(NamedTuple):
    """The owner references of an object, by what became of the owners."""

    solid: list[Json]
    dangling: list[Json]
    waiting: list[Json]
    """Their owners wait for their dependents to be deleted."""


class Unresolvable(Exception):
    """A reference that says nothing about its owner. `final`: and never will."""

    def __init__(self, final: bool) -> None:
        super().__init__(final)
        self.final = final


class GarbageCollector(Controller):
    """Collects objects of every kind."""

    name = "garbage-collector"
    kind = EVERY_KIND

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """A removal wakes the dependents, and the owners that wait for it; a new or changed list of owners wakes the
        object itself; the beginning of a deletion by finalizer wakes the object and its dependents."""
        if event.key.gk in NEVER_OWNERS:
            return ()
        old, new = event.old, event.new
        before = EMPTY if old is None else old.meta.value
        after = EMPTY if new is None else new.meta.value
        if before is after:
            return ()
        had, has = before.get("ownerReferences"), after.get("ownerReferences")
        woken: dict[Key, None] = {}
        if new is None or _collecting(after) - _collecting(before):
            woken.update(dict.fromkeys([obj.key for obj in find("owner", event.obj.uid)]))
            if new is not None:
                woken[event.key] = None
        if had != has:
            if has:
                woken[event.key] = None
            for owner in had or ():
                woken.update(dict.fromkeys([obj.key for obj in find("owner", waits_for(owner["uid"]))]))
        return woken

    def reconcile(self, c: Client, key: Key) -> float | None:
        """Brings one object's end, or its list of owners, to what its owners are. Returns seconds until it is to be
        called again, where there is something to wait for that no event tells."""
        item = c.get(key, fresh=True)
        if item is None:
            return None
        meta = item["metadata"]
        finalizers = meta.get("finalizers") or ()
        if "deletionTimestamp" in meta:
            if ORPHAN in finalizers:
                return _orphan(c, item)
            if FOREGROUND in finalizers and not _blocking(c, meta["uid"]):
                _take_finalizer(c, item, FOREGROUND)
            return None
        if not meta.get("ownerReferences"):
            return None
        try:
            owners = _classify(c, key, item)
        except Unresolvable as problem:
            return None if problem.final else KIND_MAY_COME
        if owners.solid:
            if owners.dangling or owners.waiting:
                _set_owners(c, item, owners.solid)
        else:
            _collect(c, item, owners)
        return None


def _collecting(meta: Json) -> set[str]:
    """The finalizers of an object being deleted for which it waits for the collector. A second deletion may put
    another one in the first one's place."""
    return {FOREGROUND, ORPHAN}.intersection(meta.get("finalizers") or ()) if "deletionTimestamp" in meta else set()


def _collect(c: Client, item: Json, owners: Owners) -> None:
    """Deletes what no living owner holds: in the foreground where an owner waits and the object has dependents of its
    own, else as its finalizers say."""
    meta = item["metadata"]
    finalizers = meta.get("finalizers") or ()
    policy = "Orphan" if ORPHAN in finalizers else "Foreground" if FOREGROUND in finalizers else "Background"
    version = meta["resourceVersion"]
    if owners.waiting:
        dependents = c.dependents(item)
        if dependents:
            policy = "Foreground"
        if any(_waits(each["metadata"]) for each in dependents):  # a circle, maybe: nobody may wait for this one
            free = [{**owner, "blockOwnerDeletion": False} for owner in meta["ownerReferences"]]
            if free != meta["ownerReferences"]:
                version = _set_owners(c, item, free)["metadata"]["resourceVersion"]
    # The revision too: whoever adopts the object between our reads and this write must win.
    c.delete(key_of(item), uid=meta["uid"], rv=version, propagation=policy)


def _waits(meta: Json) -> bool:
    return "deletionTimestamp" in meta and FOREGROUND in (meta.get("finalizers") or ())


def _blocking(c: Client, uid: str) -> bool:
    """Whether a dependent is left that its owner has to wait for."""
    return any(
        owner["uid"] == uid and owner.get("blockOwnerDeletion")
        for each in c.dependents(uid)
        for owner in each["metadata"]["ownerReferences"]
    )


def _orphan(c: Client, owner: Json) -> float | None:
    """Takes the owner off its dependents' lists, then its finalizer."""
    uid = owner["metadata"]["uid"]
    dependents = c.dependents(uid)
    for each in dependents[:AT_A_TIME]:
        _set_owners(c, each, [ref for ref in each["metadata"]["ownerReferences"] if ref["uid"] != uid])
    if len(dependents) > AT_A_TIME:
        return 0.0
    _take_finalizer(c, owner, ORPHAN)
    return None


def _set_owners(c: Client, item: Json, owners: Sequence[Json]) -> Any:
    """Replaces a list of owners. Raises `Conflict` when the object changed since it was read."""
    meta = item["metadata"]
    patch = {"metadata": {"uid": meta["uid"], "ownerReferences": owners or None}}
    return c.patch(key_of(item), patch, rv=meta["resourceVersion"])


def _take_finalizer(c: Client, item: Json, name: str) -> None:
    meta = item["metadata"]
    left = [each for each in meta["finalizers"] if each != name]
    patch = {"metadata": {"uid": meta["uid"], "finalizers": left or None}}
    c.patch(key_of(item), patch, rv=meta["resourceVersion"])


# -- owners --------------------------------------------------------------------------------------------------------


def _classify(c: Client, key: Key, item: Json) -> Owners:
    """What became of the owners. Raises `Unresolvable`."""
    owners = Owners([], [], [])
    references = item["metadata"]["ownerReferences"]
    few = len(references) <= FEW
    find = _one_by_one(c) if few else _by_lists(c)
    for owner in references:
        kind = _kind_of(c, key, item, owner)
        found = find(kind, key.namespace if kind.namespaced else "", owner["name"])
        if found is None or found["metadata"]["uid"] != owner["uid"]:
            owners.dangling.append(owner)
            if kind.namespaced and few:
                _tell_of_other_namespace(c, key, item, owner, kind)
        elif _waits(found["metadata"]):
            owners.waiting.append(owner)
        else:
            owners.solid.append(owner)
    return owners


def _kind_of(c: Client, key: Key, item: Json, owner: Json) -> Kind:
    try:
        kind = c.kind_of(owner["apiVersion"].rpartition("/")[0], owner["kind"])
    except UnknownKind:
        raise Unresolvable(final=False) from None
    if kind.namespaced and not key.namespace:
        _tell(c, item, owner, "")
        raise Unresolvable(final=True)
    return kind


def _one_by_one(c: Client) -> Any:
    def find(kind: Kind, namespace: str, name: str) -> Any:
        return c.get(Key(kind.group, kind.kind, namespace, name), fresh=True)

    return find


def _by_lists(c: Client) -> Any:
    """The look-up for an object with very many owners: a list for each kind and namespace they are in."""
    lists: dict[tuple[Kind, str], dict[str, Any]] = {}

    def find(kind: Kind, namespace: str, name: str) -> Any:
        if (kind, namespace) not in lists:
            found = c.list(str(kind), namespace, fresh=True)
            lists[kind, namespace] = {each["metadata"]["name"]: each for each in found}
        return lists[kind, namespace].get(name)

    return find


def _tell_of_other_namespace(c: Client, key: Key, item: Json, owner: Json, kind: Kind) -> None:
    """Says so where the owner is not gone but in another namespace, in which nobody looks for it."""
    for each in c.namesakes(kind, owner["name"]):
        if each["metadata"]["uid"] == owner["uid"]:
            _tell(c, item, owner, key.namespace)


def _tell(c: Client, item: Json, owner: Json, namespace: str) -> None:
    text = (
        f"[{owner['apiVersion']}/{owner['kind']}, namespace: {namespace}, name: {owner['name']}, uid: {owner['uid']}]"
    )
    message = f'ownerRef {text} does not exist in namespace "{namespace}"'
    c.event(item, "Warning", "OwnerRefInvalidNamespace", message)
