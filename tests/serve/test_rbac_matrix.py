"""What is not granted is refused: every served kind, verb and subresource, for four users.

One holds exactly the right that is needed, where it is needed. One holds every right but this one. One holds it in
another namespace, one for another name. Only the first gets past authorization.
"""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.access.rbac import Ask
from steersman.api.kinds import Kinds
from steersman.serve.served import Served
from tests.serve.harness import in_loop
from tests.serve.mutate import WIDGETS
from tests.serve.plane import PODS, Plane
from tests.serve.rights import VERBS, Users, cases, judge, rule
from tests.serve.storm import CRDS

SERVED = Served(Kinds.builtin())
CASES = list(cases(SERVED))


@pytest.mark.parametrize("group", list(SERVED.groups))
@in_loop
async def test_what_is_not_granted_is_refused(group):
    users = Users()
    for case in [case for case in CASES if case.ask.group == group]:
        await judge(users, case, SERVED.groups)


@in_loop
async def test_what_is_not_granted_of_a_custom_kind_is_refused():
    users = Users()
    await users.plane.post(CRDS, WIDGETS)
    served = Served(users.plane.backend.api.at(users.plane.backend.store))
    found = [case for case in cases(served) if case.ask.group == WIDGETS["spec"]["group"]]
    assert {(case.ask.verb, case.ask.part) for case in found} >= {
        ("watch", ""),
        ("patch", "scale"),
        ("update", "status"),
    }
    for case in found:
        await judge(users, case, served.groups)


def test_there_are_as_many_cases_as_the_server_has_routes():
    assert len(CASES) > 500 and {case.ask.verb for case in CASES} == set(VERBS)
    parts = {case.ask.part for case in CASES}
    assert {"status", "scale", "finalize", "token", "approval", "binding", "eviction", "log", "resize"} <= parts
    assert {"exec", "attach", "portforward", "proxy", "ephemeralcontainers"} <= parts
    assert any("/watch/namespaces/default/pods" in case.path for case in CASES)
    connected = {(case.ask.resource, case.ask.part, case.method) for case in CASES}
    for resource, part in {("pods", "exec"), ("pods", "attach"), ("pods", "portforward")}:
        assert {(resource, part, "GET"), (resource, part, "POST")} <= connected
    for resource in ("pods", "services", "nodes"):
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            assert (resource, "proxy", method) in connected


# -- what a matrix does not show ---------------------------------------------------------------------------------


@in_loop
async def test_a_right_in_one_namespace_lists_no_other():
    users = Users()
    users.grant("right", [{"verbs": ["list", "watch"], "apiGroups": [""], "resources": ["pods"]}], "default")
    bearer = users.bearers["right"]
    await users.plane.get(PODS, authorization=bearer)
    for path in ("/api/v1/pods", "/api/v1/pods?watch=1", "/api/v1/namespaces/other/pods"):
        await users.plane.get(path, code=403, authorization=bearer)
    await users.plane.get(f"{PODS}/p", code=403, authorization=bearer)  # get is another verb


