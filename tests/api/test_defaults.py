"""Defaults: the tables of kube-apiserver, the schemas of custom kinds, and the laws of filling."""

from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steersman.api import defaults, intake, pod_defaults
from steersman.api.kinds import Kinds
from steersman.kernel.value import Frozen, FrozenList, freeze, thaw
from tests.api.values import value

KINDS = Kinds.builtin()
POD = KINDS.find("pod")
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "nginx:1"}]}}
DIGEST = "@sha256:" + "0f" * 32

FILLED_CONTAINER = {
    "name": "c",
    "image": "nginx:1",
    "imagePullPolicy": "IfNotPresent",
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
NODE_INFO = (
    "architecture", "bootID", "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion", "kubeletVersion",
    "machineID", "operatingSystem", "osImage", "systemUUID",
)  # fmt: skip
FILLED_TEMPLATE = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {
        "containers": [FILLED_CONTAINER],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    },
}
RETAIN = {"whenDeleted": "Retain", "whenScaled": "Retain"}

# kind, part, as written, as stored
TABLE: list[tuple[str, str, Any, Any]] = [
    (
        "pod",
        "spec",
        TEMPLATE["spec"],
        {
            **FILLED_TEMPLATE["spec"],
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
            "priority": 0,
        },
    ),
    (
        "deployment",
        "spec",
        {"template": TEMPLATE},
        {
            "progressDeadlineSeconds": 600,
            "replicas": 1,
            "revisionHistoryLimit": 10,
            "strategy": {
                "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
                "type": "RollingUpdate",
            },
            "template": FILLED_TEMPLATE,
        },
    ),
    ("replicaset", "spec", {"template": TEMPLATE}, {"replicas": 1, "template": FILLED_TEMPLATE}),
    ("replicaset", "spec", {"replicas": 0}, {"replicas": 0, "template": {"metadata": {}}}),
    (
        "statefulset",
        "spec",
        {"volumeClaimTemplates": [{"metadata": {"name": "d"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]},
        {
            "persistentVolumeClaimRetentionPolicy": RETAIN,
            "podManagementPolicy": "OrderedReady",
            "replicas": 1,
            "revisionHistoryLimit": 10,
            "serviceName": "",
            "updateStrategy": {"rollingUpdate": {"partition": 0}, "type": "RollingUpdate"},
            "volumeClaimTemplates": [
                {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "metadata": {"name": "d"},
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {}, "volumeMode": "Filesystem"},
                    "status": {"phase": "Pending"},
                }
            ],
        },
    ),
    (
        "daemonset",
        "spec",
        {},
        {
            "revisionHistoryLimit": 10,
            "updateStrategy": {
                "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
                "type": "RollingUpdate",
            },
        },
    ),
    (
        "daemonset",
        "spec",
        {"updateStrategy": {"type": "OnDelete"}},
        {"revisionHistoryLimit": 10, "updateStrategy": {"type": "OnDelete"}},
    ),
    (
        "job",
        "spec",
        {},
        {
            "backoffLimit": 6,
            "completionMode": "NonIndexed",
            "completions": 1,
            "manualSelector": False,
            "parallelism": 1,
            "podReplacementPolicy": "TerminatingOrFailed",
            "suspend": False,
        },
    ),
    (
        "cronjob",
        "spec",
        {"schedule": "@daily", "jobTemplate": {"spec": {"template": TEMPLATE}}},
        {
            "concurrencyPolicy": "Allow",
            "failedJobsHistoryLimit": 1,
            "jobTemplate": {"metadata": {}, "spec": {"template": FILLED_TEMPLATE}},
            "schedule": "@daily",
            "successfulJobsHistoryLimit": 3,
            "suspend": False,
        },
    ),
    (
        "service",
        "spec",
        {"ports": [{"port": 80}]},
        {
            "internalTrafficPolicy": "Cluster",
            "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
            "sessionAffinity": "None",
            "type": "ClusterIP",
        },
    ),
    (
        "service",
        "spec",
        {"type": "LoadBalancer", "sessionAffinity": "ClientIP"},
        {
            "allocateLoadBalancerNodePorts": True,
            "externalTrafficPolicy": "Cluster",
            "internalTrafficPolicy": "Cluster",
            "sessionAffinity": "ClientIP",
            "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}},
            "type": "LoadBalancer",
        },
    ),
    ("pvc", "spec", {"accessModes": []}, {"accessModes": [], "resources": {}, "volumeMode": "Filesystem"}),
    ("namespace", "status", {}, {"phase": "Active"}),
    ("secret", "type", "", "Opaque"),
    (
        "node",
        "status",
        {"capacity": {"cpu": "4"}, "nodeInfo": {}, "daemonEndpoints": {}},
        {
            "allocatable": {"cpu": "4"},
            "capacity": {"cpu": "4"},
            "nodeInfo": dict.fromkeys(NODE_INFO, ""),
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
        },
    ),
    ("pod", "status", {"podIP": "10.0.0.1"}, {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}),
    ("lease", "spec", {"holderIdentity": "x"}, {"holderIdentity": "x"}),
    ("node", "spec", {"unschedulable": True}, {"unschedulable": True}),
]


@pytest.mark.parametrize(("kind", "part", "written", "stored"), TABLE)
def test_what_is_stored(kind: str, part: str, written: Any, stored: Any) -> None:
    assert thaw(defaults.fill(KINDS.find(kind), part, freeze(written))) == stored


def pod_spec(container: dict[str, Any], **spec: Any) -> dict[str, Any]:
    written = {"containers": [{"name": "c", "image": "i", **container}], **spec}
    return thaw(defaults.fill(POD, "spec", freeze(written)))  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.27", "IfNotPresent"),
        ("registry.example:5000/team/app", "Always"),
        ("registry.example:5000/team/app:v1", "IfNotPresent"),
        ("nginx" + DIGEST, "IfNotPresent"),
        ("nginx:latest" + DIGEST, "Always"),
        ("", "IfNotPresent"),
        ("NGINX", "IfNotPresent"),
    ],
)
def test_pull_policy_goes_by_the_tag(image: str, policy: str) -> None:
    assert pod_spec({"image": image})["containers"][0]["imagePullPolicy"] == policy


