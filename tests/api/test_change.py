"""What an update may not change, in kube-apiserver's words."""

from typing import Any

import pytest

from steersman.api import defaults, validate
from steersman.api.kinds import Kinds
from steersman.kernel.value import freeze

KINDS = Kinds.builtin()
POD = (
    "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing "
    "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
    "previously negative)"
)
STATEFUL = (
    "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
    "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
    "'minReadySeconds' are "
    "forbidden"
)
CLAIM = (
    "spec: Forbidden: spec is immutable after creation except resources.requests and "
    "volumeAttributesClassName for "
    "bound claims"
)
C = {"name": "c", "image": "i"}
GATED = {"containers": [C], "schedulingGates": [{"name": "g"}]}
NODES = "requiredDuringSchedulingIgnoredDuringExecution"


def affinity(*expressions: str) -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": key, "operator": "Exists"} for key in expressions]}]
    return {"affinity": {"nodeAffinity": {NODES: {"nodeSelectorTerms": terms}}}}


def change(kind: str, part: str, old: Any, new: Any) -> list[str]:
    found = KINDS.find(kind)
    before, after = (defaults.fill(found, part, freeze(value)) for value in (old, new))
    return [str(cause) for cause in validate.change(found, part, before, after)]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ({"containers": [C]}, {"containers": [{**C, "imagePullPolicy": "Always", "image": "j"}]}, []),
        ({"containers": [C]}, {"containers": [C], "activeDeadlineSeconds": 5}, []),
        (
            {"containers": [C], "activeDeadlineSeconds": 5},
            {"containers": [C], "activeDeadlineSeconds": 6},
            ["spec.activeDeadlineSeconds: Invalid value: 6: must be less than or equal to previous value"],
        ),
        (
            {"containers": [C]},
            {"containers": [C, {**C, "name": "d"}]},
            ["spec.containers: Forbidden: pod updates may not add or remove containers"],
        ),
        (
            {"containers": [C]},
            {"containers": [{**C, "tty": True}]},
            [f"{POD}\nspec.containers[0].tty: not set → true"],
        ),
        ({"containers": [C]}, {"containers": [C], "hostname": "x"}, [f'{POD}\nspec.hostname: not set → "x"']),
        ({"containers": [C]}, {"containers": [C], "tolerations": [{"operator": "Exists"}]}, []),
        (
            {"containers": [C], "tolerations": [{"key": "a", "operator": "Exists"}]},
            {"containers": [C]},
            ["spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"],
        ),
        (
            {"containers": [C], "terminationGracePeriodSeconds": -1},
            {"containers": [C], "terminationGracePeriodSeconds": 1},
            [],
        ),
        (
            {"containers": [C], "terminationGracePeriodSeconds": 5},
            {"containers": [C], "terminationGracePeriodSeconds": 1},
            [f"{POD}\nspec.terminationGracePeriodSeconds: 5 → 1"],
        ),
        (GATED, {"containers": [C]}, []),
        (
            {"containers": [C]},
            GATED,
            ["spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'g'"],
        ),
        (GATED, {**GATED, "nodeSelector": {"a": "b"}}, []),
        (
            {**GATED, "nodeSelector": {"a": "b"}},
            GATED,
            [
                "spec.nodeSelector: Invalid value: {}: only additions to spec.nodeSelector are allowed (no "
                "mutations or deletions)"
            ],
        ),
        (GATED, {**GATED, **affinity("a")}, []),
        ({**GATED, **affinity("a")}, {**GATED, **affinity("a", "b")}, []),
        (
            {**GATED, **affinity("a")},
            {**GATED, **affinity("b")},
            [
                f"spec.affinity.nodeAffinity.{NODES}.nodeSelectorTerms[0]: Invalid value: "
                '{"matchExpressions":[{"key":"b","operator":"Exists"}]}: only additions are '
                "allowed (no mutations "
                "or deletions)"
            ],
        ),
    ],
)
def test_pods(old: Any, new: Any, told: list[str]) -> None:
    assert change("pod", "spec", old, new) == told


def test_a_long_list_of_changes_is_cut() -> None:
    (told,) = change(
        "pod",
        "spec",
        {"containers": [C]},
        {"containers": [C], "nodeSelector": dict.fromkeys("abcdefghij", "x")},
    )
    assert told.endswith(
        'spec.nodeSelector: not set → {"a":"x","b":"x","c":"x","d":"x","e":"x","f":"x","g":"x","h":"x","i":"x","j":"x"}'
    )
    (told,) = change(
        "pod",
        "spec",
        {"containers": [C], "nodeSelector": {}},
        {"containers": [C], "nodeSelector": dict.fromkeys("abcdefghij", "x")},
    )
    assert told.endswith('spec.nodeSelector.h: not set → "x"\n… and 2 more')


