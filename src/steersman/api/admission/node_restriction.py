"""NodeRestriction: a node writes its own Node and Lease, and the pods that run on it, and nothing else.

The Node authorizer lets nodes write some kinds at all; which objects, and what of them, is judged here. Nobody but a
node is concerned, and nobody else's writes come here.
Source of the facts: Kubernetes 1.36, plugin/pkg/admission/noderestriction, with its default features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final

from steersman.api import errors
from steersman.api.access import certificates
from steersman.api.access.authz import Rbac
from steersman.api.access.nodes import LEASES
from steersman.api.access.rbac import Ask
from steersman.api.access.user import NODE_PREFIX, User, node_of
from steersman.api.admission.about import user_of
from steersman.api.admission.plugin import CREATE, DELETE, UPDATE, Answer, Attempt, Plugin
from steersman.api.kinds import GK
from steersman.api.preconditions import referred
from steersman.api.references import MIRROR, claim_of_volume, object_reference
from steersman.kernel.object import Key, Object
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
POD: Final = ("", "Pod")
NODE: Final = ("", "Node")
CLAIM: Final = ("", "PersistentVolumeClaim")
ACCOUNT: Final = ("", "ServiceAccount")
LEASE: Final = ("coordination.k8s.io", "Lease")
CSI_NODE: Final = ("storage.k8s.io", "CSINode")
CSI_DRIVER: Final = ("storage.k8s.io", "CSIDriver")
SLICE: Final = ("resource.k8s.io", "ResourceSlice")
OWN_LABELS: Final = frozenset(
    {
        "kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
        "beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type", "kubernetes.io/os",
        "kubernetes.io/arch", "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
    }
)  # fmt: skip
"""Labels of Kubernetes that a node says of itself."""
OWN_DOMAINS: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")
RESTRICTED: Final = "node-restriction.kubernetes.io"
"""Labels of this domain are for those who place workloads: no node gives them to itself."""
CLAIM_STATUS: Final = frozenset({"allocatedResourceStatuses", "allocatedResources", "capacity", "conditions"})
"""What of a claim's status a node reports."""
MIGRATED: Final = {
    "awsElasticBlockStore": "ebs.csi.aws.com",
    "azureDisk": "disk.csi.azure.com",
    "azureFile": "file.csi.azure.com",
    "cinder": "cinder.csi.openstack.org",
    "gcePersistentDisk": "pd.csi.storage.gke.io",
    "portworxVolume": "pxd.portworx.com",
    "vsphereVolume": "csi.vsphere.vmware.com",
}
"""Old kinds of volume to the drivers that answer for them (csi-translation-lib)."""


class NodeRestriction(Plugin):
    """See the module's text."""

    name: ClassVar[str] = "NodeRestriction"
    kinds: ClassVar[tuple[GK, ...] | None] = (
        POD, NODE, CLAIM, ACCOUNT, LEASE, CSI_NODE, SLICE, certificates.CSR,
    )  # fmt: skip
    operations: ClassVar[tuple[str, ...]] = (CREATE, UPDATE, DELETE)
    subresources: ClassVar[tuple[str, ...] | None] = None
    of_nodes: ClassVar[bool] = True

    def __init__(self) -> None:
        self._rbac = Rbac()

    def mutate(self, attempt: Attempt) -> Answer:
        """Refuses what is not the node's to write; it changes nothing, and speaks before validation. Raises
        `ApiError`."""
        user = user_of(attempt.request)
        node = node_of(user)
        if node is None:
            return None
        if not node:
            raise attempt.forbidden(f"could not determine node from user {errors.quote(user.name)}")
        if attempt.kind.gk == ACCOUNT:
            self._token(node, user, attempt)
        else:
            _JUDGES[attempt.kind.gk](node, attempt)
        return None

    def _token(self, node: str, user: User, attempt: Attempt) -> None:
        """Tokens are for pods that run on the node, and for audiences that these name."""
        if attempt.operation != CREATE or attempt.subresource != "token":
            return
        spec = (attempt.body or EMPTY).get("spec") or EMPTY
        ref = spec.get("boundObjectRef") or EMPTY
        if (ref.get("apiVersion"), ref.get("kind")) != ("v1", "Pod") or not ref.get("name"):
            raise attempt.forbidden("node requested token not bound to a pod")
        if not ref.get("uid"):
            raise attempt.forbidden("node requested token with a pod binding without a uid")
        pod = _pod(attempt, ref["name"])
        if ref["uid"] != pod.uid:
            detail = f"the UID in the bound object reference ({ref['uid']}) does not match the UID in record. "
            raise attempt.forbidden(detail + "The object might have been deleted and then recreated")
        if pod.node != node:
            raise attempt.forbidden("node requested token bound to a pod scheduled on a different node")
        audiences = list(spec.get("audiences") or ())
        if len(audiences) > 1:
            raise attempt.forbidden("node may only request 0 or 1 audiences")
        audience = audiences[0] if audiences else ""
        problems: list[str] = []
        if audience in _audiences(attempt, pod, problems):
            return
        if problems:
            told = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
            raise attempt.forbidden(f"error validating audience {errors.quote(audience)}: {told}")
        verb = "request-serviceaccounts-token-audience"
        ask = Ask(verb, "", audience, namespace=attempt.key.namespace, name=attempt.key.name)
        if not self._rbac.decide(attempt.store, user, ask).allowed:
            detail = f"{user.name} is not authorized to request tokens for this audience"
            raise attempt.forbidden(f"audience {errors.quote(audience)} not found in pod spec volume, {detail}")


