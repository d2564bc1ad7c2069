"""What a write to the status keeps of the metadata that is sent with it, and what the server adds to a status."""

import pytest

from steersman.api import status_part
from steersman.kernel.object import Section
from steersman.kernel.value import freeze
from tests.api.cluster import deployment, pod

CIDR = {"cidrs": ["10.0.0.0/24"]}
KINDS = [
    ("v1/Pod", pod(), {"labels", "annotations"}),
    ("apps/v1/Deployment", deployment(1), {"annotations", "ownerReferences"}),
    ("networking.k8s.io/v1/ServiceCIDR", CIDR, set()),
]
META = {
    "labels": {"new": "1"},
    "annotations": {"new": "1"},
    "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}],
}


@pytest.mark.parametrize(("kind", "spec", "taken"), KINDS, ids=[kind for kind, _, _ in KINDS])
@pytest.mark.parametrize("verb", ["update", "merge"])
def test_metadata_of_a_status_write_is_taken_by_kind(cluster, kind, spec, taken, verb):
    cluster.create(kind, "a", spec=spec)
    body = cluster.get(kind, "a")
    body["metadata"].update(META)
    if verb == "update":
        cluster.request("update", kind, "a", body, "status")
    else:
        cluster.merge(kind, "a", {"metadata": META, "status": {}}, sub="status")
    after = cluster.get(kind, "a")["metadata"]
    assert {field for field in META if after.get(field) == META[field]} == taken


def test_labels_that_a_status_write_leaves_out_are_gone(cluster):
    cluster.create("v1/Pod", "a", metadata={"labels": {"x": "1"}}, spec=pod())
    body = cluster.get("v1/Pod", "a")
    del body["metadata"]["labels"]
    cluster.request("update", "v1/Pod", "a", body, "status")
    assert "labels" not in cluster.get("v1/Pod", "a")["metadata"]


def test_a_pod_keeps_its_qos_class_and_what_was_seen(cluster):
    old = {"qosClass": "BestEffort", "observedGeneration": 2, "conditions": [{"type": "A", "observedGeneration": 2}]}
    new = {"phase": "Running", "conditions": [{"type": "A", "status": "True"}, {"type": "B"}]}
    kind = cluster.api.kinds.by_api_version("v1", "Pod")
    conditions = [{"type": "A", "status": "True", "observedGeneration": 2}, {"type": "B"}]
    kept = {"qosClass": "BestEffort", "observedGeneration": 2, "conditions": conditions}
    assert status_part.prepared(kind, Section(freeze(old)), new, "") == {**new, **kept}
    assert (
        status_part.prepared(kind, Section(freeze(old)), {**old, "qosClass": "Burstable"}, "")["qosClass"]
        == "Burstable"
    )


def test_the_phase_of_a_volume_is_timed(cluster):
    kind = cluster.api.kinds.by_api_version("v1", "PersistentVolume")
    old = {"phase": "Pending", "lastPhaseTransitionTime": "t0"}
    assert status_part.prepared(kind, Section(freeze(old)), {"phase": "Pending"}, "t1") == old
    assert status_part.prepared(kind, Section(freeze(old)), {"phase": "Bound"}, "t1")["lastPhaseTransitionTime"] == "t1"
    told = {"phase": "Bound", "lastPhaseTransitionTime": "t2"}
    assert status_part.prepared(kind, Section(freeze(old)), told, "t1") == told
