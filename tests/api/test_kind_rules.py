"""The rules of the smaller kinds: what is refused, where, and why; defaults and fields that stay."""

from typing import Any

import pytest

from steersman.api import defaults, validate
from steersman.api.kinds import Kinds
from steersman.kernel.value import freeze

KINDS = Kinds.builtin()
POD = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"},
}


def judge(kind: str, part: str, written: Any) -> list[tuple[str, str]]:
    """(reason, field) of what is said of a part after it was filled."""
    found = KINDS.find(kind)
    filled = defaults.fill(found, part, freeze(written))
    causes = validate.part(found, part, filled)
    return [(cause.reason.removeprefix("FieldValue"), cause.field) for cause in causes]


def service(**port: Any) -> dict[str, Any]:
    return {"service": {"name": "s", "port": port}}


def ingress(backend: Any, **path: Any) -> dict[str, Any]:
    http = {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend, **path}]}
    return {"rules": [{"host": "a.example.com", "http": http}]}


P = "spec.rules[0].http.paths[0]"
INGRESS = [
    (ingress(service(number=80)), []),
    ({}, [("Invalid", "spec")]),
    ({"defaultBackend": service(name="http")}, []),
    (ingress({}), [("Invalid", f"{P}.backend")]),
    (ingress(service()), [("Required", f"{P}.backend")]),
    (ingress(service(number=80, name="http")), [("Invalid", f"{P}.backend")]),
    (ingress(service(number=70000)), [("Invalid", f"{P}.backend.service.port.number")]),
    (ingress(service(number=80), path="x"), [("Invalid", f"{P}.path")]),
    (ingress(service(number=80), path="/a//b/.."), [("Invalid", f"{P}.path")] * 2),
    (ingress(service(number=80), path="", pathType="ImplementationSpecific"), []),
    (ingress(service(number=80), pathType="Regex"), [("NotSupported", f"{P}.pathType")]),
    (ingress({"resource": {"kind": "", "name": "x"}}), [("Required", f"{P}.backend.resource.kind")]),
    ({"rules": [{"host": "10.0.0.1"}]}, [("Invalid", "spec.rules[0].host")]),
    ({"rules": [{"host": "*.example.com"}]}, []),
    ({"rules": [{"host": "a.*.com"}]}, [("Invalid", "spec.rules[0].host")]),
    ({**ingress(service(number=80)), "tls": [{"hosts": ["A"]}]}, [("Invalid", "spec.tls[0].hosts[0]")]),
    ({**ingress(service(number=80)), "ingressClassName": "A"}, [("Invalid", "spec.ingressClassName")]),
]


@pytest.mark.parametrize(("spec", "told"), INGRESS)
def test_ingress(spec, told):
    assert judge("Ingress", "spec", spec) == told


def policy(**rule: Any) -> dict[str, Any]:
    return {"podSelector": {}, "ingress": [rule]}


