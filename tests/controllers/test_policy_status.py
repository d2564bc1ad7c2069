"""Policies whose expressions do not fit their kinds say so in their status, in kube-controller-manager's words."""

import pytest

from steersman.controllers.policy_status import PolicyStatus
from steersman.kernel.object import Key
from tests.controllers.worlds import client, explore, make, one, put, settle, user

POLICY = "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy"
KEY = Key("admissionregistration.k8s.io", "ValidatingAdmissionPolicy", "", "p")


def rule(group, *resources):
    return {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": list(resources)}


def policy(*expressions, rules=(), **spec):
    rules = rules or [rule("apps", "deployments")]
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {"resourceRules": rules},
            "validations": [{"expression": each} for each in expressions],
            **spec,
        },
    }


def told(*expressions, **spec):
    w = settle(make([PolicyStatus], [policy(*expressions, **spec)]))
    found = one(w, POLICY, "p").status.typeChecking.get("expressionWarnings", ())
    return [(each.fieldRef, each.warning) for each in found]


NAMES = {"plural": "dbs", "singular": "db", "kind": "Db", "listKind": "DbList"}
REPLICAS = "ERROR: <input>:1:7: undefined field 'replicas'\n | object.replicas > 1\n | ......^\n"


def test_an_expression_that_does_not_fit_is_told_for_each_kind():
    rules = [rule("apps", "deployments", "replicasets", "deployments/scale", "nosuch"), rule("*", "pods")]
    ((place, text),) = told("object.spec.replicas > 1", "object.replicas > 1", rules=rules)
    assert place == "spec.validations[1].expression"
    assert text == f"apps/v1, Kind=Deployment: {REPLICAS}\napps/v1, Kind=ReplicaSet: {REPLICAS}"


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        ("variables.n > 'x'", "found no matching overload for '_>_' applied to '(int, string)'"),
        ("variables.bad == 2", None),
        ("params.data.x == 3", "found no matching overload for '_==_' applied to '(string, int)'"),
        ("object.metadata.labels['a'] == 1", "found no matching overload for '_==_' applied to '(string, int)'"),
        ("object.metadata.annotation == 'x'", "undefined field 'annotation'"),
        ("object.spec.strategy.rollingUpdate.maxSurge == 1.0", None),
        ("object.spec.template.spec.containers.all(c, c.resources.limits['cpu'] == 1)", "undefined field 'limits'"),
    ],
)
def test_variables_parameters_and_metadata_have_their_types(expression, fault):
    variables = [{"name": "n", "expression": "object.spec.replicas"}, {"name": "bad", "expression": "object.nope"}]
    found = told(expression, variables=variables, paramKind={"apiVersion": "v1", "kind": "ConfigMap"})
    assert [fault in text for _, text in found] == ([] if fault is None else [True])


def test_a_definition_that_is_a_part_of_itself_ends():
    rules = [rule("apiextensions.k8s.io", "customresourcedefinitions")]
    props = "object.spec.versions[0].schema.openAPIV3Schema.properties['x']"
    ((_, text),) = told(f"{props}.properties['y'].foo == 1", rules=rules)
    assert "undefined field 'properties'" in text


def test_each_generation_is_judged_once_and_a_custom_kind_by_its_schema():
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
    w = make([PolicyStatus], [])
    put(w, {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "dbs.x.io"},
        "spec": {
            "group": "x.io", "scope": "Namespaced", "names": NAMES,
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    })  # fmt: skip
    crd = Key("apiextensions.k8s.io", "CustomResourceDefinition", "", "dbs.x.io")
    on = [{"type": each, "status": "True", "reason": "x", "message": ""} for each in ("NamesAccepted", "Established")]
    client(w).patch_status(crd, {"acceptedNames": NAMES, "conditions": on, "storedVersions": ["v1"]})
    put(w, policy("object.spec.size == 'x' && object.metadata.namespace == ''", rules=[rule("x.io", "dbs")]))
    settle(w)
    status = one(w, POLICY, "p").status
    assert status.observedGeneration == 1 and "x.io/v1, Kind=Db: " in status.typeChecking.expressionWarnings[0].warning
    client(w).patch(KEY, {"spec": {"validations": [{"expression": "object.spec.size == 1"}]}})
    settle(w)
    status = one(w, POLICY, "p").status
    assert status.observedGeneration == 2 and not status.typeChecking.get("expressionWarnings")


def test_it_converges_whatever_happens():
    edit = user("edit", lambda c: c.patch(KEY, {"metadata": {"labels": {"a": "b"}}}))
    found = explore(lambda: make([PolicyStatus], [policy("object.replicas > 1")], [edit], lag=1))
    assert found.terminal and not found.findings
    assert all(one(w, POLICY, "p").status.observedGeneration == 1 for w in found.terminal)
