"""LimitRanger: defaults and bounds of containers, pods and claims."""

from __future__ import annotations

import pytest

from tests.api.admission.scene import admitted, generated
from tests.api.cluster import refused


def limited(*limits):
    c = admitted()
    c.create("v1/LimitRange", "limits", spec={"limits": list(limits)})
    return c


def pod_with(requests=None, limits=None, **more):
    found = {name: part for name, part in (("requests", requests), ("limits", limits)) if part}
    return {"containers": [{"name": "app", "image": "app:1", "resources": found}], **more}


def claim(size):
    return {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}


def test_containers_get_defaults_and_the_pod_says_so():
    c = limited({"type": "Container", "default": {"cpu": "500m", "memory": "1Gi"}, "defaultRequest": {"cpu": "100m"}})
    c.create("v1/Pod", "p", spec=pod_with(limits={"cpu": "2"}))
    found = c.get("v1/Pod", "p")
    assert found["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "2", "memory": "1Gi"},
        "requests": {"cpu": "2", "memory": "1Gi"},
    }
    assert found["metadata"]["annotations"] == {
        "kubernetes.io/limit-ranger": "LimitRanger plugin set: memory request for container app; "
        "memory limit for container app"
    }
    assert found["status"]["qosClass"] == "Guaranteed"
    assert found["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "2", "memory": "1Gi"}


def test_a_limit_range_completes_itself():
    c = limited({"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "100m", "memory": "1Mi"}})
    (item,) = c.get("v1/LimitRange", "limits")["spec"]["limits"]
    assert item["default"] == {"cpu": "2"}
    assert item["defaultRequest"] == {"cpu": "2", "memory": "1Mi"}


@pytest.mark.parametrize(
    ("item", "requests", "limits", "text"),
    [
        ({"min": {"cpu": "1"}}, {"cpu": "500m"}, None, "minimum cpu usage per Container is 1, but request is 500m"),
        (
            {"max": {"memory": "1Gi"}, "default": {"memory": "1Gi"}},
            {"memory": "1Mi"},
            {"memory": "2Gi"},
            "maximum memory usage per Container is 1Gi, but limit is 2Gi",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {"cpu": "1"},
            {"cpu": "3"},
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            None,
            None,
            "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
        ),
    ],
)
def test_bounds_of_a_container(item, requests, limits, text):
    c = limited({"type": "Container", **item})
    error = refused(c.create, "v1/Pod", "p", spec=pod_with(requests, limits))
    assert (error.code, error.message) == (403, f'pods "p" is forbidden: {text}')


def test_bounds_of_a_pod_are_on_its_sum_and_all_that_is_wrong_is_told():
    c = limited({"type": "Pod", "max": {"cpu": "1", "memory": "1Gi"}})
    one = {"image": "a:1", "resources": {"limits": {"cpu": "600m"}}}
    error = refused(generated, c, "v1/Pod", "web-", spec={"containers": [{"name": "a", **one}, {"name": "b", **one}]})
    assert error.message == (
        'pods "web-00006" is forbidden: [maximum cpu usage per Pod is 1, but limit is 1200m, '
        "maximum memory usage per Pod is 1Gi.  No limit is specified]"
    )


def test_bounds_of_claims_hold_for_changes_too():
    c = limited({"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}})
    for size, text in (("500Mi", "minimum storage usage per"), ("3Gi", "maximum storage usage per")):
        bound = "1Gi" if text.startswith("min") else "2Gi"
        error = refused(c.create, "v1/PersistentVolumeClaim", "c", spec=claim(size))
        assert error.message == (
            f'persistentvolumeclaims "c" is forbidden: {text} PersistentVolumeClaim is {bound}, but request is {size}'
        )
    c.create("v1/PersistentVolumeClaim", "c", spec=claim("1Gi"))


def test_pods_are_not_judged_again_when_they_change():
    c = admitted()
    c.create("v1/Pod", "p", spec=pod_with())
    c.create("v1/LimitRange", "limits", spec={"limits": [{"type": "Pod", "max": {"cpu": "1"}}]})
    c.merge("v1/Pod", "p", {"metadata": {"labels": {"a": "b"}}})
