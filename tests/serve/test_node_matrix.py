"""What a node may and may not: every served kind, verb and subresource, asked over HTTP by two nodes.

Node x has a pod that refers to an object of every kind that pods refer to, and these are all called x; node y has
nothing. The expectations are Kubernetes 1.36's, by hand: plugin/pkg/auth/authorizer/node and `NodeRules` of
plugin/pkg/auth/authorizer/rbac/bootstrappolicy. What admission adds is in test_node_restriction.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from steersman.kernel.effect import Request
from steersman.kernel.object import Key
from tests.serve.harness import in_loop
from tests.serve.plane import Plane
from tests.serve.rights import OPEN, Case
from tests.serve.test_rbac_matrix import CASES, SERVED

READ = {"get", "list", "watch"}
BOTH: dict[tuple[str, str], set[str]] = {
    ("", "services"): READ,
    ("", "nodes"): {"create", "update", "patch"},
    ("", "nodes/status"): {"update", "patch"},
    ("", "events"): {"create", "update", "patch"},
    ("events.k8s.io", "events"): {"create", "update", "patch"},
    ("", "endpoints"): {"get"},
    ("", "pods"): {"create", "delete"},
    ("", "pods/status"): {"update", "patch"},
    ("", "pods/eviction"): {"create"},
    ("authentication.k8s.io", "tokenreviews"): {"create"},
    ("authorization.k8s.io", "subjectaccessreviews"): {"create"},
    ("authorization.k8s.io", "localsubjectaccessreviews"): {"create"},
    ("certificates.k8s.io", "certificatesigningrequests"): {"create", *READ},
    ("storage.k8s.io", "csidrivers"): READ,
    ("storage.k8s.io", "csinodes"): {"create"},
    ("resource.k8s.io", "resourceslices"): {"create"},
    ("node.k8s.io", "runtimeclasses"): READ,
}
"""What every node may, whatever it is about: admission looks at the rest."""
OWN: dict[tuple[str, str], set[str]] = {
    ("", "nodes"): {"get"},
    ("storage.k8s.io", "csinodes"): {"get", "update", "patch", "delete"},
    ("resource.k8s.io", "resourceslices"): {"get", "update", "patch", "delete"},
    ("", "pods"): {"get"},
    ("", "secrets"): {"get"},
    ("", "configmaps"): {"get"},
    ("", "persistentvolumeclaims"): {"get"},
    ("", "persistentvolumeclaims/status"): {"update", "patch"},
    ("", "persistentvolumes"): {"get"},
    ("", "serviceaccounts"): {"get"},
    ("", "serviceaccounts/token"): {"create"},
    ("resource.k8s.io", "resourceclaims"): {"get"},
    ("storage.k8s.io", "volumeattachments"): {"get"},
}
"""What only the node may that it is about."""
WATCHED = {("", "nodes"), ("", "pods"), ("", "secrets"), ("", "configmaps")}
"""What it may also watch, one by its name (Kubernetes: what is read because a pod refers to it, pods and nodes)."""
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
POD: dict[str, Any] = {
    "nodeName": "x", "serviceAccountName": "x", "containers": [{"name": "c", "image": "i"}],
    "resourceClaims": [{"name": "x", "resourceClaimName": "x"}],
    "volumes": [
        {"name": "s", "secret": {"secretName": "x"}}, {"name": "c", "configMap": {"name": "x"}},
        {"name": "p", "persistentVolumeClaim": {"claimName": "x"}},
    ],
}  # fmt: skip
VOLUME = {
    "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "csi": {"driver": "d", "volumeHandle": "h"},
    "claimRef": {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "x"},
}  # fmt: skip
POOL = {"name": "p", "generation": 1, "resourceSliceCount": 1}
SLICE = {"driver": "d.example", "nodeName": "x", "pool": POOL, "devices": []}
ATTACHMENT = {"attacher": "d", "nodeName": "x", "source": {"persistentVolumeName": "x"}}


class Nodes:
    """A plane with both nodes, and the objects of node x."""

    def __init__(self) -> None:
        self.plane = Plane()
        self.bearers = {
            node: "Bearer " + self.plane.tokens.issue(f"system:node:{node}", ("system:nodes",)) for node in "xy"
        }
        self.make("", "Pod", "default", POD)
        self.make("", "PersistentVolume", "", VOLUME)
        self.make("resource.k8s.io", "ResourceSlice", "", SLICE)
        self.make("storage.k8s.io", "VolumeAttachment", "", ATTACHMENT)

    def make(self, group: str, kind: str, namespace: str, spec: Any) -> None:
        api = self.plane.backend.api.kinds.get(group, kind).api_version
        meta = {"name": "x", **({"namespace": namespace} if namespace else {})}
        body = {"apiVersion": api, "kind": kind, "metadata": meta, "spec": spec}
        key = Key(group, kind, namespace, "x")
        self.plane.backend.write_now(Request("create", key, body, actor="somebody", now=self.plane.time))

    async def refusal(self, case: Case, node: str) -> str:
        """Why a node may not, or "" where it may. Nothing is written, whatever it may."""
        body: Any = None if case.method in ("GET", "DELETE") else [] if "json-patch" in case.content else {}
        path = case.path if case.method == "GET" else f"{case.path}?dryRun=All&fieldManager=me"
        answer = await self.plane.send(
            case.method, path, body, authorization=self.bearers[node], content_type=case.content
        )
        if not isinstance(answer.body, bytes):
            await answer.body.aclose()  # type: ignore[attr-defined]
            return ""
        told = case.ask.refusal(f"system:node:{node}").replace('"', '\\"')
        text = answer.body.decode()
        assert (answer.status == 403) or told not in text, (case, text)
        return text if answer.status == 403 and told in text else ""


def may(case: Case, node: str) -> bool:
    ask = case.ask
    resource = ask.group, f"{ask.resource}/{ask.part}" if ask.part else ask.resource
    if ask.resource in OPEN or ask.verb in BOTH.get(resource, ()):
        return True
    own = OWN.get(resource, ())
    return node == "x" and (ask.verb in own or (resource in WATCHED and ask.verb == "watch" and bool(ask.name)))


@pytest.mark.parametrize("group", list(SERVED.groups))
@in_loop
async def test_what_nodes_may(group):
    nodes = Nodes()
    for case in [case for case in CASES if case.ask.group == group]:
        for node in "xy":
            why = await nodes.refusal(case, node)
            assert bool(why) != may(case, node), (case, node, why)


def test_every_expectation_is_about_something_that_is_served():
    asked = {(case.ask.group, f"{case.ask.resource}/{case.ask.part}".rstrip("/"), case.ask.verb) for case in CASES}
    expected = {(*resource, verb) for table in (BOTH, OWN) for resource, verbs in table.items() for verb in verbs}
    assert expected <= asked
    assert {("", "pods/exec", "get"), ("", "pods/attach", "create"), ("", "pods/portforward", "get")} <= asked


@in_loop
async def test_leases_of_nodes_are_in_their_own_namespace():
    nodes = Nodes()
    for method, verb in (("GET", "get"), ("PUT", "update"), ("PATCH", "patch"), ("DELETE", "delete")):
        for node in "xy":
            answer = await nodes.plane.ask(
                method, f"{LEASES}/x", None if method == "GET" else {}, authorization=nodes.bearers[node],
                content_type="application/merge-patch+json" if method == "PATCH" else "application/json",
            )  # fmt: skip
            assert (f"cannot {verb} resource" in answer.json.get("message", "")) == (node == "y"), (method, node)
    refused = await nodes.plane.get(LEASES, 403, authorization=nodes.bearers["x"])
    assert "cannot list resource" in refused.json["message"]


@pytest.mark.parametrize(("resource", "field"), [("pods", "spec.nodeName"), ("resourceslices", "spec.nodeName")])
@pytest.mark.parametrize("query", ["", "watch=1&timeoutSeconds=-1&"])
@in_loop
async def test_lists_and_watches_that_are_narrowed_to_the_node(resource, field, query):
    nodes = Nodes()
    path = "/api/v1/pods" if resource == "pods" else f"/apis/resource.k8s.io/v1/{resource}"
    for node, code in (("x", 200), ("y", 403)):
        bearer = nodes.bearers[node]
        await nodes.plane.get(f"{path}?{query}fieldSelector={field}%3Dx", code, authorization=bearer)
        await nodes.plane.get(f"{path}?{query}fieldSelector={field}!%3Dx", 403, authorization=bearer)
    name = "?watch=1&timeoutSeconds=-1&fieldSelector=metadata.name%3Dx"
    await nodes.plane.get(f"/api/v1/namespaces/default/secrets{name}", 200, authorization=nodes.bearers["x"])
    await nodes.plane.get(f"/api/v1/namespaces/default/secrets{name}", 403, authorization=nodes.bearers["y"])


@pytest.mark.parametrize("part", ["exec", "attach", "portforward", "log", "proxy"])
@in_loop
async def test_a_node_does_not_reach_into_pods(part):
    """Not even into its own: the kubelet does not ask the server for that."""
    nodes = Nodes()
    for node in "xy":
        for method in ("GET", "POST"):
            path = f"/api/v1/namespaces/default/pods/x/{part}?command=id&stdout=1"
            upgrade = {"connection": "Upgrade", "upgrade": "websocket"}
            answer = await nodes.plane.ask(method, path, None, 403, authorization=nodes.bearers[node], **upgrade)
            assert f'resource "pods/{part}"' in answer.json["message"]
