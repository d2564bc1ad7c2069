"""lightkube: typed models over httpx, synchronous and asynchronous, with server-side apply and generic resources."""

import asyncio
import time

import pytest
from lightkube import ApiError, AsyncClient, Client, KubeConfig
from lightkube.generic_resource import async_load_in_cluster_generic_resources, create_namespaced_resource
from lightkube.models.autoscaling_v1 import ScaleSpec
from lightkube.models.core_v1 import Container, PodSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apiextensions_v1 import CustomResourceDefinition
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import ConfigMap, Pod
from lightkube.types import CascadeType, PatchType, on_error_raise

from tests.interop.clients.samples import LABELS, a_definition, a_deployment
from tests.interop.patience import until


def config(control_plane):
    return KubeConfig.from_file(str(control_plane.kubeconfig))


@pytest.fixture
def client(control_plane, namespace):
    return Client(config=config(control_plane), namespace=namespace, field_manager="lightkube")


def a_map(name, **data):
    return ConfigMap(metadata=ObjectMeta(name=name, labels=LABELS), data=data)


def status_of(raised):
    return (raised.value.status.code, raised.value.status.reason)


def test_write_read_delete(client):
    made = client.create(a_map("a", x="1"))
    assert made.metadata.uid and made.metadata.creationTimestamp.tzinfo
    assert client.get(ConfigMap, "a").data == {"x": "1"}
    made.data["x"] = "2"
    assert client.replace(made).data == {"x": "2"}
    client.delete(ConfigMap, "a")
    with pytest.raises(ApiError) as raised:
        client.get(ConfigMap, "a")
    assert status_of(raised) == (404, "NotFound")


def test_errors(client):
    stale = client.create(a_map("a"))
    with pytest.raises(ApiError) as raised:
        client.create(a_map("a"))
    assert status_of(raised) == (409, "AlreadyExists")
    client.patch(ConfigMap, "a", {"data": {"x": "1"}})
    with pytest.raises(ApiError) as raised:
        client.replace(stale)
    assert status_of(raised) == (409, "Conflict")
    pod = Pod(metadata=ObjectMeta(name="p"), spec=PodSpec(containers=[Container(name="Not A Name", image="i")]))
    with pytest.raises(ApiError) as raised:
        client.create(pod)
    assert status_of(raised) == (422, "Invalid")
    assert {cause.field for cause in raised.value.status.details.causes} == {"spec.containers[0].name"}


def test_all_patches(client):
    client.create(Deployment.from_dict(a_deployment("web")))
    two = {"spec": {"template": {"spec": {"containers": [{"name": "log", "image": "log:1"}]}}}}
    assert names(client.patch(Deployment, "web", two)) == ["log", "app"]
    assert names(client.patch(Deployment, "web", two, patch_type=PatchType.MERGE)) == ["log"]
    steps = [{"op": "replace", "path": "/spec/template/spec/containers/0/name", "value": "other"}]
    assert names(client.patch(Deployment, "web", steps, patch_type=PatchType.JSON)) == ["other"]


def names(deployment):
    return [each.name for each in deployment.spec.template.spec.containers]


def test_server_side_apply(client):
    client.apply(ConfigMap(metadata=ObjectMeta(name="a"), data={"x": "1"}), field_manager="one")
    with pytest.raises(ApiError) as raised:
        client.apply(ConfigMap(metadata=ObjectMeta(name="a"), data={"x": "2"}), field_manager="two")
    assert status_of(raised) == (409, "Conflict")
    assert [(c.reason, c.field) for c in raised.value.status.details.causes] == [("FieldManagerConflict", ".data.x")]
    forced = client.apply(ConfigMap(metadata=ObjectMeta(name="a"), data={"x": "2"}), field_manager="two", force=True)
    assert forced.data == {"x": "2"} and [each.manager for each in forced.metadata.managedFields] == ["two"]


def test_lists_in_pages(client):
    for number in range(5):
        client.create(a_map(f"a{number}"))
    found = client.list(ConfigMap, labels={"app": "web"}, chunk_size=2)
    assert [each.metadata.name for each in found] == [f"a{number}" for number in range(5)]
    named = client.list(ConfigMap, labels={"app": ("web", "other"), "none": None}, fields={"metadata.name": "a3"})
    assert [each.metadata.name for each in named] == []
    assert [each.metadata.name for each in client.list(ConfigMap, fields={"metadata.name": "a3"})] == ["a3"]


def test_watch(client):
    client.create(a_map("a"))
    seen = []
    for event, found in client.watch(ConfigMap, labels={"app": "web"}, server_timeout=10):
        seen.append((event, found.metadata.name))
        if event == "DELETED":
            break
        if found.metadata.name == "a":
            client.create(a_map("b"))
            client.delete(ConfigMap, "b")
    assert seen == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "b")]


def test_a_watch_from_what_fell_off_the_log(client, compact):
    old = client.create(a_map("a")).metadata.resourceVersion
    compact(lambda: client.patch(ConfigMap, "a", {"data": {"x": str(time.monotonic())}}))
    with pytest.raises(ApiError) as raised:
        next(client.watch(ConfigMap, resource_version=old, on_error=on_error_raise))
    assert status_of(raised) == (410, "Expired")


def test_scale_status_and_waiting(client):
    client.create(Deployment.from_dict(a_deployment("web")))
    client.wait(Deployment, "web", for_conditions=["Available"])
    assert client.get(Deployment.Scale, "web").status.replicas == 2
    pod = next(iter(client.list(Pod, labels={"app": "web"}))).metadata.name
    assert ["started on virtual node" in line for line in client.log(pod)] == [True]
    scaled = client.replace(Deployment.Scale(metadata=ObjectMeta(name="web"), spec=ScaleSpec(replicas=1)), "web")
    assert scaled.spec.replicas == 1
    said = {"status": {"conditions": [{"type": "Progressing", "status": "Unknown"}]}, "spec": {"replicas": 9}}
    assert client.patch(Deployment.Status, "web", said).spec.replicas == 1
    client.delete(Deployment, "web", cascade=CascadeType.FOREGROUND)
    until(lambda: not list(client.list(Deployment)) and not list(client.list(Pod)))


def test_custom_kinds(client):
    client.create(CustomResourceDefinition.from_dict(a_definition()))
    client.wait(CustomResourceDefinition, "widgets.example.com", for_conditions=["Established"])
    Widget = create_namespaced_resource("example.com", "v1", "Widget", "widgets")
    made = client.create(Widget(metadata={"name": "w"}, spec={"colour": "red"}))
    assert made["spec"]["replicas"] == 1
    client.patch(Widget.Status, "w", {"status": {"replicas": 1}}, patch_type=PatchType.MERGE)
    with pytest.raises(ApiError) as raised:
        client.patch(Widget, "w", {"spec": {}}, patch_type=PatchType.STRATEGIC)
    assert status_of(raised) == (415, "UnsupportedMediaType")
    client.deletecollection(Widget)
    assert list(client.list(Widget)) == []


async def watched(control_plane, namespace):
    client = AsyncClient(config=config(control_plane), namespace=namespace)
    await async_load_in_cluster_generic_resources(client)
    await client.create(a_map("a"))
    seen = []
    async for event, found in client.watch(ConfigMap, labels={"app": "web"}):
        seen.append((event, found.metadata.name))
        if event == "DELETED":
            break
        await client.delete(ConfigMap, "a")
    await client.close()
    return seen


def test_asyncio(control_plane, namespace):
    assert asyncio.run(watched(control_plane, namespace)) == [("ADDED", "a"), ("DELETED", "a")]