IN = "spec.ingress[0]"


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"podSelector": {}}, []),
        (policy(ports=[{"port": 80, "endPort": 90}]), []),
        (policy(ports=[{"port": 80, "endPort": 70}]), [("Invalid", f"{IN}.ports[0].endPort")]),
        (policy(ports=[{"port": "http", "endPort": 70}]), [("Invalid", f"{IN}.ports[0].endPort")]),
        (policy(ports=[{"endPort": 70}]), [("Invalid", f"{IN}.ports[0].endPort")]),
        (policy(ports=[{"protocol": "X"}]), [("NotSupported", f"{IN}.ports[0].protocol")]),
        (policy(**{"from": [{}]}), [("Required", f"{IN}.from[0]")]),
        (policy(**{"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}]}), []),
        (
            policy(**{"from": [{"ipBlock": {"cidr": "10.0.0.0/16", "except": ["11.0.0.0/24", "x"]}}]}),
            [("Invalid", f"{IN}.from[0].ipBlock.except[0]"), ("Invalid", f"{IN}.from[0].ipBlock.except[1]")],
        ),
        (
            policy(**{"from": [{"ipBlock": {"cidr": "10.0.0.0/16"}, "podSelector": {}}]}),
            [("Forbidden", f"{IN}.from[0]")],
        ),
        ({"podSelector": {}, "policyTypes": ["Both"]}, [("NotSupported", "spec.policyTypes[0]")]),
    ],
)
def test_network_policy(spec, told):
    assert judge("NetworkPolicy", "spec", spec) == told


def scaled(**fields: Any) -> dict[str, Any]:
    return {
        "maxReplicas": 3,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        **fields,
    }


def cpu(**target: Any) -> dict[str, Any]:
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


M = "spec.metrics[0]"


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (scaled(), []),
        (scaled(maxReplicas=0, minReplicas=None), [("Required", "spec.maxReplicas"), ("Invalid", "spec.maxReplicas")]),
        (scaled(minReplicas=5), [("Invalid", "spec.maxReplicas")]),
        (scaled(minReplicas=0), [("Invalid", "spec.minReplicas")]),
        (
            scaled(scaleTargetRef={"kind": "a/b", "apiVersion": "x/v1"}),
            [("Invalid", "spec.scaleTargetRef.kind"), ("Required", "spec.scaleTargetRef.name")],
        ),
        (scaled(metrics=[cpu(type="Utilization", averageUtilization=50)]), []),
        (scaled(metrics=[cpu(type="Utilization")]), [("Required", f"{M}.resource.target.averageUtilization")]),
        (
            scaled(metrics=[cpu(type="No", averageUtilization=0)]),
            [("Invalid", f"{M}.resource.target.type"), ("Invalid", f"{M}.resource.target.averageUtilization")],
        ),
        (scaled(metrics=[{"type": "Pods"}]), [("Required", f"{M}.pods")]),
        (
            scaled(metrics=[{"type": "Pods", "resource": cpu(type="Value", averageValue="1")["resource"]}]),
            [("Required", f"{M}.pods")],
        ),
        (scaled(behavior={"scaleUp": {"policies": []}}), [("Required", "spec.behavior.scaleUp.policies")]),
        (
            scaled(behavior={"scaleDown": {"stabilizationWindowSeconds": 3601}}),
            [("Invalid", "spec.behavior.scaleDown.stabilizationWindowSeconds")],
        ),
    ],
)
def test_autoscaler(spec, told):
    assert judge("HorizontalPodAutoscaler", "spec", {k: v for k, v in spec.items() if v is not None}) == told


def job(**fields: Any) -> dict[str, Any]:
    return {"template": POD, **fields}


def failing(**rule: Any) -> dict[str, Any]:
    return job(podFailurePolicy={"rules": [rule]})


R = "spec.podFailurePolicy.rules[0]"
S = "spec.successPolicy.rules"
INDEXED = {"completionMode": "Indexed", "completions": 4}


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (failing(action="FailJob", onExitCodes={"operator": "In", "values": [1, 2]}), []),
        (
            failing(action="FailJob", onExitCodes={"operator": "In", "values": [2, 1, 0]}),
            [("Invalid", f"{R}.onExitCodes.values[2]"), ("Invalid", f"{R}.onExitCodes.values")],
        ),
        (
            failing(action="FailJob", onExitCodes={"operator": "NotIn", "values": [], "containerName": "x"}),
            [("Invalid", f"{R}.onExitCodes.containerName"), ("Invalid", f"{R}.onExitCodes.values")],
        ),
        (failing(action="FailIndex", onPodConditions=[{"type": "Disrupted"}]), [("Invalid", f"{R}.action")]),
        (failing(action="Never"), [("NotSupported", f"{R}.action"), ("Invalid", R)]),
        (job(successPolicy={"rules": []}), [("Invalid", "spec.successPolicy")]),
        (job(**INDEXED, successPolicy={"rules": []}), [("Required", S)]),
        (job(**INDEXED, successPolicy={"rules": [{"succeededIndexes": "0,2-3", "succeededCount": 3}]}), []),
        (
            job(**INDEXED, successPolicy={"rules": [{"succeededIndexes": "0,2-4"}]}),
            [("Invalid", f"{S}[0].succeededIndexes")],
        ),
        (
            job(**INDEXED, successPolicy={"rules": [{"succeededIndexes": "0-1", "succeededCount": 3}]}),
            [("Invalid", f"{S}[0].succeededCount")],
        ),
        (job(**INDEXED, successPolicy={"rules": [{}]}), [("Required", f"{S}[0]")]),
        (
            job(**INDEXED, maxFailedIndexes=5),
            [("Required", "spec.backoffLimitPerIndex"), ("Invalid", "spec.maxFailedIndexes")],
        ),
        (job(managedBy="nobody"), [("Invalid", "spec.managedBy")]),
        (job(managedBy="example.com/me"), []),
    ],
)
def test_job_policies(spec, told):
    assert judge("Job", "spec", spec) == told


