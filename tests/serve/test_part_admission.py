"""What policies see of subresources with a kind of their own: a Scale is no Deployment, an Eviction no Pod."""

import pytest

from tests.serve.harness import in_loop
from tests.serve.plane import Plane

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
WEB = "/apis/apps/v1/namespaces/default/deployments/web"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


async def ruled(plane: Plane, kind: str, resource: str, spec: dict, group: str = "apps") -> None:
    """A policy about updates of one resource, and its binding."""
    rule = {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": [resource]}
    path = f"{ADMISSION}/{kind.lower().removesuffix('y')}ies"
    await plane.post(path, {"metadata": {"name": "p"}, "spec": {"matchConstraints": {"resourceRules": [rule]}, **spec}})
    actions = {"validationActions": ["Deny"]} if kind.startswith("Validating") else {}
    bindings = f"{ADMISSION}/{kind.lower()}bindings"
    await plane.post(bindings, {"metadata": {"name": "b"}, "spec": {"policyName": "p", **actions}})


async def deployed(plane: Plane) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    await plane.post(WEB.removesuffix("/web"), {"metadata": {"name": "web", "labels": {"x": "y"}}, "spec": spec})


@in_loop
async def test_other_subresources_have_kinds_of_their_own():
    plane = Plane()
    pods = "/api/v1/namespaces/default/pods"
    await plane.post(pods, {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    seen = (
        "request.kind.kind + '/' + request.kind.group + ' of ' + request.resource.resource + '/' + request.subResource"
    )
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/*"]}]
    checks = {"validations": [{"expression": "false", "messageExpression": seen}]}
    spec = {**checks, "matchConstraints": {"resourceRules": rules}}
    await ruled(plane, "ValidatingAdmissionPolicy", "pods/*", spec, group="")
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"name": "n"}}
    for part, body, told in (
        ("eviction", eviction, "Eviction/policy of pods/eviction"),
        ("binding", binding, "Binding/ of pods/binding"),
    ):
        assert told in (await plane.post(f"{pods}/a/{part}", body, code=422)).json["message"]


async def replicas(plane: Plane) -> int:
    return (await plane.get(WEB)).json["spec"]["replicas"]


@pytest.mark.parametrize(
    ("resource", "seen"),
    [("deployments/scale", True), ("deployments/*", True), ("*/scale", True), ("deployments", False)],
)
def test_a_rule_names_the_subresource(resource, seen):
    @in_loop
    async def test():
        plane = Plane()
        await deployed(plane)
        asked = "object.spec.replicas <= 5 && request.subResource == 'scale' && oldObject.spec.replicas == 2"
        checks = {"validations": [{"expression": f"{asked} && object.kind == 'Scale' && request.kind.kind == 'Scale'"}]}
        await ruled(plane, "ValidatingAdmissionPolicy", resource, checks)
        await plane.merge(f"{WEB}/scale", {"spec": {"replicas": 7}}, code=422 if seen else 200)
        assert await replicas(plane) == (2 if seen else 7)
        if seen:
            scale = (await plane.get(f"{WEB}/scale")).json
            await plane.put(f"{WEB}/scale", {**scale, "spec": {"replicas": 8}}, code=422)
            await plane.put(f"{WEB}/scale", {**scale, "spec": {"replicas": 5}})
            assert await replicas(plane) == 5

    test()


@in_loop
async def test_a_policy_may_change_the_replicas():
    plane = Plane()
    await deployed(plane)
    text = '[JSONPatch{op: "replace", path: "/spec/replicas", value: 3}]'
    spec = {"reinvocationPolicy": "Never", "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": text}}]}
    await ruled(plane, "MutatingAdmissionPolicy", "deployments/scale", spec)
    answer = await plane.merge(f"{WEB}/scale", {"spec": {"replicas": 7}})
    assert answer.json["spec"]["replicas"] == await replicas(plane) == 3


@in_loop
async def test_a_selector_of_objects_finds_no_labels_in_a_scale():
    plane = Plane()
    await deployed(plane)
    checks = {"validations": [{"expression": "false"}]}
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["*/*"]}
    chosen = {"resourceRules": [rule], "objectSelector": {"matchLabels": {"x": "y"}}}
    await ruled(plane, "ValidatingAdmissionPolicy", "deployments/scale", {**checks, "matchConstraints": chosen})
    await plane.merge(f"{WEB}/scale", {"spec": {"replicas": 7}})
    assert await replicas(plane) == 7
