"""The list of built-in controllers."""

from pathlib import Path

import pytest

from steersman.api.controller import Controller
from steersman.controllers.addresses import IpAddresses
from steersman.controllers.builtin import WITH, builtin, remaining, replacing
from steersman.controllers.definition import DefinitionController
from steersman.controllers.deployment import Deployment
from steersman.controllers.eventttl import EventTtl
from steersman.controllers.registration import ApiServiceRegistration
from steersman.controllers.replicaset import ReplicaSet
from steersman.kernel.object import Key
from tests.controllers.worlds import as_object, explore, make, template, user

ROOT = Path(__file__).parents[2]


class Surge(Controller):
    kind = "apps/v1/Deployment"


def test_all_some_and_one_replaced():
    assert Deployment in builtin() and builtin("replicaset") == [ReplicaSet]
    changed = replacing("deployment", Surge)
    assert Surge in changed and Deployment not in changed and len(changed) == len(builtin())


def test_an_unknown_name_is_told_with_the_known_ones():
    with pytest.raises(LookupError, match=r"no built-in controller 'deploy'; there are [a-z, -]*deployment, "):
        replacing("deploy", Surge)


def test_what_is_left_when_some_are_disabled_by_the_names_of_kubernetes():
    every = remaining([])
    left = remaining(["deployment-controller", "replicaset", "serviceaccount-token-controller"])
    gone = {cls.name for cls in every} - {cls.name for cls in left}
    assert gone == {"deployment", "replicaset", "tokens-controller"} and remaining(["*"]) == [
        DefinitionController,
        EventTtl,
        ApiServiceRegistration,
        IpAddresses,
    ]
    with pytest.raises(LookupError, match="no built-in controller 'deploy'"):
        remaining(["deploy"])


def test_the_names_that_are_told_are_those_of_kubernetes_and_are_taken():
    with pytest.raises(LookupError) as refused:
        remaining(["deploy"])
    told = str(refused.value).partition("; there are ")[2].split(", ")
    assert {"cronjob-controller", "serviceaccount-token-controller"} <= set(told)
    assert remaining(told) == []


PEOPLE_RELY_ON = {
    "statefulset-controller": "statefulset",
    "daemonset-controller": "daemonset",
    "job-controller": "job",
    "cronjob-controller": "cronjob",
    "horizontal-pod-autoscaler-controller": "autoscaler",
    "disruption-controller": "disruption",
    "endpoints-controller": "endpoints",
    "endpointslice-controller": "endpointslice",
    "serviceaccount-controller": "",
    "resourcequota-controller": "",
    "ttl-after-finished-controller": "",
    "persistentvolume-binder-controller": "volumes",
    "replicationcontroller-controller": "replicaset",
    "endpointslice-mirroring-controller": "mirroring",
    "service-cidr-controller": "addresses",
    "ipallocator-repair-controller": "addresses",
    "ephemeral-volume-controller": "ephemeral",
    "ttl-controller": "node_ttl",
    "pod-garbage-collector-controller": "",
    "node-lifecycle-controller": "nodehealth",
    "taint-eviction-controller": "nodehealth",
}
"""By the names of kube-controller-manager: the tests in which a world of each is explored; "": here."""


@pytest.mark.parametrize("name", PEOPLE_RELY_ON)
def test_controllers_people_rely_on_can_be_switched_off_are_documented_and_are_explored(name):
    every, left = remaining([]), remaining([name])
    assert f"`{name}`" in (ROOT / "docs/run.md").read_text(encoding="utf-8")
    cls, *parts = [each for each in every if each not in left]
    assert parts == ([WITH[cls]] if cls in WITH else [])
    if PEOPLE_RELY_ON[name]:
        tests = ROOT / f"tests/controllers/test_{PEOPLE_RELY_ON[name]}.py"
        text = tests.read_text(encoding="utf-8")
        assert "explore(" in text and cls.__name__ in text
        return
    found = explore(lambda: make([cls], OBJECTS, [ENDS], lag=1, budgets=(1, 0)), skip=("fire",))
    assert found.states > 1 and not found.findings and found.terminal


OBJECTS = [
    {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": {"pods": "3"}},
    },
    {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "done", "namespace": "default"},
        "spec": {"ttlSecondsAfterFinished": 0, "template": {"spec": {**template()["spec"], "restartPolicy": "Never"}}},
    },
    as_object({**template(node="gone"), "metadata": {"name": "lost", "namespace": "default", "labels": {"app": "x"}}}),
]
"""Something to do for each of those that are explored here."""
LONG_AGO = "2020-01-01T00:00:00Z"
CONDITIONS = [{"type": each, "status": "True"} for each in ("SuccessCriteriaMet", "Complete")]
ENDED = {"conditions": [{**each, "lastTransitionTime": LONG_AGO} for each in CONDITIONS], "completionTime": LONG_AGO}
ENDS = user("ends", lambda c: c.patch_status(Key("batch", "Job", "default", "done"), {**ENDED, "startTime": LONG_AGO}))
