"""Claims of devices: those that a pod's templates describe, made for the pod and gone with it, and who holds which.

Allocating devices is the scheduler's part, and is not done here. Source of the facts: Kubernetes 1.36,
pkg/controller/resourceclaim and k8s.io/dynamic-resource-allocation/resourceclaim. Not as there: groups of pods
(WorkloadResourceClaims, off by default) have no claims.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from steersman.api.client import Client
from steersman.api.controller import Controller, Find
from steersman.api.errors import ApiError
from steersman.api.references import device_claims_of
from steersman.controllers import owned, pods
from steersman.kernel.effect import Event
from steersman.kernel.object import Key, Object
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
POD: Final = ("", "Pod")
CLAIM: Final = ("resource.k8s.io", "ResourceClaim")
TEMPLATE: Final = ("resource.k8s.io", "ResourceClaimTemplate")
CLAIMS: Final = "resource.k8s.io/v1/ResourceClaim"
MADE_FOR: Final = "resource.kubernetes.io/pod-claim-name"
"""Annotation of a claim: which of its pod's claims it is."""
PROTECTION: Final = "resource.kubernetes.io/delete-protection"
"""The finalizer of a claim that the scheduler allocated."""
MOST_HOLDERS: Final = 256
"""Pods that may hold a claim at a time (ResourceClaimReservedForMaxSize)."""
MAX_BASE: Final = 57
"""Characters of a generated name before its last dash and five drawn ones: it has 63."""


class ForeignClaim(ApiError):
    """What keeps a pod from its claim; the text says why. A refusal, as a missing object is one: somebody else has to
    mend it."""


class ResourceClaims(Controller):
    """Makes claims of templates, reserves allocated ones for pods that are bound already, and frees those of pods that
    ended."""

    name = "resourceclaim-controller"
    kind = CLAIMS
    watches: ClassVar[Mapping[str, Any]] = {
        "v1/Pod": lambda pod: (),
        "resource.k8s.io/v1/ResourceClaimTemplate": lambda template: (),
    }

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """A pod with claims wakes itself, and the claims it had once it has ended, also those it does not say it has (a
        crash came between making one and saying so; Kubernetes leaves that one until the pod is deleted); a claim
        itself, and the pod it was made for when it is gone; a new template the pods that wait for it."""
        gk = event.key.gk
        if gk == TEMPLATE:
            return () if event.new is None else (event.key,)
        if gk == CLAIM:
            owner = owned.controller_of({"metadata": event.obj.meta.value}) if event.new is None else None
            made_for = owner is not None and owner["kind"] == "Pod"
            return (event.key, Key(*POD, event.key.namespace, owner["name"])) if owner and made_for else (event.key,)
        if not (event.obj.spec_value or EMPTY).get("resourceClaims"):
            return ()
        if _is_at_work(event.new):
            return (event.key,)
        made = [obj.key for obj in find("owner", event.obj.uid) if obj.key.gk == CLAIM]
        return dict.fromkeys([*_held(event), *made])

    def reconcile(self, c: Client, key: Key) -> None:
        """Raises `ForeignClaim`, and what the API refused."""
        if key.gk == TEMPLATE:
            waiting = [pod for pod in c.list("v1/Pod", key.namespace) if key.name in _templates(pod)]
            for pod in waiting:
                _provide_all(c, pod)
            return
        seen = c.get(key)
        if seen is None:
            return
        if key.gk == POD:
            _provide_all(c, seen)
        else:
            _free(c, seen)


def _is_at_work(pod: Object | None) -> bool:
    return pod is not None and not _is_done(pod.value)


def _is_done(pod: Json) -> bool:
    """Whether it needs its claims no more: it ended, or goes without ever having been bound."""
    return pods.phase(pod) in pods.ENDED or (owned.is_terminating(pod) and not pod["spec"].get("nodeName"))


def _held(event: Event) -> list[Key]:
    return [Key(*CLAIM, event.key.namespace, name) for name in device_claims_of(event.obj.value)]


def _templates(pod: Json) -> list[str]:
    claims = pod["spec"].get("resourceClaims") or ()
    return [each["resourceClaimTemplateName"] for each in claims if each.get("resourceClaimTemplateName")]


# -- a pod and its claims -------------------------------------------------------------------------------------------


def _provide_all(c: Client, pod: Json) -> None:
    if owned.is_terminating(pod) or _is_done(pod):
        return
    told = (pod.get("status") or EMPTY).get("resourceClaimStatuses") or ()
    before = {each["name"]: each.get("resourceClaimName") for each in told}
    after = dict(before)
    for wanted in pod["spec"].get("resourceClaims") or ():
        name = wanted["name"]
        if not wanted.get("resourceClaimTemplateName") or (name in before and before[name] is None):
            continue  # one that is there, or a template of which nothing is needed
        try:
            after[name] = _provide(c, pod, wanted, before.get(name))
        except ApiError as error:
            c.event(
                pod, "Warning", "FailedResourceClaimCreation", f"PodResourceClaim {name}: {error}", "resource_claim"
            )
            raise
    if after != before:
        meta = {"name": pod["metadata"]["name"], "namespace": pod["metadata"]["namespace"]}
        said = [{"name": name, **({"resourceClaimName": made} if made else {})} for name, made in after.items()]
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "status": {"resourceClaimStatuses": said}}
        pod = c.apply(body, force=True, subresource="status")
    if pod["spec"].get("nodeName"):
        _reserve(c, pod)


