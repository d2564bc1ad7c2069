"""managedFields after writes that are no apply: who owns what, since when, and how many entries there may be."""

import pytest

from steersman.kernel.fieldset import from_json
from tests.api.cluster import Cluster, crd, deployment, pod

DEPLOYMENT, CONFIG, POD = "apps/v1/Deployment", "v1/ConfigMap", "v1/Pod"
CONTAINER = {
    ".": {},
    "f:image": {},
    "f:imagePullPolicy": {},
    "f:name": {},
    "f:resources": {},
    "f:terminationMessagePath": {},
    "f:terminationMessagePolicy": {},
}


def test_a_created_deployment_is_owned_as_kubectl_create_shows_it(cluster):
    """The output of `kubectl create deployment web --image=app:1` and `kubectl get -o yaml --show-managed-fields`."""
    cluster.create(DEPLOYMENT, "web", metadata={"labels": {"app": "web"}}, spec=deployment(1))
    assert cluster.managed(DEPLOYMENT, "web") == {
        ("test", "Update", ""): {
            "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
            "f:spec": {
                "f:progressDeadlineSeconds": {},
                "f:replicas": {},
                "f:revisionHistoryLimit": {},
                "f:selector": {},
                "f:strategy": {"f:rollingUpdate": {".": {}, "f:maxSurge": {}, "f:maxUnavailable": {}}, "f:type": {}},
                "f:template": {
                    "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                    "f:spec": {
                        "f:containers": {'k:{"name":"app"}': CONTAINER},
                        "f:dnsPolicy": {},
                        "f:restartPolicy": {},
                        "f:schedulerName": {},
                        "f:securityContext": {},
                        "f:terminationGracePeriodSeconds": {},
                    },
                },
            },
        }
    }


def test_a_created_pod_and_its_status(cluster):
    spec = pod(volumes=[{"name": "v", "emptyDir": {}}])
    cluster.create(POD, "web", manager="kubectl", spec=spec)
    owned = cluster.managed(POD, "web")[("kubectl", "Update", "")]
    assert owned == {
        "f:spec": {
            "f:containers": {'k:{"name":"app"}': CONTAINER},
            "f:dnsPolicy": {},
            "f:enableServiceLinks": {},
            "f:restartPolicy": {},
            "f:schedulerName": {},
            "f:securityContext": {},
            "f:terminationGracePeriodSeconds": {},
            "f:volumes": {".": {}, 'k:{"name":"v"}': {".": {}, "f:emptyDir": {}, "f:name": {}}},
        }
    }
    status = {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
        "podIP": "10.0.0.1",
        "podIPs": [{"ip": "10.0.0.1"}],
        "containerStatuses": [{"name": "app", "ready": True, "restartCount": 0, "image": "i", "imageID": "j"}],
    }
    cluster.merge(POD, "web", {"status": status}, manager="kubelet", sub="status")
    assert cluster.managed(POD, "web")[("kubelet", "Update", "status")] == {
        "f:status": {
            "f:conditions": {".": {}, 'k:{"type":"Ready"}': {".": {}, "f:status": {}, "f:type": {}}},
            "f:containerStatuses": {},
            "f:phase": {},
            "f:podIP": {},
            "f:podIPs": {".": {}, 'k:{"ip":"10.0.0.1"}': {".": {}, "f:ip": {}}},
        }
    }


