"""Storage: the default class of claims, finalizers that keep volumes in use, and which claims may grow.

DefaultStorageClass, StorageObjectInUseProtection and PersistentVolumeClaimResize. Source of the facts: kubernetes
`plugin/pkg/admission/storage` and `pkg/volume/util/storageclass.go`, release 1.36.
"""

from __future__ import annotations

from typing import Any, Final

from steersman.api import quantity
from steersman.api.admission.edit import joined, newest, notes_of, spec_of, with_part
from steersman.api.admission.plugin import UPDATE, Answer, Attempt, Plugin
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY, Frozen

CLAIM: Final = ("", "PersistentVolumeClaim")
CLASS: Final = ("storage.k8s.io", "StorageClass")
CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
DEFAULT_MARKS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
FINALIZERS: Final = {
    ("", "PersistentVolume"): "kubernetes.io/pv-protection",
    CLAIM: "kubernetes.io/pvc-protection",
    ("storage.k8s.io", "VolumeAttributesClass"): "kubernetes.io/vac-protection",
}


class DefaultStorageClass(Plugin):
    """A claim that asks for no class gets the default one, if there is one."""

    name = "DefaultStorageClass"
    kinds = (CLAIM,)
    needs = (CLASS,)

    def mutate(self, attempt: Attempt) -> Answer:
        """See the class."""
        spec = spec_of(attempt)
        if CLASS_ANNOTATION in notes_of(attempt) or spec.get("storageClassName") is not None:
            return None
        marked = []
        for found in attempt.store.list(CLASS):
            notes = found.meta.value.get("annotations") or EMPTY
            if any(notes.get(mark) == "true" for mark in DEFAULT_MARKS):
                marked.append(found)
        chosen = newest(marked)
        if chosen is None:
            return None
        return with_part(attempt, "spec", Frozen({**spec, "storageClassName": chosen.key.name}))


class StorageObjectInUseProtection(Plugin):
    """Volumes, claims and attribute classes are born with the finalizer that keeps them while they are used."""

    name = "StorageObjectInUseProtection"
    kinds = tuple(FINALIZERS)

    def mutate(self, attempt: Attempt) -> Answer:
        """See the class."""
        assert attempt.body is not None
        meta, wanted = attempt.body["metadata"], FINALIZERS[attempt.kind.gk]
        known = meta.get("finalizers") or ()
        if wanted in known:
            return None
        return with_part(attempt, "metadata", Frozen({**meta, "finalizers": joined(known, wanted)}))


class PersistentVolumeClaimResize(Plugin):
    """Only bound claims of a class that allows it may grow."""

    name = "PersistentVolumeClaimResize"
    kinds = (CLAIM,)
    operations = (UPDATE,)

    def validate(self, attempt: Attempt) -> Answer:
        """See the class."""
        assert attempt.old is not None and attempt.body is not None
        old, new = attempt.old.value, attempt.body
        if _size(new) <= _size(old):
            return None
        if (attempt.old.status_value or EMPTY).get("phase") != "Bound":
            raise attempt.forbidden("Only bound persistent volume claims can be expanded")
        before, after = _class_of(old), _class_of(new)
        found = attempt.store.get(Key(*CLASS, "", after)) if after and before == after else None
        if found is None or not found.value.get("allowVolumeExpansion"):
            raise attempt.forbidden(
                "only dynamically provisioned pvc can be resized and "
                "the storageclass that provisions the pvc must support resize"
            )
        return None


def _size(claim: Any) -> quantity.Quantity:
    requests = ((claim.get("spec") or EMPTY).get("resources") or EMPTY).get("requests") or EMPTY
    return quantity.parse(requests.get("storage", 0))


def _class_of(claim: Any) -> str:
    notes = claim["metadata"].get("annotations") or EMPTY
    return str(notes.get(CLASS_ANNOTATION, (claim.get("spec") or EMPTY).get("storageClassName") or ""))
