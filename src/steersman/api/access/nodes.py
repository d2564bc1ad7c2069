"""What a node may do: the Node authorizer.

A node reads what its pods refer to, and writes what is its own. Nothing is kept for this while objects are written:
who asks as a node has the pods on it looked through (the index of pods by node finds them), some 1 us a pod.

Source of the facts (what leads to what, order and wording): Kubernetes 1.36, plugin/pkg/auth/authorizer/node, with
AuthorizeNodeWithSelectors on and PodCertificateRequest off, as by default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from steersman.api.access.rbac import GROUP, Ask, Rule, rules_of
from steersman.api.policy import default_policy
from steersman.api.references import MIRROR, claims_of, config_map_names, device_claims_of, secret_names, volume_secrets
from steersman.kernel.object import Key, Object
from steersman.kernel.store import Store
from steersman.kernel.value import EMPTY

POD: Final = ("", "Pod")
VOLUME: Final = ("", "PersistentVolume")
ATTACHMENT: Final = ("storage.k8s.io", "VolumeAttachment")
SLICE: Final = ("resource.k8s.io", "ResourceSlice")
LEASES: Final = "kube-node-lease"
"""The namespace of the nodes' heartbeats."""
ROLE: Final = Key(GROUP, "ClusterRole", "", "system:node")
READS: Final = ("get", "list", "watch")
OWN_VERBS: Final = ("get", "create", "update", "patch", "delete")
"""Verbs that a node has for the Lease and the CSINode of its name."""
SLICE_VERBS: Final = "get, watch, list, create, update, patch, delete, deletecollection"
Why = str
"""Why a node may not; ALLOWED where it may."""
ALLOWED: Final = "\0"


def allows(store: Store, node: str, ask: Ask) -> tuple[bool, Why]:
    """Whether the node of that name may do what is asked, and why not (often "": then other authorizers say)."""
    if ask.path:
        return _by_rules(ask) == ALLOWED, ""
    judge = _JUDGES.get((ask.group, ask.resource))
    why = _by_rules(ask) if judge is None else judge(store, node, ask)
    return (True, "") if why == ALLOWED else (False, why)


@cache
def _rules() -> tuple[Rule, ...]:
    return rules_of(dict(default_policy())[ROLE])


def _by_rules(ask: Ask) -> Why:
    return ALLOWED if any(rule.allows(ask) for rule in _rules()) else ""


# -- what is read because a pod refers to it -------------------------------------------------------------------


def _read(store: Store, node: str, ask: Ask) -> Why:
    """Secrets, ConfigMaps and accounts: each by its name, and watched by it."""
    if ask.verb not in READS:
        return "can only read resources of this type"
    if ask.part:
        return "cannot read subresource"
    if not ask.namespace:
        return "can only read namespaced object of this type"
    return _related(store, node, ask)


def _get(store: Store, node: str, ask: Ask) -> Why:
    if ask.verb != "get":
        return "can only get individual resources of this type"
    if ask.part:
        return "cannot get subresource"
    return _related(store, node, ask)


def _claim(store: Store, node: str, ask: Ask) -> Why:
    if ask.part != "status":
        return _get(store, node, ask)
    if ask.verb not in ("update", "patch"):
        return "can only get/update/patch this type"
    return _related(store, node, ask)


def _account(store: Store, node: str, ask: Ask) -> Why:
    if ask.verb == "get" and not ask.part:
        return _read(store, node, ask)
    if ask.verb != "create" or not ask.name:
        return "can only create tokens for individual service accounts"
    if ask.part != "token":
        return "can only create token subresource of serviceaccount"
    return _related(store, node, ask)


def _related(store: Store, node: str, ask: Ask) -> Why:
    if not ask.name:
        return "No Object name found"
    if _RELATIONS[(ask.group, ask.resource)](store, node, ask.namespace, ask.name):
        return ALLOWED
    return f"no relationship found between node '{node}' and this object"


def _pods(store: Store, node: str, namespace: str) -> Iterator[Mapping[str, Any]]:
    """The pods on a node in a namespace that are no mirrors of what it runs by itself."""
    for pod in store.find("node", node, POD):
        if pod.key.namespace == namespace and MIRROR not in (pod.meta.value.get("annotations") or EMPTY):
            yield pod.value


def _reads_secret(store: Store, node: str, namespace: str, name: str) -> bool:
    if any(name in secret_names(pod["spec"]) for pod in _pods(store, node, namespace)):
        return True
    found: dict[tuple[str, str], list[tuple[str, str]]] | None = store.derived(VOLUME, _claims_by_secret)
    return any(_mounts(store, node, *claim) for claim in (found or {}).get((namespace, name), ()))


def _claims_by_secret(volumes: Iterable[Object]) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Secret to the claims whose volumes need it."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for volume in volumes:
        claim = _claim_of(volume)
        for secret in volume_secrets(volume.spec_value or EMPTY) if claim is not None else ():
            found.setdefault(secret, []).append(claim)  # type: ignore[arg-type]
    return found


def _claim_of(volume: Object) -> tuple[str, str] | None:
    ref = (volume.spec_value or EMPTY).get("claimRef")
    return None if not ref else (str(ref.get("namespace") or ""), str(ref.get("name") or ""))


def _reads_config(store: Store, node: str, namespace: str, name: str) -> bool:
    return any(name in config_map_names(pod["spec"]) for pod in _pods(store, node, namespace))


