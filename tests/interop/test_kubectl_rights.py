"""kubectl and rights: roles and bindings are made and asked about, accounts get tokens, requests get certificates."""

from __future__ import annotations

import base64
import subprocess

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.interop.live import Whole, live
from tests.interop.patience import COMMAND_SECONDS, until


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    with live(tmp_path_factory.mktemp("rights"), Whole) as running:
        yield running


def says(plane: Whole, *words: str, wanted: str) -> None:
    """Waits until kubectl says `wanted`: controllers take their time."""
    until(lambda: wanted in plane.run(*words), lambda: plane.run(*words))


def test_roles_bindings_and_whether_one_can(plane):
    assert "yes" in plane.run("auth", "can-i", "*", "*", "-A")
    plane.run("create", "role", "reader", "--verb=get,list", "--resource=pods,pods/log")
    plane.run("create", "rolebinding", "readers", "--role=reader", "--user=bob", "--serviceaccount=default:robot")
    assert "yes" in plane.run("auth", "can-i", "list", "pods", "--as=bob")
    assert "no" in plane.run("auth", "can-i", "list", "pods", "--as=bob", "-n", "kube-system", code=1)
    assert "no" in plane.run("auth", "can-i", "delete", "pods", "--as=bob", code=1)
    assert "yes" in plane.run("auth", "can-i", "get", "pods", "--subresource=log", "--as=bob")
    assert "No resources found" in plane.run("get", "pods", "--as=bob")
    refused = plane.run("get", "secrets", "--as=bob", code=1)
    assert (
        'secrets is forbidden: User "bob" cannot list resource "secrets" in API group "" in the namespace "default"'
        in refused
    )
    listed = plane.run("auth", "can-i", "--list", "--as=bob")
    assert "pods/log" in listed and "selfsubjectaccessreviews.authorization.k8s.io" in listed
    plane.run("create", "clusterrole", "nodes", "--verb=get", "--resource=nodes")
    plane.run("create", "clusterrolebinding", "nodes", "--clusterrole=nodes", "--group=dev")
    assert "yes" in plane.run("auth", "can-i", "get", "nodes", "--as=ann", "--as-group=dev")
    refused = plane.run("create", "clusterrolebinding", "mine", "--clusterrole=admin", "--user=bob", "--as=bob", code=1)
    assert 'User "bob" cannot create resource "clusterrolebindings"' in refused
    who = plane.run("auth", "whoami", "--as=ann", "--as-group=dev")
    assert "ann" in who and "dev" in who and "system:authenticated" in who
    assert "admin" in plane.run("get", "clusterroles")
    assert "PolicyRule" in plane.run("describe", "clusterrole", "view")


def test_an_account_gets_a_token_and_may_what_it_is_bound_to(plane):
    says(plane, "get", "serviceaccounts", wanted="default")
    says(plane, "get", "configmaps", wanted="kube-root-ca.crt")
    plane.run("create", "serviceaccount", "worker")
    token = plane.run("create", "token", "worker", "--duration=20m").strip()
    assert token.count(".") == 2
    who = plane.run(f"--token={token}", "auth", "whoami")
    assert "system:serviceaccount:default:worker" in who and "JTI=" in who
    plane.run(f"--token={token}", "get", "pods", code=1)
    plane.run("create", "rolebinding", "viewers", "--clusterrole=view", "--serviceaccount=default:worker")
    plane.run(f"--token={token}", "get", "pods")
    plane.run(f"--token={token}", "get", "secrets", code=1)
    plane.run("delete", "serviceaccount", "worker")
    assert "Unauthorized" in plane.run(f"--token={token}", "get", "pods", code=1)


def test_a_secret_is_filled_with_a_token(plane):
    plane.run("create", "serviceaccount", "old")
    manifest = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "old", "annotations": {"kubernetes.io/service-account.name": "old"}},
        "type": "kubernetes.io/service-account-token",
    }
    plane.run("apply", "-f", "-", stdin=yaml.safe_dump(manifest))
    says(plane, "get", "secret", "old", "-o", "jsonpath={.data}", wanted="token")
    token = base64.b64decode(plane.run("get", "secret", "old", "-o", "jsonpath={.data.token}")).decode()
    assert "system:serviceaccount:default:old" in plane.run(f"--token={token}", "auth", "whoami")
    plane.run("delete", "serviceaccount", "old")
    until(lambda: "old" not in plane.run("get", "secrets"))


def test_a_certificate_is_asked_for_approved_and_used(plane, tmp_path):
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "jane")])
    asked = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    pem = serialization.Encoding.PEM
    manifest = {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": "jane"},
        "spec": {
            "request": base64.b64encode(asked.public_bytes(pem)).decode(),
            "signerName": "kubernetes.io/kube-apiserver-client",
            "usages": ["client auth"],
        },
    }
    plane.run("apply", "-f", "-", stdin=yaml.safe_dump(manifest))
    assert "Pending" in plane.run("get", "csr", "jane")
    plane.run("certificate", "approve", "jane")
    says(plane, "get", "csr", "jane", wanted="Approved,Issued")
    certificate = base64.b64decode(plane.run("get", "csr", "jane", "-o", "jsonpath={.status.certificate}"))
    plain = serialization.NoEncryption()
    (tmp_path / "jane.key").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    (tmp_path / "jane.crt").write_bytes(certificate)
    config = yaml.safe_load(plane.kubeconfig.read_text())
    files = {"client-certificate": str(tmp_path / "jane.crt"), "client-key": str(tmp_path / "jane.key")}
    config["users"] = [{"name": config["contexts"][0]["context"]["user"], "user": files}]
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(config))
    done = subprocess.run(
        [plane.kubectl, "--kubeconfig", str(path), "auth", "whoami"],
        env=plane.environ(), capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False,
    )  # fmt: skip
    assert "jane" in done.stdout and "X509SHA256=" in done.stdout, done.stdout + done.stderr
