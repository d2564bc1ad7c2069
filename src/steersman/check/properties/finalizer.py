"""No leaked finalizer: what is being deleted goes away in the end."""

from __future__ import annotations

from typing import Final

from steersman.check.properties.about import About
from steersman.check.properties.orphan import collects
from steersman.check.rest import name_of
from steersman.kernel.object import Object
from steersman.kernel.store import Store
from steersman.kernel.system import System

ABOUT: Final = About(
    "no leaked finalizer",
    "Where nothing changes any more, nothing is being deleted that a finalizer keeps.",
    "The object never goes away, nor do its namespace and its owner, and a new one of its name cannot be made.",
    "The controller that removes the finalizer is gone, missed the deletion, gave up after an error, or waits for "
    "something that the deletion itself has removed.",
    "Treat a deletionTimestamp first, make the clean-up idempotent, count what is already gone as cleaned up, and "
    "remove the finalizer last.",
    "Kubernetes' own finalizers are judged only where something runs that could remove them: a garbage collector, or a "
    "controller of that kind.",
    (77, 79, 80, 102),
)
COLLECTED: Final = ("foregroundDeletion", "orphan")
"""Finalizers that a garbage collector removes."""


def _answers(system: System, obj: Object, finalizer: str) -> bool:
    """Whether somebody runs whose business the finalizer is."""
    if finalizer in COLLECTED:
        return collects(system)
    ours = finalizer.partition("/")[0].endswith("kubernetes.io")
    return not ours or any(loop.listens(obj.key.gk) for loop in system.loops if not getattr(loop, "everything", False))


def wrong(system: System, store: Store) -> str:
    """The first object that is stuck; "" when there is none."""
    for obj in store.objects():
        meta = obj.meta.value
        if "deletionTimestamp" in meta:
            left = [name for name in meta.get("finalizers") or () if _answers(system, obj, name)]
            if left:
                return f"{name_of(obj.key)} is being deleted, but nobody removes its finalizer {left[0]!r}"
    return ""
