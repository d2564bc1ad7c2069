"""The standard chain: the plugins that kube-apiserver 1.36 has on by default, in its order, and NodeRestriction, which
kubeadm turns on: it says nothing of whoever is no node.

Not here: NamespaceLifecycle, which is the request machine's own (`api.preconditions`); CertificateApproval,
CertificateSigning, CertificateSubjectRestriction and ClusterTrustBundleAttest, which ask an authorizer; plugins behind
feature gates that are off. OwnerReferencesPermissionEnforcement is off by default there, too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from steersman.api.admission.account import ServiceAccount
from steersman.api.admission.addresses import NETWORK, ServiceAddresses
from steersman.api.admission.chain import Chain
from steersman.api.admission.extension import EXTENSIONS
from steersman.api.admission.ingress import DefaultIngressClass
from steersman.api.admission.limits import LimitRanger
from steersman.api.admission.node_restriction import NodeRestriction
from steersman.api.admission.nodes import PodTopologyLabels, TaintNodesByCondition
from steersman.api.admission.plugin import Plugin
from steersman.api.admission.priority import Priority
from steersman.api.admission.quota import ResourceQuota
from steersman.api.admission.runtime import RuntimeClass
from steersman.api.admission.security import PodSecurity
from steersman.api.admission.storage import (
    DefaultStorageClass,
    PersistentVolumeClaimResize,
    StorageObjectInUseProtection,
)
from steersman.api.admission.toleration import DefaultTolerationSeconds

TAKEN_BACK: Final[Mapping[str, str]] = {
    "ServiceAccount": "serviceaccount-controller",
    "TaintNodesByCondition": "node-lifecycle-controller",
    "StorageObjectInUseProtection": "persistentvolumeclaim-protection-controller",
}
"""Plugin → the controller without which what it adds would stay for ever, or what it asks for would never come: default
accounts, taints of new nodes, finalizers of volumes."""


def standard(
    webhooks: Sequence[Plugin] = EXTENSIONS, controllers: Collection[str] | None = None, network: str = NETWORK
) -> Chain:
    """A new standard chain.

    webhooks: policies and webhooks, run after the built-in plugins and before quota; () for none.
    controllers: names of those that run beside it; plugins that cannot do without one of the others are left out.
    None: all plugins.
    network: the block that addresses of Services come from.
    """
    plugins = (*_plugins(webhooks, controllers is not None), ServiceAddresses(network))
    if controllers is None:
        return Chain(plugins)
    return Chain([p for p in plugins if TAKEN_BACK.get(p.name) is None or TAKEN_BACK[p.name] in controllers])


def _plugins(webhooks: Sequence[Plugin], accounts_come: bool) -> tuple[Plugin, ...]:
    return (
        LimitRanger(),
        ServiceAccount(accounts_come),
        NodeRestriction(),
        TaintNodesByCondition(),
        PodSecurity(),
        Priority(),
        DefaultTolerationSeconds(),
        DefaultStorageClass(),
        StorageObjectInUseProtection(),
        PersistentVolumeClaimResize(),
        RuntimeClass(),
        DefaultIngressClass(),
        PodTopologyLabels(),
        *webhooks,
        ResourceQuota(),
    )