@pytest.mark.parametrize("kind", ["deploy", "rs", "ds"])
def test_selectors_stay(kind: str) -> None:
    a, b = {"selector": {"matchLabels": {"a": "b"}}}, {"selector": {"matchLabels": {"a": "c"}}}
    assert change(kind, "spec", a, {**a, "minReadySeconds": 5}) == []
    assert change(kind, "spec", a, b) == ['spec.selector: Invalid value: {"matchLabels":{"a":"c"}}: field is immutable']


CLAIMED = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}


def sized(size: str) -> dict[str, Any]:
    return {**CLAIMED, "resources": {"requests": {"storage": size}}}


@pytest.mark.parametrize(
    ("kind", "part", "old", "new", "told"),
    [
        ("sts", "spec", {"serviceName": "a"}, {"serviceName": "a", "replicas": 5, "minReadySeconds": 1}, []),
        ("sts", "spec", {"serviceName": "a"}, {"serviceName": "b"}, [STATEFUL]),
        (
            "job",
            "spec",
            {"completions": 1},
            {"completions": 2},
            ["spec.completions: Invalid value: 2: field is immutable"],
        ),
        ("job", "spec", {}, {"parallelism": 3, "completions": 1, "suspend": True}, []),
        (
            "job",
            "spec",
            {"template": {"spec": {"containers": [C]}}, "suspend": True},
            {"template": {"spec": {"containers": [C], "nodeSelector": {"a": "b"}}}},
            [],
        ),
        ("pvc", "spec", CLAIMED, sized("3Gi"), []),
        ("pvc", "spec", CLAIMED, {**CLAIMED, "volumeName": "v", "storageClassName": "s"}, []),
        (
            "pvc",
            "spec",
            CLAIMED,
            sized("1Gi"),
            ["spec.resources.requests.storage: Forbidden: field can not be less than previous value"],
        ),
        (
            "pvc",
            "spec",
            {**CLAIMED, "volumeName": "v"},
            {**CLAIMED, "volumeName": "w"},
            [f'{CLAIM}\nspec.volumeName: "v" → "w"'],
        ),
        (
            "svc",
            "spec",
            {"clusterIP": "10.0.0.1"},
            {"clusterIP": "10.0.0.2"},
            ['spec.clusterIPs[0]: Invalid value: ["10.0.0.2"]: may not change once set'],
        ),
        ("svc", "spec", {"clusterIP": "10.0.0.1"}, {"type": "ExternalName", "externalName": "a.b"}, []),
        ("secret", "type", "Opaque", "a.io/b", ['type: Invalid value: "a.io/b": field is immutable']),
        (
            "rolebinding",
            "roleRef",
            {"kind": "Role", "name": "a"},
            {"kind": "Role", "name": "b"},
            [
                "roleRef: Invalid value: "
                '{"APIGroup":"rbac.authorization.k8s.io","Kind":"Role","Name":"b"}: cannot '
                "change roleRef"
            ],
        ),
        (
            "node",
            "spec",
            {"providerID": "a"},
            {"providerID": "b"},
            ['spec.providerID: Forbidden: node updates may not change providerID except from "" to valid'],
        ),
    ],
)
def test_other_kinds(kind: str, part: str, old: Any, new: Any, told: list[str]) -> None:
    assert change(kind, part, old, new) == told


def test_the_template_of_a_running_job_stays() -> None:
    old = {"template": {"spec": {"containers": [C]}}}
    new = {"template": {"spec": {"containers": [C], "nodeSelector": {"a": "b"}}}}
    (told,) = change("job", "spec", old, new)
    assert told.startswith("spec.template: Invalid value: {") and told.endswith(": field is immutable")


def test_frozen_data() -> None:
    secret, config = KINDS.find("secret"), KINDS.find("cm")
    old = freeze({"immutable": True, "data": {"a": "MQ=="}})
    assert validate.frozen_data(secret, old, old) == []
    causes = validate.frozen_data(config, old, freeze({"data": {"a": "x"}, "binaryData": {"b": ""}}))
    assert [cause.field for cause in causes] == ["immutable", "data", "binaryData"]
    assert {cause.message for cause in causes} == {"Forbidden: field is immutable when `immutable` is set"}
    assert validate.frozen_data(config, freeze({"data": {}}), old) == []
