"""Which group versions this server serves itself, as APIServices, and in which order clients are to prefer groups.

Source of the facts: cmd/kube-apiserver/app/aggregator.go (apiVersionPriorities), release 1.36.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from steersman.api.rules.registration_rules import CUSTOM_PRIORITY, GK, GROUP, ON_START, local
from steersman.kernel.object import Key
from steersman.serve.table.computed import METRICS

PRIORITIES: Final = {
    "": 18000,
    "apps": 17800,
    "events.k8s.io": 17750,
    "authentication.k8s.io": 17700,
    "authorization.k8s.io": 17600,
    "autoscaling": 17500,
    "batch": 17400,
    "certificates.k8s.io": 17300,
    "networking.k8s.io": 17200,
    "policy": 17100,
    "rbac.authorization.k8s.io": 17000,
    "storage.k8s.io": 16800,
    "admissionregistration.k8s.io": 16700,
    "apiextensions.k8s.io": 16700,
    "scheduling.k8s.io": 16600,
    "coordination.k8s.io": 16500,
    "node.k8s.io": 16300,
    "discovery.k8s.io": 16200,
    "resource.k8s.io": 16200,
    "flowcontrol.apiserver.k8s.io": 16100,
}
VERSION_PRIORITIES: Final = {
    ("", "v1"): 1,
    ("autoscaling", "v2"): 30,
    ("flowcontrol.apiserver.k8s.io", "v1"): 21,
    ("resource.k8s.io", "v1"): 21,
}
METRICS_PRIORITY: Final = (100, 100)
"""Those of metrics-server's own manifest."""


def priority_of(group: str, version: str) -> tuple[int, int]:
    """groupPriorityMinimum and versionPriority of an APIService."""
    if group in PRIORITIES:
        return PRIORITIES[group], VERSION_PRIORITIES.get((group, version), 15)
    return METRICS_PRIORITY if group == METRICS else CUSTOM_PRIORITY


def preference(group: str, priority: int) -> tuple[bool, bool, int, str]:
    """The order of groups: the core, the one that lists the others, then by the priority of their APIServices."""
    return group != "", group != GROUP, -priority, group


def local_services(groups: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[Key, dict[str, Any]]]:
    """Slots and bodies of the APIServices of these groups and their versions."""
    for group, versions in groups.items():
        for version in versions if group != GROUP else ():  # what lists the others is not in the list
            yield Key(*GK, "", f"{version}.{group}"), local(group, version, priority_of(group, version), ON_START)
