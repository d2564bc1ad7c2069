"""What somebody tries who has little: a right to look at one namespace, or all of one namespace, and wants more.

Each attack is one request (or two) that a control plane has been seen to fall for, and is refused here.
"""

from __future__ import annotations

import pytest

from steersman.api.admission.standard import standard
from steersman.api.begin import Api
from steersman.api.controller import controller_name
from steersman.api.kinds import Kinds
from steersman.controllers.builtin import ALL, CLUSTER
from tests.serve.harness import in_loop
from tests.serve.plane import Plane, pod

RBAC = "/apis/rbac.authorization.k8s.io/v1"
A, B = "/api/v1/namespaces/a", "/api/v1/namespaces/b"
JSON, MERGE, PATCH = "application/json", "application/merge-patch+json", "application/json-patch+json"
APPLY, STRATEGIC = "application/apply-patch+yaml", "application/strategic-merge-patch+json"
EVERYTHING = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
READING = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}


class Town(Plane):
    """Namespaces a and b; `viewer` and `boss` are service accounts of a, which they may view and administer."""

    def __init__(self) -> None:
        admission = standard(controllers=[controller_name(each) for each in (*ALL, *CLUSTER)])
        super().__init__(api=Api(Kinds.builtin(), admission=admission))

    async def build(self) -> Town:
        self.tokens_of: dict[str, str] = {"root": self.token, "nobody": ""}
        for space in ("a", "b"):
            await self.post("/api/v1/namespaces", {"metadata": {"name": space}})
            secret = {"metadata": {"name": "s"}, "stringData": {"k": f"hidden-{space}"}}
            await self.post(f"/api/v1/namespaces/{space}/secrets", secret)
            await self.post(f"/api/v1/namespaces/{space}/serviceaccounts", {"metadata": {"name": "default"}})
        await self.post(f"{B}/serviceaccounts", {"metadata": {"name": "mighty"}})
        for name, role in (("viewer", "view"), ("boss", "admin")):
            await self.post(f"{A}/serviceaccounts", {"metadata": {"name": name}})
            ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
            subjects = [{"kind": "ServiceAccount", "name": name, "namespace": "a"}]
            body = {"metadata": {"name": name}, "roleRef": ref, "subjects": subjects}
            await self.post(f"{RBAC}/namespaces/a/rolebindings", body)
            made = await self.post(f"{A}/serviceaccounts/{name}/token", {"spec": {}})
            self.tokens_of[name] = made.json["status"]["token"]
        await self.post(f"{RBAC}/namespaces/a/roles", {"metadata": {"name": "reader"}, "rules": [READING]})
        await self.post(f"{A}/pods", pod("web"))
        return self

    async def as_(self, who: str, method: str, path: str, body: object = None, media: str = JSON, **headers: str):
        headers |= {"authorization": f"Bearer {self.tokens_of[who]}" if self.tokens_of[who] else ""}
        return await self.ask(method, path, body, content_type=media, **headers)


def binding(role: str, kind: str = "ClusterRole") -> dict:
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}
    return {"metadata": {"name": "mine"}, "roleRef": ref, "subjects": [{"kind": "User", "name": "me"}]}


def rules(*given: dict, name: str = "mine") -> dict:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": name},
        "rules": list(given),
    }


