"""ControllerRevisions: the templates a StatefulSet or DaemonSet has had, to roll forward and back between.

Source of the facts: Kubernetes 1.36, pkg/controller/history and the patches of pkg/controller/{statefulset,daemon}.
`kubectl rollout history` reads the revision numbers and the annotation kubernetes.io/change-cause; `rollout undo`
sends `data` as a strategic merge patch, so it has exactly the form Kubernetes gives it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from steersman.api.client import Client, key_of
from steersman.api.errors import AlreadyExists
from steersman.api.go_html import encoded
from steersman.api.names import safe_encode
from steersman.api.select import LabelSelector
from steersman.controllers import owned
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
KIND: Final = "apps/v1/ControllerRevision"
GK: Final = ("apps", "ControllerRevision")
HASH_LABEL: Final = "controller-revision-hash"
"""Of pods, and of the revisions of DaemonSets."""
REVISION_LABEL: Final = "controller.kubernetes.io/hash"
"""Of the revisions of StatefulSets."""
PREFIX_MAX: Final = 223
"""Letters of the owner's name that go into a revision's name."""
_FNV_START: Final = 2_166_136_261
_FNV_PRIME: Final = 16_777_619


def data_of(owner: Json) -> dict[str, Any]:
    """The patch that brings an owner back to the template it has now."""
    return {"spec": {"template": {**owner["spec"]["template"], "$patch": "replace"}}}


def restored(owner: Json, revision: Json) -> Json:
    """The owner with the template of a revision; as it is where a person's revision holds none."""
    kept = ((revision.get("data") or EMPTY).get("spec") or EMPTY).get("template") or EMPTY
    template = {name: value for name, value in kept.items() if name != "$patch"}
    if not template or template == owner["spec"]["template"]:
        return owner
    return {**owner, "spec": {**owner["spec"], "template": template}}


def fnv_hash(data: Json, collisions: int) -> str:
    """The hash Kubernetes gives a revision of a StatefulSet: FNV-1 of the patch as Go writes it and of the number of
    collisions, in safe letters."""
    text = encoded(data)
    number = _FNV_START
    for byte in f"{text}{collisions}".encode():
        number = (number * _FNV_PRIME & 0xFFFF_FFFF) ^ byte
    return safe_encode(str(number))


def ordered(revisions: Iterable[Any]) -> list[Any]:
    """By number; of equal ones the older first, then by name."""
    return sorted(revisions, key=lambda r: (r["revision"], r["metadata"]["creationTimestamp"], r["metadata"]["name"]))


def named(owner: Json, hashed: str) -> str:
    """The name of the owner's revision of this hash."""
    return f"{owner['metadata']['name'][:PREFIX_MAX]}-{hashed}"


def mine(c: Client, owner: Json) -> list[Any]:
    """The revisions an owner controls, in their order, after the adoption of orphans that its selector matches."""
    namespace, uid = owner["metadata"]["namespace"], owner["metadata"]["uid"]
    matches = LabelSelector.compile(owner["spec"]["selector"]).matches
    found = [
        each
        for each in c.list(KIND, namespace, owner=owner)
        if owned.controlled_by(each, uid) and matches(each["metadata"].get("labels"))
    ]
    orphans = [each for each in c.list(KIND, namespace, owner="") if matches(each["metadata"].get("labels"))]
    if orphans and not owned.is_terminating(owner) and owned.can_adopt(c, owner):
        for each in orphans:
            adopted = owned.adopt(c, owner, each)
            if adopted is not None:
                found.append(adopted)
    return ordered(found)


def body(owner: Json, number: int, hashed: str, label: str = HASH_LABEL) -> dict[str, Any]:
    """The revision of the owner's template as it is to be created."""
    meta = owner["metadata"]
    labels = (owner["spec"]["template"].get("metadata") or EMPTY).get("labels") or EMPTY
    made: dict[str, Any] = {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": named(owner, hashed),
            "namespace": meta["namespace"],
            "labels": {**labels, label: hashed},
            "ownerReferences": [owned.controller_ref(owner)],
        },
        "data": data_of(owner),
        "revision": number,
    }
    if meta.get("annotations"):
        made["metadata"]["annotations"] = meta["annotations"]
    return made


def create(c: Client, owner: Json, number: int, collisions: int) -> tuple[Any, int]:
    """Creates a StatefulSet's revision under a name of its own; returns it (or the equal one that is there already)
    and the number of collisions. As in Kubernetes, the label keeps the hash of the first attempt."""
    made = body(owner, number, fnv_hash(data_of(owner), collisions), REVISION_LABEL)
    while True:
        try:
            return c.create(made), collisions
        except AlreadyExists:
            found = c.get(key_of(made), fresh=True)
            if found is None:
                raise
            if found.get("data") == made["data"]:
                return found, collisions
            collisions += 1
            made["metadata"]["name"] = named(owner, fnv_hash(made["data"], collisions))


def renumber(c: Client, revision: Json, number: int) -> Any:
    """Gives a revision a new number: what a rollback is."""
    if revision["revision"] == number:
        return revision
    return c.patch(revision, {"revision": number}, rv=revision["metadata"]["resourceVersion"])
