"""kubectl delete by every cascade, cordon, drain with a PodDisruptionBudget, against a whole control plane."""

from pathlib import Path

import pytest

from tests.interop.live import Live, OnNodes, live
from tests.interop.patience import until

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec:
  replicas: 2
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: c, image: "nginx:1"}]
"""
BUDGET = """
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: NAME}
spec: {minAvailable: LEAST, selector: {matchLabels: {app: NAME}}}
"""


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    with live(tmp_path_factory.mktemp("whole"), OnNodes) as running:
        yield running


def applied(plane: Live, folder: Path, text: str, name: str) -> None:
    path = folder / f"{name}.yaml"
    path.write_text(text.replace("NAME", name), encoding="utf-8")
    plane.run("apply", "-f", str(path))
    plane.run("rollout", "status", f"deployment/{name}", "--timeout=300s")


def names(plane: Live, kind: str, app: str) -> list[str]:
    return plane.run("get", kind, "-l", f"app={app}", "-o", "name", "--ignore-not-found").split()


def gone(plane: Live, kind: str, app: str) -> None:
    until(lambda: not names(plane, kind, app), lambda: f"there are still {names(plane, kind, app)}")


def test_foreground_ends_when_the_last_dependent_is_gone(plane, tmp_path):
    applied(plane, tmp_path, WEB, "fore")
    plane.run("delete", "deployment", "fore", "--cascade=foreground", "--timeout=300s")
    assert names(plane, "pods", "fore") == [] and names(plane, "rs", "fore") == []


def test_orphans_live_on(plane, tmp_path):
    applied(plane, tmp_path, WEB, "orphan")
    pods = names(plane, "pods", "orphan")
    plane.run("delete", "deployment", "orphan", "--cascade=orphan", "--timeout=300s")
    (left,) = plane.json("get", "rs", "-l", "app=orphan")["items"]
    assert "ownerReferences" not in left["metadata"]
    assert names(plane, "pods", "orphan") == pods
    plane.run("delete", "rs", "-l", "app=orphan")
    gone(plane, "pods", "orphan")


def test_what_controllers_did_is_told(plane, tmp_path):
    applied(plane, tmp_path, WEB, "told")
    told = plane.run("describe", "deployment", "told")
    assert "ScalingReplicaSet" in told and "Scaled up replica set told-" in told
    assert "SuccessfulCreate" in plane.run("describe", "rs", "-l", "app=told")
    plane.run("delete", "deployment", "told")
    gone(plane, "pods", "told")


def test_drain_waits_for_the_budget(plane, tmp_path):
    applied(plane, tmp_path, WEB + BUDGET.replace("LEAST", "2"), "drained")
    node = plane.json("get", "pods", "-l", "app=drained")["items"][0]["spec"]["nodeName"]
    plane.run("wait", "pdb/drained", "--for=jsonpath={.status.currentHealthy}=2", "--timeout=300s")
    refused = plane.run("drain", node, "--ignore-daemonsets", "--timeout=3s", code=1)
    assert "Cannot evict pod as it would violate the pod's disruption budget." in refused
    taints = plane.json("get", "node", node)["spec"]["taints"]
    assert [(each["key"], each["effect"]) for each in taints] == [("node.kubernetes.io/unschedulable", "NoSchedule")]
    assert "SchedulingDisabled" in plane.run("get", "node", node)

    plane.run("patch", "pdb", "drained", "--type=merge", "-p", '{"spec":{"minAvailable":1}}')
    done = plane.run("drain", node, "--ignore-daemonsets", "--timeout=300s")
    assert "evicted" in done and f"node/{node} drained" in done
    plane.run("rollout", "status", "deployment/drained", "--timeout=300s")
    assert all(pod["spec"]["nodeName"] != node for pod in plane.json("get", "pods", "-l", "app=drained")["items"])
    assert "uncordoned" in plane.run("uncordon", node)
    assert "SchedulingDisabled" not in plane.run("get", "node", node)
    plane.run("delete", "deployment,pdb", "drained")


CLAIMED = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: NAME}
provisioner: steersman.dev/virtual
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: NAME}
spec:
  storageClassName: NAME
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
---
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  nodeName: node-0
  terminationGracePeriodSeconds: 1
  containers: [{name: c, image: "nginx:1", volumeMounts: [{name: data, mountPath: /data}]}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: NAME}}]
"""


def test_a_claim_is_bound_for_its_pod_and_outlives_it(plane, tmp_path):
    path = tmp_path / "claimed.yaml"
    path.write_text(CLAIMED.replace("NAME", "claimed"), encoding="utf-8")
    plane.run("apply", "-f", str(path))
    plane.run("wait", "pvc/claimed", "--for=jsonpath={.status.phase}=Bound", "--timeout=300s")
    plane.run("wait", "pod/claimed", "--for=condition=Ready", "--timeout=300s")
    volume = plane.json("get", "pvc", "claimed")["spec"]["volumeName"]
    assert "Bound" in plane.run("get", "pv", volume)
    plane.run("delete", "pvc", "claimed", "--wait=false")
    assert "Terminating" in plane.run("get", "pvc", "claimed")
    plane.run("delete", "pod", "claimed", "--timeout=300s")
    plane.run("wait", f"pv/{volume}", "--for=delete", "--timeout=300s")
    assert "NotFound" in plane.run("get", "pvc", "claimed", code=1)


def test_a_namespace_goes_with_all_it_holds(plane, tmp_path):
    plane.run("create", "namespace", "shop")
    plane.run("create", "configmap", "a", "-n", "shop", "--from-literal=x=y")
    plane.run("delete", "namespace", "shop", "--timeout=300s")
    assert "NotFound" in plane.run("get", "namespace", "shop", code=1)
