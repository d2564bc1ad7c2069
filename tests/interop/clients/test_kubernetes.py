"""`kubernetes`, the official Python client: its typed, dynamic and custom-object halves."""

import datetime
import threading
import time

import kubernetes as k8s
import pytest
from kubernetes.client import ApiException
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import (
    ConflictError,
    ForbiddenError,
    NotFoundError,
    UnprocessibleEntityError,
)
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

from tests.interop import patience
from tests.interop.clients.samples import a_config_map, a_definition, a_deployment, a_pod


@pytest.fixture
def api(control_plane):
    client = k8s.config.new_client_from_config(str(control_plane.kubeconfig))
    yield client
    client.close()


@pytest.fixture
def core(api):
    return k8s.client.CoreV1Api(api)


def until(met):
    """The first true answer of `met`; a 404 is not yet."""

    def look():
        try:
            return met()
        except ApiException as error:
            if error.status != 404:
                raise

    return patience.until(look)


def refused(status, reason, call, *arguments, **options):
    with pytest.raises(ApiException) as raised:
        call(*arguments, **options)
    assert raised.value.status == status, raised.value.body
    assert f'"reason":"{reason}"' in raised.value.body


def test_discovery(api):
    assert k8s.client.VersionApi(api).get_code().git_version.startswith("v1.36")
    groups = {group.name for group in k8s.client.ApisApi(api).get_api_versions().groups}
    assert {"apps", "batch", "coordination.k8s.io", "rbac.authorization.k8s.io"} <= groups
    names = {each.name for each in k8s.client.CoreV1Api(api).get_api_resources().resources}
    assert {"pods", "pods/status", "pods/binding", "configmaps"} <= names
    assert DynamicClient(api).resources.get(api_version="apps/v1", kind="Deployment").name == "deployments"


def test_write_read_delete(core, namespace):
    created = core.create_namespaced_config_map(namespace, a_config_map("a", x="1"))
    assert isinstance(created.metadata.creation_timestamp, datetime.datetime)
    found = core.read_namespaced_config_map("a", namespace)
    assert found.data == {"x": "1"} and found.metadata.uid == created.metadata.uid
    found.data["x"] = "2"
    replaced = core.replace_namespaced_config_map("a", namespace, found)
    assert replaced.data == {"x": "2"} and replaced.metadata.resource_version != found.metadata.resource_version
    deleted = core.delete_namespaced_config_map("a", namespace)
    assert deleted["status"] == "Success"
    assert deleted["details"]["name"] == "a" and deleted["details"]["uid"] == created.metadata.uid


def test_errors(core, namespace):
    refused(404, "NotFound", core.read_namespaced_config_map, "none", namespace)
    stale = core.create_namespaced_config_map(namespace, a_config_map("a"))
    refused(409, "AlreadyExists", core.create_namespaced_config_map, namespace, a_config_map("a"))
    core.patch_namespaced_config_map("a", namespace, {"data": {"x": "1"}})
    stale.data = {"x": "2"}
    refused(409, "Conflict", core.replace_namespaced_config_map, "a", namespace, stale)
    refused(422, "Invalid", core.create_namespaced_pod, namespace, a_pod("p", restartPolicy="Perhaps"))
    unknown = k8s.client.CustomObjectsApi(core.api_client).create_namespaced_custom_object
    body = {**a_config_map("b"), "dta": {}}
    refused(400, "BadRequest", unknown, "apps", "v1", namespace, "deployments", body)
    wrong = {**a_deployment("b"), "dta": {}}
    refused(400, "BadRequest", unknown, "apps", "v1", namespace, "deployments", wrong, field_validation="Strict")
    gone = k8s.client.V1Preconditions(uid="another")
    options = k8s.client.V1DeleteOptions(preconditions=gone)
    refused(409, "Conflict", core.delete_namespaced_config_map, "a", namespace, body=options)


def test_dry_run_stores_nothing(core, namespace):
    shown = core.create_namespaced_config_map(namespace, a_config_map("a"), dry_run="All")
    assert shown.metadata.uid
    refused(404, "NotFound", core.read_namespaced_config_map, "a", namespace)


