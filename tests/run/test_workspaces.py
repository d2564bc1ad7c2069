"""Workspaces: worlds of their own behind one server, made and deleted as objects of the root."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import ssl
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from steersman.api.errors import AlreadyExists
from steersman.run import head
from steersman.run.embed import Embedded, Plane
from steersman.serve.message import Headers, Request

CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}


@pytest.fixture(scope="module")
def root():
    with Embedded() as plane:
        yield plane


def ask(plane: Plane, path: str, token: str | None = None, seconds: float = 10.0) -> tuple[int, dict]:
    request = urllib.request.Request(plane.url + path)
    given = plane.token if token is None else token
    if given:
        request.add_header("Authorization", f"Bearer {given}")
    context = ssl.create_default_context(cadata=plane.ca.decode())
    try:
        with urllib.request.urlopen(request, context=context, timeout=seconds) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        text = error.read()
        return error.code, json.loads(text) if text[:1] == b"{" else {"message": text.decode()}


def named(name: str) -> dict:
    return {**CONFIG, "metadata": {"name": name, "namespace": "default"}}


def test_each_is_a_world_of_its_own(root):
    blue, green = root.workspace("blue"), root.workspace("green")
    blue.client.create(named("only-blue"))
    key = blue.client.key("v1/ConfigMap", "only-blue", "default")
    assert blue.client.get(key).data.a == "b"
    assert green.client.get(key) is None and root.client.get(key) is None
    assert ask(blue, "/api/v1/namespaces/default/configmaps/only-blue")[0] == 200
    assert ask(green, "/api/v1/namespaces/default/configmaps/only-blue")[0] == 404
    before = green.heads.store.rev
    for number in range(3):
        blue.client.create(named(f"more-{number}"))
    assert green.heads.store.rev == before
    with pytest.raises(AlreadyExists):
        root.workspace("blue")


def test_definitions_and_controllers_are_its_own(root):
    here, there = root.workspace(), root.workspace()
    names = {"plural": "foos", "singular": "foo", "kind": "Foo"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "x.dev", "scope": "Namespaced", "names": names, "versions": [version]}
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    here.client.create({**kind, "metadata": {"name": "foos.x.dev"}, "spec": spec})
    assert ask(here, "/apis/x.dev/v1")[0] == 200
    assert ask(there, "/apis/x.dev/v1")[0] == 404
    account = here.client.key("v1/ServiceAccount", "default", "default")
    assert here.client.wait(lambda: here.client.get(account), what="the default account")


def test_the_root_has_a_prefix_too_and_others_are_not_found(root):
    assert ask(root, "/clusters/root/api/v1/namespaces/default")[0] == 200
    code, status = ask(root, "/clusters/nowhere/api/v1/namespaces")
    assert (code, status["reason"], status["details"]["name"]) == (404, "NotFound", "nowhere")
    assert ask(root, "/clusters/nowhere/api/v1/namespaces", token="")[0] == 401
    assert ask(root, "/clusters/nowhere/api/v1/namespaces", token="wrong")[0] == 401
    assert ask(root, "/clusters/root%2F..%2Fx/api", token=None)[0] == 404
    assert ask(root, "/clusters//api/v1/namespaces")[0] == 404
    assert ask(root, "/clusters/root")[0] == 200


def test_one_that_was_made_right_after_another_write_is_there(monkeypatch):
    monkeypatch.setattr(head, "PACE_SECONDS", 60)  # what lands within it is not taken over by itself
    with Embedded(controllers=()) as plane:
        for number in range(3):
            plane.client.create(named(f"c{number}"))
            assert ask(plane.workspace(f"w{number}"), "/api/v1/namespaces")[0] == 200


def test_nothing_anonymous_and_no_right_of_another_workspace(root):
    blue, green = root.workspace(), root.workspace()
    assert ask(blue, "/api/v1/namespaces", token="")[0] == 401
    account = blue.client.key("v1/ServiceAccount", "default", "default")
    blue.client.wait(lambda: blue.client.get(account))
    made = blue.client.create_part(account, "token", {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"})
    token = made["status"]["token"]
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "everything"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}],
    }
    for workspace in (blue, green, root):  # the same name has all rights everywhere, and is still another account
        workspace.client.create(binding)
    assert ask(blue, "/api/v1/namespaces", token)[0] == 200
    assert ask(green, "/api/v1/namespaces", token)[0] == 401
    assert ask(root, "/api/v1/namespaces", token)[0] == 401


def test_a_deleted_one_ends_with_its_watches(root):
    doomed = root.workspace("doomed")
    request = urllib.request.Request(doomed.url + "/api/v1/configmaps?watch=true&resourceVersion=0")
    request.add_header("Authorization", f"Bearer {doomed.token}")
    context = ssl.create_default_context(cadata=doomed.ca.decode())
    with urllib.request.urlopen(request, context=context, timeout=20) as stream:
        root.client.wait(lambda: len(doomed.heads._wakeups) > 0 or doomed.client.create(named(f"c{time.time_ns()}")))
        doomed.forget()
        last = None
        for line in stream:
            last = json.loads(line)
    assert last is not None and last["type"] == "ERROR" and last["object"]["code"] == 410
    assert ask(root, "/clusters/doomed/api/v1/namespaces")[0] == 404
    again = root.workspace("doomed")
    assert all(obj.metadata.name[0] != "c" for obj in again.client.list("v1/ConfigMap", "default"))


def test_what_a_name_must_be(root):
    body = {"apiVersion": "steersman.dev/v1", "kind": "Workspace", "metadata": {"name": "root"}, "spec": {}}
    made = root.client.create(body)
    key = root.client.key("steersman.dev/v1/Workspace", "root")
    failed = root.client.wait(lambda: (root.client.get(key) or made).status.phase == "Failed", what="its failure")
    assert failed and "cannot be the name" in root.client.get(key).status.message
    assert ask(root, "/clusters/root/api/v1/namespaces/default")[0] == 200
    root.client.delete(key)


def test_they_outlive_a_restart_and_leave_nothing_when_deleted(tmp_path):
    store = f"sqlite:{tmp_path}/plane.db"
    with Embedded(store=store) as root:
        kept, gone = root.workspace("kept"), root.workspace("gone")
        kept.client.create(named("still-here"))
        gone.forget()
        folder = Path(f"{tmp_path}/plane.db.workspaces")
        end = time.monotonic() + 10
        while list(folder.glob("gone.*")):
            assert time.monotonic() < end
            time.sleep(0.02)
        assert folder.stat().st_mode & 0o077 == 0
        revision = kept.heads.store.rev
    with Embedded(store=store) as root:
        assert ask(root, "/clusters/kept/api/v1/namespaces/default/configmaps/still-here")[0] == 200
        assert ask(root, "/clusters/gone/api/v1/namespaces")[0] == 404
        found = asyncio.run_coroutine_threadsafe(root._owner.plane.workspaces.find("kept"), root.heads.loop).result(5)
        assert found.heads.store.rev >= revision


def test_waiting_says_what_did_not_come(root):
    with pytest.raises(TimeoutError, match=r"the moon did not come true in 0\.05 s"):
        root.client.wait(lambda: False, 0.05, "the moon")
    with contextlib.suppress(TimeoutError):
        root.client.wait(lambda: False, 0.0)


def test_no_certificate_is_signed_for_a_workspace(root):
    """All workspaces trust one authority, so its administrator would be whom it likes in every other one."""
    rogue = root.workspace()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "system:kube-controller-manager")])
    key = ec.generate_private_key(ec.SECP256R1())
    asked = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    spec = {
        "request": base64.b64encode(asked.public_bytes(serialization.Encoding.PEM)).decode(),
        "signerName": "kubernetes.io/kube-apiserver-client",
        "usages": ["client auth"],
    }
    kind = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}
    issued = []
    for plane in (rogue, root):
        made = plane.client.create({**kind, "metadata": {"name": "kcm"}, "spec": spec})
        approved = [{"type": "Approved", "status": "True", "reason": "r", "message": "m"}]
        plane.client.patch(made, {"status": {"conditions": approved}}, "approval", form="merge")
        key = plane.client.key("certificates.k8s.io/v1/CertificateSigningRequest", "kcm")
        issued.append((plane, key))
    signed, unsigned = issued[1], issued[0]
    root.client.wait(lambda: (signed[0].client.get(signed[1]).status or {}).get("certificate"), what="the root's")
    assert "certificate" not in unsigned[0].client.get(unsigned[1]).status


def test_whoever_is_known_in_a_workspace_is_known_to_the_connection(root):
    """Connections of strangers are the first to go in a flood."""
    root.workspace("with-users")
    plane = root._owner.plane
    for path in ("/api/v1/namespaces", "/clusters/with-users/api/v1/namespaces", "/clusters/none/api/v1/namespaces"):
        for token, known in ((root.token, True), ("wrong", False)):
            request = Request("GET", path, path, "", Headers([("authorization", f"Bearer {token}")]))
            asked = asyncio.run_coroutine_threadsafe(plane.workspaces(request), root._owner._loop)
            assert (asked.result(10).status == 401) is not known and request.known is known
