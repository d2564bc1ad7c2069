"""The namespace controller: empties a namespace whose deletion was asked for, then lets it go.

Pods go first, and nothing else until they are gone, so that what they still need stays; then everything else. Source
of the facts: Kubernetes 1.36, pkg/controller/namespace/deletion (with OrderedNamespaceDeletion) and its conditions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from steersman.api.client import Client
from steersman.api.controller import Controller, Find
from steersman.controllers.conditions import condition, find, without
from steersman.controllers.sweep import sweep
from steersman.kernel.effect import Event
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY

FINALIZER: Final = "kubernetes"
LOOK_AGAIN: Final = 1.0
"""Seconds between two looks at what is left: pods die slowly, finalizers are somebody else's."""
NAMED: Final = 5
"""Kinds named in a condition's message; the rest are counted."""
REMAINING: Final = "NamespaceContentRemaining"
FINALIZERS: Final = "NamespaceFinalizersRemaining"


class NamespaceController(Controller):
    """Deletes what is in terminating namespaces."""

    name = "namespace"
    kind = "v1/Namespace"

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """A namespace wakes itself from when its deletion begins."""
        return () if event.new is None or "deletionTimestamp" not in event.new.meta.value else (event.key,)

    def reconcile(self, c: Client, key: Key) -> float | None:
        """Deletes what is left. Returns seconds until the next look, or None when there is nothing to wait for."""
        namespace = c.get(key)
        if namespace is None or "deletionTimestamp" not in namespace["metadata"]:
            return None
        left = sweep(c, c.list("v1/Pod", key.name, fresh=True))
        if not left:
            for kind in c.kinds().all():
                if kind.namespaced and kind.gk != ("", "Pod"):
                    left += sweep(c, c.list(f"{kind.api_version}/{kind.kind}", key.name, fresh=True))
        if left:
            _tell(c, namespace, left)
            return LOOK_AGAIN
        finalizers = [name for name in namespace["spec"].get("finalizers") or () if name != FINALIZER]
        if len(finalizers) != len(namespace["spec"].get("finalizers") or ()):
            c.update({**namespace, "spec": {**namespace["spec"], "finalizers": finalizers}}, "finalize")
        return None


def _tell(c: Client, namespace: Any, left: list[Any]) -> None:
    """Says in the status what is waited for."""
    counts: dict[str, int] = {}
    held: dict[str, int] = {}
    for obj in left:
        counts[obj["kind"]] = counts.get(obj["kind"], 0) + 1
        for name in obj["metadata"].get("finalizers") or ():
            held[name] = held.get(name, 0) + 1
    messages = {REMAINING: ("SomeResourcesRemain", _listed("Some resources are remaining: ", counts))}
    if held:
        text = _listed("Some content in the namespace has finalizers remaining: ", held)
        messages[FINALIZERS] = ("SomeFinalizersRemain", text)
    before = list((namespace.get("status") or EMPTY).get("conditions") or ())
    after = before
    for type_, (reason, message) in messages.items():
        current = find(after, type_)
        if current is None or current.get("message") != message:
            after = [*without(after, type_), condition(type_, "True", reason, message, c.timestamp())]
    if after != before:
        body = {"metadata": {"uid": namespace["metadata"]["uid"]}, "status": {"conditions": after}}
        c.patch(Key("", "Namespace", "", namespace["metadata"]["name"]), body, "status")


def _listed(head: str, counts: dict[str, int]) -> str:
    names = sorted(counts)
    parts = [f"{name} in {counts[name]} resource instances" for name in names[:NAMED]]
    if len(names) > NAMED:
        parts.append(f"and {len(names) - NAMED} more")
    return head + ", ".join(parts)