def test_lists_in_pages(core, namespace):
    for number in range(7):
        core.create_namespaced_config_map(namespace, a_config_map(f"a{number}"))
    names, more = [], None
    for size, left in ((3, 4), (3, 1), (3, None)):
        page = core.list_namespaced_config_map(namespace, label_selector="app in (web)", limit=size, _continue=more)
        names += [each.metadata.name for each in page.items]
        more = page.metadata._continue
        assert page.metadata.remaining_item_count in (left, None)
    assert names == [f"a{number}" for number in range(7)] and not more
    only = core.list_namespaced_config_map(namespace, field_selector="metadata.name=a3")
    assert [each.metadata.name for each in only.items] == ["a3"]
    assert core.list_namespaced_config_map(namespace, label_selector="app!=web").items[0].metadata.name == (
        "kube-root-ca.crt"
    )


def test_what_fell_off_the_log_is_gone(core, namespace, compact):
    for name in "abc":
        core.create_namespaced_config_map(namespace, a_config_map(name))
    page = core.list_namespaced_config_map(namespace, limit=1)
    old, more = page.metadata.resource_version, page.metadata._continue
    compact(lambda: core.patch_namespaced_config_map("a", namespace, {"data": {"x": str(time.monotonic())}}))
    refused(410, "Expired", core.list_namespaced_config_map, namespace, limit=1, _continue=more)
    with pytest.raises(ApiException) as raised:
        list(
            k8s.watch.Watch().stream(
                core.list_namespaced_config_map, namespace, resource_version=old, timeout_seconds=1
            )
        )
    assert raised.value.status == 410


