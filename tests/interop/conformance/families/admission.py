"""What stands between a valid request and the store: policies in CEL, pod security, quotas, limit ranges, budgets."""

from __future__ import annotations

from typing import Any, Final

from tests.interop.conformance.samples import LABELS, POD
from tests.interop.conformance.sequence import Case, apply, delete, edit, get, patch, post, put

CMS = "/api/v1/namespaces/$(ns)/configmaps"
PODS = "/api/v1/namespaces/$(ns)/pods"
QUOTAS = "/api/v1/namespaces/$(ns)/resourcequotas"
RANGES = "/api/v1/namespaces/$(ns)/limitranges"
BUDGETS = "/apis/policy/v1/namespaces/$(ns)/poddisruptionbudgets"
DEPLOYMENTS = "/apis/apps/v1/namespaces/$(ns)/deployments"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
SCHEMAS = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
LEVELS = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations"


def cm(name: str = "a", **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **more}


def pod(name: str = "p", labels: Any = LABELS, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": {**POD, **spec}}


def sized(name: str, **resources: Any) -> dict[str, Any]:
    return pod(name, containers=[{"name": "c", "image": "i", "resources": resources}])


def policy(name: str, *validations: dict[str, Any], **spec: Any) -> dict[str, Any]:
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {"matchConstraints": {"resourceRules": rules}, "validations": list(validations), **spec},
    }


def quota(name: str = "q", **hard: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": {"hard": hard}}


def limits(*items: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}, "spec": {"limits": list(items)}}


def level(name: str, **spec: Any) -> dict[str, Any]:
    head = {"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration"}
    return {**head, "metadata": {"name": name}, "spec": spec}


def schema(name: str, **spec: Any) -> dict[str, Any]:
    head = {"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema"}
    return {**head, "metadata": {"name": name}, "spec": spec}


def deployment(**spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": LABELS}, "spec": POD}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
            "spec": {"selector": {"matchLabels": LABELS}, "template": template, **spec}}  # fmt: skip


