"""A small valid object of every kind, a change that every later version accepts, and a status where there is one."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

Json = Any


class Sample(NamedTuple):
    """`body` lacks apiVersion, kind and metadata. `change` is (dotted path, value)."""

    api: str
    kind: str
    plural: str
    body: dict[str, Json]
    change: tuple[str, Json]
    status: Json = None
    namespaced: bool = True
    scaled: bool = False

    def collection(self) -> str:
        """The path of its collection, in the sequence's namespace."""
        root = f"/apis/{self.api}" if "/" in self.api else f"/api/{self.api}"
        return f"{root}/namespaces/$(ns)/{self.plural}" if self.namespaced else f"{root}/{self.plural}"

    def make(self, name: str, **meta: Json) -> dict[str, Json]:
        """An object."""
        return {"apiVersion": self.api, "kind": self.kind, "metadata": {"name": name, **meta}, **self.body}


POD: Final = {"containers": [{"name": "c", "image": "nginx:1"}]}
LABELS: Final = {"app": "a"}
TEMPLATE: Final = {"metadata": {"labels": LABELS}, "spec": POD}
SELECTOR: Final = {"matchLabels": LABELS}
ONCE: Final = {"metadata": {"labels": LABELS}, "spec": {**POD, "restartPolicy": "Never"}}
CLAIM: Final = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
ANY_RULE: Final = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
WEBHOOK: Final = {
    "name": "a.example.com",
    "clientConfig": {"url": "https://127.0.0.1:1/x"},
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "rules": [{"apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["none"], "operations": ["CREATE"]}],
}
CSR: Final = (
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlISE1HNENBUUF3RERFS01BZ0dBMVVFQXd3Qll6QlpNQk1HQnlx"
    "R1NNNDlBZ0VHQ0NxR1NNNDlBd0VIQTBJQQpCR2haWENyTTJhTFl2cHRiekxkWnZGcHVqVmlHd244QVJmRzVhRlU0T3J5cWxoUjVY"
    "blhBbXErOUlQVFc1MUd4CklmUC9xN3VEWnRJYnZmV0wwSWFvMjdDZ0FEQUtCZ2dxaGtqT1BRUURBZ05KQURCR0FpRUFvblJEZk9Q"
    "czY0OGoKMmoyT3RGc0dxcnJkOEVNVmh1d3REY1cxU2JKSmt0QUNJUUM5ekNKMTdCa3pTajN4aU9hODZUQ0NQQklGcHRsUgpObkdp"
    "K1JPS2s3dzJ3Zz09Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo="
)
READY: Final = {"type": "Ready", "status": "True"}

SAMPLES: Final = (
    Sample("v1", "ConfigMap", "configmaps", {"data": {"k": "v"}}, ("data.k", "w")),
    Sample("v1", "Secret", "secrets", {"stringData": {"k": "v"}}, ("data", {"k": "dw=="})),
    Sample("v1", "Pod", "pods", {"spec": POD}, ("spec.activeDeadlineSeconds", 60), {"phase": "Running"}),
    Sample(
        "v1",
        "Service",
        "services",
        {"spec": {"selector": LABELS, "ports": [{"port": 80}]}},
        ("spec.sessionAffinity", "ClientIP"),
        {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}},
    ),
    Sample("v1", "ServiceAccount", "serviceaccounts", {}, ("automountServiceAccountToken", False)),
    Sample(
        "v1",
        "Endpoints",
        "endpoints",
        {"subsets": [{"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 80}]}]},
        ("subsets.0.ports.0.port", 81),
    ),
    Sample(
        "v1",
        "Event",
        "events",
        {
            "involvedObject": {"kind": "Pod", "namespace": "$(ns)", "name": "p"},
            "reason": "Made",
            "message": "it was",
            "type": "Normal",
        },
        ("count", 2),
    ),
    Sample(
        "v1",
        "LimitRange",
        "limitranges",
        {"spec": {"limits": [{"type": "Container", "default": {"cpu": "100m"}}]}},
        ("spec.limits.0.default.cpu", "200m"),
    ),
    Sample(
        "v1",
        "ResourceQuota",
        "resourcequotas",
        {"spec": {"hard": {"configmaps": "9"}}},
        ("spec.hard.configmaps", "10"),
        {"hard": {"configmaps": "9"}, "used": {"configmaps": "0"}},
    ),
    Sample(
        "v1",
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        {"spec": CLAIM},
        ("metadata.annotations.a", "b"),
        {"phase": "Bound"},
    ),
    Sample("v1", "PodTemplate", "podtemplates", {"template": TEMPLATE}, ("template.spec.hostNetwork", True)),
    Sample(
        "v1",
        "ReplicationController",
        "replicationcontrollers",
        {"spec": {"selector": LABELS, "template": TEMPLATE}},
        ("spec.replicas", 2),
        {"replicas": 1},
        scaled=True,
    ),
    Sample("v1", "Namespace", "namespaces", {}, ("metadata.annotations.a", "b"), {"phase": "Active"}, False),
    Sample(
        "v1",
        "Node",
        "nodes",
        {},
        ("spec.unschedulable", True),
        {"conditions": [READY], "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
        False,
    ),
    Sample(
        "v1",
        "PersistentVolume",
        "persistentvolumes",
        {"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}},
        ("spec.persistentVolumeReclaimPolicy", "Delete"),
        {"phase": "Available"},
        False,
    ),
    Sample(
        "apps/v1",
        "Deployment",
        "deployments",
        {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
        ("spec.replicas", 2),
        {"replicas": 1, "observedGeneration": 1},
        scaled=True,
    ),
    Sample(
        "apps/v1",
        "ReplicaSet",
        "replicasets",
        {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
        ("spec.replicas", 2),
        {"replicas": 1},
        scaled=True,
    ),
    Sample(
        "apps/v1",
        "StatefulSet",
        "statefulsets",
        {"spec": {"selector": SELECTOR, "template": TEMPLATE, "serviceName": "s"}},
        ("spec.replicas", 2),
        {"replicas": 1},
        scaled=True,
    ),
    Sample(
        "apps/v1",
        "DaemonSet",
        "daemonsets",
        {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
        ("spec.minReadySeconds", 5),
        {"currentNumberScheduled": 1, "desiredNumberScheduled": 1, "numberMisscheduled": 0, "numberReady": 1},
    ),
    Sample("apps/v1", "ControllerRevision", "controllerrevisions", {"revision": 1, "data": {"a": 1}}, ("revision", 2)),
    Sample("batch/v1", "Job", "jobs", {"spec": {"template": ONCE}}, ("spec.parallelism", 2), {"active": 1}),
    Sample(
        "batch/v1",
        "CronJob",
        "cronjobs",
        {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": ONCE}}}},
        ("spec.suspend", True),
        {"active": [{"name": "j", "kind": "Job"}]},
    ),
    Sample(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        {"spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}}},
        ("spec.maxReplicas", 4),
        {"currentReplicas": 1, "desiredReplicas": 2},
    ),
    Sample(
        "policy/v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        {"spec": {"minAvailable": 1, "selector": SELECTOR}},
        ("spec.minAvailable", 2),
        {"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2},
    ),
    Sample(
        "networking.k8s.io/v1",
        "Ingress",
        "ingresses",
        {"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}},
        ("spec.ingressClassName", "c"),
        {"loadBalancer": {"ingress": [{"hostname": "h.example.com"}]}},
    ),
    Sample(
        "networking.k8s.io/v1",
        "IngressClass",
        "ingressclasses",
        {"spec": {"controller": "example.com/c"}},
        ("metadata.annotations.a", "b"),
        None,
        False,
    ),
    Sample(
        "networking.k8s.io/v1",
        "NetworkPolicy",
        "networkpolicies",
        {"spec": {"podSelector": SELECTOR}},
        ("spec.policyTypes", ["Ingress", "Egress"]),
    ),
    Sample(
        "networking.k8s.io/v1",
        "ServiceCIDR",
        "servicecidrs",
        {"spec": {"cidrs": ["198.51.100.0/24"]}},
        ("metadata.annotations.a", "b"),
        None,
        False,
    ),
    Sample(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        "endpointslices",
        {"addressType": "IPv4", "endpoints": [{"addresses": ["192.0.2.1"]}], "ports": [{"port": 80}]},
        ("ports.0.port", 81),
    ),
    Sample(
        "coordination.k8s.io/v1",
        "Lease",
        "leases",
        {"spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": "2020-01-01T00:00:00.000000Z"}},
        ("spec.holderIdentity", "b"),
    ),
    Sample("rbac.authorization.k8s.io/v1", "Role", "roles", {"rules": ANY_RULE}, ("rules.0.verbs", ["list"])),
    Sample(
        "rbac.authorization.k8s.io/v1",
        "ClusterRole",
        "clusterroles",
        {"rules": ANY_RULE},
        ("rules.0.verbs", ["list"]),
        None,
        False,
    ),
    Sample(
        "rbac.authorization.k8s.io/v1",
        "RoleBinding",
        "rolebindings",
        {
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
            "subjects": [{"kind": "User", "name": "u"}],
        },
        ("subjects.0.name", "w"),
    ),
    Sample(
        "rbac.authorization.k8s.io/v1",
        "ClusterRoleBinding",
        "clusterrolebindings",
        {
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
            "subjects": [{"kind": "ServiceAccount", "name": "u", "namespace": "n"}],
        },
        ("subjects.0.name", "w"),
        None,
        False,
    ),
    Sample(
        "storage.k8s.io/v1",
        "StorageClass",
        "storageclasses",
        {"provisioner": "example.com/p"},
        ("allowVolumeExpansion", True),
        None,
        False,
    ),
    Sample(
        "storage.k8s.io/v1",
        "CSIDriver",
        "csidrivers",
        {"spec": {"attachRequired": False}},
        ("spec.requiresRepublish", True),
        None,
        False,
    ),
    Sample(
        "storage.k8s.io/v1",
        "CSINode",
        "csinodes",
        {"spec": {"drivers": [{"name": "d.example.com", "nodeID": "n"}]}},
        ("metadata.annotations.a", "b"),
        None,
        False,
    ),
    Sample(
        "storage.k8s.io/v1",
        "CSIStorageCapacity",
        "csistoragecapacities",
        {"storageClassName": "c"},
        ("capacity", "1Gi"),
    ),
    Sample(
        "storage.k8s.io/v1",
        "VolumeAttachment",
        "volumeattachments",
        {"spec": {"attacher": "a.example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}}},
        ("metadata.annotations.a", "b"),
        {"attached": True},
        False,
    ),
    Sample(
        "storage.k8s.io/v1",
        "VolumeAttributesClass",
        "volumeattributesclasses",
        {"driverName": "d.example.com", "parameters": {"a": "b"}},
        ("metadata.annotations.a", "b"),
        None,
        False,
    ),
    Sample(
        "node.k8s.io/v1",
        "RuntimeClass",
        "runtimeclasses",
        {"handler": "h"},
        ("overhead", {"podFixed": {"cpu": "10m"}}),
        None,
        False,
    ),
    Sample(
        "scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", {"value": 10}, ("description", "d"), None, False
    ),
    Sample(
        "certificates.k8s.io/v1",
        "CertificateSigningRequest",
        "certificatesigningrequests",
        {"spec": {"request": CSR, "signerName": "example.com/s", "usages": ["client auth"]}},
        ("metadata.annotations.a", "b"),
        None,
        False,
    ),
    Sample(
        "resource.k8s.io/v1",
        "DeviceClass",
        "deviceclasses",
        {"spec": {"selectors": [{"cel": {"expression": "device.driver == 'd.example.com'"}}]}},
        ("metadata.annotations.a", "b"),
        None,
        False,
    ),
    Sample(
        "resource.k8s.io/v1",
        "ResourceClaim",
        "resourceclaims",
        {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}},
        ("metadata.annotations.a", "b"),
    ),
    Sample(
        "resource.k8s.io/v1",
        "ResourceClaimTemplate",
        "resourceclaimtemplates",
        {"spec": {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}}},
        ("metadata.annotations.a", "b"),
    ),
    Sample(
        "resource.k8s.io/v1",
        "ResourceSlice",
        "resourceslices",
        {
            "spec": {
                "driver": "d.example.com",
                "nodeName": "n",
                "devices": [{"name": "x"}],
                "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            }
        },
        ("metadata.annotations.a", "b"),
        None,
        False,
    ),
    Sample(
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        {"webhooks": [WEBHOOK]},
        ("webhooks.0.timeoutSeconds", 5),
        None,
        False,
    ),
    Sample(
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        {"webhooks": [WEBHOOK]},
        ("webhooks.0.timeoutSeconds", 5),
        None,
        False,
    ),
    Sample(
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
        {
            "spec": {
                "matchConstraints": {"resourceRules": WEBHOOK["rules"]},
                "validations": [{"expression": "true"}],
            }
        },
        ("spec.failurePolicy", "Ignore"),
        {"observedGeneration": 1},
        False,
    ),
    Sample(
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
        {"spec": {"policyName": "none", "validationActions": ["Deny"]}},
        ("spec.validationActions", ["Warn"]),
        None,
        False,
    ),
)


def sample(kind: str) -> Sample:
    """The sample of a kind."""
    return next(found for found in SAMPLES if found.kind == kind)