def _audiences(attempt: Attempt, pod: Object, problems: list[str]) -> Iterator[str]:
    """Those that a pod's volumes ask tokens for, themselves or by their CSI drivers; what is missing on the way is
    a problem, as long as no other volume has the audience."""
    for volume in (pod.spec_value or EMPTY).get("volumes") or ():
        for source in (volume.get("projected") or EMPTY).get("sources") or ():
            token = source.get("serviceAccountToken")
            if token is not None:
                yield str(token.get("audience") or "")
        claim = claim_of_volume(pod.key.name, volume)
        try:
            driver = _driver(volume) if claim is None else _driver_of_claim(attempt, claim)
            if driver:
                found = referred(attempt.store, Key(*CSI_DRIVER, "", driver), "csidrivers")
                for request in (found.spec_value or EMPTY).get("tokenRequests") or ():
                    yield str(request.get("audience") or "")
        except errors.NotFound as missing:
            problems.append(missing.message)


def _driver(source: Json) -> str:
    """The CSI driver of a volume, given as the part that tells its kind; "" when it has none."""
    csi = source.get("csi")
    if csi is not None:
        return str(csi.get("driver") or "")
    return next((driver for kind, driver in MIGRATED.items() if source.get(kind) is not None), "")


def _driver_of_claim(attempt: Attempt, name: str) -> str:
    claim = referred(attempt.store, Key(*CLAIM, attempt.key.namespace, name), "persistentvolumeclaims")
    volume = str((claim.spec_value or EMPTY).get("volumeName") or "")
    found = referred(attempt.store, Key("", "PersistentVolume", "", volume), "persistentvolumes")
    return _driver(found.spec_value or EMPTY)


def _pod(attempt: Attempt, name: str) -> Object:
    return referred(attempt.store, Key(*POD, attempt.key.namespace, name), "pods")


# -- pods ------------------------------------------------------------------------------------------------------


def _judge_pod(node: str, attempt: Attempt) -> None:
    part, operation = attempt.subresource, attempt.operation
    quoted = errors.quote(node)
    if part == "status":
        _judge_pod_status(node, attempt)
    elif part == "eviction":
        if _pod(attempt, attempt.key.name).node != node:
            raise attempt.forbidden(f"node {node} can only evict pods with spec.nodeName set to itself")
    elif part:
        told = f"unexpected pod subresource {errors.quote(part)}, only 'status' and 'eviction' are allowed"
        raise attempt.forbidden(told)
    elif operation == CREATE:
        _judge_mirror(node, attempt)
    elif operation == UPDATE:
        told = f"unexpected operation {errors.quote(operation)}, node {quoted} can only create and delete mirror pods"
        raise attempt.forbidden(told)
    elif attempt.old is None or attempt.old.node != node:
        raise attempt.forbidden(f"node {quoted} can only delete pods with spec.nodeName set to itself")