WEBHOOK = {
    "metadata": {"name": "x"},
    "webhooks": [
        {
            "name": "x.example.com",
            "clientConfig": {"url": "https://169.254.169.254/"},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
    ],
}
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
HOOKS = "/apis/admissionregistration.k8s.io/v1"
ROLES = f"{RBAC}/namespaces/a/roles"
BINDINGS = f"{RBAC}/namespaces/a/rolebindings"
LEAKS = [
    ("GET", f"{A}/secrets"),
    ("GET", f"{A}/secrets/s"),
    ("GET", f"{A}/secrets?watch=true&timeoutSeconds=1"),
    ("GET", f"{A}/secrets?fieldSelector=metadata.name%3Ds"),
    ("HEAD", f"{A}/secrets/s"),
    ("GET", f"{A}/pods/..%2fsecrets%2fs"),
    ("GET", f"{A}/pods/../secrets/s"),
    ("GET", f"{A}/configmaps/%2e%2e/secrets/s"),
    ("GET", f"{A}//secrets/s"),
    ("GET", f"/{A}/secrets/s"),
    ("GET", f"{A}/secrets%2fs"),
    ("GET", f"{A}/SECRETS/s"),
    ("GET", "/api/v1/namespaces/a%2f..%2fb/configmaps"),
    ("GET", "/api/v1/watch/namespaces/a/secrets"),
    ("GET", "/api/v1/proxy/namespaces/a/pods/web"),
    ("GET", "/api/v1/secrets"),
    ("GET", "/api/v1/secrets?fieldSelector=metadata.namespace%3Da"),
    ("GET", f"{B}/configmaps"),
    ("GET", f"{B}/pods?labelSelector=a"),
    ("GET", "/api/v1/nodes"),
    ("GET", f"{RBAC}/clusterroles"),
    ("GET", f"{A}/pods/web/exec?command=sh"),
    ("POST", f"{A}/serviceaccounts/boss/token"),
    ("GET", "/metrics"),
]


@in_loop
async def test_a_viewer_sees_nothing_else() -> None:
    town = await Town().build()
    assert (await town.as_("viewer", "GET", f"{A}/pods")).code == 200
    for method, path in LEAKS:
        answer = await town.as_("viewer", method, path, {} if method == "POST" else None)
        assert answer.code in (403, 404) and b"hidden" not in answer.body, (method, path, answer)
        assert (await town.as_("nobody", method, path)).code == 401, path
    # Tables and metadata of what may not be read are as closed as the objects.
    for kind in ("Table", "PartialObjectMetadataList"):
        form = f"application/json;as={kind};g=meta.k8s.io;v=v1"
        assert (await town.as_("viewer", "GET", f"{A}/secrets", accept=form)).code == 403


CLIMBS = [
    ("POST", BINDINGS, binding("cluster-admin"), JSON),
    ("POST", f"{RBAC}/clusterrolebindings", binding("view"), JSON),
    ("POST", f"{RBAC}/namespaces/b/rolebindings", binding("view"), JSON),
    ("POST", ROLES, rules(EVERYTHING), JSON),
    ("POST", ROLES, rules({"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}), JSON),
    ("PUT", f"{ROLES}/reader", rules(EVERYTHING, name="reader"), JSON),
    ("PATCH", f"{ROLES}/reader", {"rules": [EVERYTHING]}, MERGE),
    ("PATCH", f"{ROLES}/reader", {"rules": [EVERYTHING]}, STRATEGIC),
    ("PATCH", f"{ROLES}/reader", [{"op": "add", "path": "/rules/-", "value": EVERYTHING}], PATCH),
    ("PATCH", f"{ROLES}/reader?fieldManager=me&force=true", rules(EVERYTHING, name="reader"), APPLY),
    ("PATCH", f"{ROLES}/new?fieldManager=me&force=true", rules(EVERYTHING, name="new"), APPLY),
    ("PATCH", f"{ROLES}/new?fieldManager=me&dryRun=All", rules(EVERYTHING, name="new"), APPLY),
    ("PATCH", f"{BINDINGS}/boss", {"roleRef": {"name": "cluster-admin"}}, MERGE),
    ("POST", f"{RBAC}/clusterroles", {"metadata": {"name": "x"}, "rules": []}, JSON),
    (
        "POST",
        f"{RBAC}/clusterroles",
        {
            "metadata": {"name": "x", "labels": {"rbac.authorization.k8s.io/aggregate-to-admin": "true"}},
            "rules": [EVERYTHING],
        },
        JSON,
    ),
    ("PATCH", f"{RBAC}/clusterroles/view", {"rules": [EVERYTHING]}, MERGE),
    ("POST", f"{B}/serviceaccounts/mighty/token", {"spec": {}}, JSON),
    ("POST", f"{HOOKS}/validatingwebhookconfigurations", WEBHOOK, JSON),
    ("POST", f"{HOOKS}/mutatingwebhookconfigurations", WEBHOOK, JSON),
    ("POST", CRD, {"metadata": {"name": "x.y.z"}}, JSON),
    ("PATCH", f"{CRD}/x.y.z", {"spec": {"conversion": {"strategy": "Webhook"}}}, MERGE),
    ("POST", "/apis/apiregistration.k8s.io/v1/apiservices", {"metadata": {"name": "v1.x"}}, JSON),
    ("POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests", {"metadata": {"name": "x"}}, JSON),
    ("PUT", "/apis/certificates.k8s.io/v1/certificatesigningrequests/x/approval", {"metadata": {"name": "x"}}, JSON),
    ("PUT", f"{A}/finalize", {"metadata": {"name": "a"}, "spec": {"finalizers": []}}, JSON),
    ("PATCH", A, {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}}, MERGE),
    ("PATCH", f"{A}/status", {"status": {"phase": "Terminating"}}, MERGE),
    ("PATCH", f"{A}/pods/web/status", {"status": {"phase": "Succeeded"}}, MERGE),
    ("POST", f"{A}/pods/web/binding", {"target": {"name": "node"}}, JSON),
    ("PATCH", "/api/v1/nodes/node/status", {"status": {"capacity": {"cpu": "1000"}}}, MERGE),
    ("POST", "/api/v1/namespaces", {"metadata": {"name": "c"}}, JSON),
    ("POST", "/api/v1/persistentvolumes", {"metadata": {"name": "root-disk"}}, JSON),
    ("DELETE", "/api/v1/namespaces/a", None, JSON),
    ("DELETE", f"{B}/secrets", None, JSON),
    ("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}}, JSON),
    ("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": {"user": "x"}}, JSON),
]


@in_loop
async def test_the_administrator_of_a_namespace_stays_in_it() -> None:
    town = await Town().build()
    assert (await town.as_("boss", "POST", ROLES, rules(READING, name="fair"))).code == 201
    assert (await town.as_("boss", "GET", f"{A}/secrets/s")).code == 200
    for method, path, body, media in CLIMBS:
        answer = await town.as_("boss", method, path, body, media)
        assert answer.code in (403, 422) and answer.json["kind"] == "Status", (method, path, media, answer)
        assert (await town.as_("viewer", method, path, body, media)).code == 403, (method, path)
    assert (await town.get(f"{ROLES}/reader")).json["rules"] == [READING]


@pytest.mark.parametrize(
    "headers",
    [
        {"impersonate_user": "steersman-admin"},
        {"impersonate_user": "x", "impersonate_group": "system:masters"},
        {"impersonate_user": "system:serviceaccount:b:mighty"},
        {"impersonate_user": "system:kube-controller-manager"},
        {"impersonate_user": "system:node:n"},
        {"impersonate_user": "system:serviceaccount:a:viewer", "impersonate_group": "system:masters"},
        {"impersonate_user": "system:serviceaccount:a:viewer", "impersonate_extra_x": "y"},
    ],
)
@in_loop
async def test_nobody_becomes_somebody_else(headers: dict[str, str]) -> None:
    town = await Town().build()
    for who in ("viewer", "boss"):
        assert (await town.as_(who, "GET", f"{A}/pods", **headers)).code == 403
    for group in ({"impersonate_group": "system:masters"}, {"impersonate_uid": "1"}):
        assert (await town.as_("boss", "GET", f"{A}/pods", **group)).code in (400, 403)


@in_loop
async def test_a_token_is_good_for_its_audience_its_account_and_its_pod_alone() -> None:
    town = await Town().build()
    made = await town.post(f"{A}/serviceaccounts/boss/token", {"spec": {"audiences": ["vault"]}})
    town.tokens_of["other"] = made.json["status"]["token"]
    assert (await town.as_("other", "GET", f"{A}/pods")).code == 401
    ref = {"kind": "Pod", "apiVersion": "v1", "name": "web"}
    bound = {"spec": {"boundObjectRef": ref}}
    found = await town.post(f"{A}/serviceaccounts/boss/token", bound, code=0)
    assert found.code == 400, found  # the pod runs as another account
    head, claims, mark = town.tokens_of["boss"].split(".")
    for forged in (
        f"{head}.{claims}.",
        f"{head}.{claims}.{mark[:-4]}AAAA",
        f"{head}..{mark}",
        f"{claims}.{head}.{mark}",
    ):
        town.tokens_of["forged"] = forged
        assert (await town.as_("forged", "GET", f"{A}/pods")).code == 401
    await town.delete(f"{A}/serviceaccounts/boss")
    assert (await town.as_("boss", "GET", f"{A}/pods")).code == 401
    await town.post(f"{A}/serviceaccounts", {"metadata": {"name": "boss"}})  # another account of the same name
    assert (await town.as_("boss", "GET", f"{A}/pods")).code == 401


@in_loop
async def test_pods_use_accounts_and_secrets_of_their_own_namespace() -> None:
    town = await Town().build()
    thief = pod("thief")
    thief["spec"]["serviceAccountName"] = "mighty"  # of b
    assert (await town.as_("boss", "POST", f"{A}/pods", thief)).code == 403
    thief["spec"]["serviceAccountName"] = "b/mighty"
    assert (await town.as_("boss", "POST", f"{A}/pods", thief)).code in (403, 422)
    assert (await town.as_("boss", "POST", f"{B}/pods", pod("thief"))).code == 403
    moved = {**pod("thief"), "metadata": {"name": "thief", "namespace": "b"}}
    assert (await town.as_("boss", "POST", f"{A}/pods", moved)).code == 400


@in_loop
async def test_names_and_warnings_break_out_of_no_header_and_no_log(caplog: pytest.LogCaptureFixture) -> None:
    town = await Town().build()
    evil = "x\r\nSet-Cookie: a=b"
    body = {**pod("w"), evil: 1}
    answer = await town.as_("boss", "POST", f"{A}/pods", body, user_agent="a/1")
    for name, value in answer.headers:
        assert "\r" not in name + value and "\n" not in name + value
    for path in (f"{A}/pods/x%0d%0ainjected", f"/{'%0a'}"):
        await town.as_("boss", "GET", path)
    assert all("\n" not in record.getMessage() for record in caplog.records)
    told = caplog.text
    assert "hidden" not in told and not any(token and token in told for token in town.tokens_of.values())


@in_loop
async def test_secrets_are_in_no_event_metric_or_error() -> None:
    town = await Town().build()
    wrong = {"metadata": {"name": "t"}, "data": {"k": "not base64 hidden-a"}}
    answer = await town.as_("root", "POST", f"{A}/secrets", wrong)
    assert answer.code in (400, 422) and b"hidden-a" not in answer.body, answer
    assert b"hidden" not in (await town.get("/metrics")).body
    assert b"hidden" not in (await town.get("/api/v1/events")).body
