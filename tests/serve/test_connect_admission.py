"""Connections to pods, nodes and services pass admission: what it is told, and that what it says counts.

Shapes and texts are those of a kube-apiserver 1.36.
"""

import base64
import json

import pytest

from steersman.serve.credentials.tls import Authority
from tests.run.test_webhook import Hook
from tests.serve.harness import in_loop
from tests.serve.plane import PODS, Plane
from tests.serve.test_part_admission import ADMISSION
from tests.serve.test_streams_exec import staged
from tests.serve.upstream.test_proxy import planned

NODE = "/api/v1/nodes/n1"
SERVICES = "/api/v1/namespaces/default/services"


async def policy(plane: Plane, sort: str, spec: dict, resources: tuple[str, ...] = ("*/*",), **more: object) -> None:
    """A policy about connections, and its binding."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CONNECT"], "resources": list(resources)}
    body = {"matchConstraints": {"resourceRules": [rule], **more}, **spec}
    root = f"{ADMISSION}/{sort.lower()}admissionpolic"
    await plane.post(f"{root}ies", {"metadata": {"name": "p"}, "spec": body})
    actions = {"validationActions": ["Deny"]} if sort == "Validating" else {}
    await plane.post(f"{root}ybindings", {"metadata": {"name": "b"}, "spec": {"policyName": "p", **actions}})


def checks(*expressions: str) -> dict:
    return {"validations": [{"expression": each} for each in expressions]}


def patch(path: str, value: str) -> dict:
    text = f'[JSONPatch{{op: "add", path: "{path}", value: {value}}}]'
    mutation = {"patchType": "JSONPatch", "jsonPatch": {"expression": text}}
    return {"reinvocationPolicy": "Never", "mutations": [mutation]}


@in_loop
async def test_a_policy_sees_the_options_of_a_connection():
    plane = await planned()
    seen = (
        "request.kind.kind + ' of ' + request.resource.resource + '/' + request.subResource + ' ' + request.name"
        " + (has(object.path) ? ' ' + object.path : '') + (has(object.command) ? ' ' + string(object.command[0]) : '')"
        " + (has(object.stdin) ? ' stdin' : '') + (has(object.ports) ? ' ' + string(object.ports[1]) : '')"
        " + (oldObject == null && request.operation == 'CONNECT' && request.options == null ? '' : ' wrong')"
    )
    told = {"validations": [{"expression": "false", "messageExpression": seen}]}
    await policy(plane, "Validating", told)
    for path, message in {
        f"{PODS}/a/exec?command=ls&command=-l&stdin=1&tty=false": "PodExecOptions of pods/exec a ls stdin",
        f"{PODS}/a/attach?stdin=0&stdout=1": "PodAttachOptions of pods/attach a",
        f"{PODS}/a/portforward?ports=80,81": "PodPortForwardOptions of pods/portforward a 81",
        f"{PODS}/a/proxy": "PodProxyOptions of pods/proxy a",
        f"{PODS}/http:a:8080/proxy/b%2Fc/": "PodProxyOptions of pods/proxy http:a:8080 /b/c/",
        f"{SERVICES}/s:80/proxy/": "ServiceProxyOptions of services/proxy s:80 /",
        f"{NODE}/proxy/healthz": "NodeProxyOptions of nodes/proxy n1 /healthz",
    }.items():
        refused = (await plane.get(path, code=422)).json
        head = f"ValidatingAdmissionPolicy 'p' with binding 'b' denied request: {message}"
        assert refused["message"].endswith(f"is forbidden: {head}"), refused
        assert refused["reason"] == "Invalid" and refused["details"]["causes"] == [{"message": head}]
    log = (await plane.get(f"{PODS}/a/log?container=c", code=400)).json  # which is reading, and not judged
    assert "is not available" in log["message"]


@in_loop
async def test_admission_comes_before_anybody_looks_whether_there_is_such_a_pod():
    plane = Plane()
    await policy(plane, "Validating", checks("has(object.stdin)"))
    assert "denied request" in (await plane.get(f"{PODS}/none/exec?command=a", code=422)).json["message"]
    assert (await plane.get(f"{PODS}/none/exec?command=a&stdin=1", code=404)).json["message"] == 'pods "none" not found'


@in_loop
async def test_a_selector_of_objects_never_finds_options():
    plane = await planned()
    absent = {"objectSelector": {"matchExpressions": [{"key": "no", "operator": "DoesNotExist"}]}}
    await policy(plane, "Validating", checks("false"), **absent)
    await plane.get(f"{NODE}/proxy/healthz")


@in_loop
async def test_what_cannot_be_read_is_said_before_admission():
    plane = Plane()
    await policy(plane, "Validating", checks("false"))
    parsing = "cannot convert to []int32: strconv.ParseUint: parsing"
    for query, told in {
        "portforward?ports=abc": f'{parsing} "abc": invalid syntax',
        "portforward?ports=80,70000": f'{parsing} "70000": value out of range',
        "exec?command=a&dryRun=All": "dryRun is not supported",
        "proxy/?dryRun=All": "dryRun is not supported",
    }.items():
        assert (await plane.get(f"{PODS}/x/{query}", code=400)).json["message"] == told


@staged
async def test_a_policy_gives_an_exec_another_command(stage):
    await policy(stage.plane, "Mutating", patch("/command", '["cat"]'), ("pods/exec",))
    assert (await stage.run("fail", stdin=b"x"))[0] == b"x"


@staged
async def test_a_policy_chooses_the_container(stage):
    assert "a container name must be specified" in (await stage.refused("cat", name="two"))["message"]
    await policy(stage.plane, "Mutating", patch("/container", '"c1"'), ("pods/exec", "pods/attach"))
    assert (await stage.run("cat", name="two", stdin=b"x"))[0] == b"x"
    assert (await stage.refused("cat"))["message"] == "container c1 is not valid for pod a"


@in_loop
async def test_a_policy_leads_a_proxy_elsewhere():
    plane = await planned()
    await policy(plane, "Mutating", patch("/path", "'/x y?' + object.path"), ("pods/proxy",))
    answer = await plane.get(f"{PODS}/a:8080/proxy/secret/%2F?q=1", code=201)
    assert answer.json[1] == "/x%20y%3F/secret//?q=1"


@in_loop
async def test_what_a_policy_makes_must_be_options():
    plane = await planned()
    await policy(plane, "Mutating", patch("/path", "[1]"), ("pods/proxy",))
    assert "PodProxyOptions.path" in (await plane.get(f"{PODS}/a/proxy/", code=500)).json["message"]


@in_loop
async def test_options_cannot_be_applied_to():
    plane = await planned()
    apply = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": 'Object{container: "c"}'}}
    await policy(plane, "Mutating", {"reinvocationPolicy": "Never", "mutations": [apply]}, ("pods/attach",))
    refused = (await plane.get(f"{PODS}/a/attach?stdin=1", code=403)).json
    assert refused["message"] == (
        "policy 'p' with binding 'b' denied request: error applying patch: failed to convert patch object to typed "
        "object: no corresponding type for /v1, Kind=PodAttachOptions"
    )


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority.open(tmp_path_factory.mktemp("pki") / "ca")


async def hooked(plane: Plane, authority: Authority, hook: Hook, sort: str) -> None:
    pem = authority.pem if isinstance(authority.pem, bytes) else authority.pem.encode()
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CONNECT"], "resources": ["*/*"]}
    url = {"url": f"https://127.0.0.1:{hook.port}/x", "caBundle": base64.b64encode(pem).decode()}
    one = {"name": "a.b.c", "rules": [rule], "clientConfig": url, "sideEffects": "None"}
    one["admissionReviewVersions"] = ["v1"]
    path = f"{ADMISSION}/{sort.lower()}webhookconfigurations"
    await plane.post(path, {"metadata": {"name": sort.lower()}, "webhooks": [one]})


def test_webhooks_are_asked_and_obeyed(authority):
    def deny(review):
        allowed = "command" not in review["request"]["object"]
        return {"allowed": allowed, "warnings": ["beware"], "status": {"message": "no commands"}}

    def add(review):
        if review["request"]["subResource"] != "exec":
            return None
        operations = json.dumps([{"op": "add", "path": "/stdin", "value": True}]).encode()
        return {"patchType": "JSONPatch", "patch": base64.b64encode(operations).decode()}

    judge, changer = Hook(authority, deny), Hook(authority, add)

    @in_loop
    async def test():
        plane = await planned()
        await hooked(plane, authority, judge, "Validating")
        await hooked(plane, authority, changer, "Mutating")
        refused = (await plane.get(f"{PODS}/a/exec?command=a&container=c", code=403)).json
        assert refused["message"] == 'admission webhook "a.b.c" denied the request: no commands'
        asked = judge.reviews[0]["request"]
        user = asked.pop("userInfo")
        assert user["username"] and asked.pop("uid")
        kind = {"group": "", "version": "v1", "kind": "PodExecOptions"}
        pods = {"group": "", "version": "v1", "resource": "pods"}
        options = {"kind": "PodExecOptions", "apiVersion": "v1", "container": "c", "command": ["a"]}
        assert changer.reviews[0]["request"]["object"] == options
        assert asked == {
            "kind": kind, "resource": pods, "subResource": "exec", "requestKind": kind, "requestResource": pods,
            "requestSubResource": "exec", "name": "a", "namespace": "default", "operation": "CONNECT",
            "object": {**options, "stdin": True}, "oldObject": None, "dryRun": False, "options": None,
        }  # fmt: skip
        answer = await plane.get(f"{NODE}/proxy/healthz")
        assert answer.body == b"ok" and answer.header("warning") == '299 - "beware"'
        assert "namespace" not in judge.reviews[-1]["request"]
        gone = await plane.get(f"{PODS}/none/proxy/", code=404)
        assert gone.header("warning") == '299 - "beware"'

    try:
        test()
    finally:
        judge.close()
        changer.close()
