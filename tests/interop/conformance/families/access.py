"""Who may do what: RBAC, its escalation checks, and the reviews."""

from __future__ import annotations

from typing import Any, Final

from tests.interop.conformance.samples import sample
from tests.interop.conformance.sequence import APPLY, Case, Step, delete, get, patch, post, put, watch

RBAC = "rbac.authorization.k8s.io"
ROLES = f"/apis/{RBAC}/v1/namespaces/$(ns)/roles"
BINDINGS = f"/apis/{RBAC}/v1/namespaces/$(ns)/rolebindings"
CLUSTER_ROLES = f"/apis/{RBAC}/v1/clusterroles"
CMS = "/api/v1/namespaces/$(ns)/configmaps"
AUTHZ = "/apis/authorization.k8s.io/v1"


def by(user: str, *steps: Step) -> list[Step]:
    return [{**step, "as": user} for step in steps]


def role(name: str, *rules: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": {"name": name}, "rules": list(rules)}


def rule(resources: str, verbs: str, group: str = "", **more: Any) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split(), **more}


def bind(name: str, to: str, kind: str = "User", role_kind: str = "Role") -> dict[str, Any]:
    return {"apiVersion": f"{RBAC}/v1", "kind": "RoleBinding", "metadata": {"name": f"{name}-{to}"},
            "roleRef": {"apiGroup": RBAC, "kind": role_kind, "name": name},
            "subjects": [{"kind": kind, "name": to, "apiGroup": RBAC}]}  # fmt: skip


def review(kind: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}


