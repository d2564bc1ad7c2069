"""The subresources ephemeralcontainers and resize of a pod, through the request machine."""

import pytest

from steersman.api.errors import ApiError
from steersman.kernel.effect import Request
from steersman.kernel.object import Key
from steersman.serve.memory import MemoryBackend

KEY = Key("", "Pod", "default", "a")
NOW = 1_790_000_000_000_000
RESOURCES = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "2Gi"}}


class Cluster:
    """One pod in a store."""

    def __init__(self, needs=RESOURCES, status=None, **spec):
        self.backend = MemoryBackend(clock=lambda: NOW)
        self.backend.bootstrap()
        container = {"name": "c", "image": "nginx:1", "resources": needs}
        meta = {"name": "a", "namespace": "default", **spec.pop("metadata", {})}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container], **spec}}
        self.write("create", body)
        if status:
            self.write("patch", {"status": status}, "status", patch="merge")

    @property
    def pod(self):
        return self.backend.store.get(KEY)

    def write(self, verb, body, part="", **options):
        options = {"validation": "Strict"} | options
        request = Request(verb, KEY, body, part, actor="me", manager="me", now=NOW, options=options)
        return self.backend.write_now(request).obj

    def refused(self, verb, body, part, **options):
        with pytest.raises(ApiError) as found:
            self.write(verb, body, part, **options)
        assert found.value.code == 422, found.value
        return [str(cause) for cause in found.value.causes]

    def resize(self, resources, **options):
        return {"spec": {"containers": [{"name": "c", "resources": resources}]}}


def debugger(name="debug", **more):
    return {"name": name, "image": "busybox:1", **more}


def test_who_asks_a_subresource_for_more_owns_what_it_does_not_change():
    cluster = Cluster()
    before = cluster.pod
    after = cluster.write("patch", {"spec": {"hostname": "x"}}, "ephemeralcontainers", patch="merge")
    assert after.rv > before.rv and "hostname" not in after.value["spec"]
    (entry,) = [m for m in after.managers if m.subresource == "ephemeralcontainers"]
    assert entry.fields.paths() == [("f:spec", "f:hostname")]
    again = cluster.write("patch", {"metadata": {"labels": {}}}, "ephemeralcontainers", patch="merge")
    assert again.rv == after.rv


def test_ephemeral_containers_are_added_and_stay():
    cluster = Cluster()
    before = cluster.pod
    patch = {"spec": {"ephemeralContainers": [debugger(targetContainerName="c")]}}
    after = cluster.write("patch", patch, "ephemeralcontainers", patch="strategic")
    found = after.value["spec"]["ephemeralContainers"][0]
    assert found["name"] == "debug" and found["imagePullPolicy"] == "IfNotPresent"
    assert after.value["metadata"]["generation"] == before.value["metadata"]["generation"] + 1
    assert after.value["spec"]["containers"] == before.value["spec"]["containers"]
    assert [(m.name, m.subresource) for m in after.managers][-1] == ("me", "ephemeralcontainers")
    second = {"spec": {"ephemeralContainers": [debugger("two")]}}
    cluster.write("patch", second, "ephemeralcontainers", patch="strategic")
    assert sorted(each["name"] for each in cluster.pod.value["spec"]["ephemeralContainers"]) == ["debug", "two"]
    body = {**cluster.pod.value, "spec": {**cluster.pod.value["spec"], "ephemeralContainers": []}}
    told = cluster.refused("update", body, "ephemeralcontainers")
    assert 'spec.ephemeralContainers: Forbidden: existing ephemeral containers "debug" may not be removed\n' in told
    changed = {"spec": {"ephemeralContainers": [debugger(image="other:1")]}}
    told = cluster.refused("patch", changed, "ephemeralcontainers", patch="strategic")
    assert told[0].startswith('spec.ephemeralContainers: Forbidden: existing ephemeral containers "debug" may not be')


def test_only_ephemeral_containers_change_there():
    cluster = Cluster()
    body = {
        "metadata": {"labels": {"x": "y"}},
        "spec": {"ephemeralContainers": [debugger()], "containers": [{"name": "c", "image": "other:2"}]},
    }
    after = cluster.write("patch", body, "ephemeralcontainers", patch="strategic")
    assert "labels" not in after.value["metadata"] and after.value["spec"]["containers"][0]["image"] == "nginx:1"
    told = cluster.refused("patch", {"spec": {"ephemeralContainers": [debugger("n")]}}, "", patch="strategic")
    assert told and "pod updates may not change fields other than" in told[0]


@pytest.mark.parametrize(
    ("container", "told"),
    [
        (debugger("c"), 'name: Duplicate value: "c"'),
        (debugger(targetContainerName="x"), 'targetContainerName: Not found: "x"'),
        (debugger(ports=[{"containerPort": 1}]), "ports: Forbidden: cannot be set for an Ephemeral Container"),
        (debugger(resources={"limits": {"cpu": "1"}}), "resources: Forbidden: cannot be set for an Ephemeral"),
        ({"name": "debug"}, "image: Required value"),
    ],
)
def test_what_an_ephemeral_container_may_not_have(container, told):
    body = {"spec": {"ephemeralContainers": [container]}}
    causes = Cluster().refused("patch", body, "ephemeralcontainers", patch="strategic")
    assert any(cause.startswith(f"spec.ephemeralContainers[0].{told}") for cause in causes), causes


def test_static_pods_have_neither():
    cluster = Cluster(metadata={"annotations": {"kubernetes.io/config.mirror": "x"}})
    body = {"spec": {"ephemeralContainers": [debugger()]}}
    told = cluster.refused("patch", body, "ephemeralcontainers", patch="strategic")
    assert "static pods do not support ephemeral containers" in told[0]
    told = cluster.refused("patch", cluster.resize({"requests": {"cpu": "2"}}), "resize", patch="strategic")
    assert "static pods cannot be resized" in told[0]


