"""Small objects for the kernel's tests, made without the API."""

from steersman.kernel.object import Key, Object, Section
from steersman.kernel.value import Frozen, freeze

POD = ("", "Pod")
SET = ("apps", "ReplicaSet")


def thing(gk, namespace, name, rv=0, *, labels=None, owners=(), node=None, spec=None, status=None):
    """An object of a kind with an uid of its own."""
    meta = {"name": name, "uid": f"uid-{name}"}
    if namespace:
        meta["namespace"] = namespace
    if labels:
        meta["labels"] = labels
    if owners:
        meta["ownerReferences"] = [{"uid": uid} for uid in owners]
    section = {
        part: Section(freeze(value)) for part, value in (("spec", spec), ("status", status)) if value is not None
    }
    return Object(
        Key(*gk, namespace, name),
        f"{gk[0]}/v1" if gk[0] else "v1",
        rv,
        Section(Frozen(freeze(meta))),
        section.get("spec"),
        None,
        section.get("status"),
        (),
        node,
    )
