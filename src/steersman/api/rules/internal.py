"""How messages show a value of an internal type of Kubernetes: every field by its Go name, what is not set as zero.

Most of those types have no JSON names. A layout maps Go field names, in the order of the struct, to zeros; None is a
nil pointer, list or map. Source of the facts: kubernetes `pkg/apis/*/types.go`, release 1.36.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

Layout = Mapping[str, Any]


class Inside(NamedTuple):
    """The layout of a struct, or of the items of a list, by its place: a pointer or list is nil when it is not set."""

    layout: Layout
    pointer: bool = True


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
ROLE_REF: Final[Layout] = {"APIGroup": "", "Kind": "", "Name": ""}
PATH_ATTRIBUTES: Final[Layout] = {"Path": "", "Verb": ""}
CRD_VERSION: Final[Layout] = {
    "Name": "", "Served": False, "Storage": False, "Deprecated": False, "DeprecationWarning": None,
    **dict.fromkeys(("Schema", "Subresources", "AdditionalPrinterColumns", "SelectableFields")),
}  # fmt: skip
_DEVICES: Final[Layout] = {"Requests": None, "Constraints": None, "Config": None}
RESOURCE_CLAIM: Final[Layout] = {"Devices": Inside(_DEVICES, False)}
"""Down to what is asked for; requests with something in them keep their JSON names."""
_NAMED: Final = Inside({"Name": ""})
_ACCOUNT: Final = Inside({"Namespace": "", "Name": ""})
_FLOW_RULE: Final[Layout] = {
    "Subjects": Inside({"Kind": "", "User": _NAMED, "Group": _NAMED, "ServiceAccount": _ACCOUNT}),
    "ResourceRules": Inside(
        {"Verbs": None, "APIGroups": None, "Resources": None, "ClusterScope": False, "Namespaces": None}
    ),
    "NonResourceRules": Inside({"Verbs": None, "NonResourceURLs": None}),
}
FLOW_SCHEMA: Final[Layout] = {
    "PriorityLevelConfiguration": Inside({"Name": ""}, False),
    "MatchingPrecedence": 0,
    "DistinguisherMethod": Inside({"Type": ""}),
    "Rules": Inside(_FLOW_RULE),
}
_QUEUING: Final = Inside({"Queues": 0, "HandSize": 0, "QueueLengthLimit": 0})
PRIORITY_LEVEL: Final[Layout] = {
    "Type": "",
    "Limited": Inside(
        {
            "NominalConcurrencyShares": 0,
            "LimitResponse": Inside({"Type": "", "Queuing": _QUEUING}, False),
            "LendablePercent": None,
            "BorrowingLimitPercent": None,
        }
    ),
    "Exempt": Inside({"NominalConcurrencyShares": None, "LendablePercent": None}),
}
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
    if isinstance(zero, Inside):
        layout: Layout | None = zero.layout
        zero = None if zero.pointer else shown({}, zero.layout)
    else:
        layout = _INNER.get(name)
    if item is None:
        return zero
    if layout is None:
        return item
    if isinstance(item, list):
        return [shown(one, layout) for one in item]
    return shown(item, layout) if isinstance(item, Mapping) else item


def _json_name(name: str) -> str:
    return _INITIALS.sub(lambda found: found[0].lower(), name)
