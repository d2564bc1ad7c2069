"""The fields by which objects can be selected, beside name and namespace."""

from __future__ import annotations

import pytest

from steersman.api.field_select import FieldSelector
from steersman.api.kinds import Kinds
from steersman.api.selectable import selectable, selected
from tests.api.cluster import Cluster, refused

POD = {"containers": [{"name": "c", "image": "i"}]}


@pytest.mark.parametrize(
    ("kind", "body", "text", "matches"),
    [
        ("v1/Pod", {"spec": {**POD, "hostNetwork": True}}, "spec.hostNetwork=true", True),
        ("v1/Pod", {"spec": POD}, "spec.hostNetwork=false", True),
        ("v1/Pod", {"spec": POD}, "spec.host=n", False),
        ("v1/Pod", {"spec": POD}, "status.podIPs=", True),
        ("v1/Service", {"spec": {"type": "ExternalName", "externalName": "a.b"}}, "spec.type=ExternalName", True),
        ("v1/Event", {"involvedObject": {"namespace": "shop"}, "source": {"component": "x"}}, "source=x", True),
        ("v1/Event", {"involvedObject": {"namespace": "shop"}, "reportingComponent": "y"}, "source=y", True),
        ("batch/v1/Job", {"spec": {"template": {"spec": {"restartPolicy": "Never", **POD}}}},
         "status.successful=0", True),
    ],
)  # fmt: skip
def test_what_is_selected(kind, body, text, matches):
    cluster = Cluster()
    cluster.create("v1/Namespace", "shop")
    cluster.create(kind, "a", **body)
    found = cluster.api.kinds.find(kind)
    (obj,) = [obj for obj in cluster.store.list(found.gk) if obj.key.name == "a"]
    selector = FieldSelector.parse(text, selectable(found))
    assert selector.matches(lambda path: selected(obj, path)) is matches


def test_fields_that_cannot_be_selected():
    kinds = Kinds.builtin()
    for group, kind in (("apps", "ReplicaSet"), ("", "PersistentVolumeClaim")):
        error = refused(FieldSelector.parse, "status.replicas=1", selectable(kinds.get(group, kind)))
        assert error.message.startswith('"status.replicas" is not a known field selector')