def _judge_mirror(node: str, attempt: Attempt) -> None:
    assert attempt.body is not None
    meta, spec = attempt.body.get("metadata") or EMPTY, attempt.body.get("spec") or EMPTY
    quoted = errors.quote(node)
    if MIRROR not in (meta.get("annotations") or EMPTY):
        told = f"pod does not have {errors.quote(MIRROR)} annotation, node {quoted} can only create mirror pods"
        raise attempt.forbidden(told)
    if spec.get("nodeName") != node:
        raise attempt.forbidden(f"node {quoted} can only create pods with spec.nodeName set to itself")
    owners = meta.get("ownerReferences") or ()
    if len(owners) > 1:
        raise attempt.forbidden(f"node {quoted} can only create pods with a single owner reference set to itself")
    owner = owners[0] if owners else EMPTY
    if (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) != ("v1", "Node", node):
        raise attempt.forbidden(f"node {quoted} can only create pods with an owner reference set to itself")
    if not owner.get("controller"):
        raise attempt.forbidden(f"node {quoted} can only create pods with a controller owner reference set to itself")
    if owner.get("blockOwnerDeletion"):
        raise attempt.forbidden(f"node {quoted} must not set blockOwnerDeletion on an owner reference")
    found = referred(attempt.store, Key(*NODE, "", node), "nodes")
    if owner.get("uid") != found.uid:
        raise attempt.forbidden(f"node {node} UID mismatch: expected {owner.get('uid')} got {found.uid}")
    needed = object_reference(spec)
    if needed:
        raise attempt.forbidden(f"node {quoted} can not create pods that reference {needed}")


def _judge_pod_status(node: str, attempt: Attempt) -> None:
    quoted = errors.quote(node)
    old, body = attempt.old, attempt.body
    if attempt.operation != UPDATE or old is None or body is None:
        raise attempt.forbidden(f"unexpected operation {errors.quote(attempt.operation)}")
    if old.node != node:
        told = f"node {quoted} can only update pod status for pods with spec.nodeName set to itself"
        raise attempt.forbidden(told)
    if (old.meta.value.get("labels") or EMPTY) != ((body.get("metadata") or EMPTY).get("labels") or EMPTY):
        raise attempt.forbidden(f"node {quoted} cannot update labels through pod status")
    before, after = old.status_value or EMPTY, body.get("status") or EMPTY
    if list(before.get("resourceClaimStatuses") or ()) != list(after.get("resourceClaimStatuses") or ()):
        raise attempt.forbidden(f"node {quoted} cannot update resource claim statues")
    if before.get("extendedResourceClaimStatus") != after.get("extendedResourceClaimStatus"):
        raise attempt.forbidden(f"node {quoted} cannot update extended resource claim status")


# -- what else a node writes -----------------------------------------------------------------------------------


def _judge_node(node: str, attempt: Attempt) -> None:
    quoted = errors.quote(node)
    if attempt.key.name != node:
        raise attempt.forbidden(f"node {quoted} is not allowed to modify node {errors.quote(attempt.key.name)}")
    if attempt.body is None:
        return
    meta, spec = attempt.body.get("metadata") or EMPTY, attempt.body.get("spec") or EMPTY
    old = attempt.old
    if old is None:
        if spec.get("configSource") is not None:
            raise attempt.forbidden(f"node {quoted} is not allowed to create pods with a non-nil configSource")
        refused = _refused_labels(meta.get("labels") or EMPTY, EMPTY)
        if refused:
            told = f"node {quoted} is not allowed to set the following labels: {', '.join(refused)}"
            raise attempt.forbidden(told)
        return
    was, had = old.meta.value, old.spec_value or EMPTY
    if spec.get("configSource") is not None and spec["configSource"] != had.get("configSource"):
        raise attempt.forbidden(f"node {quoted} is not allowed to update configSource to a new non-nil configSource")
    if list(spec.get("taints") or ()) != list(had.get("taints") or ()):
        raise attempt.forbidden(f"node {quoted} is not allowed to modify taints")
    if list(meta.get("ownerReferences") or ()) != list(was.get("ownerReferences") or ()):
        raise attempt.forbidden(f"node {quoted} is not allowed to modify ownerReferences")
    refused = _refused_labels(meta.get("labels") or EMPTY, was.get("labels") or EMPTY)
    if refused:
        raise attempt.forbidden(f"is not allowed to modify labels: {', '.join(refused)}")


