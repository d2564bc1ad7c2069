"""Claims of devices: made of templates, reserved for pods, freed and deleted when these end."""

from steersman.controllers.resourceclaims import PROTECTION, ResourceClaims
from steersman.kernel.object import Key
from tests.controllers.services import pod
from tests.controllers.worlds import client, explore, make, objects, one, put, settle, user

CLAIM = "resource.k8s.io/v1/ResourceClaim"
POD_KEY = Key("", "Pod", "default", "p000")
SPEC = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "gpu", "namespace": "default"},
    "spec": {"metadata": {"labels": {"a": "b"}}, "spec": SPEC},
}
POD = pod(0, resourceClaims=[{"name": "card", "resourceClaimTemplateName": "gpu"}])


def claims(w):
    return objects(w, CLAIM)


def allocate(w, **holder):
    """What the scheduler does."""
    (claim,) = claims(w)
    c = client(w)
    claim = c.patch(claim, {"metadata": {"finalizers": [PROTECTION]}})
    status = {"allocation": {"devices": {}}, "reservedFor": [{"resource": "pods", **holder}] if holder else []}
    c.patch_status(claim, status)


def test_a_claim_is_made_of_the_template_and_the_pod_says_which():
    w = settle(make([ResourceClaims], [TEMPLATE, POD]))
    (claim,) = claims(w)
    uid = one(w, "v1/Pod", "p000").metadata.uid
    assert claim.metadata.generateName == "p000-card-" and claim.metadata.labels == {"a": "b"}
    assert claim.metadata.annotations == {"resource.kubernetes.io/pod-claim-name": "card"}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p000", "uid": uid, "controller": True}
    assert claim.metadata.ownerReferences == [owner]
    said = [{"name": "card", "resourceClaimName": claim.metadata.name}]
    assert one(w, "v1/Pod", "p000").status.resourceClaimStatuses == said
    client(w).delete(claim)
    settle(w)
    (again,) = claims(w)
    assert again.metadata.name != claim.metadata.name
    assert one(w, "v1/Pod", "p000").status.resourceClaimStatuses[0].resourceClaimName == again.metadata.name


def test_a_template_that_comes_late_is_waited_for():
    w = make([ResourceClaims], [POD])
    try:
        settle(w, limit=20)
    except AssertionError as busy:
        assert "still busy" in str(busy)
    assert not claims(w)
    put(w, TEMPLATE)
    settle(w)
    assert len(claims(w)) == 1


def test_an_allocated_claim_is_reserved_for_a_bound_pod_and_freed_when_it_ends():
    w = settle(make([ResourceClaims], [TEMPLATE, {**POD, "spec": {**POD["spec"], "nodeName": "n"}}]))
    allocate(w)
    client(w).patch(POD_KEY, {"metadata": {"labels": {"new": "yes"}}})
    settle(w)
    (claim,) = claims(w)
    uid = one(w, "v1/Pod", "p000").metadata.uid
    assert claim.status.reservedFor == [{"resource": "pods", "name": "p000", "uid": uid}]
    client(w).patch_status(POD_KEY, {"phase": "Succeeded"})
    settle(w)
    assert claims(w) == []


def test_a_claim_somebody_made_is_freed_and_stays():
    meta = {"name": "mine", "namespace": "default"}
    mine = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": meta, "spec": SPEC}
    user_of = pod(0, resourceClaims=[{"name": "card", "resourceClaimName": "mine"}])
    w = settle(make([ResourceClaims], [mine, user_of]))
    allocate(w, name="p000", uid=one(w, "v1/Pod", "p000").metadata.uid)
    settle(w)
    assert claims(w)[0].status.reservedFor
    client(w).delete(POD_KEY, grace=0)
    settle(w)
    (claim,) = claims(w)
    assert not claim.status.get("reservedFor") and not claim.status.get("allocation")
    assert not claim.metadata.get("finalizers")


def test_every_order_ends_with_one_claim_or_none_of_a_pod_that_ended():
    ends = user("end", lambda c: c.patch_status(POD_KEY, {"phase": "Succeeded"}))
    found = explore(lambda: make([ResourceClaims], [TEMPLATE, POD], [ends], lag=1), limit=20_000)
    assert found.states > 5 and found.terminal and not found.findings
    for w in found.terminal:
        assert len(claims(w)) == (0 if one(w, "v1/Pod", "p000").status.phase == "Succeeded" else 1)