def test_a_choice_of_the_writer_is_kept() -> None:
    spec = pod_spec({"imagePullPolicy": "Never"}, enableServiceLinks=False, terminationGracePeriodSeconds=0, priority=5)
    assert spec["containers"][0]["imagePullPolicy"] == "Never"
    assert (spec["enableServiceLinks"], spec["terminationGracePeriodSeconds"], spec["priority"]) == (
        False,
        0,
        5,
    )


def test_containers_in_full() -> None:
    spec = pod_spec(
        {
            "ports": [{"containerPort": 80}],
            "env": [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
            "readinessProbe": {"httpGet": {"port": 80}},
            "livenessProbe": {"grpc": {"port": 81}, "timeoutSeconds": 5},
            "lifecycle": {"preStop": {"httpGet": {"port": 80}}},
            "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}},
        },
        hostNetwork=True,
    )
    container = spec["containers"][0]
    numbers = {"failureThreshold": 3, "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1}
    assert container["ports"] == [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]
    assert container["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"
    assert container["readinessProbe"] == {"httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}, **numbers}
    assert container["livenessProbe"] == {"grpc": {"port": 81, "service": ""}, **numbers, "timeoutSeconds": 5}
    assert container["lifecycle"]["preStop"]["httpGet"] == {"path": "/", "port": 80, "scheme": "HTTP"}
    assert container["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ({}, {"emptyDir": {}}),
        ({"configMap": {"name": "c"}}, {"configMap": {"defaultMode": 420, "name": "c"}}),
        ({"secret": {"defaultMode": 256}}, {"secret": {"defaultMode": 256}}),
        ({"hostPath": {"path": "/x"}}, {"hostPath": {"path": "/x", "type": ""}}),
        (
            {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            {
                "projected": {
                    "defaultMode": 420,
                    "sources": [{"serviceAccountToken": {"expirationSeconds": 3600, "path": "t"}}],
                }
            },
        ),
    ],
)
def test_volumes(written: dict[str, Any], stored: dict[str, Any]) -> None:
    assert pod_spec({}, volumes=[{"name": "v", **written}])["volumes"] == [{"name": "v", **stored}]


def test_requests_come_from_limits_in_pods_only() -> None:
    limited = {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}]}
    template = defaults.fill(KINDS.find("deploy"), "spec", freeze({"template": {"spec": limited}}))
    assert "requests" not in template.template.spec.containers[0].resources
    assert "enableServiceLinks" not in template.template.spec


def test_a_pods_own_resources_are_completed_from_its_containers() -> None:
    spec = pod_spec({"resources": {"requests": {"cpu": "250m"}}}, resources={"limits": {"cpu": "2", "memory": "1Gi"}})
    assert spec["resources"]["requests"] == {"cpu": "250m", "memory": "1Gi"}


def test_amounts_are_rounded_up_to_thousandths() -> None:
    spec = pod_spec({"resources": {"requests": {"cpu": "100u"}}})
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "1m"}


@pytest.mark.parametrize(
    ("limits", "requests", "expected"),
    [
        ({}, {}, "BestEffort"),
        ({"cpu": "1", "memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"}, "Guaranteed"),
        ({"cpu": "1", "memory": "1Gi"}, {"cpu": "1", "memory": "1024Mi"}, "Guaranteed"),
        ({"cpu": "1"}, {"cpu": "1"}, "Burstable"),
        ({"cpu": "2", "memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"}, "Burstable"),
        ({}, {"cpu": "1"}, "Burstable"),
        ({"nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "1"}, "BestEffort"),
        ({"cpu": "0"}, {"cpu": "0"}, "BestEffort"),
    ],
)
def test_qos_class(limits: dict[str, str], requests: dict[str, str], expected: str) -> None:
    spec = {"containers": [{"name": "c", "resources": {"limits": limits, "requests": requests}}]}
    assert pod_defaults.qos_class(spec) == expected
    assert defaults.initial_status(POD, freeze(spec)) == {"phase": "Pending", "qosClass": expected}


def test_initial_status() -> None:
    def status(kind: str) -> Any:
        return defaults.initial_status(KINDS.find(kind), None)

    assert status("namespace") == {"phase": "Active"}
    assert status("pvc") == status("pv") == {"phase": "Pending"}
    assert status("deploy") == status("job") == {} and status("configmap") is None
    assert status("rs") == {"replicas": 0}
    gated = defaults.initial_status(POD, freeze({"schedulingGates": [{"name": "g"}]}))
    assert gated is not None and gated["conditions"][0]["reason"] == "SchedulingGated"


def test_missing_parts() -> None:
    assert defaults.missing_parts(KINDS.find("ns")) == {
        "spec": {},
        "status": {"phase": "Active"},
    }
    assert defaults.missing_parts(KINDS.find("secret")) == {"type": "Opaque"}
    assert defaults.missing_parts(KINDS.find("deploy")) == {"status": {}}


def test_labels_and_secrets_that_the_server_completes() -> None:
    assert defaults.extra_labels(KINDS.find("ns"), "prod") == {"kubernetes.io/metadata.name": "prod"}
    assert defaults.extra_labels(POD, "prod") == {}
    assert defaults.secret_data(freeze({"a": "MQ=="}), {"b": "2", "a": "3"}) == {"a": "Mw==", "b": "Mg=="}


CUSTOM = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "crons.a.io"},
    "spec": {
        "group": "a.io",
        "scope": "Namespaced",
        "names": {"kind": "Cron", "plural": "crons"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "default": {},
                                "properties": {
                                    "replicas": {"type": "integer", "default": 1},
                                    "note": {"type": "string", "nullable": True, "default": "x"},
                                    "inner": {
                                        "type": "object",
                                        "properties": {"deep": {"type": "string", "default": "d"}},
                                    },
                                    "items": {
                                        "type": "array",
                                        "items": {
                                            "type": "object",
                                            "properties": {"port": {"type": "integer", "default": 80}},
                                        },
                                    },
                                    "map": {
                                        "type": "object",
                                        "additionalProperties": {
                                            "type": "object",
                                            "properties": {"on": {"type": "boolean", "default": False}},
                                        },
                                    },
                                },
                            }
                        },
                    }
                },
            }
        ],
    },
}
CRON = Kinds.custom_from_yaml_dict(CUSTOM, "crons.yaml")


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ({}, {"note": "x", "replicas": 1}),
        ({"replicas": 0, "note": None}, {"note": None, "replicas": 0}),
        ({"inner": {}}, {"inner": {"deep": "d"}, "note": "x", "replicas": 1}),
        ({"items": [{}, {"port": 1}]}, {"items": [{"port": 80}, {"port": 1}], "note": "x", "replicas": 1}),
        ({"map": {"k": {}}}, {"map": {"k": {"on": False}}, "note": "x", "replicas": 1}),
    ],
)
def test_custom_defaults_stand_where_the_parent_is(written: Any, stored: Any) -> None:
    filled = defaults.fill(CRON, "spec", freeze(written))
    assert thaw(filled) == stored
    assert defaults.fill(CRON, "spec", filled) is filled


