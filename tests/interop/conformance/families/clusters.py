"""Kinds of the cluster that the general sequences of kinds say little of: API services, signing requests, claims of
devices, policies that judge and change, leases, flow control, status and scale of custom kinds."""

from __future__ import annotations

from typing import Any, Final

from tests.interop.conformance.families.custom import CRDS, crd, wheel
from tests.interop.conformance.samples import CSR
from tests.interop.conformance.sequence import (
    JSON_PATCH,
    TABLE,
    Case,
    apply,
    delete,
    edit,
    get,
    patch,
    post,
    put,
)

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/$(ns)/resourceclaims"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/$(ns)/leases"
REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
CMS = "/api/v1/namespaces/$(ns)/configmaps"
FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"
sized = "sized.example.com"
WHEELS = f"/apis/{sized}/v1/namespaces/$(ns)/wheels"
SCALE: Final = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector"}  # fmt: skip


def named(api: str, kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, **more}


def service(name: str = "v1.more.example.com", **spec: Any) -> dict[str, Any]:
    return named("apiregistration.k8s.io/v1", "APIService", name, spec=spec)


def request(name: str, **spec: Any) -> dict[str, Any]:
    made = {"request": CSR, "signerName": "example.com/s", "usages": ["client auth"], **spec}
    return named("certificates.k8s.io/v1", "CertificateSigningRequest", name, spec=made)


def claim(name: str, *requests: Any, **devices: Any) -> dict[str, Any]:
    spec = {"devices": {"requests": list(requests), **devices}}
    return named("resource.k8s.io/v1", "ResourceClaim", name, spec=spec)


def lease(name: str = "l", **spec: Any) -> dict[str, Any]:
    return named("coordination.k8s.io/v1", "Lease", name, spec=spec)


def policy(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
    chosen = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["$(ns)"]}]}
    constraints = {"resourceRules": rules, "namespaceSelector": chosen}
    return named("admissionregistration.k8s.io/v1", kind, name, spec={"matchConstraints": constraints, **spec})


