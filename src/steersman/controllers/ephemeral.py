"""Ephemeral volumes: the claim that a pod's volume describes, made for the pod and gone with it.

Source of the facts: Kubernetes 1.36, pkg/controller/volume/ephemeral and component-helpers storage/ephemeral.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from steersman.api.client import Client
from steersman.api.controller import Controller, Find
from steersman.api.errors import AlreadyExists, ApiError
from steersman.controllers import owned
from steersman.controllers.expectations import LOOK_AGAIN
from steersman.controllers.protection import CLAIM, POD
from steersman.kernel.effect import Event
from steersman.kernel.object import Key, Object
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
SOURCE: Final = "ephemeral_volume"


class ForeignClaim(ApiError):
    """A claim of the name that a pod's volume needs is there, and is not the pod's: a refusal, as a name that is taken
    is one, and no fault of the controller."""


class EphemeralVolumes(Controller):
    """Creates the claims of pods' ephemeral volumes."""

    name = "ephemeral-volume-controller"
    kind = "v1/Pod"
    watches: ClassVar[Mapping[str, Any]] = {"v1/PersistentVolumeClaim": lambda claim: ()}

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """A new pod with such a volume wakes itself; a claim that is gone the pod it was made for."""
        if event.key.gk == POD:
            born = event.new is not None and event.old is None
            return (event.key,) if born and _needs(event.new) else ()
        if event.new is not None or event.old is None:
            return ()
        owner = owned.controller_of({"metadata": event.old.meta.value})
        return () if owner is None or owner["kind"] != "Pod" else (Key(*POD, event.key.namespace, owner["name"]),)

    def reconcile(self, c: Client, key: Key) -> float | None:
        """Makes what is missing, and looks at it again: no news may come of what is gone before it was seen. Raises
        `ForeignClaim`, and what the API refused."""
        pod = c.get(key)
        if pod is None or owned.is_terminating(pod):
            return None
        again = None
        for volume in pod["spec"].get("volumes") or ():
            if volume.get("ephemeral") is None:
                continue
            try:
                again = LOOK_AGAIN if _provide(c, pod, volume) else again
            except ApiError as error:
                c.event(pod, "Warning", "FailedBinding", f"ephemeral volume {volume['name']}: {error}", SOURCE)
                raise
        return again


def _needs(pod: Object | None) -> bool:
    spec = EMPTY if pod is None else pod.spec_value or EMPTY
    return any(volume.get("ephemeral") is not None for volume in spec.get("volumes") or ())


def _provide(c: Client, pod: Json, volume: Json) -> bool:
    """Makes the claim of a volume where none is seen. Whether none was."""
    meta = pod["metadata"]
    name = f"{meta['name']}-{volume['name']}"
    key = Key(*CLAIM, meta["namespace"], name)
    claim = c.get(key)
    unseen = claim is None
    if claim is None:
        template = volume["ephemeral"]["volumeClaimTemplate"]
        given = template.get("metadata") or EMPTY
        made = {part: given[part] for part in ("labels", "annotations") if given.get(part)}
        made |= {"name": name, "namespace": meta["namespace"], "ownerReferences": [owned.controller_ref(pod)]}
        body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": made, "spec": template["spec"]}
        try:
            c.create(body)
            return True
        except AlreadyExists:
            claim = c.get(key, fresh=True)
    if claim is not None and not owned.controlled_by(claim, meta["uid"]):
        place = f"{meta['namespace']}/{name}"
        text = f"PVC {place} was not created for pod {meta['namespace']}/{meta['name']} (pod is not owner)"
        raise ForeignClaim(409, "Conflict", text)
    return unseen