def test_all_patches(api, core, namespace):
    apps = k8s.client.AppsV1Api(api)
    apps.create_namespaced_deployment(namespace, a_deployment("web"))
    extra = {"spec": {"template": {"spec": {"containers": [{"name": "log", "image": "log:1"}]}}}}
    merged = apps.patch_namespaced_deployment("web", namespace, extra)  # a dict: strategic merge
    assert {c.name for c in merged.spec.template.spec.containers} == {"app", "log"}
    steps = [{"op": "replace", "path": "/spec/replicas", "value": 1}]  # a list: JSON patch
    assert apps.patch_namespaced_deployment("web", namespace, steps).spec.replicas == 1
    failing = [{"op": "test", "path": "/spec/replicas", "value": 9}]
    refused(422, "Invalid", apps.patch_namespaced_deployment, "web", namespace, failing)
    dynamic = DynamicClient(api).resources.get(api_version="apps/v1", kind="Deployment")
    merge = "application/merge-patch+json"
    one = {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": "app:2"}]}}}}
    patched = dynamic.patch(one, "web", namespace, content_type=merge)
    assert [c.image for c in patched.spec.template.spec.containers] == ["app:2"]


def test_server_side_apply(api, namespace):
    maps = DynamicClient(api).resources.get(api_version="v1", kind="ConfigMap")
    body = a_config_map("a", x="1", y="1")
    maps.server_side_apply(body, "a", namespace, field_manager="one")
    maps.server_side_apply(a_config_map("a", z="1"), "a", namespace, field_manager="two")
    with pytest.raises(ConflictError) as raised:
        maps.server_side_apply(a_config_map("a", x="2"), "a", namespace, field_manager="two")
    assert 'conflict with \\"one\\"' in str(raised.value.body)
    maps.server_side_apply(a_config_map("a", x="2"), "a", namespace, field_manager="two", force_conflicts=True)
    kept = maps.server_side_apply(a_config_map("a"), "a", namespace, field_manager="one")
    assert dict(kept.data) == {"x": "2"}, "z went when two no longer applied it, y when one did not"
    managers = {entry.manager: entry.operation for entry in kept.metadata.managedFields}
    assert managers == {"one": "Apply", "two": "Apply"}


def test_scale_status_and_logs(api, core, namespace):
    apps = k8s.client.AppsV1Api(api)
    apps.create_namespaced_deployment(namespace, a_deployment("web"))
    until(lambda: apps.read_namespaced_deployment_status("web", namespace).status.ready_replicas == 2)
    scale = apps.read_namespaced_deployment_scale("web", namespace)
    assert (scale.spec.replicas, scale.status.replicas, scale.status.selector) == (2, 2, "app=web")
    scale.spec.replicas = 3
    assert apps.replace_namespaced_deployment_scale("web", namespace, scale).spec.replicas == 3
    assert apps.patch_namespaced_deployment_scale("web", namespace, {"spec": {"replicas": 1}}).spec.replicas == 1
    until(lambda: len(core.list_namespaced_pod(namespace, label_selector="app=web").items) == 1)
    pod = core.list_namespaced_pod(namespace, field_selector="status.phase=Running").items[0]
    assert pod.status.pod_ip and pod.spec.node_name
    assert "started on virtual node" in core.read_namespaced_pod_log(pod.metadata.name, namespace, tail_lines=1)
    said = {"conditions": [{"type": "Progressing", "status": "Unknown", "reason": "Asked"}]}
    apps.patch_namespaced_deployment_status("web", namespace, {"status": said, "spec": {"replicas": 9}})
    assert apps.read_namespaced_deployment("web", namespace).spec.replicas == 1


def test_propagation(api, core, namespace):
    apps = k8s.client.AppsV1Api(api)
    for name, policy, left in (("fore", "Foreground", 0), ("back", "Background", 0), ("orphan", "Orphan", 1)):
        apps.create_namespaced_deployment(namespace, a_deployment(name, 1))
        until(lambda name=name: core.list_namespaced_pod(namespace, label_selector=f"app={name}").items)
        apps.delete_namespaced_deployment(name, namespace, propagation_policy=policy)
        until(lambda name=name: not deployment_exists(apps, name, namespace))
        sets = until(
            lambda name=name, left=left: (
                (found := apps.list_namespaced_replica_set(namespace, label_selector=f"app={name}")).metadata
                and len(found.items) == left
                and found
            )
        )
        assert all(not each.metadata.owner_references for each in sets.items)
    apps.delete_collection_namespaced_replica_set(namespace, label_selector="app=orphan")
    until(lambda: not core.list_namespaced_pod(namespace).items)


def deployment_exists(apps, name, namespace):
    return any(each.metadata.name == name for each in apps.list_namespaced_deployment(namespace).items)


def test_watch_from_nothing_from_a_revision_and_until_a_timeout(core, namespace):
    core.create_namespaced_config_map(namespace, a_config_map("a"))
    start = core.list_namespaced_config_map(namespace).metadata.resource_version
    watch, seen = k8s.watch.Watch(), []
    selected = {"label_selector": "app=web", "timeout_seconds": 1}
    began = time.monotonic()
    for event in watch.stream(core.list_namespaced_config_map, namespace, **selected):
        seen.append((event["type"], event["object"].metadata.name))
        if len(seen) == 1:
            core.create_namespaced_config_map(namespace, a_config_map("b"))
            core.patch_namespaced_config_map("b", namespace, {"metadata": {"labels": {"app": "other"}}})
    assert seen == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "b")]
    assert 0.5 < time.monotonic() - began < 5
    again = watch.stream(core.list_namespaced_config_map, namespace, resource_version=start, **selected)
    assert [(event["type"], event["object"].metadata.name) for event in again] == [("ADDED", "b"), ("DELETED", "b")]


