"""Storage objects that are used outlive the request to delete them: claims of pods, bound volumes, classes in use.

They are born with a finalizer (admission, or here when they have none), and it goes when they are being deleted and
nobody uses them any more. Source of the facts: Kubernetes 1.36, pkg/controller/volume/pvcprotection, pvprotection and
vacprotection.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from steersman.api.client import Client, key_of
from steersman.api.controller import Controller, Find
from steersman.api.references import claims_of
from steersman.controllers.owned import is_terminating
from steersman.kernel.effect import Event
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
POD: Final = ("", "Pod")
CLAIM: Final = ("", "PersistentVolumeClaim")
VOLUME: Final = ("", "PersistentVolume")
CLASS: Final = ("storage.k8s.io", "VolumeAttributesClass")


class ClaimProtection(Controller):
    """Lets PersistentVolumeClaims go that no pod on a node uses."""

    name = "persistentvolumeclaim-protection-controller"
    kind = "v1/PersistentVolumeClaim"
    watches: ClassVar[Mapping[str, Any]] = {"v1/Pod": lambda pod: ()}
    finalizer = "kubernetes.io/pvc-protection"

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """A claim wakes itself where there is something to do, a pod that is gone its claims."""
        if event.key.gk != POD:
            return _wakes_itself(event, self.finalizer)
        if event.new is not None or event.old is None:
            return ()
        names = claims_of(event.old.value)
        return [Key(*CLAIM, event.key.namespace, name) for name in names]

    def reconcile(self, c: Client, key: Key) -> None:
        """Adds the finalizer, or takes it."""

        def is_used(claim: Json) -> bool:
            pods = c.list("v1/Pod", key.namespace, fresh=True)
            return any(pod["spec"].get("nodeName") and _uses(pod, claim) for pod in pods)

        _settle(c, key, self.finalizer, is_used)


class VolumeProtection(Controller):
    """Lets PersistentVolumes go that are not bound."""

    name = "persistentvolume-protection-controller"
    kind = "v1/PersistentVolume"
    finalizer = "kubernetes.io/pv-protection"

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """A volume wakes itself where there is something to do."""
        return _wakes_itself(event, self.finalizer)

    def reconcile(self, c: Client, key: Key) -> None:
        """Adds the finalizer, or takes it."""
        _settle(c, key, self.finalizer, lambda volume: (volume.get("status") or EMPTY).get("phase") == "Bound")


class AttributesProtection(Controller):
    """Lets VolumeAttributesClasses go that no claim and no volume names."""

    name = "volumeattributesclass-protection-controller"
    kind = "storage.k8s.io/v1/VolumeAttributesClass"
    watches: ClassVar[Mapping[str, Any]] = {
        "v1/PersistentVolumeClaim": lambda claim: (),
        "v1/PersistentVolume": lambda volume: (),
    }
    finalizer = "kubernetes.io/vac-protection"

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """A class wakes itself where there is something to do, a claim or volume the class it no longer names."""
        if event.key.gk == CLASS:
            return _wakes_itself(event, self.finalizer)
        before = _classes(None if event.old is None else event.old.value)
        after = _classes(None if event.new is None else event.new.value)
        return [Key(*CLASS, "", name) for name in before if name not in after]

    def reconcile(self, c: Client, key: Key) -> None:
        """Adds the finalizer, or takes it."""

        def is_used(_class: Json) -> bool:
            kinds = ("v1/PersistentVolumeClaim", "v1/PersistentVolume")
            return any(key.name in _classes(obj) for kind in kinds for obj in c.list(kind, fresh=True))

        _settle(c, key, self.finalizer, is_used)


def _classes(obj: Json | None) -> tuple[str, ...]:
    """The classes a claim or volume names: the wanted one, and the one it has."""
    if obj is None:
        return ()
    spec, status = obj.get("spec") or EMPTY, obj.get("status") or EMPTY
    names = (spec.get("volumeAttributesClassName"), status.get("currentVolumeAttributesClassName"))
    return tuple([name for name in names if name])


def _wakes_itself(event: Event, finalizer: str) -> Iterable[Key]:
    if event.new is None:
        return ()
    meta = event.new.meta.value
    return (event.key,) if ("deletionTimestamp" in meta) == (finalizer in (meta.get("finalizers") or ())) else ()


def _uses(pod: Json, claim: Json) -> bool:
    if claim["metadata"]["name"] not in claims_of(pod):
        return False
    named = any(
        (volume.get("persistentVolumeClaim") or EMPTY).get("claimName") == claim["metadata"]["name"]
        for volume in pod["spec"]["volumes"]
    )
    owners = claim["metadata"].get("ownerReferences") or ()  # an ephemeral volume's claim is the pod's own
    return named or any(owner["uid"] == pod["metadata"]["uid"] for owner in owners)


def _settle(c: Client, key: Key, finalizer: str, is_used: Any) -> None:
    obj = c.get(key)
    if obj is None:
        return
    meta = obj["metadata"]
    finalizers = list(meta.get("finalizers") or ())
    if is_terminating(obj):
        if finalizer not in finalizers or is_used(obj):
            return
        finalizers.remove(finalizer)
    elif finalizer not in finalizers:
        finalizers.append(finalizer)
    else:
        return
    patch = {"metadata": {"uid": meta["uid"], "finalizers": finalizers or None}}
    c.patch(key_of(obj), patch, rv=meta["resourceVersion"])
