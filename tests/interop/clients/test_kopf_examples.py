"""kopf's own examples, unmodified, from its source distribution: each operator is run by `kopf run` and made to work.

What each has to print is what its code says; it may print no traceback that is not part of the example, and a handler
that succeeded is not called again. The time is the examples' own: they wait, retry and ping by the second.
"""

import os
import re
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest

from steersman.serve.credentials.tls import Authority, server_context
from tests.interop.clients.programs import Program, find_kubectl
from tests.interop.clients.samples import NAMESPACE, a_pod
from tests.interop.patience import SECONDS, until

pytestmark = pytest.mark.interop

OPERATORS = Path(__file__).parent / "operators"
TRACED = ("03-exceptions", "04-events", "08-events", "99-all-at-once")
"""They raise what nobody expects, to show what becomes of it."""
CREATED = {
    "01-minimal": ["And here we are! Creating: {", "Handler 'create_fn' succeeded."],
    "02-children": ["Handler 'create_fn' succeeded."],
    "03-exceptions": [
        "Handler 'instant_failure_with_only_a_message' failed permanently: Fail once and for all.",
        "Handler 'eventual_success_with_a_few_messages' succeeded.",
        "Handler 'eventual_failure_with_tracebacks' failed with an exception and will stop",
        "Handler 'instant_failure_with_traceback' failed with an exception and will stop",
    ],
    "04-events": ["Handler 'create_fn' succeeded."],
    "05-handlers": ["CREATED 1st", "CREATED 2nd", "Handler 'create_fn_2' succeeded."],
    "07-subhandlers": ["=== Handling creation for item1. ===", "=== Handling creation for item2. ==="],
    "08-events": ["Event received: {", "Exception: Oops!"],
    "09-testing": ["Something was logged here."],
    "11-filtering-handlers": [
        *("Label is matching.", "Label is present.", "Label is absent.", "Label callback matching."),
        *("Annotation is matching.", "Annotation is present.", "Annotation is absent.", "Filter satisfied."),
        *("Field value is satisfied.", "Field presence is satisfied.", "Field daemon is satisfied."),
    ],
    "14-daemons": ["=> Ping from a sync daemon: field='value', retry=3", "=> Ping from an async daemon: field='value'"],
    "15-timers": ["Ping from a sync timer: field='value'", "Ping from an async timer: field='value'"],
    "99-all-at-once": [
        *("Starting retried...", "Handler 'create_1' succeeded."),
        "Handler 'create_2' failed with an exception and will try again in 60 seconds: Whoops!",
        *("Handler 'create_pod' succeeded.", "This pod is special for us."),
    ],
}
"""What an example prints once there is an object."""
CHANGED = {
    "05-handlers": ["UPDATED", "FIELD CHANGED: value -> changed"],
    "11-filtering-handlers": ["Field change is satisfied."],
}
"""What it prints when `spec.field` is changed."""
DELETED = {
    "05-handlers": ["DELETED 1st", "DELETED 2nd"],
    "08-events": ["'type': 'DELETED'"],
    "14-daemons": ["Daemon 'background_sync' succeeded.", "Daemon 'background_async' is cancelled"],
    "99-all-at-once": ["Handler 'delete' succeeded.", "Deleted, really deleted"],
}
NEVER = ("Annotation callback mismatch.", "Filter not satisfied.", "is not satisfied.")


class Operator:
    """A running operator and what it has printed."""

    def __init__(self, name, process, output):
        self.name, self.process, self.output = name, process, output

    def said(self):
        return self.output.read_text()

    def says(self, *texts):
        """Waits until it has said all of them."""
        until(
            lambda: all(text in self.said() for text in texts) or self.process.poll() is not None,
            lambda: f"{[text for text in texts if text not in self.said()]} not in\n{self.said()}",
        )

    def stop(self):
        """Ends it; its exit code and what it said were good."""
        self.process.terminate()
        assert self.process.wait(SECONDS) == 0, self.said()
        said = self.said()
        assert self.name in TRACED or "Traceback" not in said, said
        assert not any(text in said for text in NEVER), said
        once = Counter(re.findall(r"Handler '((?:create|eventual|update|field|delete)\w*)' succeeded", said))
        assert set(once.values()) <= {1}, f"{once}\n{said}"


class Examples:
    """The folder of kopf's examples, a control plane, and kubectl."""

    def __init__(self, folder, plane, home):
        self.folder, self.home = folder, home
        self.kubectl = Program(find_kubectl(), plane, home)
        self.client = plane.client
        path = {"PYTHONPATH": str(folder.parent / "lib"), "PYTHONUNBUFFERED": "1"}
        self.environ = {**os.environ, "KUBECONFIG": str(plane.kubeconfig), "HOME": str(home), **path}
        self.kubectl(f"apply -f {folder}/examples/crd.yaml")
        self.kubectl("wait --for=condition=Established crd/kopfexamples.kopf.dev --timeout=300s")

    def file(self, name):
        return f"{self.folder}/examples/{name}/example.py"

    def create(self):
        self.kubectl(f"apply -f {self.folder}/examples/obj.yaml")

    def run_pod(self):
        """The pod `p`."""
        pod = a_pod("p")
        self.client.create({**pod, "metadata": {**pod["metadata"], "namespace": NAMESPACE}})

    def change(self):
        self.kubectl("patch", "kex", "kopf-example-1", "--type=merge", "-p", '{"spec":{"field":"changed"}}')

    def delete(self):
        self.kubectl(f"delete -f {self.folder}/examples/obj.yaml --timeout=300s")

    @contextmanager
    def operator(self, name, *words, peers=False, **environ):
        """`kopf run` of an example (words: options and more files), ended with the block: well, unless that failed."""
        how = [] if peers else ["--standalone"]
        command = [sys.executable, "-m", "kopf", "run", "--all-namespaces", "--verbose", *how, self.file(name), *words]
        output = self.home / f"{name}{len(words)}.txt"
        with output.open("w") as file:
            process = subprocess.Popen(command, env={**self.environ, **environ}, stdout=file, stderr=subprocess.STDOUT)
        try:
            operator = Operator(name, process, output)
            yield operator
            operator.stop()
        except BaseException:
            print(output.read_text())  # pytest shows it
            raise
        finally:
            process.kill()
            process.wait()


