"""Subresources: status, scale, binding, eviction, token, ephemeral containers, resize, approval."""

from __future__ import annotations

from typing import Any, Final

from tests.interop.conformance.samples import LABELS, sample
from tests.interop.conformance.sequence import (
    JSON_PATCH,
    STRATEGIC,
    TABLE,
    Case,
    delete,
    edit,
    get,
    patch,
    post,
    put,
)

PODS = "/api/v1/namespaces/$(ns)/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/$(ns)/deployments"
ACCOUNTS = "/api/v1/namespaces/$(ns)/serviceaccounts"
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


def binding(name: str = "p", node: str = "n1", **meta: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, **meta},
            "target": {"kind": "Node", "name": node}}  # fmt: skip


def eviction(name: str = "p", **more: Any) -> dict[str, Any]:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, **more}


def budget(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"},
            "spec": {"selector": {"matchLabels": LABELS}, **spec}}  # fmt: skip


p, d = f"{PODS}/p", f"{DEPLOYMENTS}/d"
budgets = "/apis/policy/v1/namespaces/$(ns)/poddisruptionbudgets"
pod = sample("Pod").make("p", labels=LABELS)
ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
allowed = {"status": {"disruptionsAllowed": 1, "currentHealthy": 1, "desiredHealthy": 0, "expectedPods": 1,
                      "observedGeneration": 1}}  # fmt: skip
