"""dask-kubernetes 2026.3.0, an operator of other people, unmodified: it makes the parts of a cluster, and they end."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.interop.clients.programs import Program, find_kubectl
from tests.interop.patience import SECONDS

CLUSTER = {
    "apiVersion": "kubernetes.dask.org/v1",
    "kind": "DaskCluster",
    "metadata": {"name": "shop", "namespace": "default"},
    "spec": {
        "worker": {
            "replicas": 2,
            "spec": {"containers": [{"name": "worker", "image": "dask:1", "args": ["dask-worker"]}]},
        },
        "scheduler": {
            "spec": {"containers": [{"name": "scheduler", "image": "dask:1", "args": ["dask-scheduler"]}]},
            "service": {
                "type": "ClusterIP",
                "selector": {"dask.org/cluster-name": "shop", "dask.org/component": "scheduler"},
                "ports": [{"name": "tcp-comm", "protocol": "TCP", "port": 8786, "targetPort": "tcp-comm"}],
            },
        },
    },
}
CRDS = "deployment/helm/dask-kubernetes-operator/crds"
FIND = "import dask_kubernetes.operator as o; print(list(o.__path__)[0])"


@pytest.mark.interop
def test_a_cluster(control_plane, namespace, tmp_path):
    python = Path(os.environ.get("CLIENTS", "/nowhere")) / "dask" / "bin" / "python"
    assert python.exists(), "no dask-kubernetes in $CLIENTS/dask: `make test-interop` installs it there"
    found = subprocess.run([python, "-c", FIND], capture_output=True, text=True, check=True).stdout.strip()
    kubectl = Program(find_kubectl(), control_plane, tmp_path)
    for plural in ("daskclusters", "daskworkergroups", "daskjobs", "daskautoscalers"):
        kubectl(f"create -f {found}/{CRDS}/{plural[:-1]}.yaml")
        kubectl(f"wait --for=condition=Established crd/{plural}.kubernetes.dask.org --timeout=300s")
    client = control_plane.client
    environ = {**os.environ, "KUBECONFIG": str(control_plane.kubeconfig)}
    command = [python, "-m", "kopf", "run", "-A", "--standalone", "-m", "dask_kubernetes.operator.controller"]
    with (tmp_path / "output").open("w+") as output:
        operator = subprocess.Popen(command, env=environ, stdout=output, stderr=subprocess.STDOUT)
        try:
            client.create(CLUSTER)
            client.wait(lambda: named(client, "apps/v1/Deployment") >= {"shop-scheduler"}, SECONDS, "the scheduler")
            client.wait(lambda: "shop-scheduler" in named(client, "v1/Service"), SECONDS, "its service")
            client.wait(
                lambda: len(client.list("apps/v1/Deployment", "default")) == 3, SECONDS, "a scheduler, two workers"
            )
            client.wait(lambda: len(client.list("v1/Pod", "default")) == 3, SECONDS, "their pods")
            client.delete(client.key("kubernetes.dask.org/v1/DaskCluster", "shop", "default"))
            client.wait(lambda: not client.list("v1/Pod", "default"), SECONDS, "the end of all pods")
        finally:
            operator.terminate()
            operator.wait(SECONDS)
            output.seek(0)
            print(output.read())


def named(client, kind):
    return {each.metadata.name for each in client.list(kind, "default")}
