"""kubectl and custom kinds, against a whole control plane: definition, objects, columns, scale, versions, the end."""

import json
from pathlib import Path

import pytest

from tests.interop.live import Live, Whole, live

CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets, shortNames: [wd], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        description: Something with a size.
        required: [spec]
        properties:
          spec:
            type: object
            required: [colour]
            properties:
              colour: {type: string, enum: [red, blue], description: How it looks.}
              replicas: {type: integer, default: 1, minimum: 0}
              port: {x-kubernetes-int-or-string: true}
          status:
            type: object
            properties:
              replicas: {type: integer}
              conditions:
                type: array
                items: {type: object, properties: {type: {type: string}, status: {type: string}}}
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    additionalPrinterColumns:
    - {name: Colour, type: string, jsonPath: .spec.colour}
    - {name: Ready, type: string, jsonPath: '.status.conditions[?(@.type=="Ready")].status'}
    - {name: Size, type: integer, jsonPath: .spec.replicas, priority: 1}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    selectableFields: [{jsonPath: .spec.colour}]
  - name: v1beta1
    served: true
    storage: false
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""
WIDGET = """
apiVersion: example.com/v1
kind: Widget
metadata: {name: one}
spec: {colour: red, port: http}
"""


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    with live(tmp_path_factory.mktemp("whole"), Whole) as running:
        yield running


def written(folder: Path, text: str, name: str) -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_from_a_definition_to_its_end(plane: Live, tmp_path: Path):
    crd, widget = written(tmp_path, CRD, "crd.yaml"), written(tmp_path, WIDGET, "widget.yaml")
    assert "created" in plane.run("create", "-f", crd)
    plane.run("wait", "--for=condition=Established", "crd/widgets.example.com", "--timeout=300s")
    assert "widgets.example.com" in plane.run("get", "crd")
    assert "wd" in plane.run("api-resources", "--api-group=example.com")

    told = plane.run("explain", "widget.spec")
    assert "How it looks." in told and "colour" in told and "-required-" in told
    assert "Something with a size." in plane.run("explain", "widgets")

    plane.run("create", "-f", widget)
    head, row = plane.run("get", "wd").splitlines()
    assert head.split() == ["NAME", "COLOUR", "READY", "AGE"]
    assert row.split()[:2] == ["one", "red"]
    assert "SIZE" in plane.run("get", "widgets", "-o", "wide")
    refused = plane.run("create", "-f", "-", code=1, stdin=WIDGET.replace("red", "green").replace("one", "two"))
    assert 'spec.colour: Unsupported value: "green": supported values: "red", "blue"' in refused

    assert "scaled" in plane.run("scale", "widget/one", "--replicas=4")
    assert plane.json("get", "widget", "one")["spec"]["replicas"] == 4
    plane.run("patch", "wd", "one", "--type=merge", "-p", '{"spec":{"colour":"blue"}}')
    status = json.dumps({"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    plane.run("patch", "wd", "one", "--subresource=status", "--type=merge", "-p", status)
    assert plane.run("get", "wd", "--no-headers").split()[:3] == ["one", "blue", "True"]
    plane.run("wait", "--for=condition=Ready", "widget/one", "--timeout=300s")
    assert "one" in plane.run("get", "wd", "--field-selector", "spec.colour=blue")
    assert plane.json("get", "widgets.v1beta1.example.com", "one")["apiVersion"] == "example.com/v1beta1"

    assert "configured" in plane.run("apply", "-f", "-", stdin=WIDGET.replace("red", "blue"))
    assert "serverside-applied" in plane.run("apply", "--server-side", "--force-conflicts", "-f", widget)
    assert "labeled" in plane.run("label", "wd", "one", "a=b")
    assert "annotated" in plane.run("annotate", "wd", "one", "a=b")
    assert "Colour:" in plane.run("describe", "widget", "one")
    assert "widget.example.com/one" in plane.run("get", "all")

    plane.run("delete", "crd", "widgets.example.com", "--timeout=300s")
    assert "could not find the requested resource" in plane.run("get", "widgets", code=1)  # by its cached discovery


def test_a_wrong_definition_is_told_as_kubernetes_tells_it(plane: Live):
    text = CRD.replace("colour: {type: string, enum: [red, blue], description: How it looks.}", "colour: {}")
    refused = plane.run("create", "-f", "-", code=1, stdin=text)
    field = "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[colour].type"
    assert f"{field}: Required value: must not be empty for specified object fields" in refused
