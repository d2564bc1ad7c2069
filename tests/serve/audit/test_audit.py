"""The audit log: whose requests are written, how much of them, what admission notes; never a secret; bounded."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import stat
import uuid
from pathlib import Path
from typing import Any

import pytest

from steersman.api.access.rbac import Ask
from steersman.api.access.user import User
from steersman.api.admission.standard import standard
from steersman.api.begin import Api
from steersman.api.kinds import Kinds
from steersman.serve.audit.log import AuditLog
from steersman.serve.audit.policy import EVERYTHING, Policy, read_policy
from steersman.serve.audit.trail import Auditor
from steersman.serve.credentials.tls import Authority
from steersman.serve.files import FileError
from steersman.serve.message import Request
from tests.run.test_webhook import Hook
from tests.serve.harness import in_loop
from tests.serve.plane import PODS, Plane, configmap, pod

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
CONFIGS = "/api/v1/namespaces/default/configmaps"
SECRETS = "/api/v1/namespaces/default/secrets"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


class Audited:
    """A control plane whose requests are written to a file."""

    def __init__(self, folder: Path, policy: Policy = EVERYTHING, workspace: str = "") -> None:
        self.plane = Plane(api=Api(Kinds.builtin(), admission=standard()))
        self.log = AuditLog(folder / "audit.log")
        self.plane.app.audit = Auditor(self.log, policy, lambda: self.plane.time, workspace)

    def events(self) -> list[Any]:
        return [json.loads(line) for line in self.log.path.read_text().splitlines()]

    def last(self) -> Any:
        return self.events()[-1]


def policy(*rules: dict[str, Any], **more: Any) -> Policy:
    return read_policy(
        json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules, **more}).encode(), "p"
    )


@in_loop
async def test_who_did_what_and_what_came_of_it(tmp_path):
    a = Audited(tmp_path)
    await a.plane.post(f"{CONFIGS}?fieldManager=me", configmap("a", k="v"), impersonate_user="")
    found = a.last()
    assert found["kind"] == "Event" and found["apiVersion"] == "audit.k8s.io/v1"
    assert (found["level"], found["stage"], found["verb"]) == ("Metadata", "ResponseComplete", "create")
    assert found["requestURI"] == f"{CONFIGS}?fieldManager=me" and found["userAgent"] == "pytest/1.0"
    assert found["user"]["groups"] == ["system:masters", "system:authenticated"]
    assert found["objectRef"] == {"resource": "configmaps", "namespace": "default", "apiVersion": "v1"}
    assert found["responseStatus"] == {"metadata": {}, "code": 201}
    assert found["stageTimestamp"].endswith("Z") and "requestObject" not in found and len(a.events()) == 1
    assert found["annotations"] == {"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""}
    assert stat.S_IMODE(a.log.path.stat().st_mode) == 0o600
    refused = await a.plane.get(f"{CONFIGS}/none", 404, audit_id="my-id")
    assert a.last()["responseStatus"]["reason"] == "NotFound" and refused.header("audit-id") == "my-id"
    await a.plane.get(CONFIGS, 403, impersonate_user="bob", impersonate_group="dev")
    last = a.last()
    assert last["impersonatedUser"]["username"] == "bob" and last["user"]["groups"][0] == "system:masters"
    assert last["annotations"]["authorization.k8s.io/decision"] == "forbid" and last["responseStatus"]["code"] == 403
    await a.plane.get("/version", 401, authorization="Bearer nobody")
    assert a.last()["responseStatus"]["code"] == 401 and a.last()["user"] == {}
    await a.plane.get("/healthz", authorization="")
    assert a.last()["user"]["username"] == "system:anonymous"


@in_loop
async def test_levels_and_what_is_left_out(tmp_path):
    a = Audited(
        tmp_path,
        policy(
            {"level": "None", "verbs": ["get"]},
            {
                "level": "RequestResponse",
                "resources": [{"group": "", "resources": ["configmaps"]}],
                "omitManagedFields": True,
            },
            {"level": "Request", "omitStages": ["RequestReceived"]},
        ),
    )
    await a.plane.get("/version")
    assert a.events() == []
    await a.plane.post(CONFIGS, configmap("a", k="v"))
    received, done = a.events()
    assert (received["stage"], done["stage"]) == ("RequestReceived", "ResponseComplete")
    assert received["auditID"] == done["auditID"] and "requestObject" not in received
    assert done["requestObject"]["data"] == {"k": "v"} and done["responseObject"]["metadata"]["uid"]
    assert "managedFields" not in done["responseObject"]["metadata"]
    await a.plane.post(ACCOUNTS, {"metadata": {"name": "default"}})
    await a.plane.post(PODS, pod("p"))
    assert a.last()["requestObject"]["metadata"]["name"] == "p" and "responseObject" not in a.last()
    yaml = b"metadata: {name: b}\ndata: {k: w}\napiVersion: v1\nkind: ConfigMap\n"
    await a.plane.ask("PATCH", f"{CONFIGS}/b?fieldManager=m", yaml, 201, content_type="application/apply-patch+yaml")
    assert a.last()["requestObject"]["data"] == {"k": "w"}


@in_loop
async def test_no_secret_is_written_whatever_the_policy_says(tmp_path):
    a = Audited(tmp_path, policy({"level": "RequestResponse"}))
    hidden = base64.b64encode(b"hunter2").decode()
    body = {"metadata": {"name": "s"}, "data": {"password": hidden}}
    await a.plane.post(SECRETS, body)
    for query in ("", "/s", "?limit=1"):
        await a.plane.get(SECRETS + query)
    patch = {"stringData": {"password": "hunter2"}}
    await a.plane.ask("PATCH", f"{SECRETS}/s", patch, 200, content_type="application/merge-patch+json")
    await a.plane.ask("DELETE", f"{SECRETS}", None, 200)
    await a.plane.post(ACCOUNTS, {"metadata": {"name": "robot"}})
    token = (await a.plane.post(f"{ACCOUNTS}/robot/token", {"spec": {}})).json["status"]["token"]
    await a.plane.post("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": token}})
    await a.plane.get(CONFIGS, 403, authorization=f"Bearer {token}")
    text = a.log.path.read_text()
    assert len(a.events()) > 15 and '"resource":"secrets"' in text and '"subresource":"token"' in text
    for secret in (hidden, "hunter2", token, a.plane.token):
        assert secret not in text


@in_loop
async def test_a_watch_begins_and_ends(tmp_path):
    a = Audited(tmp_path)
    watch = await a.plane.watch(f"{CONFIGS}?watch=1&timeoutSeconds=20")
    await a.plane.post(CONFIGS, configmap("a"))
    await watch.next()
    await watch.chunks.aclose()
    stages = [(event["verb"], event["stage"]) for event in a.events()]
    assert stages == [("watch", "ResponseStarted"), ("create", "ResponseComplete"), ("watch", "ResponseComplete")]


@in_loop
async def test_policies_and_pod_security_note_what_they_found(tmp_path):
    a = Audited(tmp_path, workspace="blue")
    spec = {
        "matchConstraints": {"resourceRules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]},
        "validations": [{"expression": "true"}, {"expression": "size(object.data) > 5", "message": "too little"}],
        "auditAnnotations": [{"key": "size", "valueExpression": "string(size(object.data))"}],
    }  # fmt: skip
    await a.plane.post(f"{ADMISSION}/validatingadmissionpolicies", {"metadata": {"name": "big"}, "spec": spec})
    binding = {"metadata": {"name": "b"}, "spec": {"policyName": "big", "validationActions": ["Audit"]}}
    await a.plane.post(f"{ADMISSION}/validatingadmissionpolicybindings", binding)
    await a.plane.post(CONFIGS, configmap("a", k="v"))
    notes = a.last()["annotations"]
    assert notes["big/size"] == "1" and notes["steersman.dev/workspace"] == "blue"
    assert json.loads(notes["validation.policy.admission.k8s.io/validation_failure"]) == [
        {"message": "too little", "policy": "big", "binding": "b", "expressionIndex": 1, "validationActions": ["Audit"]}
    ]
    labels = {"metadata": {"labels": {"pod-security.kubernetes.io/audit": "restricted"}}}
    await a.plane.ask("PATCH", "/api/v1/namespaces/default", labels, 200, content_type="application/merge-patch+json")
    await a.plane.post(ACCOUNTS, {"metadata": {"name": "default"}})
    await a.plane.post(PODS, pod("p"))
    notes = a.last()["annotations"]
    assert notes["pod-security.kubernetes.io/enforce-policy"] == "privileged:latest"
    assert notes["pod-security.kubernetes.io/audit-violations"].startswith(
        'would violate PodSecurity "restricted:latest": '
    )


@pytest.mark.parametrize("level", ["Metadata", "Request"])
@in_loop
async def test_what_webhooks_change_is_noted(tmp_path, level):
    """Keys and values are those of kube-apiserver's mutating webhooks; a patch is told from the level Request on."""
    a = Audited(tmp_path, policy({"level": level}))
    patch = [{"op": "add", "path": "/data", "value": {"k": "v"}}]
    said = {"allowed": True, "patchType": "JSONPatch", "auditAnnotations": {"why": "because"}}
    said["patch"] = base64.b64encode(json.dumps(patch).encode()).decode()
    authority = Authority.create(tmp_path / "pki")
    hook = Hook(authority, lambda review: said)
    with contextlib.closing(hook):
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
        client = {"url": f"https://127.0.0.1:{hook.port}/", "caBundle": base64.b64encode(authority.pem).decode()}
        webhook = {"name": "w.example.com", "rules": [rule], "clientConfig": client, "sideEffects": "None"}
        webhook |= {"admissionReviewVersions": ["v1"], "matchPolicy": "Exact"}
        body = {"metadata": {"name": "w"}, "webhooks": [webhook]}
        await a.plane.post(f"{ADMISSION}/mutatingwebhookconfigurations", body)
        stored = (await a.plane.post(CONFIGS, configmap("a"))).json
    assert stored["data"] == {"k": "v"}
    notes = a.last()["annotations"]
    about = {"configuration": "w", "webhook": "w.example.com"}
    mutation = json.loads(notes["mutation.webhook.admission.k8s.io/round_0_index_0"])
    assert mutation == {**about, "mutated": True} and notes["w.example.com/why"] == "because"
    told = notes.get("patch.webhook.admission.k8s.io/round_0_index_0")
    assert (told is None) == (level == "Metadata")
    assert told is None or json.loads(told) == {**about, "patch": patch, "patchType": "JSONPatch"}


