"""kubectl logs, exec, attach, cp and port-forward against virtual pods with real programs, over WebSockets and over
SPDY (which kubectl spoke before 1.31, and still speaks where it is told to)."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
import urllib.request

import pytest

from steersman import testing
from steersman.cli.kubectl import find_kubectl
from steersman.serve.virtual import VirtualStreams
from tests.interop.programs import COMMANDS, FILES, PORTS, cat

SECONDS = 20
SPDY = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "false"}
POD = """
apiVersion: v1
kind: Pod
metadata:
  name: web
  annotations: {steersman.dev/logs: "one\\ntwo\\nthree"}
spec:
  containers: [{name: web, image: "nginx:1"}, {name: side, image: "side:1"}]
"""
SHORT = """
apiVersion: v1
kind: Pod
metadata:
  name: short
  annotations: {steersman.dev/lifetime-seconds: "3", steersman.dev/exit-code: "3"}
spec:
  restartPolicy: Never
  containers: [{name: c, image: "job:1"}]
"""


SIZED = """
apiVersion: v1
kind: Pod
metadata: {name: sized}
spec:
  containers: [{name: c, image: "c:1", resources: {requests: {cpu: 100m}, limits: {cpu: "1"}}}]
"""


class Kubectl:
    """kubectl against one control plane, by WebSocket or by SPDY."""

    def __init__(self, plane, environ: dict[str, str]) -> None:
        self.kubectl = find_kubectl()
        self.environ = {**os.environ, "KUBECONFIG": str(plane.kubeconfig), **environ}

    def run(self, *words: str, code: int = 0, stdin: bytes | None = None) -> str:
        done = subprocess.run(
            [self.kubectl, *words], env=self.environ, input=stdin, capture_output=True, timeout=SECONDS, check=False
        )
        out = (done.stdout + done.stderr).decode()
        assert done.returncode == code, (words, done.returncode, out)
        return out

    def start(self, *words: str, **how) -> subprocess.Popen:
        return subprocess.Popen([self.kubectl, *words], env=self.environ, **how)


@pytest.fixture(scope="module")
def plane():
    with testing.control_plane(streams=VirtualStreams(COMMANDS, PORTS, cat)) as plane:
        kubectl = Kubectl(plane, {})
        plane.client.wait(
            lambda: plane.client.get(plane.client.key("v1/ServiceAccount", "default", "default")) is not None, 20
        )
        kubectl.run("apply", "-f", "-", stdin=POD.encode())
        kubectl.run("wait", "--for=condition=Ready", "pod/web", "--timeout=20s")
        yield plane


@pytest.fixture(params=["websocket", "spdy"])
def kubectl(plane, request):
    return Kubectl(plane, SPDY if request.param == "spdy" else {})


def test_logs(plane):
    kubectl = Kubectl(plane, {})
    assert kubectl.run("logs", "web", "-c", "side", "--tail=2") == "two\nthree\n"
    everything = kubectl.run("logs", "web", "--all-containers", "--prefix", "--tail=1")
    assert sorted(everything.splitlines()) == ["[pod/web/side] three", "[pod/web/web] three"]  # kubectl has no order
    assert "Defaulted container" in kubectl.run("logs", "web", "--limit-bytes=3")
    assert 'previous terminated container "web" in pod "web" not found' in kubectl.run("logs", "web", "-p", code=1)
    kubectl.run("apply", "-f", "-", stdin=SHORT.encode())
    key = plane.client.key("v1/Pod", "short", "default")
    plane.client.wait(lambda: plane.client.get(key)["status"].get("phase") in ("Running", "Failed"), SECONDS)
    followed = kubectl.run("logs", "-f", "short")
    assert followed.splitlines()[-1] == "steersman: container c ended with exit code 3 (Error)"


def test_exec(kubectl):
    assert kubectl.run("exec", "web", "-c", "web", "--", "echo", "a", "b c") == "web: a b c\n"
    data = os.urandom(200_000).hex()
    assert kubectl.run("exec", "-i", "web", "-c", "web", "--", "cat", stdin=data.encode()) == data
    assert kubectl.run("exec", "web", "-c", "web", "--", "fail", code=3) == (
        "bad\ncommand terminated with exit code 3\n"
    )
    assert 'no program answers the command "nope" there' in kubectl.run(
        "exec", "web", "-c", "web", "--", "nope", code=1
    )
    assert "container x is not valid for pod web" in kubectl.run("exec", "web", "-c", "x", "--", "cat", code=1)
    assert 'pods "none" not found' in kubectl.run("exec", "none", "--", "cat", code=1)


def test_a_terminal(kubectl):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 111, 0, 0))
    process = kubectl.start("exec", "-it", "web", "-c", "web", "--", "sh", stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen = _until(ours, b"111x33$ ")
    os.write(ours, b"hello\r")
    seen += _until(ours, b"hello\r\n")
    os.write(ours, b"exit 5\r")
    assert process.wait(SECONDS) == 5, seen
    os.close(ours)


def _until(fd: int, text: bytes) -> bytes:
    seen, end = b"", time.monotonic() + SECONDS
    while text not in seen:
        assert time.monotonic() < end and select.select([fd], [], [], SECONDS)[0], seen
        seen += os.read(fd, 4096)
    return seen


def test_attach(kubectl):
    assert "typed\n" in kubectl.run("attach", "-i", "web", "-c", "web", stdin=b"typed\n")


def test_cp(kubectl, tmp_path):
    FILES.clear()
    here = tmp_path / "here.txt"
    here.write_bytes(os.urandom(50_000))
    kubectl.run("cp", str(here), "web:/data/there.txt", "-c", "web")
    assert {"/data/there.txt": here.read_bytes()} == FILES
    kubectl.run("cp", "web:/data/there.txt", str(tmp_path / "back.txt"), "-c", "web")
    assert (tmp_path / "back.txt").read_bytes() == here.read_bytes()


def test_debug(plane):
    kubectl = Kubectl(plane, {})
    told = kubectl.run("debug", "web", "--image=tools:1", "--target=web", "-c", "debugger", "-i", stdin=b"typed\n")
    assert "typed\n" in told
    pod = plane.client.get(plane.client.key("v1/Pod", "web", "default"))
    assert pod["spec"]["ephemeralContainers"][0]["targetContainerName"] == "web"
    assert kubectl.run("logs", "web", "-c", "debugger", "--tail=1") == "three\n"


def test_resize(plane):
    kubectl = Kubectl(plane, {})
    kubectl.run("apply", "-f", "-", stdin=SIZED.encode())
    kubectl.run("wait", "--for=condition=Ready", "pod/sized", "--timeout=20s")
    patch = '{"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "150m"}}}]}}'
    assert "may not change fields other than" in kubectl.run("patch", "pod", "sized", "-p", patch, code=1)
    kubectl.run("patch", "pod", "sized", "--subresource=resize", "-p", patch)
    cpu = "jsonpath={.status.containerStatuses[0].resources.requests.cpu}"
    kubectl.run("wait", f"--for={cpu}=150m", "pod/sized", "--timeout=20s")


def test_port_forward(kubectl):
    process = kubectl.start("port-forward", "pod/web", ":80", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        line = process.stdout.readline().decode()
        port = int(line.partition("127.0.0.1:")[2].partition(" ")[0])
        for _ in range(5):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=SECONDS) as answer:
                assert answer.read() == b"hello from web\n"
    finally:
        process.terminate()
        process.wait(SECONDS)
        process.stdout.close()