def _provide(c: Client, pod: Json, wanted: Json, name: str | None) -> str:
    """The name of the claim that is the pod's, made if it is not there."""
    meta = pod["metadata"]
    if name:
        found = c.get(Key(*CLAIM, meta["namespace"], name))
        if found is not None and owned.controlled_by(found, meta["uid"]):
            return name
    made = [
        each
        for each in c.list(CLAIMS, meta["namespace"], owner=meta["uid"], fresh=True)
        if (each["metadata"].get("annotations") or EMPTY).get(MADE_FOR) == wanted["name"]
    ]
    if len(made) > 1:
        text = f"multiple resource claims found which match {meta['namespace']}/{meta['name']}"
        raise ForeignClaim(409, "Conflict", text)
    claim = made[0] if made else _create(c, pod, wanted)
    return str(claim["metadata"]["name"])


def _create(c: Client, pod: Json, wanted: Json) -> Json:
    meta = pod["metadata"]
    name = wanted["resourceClaimTemplateName"]
    template = c.get(Key(*TEMPLATE, meta["namespace"], name))
    if template is None:
        missing = f'resourceclaimtemplate.resource.k8s.io "{name}" not found'
        raise ForeignClaim(404, "NotFound", f'resource claim template "{name}": {missing}')
    given = template["spec"].get("metadata") or EMPTY
    made: dict[str, Any] = {
        "generateName": _base(meta["name"], wanted["name"]),
        "namespace": meta["namespace"],
        "annotations": {**(given.get("annotations") or EMPTY), MADE_FOR: wanted["name"]},
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"], "controller": True}
        ],
    }
    if given.get("labels"):
        made["labels"] = given["labels"]
    body = {"apiVersion": template["apiVersion"], "kind": "ResourceClaim", "metadata": made}
    claim: Json = c.create({**body, "spec": template["spec"]["spec"]})
    return claim


def _base(pod: str, claim: str) -> str:
    """How the name begins: of names that are too long, both are cut by their shares."""
    base = f"{pod}-{claim}-"
    if len(base) <= MAX_BASE:
        return base
    return f"{pod[: len(pod) * MAX_BASE // len(base)]}-{claim[: len(claim) * MAX_BASE // len(base)]}"


def _reserve(c: Client, pod: Json) -> None:
    """Reserves the allocated claims of a pod that was bound without the scheduler."""
    meta = pod["metadata"]
    for name in device_claims_of(pod):
        claim = c.get(Key(*CLAIM, meta["namespace"], name))
        if claim is None:
            return
        status = claim.get("status") or EMPTY
        holders = status.get("reservedFor") or ()
        held = any(each["uid"] == meta["uid"] for each in holders)
        if status.get("allocation") is not None and not held and len(holders) < MOST_HOLDERS:
            holder = {"resource": "pods", "name": meta["name"], "uid": meta["uid"]}
            c.update_status({**claim, "status": {**status, "reservedFor": [*holders, holder]}})


# -- a claim and its holders ----------------------------------------------------------------------------------------


def _free(c: Client, claim: Json) -> None:
    """Takes off a claim who holds it no more; one that nobody holds loses its devices, and goes with its pod."""
    status = claim.get("status") or EMPTY
    before = status.get("reservedFor") or ()
    holders = [each for each in before if _holds(c, claim, each)]
    protected = PROTECTION in (claim["metadata"].get("finalizers") or ())
    going = owned.is_terminating(claim)
    if len(holders) < len(before) or (protected and going and not holders):
        after = {**status, "reservedFor": holders}
        if protected and not holders:
            after.pop("allocation", None)
        if after != {**status, "reservedFor": list(before)}:
            claim = c.update_status({**claim, "status": {name: part for name, part in after.items() if part}})
        if protected and not (claim.get("status") or EMPTY).get("allocation"):
            kept = [each for each in claim["metadata"]["finalizers"] if each != PROTECTION]
            claim = c.update({**claim, "metadata": {**claim["metadata"], "finalizers": kept}})
    if holders or going:
        return
    owner = owned.controller_of(claim)
    if owner is None or owner["kind"] != "Pod":
        return
    pod = c.get(Key(*POD, claim["metadata"]["namespace"], owner["name"]))
    if pod is not None and (pod["metadata"]["uid"] != owner["uid"] or _is_done(pod)):
        c.delete(claim, uid=claim["metadata"]["uid"])  # of a pod that is gone, the garbage collector takes it


def _holds(c: Client, claim: Json, holder: Json) -> bool:
    if holder.get("apiGroup") or holder["resource"] != "pods":
        return True
    key = Key(*POD, claim["metadata"]["namespace"], holder["name"])
    pod = c.get(key)
    if pod is None:
        pod = c.get(key, fresh=True)
    return pod is not None and pod["metadata"]["uid"] == holder["uid"] and not _is_done(pod)
