"""No leaked finalizer: what is being deleted goes away in the end."""

from __future__ import annotations

from typing import Final

from steersman.check.properties.about import About
from steersman.check.properties.orphan import collects
from steersman.check.properties.probe import asked, rested
from steersman.check.rest import name_of
from steersman.kernel.effect import Request
from steersman.kernel.object import Object
from steersman.kernel.system import System
from steersman.kernel.world import World

ABOUT: Final = About(
    "no leaked finalizer",
    "Where nothing changes any more, nothing is being deleted that a finalizer keeps.",
    "The object never goes away, nor do its namespace and its owner, and a new one of its name cannot be made.",
    "The controller that removes the finalizer is gone, missed the deletion, gave up after an error, or waits for "
    "something that the deletion itself has removed.",
    "Treat a deletionTimestamp first, make the clean-up idempotent, count what is already gone as cleaned up, and "
    "remove the finalizer last.",
    "Kubernetes' own finalizers are judged only where something runs that could remove them: a garbage collector, or a "
    "controller of that kind. What protects an object while another uses it is meant: there is a live object that is "
    "neither below it nor made by its controller, and were that one gone, the finalizer would go.",
    (77, 79, 80, 102),
)
COLLECTED: Final = ("foregroundDeletion", "orphan")
"""Finalizers that a garbage collector removes."""
MAX_USERS: Final = 50
"""Objects of which it is tried whether they keep one that is stuck: at rest there are few."""


def _answers(system: System, obj: Object, finalizer: str) -> bool:
    """Whether somebody runs whose business the finalizer is."""
    if finalizer in COLLECTED:
        return collects(system)
    ours = finalizer.partition("/")[0].endswith("kubernetes.io")
    return not ours or any(loop.listens(obj.key.gk) for loop in system.loops if not getattr(loop, "everything", False))


def _is_in_use(world: World, obj: Object, finalizer: str) -> bool:
    """Whether something else keeps an object: were it gone, the finalizer would be taken off."""
    mine = {loop.name for loop in world.system.loops if obj.key in loop.initial(world.store)}
    users = [other for other in world.store.objects() if _may_use(other, obj, mine)]
    return any(_frees(world, other, obj, finalizer) for other in users[:MAX_USERS])


def _may_use(other: Object, obj: Object, mine: set[str]) -> bool:
    """Whether an object can be a user of another: it stays, and is no creature of that other or its controllers."""
    meta = other.meta.value
    below = any(owner["uid"] == obj.uid for owner in meta.get("ownerReferences") or ())
    made = not mine.isdisjoint([manager.name for manager in other.managers])
    return other.uid != obj.uid and "deletionTimestamp" not in meta and not (below or made)


def _frees(world: World, other: Object, obj: Object, finalizer: str) -> bool:
    """Whether an object loses a finalizer once another is gone."""
    after = asked(world, Request("delete", other.key, options={"grace": 0}))
    settled = None if after.store.get(other.key) else rested(after)
    left = None if settled is None else settled.store.get(obj.key)
    if left is None or left.uid != obj.uid:
        return settled is not None
    return finalizer not in (left.meta.value.get("finalizers") or ())


def wrong(world: World) -> str:
    """The first object that is stuck; "" when there is none."""
    for obj in world.store.objects():
        meta = obj.meta.value
        if "deletionTimestamp" in meta:
            left = [name for name in meta.get("finalizers") or () if _answers(world.system, obj, name)]
            if left and not _is_in_use(world, obj, left[0]):
                return f"{name_of(obj.key)} is being deleted, but nobody removes its finalizer {left[0]!r}"
    return ""
