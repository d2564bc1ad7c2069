"""`steersman.testing.control_plane()` and the fixture of the same name."""

import os
import subprocess
import time

import steersman as sm

POD = {"containers": [{"name": "app", "image": "app:1"}]}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": POD},
    },
}


def kubectl(plane, *args: str) -> str:
    env = {**os.environ, "KUBECONFIG": str(plane.kubeconfig)}
    return subprocess.run(["kubectl", *args], env=env, capture_output=True, text=True, check=True).stdout


def test_a_control_plane_of_ones_own_runs_pods(control_plane):
    c = control_plane.client
    web = c.key("apps/v1/Deployment", "web", "default")
    c.create(DEPLOYMENT)
    c.wait(lambda: c.get(web).status.readyReplicas == 2, 20, "two ready replicas")
    names = sorted(pod.metadata.name for pod in c.list("v1/Pod", "default", labels="app=web"))
    env = {**os.environ, "KUBECONFIG": str(control_plane.kubeconfig)}
    shown = subprocess.run(
        ["kubectl", "get", "pods", "-o", "name"], env=env, capture_output=True, text=True, check=True
    )
    assert shown.stdout.split() == [f"pod/{name}" for name in names]
    explained = subprocess.run(
        ["kubectl", "explain", "deployment"], env=env, capture_output=True, text=True, check=True
    )
    assert "Deployment" in explained.stdout


def test_the_next_one_is_empty(control_plane):
    assert control_plane.client.list("apps/v1/Deployment") == []


def test_as_a_context_with_chosen_controllers():
    class Greeter(sm.Controller):
        kind = "v1/ConfigMap"

        def reconcile(self, c, key):
            found = c.get(key)
            if found is not None and found.data.greeting != "hello":
                c.patch(key, {"data": {"greeting": "hello"}})

    with sm.testing.control_plane(virtual_nodes=0, controllers=[Greeter]) as cp:
        c = cp.client
        c.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}})
        key = c.key("v1/ConfigMap", "a", "default")
        c.wait(lambda: c.get(key).data.greeting == "hello", what="the greeting")
        start = time.perf_counter()
        for _ in range(1000):
            c.get(key)
        assert time.perf_counter() - start < 1  # a read asks nobody
