"""kubectl: which one the tests use, and what it does against a live server of ours, over TLS.

The fixture is a server without controllers: statuses are written by hand where kubectl waits for them.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from steersman.cli.kubectl import find_kubectl
from tests.interop.live import Live, live
from tests.interop.patience import SECONDS

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: c, image: "nginx:1"}]
---
apiVersion: v1
kind: Pod
metadata: {name: p1, labels: {app: web}}
spec: {containers: [{name: c, image: "nginx:1"}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: cm}
data: {a: b}
---
apiVersion: v1
kind: Service
metadata: {name: svc}
spec: {selector: {app: web}, ports: [{port: 80}]}
"""


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    with live(tmp_path_factory.mktemp("live")) as running:
        yield running
        assert running.failed() == []


@pytest.fixture
def web(plane: Live, tmp_path: Path):
    """The manifest in a file, its objects there by server-side apply, and gone after the test."""
    manifest = tmp_path / "web.yaml"
    manifest.write_text(WEB, encoding="utf-8")
    plane.run("apply", "--server-side", "-f", str(manifest))
    yield manifest
    plane.run("delete", "-f", str(manifest), "--ignore-not-found", "--now")


def a_program(folder: Path, name: str = "kubectl") -> str:
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    return str(program)


def test_the_order(tmp_path):
    chosen = a_program(tmp_path / "chosen", "kubectl-1.32")
    in_path = a_program(tmp_path / "path")
    python = str(tmp_path / "venv" / "python")
    environ = {"PATH": str(tmp_path / "path")}
    assert find_kubectl(environ, python) == in_path
    in_venv = a_program(tmp_path / "venv")
    assert find_kubectl(environ, python) == in_venv
    assert find_kubectl({**environ, "KUBECTL": chosen}, python) == chosen


@pytest.mark.parametrize(("environ", "told"), [({}, "no kubectl"), ({"KUBECTL": "/none"}, "KUBECTL=/none")])
def test_no_kubectl_is_an_error_with_a_remedy(tmp_path, environ, told):
    with pytest.raises(FileNotFoundError, match=told):
        find_kubectl({"PATH": str(tmp_path), **environ}, str(tmp_path / "python"))


