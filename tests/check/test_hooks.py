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
    assert not verdict.holds and "fails every time: admission webhook" in str(verdict)
    assert 'create ConfigMap default/b: refused, admission webhook "a.example.com" denied the request: never' in str(
        verdict
    )


def test_a_write_that_a_webhook_is_asked_about_is_told_in_words():
    """That it goes there, what was said, and what it did: each is a step."""
    w = scenario(WEBHOOK.format(kind="Mutating"))
    w.webhook("a.example.com", lambda request: {"patch": [{"op": "add", "path": "/data", "value": {"k": "v"}}]})
    w.always("no b", lambda s: len(s.list("v1/ConfigMap")) == 1)
    steps = [line.split(". ", 1)[-1] for line in sm.check(w).violations[0].explanation.splitlines()]
    write = "copy (ConfigMap default/a) create ConfigMap default/b"
    at = steps.index(f"{write}: goes to the webhook a.example.com")
    assert steps[at + 1 : at + 3] == [f"{write}: admitted", write]


def test_a_webhook_without_a_model_is_told():
    with pytest.raises(ScenarioError, match=r"model it with w.webhook\('a.example.com', model\)"):
        sm.check(scenario(WEBHOOK.format(kind="Mutating")))


def test_policies_are_evaluated():
    verdict = sm.check(scenario(POLICY))
    assert not verdict.holds and "ValidatingAdmissionPolicy 'p' with binding 'p' denied request" in str(verdict)


DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  conversion:
    strategy: Webhook
    webhook: {clientConfig: {url: "https://a.example.com"}, conversionReviewVersions: [v1]}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {a: {type: integer}}}}}}
  - name: v2
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {b: {type: integer}}}}}}
"""


CONFIG = """
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
"""


class Convert(sm.Controller):
    """Makes a widget in a version that is not stored."""

    kind = "v1/ConfigMap"

    def reconcile(self, c, key):
        meta = {"name": "w", "namespace": "default"}
        if c.get(c.key("example.com/v1/Widget", "w", "default")) is None:
            c.create({"apiVersion": "example.com/v2", "kind": "Widget", "metadata": meta, "spec": {"b": 3}})


def converted(request):
    (obj,) = request["objects"]
    return [{**obj, "apiVersion": request["desiredAPIVersion"], "spec": {"a": obj["spec"]["b"]}}]


def test_a_conversion_webhook_is_modelled():
    w = sm.Scenario()
    w.apply(DEFINITION + CONFIG)
    w.run(Convert)
    w.webhook("conversion_webhook_for_widgets.example.com", converted)
    w.converges(lambda s: [o.spec.a for o in s.list("example.com/v1/Widget")] == [3])
    sm.check(w).assert_holds()


def test_a_model_of_a_conversion_gives_as_many_objects_as_it_was_given():
    w = sm.Scenario()
    w.apply(DEFINITION + CONFIG)
    w.run(Convert)
    w.webhook("conversion_webhook_for_widgets.example.com", lambda request: [])
    with pytest.raises(ScenarioError, match=r"give a list with each of request\.objects, converted"):
        sm.check(w)
