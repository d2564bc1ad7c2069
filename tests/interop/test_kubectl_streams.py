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
from pathlib import Path

import pytest

from steersman import testing
from steersman.serve.virtual import VirtualStreams
from tests.interop.clients.programs import Program, kubectls, title
from tests.interop.patience import SECONDS
from tests.interop.programs import COMMANDS, FILES, PORTS, cat

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


@pytest.fixture(scope="module")
def plane():
    with testing.control_plane(streams=VirtualStreams(COMMANDS, PORTS, cat)) as plane:
        client = plane.client
        client.wait(lambda: client.get(client.key("v1/ServiceAccount", "default", "default")) is not None, SECONDS)
        yield plane


@pytest.fixture(scope="module", params=list(kubectls()), ids=title)
def program(request, plane, tmp_path_factory):
    """Each kubectl at hand, with the pod `web` running."""
    kubectl = Program(request.param, plane, tmp_path_factory.mktemp("home"))
    kubectl("apply", "-f", "-", stdin=POD)
    kubectl("wait --for=condition=Ready pod/web --timeout=300s")
    yield kubectl
    kubectl("delete pods --all --now")


@pytest.fixture(params=["websocket", "spdy"])
def kubectl(program, plane, request):
    """By each of the protocols."""
    return Program(program.path, plane, Path(program.environ["HOME"]), **(SPDY if request.param == "spdy" else {}))


def test_logs(program, plane):
    assert program("logs", "web", "-c", "side", "--tail=2") == "two\nthree\n"
    everything = program("logs", "web", "--all-containers", "--prefix", "--tail=1")
    assert sorted(everything.splitlines()) == ["[pod/web/side] three", "[pod/web/web] three"]  # kubectl has no order
    assert "Defaulted container" in program("logs", "web", "--limit-bytes=3")
    assert 'previous terminated container "web" in pod "web" not found' in program("logs", "web", "-p", code=1)
    program("apply", "-f", "-", stdin=SHORT)
    key = plane.client.key("v1/Pod", "short", "default")
    plane.client.wait(lambda: plane.client.get(key)["status"].get("phase") in ("Running", "Failed"), SECONDS)
    followed = program("logs", "-f", "short")
    assert followed.splitlines()[-1] == "steersman: container c ended with exit code 3 (Error)"


def test_exec(kubectl):
    assert kubectl("exec", "web", "-c", "web", "--", "echo", "a", "b c") == "web: a b c\n"
    data = os.urandom(200_000).hex()
    assert kubectl("exec", "-i", "web", "-c", "web", "--", "cat", stdin=data) == data
    assert kubectl("exec", "web", "-c", "web", "--", "fail", code=3) == ("bad\ncommand terminated with exit code 3\n")
    assert 'no program answers the command "nope" there' in kubectl("exec", "web", "-c", "web", "--", "nope", code=1)
    assert "container x is not valid for pod web" in kubectl("exec", "web", "-c", "x", "--", "cat", code=1)
    assert 'pods "none" not found' in kubectl("exec", "none", "--", "cat", code=1)


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
    assert "typed\n" in kubectl("attach", "-i", "web", "-c", "web", stdin="typed\n")


def test_cp(kubectl, tmp_path):
    FILES.clear()
    here = tmp_path / "here.txt"
    here.write_bytes(os.urandom(50_000))
    kubectl("cp", str(here), "web:/data/there.txt", "-c", "web")
    assert {"/data/there.txt": here.read_bytes()} == FILES
    kubectl("cp", "web:/data/there.txt", str(tmp_path / "back.txt"), "-c", "web")
    assert (tmp_path / "back.txt").read_bytes() == here.read_bytes()


def test_debug(program, plane):
    told = program("debug", "web", "--image=tools:1", "--target=web", "-c", "debugger", "-i", stdin="typed\n")
    assert "typed\n" in told
    pod = plane.client.get(plane.client.key("v1/Pod", "web", "default"))
    assert pod["spec"]["ephemeralContainers"][0]["targetContainerName"] == "web"
    assert program("logs", "web", "-c", "debugger", "--tail=1") == "three\n"


def test_resize(program):
    program("apply", "-f", "-", stdin=SIZED)
    program("wait", "--for=condition=Ready", "pod/sized", "--timeout=300s")
    patch = '{"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "150m"}}}]}}'
    assert "may not change fields other than" in program("patch", "pod", "sized", "-p", patch, code=1)
    program("patch", "pod", "sized", "--subresource=resize", "-p", patch)
    cpu = "jsonpath={.status.containerStatuses[0].resources.requests.cpu}"
    program("wait", f"--for={cpu}=150m", "pod/sized", "--timeout=300s")


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
