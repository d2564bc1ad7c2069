"""Documents and forms: discovery, versions, OpenAPI, and the tables of objects in states that their columns tell."""

from __future__ import annotations

from typing import Any, Final

from tests.interop.conformance.samples import POD, sample
from tests.interop.conformance.sequence import PARTIAL, TABLE, Case, get, patch, post

PODS = "/api/v1/namespaces/$(ns)/pods"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
GROUPS = (
    "admissionregistration.k8s.io/v1", "apps/v1", "authentication.k8s.io/v1", "authorization.k8s.io/v1",
    "autoscaling/v1", "autoscaling/v2", "batch/v1", "certificates.k8s.io/v1", "coordination.k8s.io/v1",
    "discovery.k8s.io/v1", "events.k8s.io/v1", "networking.k8s.io/v1", "node.k8s.io/v1", "policy/v1",
    "rbac.authorization.k8s.io/v1", "resource.k8s.io/v1", "scheduling.k8s.io/v1", "storage.k8s.io/v1",
    "apiextensions.k8s.io/v1", "flowcontrol.apiserver.k8s.io/v1", "apiregistration.k8s.io/v1",
)  # fmt: skip


def state(**state: Any) -> dict[str, Any]:
    return {"name": "c", "image": "i", "imageID": "", "ready": False, "restartCount": 1, "state": state}


states = [
    {"phase": "Pending"}, {"phase": "Running", "containerStatuses": [{**state(running={}), "ready": True}]},
    {"phase": "Pending", "containerStatuses": [state(waiting={"reason": "ImagePullBackOff"})]},
    {"phase": "Running", "containerStatuses": [state(terminated={"exitCode": 1, "reason": "Error"})]},
    {"phase": "Running", "containerStatuses": [state(terminated={"exitCode": 1, "signal": 9})]},
    {"phase": "Running", "containerStatuses": [state(terminated={"exitCode": 3})]},
    {"phase": "Succeeded", "containerStatuses": [state(terminated={"exitCode": 0, "reason": "Completed"})]},
    {"phase": "Failed", "reason": "Evicted"}, {"phase": "Unknown", "reason": "NodeLost"},
    {"phase": "Pending", "initContainerStatuses": [{**state(running={}), "name": "i"}]},
    {"phase": "Pending", "initContainerStatuses": [{**state(waiting={"reason": "X"}), "name": "i"}]},
    {"phase": "Pending", "initContainerStatuses": [{**state(terminated={"exitCode": 2}), "name": "i"}]},
    {"phase": "Running", "podIP": "192.0.2.9", "podIPs": [{"ip": "192.0.2.9"}], "nominatedNodeName": "nn",
     "conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": [
         {**state(running={}), "ready": True, "lastState": {"terminated": {
             "exitCode": 1, "finishedAt": "2020-01-01T00:00:00Z"}}}]},
    {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]},
]  # fmt: skip
tables = []
for index, status in enumerate(states):
    made = {**sample("Pod").make(f"p{index}"), "spec": {**POD, "initContainers": [{"name": "i", "image": "i"}],
            "readinessGates": [{"conditionType": "example.com/g"}] if index == 12 else []}}  # fmt: skip
    tables += [post(PODS, made), patch(f"{PODS}/p{index}/status", {"status": status}),
               get(f"{PODS}/p{index}", accept=TABLE)]  # fmt: skip
CASES: Final = [
    Case("forms/resources", [get("/api"), get("/api/v1"), *[get(f"/apis/{group}") for group in GROUPS]]),
    Case("forms/groups", [get("/apis"), *[get(f"/apis/{g.partition('/')[0]}") for g in GROUPS]]),
    Case("forms/aggregated", [get("/api", accept=AGGREGATED), get("/apis", accept=AGGREGATED)]),
    Case("forms/pods", tables),
    Case(
        "forms/pod-list",
        [
            post(PODS, sample("Pod").make("a")),
            get(PODS, accept=TABLE),
            get(f"{PODS}?includeObject=Object", accept=TABLE),
            get(f"{PODS}/a?includeObject=None", accept=TABLE),
            get(f"{PODS}/a", accept=PARTIAL),
        ],
    ),
]
