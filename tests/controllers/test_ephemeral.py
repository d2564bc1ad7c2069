"""Claims of ephemeral volumes."""

from steersman.controllers.ephemeral import EphemeralVolumes
from steersman.kernel.object import Key
from tests.controllers.services import pod
from tests.controllers.worlds import client, explore, make, objects, settle, user

CLAIM = Key("", "PersistentVolumeClaim", "default", "p000-data")
SPEC = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
TEMPLATE = {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}, "spec": SPEC}
POD = pod(0, volumes=[{"name": "data", "ephemeral": {"volumeClaimTemplate": TEMPLATE}}])


def claims(w):
    return objects(w, "v1/PersistentVolumeClaim")


def test_a_claim_is_made_of_the_template_and_is_the_pods():
    w = settle(make([EphemeralVolumes], [POD]))
    (claim,) = claims(w)
    assert claim.metadata.name == "p000-data" and claim.spec.resources.requests.storage == "1Gi"
    assert (claim.metadata.labels, claim.metadata.annotations) == ({"a": "b"}, {"c": "d"})
    (owner,) = claim.metadata.ownerReferences
    assert (owner.kind, owner.name, owner.controller, owner.blockOwnerDeletion) == ("Pod", "p000", True, True)
    client(w).delete(CLAIM)
    settle(w)
    assert [each.metadata.resourceVersion > claim.metadata.resourceVersion for each in claims(w)] == [True]


def test_somebody_elses_claim_is_left_alone():
    meta = {"name": "p000-data", "namespace": "default"}
    w = make(
        [EphemeralVolumes], [{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": SPEC}, POD]
    )
    for _ in range(3):
        settle_once(w)
    assert "ownerReferences" not in claims(w)[0].metadata


def settle_once(w):
    try:
        settle(w, limit=10)
    except AssertionError as busy:
        assert "still busy" in str(busy)  # it is tried again and again, as in Kubernetes


def test_every_order_ends_with_the_claim():
    step = user("spoil", lambda c: c.delete(CLAIM))
    found = explore(lambda: make([EphemeralVolumes], [POD], [step], lag=1, budgets=(1, 0)))
    assert found.states > 5 and found.terminal and not found.findings
    for w in found.terminal:
        assert [each.metadata.ownerReferences[0].name for each in claims(w)] == ["p000"]
