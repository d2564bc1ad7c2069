"""The Node authorizer: a node reads what its pods refer to, and nothing of another node's."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.api.access.authz import Rbac
from steersman.api.access.rbac import Ask
from steersman.api.access.user import User, node_of
from steersman.api.begin import Api
from steersman.api.kinds import Kinds
from steersman.api.references import MIRROR
from steersman.kernel.effect import Request
from steersman.kernel.object import Key
from steersman.serve.memory import MemoryBackend

API = Api(Kinds.builtin())
NODES = ("system:nodes", "system:authenticated")
A, B = User("system:node:a", NODES), User("system:node:b", NODES)
RES, STORAGE = "resource.k8s.io", "storage.k8s.io"


class Cluster:
    """A store with a pod on node `a` that refers to one object of every kind."""

    def __init__(self) -> None:
        self.backend = MemoryBackend(API)
        self.backend.bootstrap()
        self.rbac = Rbac()

    def make(self, gk: tuple[str, str], name: str, namespace: str = "", **parts: Any) -> None:
        kind = API.kinds.get(*gk)
        meta = {"name": name, **parts.pop("metadata", {})}
        body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, **parts}
        self.backend.write_now(Request("create", Key(*gk, namespace, name), body, actor="x", manager="x"))

    def pod(self, name: str, node: str, namespace: str = "default", metadata: Any = None, **spec: Any) -> None:
        containers = spec.pop("containers", [{"name": "c", "image": "i"}])
        body = {"nodeName": node, "containers": containers, **spec}
        self.make(("", "Pod"), name, namespace, spec=body, metadata=metadata or {})

    def why(self, user: User, ask: Ask) -> str:
        """ "" where it is allowed."""
        decision = self.rbac.decide(self.backend.store, user, ask)
        return "" if decision.allowed else decision.reason or "no"


def full() -> Cluster:
    c = Cluster()
    env = [{"name": "E", "valueFrom": {"secretKeyRef": {"name": "env-secret", "key": "k"}}}]
    sources = [{"secretRef": {"name": "from-secret"}}, {"configMapRef": {"name": "from-config"}}]
    volumes: list[Any] = [
        {"name": "s", "secret": {"secretName": "vol-secret"}},
        {"name": "m", "configMap": {"name": "vol-config"}},
        {"name": "p", "projected": {"sources": [
            {"secret": {"name": "pro-secret"}}, {"configMap": {"name": "pro-config"}}]}},
        {"name": "c", "persistentVolumeClaim": {"claimName": "claim"}},
        {"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}}},
    ]  # fmt: skip
    c.pod(
        "p", "a", containers=[{"name": "c", "image": "i", "env": env, "envFrom": sources}], volumes=volumes,
        serviceAccountName="robot", imagePullSecrets=[{"name": "pull"}],
        resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}],
    )  # fmt: skip
    csi = {"driver": "d", "volumeHandle": "h", "nodeStageSecretRef": {"name": "stage", "namespace": "infra"}}
    csi["controllerPublishSecretRef"] = {"name": "publish", "namespace": "infra"}
    size = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    ref = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "claim"}
    c.make(("", "PersistentVolume"), "volume", spec={**size, "csi": csi, "claimRef": ref})
    c.make(("", "PersistentVolume"), "free", spec={**size, "csi": {**csi, "nodeStageSecretRef": None}})
    source = {"persistentVolumeName": "volume"}
    c.make((STORAGE, "VolumeAttachment"), "attached", spec={"attacher": "d", "nodeName": "a", "source": source})
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    c.make((RES, "ResourceSlice"), "slice", spec={"driver": "d.example", "nodeName": "a", "pool": pool, "devices": []})
    return c


FULL = full()
RELATED = [
    *[Ask("get", "", "secrets", "", "default", n) for n in ("env-secret", "from-secret", "vol-secret", "pro-secret")],
    Ask("watch", "", "secrets", "", "default", "pull"),
    Ask("list", "", "configmaps", "", "default", "vol-config"),
    *[Ask("get", "", "configmaps", "", "default", n) for n in ("from-config", "pro-config")],
    Ask("get", "", "secrets", "", "infra", "stage"),
    Ask("get", "", "persistentvolumeclaims", "", "default", "claim"),
    Ask("get", "", "persistentvolumeclaims", "", "default", "p-e"),
    Ask("patch", "", "persistentvolumeclaims", "status", "default", "claim"),
    Ask("get", "", "persistentvolumes", "", "", "volume"),
    Ask("get", RES, "resourceclaims", "", "default", "gpu"),
    Ask("get", STORAGE, "volumeattachments", "", "", "attached"),
    Ask("get", "", "serviceaccounts", "", "default", "robot"),
    Ask("create", "", "serviceaccounts", "token", "default", "robot"),
    *[Ask(verb, RES, "resourceslices", "", "", "slice") for verb in ("get", "update", "patch", "delete")],
    Ask("get", "", "pods", "", "default", "p"),
]


@pytest.mark.parametrize("ask", RELATED, ids=str)
def test_a_node_has_what_its_pods_refer_to_and_another_has_not(ask):
    assert FULL.why(A, ask) == ""
    assert FULL.why(B, ask) == "no relationship found between node 'b' and this object"
    assert FULL.why(User("system:node:a", ("system:authenticated",)), ask)
    assert FULL.why(User("a", NODES), ask)
    assert FULL.why(A, ask._replace(name="other"))
    if ask.namespace:
        assert FULL.why(A, ask._replace(namespace="other"))


def on(field: str, node: str) -> Any:
    return ((field, node),)


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (Ask("get", "", "secrets", "", "infra", "publish"), "no relationship found between node 'a' and this object"),
        (Ask("get", "", "persistentvolumes", "", "", "free"), "no relationship found between node 'a' and this object"),
        (Ask("create", "", "secrets", "", "default", "pull"), "can only read resources of this type"),
        (Ask("list", "", "secrets"), "can only read namespaced object of this type"),
        (Ask("list", "", "secrets", "", "default"), "No Object name found"),
        (Ask("get", "", "secrets", "x", "default", "pull"), "cannot read subresource"),
        (Ask("list", "", "persistentvolumes"), "can only get individual resources of this type"),
        (Ask("create", "", "serviceaccounts", "token", "default"),
         "can only create tokens for individual service accounts"),
        (Ask("create", "", "serviceaccounts", "", "default", "robot"),
         "can only create token subresource of serviceaccount"),
        (Ask("update", "coordination.k8s.io", "leases", "", "kube-node-lease", "a"), ""),
        (Ask("create", "coordination.k8s.io", "leases", "", "kube-node-lease"), ""),
        (Ask("update", "coordination.k8s.io", "leases", "", "kube-node-lease", "b"),
         "can only access node lease with the same name as the requesting node"),
        (Ask("get", "coordination.k8s.io", "leases", "", "default", "a"),
         'can only access leases in the "kube-node-lease" system namespace'),
        (Ask("list", "coordination.k8s.io", "leases", "", "kube-node-lease"),
         "can only get, create, update, patch, or delete a node lease"),
        (Ask("patch", STORAGE, "csinodes", "", "", "a"), ""),
        (Ask("patch", STORAGE, "csinodes", "", "", "b"),
         "can only access CSINode with the same name as the requesting node"),
        (Ask("create", RES, "resourceslices"), ""),
        (Ask("list", RES, "resourceslices", fields=on("spec.nodeName", "a")), ""),
        (Ask("deletecollection", RES, "resourceslices", fields=on("spec.nodeName", "b")),
         "can only list/watch/deletecollection resourceslices with nodeName field selector"),
        (Ask("get", "", "nodes", "", "", "a"), ""),
        (Ask("watch", "", "nodes", "", "", "a"), ""),
        (Ask("get", "", "nodes", "", "", "b"), "node 'a' cannot read 'b', only its own Node object"),
        (Ask("list", "", "nodes"), "node 'a' cannot read all nodes, only its own Node object"),
        (Ask("patch", "", "nodes", "status", "", "a"), ""),
        (Ask("delete", "", "nodes", "", "", "a"), "no"),
        (Ask("list", "", "pods", fields=on("spec.nodeName", "a")), ""),
        (Ask("watch", "", "pods", fields=on("spec.nodeName", "b")),
         "can only list/watch pods with spec.nodeName field selector"),
        (Ask("watch", "", "pods", "", "default", "p"), ""),
        (Ask("create", "", "pods", "", "default"), ""),
        (Ask("create", "", "pods", "eviction", "default", "p"), ""),
        (Ask("create", "", "pods", "binding", "default", "p"), "no"),
        (Ask("update", "", "pods", "", "default", "p"), "no"),
        (Ask("list", "", "services"), ""),
        (Ask("list", "", "namespaces"), "no"),
        (Ask("get", "node.k8s.io", "runtimeclasses", "", "", "r"), ""),
        (Ask("get", "certificates.k8s.io", "podcertificaterequests", "", "default", "x"), "no"),
        (Ask("get", path="/healthz"), ""),
        (Ask("get", path="/metrics"), "no"),
    ],
    ids=str,
)  # fmt: skip
def test_kube_apiservers_answers(ask, why):
    assert FULL.why(A, ask) == why


def test_a_nameless_node_is_nobody_in_particular():
    nameless = User("system:node:", NODES)
    assert node_of(nameless) == "" and node_of(User("jane", NODES)) is None
    assert FULL.why(nameless, RELATED[0]) == 'unknown node for user "system:node:"'


def test_mirror_pods_give_nothing_and_gone_pods_nothing_more():
    c = Cluster()
    volumes = [{"name": "s", "secret": {"secretName": "s"}}]
    c.pod("mirror", "a", metadata={"annotations": {MIRROR: "x"}}, volumes=volumes)
    ask = Ask("get", "", "secrets", "", "default", "s")
    assert c.why(A, ask) and c.why(A, Ask("get", "", "pods", "", "default", "mirror")) == ""
    c.pod("p", "a", volumes=volumes)
    assert c.why(A, ask) == ""
    c.backend.write_now(Request("delete", Key("", "Pod", "default", "p"), None, options={"grace": 0}))
    assert c.why(A, ask)


PLACES = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xy"), st.sampled_from("stu")), max_size=8)


@settings(max_examples=50, deadline=None)
@given(PLACES)
def test_exactly_the_nodes_of_the_pods_that_refer(places):
    c = Cluster()
    for namespace in "xy":
        c.make(("", "Namespace"), namespace)
    for at, (node, namespace, secret) in enumerate(places):
        volumes = [{"name": "s", "secret": {"secretName": secret}}]
        c.pod(f"p{at}", node, namespace, volumes=volumes)
    for node in "abc":
        for namespace in "xy":
            for secret in "stu":
                ask = Ask("get", "", "secrets", "", namespace, secret)
                allowed = not c.why(User(f"system:node:{node}", NODES), ask)
                assert allowed == ((node, namespace, secret) in places)
