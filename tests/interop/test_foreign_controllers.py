"""The real kube-scheduler and kube-controller-manager 1.36 at work on `steersman run`, our counterparts off.

Needs their programs: `scripts/oracle.py OUT kube-scheduler kube-controller-manager`, and STEERSMAN_ORACLE=OUT/bin.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from steersman.cli.kubectl import find_kubectl
from tests.interop.conformance.real import guest, running
from tests.interop.patience import COMMAND_SECONDS, until

pytestmark = pytest.mark.interop
BINARIES = Path(os.environ.get("STEERSMAN_ORACLE", ""))
RUN = "import sys; from steersman.cli import main; sys.argv[0] = 'steersman'; main()"


class Plane:
    """kubectl against the control plane in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self.kubectl = find_kubectl()

    def run(self, *words: str) -> str:
        environ = {**os.environ, "KUBECONFIG": str(self.kubeconfig), "HOME": str(self.folder)}
        done = subprocess.run(
            [self.kubectl, *words], env=environ, capture_output=True, text=True, timeout=COMMAND_SECONDS
        )
        assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
        return done.stdout

    def items(self, *words: str) -> list[dict]:
        return json.loads(self.run("get", *words, "-o", "json"))["items"]

    def until(self, what, *words: str) -> None:
        until(lambda: what(self.items(*words)), lambda: f"{words} are {json.dumps(self.items(*words))[:3000]}")


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    if not (BINARIES / "kube-controller-manager").is_file():
        pytest.skip("no kube-controller-manager here; see the module's text")
    folder = tmp_path_factory.mktemp("foreign")
    made = Plane(folder)
    ours = [sys.executable, "-c", RUN, "run", "--listen", "127.0.0.1:0", "--store", "memory:", "--virtual-nodes", "3"]
    ours += ["--kubeconfig", str(made.kubeconfig), "--disable-controllers", "*,kube-scheduler"]
    with ExitStack() as stack:
        stack.enter_context(running(ours, folder / "steersman.log"))
        until(made.kubeconfig.exists, (folder / "steersman.log").read_text)
        for name in ("kube-scheduler", "kube-controller-manager"):
            command = guest(BINARIES / name, folder, made.kubeconfig, elect=True)
            stack.enter_context(running(command, folder / f"{name}.log"))
        yield made


def ready(count: int):
    def what(pods: list[dict]) -> bool:
        conditions = [{c["type"]: c["status"] for c in pod["status"].get("conditions", ())} for pod in pods]
        return len(pods) == count and all(found.get("Ready") == "True" for found in conditions)

    return what


def test_they_schedule_scale_roll_and_collect(plane):
    plane.run("create", "deployment", "web", "--image=nginx:1", "--replicas=4")
    plane.run("expose", "deployment", "web", "--port=80")
    plane.until(ready(4), "pods", "-l", "app=web")
    assert all(pod["spec"]["nodeName"].startswith("node-") for pod in plane.items("pods", "-l", "app=web"))
    of_web = ("endpointslices", "-l", "kubernetes.io/service-name=web")
    plane.until(lambda found: found and len(found[0].get("endpoints") or ()) == 4, *of_web)
    plane.run("scale", "deployment", "web", "--replicas=2")
    plane.until(ready(2), "pods", "-l", "app=web")
    plane.run("set", "image", "deployment", "web", "nginx=nginx:2")
    plane.run("rollout", "status", "deployment", "web", "--timeout=300s")
    plane.run("delete", "deployment", "web", "--cascade=foreground", "--timeout=300s")
    assert plane.items("pods,replicasets", "-l", "app=web") == []


def test_jobs_end_and_their_pods_are_collected(plane):
    plane.run("create", "job", "once", "--image=busybox", "--", "true")
    plane.run("wait", "--for=condition=Complete", "job/once", "--timeout=300s")
    plane.run("delete", "job", "once")
    plane.until(lambda found: not found, "pods", "-l", "job-name=once")


def test_namespaces_get_accounts_and_go_with_what_is_in_them(plane):
    plane.run("create", "namespace", "gone")
    plane.until(lambda found: any(a["metadata"]["name"] == "default" for a in found), "serviceaccounts", "-n", "gone")
    plane.run("create", "configmap", "a", "-n", "gone", "--from-literal=a=b")
    plane.run("delete", "namespace", "gone", "--timeout=300s")


def test_they_hold_their_leases(plane):
    held = {lease["metadata"]["name"] for lease in plane.items("leases", "-n", "kube-system")}
    assert {"kube-scheduler", "kube-controller-manager"} <= held
