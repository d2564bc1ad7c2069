"""The garbage collector: deletes what has owners none of which is there any more.

Only background propagation: an owner goes first, its dependents follow. Whether an owner is there is read live, as
Kubernetes' collector does: a cache that has not seen an owner yet must not cost its dependents their life. Source of
the facts: Kubernetes 1.36, pkg/controller/garbagecollector, and its text on owners across namespaces: a dependent in a
namespace looks for owners of namespaced kinds in its own namespace only; a cluster-scoped dependent cannot have them,
so such a reference is never resolved and the dependent stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from steersman.api.client import Client
from steersman.api.controller import EVERY_KIND, Controller, Find
from steersman.api.kinds import UnknownKind
from steersman.kernel.effect import Event
from steersman.kernel.object import Key

Json = Mapping[str, Any]


class GarbageCollector(Controller):
    """Collects objects of every kind."""

    name = "garbage-collector"
    kind = EVERY_KIND

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """A removal wakes the dependents; a new or changed list of owners wakes the object itself."""
        if event.new is None:
            assert event.old is not None
            return [obj.key for obj in find("owner", event.old.uid)]
        owners = event.new.meta.value.get("ownerReferences")
        if not owners or (event.old is not None and event.old.meta.value.get("ownerReferences") == owners):
            return ()
        return (event.key,)

    def reconcile(self, c: Client, key: Key) -> None:
        """Deletes the object of `key` if all of its owners are gone, else drops the references to those that are."""
        item = c.get(key, fresh=True)
        if item is None or "deletionTimestamp" in item["metadata"]:
            return
        meta = item["metadata"]
        owners = meta.get("ownerReferences") or ()
        dangling = [owner["uid"] for owner in owners if _is_absent(c, key, owner)]
        if not dangling:
            return
        if len(dangling) == len(owners):
            # The revision too: whoever adopts the object between our reads and this write must win.
            c.delete(key, uid=meta["uid"], rv=meta["resourceVersion"])
            return
        left = [owner for owner in owners if owner["uid"] not in dangling]
        patch = {"metadata": {"uid": meta["uid"], "ownerReferences": left}}
        c.patch(key, patch, rv=meta["resourceVersion"])


def _is_absent(c: Client, dependent: Key, owner: Json) -> bool:
    """Whether an owner's slot is empty or holds another incarnation. What cannot be resolved counts as there."""
    group = owner["apiVersion"].rpartition("/")[0]
    try:
        kind = c.api.kinds.get(group, owner["kind"])
    except UnknownKind:
        return False
    if kind.namespaced and not dependent.namespace:
        return False
    slot = Key(group, owner["kind"], dependent.namespace if kind.namespaced else "", owner["name"])
    found = c.get(slot, fresh=True)
    return found is None or found["metadata"]["uid"] != owner["uid"]