CASES: Final = [
    Case(
        "parts/binding",
        [
            post(PODS, pod, save="p"),
            post(f"{p}/binding", binding("other")),
            post(f"{p}/binding", {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {}}),
            post(f"{p}/binding", binding(uid="00000000-0000-4000-8000-000000000000")),
            post(f"{p}/binding?dryRun=All", binding()),
            post(f"{p}/binding", {**binding(), "target": {"kind": "Pod", "name": "x"}}),
            post(f"{p}/binding", binding(annotations={"a": "b"}, uid="$(p.metadata.uid)")),
            get(p),
            post(f"{p}/binding", binding(node="n2")),
            post(f"{p}/binding", binding()),
            post("/api/v1/namespaces/$(ns)/bindings", binding()),
            post(f"{PODS}/none/binding", binding("none")),
            get(f"{p}/binding"),
            delete(p, {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 30}),
            post(PODS, {**pod, "metadata": {"name": "q"}}),
            post("/api/v1/namespaces/$(ns)/bindings", binding("q")),
            post(
                PODS,
                {
                    **pod,
                    "metadata": {"name": "g"},
                    "spec": {**pod["spec"], "schedulingGates": [{"name": "example.com/g"}]},
                },
            ),
            post(f"{PODS}/g/binding", binding("g")),
            patch(f"{PODS}/g", {"spec": {"nodeName": "x"}}),
            patch(f"{PODS}/g", {"spec": {"schedulingGates": []}}),
            post(f"{PODS}/g/binding", binding("g")),
        ],
    ),
    Case(
        "parts/eviction",
        [
            post(f"{PODS}/none/eviction", eviction("none")),
            post(PODS, pod),
            post(f"{p}/eviction", eviction("other")),
            post(f"{p}/eviction?dryRun=All", eviction()),
            post(f"{p}/eviction", eviction()),
            get(p),
            post(PODS, pod),
            post(f"{p}/binding", binding()),
            patch(f"{p}/status", ready),
            post(budgets, budget(minAvailable=1)),
            post(f"{p}/eviction", eviction()),
            post(f"{p}/eviction", eviction(deleteOptions={"gracePeriodSeconds": 1})),
            patch(f"{budgets}/b/status", allowed),
            get(f"{budgets}/b"),
            get(f"{budgets}/b", accept=TABLE),
            post(f"{p}/eviction", eviction(deleteOptions={"dryRun": ["All"]})),
            post(f"{p}/eviction", eviction()),
            get(p),
            get(f"{budgets}/b"),
            post(f"{p}/eviction", eviction()),
            get(f"{p}/eviction"),
            delete(f"{p}?gracePeriodSeconds=0"),
        ],
    ),
    Case(
        "parts/eviction-unready",
        [
            post(PODS, pod),
            post(f"{p}/binding", binding()),
            post(budgets, budget(maxUnavailable=0)),
            patch(
                f"{budgets}/b/status",
                {
                    "status": {
                        "disruptionsAllowed": 0,
                        "currentHealthy": 0,
                        "desiredHealthy": 1,
                        "expectedPods": 1,
                        "observedGeneration": 1,
                    }
                },
            ),
            patch(
                f"{p}/status",
                {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}},
            ),
            post(f"{p}/eviction", eviction()),
            patch(f"{budgets}/b", {"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}}),
            post(f"{p}/eviction", eviction()),
            get(p),
        ],
    ),
    Case(
        "parts/eviction-two-budgets",
        [
            post(PODS, pod),
            post(f"{p}/binding", binding()),
            patch(f"{p}/status", ready),
            post(budgets, budget(minAvailable=1)),
            post(budgets, {**budget(minAvailable=2), "metadata": {"name": "c"}}),
            post(f"{p}/eviction", eviction()),
            patch(f"{p}/status", {"status": {"phase": "Succeeded"}}),
            post(f"{p}/eviction", eviction()),
            get(p),
        ],
    ),
    Case(
        "parts/status",
        [
            post(PODS, {**pod, "status": {"phase": "Running"}}, save="p"),
            get(f"{p}/status"),
            put(
                f"{p}/status",
                edit("p", **{"status.phase": "Failed", "spec.hostname": "x", "metadata.labels.q": "1"}),
            ),
            put(f"{p}/status", edit("p", **{"status.phase": "Failed"})),
            get(p),
            patch(f"{p}/status", {"status": None}),
            patch(p, {"status": {"phase": "Running"}}),
            patch(f"{p}/status", {"spec": {"hostname": "x"}}),
            patch(f"{p}/status", {"status": {"phase": 5}}),
            patch(f"{p}/status", {"status": {"unknown": 5}}),
            patch(f"{p}/status", {"status": {"conditions": [{"type": "A", "status": "True"}]}}, STRATEGIC),
            patch(f"{p}/status", {"status": {"conditions": [{"type": "B", "status": "True"}]}}, STRATEGIC),
            patch(f"{p}/status", {"status": {"conditions": [{"type": "A", "$patch": "delete"}]}}, STRATEGIC),
            patch(f"{p}/status", [{"op": "replace", "path": "/status/phase", "value": "Succeeded"}], JSON_PATCH),
            patch(
                f"{p}/status",
                {
                    "status": {
                        "containerStatuses": [
                            {
                                "name": "c",
                                "image": "i",
                                "imageID": "",
                                "ready": True,
                                "restartCount": 0,
                                "state": {"running": {}},
                            }
                        ]
                    }
                },
            ),
            patch(f"{p}/status", {"status": {"containerStatuses": [{"name": "none"}]}}),
            get(p, accept=TABLE),
            post(f"{p}/status", pod),
            delete(f"{p}/status"),
            get(f"{PODS}/none/status"),
            put(f"{PODS}/none/status", edit("p", **{"metadata.name": "none"})),
        ],
    ),
    Case(
        "parts/scale",
        [
            post(DEPLOYMENTS, sample("Deployment").make("d"), save="d"),
            get(f"{d}/scale", save="s"),
            put(f"{d}/scale", edit("s", **{"spec.replicas": 3})),
            put(f"{d}/scale", edit("s", **{"spec.replicas": 4})),
            put(f"{d}/scale", edit("s", ["metadata.resourceVersion"], **{"spec.replicas": 4})),
            put(f"{d}/scale", edit("s", ["metadata.resourceVersion"], **{"metadata.name": "x"})),
            put(f"{d}/scale", edit("s", ["metadata.resourceVersion", "metadata.uid"], **{"spec.replicas": -1})),
            put(f"{d}/scale", edit("s", ["metadata.resourceVersion"], kind="Other")),
            put(f"{d}/scale", {"spec": {"replicas": 2}}),
            put(
                f"{d}/scale",
                {
                    "apiVersion": "autoscaling/v1",
                    "kind": "Scale",
                    "metadata": {"name": "d"},
                    "spec": {"replicas": 2},
                },
            ),
            patch(f"{d}/scale", {"spec": {"replicas": 7}}),
            patch(f"{d}/scale", {"spec": {"replicas": "7"}}),
            patch(f"{d}/scale", {"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 7}}),
            patch(f"{d}/scale", {"spec": {"replicas": 8}}, STRATEGIC),
            patch(f"{d}/scale", {"spec": {"nothing": 8}}),
            patch(f"{d}/scale", [{"op": "replace", "path": "/spec/replicas", "value": 1}], JSON_PATCH),
            patch(f"{d}/scale", [{"op": "test", "path": "/spec/replicas", "value": 9}], JSON_PATCH),
            patch(f"{d}/scale?dryRun=All", {"spec": {"replicas": 99}}),
            get(f"{d}/scale"),
            get(d),
            get(f"{DEPLOYMENTS}/none/scale"),
            get(f"{d}/scale", accept=TABLE),
            delete(f"{d}/scale"),
            patch(f"{DEPLOYMENTS}/none/scale", {"spec": {"replicas": 7}}),
        ],
    ),
    Case(
        "parts/token",
        [
            post(ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}}),
            *[
                post(
                    f"{ACCOUNTS}/a/token",
                    {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", **body},
                )
                for body in (
                    {},
                    {"spec": {}},
                    {"spec": {"audiences": ["x"], "expirationSeconds": 600}},
                    {"spec": {"expirationSeconds": 5}},
                    {"spec": {"expirationSeconds": 9999999999}},
                    {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "none"}}},
                    {"spec": {"boundObjectRef": {"kind": "Node", "apiVersion": "v1", "name": "none"}}},
                    {"spec": {"boundObjectRef": {"kind": "Other", "apiVersion": "v1", "name": "none"}}},
                )
            ],
            post(f"{ACCOUNTS}/none/token", {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}),
            get(f"{ACCOUNTS}/a/token"),
        ],
    ),
    Case(
        "parts/ephemeral-containers",
        [
            post(PODS, pod, save="p"),
            get(f"{p}/ephemeralcontainers"),
            patch(
                f"{p}/ephemeralcontainers",
                {"spec": {"ephemeralContainers": [{"name": "e", "image": "i"}]}},
                STRATEGIC,
            ),
            patch(
                f"{p}/ephemeralcontainers",
                {"spec": {"ephemeralContainers": [{"name": "c", "image": "i"}]}},
                STRATEGIC,
            ),
            patch(f"{p}/ephemeralcontainers", {"spec": {"ephemeralContainers": []}}),
            patch(f"{p}/ephemeralcontainers", {"spec": {"hostname": "x"}}),
            patch(p, {"spec": {"ephemeralContainers": [{"name": "f", "image": "i"}]}}, STRATEGIC),
            get(p),
        ],
    ),
    Case(
        "parts/resize",
        [
            post(
                PODS,
                {
                    **pod,
                    "spec": {
                        "containers": [
                            {
                                "name": "c",
                                "image": "i",
                                "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
                            }
                        ]
                    },
                },
            ),
            patch(
                f"{p}/resize",
                {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "500m"}}}]}},
                STRATEGIC,
            ),
            patch(f"{p}/resize", {"spec": {"containers": [{"name": "c", "image": "j"}]}}, STRATEGIC),
            patch(
                f"{p}/resize",
                {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "5"}}}]}},
                STRATEGIC,
            ),
            patch(
                f"{p}/resize",
                {"spec": {"containers": [{"name": "c", "resources": {"requests": {"memory": "1Gi"}}}]}},
                STRATEGIC,
            ),
            patch(p, {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "700m"}}}]}}, STRATEGIC),
            get(f"{p}/resize"),
            get(p),
        ],
    ),
    Case(
        "parts/approval",
        [
            post(CSRS, sample("CertificateSigningRequest").make("parts"), save="c"),
            put(
                f"{CSRS}/parts/approval",
                edit(
                    "c",
                    **{"status.conditions": [{"type": "Approved", "status": "True", "reason": "r", "message": "m"}]},
                ),
                save="d",
            ),
            put(
                f"{CSRS}/parts/approval",
                edit(
                    "d",
                    **{"status.conditions": [{"type": "Denied", "status": "True", "reason": "r", "message": "m"}]},
                ),
            ),
            put(f"{CSRS}/parts/status", edit("d", **{"status.certificate": "bm90IGEgY2VydA=="})),
            get(f"{CSRS}/parts"),
            get(f"{CSRS}/parts", accept=TABLE),
            get(f"{CSRS}/parts/approval"),
            delete(f"{CSRS}/parts"),
        ],
    ),
]