secured = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
told = {"metadata": {"labels": {"pod-security.kubernetes.io/warn": "baseline"}}}
wrong = [
    {"expression": "object.data.size() <"}, {"expression": "1 + 1"}, {"expression": "object.nothing == 1"},
    {"expression": ""}, {"expression": "true", "reason": "Nonsense"},
    {"expression": "true", "messageExpression": "1"}, {"expression": "params.x == 1"},
]  # fmt: skip
limited = {"type": "Limited", "limited": {"nominalConcurrencyShares": 5, "limitResponse": {"type": "Reject"}}}
dangling = [{"type": "Dangling", "status": "False"}]
subject = {"kind": "User", "user": {"name": "alice"}}
anything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}
CASES: Final = [
    Case(
        "admission/policies",
        [
            *[post(f"{POLICIES}?dryRun=All", policy("conformance-wrong", each)) for each in wrong],
            post(f"{POLICIES}?dryRun=All", policy("conformance-none")),
            post(f"{POLICIES}?dryRun=All", policy("conformance-x", {"expression": "true"}, failurePolicy="Never")),
            post(POLICIES, policy("conformance-good", {"expression": "has(object.data)", "message": "no!"}), save="p"),
            get(f"{POLICIES}/conformance-good"),
            put(f"{POLICIES}/conformance-good", edit("p", **{"spec.validations.0.expression": "true"})),
            delete(f"{POLICIES}/conformance-good"),
            post(f"{BINDINGS}?dryRun=All", {"apiVersion": "admissionregistration.k8s.io/v1",
                 "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "conformance-b"},
                 "spec": {"policyName": "none", "validationActions": ["Deny", "Warn"]}}),
        ],
    ),
    Case(
        "admission/pod-security",
        [
            patch("/api/v1/namespaces/$(ns)", secured),
            post(PODS, pod()),
            post(PODS, pod("priv", containers=[{"name": "c", "image": "i", "securityContext": {"privileged": True}}])),
            post(PODS, pod("host", hostNetwork=True, hostPID=True)),
            post(DEPLOYMENTS, deployment()),
            patch("/api/v1/namespaces/$(ns)", {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": None}}}),
            patch("/api/v1/namespaces/$(ns)", told),
            post(PODS, pod("host", hostNetwork=True)),
            patch("/api/v1/namespaces/$(ns)", {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "x"}}}),
        ],
    ),
    Case(
        "admission/limit-ranges",
        [
            post(RANGES, limits({"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "500m"},
                                 "max": {"cpu": "2"}, "min": {"cpu": "100m"}})),
            post(PODS, sized("a")),
            post(PODS, sized("b", requests={"cpu": "3"}, limits={"cpu": "3"})),
            post(PODS, sized("c", requests={"cpu": "10m"})),
            post(PODS, sized("d", requests={"cpu": "10m"}, limits={"cpu": "9"})),
            post(f"{RANGES}?dryRun=All", limits({"type": "Container", "max": {"cpu": "1"}, "min": {"cpu": "2"}})),
            post(f"{RANGES}?dryRun=All", limits({"type": "X"}, {"type": "Pod", "default": {"cpu": "1"}})),
        ],
    ),
    Case(
        "admission/quotas",
        [
            post(QUOTAS, quota(pods="1", **{"requests.cpu": "1"}), save="q"),
            patch(f"{QUOTAS}/q/status", {"status": {"hard": {"pods": "1", "requests.cpu": "1"},
                                                    "used": {"pods": "0", "requests.cpu": "0"}}}),
            post(PODS, sized("a")),
            post(PODS, sized("b", requests={"cpu": "2"})),
            post(PODS, sized("c", requests={"cpu": "500m"})),
            get(f"{QUOTAS}/q"),
            post(PODS, sized("d", requests={"cpu": "100m"})),
            post(f"{PODS}?dryRun=All", sized("c", requests={"cpu": "100m"})),
        ],
    ),
    Case(
        "admission/budgets",
        [
            post(PODS, pod(), save="p"),
            post(f"{PODS}/p/binding", {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"},
                                       "target": {"kind": "Node", "name": "n"}}),
            patch(f"{PODS}/p/status", {"status": {"phase": "Running",
                                                  "conditions": [{"type": "Ready", "status": "True"}]}}),
            post(BUDGETS, {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"},
                           "spec": {"minAvailable": 1, "selector": {"matchLabels": LABELS}}}),
            post(f"{PODS}/p/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}),
            patch(f"{BUDGETS}/b/status", {"status": {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1,
                                                     "expectedPods": 1, "observedGeneration": 1}}),
            post(f"{PODS}/p/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}),
            post(f"{PODS}/q/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "q"}}),
            get(f"{BUDGETS}/b"),
        ],
    ),
    Case(
        "admission/flow-control",
        [
            post(f"{LEVELS}?dryRun=All", level("conformance-a")),
            post(f"{LEVELS}?dryRun=All", level("conformance-a", type="Exempt", limited={})),
            post(f"{LEVELS}?dryRun=All", level("conformance-a", type="Limited")),
            post(LEVELS, level("conformance-a", **limited), save="l"),
            put(f"{LEVELS}/conformance-a", edit("l", **{"spec.limited.nominalConcurrencyShares": 7})),
            patch(f"{LEVELS}/conformance-a/status", {"status": {"conditions": dangling},
                                                     "metadata": {"labels": {"a": "b"}}}),
            post(f"{SCHEMAS}?dryRun=All", schema("conformance-a")),
            post(SCHEMAS, schema("conformance-a", priorityLevelConfiguration={"name": "conformance-a"},
                                 rules=[{"subjects": [subject], "resourceRules": [anything]}])),
            patch(f"{SCHEMAS}/conformance-a", {"spec": {"matchingPrecedence": 0}}),
            patch(f"{SCHEMAS}/conformance-a", {"spec": {"matchingPrecedence": 5}}),
            delete(f"{SCHEMAS}/conformance-a"),
            delete(f"{LEVELS}/conformance-a"),
        ],
    ),
    Case(
        "admission/managers",
        [
            apply(f"{DEPLOYMENTS}/d", deployment(replicas=2), "one"),
            apply(f"{DEPLOYMENTS}/d", deployment(replicas=3), "two"),
            apply(f"{DEPLOYMENTS}/d", deployment(replicas=2), "two"),
            apply(f"{DEPLOYMENTS}/d", deployment(replicas=4), "three", force=True),
            apply(f"{DEPLOYMENTS}/d", deployment(), "one"),
            apply(f"{DEPLOYMENTS}/d", deployment(replicas=5, minReadySeconds=1), "one"),
            apply(f"{DEPLOYMENTS}/d/status", {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
                                              "status": {"replicas": 1}}, "four"),
            apply(f"{DEPLOYMENTS}/d/status", {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
                                              "status": {"replicas": 2}}, "five"),
            apply(f"{DEPLOYMENTS}/d/scale", {"apiVersion": "autoscaling/v1", "kind": "Scale",
                                             "metadata": {"name": "d"}, "spec": {"replicas": 6}}, "six"),
            get(f"{DEPLOYMENTS}/d"),
        ],
    ),
]  # fmt: skip
