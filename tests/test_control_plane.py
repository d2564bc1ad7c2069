"""`steersman.testing.control_plane()` and the fixture of the same name."""

import os
import subprocess
import sys
import time

import pytest

import steersman as sm
from steersman.controllers.builtin import BY_NAME
from steersman.run.embed import choose
from steersman.run.load import StartError

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


def test_a_key_without_its_namespace_is_told(control_plane):
    c = control_plane.client
    with pytest.raises(ValueError, match=r"Pod is a namespaced kind: c\.key\('v1/Pod', 'a', NAMESPACE\)"):
        c.key("v1/Pod", "a")
    assert c.get(c.key("v1/Namespace", "default")) is not None


class Mine(sm.Controller):
    kind = "v1/ConfigMap"


def test_controllers_are_chosen_as_kube_controller_manager_has_it():
    everything = list(BY_NAME.values())
    assert choose(["*"]) == (everything, [], [])
    assert choose(["*", Mine])[0] == [*everything, Mine]
    assert choose([]) == ([], [], [])
    assert choose(["deployment-controller", "replicaset", Mine])[0] == [
        BY_NAME["deployment"],
        BY_NAME["replicaset"],
        Mine,
    ]
    left, elsewhere, without = choose(["*", "-deployment-controller", "-kube-scheduler"])
    assert left == [cls for cls in everything if cls is not BY_NAME["deployment"]]
    assert (elsewhere, without) == (["deployment"], ["kube-scheduler"])
    assert choose(["-*"])[0] == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["deploy"], "controllers: there is no built-in controller 'deploy'; there are "),
        (["*", "-deploy"], "controllers: there is no built-in controller 'deploy'; there are "),
        ([Mine()], "is neither a subclass of Controller nor a built-in one's name"),
        ([dict], "is neither a subclass of Controller nor a built-in one's name"),
    ],
)
def test_a_wrong_choice_is_told(words, told):
    with pytest.raises(StartError, match=told), sm.testing.control_plane(controllers=words):
        pass


def test_it_needs_no_pytest():
    code = "import sys; sys.modules['pytest'] = None; import steersman as sm; sm.testing.control_plane"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_instant_pods_are_ready_and_gone_at_once():
    with sm.testing.control_plane(instant=True) as cp:
        c = cp.client
        key = c.key("v1/Pod", "a", "default")
        start = time.perf_counter()
        c.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "default"}, "spec": POD})
        c.wait(lambda: c.get(key).status.phase == "Running", 20, "the running pod")
        c.delete(key)
        c.wait(lambda: c.get(key) is None, 20, "the end of the pod")
        # Without it, a pull, a start and a removal take 2.5 s at the least.
        assert time.perf_counter() - start < 2.5
