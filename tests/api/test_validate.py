"""Validation: kube-apiserver's own words, kind by kind, and no crash on anything that is well formed."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steersman.api import defaults, intake, validate
from steersman.api.kinds import Kinds
from steersman.kernel.value import freeze
from tests.api.values import value

KINDS = Kinds.builtin()
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
RANGE = "must be between 1 and 65535, inclusive"
NEGATIVE = "must be greater than or equal to 0"


def judge(kind: str, part: str, written: Any) -> list[str]:
    """What is said of a part after it was filled."""
    found = KINDS.find(kind)
    filled = defaults.fill(found, part, freeze(written))
    return [str(cause) for cause in validate.part(found, part, filled)]


def container(**fields: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", "image": "i", **fields}]}


C = "spec.containers[0]"


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (container(), []),
        ({}, ["spec.containers: Required value"]),
        (container(name="C_"), [f'{C}.name: Invalid value: "C_": {LABEL}']),
        (container(image=""), [f"{C}.image: Required value"]),
        (
            container(image=" i"),
            [f'{C}.image: Invalid value: " i": must not have leading or trailing whitespace'],
        ),
        (
            {"containers": [{"name": "a", "image": "i"}, {"name": "a", "image": "i"}]},
            ['spec.containers[1].name: Duplicate value: "a"'],
        ),
        (
            {**container(), "initContainers": [{"name": "c", "image": "i"}]},
            ['spec.initContainers[0].name: Duplicate value: "c"'],
        ),
        (
            container(imagePullPolicy="Sometimes"),
            [
                f'{C}.imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always", '
                '"IfNotPresent", "Never"'
            ],
        ),
        (
            container(ports=[{"containerPort": 70000}]),
            [f"{C}.ports[0].containerPort: Invalid value: 70000: {RANGE}"],
        ),
        (container(ports=[{"containerPort": 0}]), [f"{C}.ports[0].containerPort: Required value"]),
        (
            container(ports=[{"containerPort": 1, "name": "a--b"}]),
            [f'{C}.ports[0].name: Invalid value: "a--b": must not contain consecutive hyphens'],
        ),
        (
            container(ports=[{"containerPort": 1, "hostPort": 9}, {"containerPort": 2, "hostPort": 9}]),
            [f'{C}.ports[1].hostPort: Duplicate value: "TCP//9"'],
        ),
        (
            container(resources={"limits": {"cpu": "1"}, "requests": {"cpu": "1500m"}}),
            [f'{C}.resources.requests: Invalid value: "1500m": must be less than or equal to cpu limit of 1'],
        ),
        (
            container(resources={"requests": {"cpu": "-1"}}),
            [f'{C}.resources.requests[cpu]: Invalid value: "-1": {NEGATIVE}'],
        ),
        (
            container(resources={"limits": {"nvidia.com/gpu": "1500m"}}),
            [
                f'{C}.resources.limits[nvidia.com/gpu]: Invalid value: "1500m": must be an integer',
                f'{C}.resources.requests[nvidia.com/gpu]: Invalid value: "1500m": must be an integer',
            ],
        ),
        (
            container(resources={"requests": {"nvidia.com/gpu": "1"}}),
            [f"{C}.resources.limits: Required value: Limit must be set for non overcommitable resources"],
        ),
        (
            {**container(), "volumes": [{"name": "v"}, {"name": "v"}]},
            ['spec.volumes[1].name: Duplicate value: "v"'],
        ),
        (
            container(volumeMounts=[{"name": "data", "mountPath": "/d"}]),
            [f'{C}.volumeMounts[0].name: Not found: "data"'],
        ),
        (
            {
                **container(),
                "volumes": [{"name": "v", "hostPath": {"path": "/a"}, "secret": {"secretName": "s"}}],
            },
            ["spec.volumes[0].secret: Forbidden: may not specify more than 1 volume type"],
        ),
        (
            {**container(), "volumes": [{"name": "v", "hostPath": {"path": "/a/../b"}}]},
            ["spec.volumes[0].hostPath.path: Invalid value: \"/a/../b\": must not contain '..'"],
        ),
        (
            {**container(), "restartPolicy": "Maybe"},
            ['spec.restartPolicy: Unsupported value: "Maybe": supported values: "Always", "OnFailure", "Never"'],
        ),
        (container(livenessProbe={}), [f"{C}.livenessProbe: Required value: must specify a handler type"]),
        (
            container(livenessProbe={"tcpSocket": {"port": 1}, "successThreshold": 2, "periodSeconds": -1}),
            [
                f"{C}.livenessProbe.periodSeconds: Invalid value: -1: {NEGATIVE}",
                f"{C}.livenessProbe.successThreshold: Invalid value: 2: must be 1",
            ],
        ),
        (
            {
                **container(),
                "initContainers": [{"name": "i", "image": "i", "readinessProbe": {"tcpSocket": {"port": 1}}}],
            },
            [
                "spec.initContainers[0].readinessProbe: Forbidden: may not be set for init "
                "containers without "
                "restartPolicy=Always"
            ],
        ),
        (
            container(env=[{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]),
            [f'{C}.env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty'],
        ),
        (container(env=[{"name": "A B.c"}]), []),
        (
            {**container(), "tolerations": [{"operator": "Like", "key": "a"}]},
            ['spec.tolerations[0].operator: Unsupported value: "Like": supported values: "Equal", "Exists"'],
        ),
        (
            {**container(), "tolerations": [{"key": "a", "operator": "Exists", "tolerationSeconds": 5}]},
            [
                "spec.tolerations[0].effect: Invalid value: \"\": effect must be 'NoExecute' when "
                "`tolerationSeconds` is set"
            ],
        ),
        (
            {**container(), "activeDeadlineSeconds": 0},
            ["spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"],
        ),
        (
            {
                **container(),
                "affinity": {
                    "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}
                },
            },
            [
                "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
                "nodeSelectorTerms: "
                "Required value: must have at least one node selector term"
            ],
        ),
        (
            {
                **container(),
                "topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "No"}],
            },
            [
                "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
                'spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "No": '
                "supported values: "
                '"DoNotSchedule", "ScheduleAnyway"',
            ],
        ),
    ],
)
def test_pods(spec: dict[str, Any], told: list[str]) -> None:
    assert judge("pod", "spec", spec) == told


def owner(**fields: Any) -> dict[str, Any]:
    """The spec of a workload whose pods are sound."""
    template = {"metadata": {"labels": {"a": "b"}}, "spec": container()}
    return {"selector": {"matchLabels": {"a": "b"}}, "template": template, **fields}


NEVER = {"metadata": {"labels": {"a": "b"}}, "spec": {**container(), "restartPolicy": "Never"}}
MISMATCH = 'spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`'
ONLY_ALWAYS = 'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"'
AT = "spec.strategy.rollingUpdate"


def test_a_percentage_is_a_number_of_64_bits() -> None:
    (told,) = judge("deploy", "spec", owner(strategy={"rollingUpdate": {"maxSurge": "9" * 5000 + "%"}}))
    assert told.startswith(f"{AT}.maxSurge: Invalid value: ") and "a valid percent string must be" in told


@pytest.mark.parametrize("kind", ["deploy", "rs", "sts", "ds"])
def test_workloads_need_a_selector_that_picks_their_template(kind: str) -> None:
    assert judge(kind, "spec", owner()) == []
    assert judge(kind, "spec", owner(selector={"matchLabels": {"a": "c"}})) == [MISMATCH]
    assert judge(kind, "spec", owner(template=NEVER)) == [ONLY_ALWAYS]
    missing = {name: field for name, field in owner().items() if name != "selector"}
    required = [] if kind == "ds" else ["spec.selector: Required value"]
    assert judge(kind, "spec", missing) == [*required, MISMATCH]
    (empty,) = judge(kind, "spec", owner(selector={}))
    assert empty.startswith("spec.selector: Invalid value: {}: empty selector is ")


@pytest.mark.parametrize(
    ("kind", "spec", "told"),
    [
        ("deploy", owner(replicas=-1), [f"spec.replicas: Invalid value: -1: {NEGATIVE}"]),
        ("rs", owner(replicas=-1), [f"spec.replicas: Invalid value: -1: {NEGATIVE}"]),
        ("sts", owner(replicas=-1), [f"spec.replicas: Invalid value: -1: {NEGATIVE}"]),
        ("deploy", owner(strategy={"type": "Recreate"}), []),
        (
            "deploy",
            owner(strategy={"type": "Recreate", "rollingUpdate": {}}),
            [f"{AT}: Forbidden: may not be specified when strategy `type` is 'Recreate'"],
        ),
        (
            "deploy",
            owner(strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}),
            [f'{AT}.maxUnavailable: Invalid value: "0%": may not be 0 when `maxSurge` is 0'],
        ),
        (
            "deploy",
            owner(strategy={"rollingUpdate": {"maxUnavailable": "101%"}}),
            [f'{AT}.maxUnavailable: Invalid value: "101%": must not be greater than 100%'],
        ),
        (
            "deploy",
            owner(progressDeadlineSeconds=5, minReadySeconds=5),
            ["spec.progressDeadlineSeconds: Invalid value: 5: must be greater than minReadySeconds"],
        ),
        (
            "ds",
            owner(updateStrategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}),
            [
                "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set "
                "when maxUnavailable "
                "is non-zero"
            ],
        ),
        (
            "sts",
            owner(podManagementPolicy="Any"),
            ["spec.podManagementPolicy: Invalid value: \"Any\": must be 'OrderedReady' or 'Parallel'"],
        ),
        ("job", {"template": NEVER}, []),
        (
            "job",
            {"template": {"spec": container()}},
            ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
        ),
        (
            "job",
            {"template": NEVER, "completionMode": "Indexed", "parallelism": 2},
            ["spec.completions: Required value: when completion mode is Indexed"],
        ),
        ("cronjob", {"schedule": "*/5 1-3 * jan mon,tue", "jobTemplate": {"spec": {"template": NEVER}}}, []),
        (
            "cronjob",
            {"schedule": "* * *", "jobTemplate": {"spec": {"template": NEVER}}},
            ['spec.schedule: Invalid value: "* * *": expected exactly 5 fields, found 3: [* * *]'],
        ),
    ],
)
def test_workloads(kind: str, spec: dict[str, Any], told: list[str]) -> None:
    assert judge(kind, "spec", spec) == told


def claim(**fields: Any) -> dict[str, Any]:
    return {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **fields}


@pytest.mark.parametrize(
    ("kind", "part", "written", "told"),
    [
        ("svc", "spec", {"ports": [{"port": 80}]}, []),
        ("svc", "spec", {"clusterIP": "None"}, []),
        ("svc", "spec", {}, ["spec.ports: Required value"]),
        (
            "svc",
            "spec",
            {"ports": [{"port": 0}]},
            [f"spec.ports[0].{each}: Invalid value: 0: {RANGE}" for each in ("port", "targetPort")],
        ),
        (
            "svc",
            "spec",
            {"ports": [{"port": 1}, {"port": 2, "name": "b"}]},
            ["spec.ports[0].name: Required value"],
        ),
        (
            "svc",
            "spec",
            {"type": "Mesh", "ports": [{"port": 80}]},
            [
                'spec.type: Unsupported value: "Mesh": supported values: "ClusterIP", "ExternalName", '
                '"LoadBalancer", "NodePort"'
            ],
        ),
        (
            "svc",
            "spec",
            {"ports": [{"port": 80, "nodePort": 30000}]},
            ["spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"],
        ),
        ("svc", "spec", {"type": "ExternalName"}, ["spec.externalName: Required value"]),
        ("pvc", "spec", claim(), []),
        (
            "pvc",
            "spec",
            {},
            [
                "spec.accessModes: Required value: at least 1 access mode is required",
                "spec.resources[storage]: Required value",
            ],
        ),
        (
            "pvc",
            "spec",
            claim(resources={"requests": {"storage": "0"}}),
            ['spec.resources[storage]: Invalid value: "0": must be greater than zero'],
        ),
        (
            "ns",
            "spec",
            {"finalizers": ["mine"]},
            [
                'spec.finalizers: Invalid value: "mine": name is neither a standard finalizer '
                "name nor is it fully "
                "qualified"
            ],
        ),
        (
            "node",
            "spec",
            {"taints": [{"key": "a", "effect": "Never"}]},
            [
                'metadata.taints[0].effect: Unsupported value: "Never": supported values: "NoSchedule", '
                '"PreferNoSchedule", "NoExecute"'
            ],
        ),
        (
            "node",
            "spec",
            {"taints": [{"key": "a", "effect": "NoExecute"}, {"key": "a", "effect": "NoExecute"}]},
            [
                'metadata.taints[1]: Duplicate value: {"key":"a","effect":"NoExecute"}: taints '
                "must be unique by "
                "key and effect pair"
            ],
        ),
        (
            "lease",
            "spec",
            {"leaseDurationSeconds": 0, "leaseTransitions": -1},
            [
                "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
                f"spec.leaseTransitions: Invalid value: -1: {NEGATIVE}",
            ],
        ),
        ("pod", "status", {"phase": "Running", "podIP": "10.0.0.1"}, []),
        (
            "pod",
            "status",
            {"podIP": "10.0.0"},
            [
                'status.podIPs[0]: Invalid value: "10.0.0": must be a valid IP address, '
                "(e.g. 10.9.8.7 or 2001:db8::ffff)"
            ],
        ),
        ("cm", "data", {"a.b_C-1": "x"}, []),
        ("cm", "data", {"..a": "x"}, ["data[..a]: Invalid value: \"..a\": must not start with '..'"]),
    ],
)
def test_other_kinds(kind: str, part: str, written: Any, told: list[str]) -> None:
    assert judge(kind, part, written) == told


PARTS = [
    *((kind, "spec") for kind in ("pod", "deploy", "rs", "sts", "ds", "job", "cronjob", "svc", "pvc", "pv")),
    *((kind, "spec") for kind in ("rc", "ns", "node", "lease")),
    *((kind, "status") for kind in ("pod", "node", "ns")),
]


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), st.sampled_from(PARTS))
def test_whatever_is_well_formed_is_judged(data: st.DataObject, which: tuple[str, str]) -> None:
    kind, part = KINDS.find(which[0]), which[1]
    take = intake.intake(kind.schema.fields[part], False)
    old, new = (defaults.fill(kind, part, take(data.draw(value(kind.schema.fields[part])))) for _ in range(2))
    for cause in [*validate.part(kind, part, new), *validate.change(kind, part, old, new)]:
        assert cause.reason.startswith("FieldValue") and cause.field and cause.message
    assert validate.change(kind, part, old, old) == []


def test_absent_parts_are_judged_where_kubernetes_requires_them() -> None:
    assert validate.judged_parts(KINDS.find("pod")) == ("spec",)
    assert [str(cause) for cause in validate.part(KINDS.find("pod"), "spec", None)] == [
        "spec.containers: Required value"
    ]
    assert validate.judged_parts(KINDS.find("cm")) == ()
