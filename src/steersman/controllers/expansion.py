"""Claims that ask for more than they have: told that somebody else will make their volumes larger.

No volume is grown here, as kube-controller-manager 1.36 has no plugin left that could: a volume of an old kind is
handed to the driver that answers for it, any other to whoever resizes it. Source of the facts: Kubernetes 1.36,
pkg/controller/volume/expand and csi-translation-lib.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from steersman.api.admission.node_restriction import MIGRATED
from steersman.api.client import Client
from steersman.api.controller import Controller, Find
from steersman.api.errors import Conflict
from steersman.api.quantity import milli
from steersman.kernel.effect import Event
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
REASON: Final = "ExternalExpanding"
SOURCE: Final = "volume_expand"
RESIZER: Final = "volume.kubernetes.io/storage-resizer"
"""Annotation of a claim: the driver that makes its volume larger."""
GROWING: Final = "volume.alpha.kubernetes.io/pre-resize-capacity"
"""Annotation of a volume that is being made larger."""
PLUGINS: Final = {
    "awsElasticBlockStore": "kubernetes.io/aws-ebs",
    "azureDisk": "kubernetes.io/azure-disk",
    "azureFile": "kubernetes.io/azure-file",
    "cinder": "kubernetes.io/cinder",
    "gcePersistentDisk": "kubernetes.io/gce-pd",
    "portworxVolume": "kubernetes.io/portworx-volume",
    "vsphereVolume": "kubernetes.io/vsphere-volume",
}
"""Old kinds of volume, by the names that people are told."""


class VolumeExpansion(Controller):
    """Hands claims that grow to those who can make volumes larger."""

    name = "persistentvolume-expander"
    kind = "v1/PersistentVolumeClaim"

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """A bound claim wakes itself when it is first seen, asks for more, or got more."""
        old, new = event.old, event.new
        if new is None or _phase(new.value) != "Bound":
            return ()
        if old is None:
            return (event.key,)
        return (event.key,) if any(_grew(old.value, new.value, field) for field in ("asked", "given")) else ()

    def reconcile(self, c: Client, key: Key) -> None:
        """Tells the claim, and notes who is asked, if it asks for more than it has."""
        claim = c.get(key)
        name = claim["spec"].get("volumeName") if claim is not None else ""
        volume = c.get(Key("", "PersistentVolume", "", name), fresh=True) if name else None
        if claim is None or volume is None or not _is_bound_to(volume, claim):
            return
        notes = volume["metadata"].get("annotations") or EMPTY
        if _size(claim, "asked") <= _size(claim, "given") and GROWING not in notes:
            return
        kind = next((each for each in PLUGINS if volume["spec"].get(each) is not None), "")
        if not kind:
            c.event(claim, "Normal", REASON, "waiting for an external controller to expand this PVC", SOURCE)
            return
        said = f"CSI migration enabled for {PLUGINS[kind]}; waiting for external resizer to expand the pvc"
        c.event(claim, "Normal", REASON, said, SOURCE)
        if (claim["metadata"].get("annotations") or EMPTY).get(RESIZER) == MIGRATED[kind]:
            return
        body = {"metadata": {"annotations": {RESIZER: MIGRATED[kind]}}}
        try:
            c.patch(key, body, "status", rv=claim["metadata"]["resourceVersion"])
        except Conflict as error:
            told = f"error setting resizer annotation to pvc {key.namespace}/{key.name}, with error {error}"
            c.event(claim, "Warning", REASON, told, SOURCE)
            raise


def _phase(claim: Json) -> Any:
    return (claim.get("status") or EMPTY).get("phase")


def _is_bound_to(volume: Json, claim: Json) -> bool:
    ref, meta = volume["spec"].get("claimRef") or EMPTY, claim["metadata"]
    return (ref.get("namespace"), ref.get("uid")) == (meta["namespace"], meta["uid"])


def _size(claim: Json, which: str) -> Any:
    """The storage that a claim asks for, or was given."""
    if which == "asked":
        return milli(((claim["spec"].get("resources") or EMPTY).get("requests") or EMPTY).get("storage", 0))
    return milli(((claim.get("status") or EMPTY).get("capacity") or EMPTY).get("storage", 0))


def _grew(old: Json, new: Json, which: str) -> bool:
    return bool(_size(new, which) > _size(old, which))
