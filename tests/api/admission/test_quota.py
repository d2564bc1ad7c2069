"""ResourceQuota in admission: what is counted, what is refused, in Kubernetes' words."""

from __future__ import annotations

import pytest

from steersman.api import quota
from steersman.api.kinds import Kinds
from tests.api.admission.scene import admitted, generated
from tests.api.cluster import pod, refused

KINDS = Kinds.builtin()
POD = KINDS.get("", "Pod")


def limited(hard, **spec):
    c = admitted()
    c.create("v1/ResourceQuota", "q", spec={"hard": hard, **spec})
    return c


def asking(cpu="1", memory=None, **more):
    requests = {name: amount for name, amount in (("cpu", cpu), ("memory", memory)) if amount}
    resources = {"requests": requests, "limits": requests}
    return {"containers": [{"name": "app", "image": "a:1", "resources": resources}], **more}


def test_a_pod_too_many_is_refused_with_all_numbers():
    c = limited({"pods": "2", "requests.cpu": "3"})
    c.create("v1/Pod", "a", spec=asking("1500m"))
    error = refused(generated, c, "v1/Pod", "web-", spec=asking("2"))
    assert (error.code, error.reason) == (403, "Forbidden")
    assert error.message == (
        'pods "web-00007" is forbidden: exceeded quota: q, requested: requests.cpu=2, used: requests.cpu=1500m, '
        "limited: requests.cpu=3"
    )
    c.create("v1/Pod", "b", spec=asking("1500m"))
    error = refused(c.create, "v1/Pod", "c", spec=asking("1"))
    assert error.message == (
        'pods "c" is forbidden: exceeded quota: q, requested: pods=1,requests.cpu=1, used: pods=2,requests.cpu=3, '
        "limited: pods=2,requests.cpu=3"
    )
    c.delete("v1/Pod", "a")
    c.create("v1/Pod", "c", spec=asking("1"))


def test_containers_must_name_what_is_limited():
    c = limited({"cpu": "3", "limits.memory": "1Gi"})
    error = refused(c.create, "v1/Pod", "p", spec=pod())
    assert error.message == (
        'pods "p" is forbidden: failed quota: q: must specify cpu for: app; limits.memory for: app'
    )
    c = limited({"pods": "3", "requests.ephemeral-storage": "1Gi"})
    c.create("v1/Pod", "p", spec=pod())


def test_pods_that_are_done_count_as_objects_only():
    c = limited({"pods": "1", "count/pods": "2"})
    c.create("v1/Pod", "a", spec=pod())
    c.merge("v1/Pod", "a", {"status": {"phase": "Succeeded"}}, sub="status")
    c.create("v1/Pod", "b", spec=pod())
    c.merge("v1/Pod", "b", {"status": {"phase": "Failed"}}, sub="status")
    error = refused(c.create, "v1/Pod", "c", spec=pod())
    assert "requested: count/pods=1, used: count/pods=2, limited: count/pods=2" in error.message


def test_a_pod_that_should_have_been_gone_does_not_count():
    value = {
        "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30},
        "spec": asking("1"),
    }
    start = 1_767_225_600_000_000
    assert "pods" in quota.usage(POD, value, start + 30_000_000)
    assert "pods" not in quota.usage(POD, value, start + 30_000_001)


@pytest.mark.parametrize(
    ("scope", "spec", "counted"),
    [
        ("BestEffort", pod(), True),
        ("BestEffort", asking(), False),
        ("NotBestEffort", asking(), True),
        ("Terminating", pod(activeDeadlineSeconds=5), True),
        ("NotTerminating", pod(activeDeadlineSeconds=5), False),
        ("PriorityClass", pod(priorityClassName="high"), True),
        ("PriorityClass", pod(), False),
        ("CrossNamespacePodAffinity", pod(), False),
    ],
)
def test_scopes(scope, spec, counted):
    assert quota.counts(POD, {"spec": spec}, {"hard": {"pods": "1"}, "scopes": [scope]}) == counted


@pytest.mark.parametrize(
    ("operator", "values", "counted"),
    [
        ("In", ["high"], True),
        ("In", ["low"], False),
        ("NotIn", ["low"], True),
        ("NotIn", ["high"], False),
        ("Exists", [], True),
        ("DoesNotExist", [], False),
    ],
)
def test_a_scope_selector_chooses_priority_classes(operator, values, counted):
    one = {"scopeName": "PriorityClass", "operator": operator, "values": values}
    spec = {"hard": {"pods": "1"}, "scopeSelector": {"matchExpressions": [one]}}
    assert quota.counts(POD, {"spec": pod(priorityClassName="high")}, spec) == counted


