"""No orphan: nothing outlives the owner it was made for."""

from __future__ import annotations

from typing import Final

from steersman.check.properties.about import About
from steersman.check.rest import name_of
from steersman.kernel.store import Store
from steersman.kernel.system import System

ABOUT: Final = About(
    "no orphan",
    "Where nothing changes any more, every object that names owners has one that is there: not just one of that name, "
    "but that very incarnation (uid).",
    "What is left behind costs money, holds names and addresses, and is adopted by the next owner of the same name.",
    "An owner is deleted while its dependents are being made; an owner reference names another namespace or a stale "
    "uid; a collector starts with a cache that is not complete.",
    "Check the owner's uid with a fresh read before making a dependent; let the collector ask the API server before "
    "it takes an owner for present or absent.",
    "Judged only where a garbage collector runs in the scenario (a controller of every kind, such as the built-in "
    "one): without one, dependents stay by design. The verdict says so where something was left (not judged: …).",
    (12, 45, 72, 74, 75, 76),
)


def collects(system: System) -> bool:
    """Whether somebody collects garbage there."""
    return any(getattr(loop, "everything", False) for loop in system.loops)


def wrong(store: Store) -> str:
    """The first orphan; "" when there is none."""
    there = {obj.uid for obj in store.objects()}
    for obj in store.objects():
        owners = obj.meta.value.get("ownerReferences") or ()
        if owners and not any(owner["uid"] in there for owner in owners):
            owner = next((each for each in owners if each.get("controller")), owners[0])
            gone = f"{owner['kind']} {owner['name']} (the one it names by uid)"
            return f"{name_of(obj.key)} is left, but its owner {gone} is gone"
    return ""
