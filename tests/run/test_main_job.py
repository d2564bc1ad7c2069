"""The main job of the durable face, with the real kubectl: apply three replicas, ready on virtual nodes, scale, delete.

Afterwards the journal is held against both laws: every reconcile of the built-in controllers, executed again, writes
the same; and a server started on it shows the same.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import orjson
import pytest

from steersman.cli.kubectl import find_kubectl
from tests.run import laws_of
from tests.run.client import Served

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: default}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: web, image: "nginx:{version}"}}]}}
"""


class Kubectl:
    def __init__(self, served: Served) -> None:
        home = served.kubeconfig.parent
        self.environment = {**os.environ, "KUBECONFIG": str(served.kubeconfig), "HOME": str(home)}
        self.program = find_kubectl()

    def __call__(self, *words: str, given: str | None = None) -> str:
        result = subprocess.run(
            [self.program, *words],
            input=given,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert result.returncode == 0, f"kubectl {' '.join(words)}: {result.stderr}"
        return result.stdout

    def items(self, *words: str) -> list[dict]:
        return orjson.loads(self("get", *words, "-o", "json"))["items"]


def apply(kubectl: Kubectl, replicas: int, version: str = "1.27") -> str:
    return kubectl("apply", "--server-side", "-f", "-", given=WEB.format(replicas=replicas, version=version))


@pytest.fixture(scope="module")
def lived(tmp_path_factory) -> Path:
    """The main job, done once; the folder of its store."""
    folder = tmp_path_factory.mktemp("main")
    with Served(folder, "--virtual-nodes", "3") as served:
        kubectl = Kubectl(served)
        assert "serverside-applied" in apply(kubectl, 3)
        assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", "--timeout=60s")
        pods = kubectl.items("pods")
        assert len(pods) == 3 and {pod["spec"]["nodeName"] for pod in pods} == {"node-0", "node-1", "node-2"}
        apply(kubectl, 5)
        kubectl("rollout", "status", "deployment/web", "--timeout=60s")
        assert len(kubectl.items("pods")) == 5
        apply(kubectl, 5, "1.28")
        kubectl("rollout", "status", "deployment/web", "--timeout=60s")
        assert len(kubectl.items("replicasets")) == 2
        kubectl("delete", "-f", "-", given=WEB.format(replicas=5, version="1.28"))
        end = time.monotonic() + 60
        while kubectl.items("replicasets,pods"):
            assert time.monotonic() < end, "dependents stay"
            time.sleep(0.2)
        why_it_waits(kubectl)
        assert served.stop() == 0
    return folder


BIG = """
apiVersion: v1
kind: Pod
metadata: {name: big, namespace: default}
spec: {containers: [{name: c, image: "nginx:1", resources: {requests: {cpu: 99}}}]}
"""


def events_of(kubectl, name):
    """The Events about one pod: controllers tell of what they do, too."""
    return [event for event in kubectl.items("events") if event["involvedObject"]["name"] == name]


def why_it_waits(kubectl: Kubectl) -> None:
    """`describe` tells why a pod is not scheduled, and what told it goes with the pod."""
    kubectl("create", "-f", "-", given=BIG)
    end = time.monotonic() + 30
    while not (told := events_of(kubectl, "big")):
        assert time.monotonic() < end, "nobody tells why the pod waits"
        time.sleep(0.2)
    described = " ".join(kubectl("describe", "pod", "big").split())
    why = "0/3 nodes are available: 3 Insufficient cpu."
    assert f"default-scheduler {why}" in described and "Warning FailedScheduling" in described
    assert "FailedScheduling" in kubectl("events", "--for", "pod/big") and len(told) == 1
    kubectl("delete", "pod", "big")
    while events_of(kubectl, "big"):
        assert time.monotonic() < end, "the event stays"
        time.sleep(0.2)


def test_both_laws_hold_on_its_journal(lived):
    assert laws_of.hold(f"sqlite:{lived / 'store.db'}") > 20


def test_it_starts_again_on_what_was_left(lived):
    with Served(lived) as served:
        kubectl = Kubectl(served)
        assert len(kubectl.items("nodes")) == 3
        apply(kubectl, 1)
        kubectl("rollout", "status", "deployment/web", "--timeout=60s")
        assert served.stop() == 0
