"""Rows of the kinds people look at less often, and every row over filled and over empty objects."""

import json
import zlib
from pathlib import Path

import pytest

from steersman.api.kinds import Kinds
from steersman.kernel.value import freeze
from steersman.serve.served import why_unserved
from steersman.serve.table.columns import COLUMNS, PLAIN

NOW = 1_790_000_000_000_000
BORN = {"name": "x", "creationTimestamp": "2026-09-21T14:13:20Z"}
VECTORS = json.loads(zlib.decompress((Path(__file__).parent.parent / "data/protobuf.json.z").read_bytes()))
FILLED = {gvk: value for gvk, _, value in VECTORS}


def cells(group, kind, **obj):
    meta = {**BORN, **obj.pop("metadata", {})}
    return COLUMNS[group, kind].row(freeze({"metadata": meta, **obj}), NOW)


def without_nulls(value):
    """As intake leaves an object."""
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("kind", [k for k in Kinds.builtin().all() if why_unserved(k) is None], ids=str)
def test_every_row_has_a_cell_for_each_column(kind):
    columns = COLUMNS.get(kind.gk, PLAIN)
    for value in (FILLED.get(f"{kind.api_version}/{kind.kind}", {}), {"metadata": BORN}):
        kept = without_nulls(value)
        row = columns.row(freeze({**kept, "metadata": {**kept.get("metadata", {}), **BORN}}), NOW)
        assert len(row) == len(columns.definitions())
        json.dumps(row)


def test_networking():
    tls = [{"hosts": ["a"]}]
    rules = [{"host": host} for host in "abcde"]
    ready = {"loadBalancer": {"ingress": [{"hostname": "z"}, {"ip": "10.0.0.1"}]}}
    row = cells("networking.k8s.io", "Ingress", spec={"rules": rules, "tls": tls}, status=ready)
    assert row[:5] == ["x", "<none>", "a,b,c + 2 more...", "10.0.0.1,z", "80, 443"]
    assert cells("networking.k8s.io", "Ingress", spec={"ingressClassName": "n"})[:5] == ["x", "n", "*", "", "80"]
    marked = {"annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}}
    spec = {"controller": "c", "parameters": {"apiGroup": "g", "kind": "K", "name": "n"}}
    assert cells("networking.k8s.io", "IngressClass", metadata=marked, spec=spec)[:3] == ["x (default)", "c", "K.g/n"]
    ports = [{"port": 80}, {"name": "q"}, {}, {"port": 1}]
    ends = [{"addresses": ["10.0.0.1", "10.0.0.2"]}]
    row = cells("discovery.k8s.io", "EndpointSlice", addressType="IPv4", ports=ports, endpoints=ends)
    assert row[1:4] == ["IPv4", "80,q,* + 1 more...", "10.0.0.1,10.0.0.2"]
    assert cells("discovery.k8s.io", "EndpointSlice")[2:4] == ["<unset>", "<unset>"]
    subsets = [{"addresses": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}], "ports": [{"port": 80}, {"port": 81}]}]
    assert cells("", "Endpoints", subsets=subsets)[1] == "10.0.0.1:80,[fd00::1]:80,10.0.0.1:81 + 1 more..."
    assert cells("", "Endpoints")[1] == "<none>"


def test_autoscaler():
    target = {"type": "Utilization", "averageUtilization": 80}
    metrics = [
        {"type": "Resource", "resource": {"name": "cpu", "target": target}},
        {"type": "Pods", "pods": {"metric": {"name": "p"}, "target": {"averageValue": "10"}}},
        {"type": "Object", "object": {"target": {"value": "5"}}},
    ]
    spec = {
        "scaleTargetRef": {"kind": "Deployment", "name": "web"},
        "maxReplicas": 5,
        "minReplicas": 2,
        "metrics": metrics,
    }
    current = [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 33}}}]
    status = {"currentReplicas": 3, "currentMetrics": current}
    row = cells("autoscaling", "HorizontalPodAutoscaler", spec=spec, status=status)
    assert row[:6] == ["x", "Deployment/web", "cpu: 33%/80%, <unknown>/10 + 1 more...", "2", 5, 3]


@pytest.mark.parametrize(
    ("gk", "obj", "shown"),
    [
        (
            ("policy", "PodDisruptionBudget"),
            {"spec": {"minAvailable": "50%"}, "status": {"disruptionsAllowed": 1}},
            ["50%", "N/A", 1],
        ),
        (("policy", "PodDisruptionBudget"), {"spec": {"maxUnavailable": 0}}, ["N/A", "0", 0]),
        (
            ("rbac.authorization.k8s.io", "RoleBinding"),
            {
                "roleRef": {"kind": "Role", "name": "r"},
                "subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "namespace": "n", "name": "s"}],
            },
            ["Role/r", "0s", "u", "", "n/s"],
        ),
        (
            ("certificates.k8s.io", "CertificateSigningRequest"),
            {
                "spec": {"signerName": "s", "username": "u", "expirationSeconds": 3600},
                "status": {"certificate": "x", "conditions": [{"type": "Approved"}]},
            },
            ["0s", "s", "u", "60m", "Approved,Issued"],
        ),
        (
            ("storage.k8s.io", "StorageClass"),
            {"provisioner": "p", "allowVolumeExpansion": True},
            ["p", "Delete", "Immediate", True],
        ),
        (("scheduling.k8s.io", "PriorityClass"), {"value": 7, "preemptionPolicy": "Never"}, [7, False, "0s", "Never"]),
        (
            ("", "ResourceQuota"),
            {"status": {"hard": {"limits.cpu": "2", "pods": "5"}, "used": {"pods": "1"}}},
            ["pods: 1/5", "limits.cpu: 0/2"],
        ),
        (
            ("apps", "ControllerRevision"),
            {
                "metadata": {
                    "ownerReferences": [
                        {"controller": True, "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "w"}
                    ]
                },
                "revision": 3,
            },
            ["statefulset.apps/w", 3],
        ),
        (
            ("resource.k8s.io", "ResourceClaim"),
            {"status": {"allocation": {"devices": {}}, "reservedFor": [{}]}},
            ["allocated,reserved"],
        ),
        (
            ("networking.k8s.io", "IPAddress"),
            {"spec": {"parentRef": {"resource": "services", "namespace": "n", "name": "s"}}},
            ["services/n/s"],
        ),
        (
            ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
            {
                "spec": {
                    "type": "Limited",
                    "limited": {"nominalConcurrencyShares": 0, "limitResponse": {"type": "Reject"}},
                }
            },
            ["Limited", 0, "<none>", "<none>", "<none>"],
        ),
    ],
)
def test_other_kinds(gk, obj, shown):
    assert cells(*gk, **obj)[1 : 1 + len(shown)] == shown
