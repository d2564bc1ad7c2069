"""helm 3 and 4: a chart through install, upgrade, rollback, test hooks and uninstall, waiting for what it made."""

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.interop.clients.programs import Program, fetched, title

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}-web
  labels: {app.kubernetes.io/managed-by: {{ .Release.Service }}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: web, image: "web:{{ .Values.image }}", ports: [{containerPort: 80}]}]
---
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}-web}
spec: {selector: {app: {{ .Release.Name }}}, ports: [{port: 80}]}
"""
SETTINGS = """
{{- if .Capabilities.APIVersions.Has "apps/v1/Deployment" }}
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-settings}
data:
  revision: "{{ .Release.Revision }}"
  kube: "{{ .Capabilities.KubeVersion }}"
{{- end }}
"""
HOOK = """
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-hook
  annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-delete-policy: before-hook-creation}
data: {ran: "{{ .Release.Revision }}"}
"""
CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: charts.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Chart, plural: charts}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
OBJECT = """
apiVersion: example.com/v1
kind: Chart
metadata: {name: {{ .Release.Name }}}
spec: {of: {{ .Chart.Name }}}
"""


def helms() -> list[str]:
    """Paths: $HELM, else those that were fetched, else the one in PATH."""
    named, here = os.environ.get("HELM"), shutil.which("helm")
    return [named] if named else list(fetched("helm")) or ([here] if here else [])


@pytest.fixture(params=helms() or [""], ids=title)
def helm(request, control_plane, namespace, tmp_path):
    assert request.param, "no helm: `make test-interop` fetches some; or set HELM"
    return Program(request.param, control_plane, tmp_path / "home")


@pytest.fixture
def chart(tmp_path: Path) -> str:
    folder = tmp_path / "chart"
    templates = {"web.yaml": DEPLOYMENT, "settings.yaml": SETTINGS, "hook.yaml": HOOK, "object.yaml": OBJECT}
    for kind in ("templates", "crds"):
        (folder / kind).mkdir(parents=True)
    for name, text in templates.items():
        (folder / "templates" / name).write_text(text)
    (folder / "crds" / "charts.yaml").write_text(CRD)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: shop\nversion: 0.1.0\nappVersion: '1'\n")
    (folder / "values.yaml").write_text("replicas: 1\nimage: '1'\n")
    return str(folder)


@pytest.mark.interop
def test_a_release(control_plane, helm, chart, namespace):
    client = control_plane.client
    web = client.key("apps/v1/Deployment", "one-web", namespace)
    settings = client.key("v1/ConfigMap", "one-settings", namespace)
    assert "STATUS: deployed" in helm(f"install one {chart} --wait --timeout=300s")
    assert client.get(web).status.readyReplicas == 1 and client.get(settings).data.kube.startswith("v1.36")
    assert client.get(client.key("example.com/v1/Chart", "one", namespace)).spec.of == "shop"
    assert "replicas: 7" in helm(f"upgrade one {chart} --set replicas=7 --dry-run=server")
    assert "REVISION: 2" in helm(f"upgrade one {chart} --set replicas=2,image=2 --wait --timeout=300s")
    assert client.get(web).status.readyReplicas == 2
    assert client.get(client.key("v1/ConfigMap", "one-hook", namespace)).data.ran == "2"
    assert "Rollback was a success" in helm("rollback one 1 --wait --timeout=300s")
    assert client.get(web).spec.template.spec.containers[0].image == "web:1"
    history = json.loads(helm("history one -o json"))
    assert [each["status"] for each in history] == ["superseded", "superseded", "deployed"]
    assert [each["name"] for each in json.loads(helm("list -o json"))] == ["one"]
    assert "one-web" in helm("get manifest one")
    assert "uninstalled" in helm("uninstall one --wait --timeout=300s")
    assert client.get(web) is None and client.list("v1/Pod", namespace) == []


@pytest.mark.interop
def test_an_upgrade_that_fails_is_rolled_back(control_plane, helm, chart, namespace):
    helm(f"install one {chart} --wait --timeout=300s")
    undo = "--atomic" if helm("version --short").startswith("v3.") else "--rollback-on-failure"
    told = helm(f"upgrade one {chart} --set replicas=-1 {undo} --wait --timeout=300s", code=1)
    assert "must be greater than or equal to 0" in told
    history = json.loads(helm("history one -o json"))
    assert [each["status"] for each in history][-2:] == ["failed", "deployed"]
    web = control_plane.client.key("apps/v1/Deployment", "one-web", namespace)
    assert control_plane.client.get(web).spec.replicas == 1
    assert "cannot re-use a name" in helm(f"install one {chart}", code=1).replace("cannot reuse", "cannot re-use")