def _refused_labels(after: Json, before: Json) -> list[str]:
    """The changed labels that are not a node's to change, sorted."""
    changed = sorted({*after, *before})
    return [key for key in changed if after.get(key) != before.get(key) and not _may_label(key)]


def _may_label(key: str) -> bool:
    domain = key.split("/", 1)[0] if "/" in key else ""
    if _within(domain, RESTRICTED):
        return False
    if not _within(domain, "kubernetes.io") and not _within(domain, "k8s.io"):
        return True
    return key in OWN_LABELS or any(_within(domain, own) for own in OWN_DOMAINS)


def _within(domain: str, parent: str) -> bool:
    return domain == parent or domain.endswith(f".{parent}")


def _judge_claim(node: str, attempt: Attempt) -> None:
    if attempt.subresource != "status":
        raise attempt.forbidden("may only update PVC status")
    if attempt.old is None or attempt.body is None:
        raise attempt.forbidden(f"unexpected operation {errors.quote(attempt.operation)}")
    before, after = _without_status(attempt.old.value), _without_status(attempt.body)
    changed = [part for part in sorted({*before, *after}) if before.get(part) != after.get(part)]
    if changed:
        told = f"is not allowed to update fields other than status.quantity and status.conditions: {', '.join(changed)}"
        raise attempt.forbidden(f"node {errors.quote(node)} {told}")


def _without_status(claim: Json) -> dict[str, Any]:
    """What a node leaves alone of a claim."""
    meta = claim.get("metadata") or EMPTY
    kept = {name: value for name, value in meta.items() if name not in ("managedFields", "resourceVersion")}
    status = claim.get("status") or EMPTY
    rest = {name: value for name, value in status.items() if name not in CLAIM_STATUS}
    return {**claim, "metadata": kept, "status": rest}


def _judge_lease(node: str, attempt: Attempt) -> None:
    if attempt.key.namespace != LEASES:
        raise attempt.forbidden(f'can only access leases in the "{LEASES}" system namespace')
    if attempt.key.name != node:
        raise attempt.forbidden("can only access node lease with the same name as the requesting node")


def _judge_csi_node(node: str, attempt: Attempt) -> None:
    if attempt.key.name != node:
        raise attempt.forbidden("can only access CSINode with the same name as the requesting node")


def _judge_slice(node: str, attempt: Attempt) -> None:
    """Updates are judged by the authorizer, and the node of a slice cannot be changed."""
    if attempt.operation == UPDATE:
        return
    body = attempt.body if attempt.old is None else attempt.old.value
    if ((body or EMPTY).get("spec") or EMPTY).get("nodeName") != node:
        verb = "create" if attempt.operation == CREATE else "delete"
        raise attempt.forbidden(f"can only {verb} ResourceSlice with the same NodeName as the requesting node")


def _judge_request(node: str, attempt: Attempt) -> None:
    """A node asks for certificates of its own alone."""
    spec = (attempt.body or EMPTY).get("spec") or EMPTY
    signers = (certificates.KUBELET_SERVING, certificates.KUBELET_CLIENT)
    if attempt.operation != CREATE or spec.get("signerName") not in signers:
        return
    try:
        asked = certificates.parse(str(spec.get("request") or ""))
    except certificates.Unfit as problem:
        raise attempt.forbidden(f"unable to parse csr: {problem}") from None
    if certificates.common_name(asked) != f"{NODE_PREFIX}{node}":
        raise attempt.forbidden(f"can only create a node CSR with CN={NODE_PREFIX}{node}")


_JUDGES: Final[Mapping[GK, Callable[[str, Attempt], None]]] = {
    POD: _judge_pod,
    NODE: _judge_node,
    CLAIM: _judge_claim,
    LEASE: _judge_lease,
    CSI_NODE: _judge_csi_node,
    SLICE: _judge_slice,
    certificates.CSR: _judge_request,
}
