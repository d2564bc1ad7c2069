"""Who deletes what is behind a volume of reclaim policy Delete. Pure.

Source of the facts: Kubernetes 1.36, pkg/controller/volume/persistentvolume (findDeletablePlugin), pkg/volume/hostpath,
and the plug-ins that cmd/kube-controller-manager/app/plugins.go loads. What differs: nothing on a disk is removed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from steersman.kernel.value import EMPTY

VIRTUAL: Final = "steersman.dev/virtual"
"""The provisioner that is built in."""
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
IN_TREE: Final = "kubernetes.io/"
KNOWN: Final = ("hostPath", "nfs")
"""Volumes that a plug-in is there for: it deletes directories below /tmp, and no NFS shares."""


def deletes_at_once(volume: Mapping[str, Any]) -> bool:
    """Whether the volume just goes."""
    path = (volume["spec"].get("hostPath") or EMPTY).get("path")
    provisioner = _provisioner(volume)
    return provisioner == VIRTUAL or (not provisioner and path is not None and re.search("/tmp/.+", path) is not None)


def problem(volume: Mapping[str, Any]) -> str:
    """Why nobody deletes it; "" where somebody else does."""
    name, provisioner = volume["metadata"]["name"], _provisioner(volume)
    if provisioner:
        return f"no volume plugin matched name: {provisioner}" if provisioner.startswith(IN_TREE) else ""
    path = (volume["spec"].get("hostPath") or EMPTY).get("path")
    if path is not None:
        return f"host_path deleter only supports /tmp/.+ but received provided {path}"
    matched = any(field in volume["spec"] for field in KNOWN)
    why = "no deletable volume plugin matched" if matched else "no volume plugin matched"
    return f'error getting deleter volume plugin for volume "{name}": {why}'


def _provisioner(volume: Mapping[str, Any]) -> str:
    return str((volume["metadata"].get("annotations") or EMPTY).get(PROVISIONED_BY) or "")