def test_the_installed_kubectl_runs():
    kubectl = find_kubectl({"PATH": ""}, sys.executable)
    command = [kubectl, "version", "--client", "--output=json"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(result.stdout)["clientVersion"]["gitVersion"] == "v1.36.4"


def test_apply_get_delete(plane, tmp_path):
    manifest = tmp_path / "web.yaml"
    manifest.write_text(WEB, encoding="utf-8")
    applied = plane.run("apply", "--server-side", "-f", str(manifest))
    assert applied.splitlines() == [
        "deployment.apps/web serverside-applied",
        "pod/p1 serverside-applied",
        "configmap/cm serverside-applied",
        "service/svc serverside-applied",
    ]
    version = plane.json("get", "deploy", "web")["metadata"]["resourceVersion"]
    assert plane.run("apply", "--server-side", "-f", str(manifest)) == applied
    assert plane.json("get", "deploy", "web")["metadata"]["resourceVersion"] == version, "applied twice, changed once"
    assert plane.run("diff", "--server-side", "-f", str(manifest)) == ""
    changed = tmp_path / "changed.yaml"
    changed.write_text(WEB.replace("replicas: 3", "replicas: 5"), encoding="utf-8")
    assert "+  replicas: 5" in plane.run("diff", "--server-side", "-f", str(changed), code=1)
    plane.run("apply", "--server-side", "-f", str(changed))
    assert plane.json("get", "deploy", "web")["spec"]["replicas"] == 5
    deleted = plane.run("delete", "-f", str(manifest))
    assert deleted.count("deleted") == 4
    assert "NotFound" in plane.run("get", "deploy", "web", code=1)


def test_create_and_first_client_side_apply(plane, tmp_path):
    manifest = tmp_path / "web.yaml"
    manifest.write_text(WEB, encoding="utf-8")
    assert plane.run("create", "-f", str(manifest)).count("created") == 4
    assert "AlreadyExists" in plane.run("create", "-f", str(manifest), code=1)
    assert plane.run("replace", "-f", str(manifest)).count("replaced") == 4
    plane.run("delete", "-f", str(manifest))
    assert plane.run("apply", "-f", str(manifest)).count("created") == 4
    plane.run("delete", "-f", str(manifest))


def test_tables(plane, web):
    shown = plane.run("get", "deploy,pods,cm,svc")
    assert "NAME                  READY   UP-TO-DATE   AVAILABLE   AGE" in shown
    assert "NAME     READY   STATUS    RESTARTS   AGE" in shown and "pod/p1   0/1     Pending" in shown
    wide = plane.run("get", "pods", "-o", "wide", "--show-labels")
    assert "NOMINATED NODE" in wide and "app=web" in wide
    assert plane.run("get", "pods", "--no-headers", "-o", "name") == "pod/p1\n"
    assert "default" in plane.run("get", "pods", "-A")
    assert plane.run("get", "cm", "-l", "no=such") == "No resources found in default namespace.\n"
    assert plane.run("get", "ns", "--chunk-size=1", "-o", "name").split() == [
        f"namespace/{name}" for name in ("default", "kube-node-lease", "kube-public", "kube-system")
    ]
    assert "nodeName" not in plane.run("get", "pod", "p1", "-o", "yaml")


def test_strict_validation_happens_on_the_server(plane):
    wrong = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "dta": {"a": "b"}})
    untyped = ".dta: field not declared in schema"  # an applied configuration is typed before it is read strictly
    assert untyped in plane.run("apply", "--server-side", "-f", "-", stdin=wrong, code=1)
    for verb in ("create", "apply"):
        assert 'unknown field "dta"' in plane.run(verb, "-f", "-", stdin=wrong, code=1)
    assert "Warning" in plane.run("create", "--validate=warn", "--dry-run=server", "-f", "-", stdin=wrong)
    plane.run("get", "cm", "x", code=1)


def test_changes(plane, web):
    plane.run("scale", "deploy", "web", "--replicas=7")
    assert plane.json("get", "deploy", "web")["spec"]["replicas"] == 7
    plane.run("label", "pod", "p1", "x=y")
    plane.run("annotate", "pod", "p1", "note=1")
    plane.run("patch", "pod", "p1", "--type=json", "-p", '[{"op":"remove","path":"/metadata/labels/x"}]')
    plane.run("patch", "cm", "cm", "--type=merge", "-p", '{"data":{"c":"d"}}')
    meta = plane.json("get", "pod", "p1")["metadata"]
    assert meta["labels"] == {"app": "web"} and meta["annotations"] == {"note": "1"}
    assert plane.json("get", "cm", "cm")["data"] == {"a": "b", "c": "d"}
    plane.run("patch", "cm", "cm", "-p", '{"data":{"c":"e"}}')
    assert plane.json("get", "cm", "cm")["data"] == {"a": "b", "c": "e"}
    plane.run("set", "image", "deploy/web", "c=app:9")
    assert plane.json("get", "deploy", "web")["spec"]["template"]["spec"]["containers"][0]["image"] == "app:9"


def test_watching(plane, web):
    watching = plane.start("get", "pods", "-w", "--output-watch-events")
    readable = plane.start("get", "pods", "-w", "-o", "json")
    assert watching.stdout is not None
    try:
        assert "EVENT" in watching.stdout.readline()
        assert watching.stdout.readline().split()[:4] == ["ADDED", "p1", "0/1", "Pending"]
        running = {"phase": "Running", "containerStatuses": [a_container()]}
        plane.run("patch", "pod", "p1", "--subresource=status", "--type=merge", "-p", json.dumps({"status": running}))
        assert watching.stdout.readline().split()[:4] == ["MODIFIED", "p1", "1/1", "Running"]
        plane.run("delete", "pod", "p1")
        assert watching.stdout.readline().split()[:2] == ["DELETED", "p1"]
    finally:
        for process in (watching, readable):
            process.terminate()
            process.communicate(timeout=SECONDS)