@in_loop
async def test_without_a_log_nothing_is_noted_and_answers_have_their_id():
    plane = Plane()
    assert plane.app.audit is None
    answers = [
        await plane.post(CONFIGS, configmap("a")),
        await plane.get(f"{CONFIGS}/none", 404),
        await plane.get(CONFIGS, 401, authorization=""),
        await plane.get("/healthz", authorization=""),
        await plane.get("/nowhere", 404),
        await plane.get(f"{CONFIGS}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Dx"),
        await plane.get(CONFIGS, accept_encoding="gzip"),
    ]
    found = [answer.header("audit-id") for answer in answers]
    assert len(set(found)) == len(found) and all(str(uuid.UUID(each)) == each for each in found)
    assert (await plane.get(CONFIGS, audit_id="mine")).header("audit-id") == "mine"
    assert (await plane.get(CONFIGS, audit_id="x" * 65)).header("audit-id") != "x" * 65


def test_the_log_is_bounded_and_goes_on(tmp_path):
    path = tmp_path / "a.log"
    log = AuditLog(path, max_bytes=200, kept=2)
    for number in range(20):
        log.write({"number": number, "text": "x" * 50})
    log.close()
    files = sorted(each.name for each in tmp_path.iterdir())
    assert files == ["a.log", "a.log.1", "a.log.2"] and all(each.stat().st_size <= 200 for each in tmp_path.iterdir())
    lines = [line for name in ("a.log.2", "a.log.1", "a.log") for line in (tmp_path / name).read_text().splitlines()]
    assert [json.loads(line)["number"] for line in lines] == list(range(20 - len(lines), 20))
    again = AuditLog(path, max_bytes=10**6)
    again.write({"number": 20, "requestObject": "x" * (1 << 20)})
    assert json.loads(path.read_text().splitlines()[-1]) == {
        "number": 20, "annotations": {"audit.k8s.io/truncated": "true"},
    }  # fmt: skip
    with pytest.raises(FileError, match="name another path"):
        AuditLog(tmp_path / "none" / "a.log")


