"""kr8s: its objects, its synchronous and asynchronous APIs, and kinds it makes by itself from discovery."""

import threading

import kr8s
import pytest
from kr8s.objects import ConfigMap, CustomResourceDefinition, Deployment, Pod, new_class

from tests.interop.clients.samples import a_config_map, a_definition, a_deployment, a_pod
from tests.interop.patience import SECONDS, until


@pytest.fixture
def api(control_plane, namespace):
    return kr8s.api(kubeconfig=str(control_plane.kubeconfig), namespace=namespace)


def test_discovery(api):
    assert api.version()["gitVersion"].startswith("v1.36")
    kinds = {(each["version"], each["kind"]) for each in api.api_resources()}
    assert {("v1", "Pod"), ("apps/v1", "Deployment"), ("coordination.k8s.io/v1", "Lease")} <= kinds
    assert api.whoami() == "steersman-admin"


def test_write_read_patch_delete(api):
    a = ConfigMap(a_config_map("a", x="1"), api=api)
    a.create()
    assert a.exists() and ConfigMap.get("a", api=api).data == {"x": "1"}
    a.patch({"data": {"y": "2"}})
    assert dict(a.data) == {"x": "1", "y": "2"}
    a.patch([{"op": "remove", "path": "/data/x"}], type="json")
    a.label({"colour": "red"})
    a.annotate({"note": "n"})
    again = next(iter(api.get("configmaps", "a")))
    assert dict(again.data) == {"y": "2"} and again.labels["colour"] == "red" and again.annotations["note"] == "n"
    a.delete()
    assert not a.exists()
    with pytest.raises(kr8s.NotFoundError):
        ConfigMap.get("a", api=api, timeout=0.1)


def test_errors(api):
    ConfigMap(a_config_map("a"), api=api).create()
    with pytest.raises(kr8s.ServerError) as raised:
        ConfigMap(a_config_map("a"), api=api).create()
    assert raised.value.response.status_code == 409
    with pytest.raises(kr8s.ServerError, match="Unsupported value") as raised:
        Pod(a_pod("p", restartPolicy="Perhaps"), api=api).create()
    assert raised.value.response.status_code == 422


def test_lists_are_read_in_pages_of_a_hundred(api):
    for number in range(120):
        ConfigMap(a_config_map(f"a{number:03}"), api=api).create()
    found = [each.name for each in api.get("configmaps", label_selector={"app": "web"})]
    assert found == [f"a{number:03}" for number in range(120)]
    assert [each.name for each in api.get("configmaps", field_selector={"metadata.name": "a007"})] == ["a007"]


def test_workloads(api):
    web = Deployment(a_deployment("web"), api=api)
    web.create()
    web.wait("condition=Available", timeout=SECONDS)
    assert web.ready() and len(web.pods()) == 2
    web.scale(1)
    assert web.replicas == 1
    pod = Pod(a_pod("p"), api=api)
    pod.create()
    pod.wait("condition=Ready", timeout=SECONDS)
    assert pod.ready() and ["started on virtual node" in line for line in pod.logs()] == [True]
    web.delete(propagation_policy="Foreground")
    web.wait("delete", timeout=SECONDS)
    pod.delete()
    pod.wait("delete", timeout=SECONDS)


def test_watch(api):
    ConfigMap(a_config_map("a"), api=api).create()
    seen, watching = [], threading.Event()

    def watch():
        for event, found in api.watch("configmaps", label_selector={"app": "web"}):
            seen.append((event, found.name))
            watching.set()
            if event == "DELETED":
                return

    thread = threading.Thread(target=watch)
    thread.start()
    assert watching.wait(SECONDS)
    other = ConfigMap(a_config_map("b"), api=api)
    other.create()
    other.delete()
    thread.join(SECONDS)
    assert seen == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "b")]


def test_custom_kinds(api):
    definition = CustomResourceDefinition(a_definition(), api=api)
    definition.create()
    definition.wait("condition=Established", timeout=SECONDS)
    Widget = new_class("Widget", "example.com/v1", namespaced=True, scalable=True, scalable_spec="replicas")
    widget = Widget({"metadata": {"name": "w"}, "spec": {"colour": "red"}}, api=api)
    widget.create()
    assert widget.spec.replicas == 1
    widget.patch({"status": {"replicas": 1}}, subresource="status")
    widget.scale(1)
    assert [each.name for each in api.get("widgets.example.com")] == ["w"]
    widget.delete()


def test_ownership(api):
    owner, child = ConfigMap(a_config_map("owner"), api=api), ConfigMap(a_config_map("child"), api=api)
    owner.create()
    child.create()
    owner.adopt(child)
    owner.delete()
    until(lambda: not child.exists(), lambda: "the child outlived its owner")


async def ready_pods(kubeconfig, namespace):
    api = await kr8s.asyncio.api(kubeconfig=kubeconfig, namespace=namespace)
    web = await kr8s.asyncio.objects.Deployment(a_deployment("web"), api=api)
    await web.create()
    await web.wait("condition=Available", timeout=SECONDS)
    return [pod.name async for pod in api.get("pods", label_selector={"app": "web"})]


def test_asyncio(control_plane, namespace):
    import asyncio

    import kr8s.asyncio.objects  # noqa: F401

    assert len(asyncio.run(ready_pods(str(control_plane.kubeconfig), namespace))) == 2