def _runs_as(store: Store, node: str, namespace: str, name: str) -> bool:
    return any(pod["spec"].get("serviceAccountName") == name for pod in _pods(store, node, namespace))


def _mounts(store: Store, node: str, namespace: str, name: str) -> bool:
    return any(name in claims_of(pod) for pod in _pods(store, node, namespace))


def _uses_devices(store: Store, node: str, namespace: str, name: str) -> bool:
    return any(name in device_claims_of(pod) for pod in _pods(store, node, namespace))


def _reads_volume(store: Store, node: str, _: str, name: str) -> bool:
    volume = store.get(Key(*VOLUME, "", name))
    claim = None if volume is None else _claim_of(volume)
    return claim is not None and _mounts(store, node, *claim)


def _attaches(store: Store, node: str, _: str, name: str) -> bool:
    return _names_node(store.get(Key(*ATTACHMENT, "", name)), node)


def _holds_slice(store: Store, node: str, _: str, name: str) -> bool:
    return _names_node(store.get(Key(*SLICE, "", name)), node)


def _names_node(found: Object | None, node: str) -> bool:
    return found is not None and bool(node) and (found.spec_value or EMPTY).get("nodeName") == node


def _runs(store: Store, node: str, namespace: str, name: str) -> bool:
    pod = store.get(Key(*POD, namespace, name))
    return pod is not None and bool(node) and pod.node == node


# -- what is the node's own ------------------------------------------------------------------------------------


def _lease(_: Store, node: str, ask: Ask) -> Why:
    if ask.verb not in OWN_VERBS:
        return "can only get, create, update, patch, or delete a node lease"
    if ask.namespace != LEASES:
        return f'can only access leases in the "{LEASES}" system namespace'
    if ask.verb != "create" and ask.name != node:  # of a create, admission knows the name
        return "can only access node lease with the same name as the requesting node"
    return ALLOWED


def _csi_node(_: Store, node: str, ask: Ask) -> Why:
    if ask.verb not in OWN_VERBS:
        return "can only get, create, update, patch, or delete a CSINode"
    if ask.part:
        return "cannot authorize CSINode subresources"
    if ask.verb != "create" and ask.name != node:
        return "can only access CSINode with the same name as the requesting node"
    return ALLOWED


def _slice(store: Store, node: str, ask: Ask) -> Why:
    if ask.part:
        return "cannot authorize ResourceSlice subresources"
    if ask.verb == "create":  # admission compares its nodeName
        return ALLOWED
    if ask.verb in ("get", "update", "patch", "delete"):
        return _related(store, node, ask)
    if ask.verb not in ("watch", "list", "deletecollection"):
        return f"only the following verbs are allowed for a ResourceSlice: {SLICE_VERBS}"
    if ("spec.nodeName", node) in ask.fields:
        return ALLOWED
    return "can only list/watch/deletecollection resourceslices with nodeName field selector"


def _node(_: Store, node: str, ask: Ask) -> Why:
    """Which node is written, admission judges; one may read itself before it is there."""
    if ask.part == "status":
        return ALLOWED if ask.verb in ("update", "patch") else ""
    if ask.part:
        return ""
    if ask.verb in ("create", "update", "patch"):
        return ALLOWED
    if ask.verb not in READS:
        return ""
    if ask.name == node:
        return ALLOWED
    if not ask.name:
        return f"node '{node}' cannot read all nodes, only its own Node object"
    return f"node '{node}' cannot read '{ask.name}', only its own Node object"


def _pod(store: Store, node: str, ask: Ask) -> Why:
    """Which pod is written, admission judges."""
    if (ask.part, ask.verb) in _POD_WRITES:
        return ALLOWED
    if ask.part or ask.verb not in READS:
        return ""
    if ask.verb == "get":
        return _get(store, node, ask)
    if ("spec.nodeName", node) in ask.fields:
        return ALLOWED
    if ask.name:
        return _related(store, node, ask)
    return "can only list/watch pods with spec.nodeName field selector"


_POD_WRITES: Final = frozenset(
    {("", "create"), ("", "delete"), ("status", "update"), ("status", "patch"), ("eviction", "create")}
)
_JUDGES: Final[Mapping[tuple[str, str], Callable[[Store, str, Ask], Why]]] = {
    ("", "secrets"): _read,
    ("", "configmaps"): _read,
    ("", "persistentvolumeclaims"): _claim,
    ("", "persistentvolumes"): _get,
    ("resource.k8s.io", "resourceclaims"): _get,
    ("storage.k8s.io", "volumeattachments"): _get,
    ("", "serviceaccounts"): _account,
    ("coordination.k8s.io", "leases"): _lease,
    ("storage.k8s.io", "csinodes"): _csi_node,
    ("resource.k8s.io", "resourceslices"): _slice,
    ("", "nodes"): _node,
    ("", "pods"): _pod,
    ("certificates.k8s.io", "podcertificaterequests"): lambda store, node, ask: "",
}
_RELATIONS: Final[Mapping[tuple[str, str], Callable[[Store, str, str, str], bool]]] = {
    ("", "secrets"): _reads_secret,
    ("", "configmaps"): _reads_config,
    ("", "serviceaccounts"): _runs_as,
    ("", "persistentvolumeclaims"): _mounts,
    ("", "persistentvolumes"): _reads_volume,
    ("resource.k8s.io", "resourceclaims"): _uses_devices,
    ("resource.k8s.io", "resourceslices"): _holds_slice,
    ("storage.k8s.io", "volumeattachments"): _attaches,
    ("", "pods"): _runs,
}