RULES = policy(
    {"level": "None", "users": ["noisy"]},
    {"level": "Metadata", "userGroups": ["ops"], "verbs": ["delete"]},
    {"level": "Request", "resources": [{"group": "apps", "resources": ["deployments/*"]}], "namespaces": ["a"]},
    {
        "level": "RequestResponse",
        "resources": [{"group": "", "resources": ["*/status", "pods"], "resourceNames": ["x"]}],
    },
    {"level": "Metadata", "resources": [{"group": "batch"}]},
    {"level": "Request", "nonResourceURLs": ["/livez*", "/version"]},
)


@pytest.mark.parametrize(
    ("user", "ask", "level"),
    [
        (User("noisy", ("ops",)), Ask("delete", "", "pods"), "None"),
        (User("x", ("ops",)), Ask("delete", "", "secrets"), "Metadata"),
        (User("x"), Ask("get", "apps", "deployments", "scale", "a"), "Request"),
        (User("x"), Ask("get", "apps", "deployments", "", "a"), "Request"),
        (User("x"), Ask("get", "apps", "deployments", "", "b"), "None"),
        (User("x"), Ask("get", "", "nodes", "status", "", "x"), "RequestResponse"),
        (User("x"), Ask("get", "", "pods", "", "a", "x"), "RequestResponse"),
        (User("x"), Ask("get", "", "pods", "", "a", "y"), "None"),
        (User("x"), Ask("get", "", "pods", "log", "a", "x"), "None"),
        (User("x"), Ask("list", "batch", "jobs"), "Metadata"),
        (User("x"), Ask("get", path="/livez/ping"), "Request"),
        (User("x"), Ask("get", path="/versions"), "None"),
    ],
)
def test_the_first_rule_that_matches_counts(user, ask, level):
    assert RULES.rule_of(user, ask).level == level


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: [", ""),
        ("[]", "must be an object"),
        ("kind: Policy\napiVersion: audit.k8s.io/v1beta1\nrules: [{level: None}]", "apiVersion"),
        ("kind: Policy\napiVersion: audit.k8s.io/v1", "rules"),
        ("kind: Policy\napiVersion: audit.k8s.io/v1\nrules: [{level: All}]", "rules[0].level"),
        ("kind: Policy\napiVersion: audit.k8s.io/v1\nrules: [{level: None, user: [x]}]", "no field 'user'"),
        ("kind: Policy\napiVersion: audit.k8s.io/v1\nrules: [{level: None, users: x}]", "must be a list"),
        ("kind: Policy\napiVersion: audit.k8s.io/v1\nrules: [{level: None, omitStages: [x]}]", "no stage 'x'"),
        (
            "kind: Policy\napiVersion: audit.k8s.io/v1\nrules: [{level: None, nonResourceURLs: [/x], namespaces: [a]}]",
            "not about both",
        ),
        ("kind: Policy\napiVersion: audit.k8s.io/v1\nrules: [{level: None, nonResourceURLs: [x]}]", "nonResourceURLs"),
    ],
)
def test_a_policy_that_is_wrong_is_refused_with_the_field(text, told):
    with pytest.raises(FileError) as error:
        read_policy(text.encode(), "FILE")
    assert str(error.value).startswith("FILE") and told in str(error.value)