def test_init_containers_sidecars_and_overhead_count():
    def container(cpu, **more):
        return {"name": "x", "image": "a:1", "resources": {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}, **more}

    spec = {
        "containers": [container("1")],
        "initContainers": [container("500m", restartPolicy="Always"), container("2")],
        "overhead": {"cpu": "100m"},
    }
    using = quota.usage(POD, {"metadata": {}, "spec": spec}, 0)
    assert {name: str(using[name]) for name in ("cpu", "requests.cpu", "limits.cpu", "pods")} == {
        "cpu": "2600m",
        "requests.cpu": "2600m",
        "limits.cpu": "2600m",
        "pods": "1",
    }


def test_extended_resources_and_huge_pages_are_counted_as_requests():
    resources = {"requests": {"example.com/gpu": "2", "hugepages-2Mi": "4Mi"}}
    spec = {"containers": [{"name": "a", "image": "a:1", "resources": resources}]}
    using = quota.usage(POD, {"metadata": {}, "spec": spec}, 0)
    assert str(using["requests.example.com/gpu"]) == "2"
    assert "example.com/gpu" not in using
    assert str(using["hugepages-2Mi"]) == str(using["requests.hugepages-2Mi"]) == "4Mi"


def test_claims_by_class_and_growth():
    c = limited({"requests.storage": "3Gi", "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1"})
    c.create("storage.k8s.io/v1/StorageClass", "gold", provisioner="x", allowVolumeExpansion=True)

    def claim(size, name):
        found = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
        return {**found, "storageClassName": name}

    c.create("v1/PersistentVolumeClaim", "a", spec=claim("1Gi", "gold"))
    error = refused(c.create, "v1/PersistentVolumeClaim", "b", spec=claim("1Gi", "gold"))
    assert "exceeded quota: q, requested: gold.storageclass.storage.k8s.io/persistentvolumeclaims=1" in error.message
    c.merge("v1/PersistentVolumeClaim", "a", {"status": {"phase": "Bound"}}, sub="status")
    grow = {"spec": {"resources": {"requests": {"storage": "4Gi"}}}}
    error = refused(c.merge, "v1/PersistentVolumeClaim", "a", grow)
    assert "requested: requests.storage=3Gi, used: requests.storage=1Gi, limited: requests.storage=3Gi" in error.message
    grow["spec"]["resources"]["requests"]["storage"] = "3Gi"
    c.merge("v1/PersistentVolumeClaim", "a", grow)


def test_services_change_their_type_within_the_quota():
    c = limited({"services": "2", "services.nodeports": "1", "services.loadbalancers": "0"})
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 81}]
    c.create("v1/Service", "a", spec={"ports": ports})
    error = refused(c.merge, "v1/Service", "a", {"spec": {"type": "NodePort"}})
    assert "requested: services.nodeports=2, used: services.nodeports=0, limited: services.nodeports=1" in error.message
    error = refused(c.create, "v1/Service", "b", spec={"ports": ports[:1], "type": "LoadBalancer"})
    assert "services.loadbalancers=1" in error.message


def test_objects_of_any_kind_are_counted():
    c = limited({"count/deployments.apps": "0", "configmaps": "1"})
    c.create("v1/ConfigMap", "a")
    error = refused(c.create, "v1/ConfigMap", "b")
    assert error.message == (
        'configmaps "b" is forbidden: exceeded quota: q, requested: configmaps=1, used: configmaps=1, '
        "limited: configmaps=1"
    )
    c.create("v1/Secret", "s")


def test_quotas_bind_their_own_namespace_and_never_a_status():
    c = limited({"pods": "1"})
    c.create("v1/Namespace", "other")
    c.create("v1/ServiceAccount", "default", namespace="other")
    c.create("v1/Pod", "a", spec=pod())
    c.create("v1/Pod", "a", spec=pod(), namespace="other")
    c.create("v1/Pod", "b", spec=pod(), namespace="other")
    c.merge("v1/Pod", "a", {"status": {"phase": "Running"}}, sub="status")
    c.merge("v1/Pod", "a", {"metadata": {"labels": {"x": "y"}}})
