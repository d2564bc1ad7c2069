"""Logs, exec and port-forward by the libraries people use from Python: v4 of the protocol, over WebSockets."""

import kr8s
import kubernetes as k8s
import pytest
from kubernetes.stream import portforward, stream

from steersman import testing
from steersman.serve.virtual import VirtualStreams
from tests.interop.patience import SECONDS
from tests.interop.programs import COMMANDS, PORTS, cat

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "default", "annotations": {"steersman.dev/logs": "one\ntwo"}},
    "spec": {"containers": [{"name": "web", "image": "nginx:1"}]},
}


@pytest.fixture(scope="module")
def plane():
    with testing.control_plane(streams=VirtualStreams(COMMANDS, PORTS, cat)) as plane:
        c = plane.client
        c.wait(lambda: c.get(c.key("v1/ServiceAccount", "default", "default")) is not None, SECONDS)
        c.create(POD)
        c.wait(lambda: c.get(c.key("v1/Pod", "web", "default"))["status"].get("phase") == "Running", SECONDS)
        yield plane


@pytest.fixture
def core(plane):
    client = k8s.config.new_client_from_config(str(plane.kubeconfig))
    yield k8s.client.CoreV1Api(client)
    client.close()


def test_logs(core):
    assert core.read_namespaced_pod_log("web", "default", tail_lines=1) == "two\n"


def test_exec(core):
    open_ = core.connect_get_namespaced_pod_exec
    how = {"stdout": True, "stderr": True, "tty": False}
    assert stream(open_, "web", "default", command=["echo", "hi"], stdin=False, **how) == "web: hi\n"
    session = stream(open_, "web", "default", command=["cat"], stdin=True, _preload_content=False, **how)
    session.write_stdin("typed\n")
    assert session.readline_stdout(timeout=SECONDS) == "typed"
    session.close()
    failed = stream(open_, "web", "default", command=["fail"], stdin=False, _preload_content=False, **how)
    failed.run_forever(timeout=SECONDS)
    assert (failed.read_stderr(), failed.returncode) == ("bad\n", 3)
    with pytest.raises(k8s.client.ApiException) as found:
        stream(open_, "web", "default", command=["nope"], stdin=False, **how)
    assert "400" in str(found.value)


def test_port_forward(core):
    forward = portforward(core.connect_get_namespaced_pod_portforward, "web", "default", ports="7,9")
    sock = forward.socket(7)
    sock.settimeout(SECONDS)
    sock.sendall(b"shout")
    assert sock.recv(5) == b"SHOUT"
    sock.close()
    assert "no program answers port 9" in forward.error(9)


def test_a_workspace_has_streams_of_its_own(plane):
    workspace = plane.workspace(virtual_nodes=1)
    c = workspace.client
    c.wait(lambda: c.get(c.key("v1/ServiceAccount", "default", "default")) is not None, SECONDS)
    c.create({**POD, "metadata": {**POD["metadata"], "name": "inside"}})
    c.wait(lambda: c.get(c.key("v1/Pod", "inside", "default"))["status"].get("phase") == "Running", SECONDS)
    with k8s.config.new_client_from_config(str(workspace.kubeconfig)) as client:
        core = k8s.client.CoreV1Api(client)
        how = {"stdout": True, "stderr": True, "stdin": False, "tty": False, "command": ["echo", "hi"]}
        assert stream(core.connect_get_namespaced_pod_exec, "inside", "default", **how) == "inside: hi\n"
        assert core.read_namespaced_pod_log("inside", "default") == "one\ntwo\n"
    workspace.forget()


def test_kr8s(plane):
    api = kr8s.api(kubeconfig=str(plane.kubeconfig))
    pod = kr8s.objects.Pod.get("web", namespace="default", api=api)
    assert list(pod.logs()) == ["one", "two"]
    done = pod.exec(["echo", "hi"])
    assert (done.stdout, done.returncode) == (b"web: hi\n", 0)
    assert pod.exec(["fail"], check=False).returncode == 3
