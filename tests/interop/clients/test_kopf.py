"""kopf: operators of every kind of handler, run by kopf's own command against a control plane of their own.

No operator may ever wait for its own patch to come back: their `consistency_timeout` is longer than any test waits.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from steersman.api.errors import ApiError
from steersman.kernel.value import thaw
from steersman.serve.credentials.tls import Authority, server_context
from tests.interop.clients.samples import NAMESPACE, a_definition, a_pod
from tests.interop.patience import SECONDS

OPERATORS = Path(__file__).parent / "operators"
KIND = "example.com/v1/Example"


class Cluster:
    """The control plane with the operators' kind in it, and objects of that kind."""

    def __init__(self, plane):
        self.plane = plane
        self.client = plane.client
        self.define(a_definition("examples", "Example"))

    def define(self, definition):
        self.client.create(definition)
        key = self.client.key("apiextensions.k8s.io/v1/CustomResourceDefinition", definition["metadata"]["name"])
        self.until(
            lambda: any(
                c.type == "Established" and c.status == "True" for c in self.client.get(key).status.conditions or ()
            )
        )

    def until(self, met):
        self.client.wait(met, SECONDS)

    def make(self, name, kind, annotations=None, **spec):
        meta = {"name": name, "namespace": NAMESPACE, "labels": {"kind": kind}, "annotations": annotations or {}}
        self.client.create({"apiVersion": "example.com/v1", "kind": "Example", "metadata": meta, "spec": spec})
        return self.client.key(KIND, name, NAMESPACE)

    def annotations(self, key):
        return self.client.get(key)["metadata"].get("annotations", {})

    def events(self):
        return self.client.list("v1/Event", NAMESPACE)

    def status(self, key):
        found = self.client.get(key)
        return {} if found is None else thaw(found.get("status", {}))

    @contextlib.contextmanager
    def operator(self, *files, **environ):
        """`kopf run FILES` as a process; what it printed is in `output` when the block has ended, and it ended well."""
        command = [
            sys.executable,
            "-u",
            "-m",
            "kopf",
            "run",
            "-n",
            NAMESPACE,
            *[str(OPERATORS / file) for file in files],
        ]
        environ = {**os.environ, "KUBECONFIG": str(self.plane.kubeconfig), **environ}
        with tempfile.TemporaryFile("w+") as output:
            process = subprocess.Popen(command, env=environ, stdout=output, stderr=subprocess.STDOUT)
            operator = SimpleNamespace(output="")
            try:
                yield operator
            finally:
                process.terminate()
                code = process.wait(SECONDS)
                output.seek(0)
                operator.output = output.read()
                print(operator.output)  # pytest shows it when the test fails
        assert code == 0, operator.output


@pytest.fixture
def cluster(control_plane, namespace):
    return Cluster(control_plane)


def test_creation_change_and_deletion(cluster):
    with cluster.operator("handlers.py") as operator:
        plain = cluster.make("plain", "plain", colour="red")
        cluster.until(lambda: cluster.status(plain).get("created") == {"colour": "red"})
        handled = "kopf.zalando.org/last-handled-configuration"
        cluster.until(lambda: handled in cluster.annotations(plain))
        assert json.loads(cluster.annotations(plain)[handled])["spec"]["colour"] == "red"
        held = cluster.client.get(plain)["metadata"]
        assert list(held["finalizers"]) == ["kopf.zalando.org/KopfFinalizerMarker"]
        cluster.client.patch(plain, {"spec": {"colour": "blue"}})
        cluster.until(lambda: cluster.status(plain).get("updated") == {"fields": ["spec.colour"]})
        cluster.until(lambda: cluster.status(plain).get("coloured/spec.colour") == {"from": "red", "to": "blue"})
        cluster.client.delete(plain)
        cluster.until(lambda: cluster.client.get(plain) is None)
        said = [e for e in cluster.events() if e["reason"] == "Welcomed"]
        assert [(e["message"], e["involvedObject"]["name"], e["type"]) for e in said] == [
            ("as an event of its own", "plain", "Normal")
        ]
    assert "told: deleted plain" in operator.output


def test_retries_and_errors(cluster):
    with cluster.operator("handlers.py") as operator:
        failing = cluster.make("failing", "failing")
        cluster.until(lambda: cluster.status(failing).get("fails_twice") == {"retry": 2})
        cluster.until(
            lambda: not any(name.startswith("kopf.zalando.org/fails") for name in cluster.annotations(failing))
        )
        cluster.until(lambda: any("failed permanently: never" in e["message"] for e in cluster.events()))
    assert "ValueError: unexpected" in operator.output