def bound(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return named("admissionregistration.k8s.io/v1", f"{kind}Binding", name, spec={"policyName": name, **spec})


def cm(name: str, **more: Any) -> dict[str, Any]:
    return named("v1", "ConfigMap", name, **more)


exact = {"name": "r", "exactly": {"deviceClassName": "c"}}
allocated = {"allocation": {"devices": {"results": [
    {"request": "r", "driver": "d.example.com", "pool": "p", "device": "x"}]}}}  # fmt: skip
times = {"acquireTime": "2020-01-01T00:00:00.000000Z", "renewTime": "2020-01-01T00:00:01.000000Z"}
held = {"holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 0, **times}
remote = {"group": "more.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10,
          "service": {"name": "s", "namespace": "$(ns)"}, "insecureSkipTLSVerify": True}  # fmt: skip
approved = [{"type": "Approved", "status": "True", "reason": "r", "message": "m"}]
denied = [{"type": "Denied", "status": "True", "reason": "r", "message": "m"}]
failed = [{"type": "Failed", "status": "True", "reason": "r", "message": "m"}]
VALIDATING, MUTATING = "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"
no_data = {"expression": "has(object.data)", "message": "no data!", "reason": "Invalid"}
CASES: Final = [
    Case(
        "clusters/api-services",
        [
            get(f"{SERVICES}/v1.apps"),
            get(f"{SERVICES}/v1."),
            get(f"{SERVICES}/v1.apps", accept=TABLE),
            get(f"{SERVICES}/v1.none"),
            post(f"{SERVICES}?dryRun=All", service(**remote)),
            post(f"{SERVICES}?dryRun=All", service("v2.more.example.com", **remote)),
            post(f"{SERVICES}?dryRun=All", service(**{**remote, "groupPriorityMinimum": 0})),
            post(f"{SERVICES}?dryRun=All", service(**{**remote, "versionPriority": 5000})),
            post(f"{SERVICES}?dryRun=All", service(**{**remote, "caBundle": "eA=="})),
            post(f"{SERVICES}?dryRun=All", service(**{**remote, "service": {"name": "s"}})),
            post(
                f"{SERVICES}?dryRun=All", service(**{**remote, "service": {"name": "s", "namespace": "n", "port": -1}})
            ),
            post(f"{SERVICES}?dryRun=All", service(group="more.example.com", version="v1")),
            patch(f"{SERVICES}/v1.apps?dryRun=All", {"metadata": {"labels": {"a": "b"}}}),
        ],
    ),
    Case(
        "clusters/signing-requests",
        [
            post(REQUESTS, request("c-csr-a"), save="a"),
            get(REQUESTS + "?fieldSelector=spec.signerName%3Dexample.com%2Fs%2Cmetadata.name%3Dc-csr-a"),
            get(f"{REQUESTS}/c-csr-a", accept=TABLE),
            post(f"{REQUESTS}?dryRun=All", request("c-csr-b", signerName="nodomain")),
            post(f"{REQUESTS}?dryRun=All", request("c-csr-b", usages=[])),
            post(f"{REQUESTS}?dryRun=All", request("c-csr-b", usages=["nothing"])),
            post(f"{REQUESTS}?dryRun=All", request("c-csr-b", usages=["client auth", "client auth"])),
            post(f"{REQUESTS}?dryRun=All", request("c-csr-b", request="eA==")),
            post(f"{REQUESTS}?dryRun=All", request("c-csr-b", expirationSeconds=5)),
            post(f"{REQUESTS}?dryRun=All", request("c-csr-b", signerName="kubernetes.io/legacy-unknown")),
            patch(f"{REQUESTS}/c-csr-a", {"spec": {"usages": ["server auth"]}}),
            patch(f"{REQUESTS}/c-csr-a/status", {"status": {"conditions": approved}}),
            patch(f"{REQUESTS}/c-csr-a/approval", {"status": {"conditions": denied}}),
            patch(f"{REQUESTS}/c-csr-a/approval", {"status": {"conditions": approved}}),
            patch(f"{REQUESTS}/c-csr-a/approval", {"status": {"conditions": []}}),
            patch(f"{REQUESTS}/c-csr-a/status", {"status": {"conditions": denied + failed}}),
            get(f"{REQUESTS}/c-csr-a"),
            delete(f"{REQUESTS}/c-csr-a"),
        ],
    ),
    Case(
        "clusters/resource-claims",
        [
            post(CLAIMS, claim("c", exact), save="c"),
            get(f"{CLAIMS}/c", accept=TABLE),
            patch(f"{CLAIMS}/c", {"spec": {"devices": {"requests": []}}}),
            patch(f"{CLAIMS}/c/status", {"status": allocated}),
            patch(f"{CLAIMS}/c/status", {"status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}}),
            patch(f"{CLAIMS}/c/status", {"status": {"allocation": None}}),
            patch(f"{CLAIMS}/c/status", {"status": {"reservedFor": None}}),
            get(f"{CLAIMS}/c"),
            delete(f"{CLAIMS}/c"),
            post(f"{CLAIMS}?dryRun=All", claim("d")),
            post(f"{CLAIMS}?dryRun=All", claim("d", {"name": "r"})),
            post(f"{CLAIMS}?dryRun=All", claim("d", {"name": "R", "exactly": {"deviceClassName": "c"}})),
            post(f"{CLAIMS}?dryRun=All", claim("d", exact, exact)),
            post(f"{CLAIMS}?dryRun=All", claim("d", {"name": "r", "exactly": {"deviceClassName": ""}})),
            post(f"{CLAIMS}?dryRun=All", claim("d", {"name": "r", "exactly": {"deviceClassName": "c", "count": -1}})),
            post(
                f"{CLAIMS}?dryRun=All",
                claim("d", {"name": "r", "exactly": {"deviceClassName": "c", "allocationMode": "X"}}),
            ),
            post(
                f"{CLAIMS}?dryRun=All",
                claim("d", {"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "c"}]}),
            ),
            post(f"{CLAIMS}?dryRun=All", claim("d", exact, constraints=[{"requests": ["x"], "matchAttribute": "a/b"}])),
            get(f"{SLICES}?fieldSelector=spec.driver%3Dx"),
            get(f"{SLICES}?fieldSelector=spec.pool%3Dx"),
            post(f"{CLASSES}?dryRun=All", named("resource.k8s.io/v1", "DeviceClass", "c-d", spec={})),
            post(
                f"{CLASSES}?dryRun=All",
                named("resource.k8s.io/v1", "DeviceClass", "c-d", spec={"selectors": [{"cel": {"expression": "1 +"}}]}),
            ),
        ],
    ),
    Case(
        "clusters/policies",
        [
            post(f"{REGISTRATION}/validatingadmissionpolicies", policy(VALIDATING, "c-vap", validations=[no_data])),
            post(
                f"{REGISTRATION}/validatingadmissionpolicybindings",
                bound(VALIDATING, "c-vap", validationActions=["Deny"]),
            ),
            {"pause": 2.5},
            post(f"{CMS}?dryRun=All", cm("a")),
            post(f"{CMS}?dryRun=All", cm("a", data={"k": "v"})),
            apply(f"{CMS}/a?dryRun=All", cm("a")),
            patch(f"{REGISTRATION}/validatingadmissionpolicybindings/c-vap", {"spec": {"validationActions": ["Warn"]}}),
            {"pause": 2.5},
            post(f"{CMS}?dryRun=All", cm("a")),
            patch(f"{REGISTRATION}/validatingadmissionpolicybindings/c-vap", {"spec": {"policyName": "other"}}),
            patch(f"{REGISTRATION}/validatingadmissionpolicybindings/c-vap", {"spec": {"validationActions": []}}),
            patch(
                f"{REGISTRATION}/validatingadmissionpolicybindings/c-vap",
                {"spec": {"validationActions": ["Deny", "Warn"]}},
            ),
            delete(f"{REGISTRATION}/validatingadmissionpolicybindings/c-vap"),
            delete(f"{REGISTRATION}/validatingadmissionpolicies/c-vap"),
            post(f"{REGISTRATION}/mutatingadmissionpolicies?dryRun=All", policy(MUTATING, "c-map", mutations=[])),
            post(
                f"{REGISTRATION}/mutatingadmissionpolicies?dryRun=All",
                policy(
                    MUTATING,
                    "c-map",
                    reinvocationPolicy="Never",
                    mutations=[{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "1"}}],
                ),
            ),
        ],
    ),
    Case(
        "clusters/leases",
        [
            post(LEASES, lease(**held), save="l"),
            get(f"{LEASES}/l", accept=TABLE),
            put(f"{LEASES}/l", edit("l", **{"spec.holderIdentity": "b", "spec.leaseTransitions": 1})),
            put(f"{LEASES}/l", edit("l", **{"spec.holderIdentity": "c"})),
            put(f"{LEASES}/l", edit("l", ["metadata.resourceVersion"])),
            patch(f"{LEASES}/l", {"spec": {"renewTime": "2020-01-01T00:00:02Z"}}),
            patch(f"{LEASES}/l", {"spec": {"renewTime": "yesterday"}}),
            patch(f"{LEASES}/l", {"spec": {"leaseDurationSeconds": 0}}),
            patch(f"{LEASES}/l", {"spec": {"leaseTransitions": -1}}),
            patch(f"{LEASES}/l", {"spec": {"strategy": "Nonsense"}}),
            patch(f"{LEASES}/l", {"spec": {"preferredHolder": "x"}}),
            patch(f"{LEASES}/l", {"spec": {"holderIdentity": ""}}),
            post(LEASES, lease("empty")),
            delete(f"{LEASES}/l"),
        ],
    ),
    Case(
        "clusters/flow-control",
        [
            get(f"{FLOW}/prioritylevelconfigurations/exempt"),
            get(f"{FLOW}/prioritylevelconfigurations/catch-all"),
            get(f"{FLOW}/flowschemas/catch-all", accept=TABLE),
            get(f"{FLOW}/prioritylevelconfigurations/global-default", accept=TABLE),
            post(
                f"{FLOW}/prioritylevelconfigurations?dryRun=All",
                named("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration", "c-p", spec={"type": "Limited"}),
            ),
            post(
                f"{FLOW}/flowschemas?dryRun=All",
                named(
                    "flowcontrol.apiserver.k8s.io/v1",
                    "FlowSchema",
                    "c-f",
                    spec={"matchingPrecedence": 0, "priorityLevelConfiguration": {"name": "x"}},
                ),
            ),
            patch(f"{FLOW}/prioritylevelconfigurations/exempt?dryRun=All", {"spec": {"type": "Limited"}}),
            patch(
                f"{FLOW}/prioritylevelconfigurations/workload-low?dryRun=All",
                {"spec": {"limited": {"nominalConcurrencyShares": -1}}},
            ),
        ],
    ),
    Case(
        "clusters/custom-scale",
        [
            post(CRDS, crd(sized, subresources={"status": {}, "scale": SCALE})),
            {"pause": 2.5},
            post(WHEELS, wheel(sized, size=5)),
            get(f"{WHEELS}/w/scale"),
            post(WHEELS, wheel(sized, "n", size=5, replicas=2)),
            get(f"{WHEELS}/n/scale", save="s"),
            put(f"{WHEELS}/n/scale", edit("s", **{"spec.replicas": 3})),
            put(f"{WHEELS}/n/scale", edit("s", **{"spec.replicas": 4})),
            patch(f"{WHEELS}/n/scale", {"spec": {"replicas": -1}}),
            patch(f"{WHEELS}/n/scale", {"spec": {"replicas": "x"}}),
            patch(f"{WHEELS}/n/scale", [{"op": "replace", "path": "/spec/replicas", "value": 6}], JSON_PATCH),
            patch(f"{WHEELS}/n", {"spec": {"replicas": -5}}),
            patch(f"{WHEELS}/n", {"status": {"phase": "x"}}),
            patch(f"{WHEELS}/n/status", {"status": {"replicas": 1, "selector": "a=b"}, "spec": {"replicas": 9}}),
            get(f"{WHEELS}/n/scale"),
            patch(f"{WHEELS}/n/status", {"status": {"replicas": -1}}),
            put(f"{WHEELS}/n/status", wheel(sized, "n", size=5)),
            get(f"{WHEELS}/n"),
        ],
    ),
]