def test_custom_kinds_and_custom_objects(api, core, namespace):
    definitions = k8s.client.ApiextensionsV1Api(api)
    definitions.create_custom_resource_definition(a_definition("gadgets", "Gadget"))
    until(lambda: established(definitions.read_custom_resource_definition("gadgets.example.com")))
    custom = k8s.client.CustomObjectsApi(api)
    place = ("example.com", "v1", namespace, "gadgets")
    body = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "a"}, "spec": {"colour": "red"}}
    made = custom.create_namespaced_custom_object(*place, body)
    assert made["spec"] == {"colour": "red", "replicas": 1} and made["metadata"]["generation"] == 1
    custom.patch_namespaced_custom_object_status(*place, "a", {"status": {"replicas": 1}, "spec": {"replicas": 8}})
    assert custom.get_namespaced_custom_object_scale(*place, "a")["status"]["replicas"] == 1
    custom.patch_namespaced_custom_object_scale(*place, "a", {"spec": {"replicas": 4}})
    found = custom.get_namespaced_custom_object(*place, "a")
    assert (found["spec"]["replicas"], found["status"], found["metadata"]["generation"]) == (4, {"replicas": 1}, 2)
    refused(422, "Invalid", custom.patch_namespaced_custom_object, *place, "a", {"spec": {"replicas": -1}})
    dynamic = DynamicClient(api).resources.get(api_version="example.com/v1", kind="Gadget")
    assert [each.metadata.name for each in dynamic.get(namespace=namespace).items] == ["a"]
    assert [event["type"] for event in dynamic.watch(namespace=namespace, timeout=1)] == ["ADDED"]
    custom.delete_collection_namespaced_custom_object(*place)
    assert custom.list_namespaced_custom_object(*place)["items"] == []
    definitions.delete_custom_resource_definition("gadgets.example.com")
    until(lambda: not any(d.metadata.name == "gadgets.example.com" for d in all_definitions(definitions)))


def established(definition):
    conditions = definition.status.conditions or []
    return any(each.type == "Established" and each.status == "True" for each in conditions)


def all_definitions(definitions):
    return definitions.list_custom_resource_definition().items


def test_errors_of_the_dynamic_client(api, namespace):
    maps = DynamicClient(api).resources.get(api_version="v1", kind="ConfigMap")
    with pytest.raises(NotFoundError):
        maps.get("none", namespace)
    with pytest.raises(UnprocessibleEntityError):
        maps.create(a_config_map("Not A Name"), namespace)
    spaces = DynamicClient(api).resources.get(api_version="v1", kind="Namespace")
    with pytest.raises(ForbiddenError):
        spaces.delete("default")


def test_eviction_and_tokens(core, namespace):
    core.create_namespaced_pod(namespace, a_pod("p"))
    until(lambda: core.read_namespaced_pod_status("p", namespace).status.phase == "Running")
    core.create_namespaced_pod_eviction("p", namespace, {"metadata": {"name": "p"}})
    until(lambda: not core.list_namespaced_pod(namespace).items)
    asked = {"spec": {"audiences": ["api"], "expirationSeconds": 600}}
    assert core.create_namespaced_service_account_token("default", namespace, asked).status.token.count(".") == 2


def test_rights(api, namespace):
    review = {"spec": {"resourceAttributes": {"verb": "list", "resource": "pods", "namespace": namespace}}}
    answer = k8s.client.AuthorizationV1Api(api).create_self_subject_access_review(review)
    assert answer.status.allowed is True


def test_leader_election(control_plane, api, namespace):
    """Its own elector and lock: the second candidate waits until the first has stopped renewing."""
    k8s.config.load_kube_config(str(control_plane.kubeconfig))  # the lock makes its client by itself
    led, enough = [], threading.Event()

    def lead(name):
        led.append(name)
        if name == "two":
            enough.wait(patience.SECONDS)
        raise RuntimeError(f"{name} gives up")

    threads = []
    for name in ("one", "two"):
        lock = LeaseLock("lock", namespace, name)
        config = electionconfig.Config(lock, 3, 2, 1, lambda name=name: lead(name), None)
        threads.append(threading.Thread(target=leaderelection.LeaderElection(config).run))
        threads[-1].start()
        until(lambda name=name: name in led)
    lease = k8s.client.CoordinationV1Api(api).read_namespaced_lease("lock", namespace)
    assert (led, lease.spec.holder_identity) == (["one", "two"], "two")
    enough.set()
    for thread in threads:
        thread.join(patience.SECONDS)
