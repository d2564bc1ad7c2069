"""Owners and what they own: controller references, adoption and release.

An object has at most one controller: the ownerReference with `controller: true`. A controller claims the objects its
selector matches: it adopts those without a controller and releases its own that match no longer. Source of the facts:
Kubernetes 1.36, pkg/controller/controller_ref_manager.go and apimachinery meta/v1/controller_ref.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from steersman.api.client import Client, key_of
from steersman.api.errors import NotFound
from steersman.api.select import LabelSelector
from steersman.kernel.effect import GK, Event
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
Member = Callable[[Json, Json], bool]
"""(owner, object) → whether the object can be the owner's, apart from selectors."""


def controller_of(obj: Json) -> Json | None:
    """The ownerReference of an object's controller."""
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            return owner  # type: ignore[no-any-return]
    return None


def controlled_by(obj: Json, uid: str) -> bool:
    """Whether the owner of this uid is an object's controller."""
    owner = controller_of(obj)
    return owner is not None and owner["uid"] == uid


def controller_ref(owner: Json) -> dict[str, Any]:
    """The reference that makes `owner` the controller of an object."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_terminating(obj: Json) -> bool:
    """Whether the deletion of an object has begun."""
    return "deletionTimestamp" in obj["metadata"]


def woken(event: Event, owner: GK, owned: Iterable[GK]) -> Iterable[Key]:
    """The keys an event wakes at the controller of kind `owner`: the owner itself, for an object of the kinds `owned`
    the owners it has and had, and an orphan as itself, for adoption."""
    key = event.key
    if key.gk not in owned:
        return (key,)
    group, kind = owner
    keys: dict[Key, None] = {}
    metas = [None if obj is None else obj.meta.value for obj in (event.old, event.new)]
    for meta in metas:
        ref = None if meta is None else controller_of({"metadata": meta})
        if ref is not None and ref["kind"] == kind and ref["apiVersion"].rpartition("/")[0] == group:
            keys[Key(group, kind, key.namespace, ref["name"])] = None
    if became_orphan(*metas):
        keys[key] = None
    return keys


def claim(
    c: Client,
    owner: Json,
    kind: str,
    member: Member | None = None,
    finalizer: str = "",
    adopted: Callable[[Any], None] | None = None,
) -> list[Any]:
    """The objects of a kind that `owner` controls, after adoption and release, by name; terminating ones included.
    `finalizer`: comes and goes with the controller reference. `adopted`: hears of what was adopted, since the next look
    may not show it yet.

    Orphans are looked for until the owner was observed for the first time. Those that come later, or were there before
    a restart, wake as themselves (`became_orphan`, `adopt_orphan`). Raises `Conflict` when an object changed meanwhile,
    and what else the API refuses.
    """
    meta = owner["metadata"]
    namespace = meta["namespace"]
    selector = LabelSelector.compile(owner["spec"]["selector"])
    alive = not is_terminating(owner)
    mine = []
    matches = remembered(selector.matches)
    for obj in c.list(kind, namespace, owner=owner):
        if not controlled_by(obj, meta["uid"]):
            continue
        if matches(obj["metadata"].get("labels")) and (member is None or member(owner, obj)):
            mine.append(obj)
        elif alive:
            _release(c, obj, meta["uid"], finalizer)
    status = owner.get("status") or EMPTY
    if not alive or selector.empty or "observedGeneration" in status or (finalizer and status):
        return mine
    checked = False
    for obj in c.list(kind, namespace, owner="", labels=owner["spec"]["selector"]):
        if is_terminating(obj) or (member is not None and not member(owner, obj)):
            continue
        if not checked and not can_adopt(c, owner):
            break
        checked = True
        taken = adopt(c, owner, obj, finalizer)
        if taken is not None:
            mine.append(taken)
            if adopted is not None:
                adopted(taken)
    return sorted(mine, key=lambda obj: obj["metadata"]["name"]) if checked else mine


def remembered(judge: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """`judge` that answers at once for the value it judged last: objects of one template share their labels."""
    last: list[Any] = [judge, False]

    def judged(value: Any) -> bool:
        if value is not last[0]:
            last[:] = value, judge(value)
        return last[1]  # type: ignore[no-any-return]

    return judged


def can_adopt(c: Client, owner: Json) -> bool:
    """Whether the owner is still there, the same and not being deleted, by a live read: what was read from a cache
    may be long gone, and its new orphans are to be collected, not adopted again."""
    live = c.get(key_of(owner), fresh=True)
    return live is not None and live["metadata"]["uid"] == owner["metadata"]["uid"] and not is_terminating(live)


def adopt(c: Client, owner: Json, obj: Json, finalizer: str = "") -> Any:
    """Makes `owner` the controller of an orphan; the object as it is then, or None when it is gone."""
    meta = obj["metadata"]
    owners = [*(meta.get("ownerReferences") or ()), controller_ref(owner)]
    patch: dict[str, Any] = {"metadata": {"uid": meta["uid"], "ownerReferences": owners}}
    if finalizer and finalizer not in (meta.get("finalizers") or ()):
        patch["metadata"]["finalizers"] = [*(meta.get("finalizers") or ()), finalizer]
    try:
        return c.patch(obj, patch, rv=meta["resourceVersion"])
    except NotFound:
        return None


def as_it_is(owner: Json) -> Json:
    """The owner itself."""
    return owner


def adopt_orphan(
    c: Client,
    orphan: Json | None,
    kind: str,
    member: Member | None = None,
    finalizer: str = "",
    shown: Callable[[Json], Json] = as_it_is,
    adopted: Callable[[Client, Json, Json], None] | None = None,
) -> bool:
    """Gives an orphan to the first owner of a kind, by name, whose selector matches it. Whether there was one.
    `shown`: an owner as one whose selector is a LabelSelector. `adopted`: hears of the owner and of what it adopted."""
    if orphan is None or is_terminating(orphan) or controller_of(orphan) is not None:
        return False
    meta = orphan["metadata"]
    for found in c.list(kind, meta["namespace"]):
        owner = shown(found)
        selector = LabelSelector.compile(owner["spec"]["selector"])
        if selector.empty or is_terminating(owner) or not selector.matches(meta.get("labels")):
            continue
        if member is not None and not member(owner, orphan):
            continue
        if can_adopt(c, owner):
            taken = adopt(c, owner, orphan, finalizer)
            if adopted is not None and taken is not None:
                adopted(c, owner, taken)
            return True
    return False


def became_orphan(old: Json | None, new: Json | None) -> bool:
    """Whether an event shows an object that some controller may now want to adopt; `old` and `new` are metadata."""
    if new is None or "deletionTimestamp" in new or controller_of({"metadata": new}) is not None:
        return False
    if old is None:
        return True
    return old.get("labels") != new.get("labels") or controller_of({"metadata": old}) is not None


def _release(c: Client, obj: Json, uid: str, finalizer: str) -> None:
    meta = obj["metadata"]
    if is_terminating(obj):
        return
    left = [owner for owner in meta["ownerReferences"] if owner["uid"] != uid]
    patch: dict[str, Any] = {"metadata": {"uid": meta["uid"], "ownerReferences": left or None}}
    if finalizer in (meta.get("finalizers") or ()):
        patch["metadata"]["finalizers"] = [each for each in meta["finalizers"] if each != finalizer] or None
    try:
        c.patch(obj, patch, rv=meta["resourceVersion"])
    except NotFound:
        return
