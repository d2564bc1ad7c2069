"""`kubernetes_asyncio`: the official API on asyncio; its watch, its dynamic client, its leader election."""

import asyncio
import time

import kubernetes_asyncio as k8s
import pytest
from kubernetes_asyncio.client import ApiException
from kubernetes_asyncio.dynamic import DynamicClient
from kubernetes_asyncio.leaderelection import electionconfig, leaderelection
from kubernetes_asyncio.leaderelection.resourcelock.leaselock import LeaseLock

from tests.interop.clients.samples import a_config_map, a_definition, a_deployment
from tests.interop.patience import SECONDS


def with_client(work, plane, *arguments):
    """Runs a coroutine with a client of the plane."""

    async def run():
        await k8s.config.load_kube_config(str(plane.kubeconfig))
        async with k8s.client.ApiClient() as api:
            return await asyncio.wait_for(work(api, *arguments), 2 * SECONDS)

    return asyncio.run(run())


async def until(met):
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        if answer := await met():
            return answer
        await asyncio.sleep(0.05)
    raise AssertionError("not in time")


async def refused(status, reason, call):
    with pytest.raises(ApiException) as raised:
        await call
    assert raised.value.status == status and f'"reason":"{reason}"' in raised.value.body


async def objects(api, namespace):
    core = k8s.client.CoreV1Api(api)
    await core.create_namespaced_config_map(namespace, a_config_map("a", x="1"))
    stale = await core.read_namespaced_config_map("a", namespace)
    await refused(409, "AlreadyExists", core.create_namespaced_config_map(namespace, a_config_map("a")))
    patched = await core.patch_namespaced_config_map("a", namespace, {"data": {"y": "2"}})
    assert patched.data == {"x": "1", "y": "2"}
    await refused(409, "Conflict", core.replace_namespaced_config_map("a", namespace, stale))
    await refused(404, "NotFound", core.read_namespaced_config_map("none", namespace))
    await refused(422, "Invalid", core.create_namespaced_config_map(namespace, a_config_map("Not A Name")))
    page = await core.list_namespaced_config_map(namespace, limit=1)
    rest = await core.list_namespaced_config_map(namespace, limit=1, _continue=page.metadata._continue)
    assert [each.metadata.name for each in (*page.items, *rest.items)] == ["a", "kube-root-ca.crt"]
    assert (await core.delete_namespaced_config_map("a", namespace)).status == "Success"


def test_objects(control_plane, namespace):
    with_client(objects, control_plane, namespace)


async def watches(api, namespace, compact):
    core, seen = k8s.client.CoreV1Api(api), []
    await core.create_namespaced_config_map(namespace, a_config_map("a"))
    selected = {"label_selector": "app=web", "timeout_seconds": 1}
    async with k8s.watch.Watch().stream(core.list_namespaced_config_map, namespace, **selected) as stream:
        async for event in stream:
            seen.append((event["type"], event["object"].metadata.name))
            if len(seen) == 1:
                await core.create_namespaced_config_map(namespace, a_config_map("b"))
                await core.delete_namespaced_config_map("b", namespace)
    assert seen == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "b")]
    old = (await core.read_namespaced_config_map("a", namespace)).metadata.resource_version
    compact_off = asyncio.get_running_loop().run_in_executor
    await compact_off(None, compact)
    with pytest.raises(ApiException) as raised:
        async for _ in k8s.watch.Watch().stream(core.list_namespaced_config_map, namespace, resource_version=old):
            pass
    assert raised.value.status == 410


def test_watches(control_plane, namespace, compact):
    client = control_plane.client
    numbers = iter(range(10))
    key = client.key("v1/ConfigMap", "a", namespace)
    change = lambda: compact(lambda: client.patch(key, {"data": {"x": str(next(numbers))}}))  # noqa: E731
    with_client(watches, control_plane, namespace, change)


async def workloads(api, namespace):
    apps, core = k8s.client.AppsV1Api(api), k8s.client.CoreV1Api(api)
    await apps.create_namespaced_deployment(namespace, a_deployment("web"))

    async def ready():
        return (await apps.read_namespaced_deployment_status("web", namespace)).status.ready_replicas == 2

    await until(ready)
    scale = await apps.read_namespaced_deployment_scale("web", namespace)
    scale.spec.replicas = 1
    assert (await apps.replace_namespaced_deployment_scale("web", namespace, scale)).spec.replicas == 1
    await apps.delete_namespaced_deployment("web", namespace, propagation_policy="Foreground")

    async def gone():
        return not (await core.list_namespaced_pod(namespace)).items

    await until(gone)


def test_workloads(control_plane, namespace):
    with_client(workloads, control_plane, namespace)


async def custom_kinds(api, namespace):
    definitions, custom = k8s.client.ApiextensionsV1Api(api), k8s.client.CustomObjectsApi(api)
    await definitions.create_custom_resource_definition(a_definition())

    async def served():
        found = await definitions.read_custom_resource_definition("widgets.example.com")
        return any(each.type == "Established" for each in found.status.conditions or [])

    await until(served)
    place = ("example.com", "v1", namespace, "widgets")
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {}}
    assert (await custom.create_namespaced_custom_object(*place, body))["spec"] == {"replicas": 1}
    await custom.patch_namespaced_custom_object_status(
        *place, "w", [{"op": "add", "path": "/status", "value": {"replicas": 1}}]
    )
    dynamic = await DynamicClient(api)
    widgets = await dynamic.resources.get(api_version="example.com/v1", kind="Widget")
    assert (await widgets.get("w", namespace)).status.replicas == 1
    applied = {**body, "spec": {"colour": "red"}}
    shown = await dynamic.server_side_apply(widgets, applied, "w", namespace, field_manager="one", force_conflicts=True)
    assert shown.spec.colour == "red"


def test_custom_kinds(control_plane, namespace):
    with_client(custom_kinds, control_plane, namespace)


async def election(api, namespace):
    led = asyncio.Event()

    async def lead():
        led.set()
        await asyncio.sleep(SECONDS)

    async def stopped():
        pass

    lock = LeaseLock("lock", namespace, "one", api)
    config = electionconfig.Config(lock, 3, 2, 1, lead, stopped)
    task = asyncio.create_task(leaderelection.LeaderElection(config).run())
    await asyncio.wait_for(led.wait(), SECONDS)
    lease = await k8s.client.CoordinationV1Api(api).read_namespaced_lease("lock", namespace)
    assert lease.spec.holder_identity == "one" and lease.spec.renew_time
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_leader_election(control_plane, namespace):
    with_client(election, control_plane, namespace)
