"""How messages show a value of an internal type of Kubernetes: every field by its Go name, what is not set as zero.

Most of those types have no JSON names. A layout maps Go field names, in the order of the struct, to zeros; None is a
nil pointer, list or map. Source of the facts: kubernetes `pkg/apis/*/types.go`, release 1.36.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

Layout = Mapping[str, Any]

DEPLOYMENT_STRATEGY: Final[Layout] = {"Type": "", "RollingUpdate": None}
STATEFUL_STRATEGY: Final[Layout] = {"Type": "", "RollingUpdate": None}
ROLLING_STATEFUL: Final[Layout] = {"Partition": None, "MaxUnavailable": None}
SERVICE_PORT: Final[Layout] = {
    "Name": "", "Protocol": "", "AppProtocol": None, "Port": 0, "TargetPort": 0, "NodePort": 0
}  # fmt: skip
SUCCESS_POLICY: Final[Layout] = {"Rules": None}
POD_CLAIM: Final[Layout] = {"Name": "", "ResourceClaimName": None, "ResourceClaimTemplateName": None}
SECCOMP: Final[Layout] = {"Type": "", "LocalhostProfile": None}
SECURITY_CONTEXT: Final[Layout] = dict.fromkeys(
    (
        *("Capabilities", "Privileged", "SELinuxOptions", "WindowsOptions", "RunAsUser", "RunAsGroup"),
        *("RunAsNonRoot", "ReadOnlyRootFilesystem", "AllowPrivilegeEscalation", "ProcMount", "SeccompProfile"),
        "AppArmorProfile",
    )
)
_INNER: Final[Mapping[str, Layout]] = {
    "Capabilities": {"Add": None, "Drop": None},
    "SELinuxOptions": {"User": "", "Role": "", "Type": "", "Level": ""},
    "WindowsOptions": dict.fromkeys(("GMSACredentialSpecName", "GMSACredentialSpec", "RunAsUserName", "HostProcess")),
    "SeccompProfile": SECCOMP,
    "AppArmorProfile": SECCOMP,
    "RollingUpdate": {"MaxUnavailable": 0, "MaxSurge": 0},
    "Rules": {"SucceededIndexes": None, "SucceededCount": None},
}
"""Layouts of what is inside, by field."""
_INITIALS: Final = re.compile(r"^(?:[A-Z]+(?=[A-Z][a-z])|[A-Z])")


def shown(value: Mapping[str, Any], layout: Layout) -> dict[str, Any]:
    """`value` as its internal type is written."""
    return {name: _inner(name, value.get(_json_name(name)), zero) for name, zero in layout.items()}


def sorted_map(value: Mapping[str, Any]) -> dict[str, Any] | None:
    """A map as Go writes it, in the order of its keys; an empty one is nil."""
    return dict(sorted(value.items())) or None


def selector(value: Mapping[str, Any]) -> dict[str, Any]:
    """A LabelSelector, in the order of its struct."""
    out: dict[str, Any] = {}
    if value.get("matchLabels"):
        out["matchLabels"] = sorted_map(value["matchLabels"])
    if value.get("matchExpressions"):
        out["matchExpressions"] = [ordered(one, "key", "operator", "values") for one in value["matchExpressions"]]
    return out


def ordered(value: Mapping[str, Any], *fields: str) -> dict[str, Any]:
    """A value of a type with JSON names, in the order of its struct."""
    return {field: value[field] for field in fields if field in value}


def _inner(name: str, item: Any, zero: Any) -> Any:
    if item is None:
        return zero
    layout = _INNER.get(name)
    if layout is None:
        return item
    if isinstance(item, list):
        return [shown(one, layout) for one in item]
    return shown(item, layout) if isinstance(item, Mapping) else item


def _json_name(name: str) -> str:
    return _INITIALS.sub(lambda found: found[0].lower(), name)
