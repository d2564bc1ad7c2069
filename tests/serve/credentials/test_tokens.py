"""Tokens of service accounts: asked for, used, bound to what they are bound to, reviewed; and forged ones refused."""

from __future__ import annotations

import base64
import hmac
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.api.access.token_request import ISSUER, LEGACY_ISSUER
from steersman.kernel.effect import Request
from steersman.kernel.object import Key
from steersman.serve.credentials.signer import KEY_FILE, Signer
from steersman.serve.files import FileError
from tests.serve.harness import in_loop
from tests.serve.plane import NOW, PODS, Plane

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"


async def account(plane: Plane, name: str = "robot") -> Any:
    return (await plane.post(ACCOUNTS, {"metadata": {"name": name}})).json


async def token_of(plane: Plane, name: str = "robot", **spec: Any) -> str:
    answer = await plane.post(f"{ACCOUNTS}/{name}/token", {"spec": spec})
    return answer.json["status"]["token"]


def part(token: str, number: int) -> Any:
    text = token.split(".")[number]
    return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


async def ask(plane: Plane, token: str) -> int:
    """The code of a question that everybody who is somebody may ask."""
    return (await plane.post(WHO, {}, code=0, authorization=f"Bearer {token}")).code


async def review(plane: Plane, token: str, *audiences: str) -> Any:
    spec = {"token": token, **({"audiences": audiences} if audiences else {})}
    return (await plane.post(REVIEWS, {"spec": spec})).json["status"]


@in_loop
async def test_a_token_speaks_for_its_service_account():
    plane = Plane()
    uid = (await account(plane))["metadata"]["uid"]
    answer = (await plane.post(f"{ACCOUNTS}/robot/token", {"spec": {"expirationSeconds": 1200}})).json
    assert (answer["kind"], answer["apiVersion"]) == ("TokenRequest", "authentication.k8s.io/v1")
    assert answer["spec"] == {"audiences": [ISSUER], "expirationSeconds": 1200, "boundObjectRef": None}
    (entry,) = answer["metadata"].pop("managedFields")
    assert (entry["subresource"], entry["fieldsV1"]) == ("token", {"f:spec": {"f:expirationSeconds": {}}})
    assert answer["metadata"] | {"creationTimestamp": ""} == {
        "name": "robot", "namespace": "default", "uid": uid, "creationTimestamp": "",
    }  # fmt: skip
    token = answer["status"]["token"]
    assert part(token, 0) == {"alg": "ES256", "kid": plane.backend.signer.key_id}
    claims = part(token, 1)
    assert claims["exp"] - claims["iat"] == 1200 and claims["sub"] == "system:serviceaccount:default:robot"
    assert claims["kubernetes.io"] == {"namespace": "default", "serviceaccount": {"name": "robot", "uid": uid}}
    me = (await plane.post(WHO, {}, authorization=f"Bearer {token}")).json["status"]["userInfo"]
    assert me == {
        "username": "system:serviceaccount:default:robot",
        "uid": uid,
        "groups": ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
        "extra": {"authentication.kubernetes.io/credential-id": [f"JTI={claims['jti']}"]},
    }
    await plane.get(PODS, code=403, authorization=f"Bearer {token}")
    found = await review(plane, token)
    assert found["authenticated"] and found["audiences"] == [ISSUER] and found["user"]["uid"] == uid
    assert not [event for event in plane.backend._log.since(0, ("", "ServiceAccount")) if token in str(event)]


@in_loop
async def test_it_ends_with_its_time_and_with_its_account():
    plane = Plane()
    await account(plane)
    token = await token_of(plane, expirationSeconds=600)
    plane.time = NOW + 650 * 1_000_000
    assert await ask(plane, token) == 201  # clocks may differ by a minute
    plane.time = NOW + 661 * 1_000_000
    assert await ask(plane, token) == 401
    assert (await review(plane, token))["error"] == "[invalid bearer token, service account token has expired]"
    fresh = await token_of(plane)
    assert await ask(plane, fresh) == 201
    await plane.delete(f"{ACCOUNTS}/robot")
    assert await ask(plane, fresh) == 401
    await account(plane)  # another incarnation of the same name
    assert await ask(plane, fresh) == 401
    assert "does not match claim" in (await review(plane, fresh))["error"]


