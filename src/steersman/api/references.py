"""What a pod or a volume refers to by name: Secrets, ConfigMaps, claims, devices.

Source of the facts: Kubernetes 1.36, pkg/api/v1/pod/util.go, pkg/api/pod/util.go, pkg/api/v1/persistentvolume/util.go
and dynamic-resource-allocation/resourceclaim.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
MIRROR: Final = "kubernetes.io/config.mirror"
"""The annotation of a pod that shows what a node runs by itself."""
CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")
"""Fields of a pod's spec with containers, in Kubernetes' order."""
CSI_SECRETS: Final = ("nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef")
"""Secrets of a CSI volume that the node needs; others are for the driver's controller."""
REMOTE: Final = {
    "configMap": "configmaps (via configmap volumes)",
    "secret": "secrets (via secret volumes)",
    "csi": "csidrivers (via CSI volumes)",
    "glusterfs": "endpoints (via glusterFS volumes)",
    "persistentVolumeClaim": "persistentvolumeclaims",
    "ephemeral": "persistentvolumeclaims (via ephemeral volumes)",
    "azureFile": "secrets (via azureFile volumes)",
}
PROJECTED: Final = {
    "configMap": "configmaps (via projected volumes)",
    "secret": "secrets (via projected volumes)",
    "serviceAccountToken": "serviceaccounts (via projected volumes)",
    "clusterTrustBundle": "clustertrustbundles",
    "podCertificate": "podcertificates",
}


def secret_names(spec: Json) -> Iterator[str]:
    """Every Secret that a pod's spec names: pull secrets, environments, volumes of any kind."""
    for item in spec.get("imagePullSecrets") or ():
        yield str(item.get("name"))
    for group in CONTAINERS:
        for container in spec.get(group) or ():
            yield from (name for name, _ in in_environment(container, "secret"))
    for volume in spec.get("volumes") or ():
        yield from _secrets_in(volume)


def config_map_names(spec: Json) -> Iterator[str]:
    """Every ConfigMap that a pod's spec names."""
    for group in CONTAINERS:
        for container in spec.get(group) or ():
            yield from (name for name, _ in in_environment(container, "configMap"))
    for volume in spec.get("volumes") or ():
        source = volume.get("configMap")
        if source:
            yield str(source.get("name"))
        for part in (volume.get("projected") or EMPTY).get("sources") or ():
            if part.get("configMap"):
                yield str(part["configMap"].get("name"))


def in_environment(container: Json, kind: str) -> Iterator[tuple[str, str]]:
    """(name, how it is referred to) of what a container's environment takes from objects of a kind: secret |
    configMap."""
    for variable in container.get("env") or ():
        ref = (variable.get("valueFrom") or EMPTY).get(f"{kind}KeyRef")
        if ref:
            yield str(ref.get("name")), f"envVar {variable.get('name')}"
    for source in container.get("envFrom") or ():
        if source.get(f"{kind}Ref"):
            yield str(source[f"{kind}Ref"].get("name")), "envFrom"


def claims_of(pod: Json) -> tuple[str, ...]:
    """The claims a pod mounts, by name, those of its ephemeral volumes included."""
    name = pod["metadata"]["name"]
    found = [claim_of_volume(name, volume) for volume in (pod.get("spec") or EMPTY).get("volumes") or ()]
    return tuple([claim for claim in found if claim is not None])


def claim_of_volume(pod: str, volume: Json) -> str | None:
    """The claim behind one volume of the pod of that name; None when it has none."""
    claim = volume.get("persistentVolumeClaim")
    if claim is not None:
        return str(claim["claimName"])
    return f"{pod}-{volume['name']}" if volume.get("ephemeral") is not None else None


def device_claims_of(pod: Json) -> Iterator[str]:
    """The ResourceClaims of a pod that are there already, by name."""
    status = pod.get("status") or EMPTY
    made = {each.get("name"): each.get("resourceClaimName") for each in status.get("resourceClaimStatuses") or ()}
    for claim in (pod.get("spec") or EMPTY).get("resourceClaims") or ():
        name = claim.get("resourceClaimName") or made.get(claim.get("name"))
        if name:
            yield str(name)
    extended = (status.get("extendedResourceClaimStatus") or EMPTY).get("resourceClaimName")
    if extended:
        yield str(extended)


def object_reference(spec: Json) -> str:
    """The first kind of object that a pod's spec refers to, in kube-apiserver's words; "" when it needs none."""
    if spec.get("serviceAccountName"):
        return "serviceaccounts"
    if next(secret_names(spec), None) is not None:
        return "secrets"
    if next(config_map_names(spec), None) is not None:
        return "configmaps"
    if spec.get("resourceClaims"):
        return "resourceclaims"
    for volume in spec.get("volumes") or ():
        for kind, source in volume.items():
            if kind in REMOTE and source is not None:
                return REMOTE[kind]
            for part in (source.get("sources") or ()) if kind == "projected" and source else ():
                for named in part:
                    if named in PROJECTED:
                        return PROJECTED[named]
    return ""


def volume_secrets(spec: Json) -> Iterator[tuple[str, str]]:
    """(namespace, name) of the Secrets that a node needs to mount a PersistentVolume, given as its spec."""
    claim = str((spec.get("claimRef") or EMPTY).get("namespace") or "")
    azure = spec.get("azureFile")
    if azure and azure.get("secretName"):
        yield str(azure.get("secretNamespace") or claim), str(azure["secretName"])
    for kind in ("cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos"):
        ref = (spec.get(kind) or EMPTY).get("secretRef")
        if ref and ref.get("name"):
            home = ref.get("namespace") or ("" if kind in ("cinder", "storageos") else claim)
            yield str(home), str(ref["name"])
    for field in CSI_SECRETS:
        ref = (spec.get("csi") or EMPTY).get(field)
        if ref and ref.get("name"):
            yield str(ref.get("namespace") or ""), str(ref["name"])


def _secrets_in(volume: Json) -> Iterator[str]:
    for kind, source in volume.items():
        if not isinstance(source, Mapping):
            continue
        if kind in ("secret", "azureFile") and source.get("secretName"):
            yield str(source["secretName"])
        for field in ("secretRef", "nodePublishSecretRef"):
            if (source.get(field) or EMPTY).get("name"):
                yield str(source[field]["name"])
        for part in source.get("sources") or () if kind == "projected" else ():
            if part.get("secret"):
                yield str(part["secret"].get("name"))
