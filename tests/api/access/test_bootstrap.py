"""Bootstrap tokens: whom they speak for, when they are no good, and what they sign; their controllers."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from steersman.api.access.bootstrap import CLUSTER_INFO, bearer, signature
from steersman.api.begin import Api
from steersman.api.kinds import Kinds
from steersman.controllers.bootstrap import BootstrapSigner, TokenCleaner
from steersman.kernel.effect import MICRO, Request
from steersman.kernel.object import Key
from steersman.serve.memory import MemoryBackend
from tests.controllers.worlds import client, make, settle

TOKEN = "abcdef.0123456789abcdef"
DAY = 1_790_000_000
SYSTEM = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}
PUBLIC = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-public"}}


def secret(name: str = "bootstrap-token-abcdef", kind: str = "bootstrap.kubernetes.io/token", **data: str) -> Any:
    given = {
        "token-id": "abcdef",
        "token-secret": "0123456789abcdef",
        "usage-bootstrap-authentication": "true",
        "usage-bootstrap-signing": "true",
        **{key.replace("_", "-"): text for key, text in data.items()},
    }
    encoded = {key: base64.b64encode(text.encode()).decode() for key, text in given.items() if text}
    meta = {"name": name, "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": kind, "data": encoded}


def who(token: str = TOKEN, **about: str) -> Any:
    backend = MemoryBackend(Api(Kinds.builtin()))
    backend.bootstrap()
    body = secret(**about)
    key = Key("", "Secret", "kube-system", body["metadata"]["name"])
    backend.write_now(Request("create", key, body, actor="x", manager="x"))
    return bearer(backend.store, DAY * MICRO, token)


def test_a_token_speaks_for_a_bootstrapper():
    user = who()
    assert (user.name, user.groups) == ("system:bootstrap:abcdef", ("system:bootstrappers",))
    extra = who(auth_extra_groups="system:bootstrappers:z:b,system:bootstrappers:a", expiration="2030-01-01T00:00:00Z")
    assert extra.groups == ("system:bootstrappers", "system:bootstrappers:a", "system:bootstrappers:z:b")


@pytest.mark.parametrize(
    "about",
    [
        {"token": "abcdef.0123456789abcdeg"},
        {"token": "abcdef.0123456789abcde"},
        {"token": "abcdef.0123456789abcdef\n"},
        {"token": "bbcdef.0123456789abcdef"},
        {"kind": "Opaque"},
        {"token_id": "xbcdef"},
        {"token_secret": ""},
        {"expiration": "2020-01-01T00:00:00Z"},
        {"expiration": "tomorrow"},
        {"usage_bootstrap_authentication": ""},
        {"usage_bootstrap_authentication": "True"},
        {"auth_extra_groups": "system:masters"},
        {"auth_extra_groups": "system:bootstrappers:a,"},
    ],
    ids=str,
)
def test_tokens_that_are_no_good(about):
    assert who(**about) is None


def test_the_signature_is_kubernetes_own():
    content = "Hello from the other side. I must have called a thousand times."  # of its test of jws.go
    made = signature(content, "joshua", "my voice is my passcode")
    assert made == "eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9..VShe2taLd-YTrmWuRkcL_8QTNDHYxQIEBsAYYiIj1_8"


def info(**data: str) -> Any:
    meta = {"name": CLUSTER_INFO.name, "namespace": CLUSTER_INFO.namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def test_cluster_info_is_signed_by_every_token_that_is_for_it():
    others = [
        secret("bootstrap-token-zzzzzz", token_id="zzzzzz"),
        secret("bootstrap-token-yyyyyy", token_id="yyyyyy", usage_bootstrap_signing=""),
        secret("bootstrap-token-wwwwww", token_id="xxxxxx"),
        secret("bootstrap-token-oldold", token_id="oldold", expiration="2001-01-01T00:00:00Z"),
    ]
    stale = {"jws-kubeconfig-gone00": "x", "kubeconfig": "text", "other": "kept"}
    w = settle(make([BootstrapSigner], [SYSTEM, PUBLIC, secret(), *others, info(**stale)]))
    found = dict(w.store.get(CLUSTER_INFO).value["data"])
    signed = {f"jws-kubeconfig-{name}": signature("text", name, "0123456789abcdef") for name in ("abcdef", "zzzzzz")}
    assert found == {"kubeconfig": "text", "other": "kept", **signed}
    rev = w.store.rev
    settle(w)
    assert w.store.rev == rev
    client(w).delete(Key("", "Secret", "kube-system", "bootstrap-token-abcdef"))
    client(w).patch(CLUSTER_INFO, {"data": {"kubeconfig": "new"}})
    settle(w)
    again = {"jws-kubeconfig-zzzzzz": signature("new", "zzzzzz", "0123456789abcdef")}
    assert dict(w.store.get(CLUSTER_INFO).value["data"]) == {"kubeconfig": "new", "other": "kept", **again}


def test_without_cluster_info_nothing_is_made():
    w = settle(make([BootstrapSigner], [SYSTEM, PUBLIC, secret()]))
    assert w.store.get(CLUSTER_INFO) is None


def test_tokens_go_when_they_end():
    tokens = [
        secret(expiration="2001-01-01T00:00:00Z"),
        secret("bootstrap-token-zzzzzz", expiration="2999-01-01T00:00:00+01:00"),
        secret("bootstrap-token-yyyyyy", expiration="soon"),
        secret("bootstrap-token-xxxxxx"),
        secret("mine", kind="Opaque", expiration="2001-01-01T00:00:00Z"),
    ]
    w = settle(make([TokenCleaner], [SYSTEM, *tokens]), timers=False)
    left = [obj.key.name for obj in w.store.list(("", "Secret"))]
    assert left == ["bootstrap-token-xxxxxx", "bootstrap-token-zzzzzz", "mine"]
