"""The PersistentVolumeClaims of a StatefulSet's pods: made from its templates, and owned as its retention policy says.

Source of the facts: Kubernetes 1.36, pkg/controller/statefulset (stateful_set_utils.go, stateful_pod_control.go). A pod
is given as what it is to be, or as it is; its ordinal is the number at the end of its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from steersman.api.client import Client
from steersman.api.errors import conflict
from steersman.controllers import owned
from steersman.kernel.object import Key, Object
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
KIND: Final = "v1/PersistentVolumeClaim"
GK: Final = ("", "PersistentVolumeClaim")
DELETE: Final = "Delete"
SET: Final = ("apps/v1", "StatefulSet")
POD: Final = ("v1", "Pod")


def ordinal_of(name: str) -> tuple[str, int]:
    """(name of the StatefulSet, ordinal) in a pod's name; ("", -1) where it has no such form."""
    parent, dash, number = name.rpartition("-")
    if not dash or not (number.isascii() and number.isdecimal()) or len(number) > 10 or int(number) > 2**31 - 1:
        return "", -1
    return parent, int(number)


def names(sts: Json, ordinal: int) -> Iterator[tuple[Json, str]]:
    """Each claim template with the name of its claim for an ordinal."""
    for template in sts["spec"].get("volumeClaimTemplates") or ():
        yield template, f"{template['metadata']['name']}-{sts['metadata']['name']}-{ordinal}"


def is_named(sts: Json, name: str) -> bool:
    """Whether a claim's name makes it one of a StatefulSet's, of whatever ordinal."""
    parent, ordinal = ordinal_of(name)
    return any(parent == given.rpartition("-")[0] for _, given in names(sts, ordinal))


def matter(claim: Object) -> tuple[Any, ...]:
    """What of a claim decides what becomes of it, and of its pod."""
    meta = claim.meta.value
    return claim.uid, "deletionTimestamp" in meta, meta.get("ownerReferences")


def volumes(sts: Json, ordinal: int) -> list[dict[str, Any]]:
    """The volumes that stand for the claims in a pod."""
    return [
        {"name": template["metadata"]["name"], "persistentVolumeClaim": {"claimName": name}}
        for template, name in names(sts, ordinal)
    ]


def with_storage(sts: Json, ordinal: int, spec: Json) -> dict[str, Any]:
    """A pod's spec with the volumes of its claims; its own of the same name give way."""
    claimed = volumes(sts, ordinal)
    taken = {each["name"] for each in claimed}
    rest = [each for each in spec.get("volumes") or () if each["name"] not in taken]
    return {**spec, "volumes": [*claimed, *rest]} if claimed else dict(spec)


def storage_matches(sts: Json, ordinal: int, spec: Json) -> bool:
    """Whether a pod's volumes are those of its claims."""
    has = {each["name"]: (each.get("persistentVolumeClaim") or EMPTY).get("claimName") for each in spec["volumes"]}
    return all(has.get(template["metadata"]["name"]) == name for template, name in names(sts, ordinal))