@in_loop
async def test_no_request_escapes_the_log(tmp_path):
    """Paths and bodies that nobody can read, clients that do not wait for the answer, streams that nobody reads."""
    a = Audited(tmp_path, policy({"level": "Request", "omitStages": ["RequestReceived"]}))
    for code, token in ((401, "none"), (404, a.plane.token)):
        await a.plane.get("/a" * 30, code, authorization=f"Bearer {token}")
        assert a.last()["responseStatus"]["code"] == code
    for body in (b'{"items":[' * 400 + b"]}" * 400, b'{"a":' * 200 + b"1" + b"}" * 200):
        await a.plane.post(CONFIGS, body, 400)
        assert a.last()["responseStatus"]["code"] == 400 and "requestObject" not in a.last()
    huge = b"{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, more: 123456789012345678901234567890}"
    await a.plane.ask("POST", CONFIGS, huge, content_type="application/yaml")
    assert a.last()["annotations"]["audit.k8s.io/truncated"] == "true"

    async def slow(request: Any) -> Any:
        await asyncio.sleep(60)

    asking = asyncio.ensure_future(a.plane.app.audit.observed(Request("DELETE", f"{CONFIGS}/a"), slow))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait([asking])
    assert a.last()["verb"] == "delete" and a.last()["responseStatus"]["code"] == 504
    response = await a.plane.send("GET", f"{CONFIGS}?watch=1")
    await response.body.aclose()  # type: ignore[union-attr]
    assert (a.last()["verb"], a.last()["stage"]) == ("watch", "ResponseComplete")


@in_loop
async def test_a_secret_that_cannot_be_decoded_is_not_quoted(tmp_path):
    a = Audited(tmp_path)
    answer = await a.plane.post(SECRETS, b'{"data": {"password": "hunter2"', 400)
    assert "hunter2" in answer.json["message"]
    assert a.last()["responseStatus"]["code"] == 400 and "hunter2" not in a.log.path.read_text()


def test_a_line_that_was_cut_off_does_not_take_the_next_with_it(tmp_path, monkeypatch):
    path = tmp_path / "a.log"
    path.write_bytes(b'{"number": 0')
    log = AuditLog(path)
    log.write({"number": 1})
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, line: write(handle, line[:5]))
    log.write({"number": 2})
    monkeypatch.undo()
    log.write({"number": 3})
    assert path.read_text().splitlines() == ['{"number": 0', '{"number":1}', '{"num', '{"number":3}']
    assert (log.written, log.failed) == (2, 1)
