"""kubectl rollout of StatefulSets and DaemonSets, Jobs and CronJobs, against a whole control plane with a node."""

import pytest

from tests.interop.live import Whole, live
from tests.interop.patience import until

WORKLOADS = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, annotations: {kubernetes.io/change-cause: first}}
spec:
  serviceName: db
  replicas: 1
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {terminationGracePeriodSeconds: 1, containers: [{name: c, image: "nginx:1"}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {terminationGracePeriodSeconds: 1, containers: [{name: c, image: "nginx:1"}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "0 3 * * *"
  timeZone: Europe/Berlin
  jobTemplate:
    spec:
      template:
        metadata: {annotations: {steersman.dev/lifetime-seconds: "0"}}
        spec: {restartPolicy: Never, containers: [{name: c, image: busybox}]}
"""


class OnANode(Whole):
    """With a virtual node."""

    nodes = 1


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    folder = tmp_path_factory.mktemp("workloads")
    with live(folder, OnANode) as running:
        manifest = folder / "workloads.yaml"
        manifest.write_text(WORKLOADS, encoding="utf-8")
        running.run("apply", "-f", str(manifest))
        yield running


def images(plane, app):
    pods = plane.json("get", "pods", "-l", f"app={app}")["items"]
    return [pod["spec"]["containers"][0]["image"] for pod in pods]


ROLLED = ("sts/db", "ds/agent")


def rolled_out(plane, image):
    for what in ROLLED:
        plane.run("rollout", "status", what, "--timeout=300s")
        assert images(plane, what.partition("/")[2]) == [image]


def revisions(plane, what):
    told = plane.run("rollout", "history", what)
    return [line.split()[0] for line in told.splitlines()[2:] if line.strip()]


def test_rollout_status_history_and_undo(plane):
    rolled_out(plane, "nginx:1")
    for what in ROLLED:
        plane.run("set", "image", what, "c=nginx:2")
    rolled_out(plane, "nginx:2")
    for what in ROLLED:
        assert revisions(plane, what) == ["1", "2"]
        assert "nginx:1" in plane.run("rollout", "history", what, "--revision=1")
        plane.run("rollout", "undo", what)
    rolled_out(plane, "nginx:1")
    assert [revisions(plane, what) for what in ROLLED] == [["2", "3"]] * 2


def test_a_job_of_a_cronjob_and_waiting_for_it(plane):
    plane.run("create", "job", "now", "--from=cronjob/nightly")
    plane.run("wait", "--for=condition=complete", "job/now", "--timeout=300s")
    found = plane.json("get", "job", "now")
    assert found["status"]["succeeded"] == 1 and found["metadata"]["ownerReferences"][0]["kind"] == "CronJob"
    assert found["metadata"]["annotations"]["cronjob.kubernetes.io/instantiate"] == "manual"
    plane.run("delete", "job", "now")
    until(lambda: not plane.json("get", "pods", "-l", "job-name=now")["items"])


def test_the_columns_people_read(plane):
    plane.run("rollout", "status", "sts/db", "--timeout=300s")
    assert plane.run("get", "sts", "db", "--no-headers").split()[:2] == ["db", "1/1"]
    assert plane.run("get", "ds", "agent", "--no-headers").split()[:6] == ["agent", "1", "1", "1", "1", "1"]
