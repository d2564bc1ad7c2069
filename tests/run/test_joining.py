"""A machine joins with a bootstrap token alone, as `kubeadm join` does it, and is a node: through real HTTPS."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from steersman.api.access.bootstrap import signature
from tests.run.client import Client, Served

SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
SECRETS = "/api/v1/namespaces/kube-system/secrets"
INFO = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
NAME = "system:node:blade"
GROUP = "system:bootstrappers:kubeadm:default-node-token"
PEM, NONE = serialization.Encoding.PEM, serialization.NoEncryption()


def kubeadm_init(admin: Client) -> None:
    """What `kubeadm init phase bootstrap-token` makes."""
    roles = {
        "kubelet-bootstrap": ("system:node-bootstrapper", GROUP),
        "node-autoapprove-bootstrap": ("system:certificates.k8s.io:certificatesigningrequests:nodeclient", GROUP),
        "node-autoapprove-certificate-rotation": (
            "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
            "system:nodes",
        ),
    }
    api = "rbac.authorization.k8s.io"
    for name, (role, group) in roles.items():
        body = {
            "metadata": {"name": f"kubeadm:{name}"},
            "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": api, "kind": "Group", "name": group}],
        }
        assert admin.ask("POST", f"{RBAC}/clusterrolebindings", body)[0] == 201
    data = {
        "token-id": "abcdef",
        "token-secret": "0123456789abcdef",
        "usage-bootstrap-authentication": "true",
        "usage-bootstrap-signing": "true",
        "auth-extra-groups": GROUP,
    }
    secret = {
        "metadata": {"name": "bootstrap-token-abcdef"},
        "type": "bootstrap.kubernetes.io/token",
        "stringData": data,
    }
    assert admin.ask("POST", SECRETS, secret)[0] == 201


def wait_for(act: Any, what: str) -> Any:
    end = time.monotonic() + 20
    while time.monotonic() < end:
        if found := act():
            return found
        time.sleep(0.05)
    raise AssertionError(f"no {what} within 20 s")


def asked_for(key: ec.EllipticCurvePrivateKey, name: str = NAME) -> dict[str, Any]:
    subject = x509.Name(
        [x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes"), x509.NameAttribute(NameOID.COMMON_NAME, name)]
    )
    made = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256()).public_bytes(PEM)
    usages = ["digital signature", "client auth"]
    return {"signerName": SIGNER, "usages": usages, "request": base64.b64encode(made).decode()}


class Node:
    """A client that is known by its certificate."""

    def __init__(self, server: str, ca: str, folder: Path, certificate: bytes, key: ec.EllipticCurvePrivateKey) -> None:
        file = folder / "node.pem"
        file.write_bytes(certificate + key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, NONE))
        context = ssl.create_default_context(cadata=ca)
        context.load_cert_chain(file)
        parts = urlsplit(server)
        self.connection = http.client.HTTPSConnection(parts.hostname, parts.port, context=context, timeout=20)

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        headers = {"content-type": "application/merge-patch+json" if method == "PATCH" else "application/json"}
        self.connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        response = self.connection.getresponse()
        return response.status, json.loads(response.read())


def certificate_of(client: Client, name: str) -> bytes | None:
    found = client.ask("GET", f"{CSRS}/{name}")[1]
    text = (found.get("status") or {}).get("certificate")
    return base64.b64decode(text) if text else None


def test_a_machine_joins_with_a_token(tmp_path):
    with Served(tmp_path, "--disable-controllers", "kubelet") as served:  # the machine has one of its own
        admin = Client(served.kubeconfig)
        kubeadm_init(admin)
        signed = wait_for(
            lambda: (d := admin.ask("GET", INFO)[1]["data"]).get("jws-kubeconfig-abcdef") and d, "signature"
        )
        assert signed["jws-kubeconfig-abcdef"] == signature(signed["kubeconfig"], "abcdef", "0123456789abcdef")
        cluster = yaml.safe_load(signed["kubeconfig"])["clusters"][0]["cluster"]
        ca = base64.b64decode(cluster["certificate-authority-data"]).decode()

        joining = Client(served.kubeconfig)
        joining.token = "abcdef.0123456789abcdef"
        who = joining.ask("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {})[1]["status"]["userInfo"]
        assert who == {
            "username": "system:bootstrap:abcdef",
            "groups": ["system:bootstrappers", GROUP, "system:authenticated"],
        }
        assert joining.ask("GET", SECRETS)[0] == 403
        key = ec.generate_private_key(ec.SECP256R1())
        assert joining.ask("POST", CSRS, {"metadata": {"name": "join"}, "spec": asked_for(key)})[0] == 201
        certificate = wait_for(lambda: certificate_of(joining, "join"), "certificate")
        found = joining.ask("GET", f"{CSRS}/join")[1]["status"]["conditions"]
        assert [(c["type"], c["reason"], c["message"]) for c in found] == [
            ("Approved", "AutoApproved", "Auto approving kubelet client certificate after SubjectAccessReview.")
        ]

        node = Node(cluster["server"], ca, tmp_path, certificate, key)
        assert node.ask("POST", "/api/v1/nodes", {"metadata": {"name": "blade"}})[0] == 201
        assert node.ask("POST", "/api/v1/nodes", {"metadata": {"name": "other"}})[0] == 403
        leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        assert node.ask("POST", leases, {"metadata": {"name": "blade"}})[0] == 201
        assert node.ask("GET", SECRETS)[0] == 403
        renewal = {"metadata": {"name": "renew"}, "spec": asked_for(key)}
        assert node.ask("POST", CSRS, renewal)[0] == 201
        wait_for(lambda: certificate_of(admin, "renew"), "renewed certificate")
        reason = admin.ask("GET", f"{CSRS}/renew")[1]["status"]["conditions"][0]["message"]
        assert reason == "Auto approving self kubelet client certificate after SubjectAccessReview."

        # a node of the root is no node of another workspace
        assert admin.ask("POST", "/apis/steersman.dev/v1/workspaces", {"metadata": {"name": "blue"}})[0] == 201
        assert node.ask("GET", "/clusters/blue/api/v1/nodes/blade")[0] == 403
        assert node.ask("GET", "/api/v1/nodes/blade")[0] == 200
        # and a token that has ended lets nobody in
        assert admin.ask("DELETE", f"{SECRETS}/bootstrap-token-abcdef")[0] == 200
        assert joining.ask("GET", f"{CSRS}/join")[0] == 401


def test_a_node_that_nobody_may_approve_waits(tmp_path):
    with Served(tmp_path, "--disable-controllers", "kubelet") as served:  # the machine has one of its own
        admin = Client(served.kubeconfig)
        key = ec.generate_private_key(ec.SECP256R1())
        body = {"metadata": {"name": "mine"}, "spec": asked_for(key)}
        account = {"metadata": {"name": "robot"}}
        assert admin.ask("POST", "/api/v1/namespaces/default/serviceaccounts", account)[0] == 201
        code, made = admin.ask("POST", "/api/v1/namespaces/default/serviceaccounts/robot/token", {"spec": {}})
        binding = {
            "metadata": {"name": "csr"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "system:node-bootstrapper",
            },
            "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}],
        }
        assert admin.ask("POST", f"{RBAC}/clusterrolebindings", binding)[0] == 201
        robot = Client(served.kubeconfig)
        robot.token = made["status"]["token"]
        assert code == 201 and robot.ask("POST", CSRS, body)[0] == 201
        time.sleep(0.5)
        assert robot.ask("GET", f"{CSRS}/mine")[1]["status"] == {}
