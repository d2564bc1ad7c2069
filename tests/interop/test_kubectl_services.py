"""kubectl with Services and what is behind them, autoscalers under load, and StatefulSets with volumes, on nodes."""

import json

import pytest

from tests.interop.live import OnNodes, live
from tests.interop.patience import until

STORED = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: late}
provisioner: steersman.dev/virtual
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: c, image: "nginx:1", volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {storageClassName: late, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {name: c, image: "nginx:1", ports: [{name: http, containerPort: 8080}], resources: {requests: {cpu: 100m}}}
"""


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    with live(tmp_path_factory.mktemp("services"), OnNodes) as running:
        yield running


def subsets(plane):
    """Of the Endpoints of web; kubectl warns that they are deprecated."""
    said = plane.run("get", "endpoints", "web", "-o", "json").partition("\nWarning:")[0]
    return json.loads(said).get("subsets")


def test_a_service_its_endpoints_and_an_autoscaler_under_load(plane):
    plane.run("create", "-f", "-", stdin=WEB)
    plane.run("rollout", "status", "deployment/web", "--timeout=300s")
    assert plane.run("expose", "deployment", "web", "--port=80", "--target-port=http") == "service/web exposed\n"
    (pod,) = plane.json("get", "pods", "-l", "app=web")["items"]
    address = pod["status"]["podIP"]
    until(lambda: subsets(plane))
    assert plane.run("get", "endpoints", "web", "--no-headers").split()[1] == f"[{address}]:8080"
    slices = plane.json("get", "endpointslices", "-l", "kubernetes.io/service-name=web")["items"]
    assert [each["endpoints"][0]["addresses"] for each in slices] == [[address]]
    assert slices[0]["ports"] == [{"name": "", "port": 8080, "protocol": "TCP"}]

    plane.run("annotate", "pod", pod["metadata"]["name"], "kwok.x-k8s.io/usage-cpu=300m")
    plane.run("autoscale", "deployment", "web", "--max=3", "--cpu=50%")
    until(lambda: plane.json("get", "deployment", "web")["spec"]["replicas"] == 3)
    told = until(lambda: plane.run("get", "events", "--field-selector=reason=SuccessfulRescale", "--no-headers"))
    assert "New size: 3; reason: cpu resource utilization (percentage of request) above target" in told
    plane.run("rollout", "status", "deployment/web", "--timeout=300s")
    until(lambda: len(subsets(plane)[0].get("addresses", ())) == 3)
    shown = plane.run("describe", "hpa", "web")
    assert "AbleToScale" in shown and "ValidMetricFound" in shown
    plane.run("delete", "service", "web")
    until(lambda: "web" not in plane.run("get", "endpoints", "-o", "name"))


def test_the_servers_own_service(plane):
    service = plane.json("get", "service", "kubernetes")
    assert service["metadata"]["labels"] == {"component": "apiserver", "provider": "kubernetes"}
    (port,) = service["spec"]["ports"]
    assert (port["name"], port["port"]) == ("https", 443)
    for slice_ in plane.json("get", "endpointslices", "-l", "kubernetes.io/service-name=kubernetes")["items"]:
        assert slice_["ports"][0]["port"] == port["targetPort"] and slice_["endpoints"][0]["conditions"]["ready"]
        assert service["spec"]["ipFamilies"] == [slice_["addressType"]]


def test_a_stateful_set_with_volumes(plane):
    plane.run("create", "-f", "-", stdin=STORED)
    plane.run("rollout", "status", "statefulset/db", "--timeout=300s")
    for number in range(2):
        claim = plane.json("get", "pvc", f"data-db-{number}")
        pod = plane.json("get", "pod", f"db-{number}")
        assert claim["status"]["phase"] == "Bound"
        assert claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == pod["spec"]["nodeName"]
