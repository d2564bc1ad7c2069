"""The controllers that come with Steersman, by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from steersman.api.controller import Controller, controller_name
from steersman.controllers.accounts import ServiceAccounts, TokenSecrets
from steersman.controllers.addresses import IpAddresses
from steersman.controllers.aggregation import ClusterRoleAggregation
from steersman.controllers.autoscaler import HorizontalPodAutoscaler
from steersman.controllers.bootstrap import BootstrapSigner, TokenCleaner
from steersman.controllers.certificates import CertificateApproving, CertificateCleaner, CertificateSigning
from steersman.controllers.cronjob import CronJob
from steersman.controllers.daemonset import DaemonSet
from steersman.controllers.definition import DefinitionController
from steersman.controllers.deployment import Deployment
from steersman.controllers.device_eviction import DeviceTaintEviction
from steersman.controllers.disruption import Disruption
from steersman.controllers.endpoints import EndpointsController
from steersman.controllers.endpointslice import EndpointSliceController
from steersman.controllers.ephemeral import EphemeralVolumes
from steersman.controllers.eventttl import EventTtl
from steersman.controllers.expansion import VolumeExpansion
from steersman.controllers.garbage import GarbageCollector
from steersman.controllers.job import Job
from steersman.controllers.legacy_tokens import LegacyTokens
from steersman.controllers.mirroring import EndpointSliceMirroring
from steersman.controllers.namespace import NamespaceController
from steersman.controllers.node_events import NodeEvents
from steersman.controllers.node_ipam import NodeIpam
from steersman.controllers.node_ttl import NodeTtl
from steersman.controllers.nodehealth import NodeLifecycle
from steersman.controllers.podgc import PodGc
from steersman.controllers.policy_status import PolicyStatus
from steersman.controllers.protection import AttributesProtection, ClaimProtection, VolumeProtection
from steersman.controllers.registration import ApiServiceRegistration
from steersman.controllers.replicaset import ReplicaSet, ReplicationController
from steersman.controllers.resourceclaims import ResourceClaims
from steersman.controllers.resourcequota import ResourceQuotaController
from steersman.controllers.root_ca import RootCA
from steersman.controllers.service_cidr import ServiceCidrs
from steersman.controllers.statefulset import StatefulSet
from steersman.controllers.tainteviction import TaintEviction
from steersman.controllers.ttl import TtlAfterFinished
from steersman.controllers.volumes import VolumeBinder

ALL: Final[tuple[type[Controller], ...]] = (
    Deployment,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
    DaemonSet,
    Job,
    CronJob,
    GarbageCollector,
    NamespaceController,
    Disruption,
    DefinitionController,
    PodGc,
    TtlAfterFinished,
    NodeLifecycle,
    TaintEviction,
    VolumeBinder,
    EphemeralVolumes,
    ClaimProtection,
    VolumeProtection,
    AttributesProtection,
    EventTtl,
    EndpointsController,
    EndpointSliceController,
    HorizontalPodAutoscaler,
)
CLUSTER: Final[tuple[type[Controller], ...]] = (
    ServiceAccounts,
    TokenSecrets,
    RootCA,
    ClusterRoleAggregation,
    ApiServiceRegistration,
    ResourceQuotaController,
    CertificateApproving,
    CertificateSigning,
    CertificateCleaner,
    EndpointSliceMirroring,
    ServiceCidrs,
    IpAddresses,
    NodeTtl,
    NodeIpam,
    TokenCleaner,
    BootstrapSigner,
    NodeEvents,
    PolicyStatus,
    ResourceClaims,
    DeviceTaintEviction,
    VolumeExpansion,
    LegacyTokens,
)
"""What only a cluster that runs needs: accounts, tokens, certificates, roles, quotas, addresses; no workload waits."""
BY_NAME: Final[Mapping[str, type[Controller]]] = {controller_name(cls): cls for cls in (*ALL, *CLUSTER)}

WITH: Final[Mapping[type[Controller], type[Controller]]] = {NodeLifecycle: NodeEvents}
"""What is off with another: in Kubernetes it is one controller."""
API_SERVERS: Final = (DefinitionController, EventTtl, IpAddresses, ApiServiceRegistration)
"""What Kubernetes' API server does itself, and no kube-controller-manager takes over."""
EVERY: Final = "*"
KUBERNETES_NAMES: Final = {
    "bootstrapsigner": "bootstrap-signer-controller",
    "serviceaccount-token-controller": "tokens-controller",
    "tokencleaner": "token-cleaner-controller",
}
"""Names of kube-controller-manager that are neither ours nor ours with `-controller` after them."""
TOLD: Final = {"tokens-controller": "serviceaccount-token-controller"}
"""What Kubernetes calls these, where names are told."""
ONLY_OURS: Final = frozenset({"customresourcedefinition", "event-ttl", "node-events"})
"""Names that no controller of Kubernetes has."""


def builtin(*names: str) -> list[type[Controller]]:
    """The built-in controllers of these names; without a name, all but those of CLUSTER. Raises `LookupError`."""
    return [_named(name) for name in names] if names else list(ALL)


def replacing(name: str, controller: type[Controller]) -> list[type[Controller]]:
    """All built-in controllers, with `controller` in the place of one. Raises `LookupError`."""
    replaced = _named(name)
    return [controller if cls is replaced else cls for cls in ALL]


def remaining(disabled: Iterable[str]) -> list[type[Controller]]:
    """All controllers of a cluster that runs but those of these names: ours, or those kube-controller-manager has for
    its `--controllers` (`deployment-controller`); "*" for every one of those. Raises `LookupError`."""
    gone: set[type[Controller]] = set()
    for name in disabled:
        if name == EVERY:
            gone.update(cls for cls in BY_NAME.values() if cls not in API_SERVERS)
            continue
        controller = named(name)
        gone |= {controller, WITH.get(controller, controller)}
    return [cls for cls in (*ALL, *CLUSTER) if cls not in gone]


def named(name: str) -> type[Controller]:
    """The built-in controller of this name, ours or kube-controller-manager's. Raises `LookupError`."""
    found = [cls for ours, cls in BY_NAME.items() if name in (ours, f"{ours}-controller")]
    found += [cls for ours, cls in BY_NAME.items() if KUBERNETES_NAMES.get(name) == ours]
    if not found:
        raise LookupError(
            f"there is no built-in controller {name!r}; there are {', '.join(sorted(map(_told, BY_NAME)))}"
        )
    return found[0]


def _told(name: str) -> str:
    if name in TOLD or name in ONLY_OURS or name.endswith("-controller"):
        return TOLD.get(name, name)
    return f"{name}-controller"


def _named(name: str) -> type[Controller]:
    found = BY_NAME.get(name)
    if found is None:
        raise LookupError(f"there is no built-in controller {name!r}; there are {', '.join(sorted(BY_NAME))}")
    return found
