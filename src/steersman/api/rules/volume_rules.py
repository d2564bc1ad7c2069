"""What volumes and claims must look like.

Sources of volumes that need a certain cloud are checked for being the only one, and no further.
Source of the facts: kubernetes `pkg/apis/core/validation/validation.go`, release 1.36.
"""

from __future__ import annotations

from typing import Any, Final

from steersman.api import quantity
from steersman.api.errors import Cause
from steersman.api.rules import rules
from steersman.api.rules.rules import Causes, Object, chosen, no_backsteps
from steersman.kernel.value import EMPTY

ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES: Final = ("Block", "Filesystem")
RECLAIM_POLICIES: Final = ("Delete", "Recycle", "Retain")
MAX_MODE: Final = 0o777
_HOST_PATHS: Final = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_MODE: Final = "must be a number between 0 and 0777 (octal), both inclusive"

# In the order in which Kubernetes looks: the first one counts, the others are too many.
SOURCES: Final = (
    *(
        "emptyDir",
        "hostPath",
        "gitRepo",
        "gcePersistentDisk",
        "awsElasticBlockStore",
        "secret",
        "nfs",
        "iscsi",
    ),
    *("glusterfs", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "flocker", "downwardAPI", "fc"),
    *(
        "flexVolume",
        "configMap",
        "azureFile",
        "vsphereVolume",
        "quobyte",
        "photonPersistentDisk",
        "projected",
    ),
    *("portworxVolume", "azureDisk", "storageos", "scaleIO", "csi", "ephemeral", "image"),
)
# What a source cannot do without: (field, whether it is a path of files).
_NEEDED: Final[dict[str, tuple[tuple[str, bool], ...]]] = {
    "configMap": (("name", False),),
    "csi": (("driver", False),),
    "hostPath": (("path", True),),
    "nfs": (("server", False), ("path", False)),
    "persistentVolumeClaim": (("claimName", False),),
    "secret": (("secretName", False),),
}
_PV_ONLY: Final = ("local",)


def volumes(out: Causes, path: str, found: Any) -> frozenset[str]:
    """A pod's volumes. Gives the names of the sound ones, which may be mounted."""
    names: set[str] = set()
    for index, volume in enumerate(found or ()):
        at, before = f"{path}[{index}]", len(out)
        name = volume.get("name") or ""
        _source(out, at, volume)
        if name:
            rules.named(out, f"{at}.name", name, rules.dns_label)
        else:
            out.append(Cause.required(f"{at}.name"))
        if name in names:
            out.append(Cause.duplicate(f"{at}.name", name))
        if len(out) == before:
            names.add(name)
    return frozenset(names)


def _source(out: Causes, path: str, volume: Object) -> None:
    given = [name for name in SOURCES if name in volume]
    if not given:
        out.append(Cause.required(path, "must specify a volume type"))
        return
    detail = "may not specify more than 1 volume type"
    out.extend(Cause.forbidden(f"{path}.{name}", detail) for name in given[1:])
    kind = given[0]
    at, source = f"{path}.{kind}", volume[kind]
    for field, is_path in _NEEDED.get(kind, ()):
        text = source.get(field)
        if not text:
            out.append(Cause.required(f"{at}.{field}"))
        elif is_path:
            no_backsteps(out, f"{at}.{field}", text)
    if kind == "nfs" and not source.get("path", "").startswith("/"):
        out.append(Cause.invalid(f"{at}.path", source.get("path", ""), "must be an absolute path"))
    mode = source.get("defaultMode")
    if mode is not None and not 0 <= mode <= MAX_MODE:
        out.append(Cause.invalid(f"{at}.defaultMode", mode, _MODE))
    if kind == "hostPath" and source.get("type"):
        chosen(out, f"{at}.type", source["type"], _HOST_PATHS)
    if kind == "emptyDir" and "sizeLimit" in source and quantity.milli(source["sizeLimit"]) < 0:
        detail = "SizeLimit field must be a valid resource quantity"
        out.append(Cause.forbidden(f"{at}.sizeLimit", detail))
    for index, item in enumerate(source.get("items") or ()):
        _item(out, f"{at}.items[{index}]", item, keyed=kind in ("configMap", "secret"))
    if kind == "projected":
        _projected(out, at, source)
    if kind == "ephemeral":
        template = source.get("volumeClaimTemplate")
        if template is None:
            out.append(Cause.required(f"{at}.volumeClaimTemplate"))
        else:
            claim_spec(out, f"{at}.volumeClaimTemplate.spec", template.get("spec") or EMPTY)


def _item(out: Causes, path: str, item: Object, *, keyed: bool) -> None:
    if keyed and not item.get("key"):
        out.append(Cause.required(f"{path}.key"))
    text = item.get("path")
    if not text:
        out.append(Cause.required(f"{path}.path"))
    else:
        rules.descending_path(out, f"{path}.path", text)
    mode = item.get("mode")
    if mode is not None and not 0 <= mode <= MAX_MODE:
        out.append(Cause.invalid(f"{path}.mode", mode, _MODE))