class Claims:
    """The claims of one StatefulSet during a reconcile."""

    def __init__(self, c: Client, sts: Json) -> None:
        self.c = c
        self.sts = sts
        policy = sts["spec"].get("persistentVolumeClaimRetentionPolicy") or EMPTY
        self.when_scaled: bool = policy.get("whenScaled") == DELETE
        self.when_deleted: bool = policy.get("whenDeleted") == DELETE

    def ensure(self, pod: Json) -> None:
        """Creates what is missing. Raises `Conflict` where a claim is being deleted: it has to go first; and
        `AlreadyExists` for one that is not seen yet, which may be in the same case."""
        for template, name in names(self.sts, ordinal_of(pod["metadata"]["name"])[1]):
            found = self._get(name)
            if found is None:
                self.c.create(self._body(template, name))
                where = f"Pod {pod['metadata']['name']} in StatefulSet {self.sts['metadata']['name']}"
                self.c.event(self.sts, "Normal", "SuccessfulCreate", f"Create Claim {name} {where} success")
            elif owned.is_terminating(found):
                raise conflict("persistentvolumeclaims", name, f"pvc {name} is being deleted")

    def is_stale(self, pod: Json) -> bool:
        """Whether a claim still belongs to an earlier pod of the same name, and will go with it."""
        if not self.when_scaled:
            return False
        uid = pod["metadata"].get("uid")
        return any(claim is not None and _stale(claim, POD, pod["metadata"]["name"], uid) for claim in self._of(pod))

    def matches(self, pod: Json) -> bool:
        """Whether the claims that are there are owned as the policy says."""
        return all(claim is None or self._fits(claim, pod) for claim in self._of(pod))

    def align(self, pod: Json) -> None:
        """Gives the claims the owners the policy wants."""
        for claim in self._of(pod):
            if claim is not None and not self._fits(claim, pod):
                patch = {
                    "metadata": {"uid": claim["metadata"]["uid"], "ownerReferences": self._owners(claim, pod) or None}
                }
                self.c.patch(claim, patch, rv=claim["metadata"]["resourceVersion"])

    # -- one claim -------------------------------------------------------------------------------------------------

    def _get(self, name: str) -> Any:
        return self.c.get(Key("", "PersistentVolumeClaim", self.sts["metadata"]["namespace"], name))

    def _of(self, pod: Json) -> Iterator[Any]:
        for _, name in names(self.sts, ordinal_of(pod["metadata"]["name"])[1]):
            yield self._get(name)

    def _body(self, template: Json, name: str) -> dict[str, Any]:
        meta = template["metadata"]
        labels = {**(meta.get("labels") or EMPTY), **(self.sts["spec"]["selector"].get("matchLabels") or EMPTY)}
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {**meta, "name": name, "namespace": self.sts["metadata"]["namespace"], "labels": labels},
            "spec": template["spec"],
        }

    def _fits(self, claim: Json, pod: Json) -> bool:
        """Whether the owners of a claim are as they should be, or such that it is not to be touched."""
        sts_meta, pod_meta = self.sts["metadata"], pod["metadata"]
        if _stale(claim, SET, sts_meta["name"], sts_meta["uid"]):
            return True
        if _stale(claim, POD, pod_meta["name"], pod_meta.get("uid")):
            return True
        by_set, by_pod = _owned_by(claim, sts_meta["uid"]), _owned_by(claim, pod_meta.get("uid"))
        if self._managed_elsewhere(claim, pod):
            return by_set is None and by_pod is None
        if any(each is not None and not each.get("controller") for each in (by_set, by_pod)):
            return False
        return (by_set is not None, by_pod is not None) == self._wanted(pod)

    def _wanted(self, pod: Json) -> tuple[bool, bool]:
        """(owned by the set, owned by the pod): the pod takes its claims along when it is scaled away."""
        condemned = self.when_scaled and not in_range(self.sts, ordinal_of(pod["metadata"]["name"])[1])
        return self.when_deleted and not condemned, condemned

    def _ours(self, ref: Json, pod: Json) -> bool:
        """Whether a reference means the StatefulSet or the pod, of whatever incarnation."""
        meant = (ref["apiVersion"], ref["kind"], ref["name"])
        return meant in ((*SET, self.sts["metadata"]["name"]), (*POD, pod["metadata"]["name"]))

    def _managed_elsewhere(self, claim: Json, pod: Json) -> bool:
        """Whether another controller manages the claim; of no concern where claims are retained."""
        if not self.when_scaled and not self.when_deleted:
            return False
        controller = owned.controller_of(claim)
        return controller is not None and not self._ours(controller, pod)

    def _owners(self, claim: Json, pod: Json) -> list[Any]:
        refs = [each for each in claim["metadata"].get("ownerReferences") or () if not self._ours(each, pod)]
        if self._managed_elsewhere(claim, pod):
            return refs
        by_set, by_pod = self._wanted(pod)
        if by_set:
            refs.append(owned.controller_ref(self.sts))
        if by_pod:
            refs.append(owned.controller_ref(pod))
        return refs


def in_range(sts: Json, ordinal: int) -> bool:
    """Whether an ordinal is one of those the StatefulSet asks for."""
    first = start(sts)
    return bool(first <= ordinal < first + sts["spec"]["replicas"])


def start(sts: Json) -> int:
    """The first ordinal."""
    return (sts["spec"].get("ordinals") or EMPTY).get("start") or 0


def _stale(claim: Json, kind: tuple[str, str], name: str, uid: str | None) -> bool:
    """Whether a claim is owned by an earlier incarnation."""
    for each in claim["metadata"].get("ownerReferences") or ():
        if (each["apiVersion"], each["kind"], each["name"]) == (*kind, name):
            return each["uid"] != uid  # type: ignore[no-any-return]
    return False


def _owned_by(claim: Json, uid: str | None) -> Json | None:
    for each in claim["metadata"].get("ownerReferences") or ():
        if each["uid"] == uid:
            return each  # type: ignore[no-any-return]
    return None