def test_missing_parts_of_a_custom_kind_are_filled_inside() -> None:
    assert defaults.missing_parts(CRON) == {"spec": {"note": "x", "replicas": 1}}


PARTS = [(kind, part) for kind in ("pod", "deploy", "sts", "ds", "cronjob", "svc", "pvc", "pv") for part in ["spec"]]


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), st.sampled_from([*PARTS, ("pod", "status"), ("node", "status")]))
def test_filling_is_idempotent_pure_and_well_formed(data: st.DataObject, which: tuple[str, str]) -> None:
    kind, part = KINDS.find(which[0]), which[1]
    schema = kind.schema.fields[part]
    taken = intake.intake(schema, False)(data.draw(value(schema)))
    before = orjson.dumps(taken)
    filled = defaults.fill(kind, part, taken)
    assert orjson.dumps(taken) == before
    assert isinstance(filled, Frozen)
    assert defaults.fill(kind, part, filled) is filled
    assert intake.intake(schema, which[1] == "spec")(filled) == filled
    _all_frozen(filled)


def _all_frozen(value: Any) -> None:
    """No plain, mutable container has slipped into a filled value."""
    assert not isinstance(value, dict) or type(value) is Frozen
    assert not isinstance(value, list) or type(value) is FrozenList
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _all_frozen(item)