cm = sample("ConfigMap").make("a")
everything = [
    get(CMS), get(f"{CMS}/a"), post(CMS, cm), put(f"{CMS}/a", cm), patch(f"{CMS}/a", {}), delete(f"{CMS}/a"),
    delete(CMS), watch("w", f"{CMS}?watch=true&timeoutSeconds=1"), get("/api/v1/configmaps"),
    get("/api/v1/nodes"), get("/api/v1/nodes/x"), get("/api/v1/namespaces"), get("/api/v1/namespaces/$(ns)"),
    get("/apis/apps/v1/namespaces/$(ns)/deployments/d/scale"), get("/api/v1/namespaces/$(ns)/pods/p/log"),
    post("/api/v1/namespaces/$(ns)/pods/p/exec?command=x", None), get("/version"), get("/api"), get("/apis/apps/v1"),
    get("/openapi/v3"), get("/metrics"), get("/healthz"), get("/logs"), get("/nothing"),
    patch(f"{CMS}/b?fieldManager=m", sample("ConfigMap").make("b"), APPLY),
    post("/api/v1/namespaces/$(ns)/pods/p/eviction", {}), post("/api/v1/namespaces/$(ns)/pods/p/binding", {}),
]  # fmt: skip
escalations = by(
    "alice", post(ROLES, role("mine", rule("configmaps", "get"))), post(ROLES, role("more", rule("secrets", "get"))),
    post(ROLES, role("star", rule("*", "*"))), post(BINDINGS, bind("mine", "bob")),
    post(BINDINGS, bind("system:kube-dns", "alice", role_kind="ClusterRole")), patch(f"{ROLES}/mine", {"rules": [
        rule("secrets", "get")]}),
    post(CLUSTER_ROLES, {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": "alices"}}),
)  # fmt: skip
resource = {"namespace": "$(ns)", "verb": "get", "resource": "configmaps"}
CASES: Final = [
    Case("access/nothing-granted", by("alice", *everything)),
    Case(
        "access/read-granted",
        [
            post(ROLES, role("reader", rule("configmaps", "get list watch"))),
            post(BINDINGS, bind("reader", "alice")),
            {"pause": 0.5},
            post(CMS, cm),
            *by("alice", *everything),
        ],
    ),
    Case(
        "access/group",
        [
            post(ROLES, role("one", rule("configmaps", "*", resourceNames=["a"]))),
            post(BINDINGS, bind("one", "developers", "Group")),
            {"pause": 0.5},
            post(CMS, cm),
            *by(
                "bob",
                get(f"{CMS}/a"),
                get(f"{CMS}/b"),
                get(CMS),
                get(f"{CMS}?fieldSelector=metadata.name=a"),
                delete(f"{CMS}/a"),
                post(CMS, cm),
            ),
            *by("alice", get(f"{CMS}/a")),
        ],
    ),
    Case(
        "access/escalation",
        [
            post(ROLES, role("rbac", rule("roles rolebindings", "*", RBAC), rule("configmaps", "get"))),
            post(BINDINGS, bind("rbac", "alice")),
            {"pause": 0.5},
            *escalations,
        ],
    ),
    Case(
        "access/create-on-update",
        [
            post(ROLES, role("patcher", rule("configmaps", "patch update get"))),
            post(BINDINGS, bind("patcher", "alice")),
            {"pause": 0.5},
            *by(
                "alice",
                patch(f"{CMS}/n?fieldManager=m", sample("ConfigMap").make("n"), APPLY),
                put(f"{CMS}/n", sample("ConfigMap").make("n")),
            ),
        ],
    ),
    Case(
        "access/reviews",
        [
            post(ROLES, role("reader", rule("configmaps", "get"))),
            post(BINDINGS, bind("reader", "alice")),
            {"pause": 0.5},
            post(f"{AUTHZ}/selfsubjectaccessreviews", review("SelfSubjectAccessReview", resourceAttributes=resource)),
            *by(
                "alice",
                *[
                    post(
                        f"{AUTHZ}/selfsubjectaccessreviews",
                        review("SelfSubjectAccessReview", resourceAttributes={**resource, **more}),
                    )
                    for more in (
                        {},
                        {"verb": "list"},
                        {"resource": "secrets"},
                        {"namespace": ""},
                        {"name": "a"},
                        {"subresource": "x"},
                        {"group": "apps"},
                        {"verb": "*"},
                        {"resource": "*"},
                        {"version": "v1"},
                        {"verb": ""},
                    )
                ],
                post(
                    f"{AUTHZ}/selfsubjectaccessreviews",
                    review("SelfSubjectAccessReview", nonResourceAttributes={"path": "/version", "verb": "get"}),
                ),
                post(f"{AUTHZ}/selfsubjectaccessreviews", review("SelfSubjectAccessReview")),
                post(
                    f"{AUTHZ}/subjectaccessreviews",
                    review("SubjectAccessReview", user="bob", resourceAttributes=resource),
                ),
                post(f"{AUTHZ}/selfsubjectrulesreviews", review("SelfSubjectRulesReview", namespace="$(ns)")),
                post(
                    "/apis/authentication.k8s.io/v1/selfsubjectreviews",
                    {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
                ),
            ),
            *[
                post(f"{AUTHZ}/subjectaccessreviews", review("SubjectAccessReview", **spec))
                for spec in (
                    {"user": "alice", "resourceAttributes": resource},
                    {"user": "bob", "resourceAttributes": resource},
                    {"groups": ["system:masters"], "resourceAttributes": resource},
                    {"resourceAttributes": resource},
                    {"user": "alice"},
                    {"user": "alice", "nonResourceAttributes": {"path": "/x", "verb": "get"}},
                    {"user": "alice", "resourceAttributes": resource, "nonResourceAttributes": {"path": "/x"}},
                )
            ],
            post(
                f"{AUTHZ}/namespaces/$(ns)/localsubjectaccessreviews",
                review("LocalSubjectAccessReview", user="alice", resourceAttributes=resource),
            ),
            post(
                f"{AUTHZ}/namespaces/$(ns)/localsubjectaccessreviews",
                review("LocalSubjectAccessReview", user="alice", resourceAttributes={**resource, "namespace": "other"}),
            ),
            *[
                post(
                    "/apis/authentication.k8s.io/v1/tokenreviews",
                    {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec},
                )
                for spec in ({}, {"token": "nothing"})
            ],
        ],
    ),
    Case(
        "access/impersonation",
        [
            get(CMS, headers={"impersonate-user": "alice"}),
            get(CMS, headers={"impersonate-user": "x", "impersonate-group": "system:masters"}),
            get(CMS, headers={"impersonate-group": "x"}),
            *by("alice", get(CMS, headers={"impersonate-user": "admin"})),
            post(
                "/apis/authentication.k8s.io/v1/selfsubjectreviews",
                {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
                headers={"impersonate-user": "alice", "impersonate-extra-a": "b"},
            ),
        ],
    ),
    Case(
        "access/roles",
        [
            post(ROLES, role("a", {"verbs": ["get"]})),
            post(ROLES, role("a", {"resources": ["pods"]})),
            post(ROLES, role("a", {"nonResourceURLs": ["/x"], "verbs": ["get"]})),
            post(ROLES, role("a", rule("pods", "get", resourceNames=["x"]))),
            post(BINDINGS, {**bind("a", "u"), "roleRef": {"apiGroup": RBAC, "kind": "X", "name": "a"}}),
            post(BINDINGS, {**bind("a", "u"), "subjects": [{"kind": "ServiceAccount", "name": "x"}]}),
            post(BINDINGS, {**bind("a", "u"), "subjects": [{"kind": "X", "name": "x"}]}),
            post(BINDINGS, bind("a", "u")),
            patch(f"{BINDINGS}/a-u", {"roleRef": {"name": "b"}}),
            patch(f"{BINDINGS}/a-u", {"subjects": []}),
            get(f"{BINDINGS}/a-u"),
        ],
    ),
]
