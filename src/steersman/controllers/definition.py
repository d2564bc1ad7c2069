"""The controller of CustomResourceDefinitions: a definition that goes takes its objects with it, and its names free.

Deletion waits until no object of the kind is left; what holds one back is its own finalizers. Names that a definition
gives free are granted to others that asked for them: the server does that when such a definition is written, so it is
written. Source of the facts: apiextensions-apiserver 0.36, pkg/controller/finalizer and pkg/controller/status.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from steersman.api.client import Client
from steersman.api.controller import Controller, Find
from steersman.api.crd.crd import FINALIZER, with_condition
from steersman.api.crd.definition import condition_holds
from steersman.api.kinds import UnknownKind
from steersman.controllers.sweep import sweep
from steersman.kernel.effect import Event
from steersman.kernel.object import Key, Object
from steersman.kernel.value import EMPTY

KIND: Final = "apiextensions.k8s.io/v1/CustomResourceDefinition"
LOOK_AGAIN: Final = 1.0
"""Seconds between two looks at what is left: finalizers are somebody else's."""
IN_PROGRESS: Final = ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
COMPLETED: Final = ("False", "InstanceDeletionCompleted", "removed all instances")


class DefinitionController(Controller):
    """Empties and releases definitions that are being deleted, and hands on their names."""

    name = "customresourcedefinition"
    kind = KIND

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """A definition wakes itself when its end has begun, and when it gives a name free."""
        old, new = event.old, event.new
        if new is None or "deletionTimestamp" in new.meta.value:
            return (event.key,)
        return (event.key,) if old is not None and _names(old) != _names(new) else ()

    def reconcile(self, c: Client, key: Key) -> float | None:
        """Deletes what is left of a definition's objects, or re-examines the names of the others. Returns seconds
        until the next look, or None when there is nothing to wait for."""
        crd = c.get(key, fresh=True)
        if crd is not None and FINALIZER in (crd["metadata"].get("finalizers") or ()):
            return _finish(c, crd) if "deletionTimestamp" in crd["metadata"] else None
        group = key.name.partition(".")[2]
        for other in c.list(KIND, fresh=True):
            waits = not condition_holds(other.get("status"), "NamesAccepted")
            if waits and other["spec"]["group"] == group and other["metadata"]["name"] != key.name:
                c.patch(other, {})
        return None


def _names(obj: Object) -> Any:
    return (obj.status_value or EMPTY).get("acceptedNames")


def _finish(c: Client, crd: Any) -> float | None:
    """One look at a definition that is being deleted."""
    if not _holds(crd, IN_PROGRESS):
        crd = _tell(c, crd, IN_PROGRESS)
    spec = crd["spec"]
    storage = next(version["name"] for version in spec["versions"] if version["storage"])
    try:
        left = sweep(c, c.list(f"{spec['group']}/{storage}/{spec['names']['kind']}", fresh=True))
    except UnknownKind:  # its names were never accepted: it has no objects
        left = []
    if left:
        return LOOK_AGAIN
    finalizers = [name for name in crd["metadata"]["finalizers"] if name != FINALIZER]
    if finalizers:
        crd = _tell(c, crd, COMPLETED)
    c.patch(crd, {"metadata": {"finalizers": finalizers or None}}, rv=crd["metadata"]["resourceVersion"])
    return None


def _holds(crd: Any, wanted: tuple[str, str, str]) -> bool:
    conditions = (crd.get("status") or EMPTY).get("conditions") or ()
    return any(each["type"] == "Terminating" and each.get("reason") == wanted[1] for each in conditions)


def _tell(c: Client, crd: Any, found: tuple[str, str, str]) -> Any:
    """Sets the condition Terminating; the new version."""
    before = (crd.get("status") or EMPTY).get("conditions") or ()
    conditions = with_condition(before, "Terminating", found, c.timestamp())
    return c.patch_status(crd, {"conditions": conditions}, rv=crd["metadata"]["resourceVersion"])