def _projected(out: Causes, path: str, projected: Object) -> None:
    for index, source in enumerate(projected.get("sources") or ()):
        at = f"{path}.sources[{index}]"
        if len(source) > 1:
            detail = "may not specify more than 1 volume type"
            out.extend(Cause.forbidden(f"{at}.{name}", detail) for name in sorted(source)[1:])
        for kind in ("configMap", "secret"):
            if kind in source and not source[kind].get("name"):
                out.append(Cause.required(f"{at}.{kind}.name"))
        token = source.get("serviceAccountToken")
        if token is not None:
            if token.get("expirationSeconds", 3600) < 600:
                detail = "may not specify a duration less than 10 minutes"
                out.append(
                    Cause.invalid(f"{at}.serviceAccountToken.expirationSeconds", token["expirationSeconds"], detail)
                )
            if not token.get("path"):
                out.append(Cause.required(f"{at}.serviceAccountToken.path"))


def claim_spec(out: Causes, path: str, spec: Object) -> None:
    """The spec of a PersistentVolumeClaim."""
    modes = spec.get("accessModes") or ()
    if not modes:
        out.append(Cause.required(f"{path}.accessModes", "at least 1 access mode is required"))
    _access_modes(out, f"{path}.accessModes", modes)
    if spec.get("selector") is not None:
        rules.selector(out, f"{path}.selector", spec["selector"])
    requests = (spec.get("resources") or EMPTY).get("requests") or EMPTY
    at = f"{path}.resources[storage]"
    if "storage" not in requests:
        out.append(Cause.required(at))
    else:
        size = quantity.parse(requests["storage"])
        if size.nano <= 0:
            out.append(Cause.invalid(at, str(size), rules.NOT_POSITIVE))
    for field in ("storageClassName", "volumeAttributesClassName"):
        if spec.get(field):
            rules.named(out, f"{path}.{field}", spec[field], rules.dns_subdomain)
    chosen(out, f"{path}.volumeMode", spec.get("volumeMode"), VOLUME_MODES)
    for field in ("dataSource", "dataSourceRef"):
        if field in spec:
            _data_source(out, f"{path}.{field}", spec[field])


def _access_modes(out: Causes, path: str, modes: Any) -> None:
    for mode in modes:
        if mode not in ACCESS_MODES:
            out.append(Cause.unsupported(path, mode, ACCESS_MODES))
    if "ReadWriteOncePod" in modes and len({mode for mode in modes if mode in ACCESS_MODES}) > 1:
        out.append(Cause.forbidden(path, "may not use ReadWriteOncePod with other access modes"))


def _data_source(out: Causes, path: str, source: Object) -> None:
    for field in ("name", "kind"):
        if not source.get(field):
            out.append(Cause.required(f"{path}.{field}"))
    if not source.get("apiGroup") and source.get("kind") != "PersistentVolumeClaim":
        detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        out.append(Cause.invalid(path, source.get("kind") or "", detail))


def volume_spec(out: Causes, path: str, spec: Object) -> None:
    """The spec of a PersistentVolume."""
    if not spec.get("accessModes"):
        out.append(Cause.required(f"{path}.accessModes"))
    _access_modes(out, f"{path}.accessModes", spec.get("accessModes") or ())
    capacity = spec.get("capacity") or EMPTY
    if not capacity:
        out.append(Cause.required(f"{path}.capacity"))
    if "storage" not in capacity or len(capacity) > 1:
        out.append(Cause.unsupported(f"{path}.capacity", capacity or None, ("storage",)))
    for name, text in capacity.items():
        size = quantity.parse(text)
        if size.nano <= 0:
            out.append(Cause.invalid(f"{path}.capacity[{name}]", str(size), rules.NOT_POSITIVE))
    policy = spec.get("persistentVolumeReclaimPolicy")
    chosen(out, f"{path}.persistentVolumeReclaimPolicy", policy, RECLAIM_POLICIES)
    chosen(out, f"{path}.volumeMode", spec.get("volumeMode"), VOLUME_MODES)
    given = [name for name in (*SOURCES, *_PV_ONLY) if name in spec]
    if not given:
        out.append(Cause.required(path, "must specify a volume type"))
    detail = "may not specify more than 1 volume type"
    out.extend(Cause.forbidden(f"{path}.{name}", detail) for name in given[1:])
    if "local" in spec and not (spec.get("nodeAffinity") or EMPTY).get("required"):
        out.append(Cause.required(f"{path}.nodeAffinity", "Local volume requires node affinity"))
    if spec.get("storageClassName"):
        rules.named(out, f"{path}.storageClassName", spec["storageClassName"], rules.dns_subdomain)