@pytest.fixture
def examples(control_plane, namespace, tmp_path):
    found = sorted(Path(os.environ.get("CLIENTS", "/nowhere")).glob("kopf/kopf-*"))
    assert found, "no examples of kopf in $CLIENTS/kopf: `make test-interop` fetches them"
    return Examples(found[-1], control_plane, tmp_path)


@pytest.mark.parametrize("name", list(CREATED))
def test_an_object_is_created_changed_and_deleted(examples, name):
    with examples.operator(name) as operator:
        examples.create()
        operator.says(*CREATED[name])
        if name in CHANGED:
            examples.change()
            operator.says(*CHANGED[name])
        examples.delete()
        operator.says(*DELETED.get(name, ()))
    check = {"02-children": the_child_went, "04-events": the_events_are_there}.get(name)
    if check:
        check(examples)


def the_child_went(examples):
    examples.client.wait(lambda: not examples.client.list("v1/Pod", "default"), SECONDS, "the end of the owned pod")


def the_events_are_there(examples):
    events = [event for event in examples.client.list("v1/Event", "default") if event.reason == "SomeReason"]
    found = {(event.type, event.message) for event in events}
    assert {("SomeType", "Some message"), ("Normal", "Some message"), ("Warning", "Some message")} <= found
    assert ("Error", "Some exception: Exception text.") in found


def test_an_operator_in_development_takes_over(examples):
    examples.kubectl(f"apply -f {examples.folder}/peering.yaml", code=1)  # the kinds of its objects are not there yet
    examples.kubectl("wait --for=condition=Established crd/clusterkopfpeerings.kopf.dev --timeout=300s")
    examples.kubectl(f"apply -f {examples.folder}/peering.yaml")
    with examples.operator("06-peering", peers=True) as first:
        examples.create()
        first.says("Handler 'create_fn' succeeded.")
        with examples.operator("06-peering", "--dev", peers=True):
            first.says("Pausing operations in favour of [<Peer")
        first.says("Resuming operations after the pause.")
        examples.delete()


def test_pods_are_watched(examples):
    with examples.operator("10-builtins") as operator:
        operator.says("Client is configured")
        examples.run_pod()
        operator.says("[default/p] === Pod killing happens in 30s.")
        examples.kubectl("delete pod p --timeout=300s")
        operator.says("[default/p] === Pod killing is cancelled!")


def test_an_operator_in_a_thread_of_a_program(examples):
    done = subprocess.run(
        [sys.executable, examples.file("12-embedded")],
        env=examples.environ, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    for step in range(3):
        assert f"Hello, kopf-example-{step}!" in done.stdout and f"Good bye, kopf-example-{step}!" in done.stdout


def test_hooks_at_start_and_end_and_a_login_of_its_own(examples):
    with examples.operator("13-hooks") as operator:
        operator.says("Starting retried...", "Logging in in 2s...")
        examples.run_pod()
        operator.says("[default/p] Served by the background task.")
    assert "Cleaning up..." in operator.said()


def test_indexes_of_pods(examples):
    examples.run_pod()
    examples.kubectl("wait --for=condition=Ready pod/p --timeout=300s")
    with examples.operator("16-indexing") as operator:
        examples.create()
        operator.says("('app', 'web'): ['p']")
        examples.kubectl("wait kex/kopf-example-1 --for=jsonpath={.status.running-pods[0]}=default::p --timeout=300s")
        examples.delete()


def test_admission(examples, tmp_path):
    """The server that the example guesses makes its certificate with oscrypto, which knows no OpenSSL of today."""
    server_context(Authority.open(tmp_path / "pki"))
    pki = str(tmp_path / "pki")
    kinds = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
    with examples.operator("17-admission", str(OPERATORS / "certified.py"), WEBHOOK_PKI=pki) as operator:
        operator.says("Client is configured")
        client = examples.client
        keys = [client.key(f"admissionregistration.k8s.io/v1/{kind}", "auto.kopf.dev") for kind in kinds]
        client.wait(lambda: all((client.get(key) or {}).get("webhooks") for key in keys), SECONDS, "kopf's webhooks")
        told = examples.kubectl(f"apply -f {examples.folder}/examples/obj.yaml")
        assert "Warning: SSL peer is not identified." in told
        assert examples.kubectl("get kex kopf-example-1 -o jsonpath={.spec.injected}") == "123"
        wrong = ["patch", "kex", "kopf-example-1", "--type=merge", "-p"]
        told = examples.kubectl(*wrong, '{"spec":{"field":"wrong"}}', code=1)
        assert "Meh! I don't like it. Change the field." in told
        told = examples.kubectl(*wrong, '{"spec":{"field":"not-allowed"}}', code=1)
        assert "I'm too lazy anyway. Go away!" in told
        told = examples.kubectl(*wrong, '{"status":{"field":"else"}}', "--subresource=status", code=1)
        assert "status.field MUST be equal to spec.field!" in told
        examples.delete()
    assert not any(client.get(key).get("webhooks") for key in keys)
