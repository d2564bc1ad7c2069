"""Volumes and claims: bound, awaited, released, protected; and what quotas count."""

from __future__ import annotations

from typing import Any, Final

from tests.run.scenarios.making import CLAIM, NAMESPACE, Step, create, delete, made, patch, together

CLAIMS, VOLUMES, QUOTA = "v1/PersistentVolumeClaim", "v1/PersistentVolume", "v1/ResourceQuota"


def volume(name: str = "disk", **spec: Any) -> dict[str, Any]:
    size = {"capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "none"}
    spec = {**size, "nfs": {"server": "s", "path": "/p"}, **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def claim(name: str = "web", **spec: Any) -> dict[str, Any]:
    return made(CLAIMS, name, **{**CLAIM, **spec})


def storage_class(name: str, **fields: Any) -> dict[str, Any]:
    meta = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}}
    return {**meta, "provisioner": "example.com/disk", **fields}


def user(name: str = "user", claim: str = "web", **spec: Any) -> dict[str, Any]:
    volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": claim}}]
    return made("v1/Pod", name, containers=[{"name": "c", "image": "i"}], volumes=volumes, **spec)


LARGER: Final = {"spec": {"resources": {"requests": {"storage": "3Gi"}}}}


SCENARIOS: Final[dict[str, tuple[Step, ...]]] = {
    "volumes": (
        create(claim()),
        create(volume("small", capacity={"storage": "1Mi"}), volume()),
        create(user()),
        delete(CLAIMS, "Background"),
        delete("v1/Pod", "Background", "user"),
        patch(VOLUMES, {"spec": {"claimRef": None}}, "disk"),
    ),
    "volumes-classes": (
        create(
            storage_class("later", volumeBindingMode="WaitForFirstConsumer"), storage_class("now"),
            claim("waits", storageClassName="later"), claim("made", storageClassName="now"),
            claim("odd", storageClassName="missing"), claim("bare", storageClassName=""),
        ),
        create(
            volume("pre", claimRef={"name": "later", "namespace": NAMESPACE}),
            volume("gone", persistentVolumeReclaimPolicy="Delete", claimRef={"name": "gone", "namespace": NAMESPACE}),
        ),
        create(claim("later", volumeName="pre"), claim("gone")),
        together(delete(CLAIMS, "Background", "gone"), delete(CLAIMS, "Background", "made")),
    ),
    "volume-expansion": (
        create(
            storage_class("none", allowVolumeExpansion=True), storage_class("csi", allowVolumeExpansion=True), claim(),
            claim("driven", storageClassName="csi"), claim("old", storageClassName="csi", volumeName="old"),
        ),
        create(
            volume(), volume("csi", storageClassName="csi", nfs=None, csi={
                "driver": "example.com", "volumeHandle": "h"
            }, claimRef={"name": "driven", "namespace": NAMESPACE}),
            volume("old", storageClassName="csi", nfs=None, gcePersistentDisk={"pdName": "d"}),
        ),
        together(*[patch(CLAIMS, LARGER, name) for name in ("web", "driven", "old")]),
    ),
    "quota": (
        create(made(QUOTA, hard={
            "pods": "2", "requests.cpu": "1", "count/configmaps": "5", "requests.storage": "5Gi",
            "persistentvolumeclaims": "2",
        }), made(QUOTA, "effort", hard={"pods": "5"}, scopes=["BestEffort"])),
        create(claim(), made("v1/Pod", containers=[
            {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "200m"}}}
        ])),
        patch(QUOTA, {"spec": {"hard": {"pods": "7", "requests.cpu": None}}}),
        together(delete("v1/Pod", "Background"), delete(CLAIMS, "Background")),
    ),
}  # fmt: skip