@pytest.mark.parametrize(
    ("kind", "part", "value", "told"),
    [
        ("PodDisruptionBudget", "spec", {"minAvailable": 1, "maxUnavailable": 1}, [("Invalid", "spec")]),
        ("PodDisruptionBudget", "spec", {"minAvailable": "150%"}, [("Invalid", "spec.minAvailable")]),
        (
            "PodDisruptionBudget",
            "spec",
            {"unhealthyPodEvictionPolicy": "x"},
            [("NotSupported", "spec.unhealthyPodEvictionPolicy")],
        ),
        ("PodDisruptionBudget", "status", {"currentHealthy": -1}, [("Invalid", "status.currentHealthy")]),
        ("IngressClass", "spec", {"controller": "example.com/x", "parameters": {"kind": "K", "name": "n"}}, []),
        ("IngressClass", "spec", {"controller": "x"}, [("Invalid", "spec.controller")]),
        (
            "IngressClass",
            "spec",
            {"controller": "a.b/c", "parameters": {"kind": "K", "name": "n", "scope": "Namespace"}},
            [("Required", "spec.parameters.namespace")],
        ),
        ("IPAddress", "spec", {}, [("Required", "spec.parentRef")]),
        ("ServiceCIDR", "spec", {"cidrs": ["10.0.0.0/16", "10.1.0.0/16"]}, [("Invalid", "spec.cidrs")]),
        ("ServiceCIDR", "spec", {"cidrs": ["10.0.0.0/16", "fd00::/64"]}, []),
        ("Endpoints", "subsets", [{"ports": [{"port": 80}]}], [("Required", "subsets[0]")]),
        (
            "Endpoints",
            "subsets",
            [{"addresses": [{"ip": "10.1.2.3-x"}, {"ip": "127.0.0.1"}]}],
            [("Invalid", f"subsets[0].addresses[{number}].ip") for number in (0, 0, 1)],
        ),
        (
            "Endpoints",
            "subsets",
            [{"notReadyAddresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80}, {"name": "b", "port": 0}]}],
            [("Required", "subsets[0].ports[0].name"), ("Invalid", "subsets[0].ports[1].port")],
        ),
        ("EndpointSlice", "addressType", "IPv5", [("NotSupported", "addressType")]),
        ("EndpointSlice", "ports", [{"name": "a"}, {"name": "a"}], [("Duplicate", "ports[1].name")]),
        (
            "Role",
            "rules",
            [{"verbs": []}],
            [("Required", "rules[0].verbs"), ("Required", "rules[0].apiGroups"), ("Required", "rules[0].resources")],
        ),
        ("Role", "rules", [{"verbs": ["get"], "nonResourceURLs": ["/x"]}], [("Invalid", "rules[0].nonResourceURLs")]),
        ("ClusterRole", "rules", [{"verbs": ["get"], "nonResourceURLs": ["/x"]}], []),
        ("ClusterRole", "aggregationRule", {}, [("Required", "aggregationRule.clusterRoleSelectors")]),
        ("RoleBinding", "subjects", [{"kind": "User", "name": "a"}, {"kind": "ServiceAccount", "name": "b"}], []),
        (
            "RoleBinding",
            "subjects",
            [{"kind": "Robot", "name": ""}],
            [("Required", "subjects[0].name"), ("NotSupported", "subjects[0].kind")],
        ),
        (
            "ClusterRoleBinding",
            "subjects",
            [{"kind": "ServiceAccount", "name": "b"}],
            [("Required", "subjects[0].namespace")],
        ),
        ("StorageClass", "provisioner", None, [("Required", "provisioner")]),
        ("StorageClass", "volumeBindingMode", "Later", [("NotSupported", "volumeBindingMode")]),
        ("StorageClass", "reclaimPolicy", "Recycle", [("NotSupported", "reclaimPolicy")]),
        (
            "StorageClass",
            "allowedTopologies",
            [{"matchLabelExpressions": [{"key": "zone", "values": []}]}],
            [("Required", "allowedTopologies[0].matchLabelExpressions[0].values")],
        ),
        ("VolumeAttachment", "spec", {"attacher": "a", "nodeName": "n", "source": {}}, [("Required", "spec.source")]),
        ("CSIDriver", "spec", {}, []),
        ("CSIDriver", "spec", {"fsGroupPolicy": "x"}, [("NotSupported", "spec.fsGroupPolicy")]),
        ("CSINode", "spec", {"drivers": [{"name": "d", "nodeID": ""}]}, [("Required", "spec.drivers[0].nodeID")]),
        ("RuntimeClass", "handler", "A", [("Invalid", "handler")]),
        ("PriorityClass", "preemptionPolicy", "x", [("NotSupported", "preemptionPolicy")]),
        (
            "LimitRange",
            "spec",
            {"limits": [{"type": "Pod", "default": {"cpu": "1"}}]},
            [("Forbidden", "spec.limits[0].default")],
        ),
        (
            "LimitRange",
            "spec",
            {"limits": [{"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}}]},
            [
                ("Invalid", "spec.limits[0].min[cpu]"),
                ("Invalid", "spec.limits[0].defaultRequest[cpu]"),
                ("Invalid", "spec.limits[0].default[cpu]"),
            ],
        ),
        (
            "LimitRange",
            "spec",
            {"limits": [{"type": "PersistentVolumeClaim"}]},
            [("Required", "spec.limits[0].limits")],
        ),
        (
            "ResourceQuota",
            "spec",
            {"hard": {"pods": "1.5", "bananas": "1"}},
            [("Invalid", "spec.hard[pods]"), ("Invalid", "spec.hard[bananas]")],
        ),
        ("ResourceQuota", "spec", {"scopes": ["Terminating", "NotTerminating"]}, [("Invalid", "spec.scopes")]),
        (
            "ResourceQuota",
            "spec",
            {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In"}]}},
            [("Required", "spec.scopeSelector.matchExpressions.values")],
        ),
    ],
)
def test_smaller_kinds(kind, part, value, told):
    assert judge(kind, part, value) == told


def test_what_depends_on_two_parts_or_the_name():
    def whole(kind: str, name: str, parts: Any) -> list[str]:
        return [cause.field for cause in validate.whole(KINDS.find(kind), name, freeze(parts))]

    def slice_of(*addresses: str, kind: str = "IPv4") -> list[str]:
        return whole("EndpointSlice", "s", {"addressType": kind, "endpoints": [{"addresses": list(addresses)}]})

    assert slice_of("10.0.0.1") == []
    assert slice_of() == ["endpoints[0].addresses"]
    assert slice_of("fd00::1") == ["endpoints[0].addresses"]
    assert slice_of("127.0.0.1", "169.254.1.1") == ["endpoints[0].addresses[0]", "endpoints[0].addresses[1]"]
    assert slice_of("example.com", kind="FQDN") == []
    assert slice_of("example", kind="FQDN") == ["endpoints[0].addresses[0]"]
    assert whole("v1/Event", "e", {}) == []
    assert whole("v1/Event", "e", {"eventTime": "2026-01-01T00:00:00.000000Z", "message": "x" * 1025}) == [
        *("reportingComponent", "reportingComponent", "reportingComponent"),
        *("reportingInstance", "action", "reason", "message"),
    ]
    assert whole("PriorityClass", "mine", {"value": 1_000_000_000}) == []
    assert whole("PriorityClass", "mine", {"value": 1_000_000_001}) == ["value"]
    assert whole("PriorityClass", "system-mine", {"value": 1}) == ["metadata.name"]
    assert whole("PriorityClass", "system-node-critical", {"value": 2_000_001_000}) == []


@pytest.mark.parametrize(
    ("kind", "part", "old", "new", "told"),
    [
        ("IngressClass", "spec", {"controller": "a/b"}, {"controller": "a/c"}, ["spec.controller"]),
        ("ServiceCIDR", "spec", {"cidrs": ["10.0.0.0/16"]}, {"cidrs": ["10.0.0.0/16", "fd00::/64"]}, []),
        ("ServiceCIDR", "spec", {"cidrs": ["10.0.0.0/16"]}, {"cidrs": ["10.1.0.0/16"]}, ["spec.cidrs[0]"]),
        ("EndpointSlice", "addressType", "IPv4", "IPv6", ["addressType"]),
        ("StorageClass", "reclaimPolicy", "Delete", "Retain", ["reclaimPolicy"]),
        ("PriorityClass", "value", 1, 2, ["value"]),
        ("RuntimeClass", "handler", "a", "b", ["handler"]),
        ("VolumeAttachment", "spec", {"attacher": "a"}, {"attacher": "b"}, ["spec"]),
        ("CSIDriver", "spec", {"attachRequired": True}, {"attachRequired": False}, ["spec.attachedRequired"]),
        (
            "CSINode",
            "spec",
            {"drivers": [{"name": "d", "nodeID": "1"}]},
            {"drivers": [{"name": "d", "nodeID": "2"}]},
            ["spec.drivers"],
        ),
        ("ResourceQuota", "spec", {"scopes": ["BestEffort"]}, {"scopes": []}, ["spec.scopes"]),
        ("Job", "spec", {"managedBy": "a/b"}, {"managedBy": "a/c"}, ["spec.managedBy"]),
    ],
)
def test_what_stays(kind, part, old, new, told):
    causes = validate.change(KINDS.find(kind), part, freeze(old), freeze(new))
    assert [cause.field for cause in causes] == told


@pytest.mark.parametrize(
    ("zone", "wrong"),
    [("Europe/Berlin", 0), ("Etc/GMT+5", 0), ("", 1), ("Local", 1), ("../x", 1), ("-a", 1), ("a b", 1)],
)
def test_time_zones(zone, wrong):
    spec = {"schedule": "@daily", "timeZone": zone, "jobTemplate": {"spec": {"template": POD}}}
    assert judge("CronJob", "spec", spec) == [("Invalid", "spec.timeZone")] * wrong


def test_defaults_of_an_autoscaler_and_a_limit():
    kind = KINDS.find("HorizontalPodAutoscaler")
    spec = defaults.fill(
        kind,
        "spec",
        freeze(scaled(behavior={"scaleDown": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 5}]}})),
    )
    assert spec["metrics"][0]["resource"]["target"] == {"type": "Utilization", "averageUtilization": 80}
    assert spec["behavior"]["scaleUp"]["policies"][0] == {"type": "Pods", "value": 4, "periodSeconds": 15}
    assert spec["behavior"]["scaleDown"]["policies"] == [{"type": "Pods", "value": 1, "periodSeconds": 5}]
    assert spec["behavior"]["scaleDown"]["selectPolicy"] == "Max"
    limits = {"limits": [{"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "1", "memory": "1Gi"}}]}
    filled = defaults.fill(KINDS.find("LimitRange"), "spec", freeze(limits))
    assert filled["limits"][0]["default"] == {"cpu": "2"}
    assert filled["limits"][0]["defaultRequest"] == {"cpu": "2", "memory": "1Gi"}