def test_cpu_and_memory_are_resized():
    cluster = Cluster()
    body = cluster.resize({"requests": {"cpu": "1500m"}, "limits": {"memory": "3Gi"}})
    body["metadata"] = {"labels": {"x": "y"}}
    after = cluster.write("patch", body, "resize", patch="strategic")
    resources = after.value["spec"]["containers"][0]["resources"]
    assert resources == {"requests": {"cpu": "1500m", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "3Gi"}}
    assert "labels" not in after.value["metadata"]
    assert after.value["metadata"]["generation"] == 2 and after.managers[-1].subresource == "resize"
    assert (
        cluster.write("patch", cluster.resize({"requests": {"cpu": "1500m"}}), "resize", patch="strategic") is not None
    )
    assert cluster.pod.value["metadata"]["generation"] == 2
    told = cluster.refused("patch", cluster.resize({"requests": {"cpu": "2"}}), "", patch="strategic")
    assert "pod updates may not change fields other than" in told[0]


@pytest.mark.parametrize(
    ("resources", "told"),
    [
        ({"requests": {"cpu": "3"}}, 'resources.requests: Invalid value: "3": must be less than or equal to cpu limit'),
        ({"limits": {"memory": None}}, "spec.containers[0].resources.limits: Forbidden: resource limits cannot be"),
        ({"requests": {"ephemeral-storage": "1Gi"}}, "spec: Forbidden: only cpu and memory resources are mutable"),
        (
            {"requests": {"cpu": "2", "memory": "2Gi"}},
            'spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing',
        ),
    ],
)
def test_what_is_no_resize(resources, told):
    cluster = Cluster()
    causes = cluster.refused("patch", cluster.resize(resources), "resize", patch="strategic")
    assert any(told in cause for cause in causes), causes


def test_requests_are_not_taken_away():
    cluster = Cluster({"requests": {"cpu": "1", "memory": "1Gi"}})
    told = cluster.refused("patch", cluster.resize({"requests": {"cpu": None}}), "resize", patch="strategic")
    assert told == ["spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed"]


def test_containers_and_policies_stay():
    cluster = Cluster(initContainers=[{"name": "i", "image": "i:1", "resources": RESOURCES}])
    spec = cluster.pod.value["spec"]
    other = {**spec["containers"][0], "name": "other"}
    for containers, told in (
        ([*spec["containers"], other], "spec.containers: Forbidden: containers may not be added or removed on resize"),
        ([other], "spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize"),
        ([{**spec["containers"][0], "resizePolicy": []}], ""),
    ):
        body = {**cluster.pod.value, "spec": {**spec, "containers": containers}}
        if told:
            assert told in cluster.refused("update", body, "resize")
    init = {"spec": {"initContainers": [{"name": "i", "resources": {"requests": {"cpu": "1500m"}}}]}}
    after = cluster.write("patch", init, "resize", patch="strategic")
    assert after.value["spec"]["initContainers"][0]["resources"]["requests"]["cpu"] == "1500m"
    init["spec"]["initContainers"][0]["resources"] = {"requests": {"ephemeral-storage": "1Gi"}}
    assert cluster.refused("patch", init, "resize", patch="strategic") == [
        "spec.initContainers[0]: Forbidden: only cpu and memory resources for init or sidecar containers are mutable"
    ]


def test_whole_pods_are_resized():
    cluster = Cluster({}, resources={"requests": {"cpu": "1"}, "limits": {"cpu": "2"}})
    after = cluster.write("patch", {"spec": {"resources": {"requests": {"cpu": "2"}}}}, "resize", patch="merge")
    assert after.value["spec"]["resources"]["requests"]["cpu"] == "2"
    told = cluster.refused("patch", {"spec": {"resources": None}}, "resize", patch="merge")
    assert "spec.resources: Forbidden: pod-level resources cannot be removed" in told


def test_nodes_that_do_not_tell_resources_do_not_resize():
    running = {"name": "c", "image": "nginx:1", "imageID": "", "ready": True, "restartCount": 0}
    running["state"] = {"running": {"startedAt": "2026-09-21T14:13:20Z"}}
    cluster = Cluster(status={"phase": "Running", "containerStatuses": [running]})
    body = cluster.resize({"requests": {"cpu": "1500m"}})
    told = cluster.refused("patch", body, "resize", patch="strategic")
    assert told == ["spec: Forbidden: Pod running on node without support for resize"]
    status = {"status": {"containerStatuses": [{**running, "resources": {}}]}}
    cluster.write("patch", status, "status", patch="merge")
    assert cluster.write("patch", body, "resize", patch="strategic") is not None


def test_applied_by_the_server():
    cluster = Cluster()
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "labels": {"x": "y"}},
        "spec": {
            "containers": [{"name": "c", "image": "other", "resources": {"requests": {"cpu": "1500m"}}}],
            "ephemeralContainers": [debugger()],
        },
    }
    resized = cluster.write("apply", body, "resize", force=True)
    assert resized.value["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "1500m"
    assert resized.value["spec"]["containers"][0]["image"] == "nginx:1"
    debugged = cluster.write("apply", body, "ephemeralcontainers")
    assert [each["name"] for each in debugged.value["spec"]["ephemeralContainers"]] == ["debug"]
    assert [(m.operation, m.subresource) for m in debugged.managers][-2:] == [
        ("Apply", "resize"),
        ("Apply", "ephemeralcontainers"),
    ]
