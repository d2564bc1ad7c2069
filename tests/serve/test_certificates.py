"""CertificateSigningRequests: who asks is who is authenticated; approved by who may; signed; usable."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from steersman.api.access.certificates import CLIENT, CSR, KUBELET_CLIENT, KUBELET_SERVING
from steersman.kernel.effect import Request
from steersman.kernel.object import Key
from steersman.serve import message
from steersman.serve.credentials.signer import Signer
from steersman.serve.credentials.tls import Authority
from steersman.serve.message import Headers
from tests.serve.harness import in_loop
from tests.serve.plane import Plane

PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
AUTHZ = "/apis/rbac.authorization.k8s.io/v1"
CLIENT_USAGES = ["client auth", "digital signature"]


def asked(user: str, *groups: str, dns: str = "", ca: bool = False) -> str:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    builder = x509.CertificateSigningRequestBuilder()
    builder = builder.subject_name(x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, user)]))
    if dns:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(dns)]), critical=False)
    if ca:
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    made = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return base64.b64encode(made.public_bytes(Encoding.PEM)).decode()


def body(name: str = "a", **spec: Any) -> dict[str, Any]:
    full = {"request": asked("jane", "dev"), "signerName": CLIENT, "usages": CLIENT_USAGES, **spec}
    return {"metadata": {"name": name}, "spec": full}


def condition(kind: str) -> dict[str, Any]:
    return {"type": kind, "status": "True", "reason": "Test", "message": "m"}


async def decide(plane: Plane, name: str, *kinds: str, code: int = 200, **headers: str) -> Any:
    found = (await plane.get(f"{PATH}/{name}")).json
    found["status"] = {"conditions": [condition(kind) for kind in kinds]}
    return (await plane.put(f"{PATH}/{name}/approval", found, code=code, **headers)).json


def sign(plane: Plane, name: str) -> None:
    request = Request("create", Key(*CSR, "", name), None, "certificate", "signer", "signer", plane.time)
    plane.backend.write_now(request)


def plane_with(tmp_path: Any) -> tuple[Plane, Authority]:
    plane = Plane()
    authority = Authority.create(tmp_path / "pki")
    plane.backend.signer = Signer(authority=authority)
    return plane, authority


def certificate(found: Any) -> x509.Certificate:
    return x509.load_pem_x509_certificate(base64.b64decode(found["status"]["certificate"]))


@in_loop
async def test_an_approved_request_is_signed_and_authenticates(tmp_path):
    plane, authority = plane_with(tmp_path)
    plane.time = int(authority.certificate.not_valid_before_utc.timestamp() + 600) * 1_000_000
    made = (await plane.post(PATH, {**body(expirationSeconds=3600, username="root", groups=["x"]), "status": {
        "conditions": [condition("Approved")]}})).json  # fmt: skip
    assert made["spec"]["username"] == "steersman-admin" and "system:masters" in made["spec"]["groups"]
    assert not made["status"]
    sign(plane, "a")
    assert not (await plane.get(f"{PATH}/a")).json["status"]
    done = await decide(plane, "a", "Approved")
    (approved,) = done["status"]["conditions"]
    assert approved["lastUpdateTime"] and approved["lastTransitionTime"]
    sign(plane, "a")
    found = (await plane.get(f"{PATH}/a")).json
    made_cert = certificate(found)
    made_cert.verify_directly_issued_by(authority.certificate)
    assert (made_cert.not_valid_after_utc - made_cert.not_valid_before_utc).total_seconds() == 3600 + 300
    usage = made_cert.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert not made_cert.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    der = made_cert.public_bytes(Encoding.DER)
    who = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    lines = Headers([("content-type", "application/json")])
    answer = await plane.app(message.Request("POST", who, who, "", lines, b"{}", peer_certificate=der))
    assert b'"username":"jane"' in answer.body and b"X509SHA256=" in answer.body
    before = found["metadata"]["resourceVersion"]
    sign(plane, "a")
    assert (await plane.get(f"{PATH}/a")).json["metadata"]["resourceVersion"] == before


@in_loop
async def test_what_cannot_be_asked_for(tmp_path):
    plane, _ = plane_with(tmp_path)
    garbled = asked("x")[:-20] + "A" * 20
    for spec, text in (
        ({"request": base64.b64encode(b"no").decode()}, "PEM block type must be CERTIFICATE REQUEST"),
        ({"request": garbled}, "spec.request"),
        ({"usages": []}, "spec.usages: Required value"),
        ({"usages": ["dance"]}, 'spec.usages[0]: Unsupported value: "dance"'),
        ({"usages": ["any", "any"]}, 'spec.usages[1]: Duplicate value: "any"'),
        ({"signerName": "kubernetes.io/legacy-unknown"}, "the legacy signerName is not allowed"),
        ({"signerName": "nowhere"}, "must be a fully qualified domain and path"),
        ({"signerName": "short/x"}, "at least two segments"),
        ({"expirationSeconds": 5}, "may not specify a duration less than 600 seconds"),
    ):
        assert text in (await plane.post(PATH, body(**spec), code=422)).json["message"], text
    masters = (await plane.post(PATH, body(request=asked("x", "system:masters")), code=403)).json["message"]
    assert "signer with system:masters group is not allowed" in masters


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"usages": ["client auth", "cert sign"]}, "invalid usage for client certificate: cert sign"),
        ({"usages": ["digital signature"]}, "missing required usage"),
        ({"signerName": KUBELET_CLIENT}, "subject organization is not system:nodes"),
        ({"signerName": KUBELET_CLIENT, "request": asked("jane", "system:nodes")}, "common name"),
        (
            {"signerName": KUBELET_CLIENT, "request": asked("system:node:a", "system:nodes", dns="a.b")},
            "DNS subjectAltNames are not allowed",
        ),
        (
            {"signerName": KUBELET_SERVING, "request": asked("system:node:a", "system:nodes")},
            "DNS or IP subjectAltName is required",
        ),
    ],
)
@in_loop
async def test_what_its_signer_does_not_sign_fails(tmp_path, spec, text):
    plane, _ = plane_with(tmp_path)
    await plane.post(PATH, body(**spec))
    await decide(plane, "a", "Approved")
    sign(plane, "a")
    status = (await plane.get(f"{PATH}/a")).json["status"]
    failed = status["conditions"][-1]
    assert failed["type"] == "Failed" and text in failed["message"] and "certificate" not in status


@in_loop
async def test_kubelets_get_theirs_and_no_authority_is_ever_made(tmp_path):
    plane, authority = plane_with(tmp_path)
    plane.time = int(authority.certificate.not_valid_before_utc.timestamp() + 600) * 1_000_000
    node = asked("system:node:a", "system:nodes", dns="a.b")
    usages = ["digital signature", "server auth"]
    await plane.post(PATH, body("s", request=node, signerName=KUBELET_SERVING, usages=usages))
    await plane.post(PATH, body("c", request=asked("jane", ca=True)))
    await plane.post(PATH, body("other", signerName="example.com/mine"))
    for name in ("s", "c", "other"):
        await decide(plane, name, "Approved")
        sign(plane, name)
    serving = certificate((await plane.get(f"{PATH}/s")).json)
    names = serving.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["a.b"]
    assert (
        not certificate((await plane.get(f"{PATH}/c")).json)
        .extensions.get_extension_for_class(x509.BasicConstraints)
        .value.ca
    )
    assert "certificate" not in (await plane.get(f"{PATH}/other")).json["status"]


@in_loop
async def test_parts_change_what_they_may(tmp_path):
    plane, _ = plane_with(tmp_path)
    await plane.post(PATH, body())
    changed = body(usages=["any"])
    after = (await plane.put(f"{PATH}/a", {**changed, "metadata": {"name": "a", "labels": {"x": "y"}}})).json
    assert after["spec"]["usages"] == CLIENT_USAGES and after["metadata"]["labels"] == {"x": "y"}
    found = {**after, "status": {"conditions": [condition("Approved")]}}
    refused = (await plane.put(f"{PATH}/a/status", found, code=422)).json["message"]
    assert 'updates may not add a condition of type "Approved"' in refused
    await decide(plane, "a", "Approved", "Denied", code=422)
    await decide(plane, "a", "Denied")
    await decide(plane, "a", code=422)  # a decision is not taken back
    sign(plane, "a")
    assert "certificate" not in (await plane.get(f"{PATH}/a")).json["status"]
    patch = {"status": {"certificate": base64.b64encode(b"no").decode()}}
    assert "CERTIFICATE PEM block" in (await plane.merge(f"{PATH}/a/status", patch, code=422)).json["message"]
    approval = await plane.merge(f"{PATH}/a/approval", patch)
    assert "certificate" not in approval.json["status"]


@in_loop
async def test_who_approves_needs_the_right_to_that_signer(tmp_path):
    plane, _ = plane_with(tmp_path)
    await plane.post(PATH, body())
    bearer = "Bearer " + plane.tokens.issue("bob")
    rules = [{"verbs": ["get", "update", "patch"], "apiGroups": ["certificates.k8s.io"], "resources": [
        "certificatesigningrequests/approval", "certificatesigningrequests/status"]}]  # fmt: skip
    await plane.post(f"{AUTHZ}/clusterroles", {"metadata": {"name": "approver"}, "rules": rules})
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "approver"}
    subjects = [{"kind": "User", "name": "bob", "apiGroup": "rbac.authorization.k8s.io"}]
    binding = {"metadata": {"name": "b"}, "roleRef": ref, "subjects": subjects}
    await plane.post(f"{AUTHZ}/clusterrolebindings", binding)
    refused = await decide(plane, "a", "Approved", code=403, authorization=bearer)
    assert refused["message"] == (
        'certificatesigningrequests.certificates.k8s.io "a" is forbidden: user not permitted to approve requests '
        f'with signerName "{CLIENT}"'
    )
    more = {"verbs": ["approve"], "apiGroups": ["certificates.k8s.io"], "resources": ["signers"]}
    await plane.merge(
        f"{AUTHZ}/clusterroles/approver", {"rules": [*rules, {**more, "resourceNames": ["kubernetes.io/*"]}]}
    )
    await decide(plane, "a", "Approved", authorization=bearer)
    patch = {"status": {"certificate": ""}, "metadata": {}}
    patch["status"] = {"conditions": [condition("Approved"), condition("Failed")]}
    refused = (await plane.merge(f"{PATH}/a/status", patch, code=403, authorization=bearer)).json["message"]
    assert "not permitted to sign" in refused