@in_loop
async def test_a_name_is_enough_for_a_list_that_is_narrowed_to_it():
    users = Users()
    rules = [{"verbs": ["list", "watch"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["p"]}]
    users.grant("right", rules, "default")
    bearer = users.bearers["right"]
    await users.plane.get(f"{PODS}?fieldSelector=metadata.name%3Dp,spec.nodeName%3Dn", authorization=bearer)
    for selector in ("metadata.name%3Dq", "metadata.name!%3Dp", "metadata.name", "spec.nodeName%3Dp", ""):
        await users.plane.get(f"{PODS}?fieldSelector={selector}", code=403, authorization=bearer)


@in_loop
async def test_applying_what_is_not_there_is_creating_it():
    users, pod = Users(), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    patch = {"verbs": ["patch"], "apiGroups": [""], "resources": ["configmaps"]}
    users.grant("right", [patch], "default")
    path, plane = "/api/v1/namespaces/default/configmaps/c?fieldManager=me", users.plane
    headers = {"authorization": users.bearers["right"], "content_type": "application/apply-patch+yaml"}
    refused = (await plane.ask("PATCH", path, pod, 403, **headers)).json
    assert refused["message"] == (
        'configmaps "c" is forbidden: User "right" cannot create resource "configmaps" in API group "" '
        'in the namespace "default"'
    )
    users.grant("right", [{**patch, "verbs": ["patch", "create"]}], "default")
    await plane.ask("PATCH", path, pod, 201, **headers)
    users.grant("right", [patch], "default")
    await plane.ask("PATCH", path, {**pod, "data": {"a": "b"}}, 200, **headers)


@in_loop
async def test_reading_is_not_enough_for_a_stream():
    users, bearer = Users(), {}
    bearer["authorization"] = users.bearers["right"]
    for part in ("exec", "attach", "portforward"):
        get = {"verbs": ["get"], "apiGroups": [""], "resources": [f"pods/{part}"]}
        users.grant("right", [get], "default")
        refused = await users.plane.get(f"{PODS}/p/{part}", code=403, **bearer)
        assert f'cannot create resource "pods/{part}"' in refused.json["message"]
        users.grant("right", [{**get, "verbs": ["create"]}], "default")
        await users.plane.get(f"{PODS}/p/{part}", code=403, **bearer)
        users.grant("right", [{**get, "verbs": ["get", "create"]}], "default")
        assert (await users.plane.ask("GET", f"{PODS}/p/{part}", **bearer)).code != 403


@in_loop
async def test_what_is_behind_a_proxy_needs_the_right_to_the_proxy_and_admission_comes_later():
    users = Users()
    plane, bearer = users.plane, users.bearers["right"]
    everything = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CONNECT"], "resources": ["*/*"]}]
    checks = {"matchConstraints": {"resourceRules": everything}, "validations": [{"expression": "false"}]}
    policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
    await plane.post(f"{policies}ies", {"metadata": {"name": "no"}, "spec": checks})
    binding = {"policyName": "no", "validationActions": ["Deny"]}
    await plane.post(f"{policies}ybindings", {"metadata": {"name": "no"}, "spec": binding})
    verbs = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
    for resource, home in (("pods", "default"), ("services", "default"), ("nodes", "")):
        root = f"/api/v1/namespaces/default/{resource}" if home else f"/api/v1/{resource}"
        for method, verb in verbs.items():
            other = "update" if verb == "get" else "get"
            refused = [{"verbs": [other], "apiGroups": [""], "resources": [f"{resource}/proxy", resource]}]
            refused.append({"verbs": ["*"], "apiGroups": [""], "resources": [resource]})
            for rules, code in ((refused, 403), ([rule(Ask(verb, "", resource, "proxy"))], 422)):
                users.grant("right", rules, home)
                for path in ("", "/", "/deep/er/x", "/a/../../exec"):
                    answer = await plane.ask(method, f"{root}/x/proxy{path}", None, code, authorization=bearer)
                    assert method == "HEAD" or (code == 422) == (b"denied request" in answer.body)
        users.grant("right", [], home)
    for part in ("exec", "attach", "portforward"):
        users.grant("right", [], "default")
        await plane.get(f"{PODS}/x/{part}", 403, authorization=bearer)
        users.grant("right", [rule(Ask("get", "", "pods", part)), rule(Ask("create", "", "pods", part))], "default")
        await plane.get(f"{PODS}/x/{part}", 422, authorization=bearer)


@in_loop
async def test_a_watch_is_authorized_when_it_begins():
    """As in Kubernetes: whoever watches goes on until the timeout, and does not come back."""
    users = Users()
    users.grant("right", [{"verbs": ["watch"], "apiGroups": [""], "resources": ["configmaps"]}], "default")
    path, bearer = "/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=20", users.bearers["right"]
    watch = await users.plane.watch(path, authorization=bearer)
    users.grant("right", [])
    await users.plane.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "later"}})
    assert (await watch.next())["object"]["metadata"]["name"] == "later"
    await watch.chunks.aclose()
    await users.plane.get(path, code=403, authorization=bearer)


@in_loop
async def test_paths_that_do_not_exist_tell_nothing():
    users = Users()
    bearer = users.bearers["right"]
    for path in ("/apis/no.such/v1/things", "/api/v1/namespaces/default/nothing/x", "/apis/apps/v1/watch/nothing"):
        await users.plane.get(path, code=403, authorization=bearer)
        await users.plane.get(path, code=404)
    await users.plane.ask("OPTIONS", PODS, None, 403, authorization=bearer)


@pytest.mark.parametrize(
    "path", ["/", "/metrics", "/logs", "/debug/pprof", "/api/v1/nodes", "/apis/apps/v1/deployments"]
)
@in_loop
async def test_anonymous_gets_nothing(path):
    plane = Plane()
    await plane.get(path, code=401, authorization="")
    assert (await plane.ask("GET", "/healthz", authorization="")).code == 200


@in_loop
async def test_impersonation_needs_a_right_to_every_part():
    users = Users()
    plane, bearer = users.plane, users.bearers["right"]
    who = "/apis/authentication.k8s.io/v1/selfsubjectreviews"

    async def ask(code: int, **headers: str) -> Any:
        return (await plane.post(who, {}, code=code, authorization=bearer, **headers)).json

    refused = await ask(403, impersonate_user="bob")
    assert refused["message"] == (
        'selfsubjectreviews.authentication.k8s.io is forbidden: User "right" cannot '
        'impersonate-on:user-info:create resource "selfsubjectreviews" in API group "authentication.k8s.io" '
        "at the cluster scope"
    )
    refused = await ask(403, impersonate_user="system:node:a", impersonate_group="x")  # fits no constrained mode
    assert refused["message"] == (
        'users "system:node:a" is forbidden: User "right" cannot impersonate resource "users" in API group "" '
        "at the cluster scope"
    )
    rules = [{"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"], "resourceNames": ["bob"]}]
    users.grant("right", rules)
    assert (await ask(201, impersonate_user="bob"))["status"]["userInfo"] == {
        "username": "bob", "groups": ["system:authenticated"],
    }  # fmt: skip
    await ask(403, impersonate_user="ann")
    await ask(403, impersonate_user="bob", impersonate_group="system:masters")
    await ask(403, impersonate_user="bob", impersonate_extra_scopes="view")
    await ask(403, impersonate_user="bob", impersonate_uid="1")
    await ask(400, impersonate_group="dev")
    more = {"verbs": ["impersonate"], "apiGroups": ["", "authentication.k8s.io"]}
    users.grant("right", [*rules, {**more, "resources": ["groups", "userextras/scopes", "uids", "serviceaccounts"]}])
    found = await ask(
        201, impersonate_user="bob", impersonate_group="dev", impersonate_uid="1", impersonate_extra_scopes="view"
    )
    assert found["status"]["userInfo"] == {
        "username": "bob", "uid": "1", "groups": ["dev", "system:authenticated"], "extra": {"scopes": ["view"]},
    }  # fmt: skip
    found = await ask(201, impersonate_user="system:serviceaccount:default:robot")
    assert "system:serviceaccounts:default" in found["status"]["userInfo"]["groups"]
    found = await ask(201, impersonate_user="system:serviceaccount:default:robot", impersonate_group="system:nodes")
    assert found["status"]["userInfo"]["groups"] == ["system:nodes", "system:authenticated"]


@in_loop
async def test_acting_as_somebody_for_one_thing_only():
    users = Users()
    plane, bearer = users.plane, users.bearers["right"]
    pods = {"apiGroups": [""], "resources": ["pods"]}
    authn = "authentication.k8s.io"
    as_bob = {
        "verbs": ["impersonate:user-info"],
        "apiGroups": [authn],
        "resources": ["users"],
        "resourceNames": ["rest"],
    }
    users.grant("rest", [{"verbs": ["list", "get"], **pods}])
    users.grant("right", [as_bob, {"verbs": ["impersonate-on:user-info:list"], **pods}])
    await plane.get(PODS, authorization=bearer, impersonate_user="rest")
    await plane.get(f"{PODS}/p", code=403, authorization=bearer, impersonate_user="rest")
    await plane.get(PODS, code=403, authorization=bearer, impersonate_user="who")
    await plane.get(PODS, code=403, authorization=bearer, impersonate_user="rest", impersonate_group="dev")
    node = {
        "verbs": ["impersonate:arbitrary-node"],
        "apiGroups": [authn],
        "resources": ["nodes"],
        "resourceNames": ["a"],
    }
    reviews = {"apiGroups": [authn], "resources": ["selfsubjectreviews"]}
    users.grant("right", [node, {"verbs": ["impersonate-on:arbitrary-node:create"], **reviews}])
    who = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    found = await plane.post(who, {}, authorization=bearer, impersonate_user="system:node:a")
    assert found.json["status"]["userInfo"]["groups"] == ["system:nodes", "system:authenticated"]
    await plane.post(who, {}, code=403, authorization=bearer, impersonate_user="system:node:b")


# -- reviews -----------------------------------------------------------------------------------------------------

AUTHZ = "/apis/authorization.k8s.io/v1"


@in_loop
async def test_access_reviews_answer_what_authorization_would():
    users = Users()
    plane, bearer = users.plane, users.bearers["right"]
    users.grant("right", [{"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}], "default")
    of = {"resourceAttributes": {"verb": "list", "resource": "pods", "namespace": "default"}}
    mine = (await plane.post(f"{AUTHZ}/selfsubjectaccessreviews", {"spec": of}, authorization=bearer)).json
    assert mine["kind"] == "SelfSubjectAccessReview" and mine["status"] == {
        "allowed": True,
        "reason": 'RBAC: allowed by RoleBinding "right/default" of Role "right" to User "right"',
    }
    other = {"resourceAttributes": {"verb": "list", "resource": "pods", "namespace": "other"}}
    mine = (await plane.post(f"{AUTHZ}/selfsubjectaccessreviews", {"spec": other}, authorization=bearer)).json
    assert mine["status"] == {"allowed": False}
    await plane.post(f"{AUTHZ}/subjectaccessreviews", {"spec": {**of, "user": "x"}}, code=403, authorization=bearer)
    theirs = (await plane.post(f"{AUTHZ}/subjectaccessreviews", {"spec": {**of, "user": "right"}})).json
    assert theirs["status"]["allowed"] and theirs["spec"]["user"] == "right"
    path = {"nonResourceAttributes": {"verb": "get", "path": "/metrics"}}
    assert (await plane.post(f"{AUTHZ}/subjectaccessreviews", {"spec": {**path, "groups": ["system:masters"]}})).json[
        "status"
    ]["allowed"]
    local = f"{AUTHZ}/namespaces/default/localsubjectaccessreviews"
    body = {"metadata": {"namespace": "default"}, "spec": {**of, "user": "right"}}
    assert (await plane.post(local, body)).json["status"]["allowed"]
    rules = (
        await plane.post(f"{AUTHZ}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}}, authorization=bearer)
    ).json["status"]
    assert {"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]} in rules["resourceRules"]
    assert rules["incomplete"] is False and any("/version" in r["nonResourceURLs"] for r in rules["nonResourceRules"])


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("selfsubjectaccessreviews", {"spec": {}}, 422),
        ("selfsubjectaccessreviews", {"spec": {"resourceAttributes": {}, "nonResourceAttributes": {}}}, 422),
        ("selfsubjectaccessreviews", {"metadata": {"name": "x"}, "spec": {"resourceAttributes": {}}}, 422),
        ("selfsubjectaccessreviews", {"spec": {"resourceAttributes": {"fieldSelector": {}}}}, 422),
        ("selfsubjectaccessreviews", {"spec": {"resourceAttributes": []}}, 400),
        ("selfsubjectaccessreviews", {"kind": "Pod"}, 400),
        ("selfsubjectaccessreviews", [], 400),
        ("subjectaccessreviews", {"spec": {"resourceAttributes": {}}}, 422),
        ("selfsubjectrulesreviews", {"spec": {}}, 400),
        ("namespaces/default/localsubjectaccessreviews", {"spec": {"user": "x", "nonResourceAttributes": {}}}, 422),
        ("namespaces/default/localsubjectaccessreviews", {"spec": {"user": "x", "resourceAttributes": {}}}, 422),
    ],
)
@in_loop
async def test_reviews_that_cannot_be_answered(path, body, code):
    await Plane().post(f"{AUTHZ}/{path}", body, code=code)
