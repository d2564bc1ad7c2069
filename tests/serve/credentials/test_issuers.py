"""Users of other issuers, by an AuthenticationConfiguration: against a provider with real keys, over real TLS.

The expectations (which tokens count, what users they give, what is said) are kube-apiserver's, from Kubernetes 1.36's
documentation "Authenticating", section "Configuring the API server", and apiserver's authenticator.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric import ec

from steersman.run.believed import Believed
from steersman.run.load import StartError
from steersman.serve.credentials.issuers import provider as waiting
from steersman.serve.credentials.issuers.keys import read_keys
from steersman.serve.credentials.issuers.settings import read_settings
from steersman.serve.credentials.tls import Authority
from steersman.serve.files import FileError
from steersman.serve.message import Headers, Request
from tests.serve.credentials.provider import DISCOVERY, RSA_KEYS, Provider
from tests.serve.harness import in_loop
from tests.serve.plane import NOW, PODS, Plane

SECOND = NOW // 1_000_000
API = "apiserver.config.k8s.io/v1"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
CLAIMS = {"sub": "ann", "aud": "steersman", "exp": SECOND + 600}
PLAIN = {"username": {"claim": "sub", "prefix": "oidc:"}}


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority.create(tmp_path_factory.mktemp("issuer"))


class Scene:
    def __init__(self, authority: Authority, monkeypatch: Any) -> None:
        self.provider = Provider(*authority.server_files(["localhost"]))
        self.pem = authority.pem.decode()
        self.plane = Plane()
        monkeypatch.setattr(waiting, "AGAIN_SECONDS", 0.0)

    def jwt(self, mappings: Any = None, **parts: Any) -> dict[str, Any]:
        issuer = {"url": self.provider.url, "audiences": ["steersman"], "certificateAuthority": self.pem}
        issuer |= parts.pop("issuer", {})
        return {"issuer": issuer, "claimMappings": mappings or PLAIN, **parts}

    def use(self, *jwt: Any, **parts: Any) -> None:
        self.plane.app.access.issuers.use(settings({"jwt": list(jwt), **parts}))

    async def who(self, token: str, code: int = 201) -> Any:
        answer = await self.plane.post(WHO, {}, code, authorization=f"Bearer {token}")
        return answer.json["status"]["userInfo"] if code == 201 else answer.json

    async def why(self, **claims: Any) -> str:
        """What is wrong with a token of these claims, as a TokenReview tells it."""
        token = self.provider.token({**CLAIMS, **claims})
        return str((await self.review(token)).get("error"))

    async def review(self, token: str, **spec: Any) -> Any:
        return (await self.plane.post(REVIEWS, {"spec": {"token": token, **spec}})).json["status"]


@pytest.fixture
def scene(authority, monkeypatch) -> Iterator[Scene]:
    found = Scene(authority, monkeypatch)
    with contextlib.closing(found.provider):
        yield found


def settings(parts: dict[str, Any]) -> Any:
    document = {"apiVersion": API, "kind": "AuthenticationConfiguration", **parts}
    return read_settings(yaml.safe_dump(document).encode(), "file")


# -- tokens ------------------------------------------------------------------------------------------------------


@in_loop
async def test_a_token_of_an_issuer_is_its_user(scene):
    scene.use(scene.jwt({**PLAIN, "groups": {"claim": "roles", "prefix": "x-"}, "uid": {"claim": "oid"}}))
    token = scene.provider.token({**CLAIMS, "roles": ["dev", "ops"], "oid": "7", "jti": "j1"})
    assert await scene.who(token) == {
        "username": "oidc:ann", "uid": "7", "groups": ["x-dev", "x-ops", "system:authenticated"],
        "extra": {"authentication.kubernetes.io/credential-id": ["JTI=j1"]},
    }  # fmt: skip
    await scene.plane.get(PODS, 403, authorization=f"Bearer {token}")
    assert scene.provider.seen == [DISCOVERY, "/keys"]  # once for both
    one = scene.provider.token({**CLAIMS, "roles": "dev", "oid": "7", "aud": ["other", "steersman"]}, "curve")
    assert (await scene.who(one))["groups"] == ["x-dev", "system:authenticated"]
    assert (await scene.review(token))["user"]["username"] == "oidc:ann"
    assert "authenticated" not in await scene.review(token, audiences=["elsewhere"])


@pytest.mark.parametrize("alg", ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"])
@in_loop
async def test_every_algorithm_that_kubernetes_takes(scene, alg):
    curves = {"ES384": ec.SECP384R1(), "ES512": ec.SECP521R1()}
    if alg in curves:
        scene.provider.keys["curve"] = ec.generate_private_key(curves[alg])
    scene.use(scene.jwt())
    kid = "curve" if alg.startswith("ES") else "first"
    token = scene.provider.token(CLAIMS, kid, alg)
    assert (await scene.who(token))["username"] == "oidc:ann"
    await scene.who(token[:-8] + "AAAAAAAA", 401)


@in_loop
async def test_what_is_no_good(scene):
    scene.use(scene.jwt())
    invalid = "[invalid bearer token, oidc: verify token: "
    assert await scene.why() == "None"
    ended = "oidc: token is expired (Token Expiry: 2026-09-21 14:13:19 +0000 UTC)]"
    assert await scene.why(exp=SECOND - 1) == invalid + ended
    assert "token is expired" in await scene.why(exp=None)
    assert "before the nbf" in await scene.why(nbf=SECOND + 90) and await scene.why(nbf=SECOND + 30) == "None"
    assert await scene.why(aud=["other", "x"]) == (f'{invalid}oidc: expected audience "steersman" got ["other" "x"]]')
    assert await scene.why(iss="https://elsewhere") == "invalid bearer token"
    assert 'parse username claim "sub"' in await scene.why(sub=5)
    unsigned = scene.provider.token(CLAIMS).rpartition(".")[0]
    await scene.who(unsigned + ".", 401)
    for header in ({"alg": "none"}, {"alg": "HS256"}, {"crit": ["exp"]}, {"kid": "unknown"}):
        await scene.who(scene.provider.forged(CLAIMS, **header), 401)
    head, _, mark = scene.provider.token(CLAIMS).split(".")
    await scene.who(f"{head}.{scene.provider.token({**CLAIMS, 'sub': 'eve'}).split('.')[1]}.{mark}", 401)


@in_loop
async def test_new_keys_are_found_and_old_ones_forgotten(scene, monkeypatch):
    scene.use(scene.jwt())
    old = scene.provider.token(CLAIMS)
    await scene.who(old)
    scene.provider.keys = {"second": RSA_KEYS[1]}
    new = scene.provider.token(CLAIMS, "second")
    assert (await scene.who(new))["username"] == "oidc:ann"
    await scene.who(old, 401)
    monkeypatch.setattr(waiting, "AGAIN_SECONDS", 60.0)
    for number in range(20):  # anybody can name keys that are not there
        await scene.who(scene.provider.forged(CLAIMS, kid=f"none-{number}"), 401)
    assert scene.provider.seen.count("/keys") <= 4
    assert (await scene.who(new))["username"] == "oidc:ann"


@in_loop
async def test_an_issuer_that_cannot_be_reached_is_asked_again_later(scene):
    scene.use(scene.jwt())
    token = scene.provider.token(CLAIMS)
    for said in (
        (500, b""),
        (200, b"nonsense"),
        (200, b"[]"),
        (200, json.dumps({"issuer": "https://other", "jwks_uri": f"{scene.provider.url}/keys"}).encode()),
        (200, json.dumps({"issuer": scene.provider.url, "jwks_uri": "http://localhost/keys"}).encode()),
        (302, b""),
    ):
        scene.provider.answers[DISCOVERY] = said
        await scene.who(token, 401)
    assert (await scene.review(token))["error"] == "[invalid bearer token, oidc: authenticator not initialized]"
    assert "/keys" not in scene.provider.seen
    scene.provider.answers = {"/keys": (200, b"x" * (4 << 20))}
    await scene.who(token, 401)
    scene.provider.answers.clear()
    assert (await scene.who(token))["username"] == "oidc:ann"


@in_loop
async def test_an_issuer_with_a_certificate_of_somebody_else_is_not_believed(scene, tmp_path):
    scene.use(scene.jwt(issuer={"certificateAuthority": Authority.create(tmp_path).pem.decode()}))
    await scene.who(scene.provider.token(CLAIMS), 401)
    assert scene.provider.seen == []


@in_loop
async def test_its_description_may_be_elsewhere(scene):
    url, scene.provider.url = scene.provider.url, "https://issuer.example.com"
    scene.provider.answers["/elsewhere"] = (
        200, json.dumps({"issuer": "https://issuer.example.com", "jwks_uri": f"{url}/keys"}).encode()
    )  # fmt: skip
    scene.use(scene.jwt(issuer={"url": "https://issuer.example.com", "discoveryURL": f"{url}/elsewhere"}))
    assert (await scene.who(scene.provider.token(CLAIMS)))["username"] == "oidc:ann"


@in_loop
async def test_a_large_body_waits_for_keys_and_not_for_forgeries(scene, monkeypatch):
    scene.use(scene.jwt())
    app = scene.plane.app

    def head(token: str) -> Request:
        return Request("POST", PODS, PODS, "", Headers([("authorization", f"Bearer {token}")]))

    token = scene.provider.token(CLAIMS)
    assert app.screen(head(token)) is None and scene.provider.seen == []
    await scene.who(token)
    monkeypatch.setattr(waiting, "AGAIN_SECONDS", 60.0)
    await app.access.issuers.prepare(scene.provider.forged(CLAIMS, kid="none"))
    assert app.screen(head(token)) is None
    assert app.screen(head(scene.provider.forged(CLAIMS, kid="none"))).status == 401


# -- what a token means ------------------------------------------------------------------------------------------


@in_loop
async def test_expressions_make_a_user(scene):
    mappings = {
        "username": {"expression": "claims.email.split('@')[0] + ':' + string(claims.level)"},
        "groups": {"expression": "claims.roles.filter(r, r != 'none').map(r, 'team-' + r) + ['']"},
        "uid": {"expression": "claims.deep.who__dash__id"},
        "extra": [
            {"key": "example.org/admin", "valueExpression": "has(claims.is_admin) && claims.is_admin ? 'true' : ''"},
            {"key": "example.org/team", "valueExpression": "claims.?team.orValue(null)"},
        ],
    }
    verified = {"expression": "claims.?email_verified.orValue(true) == true", "message": "email must be verified"}
    known = [{"expression": "!user.username.startsWith('system:')", "message": "reserved"}]
    known.append({"expression": "user.groups.all(g, !g.startsWith('system:')) && user.extra.size() < 3"})
    scene.use(scene.jwt(mappings, claimValidationRules=[verified], userValidationRules=known))
    claims = {**CLAIMS, "email": "ann@x.org", "level": 3, "roles": ["a", "none"], "deep": {"who-id": "u"}}
    token = scene.provider.token({**claims, "is_admin": True})
    assert await scene.who(token) == {
        "username": "ann:3", "uid": "u", "groups": ["team-a", "system:authenticated"],
        "extra": {"example.org/admin": ["true"]},
    }  # fmt: skip
    prefix = "[invalid bearer token, oidc: error evaluating "
    assert await scene.why(**claims, email_verified=False) == (
        f"{prefix}claim validation expression: validation expression "
        "'claims.?email_verified.orValue(true) == true' failed: email must be verified]"
    )
    assert await scene.why(**{**claims, "email": "system:x@y"}) == (
        f"{prefix}user info validation rule: validation expression "
        "'!user.username.startsWith('system:')' failed: reserved]"
    )
    assert "no such key: roles" in await scene.why(email="a@b", level=1, deep={})
    assert "must return a string" in await scene.why(**{**claims, "deep": {"who-id": 5}})


@in_loop
async def test_claims_as_flags_of_old_mapped_them(scene):
    required = [{"claim": "hd", "requiredValue": "x.org"}]
    email = {"username": {"claim": "email", "prefix": ""}, "groups": {"claim": "groups", "prefix": ""}}
    scene.use(scene.jwt(email, claimValidationRules=required))
    assert await scene.why(email="a@x.org", hd="x.org") == "None"
    assert "required claim hd not present in ID token" in await scene.why(email="a@x.org")
    assert "Got = y.org, want = x.org" in await scene.why(email="a@x.org", hd="y.org")
    assert "oidc: email not verified" in await scene.why(email="a@x.org", hd="x.org", email_verified=False)
    assert 'parse username claim "email": claim not present' in await scene.why(hd="x.org")
    assert 'parse groups claim "groups"' in await scene.why(email="a@x.org", hd="x.org", groups=[1])
    assert "distributed claims are not followed" in await scene.why(
        email="a@x.org", hd="x.org", _claim_names={"groups": "s"}, _claim_sources={"s": {"endpoint": "https://y"}}
    )


# -- nobody ------------------------------------------------------------------------------------------------------


@in_loop
async def test_anonymous_where_it_is_allowed():
    plane = Plane()
    await plane.get("/version", 401, authorization="")
    plane.app.access.issuers.use(settings({"anonymous": {"enabled": True, "conditions": [{"path": "/version"}]}}))
    await plane.get("/version", 200, authorization="")
    await plane.get("/readyz?verbose", 401, authorization="")
    await plane.get("/version/", 401, authorization="")  # exact paths
    await plane.get("/version", 401, authorization="Bearer nonsense")
    plane.app.access.issuers.use(settings({"anonymous": {"enabled": True}}))
    await plane.get("/readyz?verbose", 200, authorization="")
    refused = await plane.get(PODS, 403, authorization="")
    assert 'User "system:anonymous" cannot list resource "pods"' in refused.json["message"]


# -- the file ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"issuer": {"url": "http://x"}}, 'jwt[0].issuer.url: Invalid value: "http://x": URL scheme must be https'),
        ({"issuer": {"url": ""}}, "jwt[0].issuer.url: Required value"),
        ({"issuer": {"url": "https://a:b@x"}}, "URL must not contain a username or password"),
        ({"issuer": {"url": "https://x?y=1"}}, "URL must not contain a query"),
        ({"issuer": {"url": "https://kubernetes.default.svc.cluster.local"}}, "must not overlap"),
        ({"issuer": {"discoveryURL": "https://x/"}}, "discoveryURL must be different from URL"),
        ({"issuer": {"audiences": []}}, "jwt[0].issuer.audiences: Required value: at least one"),
        ({"issuer": {"audiences": ["a", "a"]}}, 'jwt[0].issuer.audiences[1]: Duplicate value: "a"'),
        ({"issuer": {"audiences": ["a", "b"]}}, "audienceMatchPolicy must be MatchAny for multiple audiences"),
        ({"issuer": {"certificateAuthority": "x"}}, "jwt[0].issuer.certificateAuthority: Invalid value"),
        ({"issuer": {"egressSelectorType": "cluster"}}, "there is no egress selector here"),
        ({"issuer": {"nonsense": 1}}, "jwt[0].issuer: there is no field 'nonsense'"),
        ({"claimMappings": {}}, "jwt[0].claimMappings.username: Required value: claim or expression is required"),
        ({"claimMappings": {"username": {"claim": "sub"}}}, "prefix is required when claim is set"),
        ({"claimMappings": {"username": {"expression": "claims.sub +"}}}, "compilation failed: ERROR"),
        ({"claimMappings": {"username": {"expression": "claims.email"}}}, "claims.email_verified must be used"),
        ({"claimMappings": {"username": {"expression": "claims.?email.orValue('')"}}}, "claims.email_verified must"),
        ({"claimMappings": {"username": {"expression": "user.name"}}}, "undeclared reference to 'user'"),
        ({"claimMappings": {**PLAIN, "uid": {"claim": "a", "expression": "b"}}}, "can't both be set"),
        ({"claimMappings": {**PLAIN, "extra": [{"key": "a", "valueExpression": "''"}]}}, "domain-prefixed path"),
        ({"claimMappings": {**PLAIN, "extra": [{"key": "x.k8s.io/a", "valueExpression": "''"}]}}, "are reserved"),
        ({"claimMappings": {**PLAIN, "extra": [{"key": "a.b/c"}]}}, "extra[0].valueExpression: Required value"),
        ({"claimValidationRules": [{}]}, "claimValidationRules[0]: Required value: claim or expression is required"),
        ({"claimValidationRules": [{"expression": "claims.a"}]}, "must evaluate to bool"),
        ({"claimValidationRules": [{"claim": "a", "message": "b"}]}, "may not be specified when claim is set"),
        ({"userValidationRules": [{"expression": "user.uid == ''"}] * 2}, "expression: Duplicate value"),
        ({"userValidationRules": [{"expression": "user.nothing == ''"}]}, "undefined field 'nothing'"),
    ],
)
def test_what_is_wrong_in_the_file_is_named(change, told):
    jwt = {"issuer": {"url": "https://x", "audiences": ["a"], **change.get("issuer", {})}, "claimMappings": PLAIN}
    with pytest.raises(FileError) as error:
        settings({"jwt": [{**jwt, **{part: value for part, value in change.items() if part != "issuer"}}]})
    assert told in str(error.value) and str(error.value).startswith("file: ")


def test_the_whole_file_is_judged():
    jwt = {"issuer": {"url": "https://x", "audiences": ["a"]}, "claimMappings": PLAIN}
    for parts, told in (
        ({"jwt": [jwt, jwt]}, 'jwt[1].issuer.url: Duplicate value: "https://x"'),
        ({"jwt": [jwt] * 65}, "jwt: Too many: 65"),
        ({"anonymous": {"conditions": [{"path": "/x"}]}}, "enabled should be set to true when conditions are defined"),
        ({"kind": "Other"}, f"write apiVersion: {API} and kind: AuthenticationConfiguration"),
        ({"jwt": {}}, "file.jwt must be a list"),
        ({"apiVersion": "v1"}, f"write apiVersion: {API}"),
    ):
        with pytest.raises(FileError) as error:
            settings(parts)
        assert told in str(error.value)
    with pytest.raises(FileError, match="there twice"):
        read_settings(f"apiVersion: {API}\nkind: AuthenticationConfiguration\nkind: X\n".encode(), "file")


@in_loop
async def test_the_file_is_followed(scene, tmp_path):
    path = tmp_path / "authentication.yaml"
    with pytest.raises(StartError, match="there is no such file"):
        Believed(path)

    def write(*jwt: Any) -> None:
        document = {"apiVersion": API, "kind": "AuthenticationConfiguration", "jwt": list(jwt)}
        path.write_text(yaml.safe_dump(document))

    write()
    believed = Believed(path)
    scene.plane.app.access.issuers = believed.issuers
    token = scene.provider.token(CLAIMS)
    await scene.who(token, 401)
    write(scene.jwt())
    await believed.look()
    assert scene.provider.seen == [DISCOVERY, "/keys"]  # before anybody asks
    assert (await scene.who(token))["username"] == "oidc:ann"
    path.write_text("jwt: [")
    await believed.look()
    assert (await scene.who(token))["username"] == "oidc:ann"
    write(scene.jwt({"username": {"claim": "sub", "prefix": "new:"}}))
    await believed.look()
    assert (await scene.who(token))["username"] == "new:ann" and scene.provider.seen.count("/keys") == 2
    write()
    await believed.look()
    await scene.who(token, 401)


@pytest.mark.parametrize(
    "key",
    [
        {},
        {"kty": "oct", "k": "AAAA"},
        {"kty": "RSA", "n": "AQAB", "e": "AQAB"},
        {"kty": "RSA", "n": 5, "e": "AQAB"},
        {"kty": "EC", "crv": "P-256", "x": "AAAA", "y": "AAAA"},
        {"kty": "EC", "crv": "secp256k1", "x": "AAAA", "y": "AAAA"},
        {"kty": "EC"},
        {"kty": "RSA", "use": "enc"},
        7,
    ],
)
def test_keys_that_cannot_be_used_are_passed_over(key):
    assert read_keys({"keys": [key]}) == ()
