"""The namespace controller: empties a namespace whose deletion was asked for, then lets it go.

Pods go first, and nothing else until they are gone, so that what they still need stays; then everything else, kinds of
definitions included. What is left, and what was refused, is told in conditions. Source of the facts: Kubernetes 1.36,
pkg/controller/namespace/deletion (with OrderedNamespaceDeletion; while pods are left its conditions say nothing of
them, and so it is here).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from steersman.api.client import Client
from steersman.api.controller import Controller, Find
from steersman.api.errors import ApiError
from steersman.api.kinds import Kind
from steersman.controllers.sweep import sweep
from steersman.kernel.effect import Event
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY

FINALIZER: Final = "kubernetes"
LOOK_AGAIN: Final = 1.0
"""Seconds between two looks at what is left: pods die slowly, finalizers are somebody else's."""
POD: Final = ("", "Pod")
WELL: Final[Mapping[str, tuple[str, str]]] = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}
"""The conditions, in their order, and what each says when it is False."""


class NamespaceController(Controller):
    """Deletes what is in terminating namespaces."""

    name = "namespace"
    kind = "v1/Namespace"

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """A namespace wakes itself from when its deletion begins."""
        return () if event.new is None or "deletionTimestamp" not in event.new.meta.value else (event.key,)

    def reconcile(self, c: Client, key: Key) -> float | None:
        """Deletes what is left. Returns seconds until the next look, or None when there is nothing to wait for."""
        namespace = c.get(key, fresh=True)
        if namespace is None or "deletionTimestamp" not in namespace["metadata"]:
            return None
        if not namespace["spec"].get("finalizers"):  # what was ours to do is done
            return None
        kinds = c.kinds()
        left, refused = _empty(c, key.name, [kinds.get(*POD)])
        if left:
            _tell(c, namespace, [], refused)
            return LOOK_AGAIN
        others = [kind for kind in kinds.all() if kind.namespaced and kind.gk != POD and "delete" in kind.verbs]
        left, more = _empty(c, key.name, others)
        namespace = _tell(c, namespace, left, refused + more)
        if left or refused or more:
            return LOOK_AGAIN
        finalizers = [name for name in namespace["spec"]["finalizers"] if name != FINALIZER]
        if len(finalizers) != len(namespace["spec"]["finalizers"]):
            c.update({**namespace, "spec": {**namespace["spec"], "finalizers": finalizers}}, "finalize")
        return None


def _empty(c: Client, namespace: str, kinds: Iterable[Kind]) -> tuple[list[tuple[Kind, Any]], list[str]]:
    """Deletes the objects of these kinds: (those that are left, texts of what was refused)."""
    left: list[tuple[Kind, Any]] = []
    refused: list[str] = []
    for kind in kinds:
        found = c.list(str(kind), namespace, fresh=True)
        try:
            left += [(kind, obj) for obj in sweep(c, found)]
        except ApiError as error:
            refused.append(error.message)
            left += [(kind, obj) for obj in found]
    return left, refused


def _tell(c: Client, namespace: Any, left: list[tuple[Kind, Any]], refused: list[str]) -> Any:
    """Says in the conditions what is waited for; the namespace as it is then."""
    counts: dict[str, int] = {}
    held: dict[str, int] = {}
    for kind, obj in left:
        place = f"{kind.plural}.{kind.group}"
        counts[place] = counts.get(place, 0) + 1
        for name in obj["metadata"].get("finalizers") or ():
            held[name] = held.get(name, 0) + 1
    ill: dict[str, tuple[str, str]] = {}
    if refused:
        text = f"Failed to delete all resource types, {len(refused)} remaining: {', '.join(sorted(refused))}"
        ill["NamespaceDeletionContentFailure"] = ("ContentDeletionFailed", text)
    if counts:
        listed = sorted(f"{place} has {count} resource instances" for place, count in counts.items())
        text = "Some resources are remaining: " + ", ".join(listed)
        ill["NamespaceContentRemaining"] = ("SomeResourcesRemain", text)
    if held:
        listed = sorted(f"{name} in {count} resource instances" for name, count in held.items())
        text = "Some content in the namespace has finalizers remaining: " + ", ".join(listed)
        ill["NamespaceFinalizersRemaining"] = ("SomeFinalizersRemain", text)
    before = list((namespace.get("status") or EMPTY).get("conditions") or ())
    after = _conditions(before, ill, c)
    if after == before:
        return namespace
    body = {"metadata": {"uid": namespace["metadata"]["uid"]}, "status": {"conditions": after}}
    return c.patch(Key("", "Namespace", "", namespace["metadata"]["name"]), body, "status")


def _conditions(before: list[Any], ill: Mapping[str, tuple[str, str]], c: Client) -> list[Any]:
    """All five conditions, each with the time of its last change; those of others stay."""
    after = list(before)
    for type_, well in WELL.items():
        reason, message = ill.get(type_, well)
        said = {"type": type_, "status": "True" if type_ in ill else "False", "reason": reason, "message": message}
        place = next((at for at, each in enumerate(after) if each["type"] == type_), len(after))
        old = after[place] if place < len(after) else EMPTY
        if any(old.get(name) != value for name, value in said.items()):
            since = old["lastTransitionTime"] if old.get("status") == said["status"] else c.timestamp()
            after[place : place + 1] = [{**said, "lastTransitionTime": since}]
    return after