def test_objects_that_were_there_events_parts_filters_and_children(cluster):
    resumed = cluster.make("resumed", "resumed")
    with cluster.operator("handlers.py"):
        cluster.until(lambda: cluster.annotations(resumed))
    assert cluster.status(resumed) == {}, "to be handled for the first time is not to be resumed"
    with cluster.operator("handlers.py") as operator:
        cluster.until(lambda: cluster.status(resumed).get("resumed") == "found at the start")
        event = cluster.make("event", "event")
        parts = cluster.make("parts", "parts", items=["one", "two"])
        wanted = cluster.make("wanted", "filtered", {"colour": "red"}, wanted=True)
        plain = cluster.make("unwanted", "filtered", wanted=False)
        parent = cluster.make("parent", "parent")
        cluster.until(
            lambda: (
                cluster.status(parts).get("in_parts/one") == "made one"
                and cluster.status(parts).get("in_parts/two") == "made two"
            )
        )
        cluster.until(lambda: cluster.status(wanted).get("filtered") == "wanted")
        cluster.until(lambda: cluster.status(plain).get("without_annotation") == "absent")
        cluster.client.delete(event)
        cluster.until(lambda: cluster.client.get(event) is None)
        cluster.until(lambda: "with_a_child" in cluster.status(parent))
        child = cluster.status(parent)["with_a_child"]["child"]
        assert child["ownerReferences"][0]["uid"] == cluster.client.get(parent)["metadata"]["uid"]
    assert "without_annotation" not in cluster.status(wanted) and "filtered" not in cluster.status(plain)
    assert "told: ADDED event" in operator.output and "told: DELETED event" in operator.output


def test_daemons_timers_and_indexes(cluster):
    pod = a_pod("one")
    cluster.client.create({**pod, "metadata": {**pod["metadata"], "namespace": NAMESPACE}})
    with cluster.operator("background.py") as operator:
        daemon, timer, index = (cluster.make(kind, kind) for kind in ("daemon", "timer", "index"))
        cluster.until(lambda: cluster.status(timer).get("ticks", 0) >= 3)
        cluster.until(lambda: cluster.status(index).get("pods") == ["one"])
        time.sleep(0.5)  # the daemon of the loop fails twice first
        cluster.client.delete(daemon)
        cluster.until(lambda: cluster.client.get(daemon) is None)
        second = a_pod("two")
        cluster.client.create({**second, "metadata": {**second["metadata"], "namespace": NAMESPACE}})
        cluster.until(lambda: cluster.status(index).get("pods") == ["one", "two"])
    assert "told: thread stopped daemon" in operator.output and "told: loop stopped daemon" in operator.output


def test_admission_webhooks(cluster, tmp_path):
    server_context(Authority.open(tmp_path / "pki"))
    client = cluster.client
    kinds = [f"admissionregistration.k8s.io/v1/{kind}WebhookConfiguration" for kind in ("Validating", "Mutating")]
    configurations = [client.key(kind, "auto.example.com") for kind in kinds]
    with cluster.operator("admission.py", "certified.py", WEBHOOK_PKI=str(tmp_path / "pki")):
        cluster.until(lambda: all((client.get(key) or {}).get("webhooks") for key in configurations))
        mutated = cluster.make("mutated", "mutated", colour="red")
        assert client.get(mutated)["spec"]["by"] == "steersman-admin"
        with pytest.raises(ApiError, match="grey is no colour") as raised:
            cluster.make("refused", "plain", colour="grey")
        assert raised.value.code == 418
        with pytest.raises(ApiError, match="grey is no colour"):
            client.patch(mutated, {"spec": {"colour": "grey"}})
        with pytest.raises(ApiError, match="nothing is ever lost"):
            client.patch(mutated, {"status": {"state": "lost"}}, subresource="status")
    cluster.until(lambda: not any(client.get(key).get("webhooks") for key in configurations))


def test_peers(cluster):
    cluster.define(a_definition("kopfpeerings", "KopfPeering", "kopf.dev"))
    cluster.define(a_definition("clusterkopfpeerings", "ClusterKopfPeering", "kopf.dev"))
    meta = {"name": "peers", "namespace": NAMESPACE}
    cluster.client.create({"apiVersion": "kopf.dev/v1", "kind": "KopfPeering", "metadata": meta})
    peers = cluster.client.key("kopf.dev/v1/KopfPeering", "peers", NAMESPACE)
    with cluster.operator("peers.py", PEER_PRIORITY="10"):
        cluster.until(lambda: [p["priority"] for p in cluster.status(peers).values()] == [10])
        first = cluster.make("first", "plain")
        cluster.until(lambda: cluster.status(first).get("created") == "10")
    cluster.until(lambda: not any(cluster.status(peers).values()))