def a_container():
    state = {"running": {"startedAt": "2026-11-30T00:00:00Z"}}
    return {"name": "c", "ready": True, "restartCount": 0, "image": "nginx:1", "imageID": "", "state": state}


def test_rollout_status_and_wait(plane, web):
    rollout = plane.start("rollout", "status", "deploy/web")
    waiting = plane.start("wait", "--for=condition=Ready", "pod/p1", "--timeout=300s")
    assert rollout.stdout is not None
    assert "to be observed" in rollout.stdout.readline()
    for ready in (1, 3):
        status = {"observedGeneration": 1, "replicas": 3, "updatedReplicas": ready, "availableReplicas": ready}
        body = json.dumps({"status": {**status, "readyReplicas": ready}})
        plane.run("patch", "deploy", "web", "--subresource=status", "--type=merge", "-p", body)
    ready_pod = json.dumps({"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    plane.run("patch", "pod", "p1", "--subresource=status", "--type=merge", "-p", ready_pod)
    assert "successfully rolled out" in rollout.communicate(timeout=SECONDS)[0] and rollout.returncode == 0
    assert waiting.communicate(timeout=SECONDS)[0] == "pod/p1 condition met\n"


def test_delete_waits_until_the_object_is_gone(plane, web):
    plane.run("patch", "cm", "cm", "--type=merge", "-p", '{"metadata":{"finalizers":["example.com/hold"]}}')
    deleting = plane.start("delete", "cm", "cm")
    with pytest.raises(subprocess.TimeoutExpired):
        deleting.wait(1.5)
    assert plane.json("get", "cm", "cm")["metadata"]["deletionTimestamp"]
    plane.run("patch", "cm", "cm", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    assert deleting.wait(SECONDS) == 0
    deleting.communicate()


def test_describe_explain_and_discovery(plane, web):
    described = plane.run("describe", "pod", "p1")
    assert "Status:       Pending" in described and "Events:           <none>" in described
    assert "Replicas:" in plane.run("describe", "deploy", "web") and "Port:" in plane.run("describe", "svc", "svc")
    explained = plane.run("explain", "deployment.spec.template.spec.containers")
    assert "KIND:       Deployment" in explained and "imagePullPolicy" in explained
    resources = plane.run("api-resources")
    assert "deployments" in resources and "deploy" in resources and "nothings" not in resources
    assert "apps/v1" in plane.run("api-versions").split()
    assert "Server Version: v1.36" in plane.run("version")
    assert plane.run("get", "--raw", "/readyz") == "ok"
    assert "doesn't have a resource type" in plane.run("get", "nothings", code=1)


@pytest.mark.parametrize("words", [("apply",), ("apply", "--server-side"), ("create",), ("replace",), ("delete",)])
@pytest.mark.parametrize(
    ("version", "kind"),
    [("example.com/v1", "Widget"), ("apps/v1", "Deploymentt")],
)
def test_a_kind_that_is_not_served_is_told_by_its_name(plane, tmp_path, words, version, kind):
    manifest = tmp_path / "unknown.yaml"
    manifest.write_text(f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: w}}\n", encoding="utf-8")
    told = plane.run(*words, "-f", str(manifest), code=1)
    assert f'no matches for kind "{kind}" in version "{version}"' in told and "openapi" not in told


def test_namespaces_of_the_system_stay(plane, tmp_path):
    told = plane.run("delete", "namespace", "default", code=1)
    assert 'namespaces "default" is forbidden: this namespace may not be deleted' in told
    assert plane.json("get", "namespace", "default")["status"]["phase"] == "Active"


def test_a_body_in_protobuf_is_read(plane):
    plane.run("create", "configmap", "x", "--from-literal=a=b")
    assert plane.json("get", "cm", "x")["data"] == {"a": "b"}
    plane.run("delete", "cm", "x")


def test_nobody_gets_in_without_a_token(plane):
    refused = plane.run("get", "pods", "--token=wrong", code=1)
    assert "must be logged in" in refused
    assert 'User "bob" cannot list resource "pods"' in plane.run("get", "pods", "--as=bob", code=1)
