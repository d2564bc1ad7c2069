"""What a restart keeps: the signing key and so the tokens, the roles as they are. What is written nowhere: tokens."""

from __future__ import annotations

import stat

from tests.run.client import Client, Served

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def who(client: Client, token: str) -> tuple[int, str]:
    admin, client.token = client.token, token
    code, found = client.ask("POST", WHO, {})
    client.token = admin
    return code, found["status"]["userInfo"]["username"] if code == 201 else ""


def test_tokens_and_roles_outlive_a_restart(tmp_path):
    with Served(tmp_path) as served:
        client = Client(served.kubeconfig)
        assert client.ask("POST", ACCOUNTS, {"metadata": {"name": "robot"}})[0] == 201
        code, made = client.ask("POST", f"{ACCOUNTS}/robot/token", {"spec": {"expirationSeconds": 3600}})
        token = made["status"]["token"]
        assert code == 201 and who(client, token) == (201, "system:serviceaccount:default:robot")
        keys = client.ask("GET", "/openid/v1/jwks")[1]
        issuer = client.ask("GET", "/.well-known/openid-configuration")[1]
        assert issuer["jwks_uri"].startswith("https://127.0.0.1:")
        changed = client.ask("PATCH", f"{ROLES}/view", {"metadata": {"labels": {"mine": "yes"}}}, MERGE)[1]
        served.kill()  # it has no time to put anything in order
    (key,) = tmp_path.glob("store.db.pki/sa.key")
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    with Served(tmp_path) as served:
        client = Client(served.kubeconfig)
        assert who(client, token) == (201, "system:serviceaccount:default:robot")
        assert client.ask("GET", "/openid/v1/jwks")[1] == keys
        kept = client.ask("GET", f"{ROLES}/view")[1]
        assert kept["metadata"]["resourceVersion"] == changed["metadata"]["resourceVersion"]
        assert client.ask("DELETE", f"{ROLES}/system:discovery")[0] == 200
        mine = {"metadata": {"annotations": {"rbac.authorization.kubernetes.io/autoupdate": "false"}}, "rules": []}
        assert client.ask("PATCH", f"{ROLES}/system:basic-user", mine, MERGE)[0] == 200
        assert client.ask("PATCH", f"{ROLES}/system:monitoring", {"rules": []}, MERGE)[0] == 200
        assert who(client, token[:-4] + "AAAA")[0] == 401
        served.stop()
        said = served.said()
    with Served(tmp_path) as served:
        client = Client(served.kubeconfig)
        assert client.ask("GET", f"{ROLES}/system:discovery")[0] == 200  # what is missing is made again
        assert not client.ask("GET", f"{ROLES}/system:basic-user")[1].get("rules")  # and what is kept is left alone
        assert {"verbs": ["get"], "nonResourceURLs": ["/metrics"]} in client.ask("GET", f"{ROLES}/system:monitoring")[
            1
        ]["rules"]
        assert client.ask("DELETE", f"{ACCOUNTS}/robot")[0] == 200 and who(client, token)[0] == 401
    everything = said.encode() + b"".join(path.read_bytes() for path in tmp_path.glob("store.db*") if path.is_file())
    assert token.encode() not in everything and token.split(".")[2].encode() not in everything


MERGE = "application/merge-patch+json"