@in_loop
async def test_it_ends_with_the_pod_secret_or_node_it_is_bound_to():
    plane = Plane()
    await account(plane)
    spec = {"containers": [{"name": "c", "image": "i"}], "serviceAccountName": "robot", "nodeName": "n1"}
    pod = (await plane.post(PODS, {"metadata": {"name": "p"}, "spec": spec})).json["metadata"]
    node = (await plane.post("/api/v1/nodes", {"metadata": {"name": "n1"}})).json["metadata"]
    await plane.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}})
    tokens = {}
    for kind, name in (("Pod", "p"), ("Secret", "s"), ("Node", "n1")):
        tokens[kind] = await token_of(plane, boundObjectRef={"kind": kind, "apiVersion": "v1", "name": name})
        assert await ask(plane, tokens[kind]) == 201
    claims = part(tokens["Pod"], 1)["kubernetes.io"]
    assert claims["pod"] == {"name": "p", "uid": pod["uid"]} and claims["node"] == {"name": "n1", "uid": node["uid"]}
    extra = (await review(plane, tokens["Pod"]))["user"]["extra"]
    assert extra["authentication.kubernetes.io/pod-name"] == ["p"]
    assert extra["authentication.kubernetes.io/node-uid"] == [node["uid"]]
    await plane.delete(f"{PODS}/p", {"gracePeriodSeconds": 0})
    await plane.post(PODS, {"metadata": {"name": "p"}, "spec": spec})
    assert await ask(plane, tokens["Pod"]) == 401
    await plane.delete("/api/v1/namespaces/default/secrets/s")
    assert await ask(plane, tokens["Secret"]) == 401
    await plane.delete("/api/v1/nodes/n1")
    assert await ask(plane, tokens["Node"]) == 401


