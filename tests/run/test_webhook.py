"""Admission webhooks over real HTTPS: in `run`'s heads and in the control plane in memory."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import http.server
import json
import ssl
import threading
import time

import pytest

from steersman.api.admission.hook import Hook as Question
from steersman.api.admission.service import place_of
from steersman.api.admission.standard import standard
from steersman.api.begin import Api
from steersman.api.errors import ApiError
from steersman.api.kinds import Kinds
from steersman.kernel.effect import Request
from steersman.kernel.object import Key
from steersman.run.head import Heads
from steersman.serve.credentials.tls import Authority
from steersman.serve.hooks import Hooks
from steersman.serve.memory import MemoryBackend
from tests.run.plane import memory

GROUP = "admissionregistration.k8s.io"
RULES = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}]


class Hook:
    """A webhook: a real HTTPS server on a free port. `answer(review)` gives the response, or None for none at all."""

    def __init__(self, authority, answer):
        self.reviews = []
        self.paths = []
        hook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                review = json.loads(self.rfile.read(int(self.headers["content-length"])))
                hook.reviews.append(review)
                hook.paths.append(self.path)
                response = answer(review)
                body = response if isinstance(response, bytes) else json.dumps(hook.wrapped(review, response)).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(body)

            def log_message(self, *args):
                pass

        certificate, key = authority.server_files(["127.0.0.1", "hook.default.svc"])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.server.handle_error = lambda *args: None
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    @staticmethod
    def wrapped(review, response):
        response = {"uid": review["request"]["uid"], "allowed": True, **(response or {})}
        return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority.open(tmp_path_factory.mktemp("pki") / "ca")


@pytest.fixture
def serve(authority):
    hooks = []

    def start(answer):
        hooks.append(Hook(authority, answer))
        return hooks[-1]

    yield start
    for hook in hooks:
        hook.close()


class Plane:
    """A control plane to write to, of either sort."""

    def __init__(self, backend, authority):
        self.backend = backend
        self.bundle = base64.b64encode(
            authority.pem if isinstance(authority.pem, bytes) else authority.pem.encode()
        ).decode()

    async def send(self, verb, kind, name, body=None, namespace="default", group="", **options):
        key = Key(group, kind, namespace, name)
        return await self.backend.write(Request(verb, key, body, "", "me", "me", self.backend.now(), options))

    async def install(self, hook, kind="Mutating", name="w", **fields):
        client = {"url": f"https://127.0.0.1:{hook.port}/hook", "caBundle": self.bundle} if hook else {}
        webhook = {
            "name": f"{name}.example.com",
            "clientConfig": client,
            "rules": RULES,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            **fields,
        }
        body = {"apiVersion": f"{GROUP}/v1", "kind": f"{kind}WebhookConfiguration", "metadata": {"name": name}}
        body["webhooks"] = [webhook]
        await self.send("create", body["kind"], name, body, "", GROUP)

    async def config(self, name="c", data=None, **options):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}
        if data:
            body["data"] = data
        return await self.send("create", "ConfigMap", name, body, **options)


@pytest.fixture(params=["run", "memory"])
def scene(request, authority):
    """Runs a coroutine function of a `Plane`."""

    def play(act):
        async def run():
            if request.param == "memory":
                backend = MemoryBackend()
                backend.bootstrap()
                return await act(Plane(backend, authority))
            heads = Heads(Api(Kinds.builtin(), admission=standard(controllers=())), memory())
            heads.questions.asking = Hooks()
            heads.start()
            try:
                plane = Plane(heads, authority)
                await plane.send("create", "Namespace", "default", {"metadata": {"name": "default"}}, "")
                return await act(plane)
            finally:
                await heads.close()
                heads.check()

        return asyncio.run(asyncio.wait_for(run(), 30))

    return play


def patch(*operations):
    return {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(operations).encode()).decode()}


def test_a_mutating_webhook_changes_what_is_stored(scene, serve):
    hook = serve(lambda review: {**patch({"op": "add", "path": "/data", "value": {"k": "v"}}), "warnings": ["careful"]})

    async def act(plane):
        await plane.install(hook)
        reply = await plane.config()
        stored = plane.backend.store.get(Key("", "ConfigMap", "default", "c"))
        assert stored.value["data"] == reply.obj.value["data"] == {"k": "v"}
        assert reply.warnings == ("careful",)

    scene(act)
    (review,) = hook.reviews
    request = review["request"]
    assert review["apiVersion"] == "admission.k8s.io/v1" and hook.paths == ["/hook?timeout=10s"]
    assert request["kind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert request["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
    assert request["operation"] == "CREATE" and request["namespace"] == "default" and request["dryRun"] is False
    assert request["object"]["metadata"]["name"] == "c" and request["oldObject"] is None
    assert request["userInfo"] == {"username": "me"} and request["options"]["kind"] == "CreateOptions"


def test_a_validating_webhook_refuses(scene, serve):
    def answer(review):
        return {"allowed": False, "status": {"code": 418, "reason": "Teapot", "message": "no tea"}}

    hook = serve(answer)

    async def act(plane):
        await plane.install(hook, "Validating")
        with pytest.raises(ApiError) as caught:
            await plane.config()
        assert (caught.value.code, caught.value.reason) == (418, "Teapot")
        assert caught.value.message == 'admission webhook "w.example.com" denied the request: no tea'
        assert plane.backend.store.get(Key("", "ConfigMap", "default", "c")) is None

    scene(act)


def test_validating_webhooks_are_asked_at_once_and_see_what_is_stored(scene, serve):
    together = threading.Barrier(2, timeout=10)

    def answer(review):
        together.wait()
        return {"allowed": review["request"]["object"]["data"] == {"k": "v"}}

    first, second = serve(answer), serve(answer)
    mutating = serve(lambda review: patch({"op": "add", "path": "/data", "value": {"k": "v"}}))

    async def act(plane):
        await plane.install(mutating)
        await plane.install(first, "Validating", "a")
        await plane.install(second, "Validating", "b")
        await plane.config()

    scene(act)


@pytest.mark.parametrize(
    "answer,told",
    [
        (b"not json", "couldn't get version/kind; json parse error"),
        (b"{}", "webhook response was absent"),
        (b'{"response": {"uid": "other", "allowed": true}}', "expected response.uid="),
        (b"x" * (4 << 20), "the response is longer than"),
    ],
)
def test_answers_that_are_none(scene, serve, answer, told):
    hook = serve(lambda review: answer)

    async def act(plane):
        await plane.install(hook)
        with pytest.raises(ApiError) as caught:
            await plane.config()
        assert caught.value.code == 500 and told in caught.value.message
        assert 'failed calling webhook "w.example.com"' in caught.value.message

    scene(act)


def test_failures_are_what_the_failure_policy_says(scene, serve):
    hook = serve(lambda review: {})
    hook.close()

    async def act(plane):
        await plane.install(hook, name="ignored", failurePolicy="Ignore")
        await plane.config("a")
        await plane.install(hook, name="fails", failurePolicy="Fail")
        with pytest.raises(ApiError, match=r'failed calling webhook "fails.example.com": failed to call webhook: Post'):
            await plane.config("b")

    scene(act)


def test_a_slow_webhook_times_out_and_nobody_waits_for_it(scene, serve):
    gate = threading.Event()
    hook = serve(lambda review: gate.wait(20) and {})

    async def act(plane):
        await plane.install(hook, timeoutSeconds=1)
        started = time.monotonic()
        slow = asyncio.create_task(plane.config())
        await asyncio.sleep(0.1)
        await plane.send("create", "Namespace", "other", {"metadata": {"name": "other"}}, "")
        assert time.monotonic() - started < 0.9  # the writer goes on
        with pytest.raises(ApiError, match="context deadline exceeded") as caught:
            await slow
        assert caught.value.code == 504

    try:
        scene(act)
    finally:
        gate.set()


def test_a_certificate_of_somebody_else_is_refused(scene, serve, tmp_path):
    hook = serve(lambda review: {})

    async def act(plane):
        plane.bundle = Plane(None, Authority.open(tmp_path / "other")).bundle
        await plane.install(hook)
        with pytest.raises(ApiError, match="tls: failed to verify certificate"):
            await plane.config()
        plane.bundle = base64.b64encode(b"junk").decode()
        await plane.install(hook, name="v", rules=[{**RULES[0], "resources": ["secrets"]}])
        with pytest.raises(ApiError, match="unable to load root certificates"):
            await plane.send("create", "Secret", "s", {"metadata": {"name": "s"}})

    scene(act)
    assert hook.reviews == []


def test_a_dry_run_is_told_to_webhooks(scene, serve):
    hook = serve(lambda review: {})

    async def act(plane):
        await plane.install(hook, sideEffects="NoneOnDryRun")
        await plane.config(dry_run=True)
        assert plane.backend.store.get(Key("", "ConfigMap", "default", "c")) is None

    scene(act)
    assert [review["request"]["dryRun"] for review in hook.reviews] == [True]


def test_selectors_conditions_and_rules_choose(scene, serve):
    hook = serve(lambda review: {"allowed": False})
    conditions = [{"name": "x", "expression": "object.metadata.name.startsWith('x')"}]

    async def act(plane):
        await plane.install(hook, "Validating", matchConditions=conditions)
        await plane.install(hook, "Validating", "o", objectSelector={"matchLabels": {"a": "b"}})
        await plane.install(hook, "Validating", "n", namespaceSelector={"matchLabels": {"a": "b"}})
        await plane.config("a")
        with pytest.raises(ApiError, match="without explanation"):
            await plane.config("xa")

    scene(act)
    assert [review["request"]["name"] for review in hook.reviews] == ["xa"]


def test_a_webhook_is_asked_again_when_others_changed_the_object(scene, serve):
    first = serve(lambda review: {})
    second = serve(lambda review: patch({"op": "add", "path": "/data", "value": {"n": "1"}}))

    async def act(plane):
        await plane.install(first, name="a", reinvocationPolicy="IfNeeded")
        await plane.install(second, name="b")
        await plane.config()

    scene(act)
    assert [review["request"]["object"].get("data") for review in first.reviews] == [None, {"n": "1"}]
    assert len(second.reviews) == 1


def test_a_service_is_found(scene, serve):
    hook = serve(lambda review: {})

    async def act(plane):
        service = {"name": "hook", "namespace": "default", "path": "/s", "port": hook.port}
        await plane.install(None, clientConfig={"service": service, "caBundle": plane.bundle})
        with pytest.raises(ApiError, match='service "hook" not found'):
            await plane.config()
        spec = {"type": "ExternalName", "externalName": "localhost"}
        await plane.send("create", "Service", "hook", {"metadata": {"name": "hook"}, "spec": spec})
        await plane.config()

    scene(act)
    assert hook.paths == ["/s?timeout=10s"]


def test_a_service_is_where_its_ready_endpoints_are():
    backend = MemoryBackend()
    backend.bootstrap()
    client = {"service": {"name": "hook", "namespace": "default", "port": 443}}

    def make(kind, name, group="", **parts):
        body = {"metadata": {"name": name, **parts.pop("meta", {})}, **parts}
        key = Key(group, kind, "default", name)
        backend.write_now(Request("create", key, body, actor="me", manager="me", now=backend.now()))

    assert place_of(backend.store, client).fault == 'service "hook" not found'
    make("Service", "hook", spec={"ports": [{"port": 443, "targetPort": 8443}]})
    assert place_of(backend.store, client).fault == 'no endpoints available for service "hook"'
    for number, (address, ready) in enumerate([("10.0.0.1", False), ("10.0.0.2", True)]):
        endpoints = [{"addresses": [address], "conditions": {"ready": ready}}]
        labels = {"labels": {"kubernetes.io/service-name": "hook"}}
        make("EndpointSlice", f"hook-{number}", "discovery.k8s.io", meta=labels, addressType="IPv4",
             endpoints=endpoints, ports=[{"port": 8443, "name": ""}])  # fmt: skip
    url, host = "https://hook.default.svc:443/", "hook.default.svc"
    assert place_of(backend.store, client) == (url, host, "", ("10.0.0.2:8443",))
    labels = {"labels": {"kubernetes.io/service-name": "hook"}}
    ending = {"ready": False, "serving": True, "terminating": True}
    endpoints = [{"addresses": ["fd00::1"]}, {"addresses": ["fd00::2"], "conditions": ending}]
    make("EndpointSlice", "hook-2", "discovery.k8s.io", meta=labels, addressType="IPv6",
         endpoints=endpoints, ports=[{"port": 8443, "name": ""}])  # fmt: skip
    assert place_of(backend.store, client).addresses == ("10.0.0.2:8443", "[fd00::1]:8443")
    for name in ("hook-1", "hook-2"):
        ended = (
            {"endpoints": [{**one, "conditions": ending} for one in endpoints]}
            if name == "hook-2"
            else {"endpoints": []}
        )
        backend.write_now(
            Request("patch", Key("discovery.k8s.io", "EndpointSlice", "default", name), ended, actor="me")
        )
    assert place_of(backend.store, client).addresses == ("[fd00::1]:8443", "[fd00::2]:8443")
    assert "no service port 80 found" in place_of(backend.store, {"service": {**client["service"], "port": 80}}).fault
    assert "write https://" in place_of(backend.store, {"url": "http://x"}).fault


def test_the_endpoints_of_a_service_take_turns(authority, serve):
    servers = [serve(lambda review: {"allowed": True}) for _ in range(2)]
    bundle = base64.b64encode(authority.pem).decode()
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {}}
    addresses = tuple(f"127.0.0.1:{server.port}" for server in servers)
    asked = Question("w", "https://hook.default.svc:443/s", "hook.default.svc", bundle, 10, review, "", addresses)

    async def act():
        hooks = Hooks()
        return [answer for _ in range(4) for answer in await hooks.call("webhook", (asked,))]

    assert all(answer["response"]["allowed"] for answer in asyncio.run(act()))
    assert [len(server.reviews) for server in servers] == [2, 2] and servers[0].paths[0] == "/s?timeout=10s"


def test_an_object_that_changed_meanwhile_is_asked_about_again(scene, serve):
    """The answer was about another version: the write is begun again on the head there is now."""
    started, go = threading.Event(), threading.Event()

    def answer(review):
        if review["request"]["operation"] == "UPDATE" and review["request"]["userInfo"]["username"] == "me":
            started.set()
            go.wait(10)
        return {}

    hook = serve(answer)

    async def act(plane):
        await plane.config(data={"n": "0"})
        await plane.install(hook)
        patching = asyncio.create_task(plane.send("patch", "ConfigMap", "c", {"data": {"mine": "1"}}))
        await asyncio.to_thread(started.wait, 10)
        key = Key("", "ConfigMap", "default", "c")
        other = Request("patch", key, {"data": {"theirs": "1"}}, "", "other", "other", plane.backend.now(), {})
        await plane.backend.write(other)
        go.set()
        await patching
        assert plane.backend.store.get(key).value["data"] == {"n": "0", "mine": "1", "theirs": "1"}

    scene(act)
    mine = [r["request"] for r in hook.reviews if r["request"]["userInfo"]["username"] == "me"]
    assert [request["oldObject"]["data"] for request in mine] == [{"n": "0"}, {"n": "0", "theirs": "1"}]
