"""`matchPolicy: Equivalent` about built-in kinds: a rule for another version is asked in that version."""

import base64
import json

import pytest

from steersman.api.admission.about import in_version
from steersman.api.admission.match import Matching
from steersman.api.admission.plugin import CREATE, Attempt
from steersman.api.admission.webhooks import Meant, _changed, _webhook
from steersman.api.kinds import Kinds
from steersman.kernel.effect import Request
from steersman.kernel.object import Key
from steersman.kernel.value import freeze
from tests.api.test_policies import Cluster

EVENTS = [{"apiGroups": ["events.k8s.io"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["events"]}]
SCALERS = [{"apiGroups": ["autoscaling"], "apiVersions": ["v1"], "operations": ["*"],
            "resources": ["horizontalpodautoscalers"]}]  # fmt: skip
TARGET = {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}


def event(**more):
    body = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "default"}, "reason": "R"}
    return {**body, "involvedObject": {"namespace": "default", "name": "a"}, "message": "m", "type": "Normal", **more}


def scaler(**more):
    body = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    spec = {"scaleTargetRef": TARGET, "maxReplicas": 3, "metrics": [CPU], **more}
    return {**body, "metadata": {"name": "h", "namespace": "default"}, "spec": spec}


def attempt(body, group=""):
    kind = Kinds.builtin().get(group, body["kind"])
    key = Key(group, body["kind"], "default", body["metadata"]["name"])
    return Attempt(Cluster().backend.store, Request("create", key, body), kind, key, CREATE, None, freeze(body))


@pytest.mark.parametrize(
    "policy, meant", [("Equivalent", "events.k8s.io/v1"), ("Exact", None), (None, "events.k8s.io/v1")]
)
def test_a_rule_for_the_other_group_is_meant(policy, meant):
    given = {"matchPolicy": policy} if policy else {}
    found = Matching(given, EVENTS).matches(attempt(event()))
    assert (found and found.api_version) == meant
    own = [{**EVENTS[0], "apiGroups": ["", "events.k8s.io"]}]
    assert Matching(given, own).matches(attempt(event())).api_version == "v1"
    assert Matching(given, SCALERS).matches(attempt(event())) is None


def test_what_is_asked_about_is_in_that_version():
    about = attempt(scaler(), "autoscaling")
    matched = Matching({}, SCALERS).matches(about)
    seen = in_version(about.body, matched, about.kind)
    assert seen["apiVersion"] == "autoscaling/v1" and seen["spec"]["targetCPUUtilizationPercentage"] == 50


def test_what_a_webhook_changes_is_stored_as_its_kind_is():
    about = attempt(scaler(), "autoscaling")
    hook = {"name": "a.b.c", "rules": SCALERS, "clientConfig": {"url": "https://h"}, "admissionReviewVersions": ["v1"]}
    webhook = _webhook(hook, "w")
    meant = Meant(webhook, webhook.matching.matches(about))

    def changed(*operations):
        patch = base64.b64encode(json.dumps(operations).encode()).decode()
        return _changed(meant, {"patchType": "JSONPatch", "patch": patch}, about, "round_0_index_0")

    made = changed({"op": "replace", "path": "/spec/targetCPUUtilizationPercentage", "value": 70})
    assert made["apiVersion"] == "autoscaling/v2"
    assert made["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 70
    same = changed({"op": "test", "path": "/spec/maxReplicas", "value": 3})
    assert same is about.body


def test_policies_judge_and_change_events_by_the_names_of_the_other_group():
    cluster = Cluster()
    constraints = {"matchConstraints": {"resourceRules": EVENTS}}
    cluster.policy(validations=[{"expression": "object.note != 'bad'"}], **constraints)
    text = "[JSONPatch{op: 'add', path: '/note', value: object.note + '!'}]"
    cluster.mutation(("JSONPatch", text), **constraints)
    stored = cluster.send("create", "Event", "e", event(), "default").obj
    assert stored.api_version == "v1" and stored.value["message"] == "m!"
    with pytest.raises(Exception, match="denied request"):
        cluster.policy("q", validations=[{"expression": "object.note == 'm'"}], **constraints)
        cluster.send("create", "Event", "f", event(metadata={"name": "f", "namespace": "default"}), "default")