@in_loop
async def test_what_cannot_be_asked_for():
    plane = Plane()
    uid = (await account(plane))["metadata"]["uid"]
    path = f"{ACCOUNTS}/robot/token"
    await plane.post(f"{ACCOUNTS}/nobody/token", {}, code=404)
    short = (await plane.post(path, {"spec": {"expirationSeconds": 5}}, code=422)).json
    assert "may not specify a duration less than 10 minutes" in short["message"]
    await plane.post(path, {"spec": {"expirationSeconds": (1 << 32) + 1}}, code=422)
    await plane.post(path, {"metadata": {"name": "other"}}, code=422)
    await plane.post(path, {"metadata": {"uid": "other"}}, code=409)
    await plane.post(path, {"metadata": {"uid": uid}})
    await plane.post(path, {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"}}}, code=404)
    await plane.post(
        path, {"spec": {"boundObjectRef": {"kind": "Job", "apiVersion": "batch/v1", "name": "p"}}}, code=400
    )
    await plane.post(path, {"spec": {"audiences": "x"}}, code=400)
    await plane.post(path, [], code=400)
    spec = {"containers": [{"name": "c", "image": "i"}]}
    await plane.post(PODS, {"metadata": {"name": "p"}, "spec": spec})
    await plane.post(path, {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"}}}, code=400)
    await plane.get(path, code=405)
    await plane.post("/api/v1/namespaces/default/secrets/s/token", {}, code=404)  # the token controller's alone


@in_loop
async def test_a_token_for_others_is_not_for_us():
    plane = Plane()
    await account(plane)
    token = await token_of(plane, audiences=["vault", "db"])
    assert await ask(plane, token) == 401
    assert (await review(plane, token, "vault", "x"))["audiences"] == ["vault"]
    status = await review(plane, token)
    assert "authenticated" not in status and "is invalid for the target audiences" in status["error"]
    assert (await review(plane, "rubbish")) == {"user": {}, "error": "invalid bearer token"}
    await plane.post(REVIEWS, {"spec": {}}, code=400)
    assert (await review(plane, plane.token))["user"]["username"] == "steersman-admin"


@in_loop
async def test_forged_tokens_are_refused():
    plane = Plane()
    await account(plane)
    token = await token_of(plane)
    head, body, mark = token.split(".")
    other = Signer(ec.generate_private_key(ec.SECP256R1()))

    def b64(data: bytes) -> str:
        return base64.urlsafe_b64encode(data).decode().rstrip("=")

    payload = json.dumps(part(token, 1)).encode()
    none = b64(json.dumps({"alg": "none", "kid": plane.backend.signer.key_id}).encode())
    symmetric = b64(json.dumps({"alg": "HS256", "kid": plane.backend.signer.key_id}).encode())
    forged = hmac.digest(plane.backend.signer.key_set(), f"{symmetric}.{body}".encode(), "sha256")
    admin = b64(json.dumps({**part(token, 1), "sub": "system:serviceaccount:kube-system:x"}).encode())
    for text in (
        f"{none}.{body}.",
        f"{none}.{body}.{mark}",
        f"{symmetric}.{body}.{b64(forged)}",
        f"{head}.{admin}.{mark}",
        f"{head}.{body}.{b64(bytes(64))}",
        f"{head}.{body}.{mark}=",
        f"{head}.{body}.{mark[:-1]}{'A' if mark[-1] != 'A' else 'B'}",
        f"{head}.{body}",
        other.sign("token", payload),
        plane.backend.signer.sign("token", json.dumps({**part(token, 1), "iss": "https://evil"}).encode()),
    ):
        assert await ask(plane, text) == 401, text
    assert await ask(plane, token) == 201


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=60) | st.builds(".".join, st.lists(st.text(max_size=20), min_size=3, max_size=3)))
def test_no_text_is_a_token(text):
    assert SIGNER.verify(text) is None


SIGNER = Signer()


@in_loop
async def test_a_secret_holds_a_token_once_somebody_fills_it():
    plane = Plane()
    uid = (await account(plane))["metadata"]["uid"]
    secrets = "/api/v1/namespaces/default/secrets"
    meta = {"name": "s", "annotations": {"kubernetes.io/service-account.name": "robot"}}
    await plane.post(secrets, {"metadata": meta, "type": "kubernetes.io/service-account-token"})
    key = Key("", "Secret", "default", "s")
    plane.backend.write_now(Request("create", key, "PEM", "token", "tokens", "tokens", NOW))
    made = (await plane.get(f"{secrets}/s")).json
    assert made["metadata"]["annotations"]["kubernetes.io/service-account.uid"] == uid
    data = {name: base64.b64decode(text).decode() for name, text in made["data"].items()}
    assert data["ca.crt"] == "PEM" and data["namespace"] == "default"
    assert part(data["token"], 1)["iss"] == LEGACY_ISSUER and "exp" not in part(data["token"], 1)
    assert await ask(plane, data["token"]) == 201
    before = made["metadata"]["resourceVersion"]
    plane.backend.write_now(Request("create", key, "PEM", "token", "tokens", "tokens", NOW))
    assert (await plane.get(f"{secrets}/s")).json["metadata"]["resourceVersion"] == before
    await plane.merge(f"{secrets}/s", {"data": {"token": base64.b64encode(b"other").decode()}})
    assert await ask(plane, data["token"]) == 401
    assert (await review(plane, data["token"]))["error"].endswith("Token does not match server's copy]")


@in_loop
async def test_others_can_verify_tokens():
    plane = Plane()
    plane.app.url = "https://127.0.0.1:6443"
    found = await plane.get("/.well-known/openid-configuration")
    assert found.json["issuer"] == ISSUER and found.json["jwks_uri"] == "https://127.0.0.1:6443/openid/v1/jwks"
    keys = await plane.get("/openid/v1/jwks")
    assert keys.header("content-type") == "application/jwk-set+json"
    (key,) = keys.json["keys"]
    assert key["kid"] == plane.backend.signer.key_id and key["kty"] == "EC" and "d" not in key


def test_the_key_is_private_and_lasts(tmp_path):
    first = Signer.open(tmp_path)
    path = tmp_path / KEY_FILE
    assert path.stat().st_mode & 0o777 == 0o600
    token = first.sign("token", b'{"a":1}')
    assert Signer.open(tmp_path).verify(token) == {"a": 1}
    assert token not in repr(first)
    path.chmod(0o644)
    with pytest.raises(FileError, match="can be read by others"):
        Signer.open(tmp_path)
    path.chmod(0o600)
    path.write_bytes(b"rubbish")
    with pytest.raises(FileError, match="not a P-256 private key"):
        Signer.open(tmp_path)
