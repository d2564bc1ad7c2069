"""Admission webhooks and policies in a check."""

import pytest

import steersman as sm
from steersman.check.scenario import ScenarioError

WEBHOOK = """
apiVersion: admissionregistration.k8s.io/v1
kind: {kind}WebhookConfiguration
metadata: {{name: w}}
webhooks:
- name: a.example.com
  clientConfig: {{url: "https://a.example.com"}}
  rules: [{{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}}]
  sideEffects: None
  admissionReviewVersions: [v1]
"""
POLICY = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  validations: [{expression: "object.metadata.name != 'b'"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: p}
spec: {policyName: p, validationActions: [Deny]}
"""
START = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}


class Copy(sm.Controller):
    """Makes b beside a."""

    kind = "v1/ConfigMap"

    def reconcile(self, c, key):
        if key.name == "a" and c.get(c.key("v1/ConfigMap", "b", "default")) is None:
            c.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "namespace": "default"}})


def scenario(text):
    w = sm.Scenario()
    w.apply(START)
    w.apply(text)
    w.run(Copy)
    w.converges(lambda s: len(s.list("v1/ConfigMap")) == 2)
    return w


def test_a_mutating_webhook_is_a_step_of_its_own():
    w = scenario(WEBHOOK.format(kind="Mutating"))
    w.webhook("a.example.com", lambda request: {"patch": [{"op": "add", "path": "/data", "value": {"k": "v"}}]})
    w.always("b is changed", lambda s: all(o.data.k == "v" for o in s.list("v1/ConfigMap") if o.metadata.name == "b"))
    sm.check(w).assert_holds()


def test_a_webhook_that_refuses_is_seen():
    w = scenario(WEBHOOK.format(kind="Validating"))
    w.webhook("a.example.com", lambda request: {"allowed": False, "status": {"message": "never"}})
    verdict = sm.check(w)
    assert not verdict.holds and "never" in str(verdict)


def test_a_webhook_without_a_model_is_told():
    with pytest.raises(ScenarioError, match=r"model it with w.webhook\('a.example.com', model\)"):
        sm.check(scenario(WEBHOOK.format(kind="Mutating")))


def test_policies_are_evaluated():
    verdict = sm.check(scenario(POLICY))
    assert not verdict.holds and "ValidatingAdmissionPolicy 'p' with binding 'p' denied request" in str(verdict)