@pytest.mark.parametrize(
    ("kind", "parts", "owned"),
    [
        (CONFIG, {"data": {"a": "1"}}, {"f:data": {".": {}, "f:a": {}}}),
        ("v1/Namespace", {}, {"f:metadata": {"f:labels": {".": {}, "f:kubernetes.io/metadata.name": {}}}}),
        (
            "v1/PersistentVolumeClaim",
            {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
            {
                "f:spec": {
                    "f:accessModes": {},
                    "f:resources": {"f:requests": {".": {}, "f:storage": {}}},
                    "f:volumeMode": {},
                }
            },
        ),
        (
            "v1/Service",
            {"spec": {"ports": [{"port": 80}], "selector": {"app": "web"}}},
            {
                "f:spec": {
                    "f:internalTrafficPolicy": {},
                    "f:ports": {
                        ".": {},
                        'k:{"port":80,"protocol":"TCP"}': {
                            ".": {},
                            "f:port": {},
                            "f:protocol": {},
                            "f:targetPort": {},
                        },
                    },
                    "f:selector": {},
                    "f:sessionAffinity": {},
                    "f:type": {},
                }
            },
        ),
        (
            "coordination.k8s.io/v1/Lease",
            {"spec": {"holderIdentity": "x"}},
            {"f:spec": {"f:holderIdentity": {}}},
        ),
    ],
)
def test_created_objects(cluster, kind, parts, owned):
    cluster.create(kind, "web", **parts)
    assert cluster.managed(kind, "web") == {("test", "Update", ""): owned}


def test_system_metadata_is_nobodys(cluster):
    meta = {"finalizers": ["e.io/a"], "annotations": {"x": "1"}, "generateName": "web-"}
    cluster.create(CONFIG, "c", metadata=meta)
    assert cluster.managed(CONFIG, "c") == {
        ("test", "Update", ""): {
            "f:metadata": {
                "f:annotations": {".": {}, "f:x": {}},
                "f:finalizers": {".": {}, 'v:"e.io/a"': {}},
                "f:generateName": {},
            }
        }
    }
    cluster.delete(CONFIG, "c")
    assert len(cluster.managed(CONFIG, "c")) == 1


def test_owner_references_are_items(cluster):
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u1", "controller": True}
    cluster.create(CONFIG, "c", metadata={"ownerReferences": [owner]})
    (owned,) = cluster.managed(CONFIG, "c").values()
    assert owned["f:metadata"]["f:ownerReferences"] == {".": {}, 'k:{"uid":"u1"}': {}}


def test_an_update_takes_what_it_changes(cluster):
    cluster.create(CONFIG, "c", manager="a", data={"x": "1", "y": "1", "z": "1"})
    cluster.merge(CONFIG, "c", {"data": {"x": "2", "y": None, "n": "1"}}, manager="b")
    assert cluster.managed(CONFIG, "c") == {
        ("a", "Update", ""): {"f:data": {".": {}, "f:z": {}}},
        ("b", "Update", ""): {"f:data": {"f:n": {}, "f:x": {}}},
    }
    cluster.merge(CONFIG, "c", {"data": {"z": "9"}}, manager="b")
    cluster.merge(CONFIG, "c", {"data": {"n": None}}, manager="c")  # owns nothing: what it did is not there
    assert cluster.managed(CONFIG, "c") == {
        ("a", "Update", ""): {"f:data": {}},
        ("b", "Update", ""): {"f:data": {"f:x": {}, "f:z": {}}},
    }
    cluster.merge(CONFIG, "c", {"data": None}, manager="c")
    assert cluster.managed(CONFIG, "c") == {}


def test_the_order_of_items_belongs_to_nobody(cluster):
    spec = pod(containers=[{"name": "a", "image": "i"}, {"name": "b", "image": "i"}])
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    cluster.create(DEPLOYMENT, "web", manager="a", spec={**deployment(), "template": template})
    before = cluster.managed(DEPLOYMENT, "web")
    obj = cluster.get(DEPLOYMENT, "web")
    obj["spec"]["template"]["spec"]["containers"].reverse()
    cluster.request("update", DEPLOYMENT, "web", obj, manager="b")
    names = [c["name"] for c in cluster.get(DEPLOYMENT, "web")["spec"]["template"]["spec"]["containers"]]
    assert names == ["b", "a"]
    assert cluster.managed(DEPLOYMENT, "web") == before


def test_a_null_that_stays_is_no_change():
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {"note": {"type": "string", "nullable": True}, "size": {"type": "integer"}},
            }
        },
    }
    cluster = Cluster(crd(schema))
    cluster.create("v1/Namespace", "shop")
    cluster.create("example.com/v1/Widget", "w", manager="a", spec={"note": None, "size": 1})
    cluster.merge("example.com/v1/Widget", "w", {"spec": {"size": 2}}, manager="b")
    managed = cluster.managed("example.com/v1/Widget", "w")
    assert managed[("b", "Update", "")] == {"f:spec": {"f:size": {}}}
    assert managed[("a", "Update", "")] == {"f:spec": {".": {}, "f:note": {}}}


def test_entries_by_subresource_are_apart(cluster):
    cluster.create(DEPLOYMENT, "web", manager="m", spec=deployment())
    cluster.merge(DEPLOYMENT, "web", {"status": {"replicas": 1}}, manager="m", sub="status")
    assert set(cluster.managed(DEPLOYMENT, "web")) == {("m", "Update", ""), ("m", "Update", "status")}


def test_the_oldest_updaters_are_merged(cluster):
    cluster.apply(CONFIG, "c", manager="applier", data={"k": "v"})
    for number in range(15):
        cluster.now += 60
        cluster.merge(CONFIG, "c", {"data": {f"k{number:02d}": "v"}}, manager=f"m{number:02d}")
    managed = cluster.managed(CONFIG, "c")
    assert [name for name, _, _ in managed] == ["applier", "ancient-changes", *[f"m{n:02d}" for n in range(6, 15)]]
    assert managed[("ancient-changes", "Update", "")] == {"f:data": {f"f:k{number:02d}": {} for number in range(6)}}
    assert cluster.times(CONFIG, "c")[("ancient-changes", "Update")] == "2026-05-28T20:32:40Z"


def test_equal_ownership_is_one_object(cluster):
    """What makes managedFields affordable: objects of one template share their sets, below the object and the part."""
    for name in ("a", "b"):
        cluster.create(POD, name, metadata={"labels": {"app": "x"}}, spec=pod())
        cluster.merge(POD, name, {"status": {"phase": "Running"}}, manager="kubelet", sub="status")
    for one, two in zip(cluster.read(POD, "a").managers, cluster.read(POD, "b").managers, strict=True):
        assert one.fields == two.fields
        for part, twin in zip(one.fields.kids, two.fields.kids, strict=True):
            assert [id(kid) for kid in part.kids] == [id(kid) for kid in twin.kids]
    assert (
        from_json(cluster.read(POD, "a").managers[0].to_json()["fieldsV1"]) == cluster.read(POD, "a").managers[0].fields
    )
