"""NodeRestriction: what a node may not write although its authorizer lets it write such objects, in 1.36's words."""

from __future__ import annotations

import base64
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from steersman.api.admission.standard import standard
from steersman.api.begin import Api
from steersman.api.kinds import Kinds
from tests.serve.harness import in_loop
from tests.serve.plane import PODS, Plane

NODE = {"impersonate_user": "system:node:a", "impersonate_group": "system:nodes"}
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
NODES = "/api/v1/nodes"


class Cluster:
    """A control plane with nodes a and b, and pods on both; `refused` asks as node a."""

    def __init__(self) -> None:
        self.plane = Plane(api=Api(Kinds.builtin(), admission=standard()))

    async def fill(self) -> Cluster:
        plane = self.plane
        await plane.post(ACCOUNTS, {"metadata": {"name": "default"}})
        for node in "ab":
            made = await plane.post(NODES, {"metadata": {"name": node, "labels": {"team": "x"}}})
            setattr(self, node, made.json)
            await plane.post(PODS, self.pod(f"on-{node}", node))
        return self

    @staticmethod
    def pod(name: str, node: str, **meta: Any) -> dict[str, Any]:
        token = {"serviceAccountToken": {"audience": "vault", "path": "t"}}
        spec = {
            "nodeName": node,
            "containers": [{"name": "c", "image": "i"}],
            "volumes": [{"name": "v", "projected": {"sources": [token]}}],
        }
        return {"metadata": {"name": name, **meta}, "spec": spec}

    async def as_node(self, method: str, path: str, body: Any = None, code: int = 200, **headers: str) -> Any:
        return (await self.plane.ask(method, path, body, code, **NODE, **headers)).json

    async def refused(self, detail: str, method: str, path: str, body: Any = None, **headers: str) -> None:
        said = (await self.as_node(method, path, body, 403, **headers))["message"]
        assert said.endswith(f"is forbidden: {detail}"), said


MERGE = {"content_type": "application/merge-patch+json"}


@in_loop
async def test_a_node_writes_its_own_node_object():
    c = await Cluster().fill()
    await c.plane.ask("DELETE", f"{NODES}/a", None, 200)
    await c.as_node(
        "POST", NODES, {"metadata": {"name": "a", "labels": {"kubernetes.io/hostname": "a", "x": "y"}}}, 201
    )
    other = {"metadata": {"name": "c"}}
    await c.refused('node "a" is not allowed to modify node "c"', "POST", NODES, other)
    bad = {"metadata": {"labels": {"kubernetes.io/role": "master"}}}
    await c.refused("is not allowed to modify labels: kubernetes.io/role", "PATCH", f"{NODES}/a", bad, **MERGE)
    bad = {
        "metadata": {"labels": {"zone.node-restriction.kubernetes.io/x": "1", "node-restriction.kubernetes.io/y": "1"}}
    }
    told = "is not allowed to modify labels: node-restriction.kubernetes.io/y, zone.node-restriction.kubernetes.io/x"
    await c.refused(told, "PATCH", f"{NODES}/a", bad, **MERGE)
    good = {"metadata": {"labels": {"node.kubernetes.io/x": "1", "mine.example.com/z": "1"}}}
    await c.as_node("PATCH", f"{NODES}/a", good, **MERGE)
    taints = {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}
    await c.refused('node "a" is not allowed to modify taints', "PATCH", f"{NODES}/a", taints, **MERGE)
    owners = {
        "metadata": {
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "b", "uid": c.b["metadata"]["uid"]}]
        }
    }
    await c.refused('node "a" is not allowed to modify ownerReferences', "PATCH", f"{NODES}/a", owners, **MERGE)
    status = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    await c.as_node("PATCH", f"{NODES}/a/status", status, **MERGE)
    await c.refused('node "a" is not allowed to modify node "b"', "PATCH", f"{NODES}/b/status", status, **MERGE)
    await c.as_node("DELETE", f"{NODES}/a", None, 403)  # which the authorizer refuses


@in_loop
async def test_labels_of_a_new_node():
    c = await Cluster().fill()
    await c.plane.ask("DELETE", f"{NODES}/a", None, 200)
    bad = {"metadata": {"name": "a", "labels": {"node-role.kubernetes.io/x": ""}}}
    told = 'node "a" is not allowed to set the following labels: node-role.kubernetes.io/x'
    await c.refused(told, "POST", NODES, bad)


@in_loop
async def test_pods_on_the_node_only():
    c = await Cluster().fill()
    status = {"status": {"phase": "Running"}}
    await c.as_node("PATCH", f"{PODS}/on-a/status", status, **MERGE)
    told = 'node "a" can only update pod status for pods with spec.nodeName set to itself'
    await c.refused(told, "PATCH", f"{PODS}/on-b/status", status, **MERGE)
    labels = {"metadata": {"labels": {"app": "x"}}}
    await c.refused('node "a" cannot update labels through pod status', "PATCH", f"{PODS}/on-a/status", labels, **MERGE)
    claims = {"status": {"resourceClaimStatuses": [{"name": "x", "resourceClaimName": "y"}]}}
    await c.refused('node "a" cannot update resource claim statues', "PATCH", f"{PODS}/on-a/status", claims, **MERGE)
    told = 'node "a" can only delete pods with spec.nodeName set to itself'
    await c.refused(told, "DELETE", f"{PODS}/on-b")
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "on-b"}}
    told = "node a can only evict pods with spec.nodeName set to itself"
    await c.refused(told, "POST", f"{PODS}/on-b/eviction", eviction)
    assert (await c.plane.get(f"{PODS}/on-b")).json["metadata"]["name"] == "on-b"
    await c.as_node("POST", f"{PODS}/on-a/eviction", {**eviction, "metadata": {"name": "on-a"}}, 201)
    await c.as_node("DELETE", f"{PODS}/gone", None, 404)


@in_loop
async def test_only_mirror_pods_are_made_by_nodes():
    c = await Cluster().fill()
    told = 'pod does not have "kubernetes.io/config.mirror" annotation, node "a" can only create mirror pods'
    await c.refused(told, "POST", PODS, c.pod("m", "a"))

    def mirror(node: str = "a", **changes: Any) -> dict[str, Any]:
        owner = {"apiVersion": "v1", "kind": "Node", "name": "a", "uid": c.a["metadata"]["uid"], "controller": True}
        meta = {"name": "m", "annotations": {"kubernetes.io/config.mirror": "x"}, "ownerReferences": [owner | changes]}
        return {"metadata": meta, "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}}

    await c.refused('node "a" can only create pods with spec.nodeName set to itself', "POST", PODS, mirror("b"))
    no_owner = mirror()
    no_owner["metadata"]["ownerReferences"] = []
    await c.refused('node "a" can only create pods with an owner reference set to itself', "POST", PODS, no_owner)
    told = 'node "a" can only create pods with a controller owner reference set to itself'
    await c.refused(told, "POST", PODS, mirror(controller=False))
    told = 'node "a" must not set blockOwnerDeletion on an owner reference'
    await c.refused(told, "POST", PODS, mirror(blockOwnerDeletion=True))
    uid = c.a["metadata"]["uid"]
    await c.refused(f"node a UID mismatch: expected x got {uid}", "POST", PODS, mirror(uid="x"))
    with_config = mirror()
    with_config["spec"]["volumes"] = [{"name": "v", "configMap": {"name": "x"}}]
    await c.refused('node "a" can not create pods that reference configmaps', "POST", PODS, with_config)
    with_host = mirror()
    with_host["spec"]["volumes"] = [{"name": "v", "hostPath": {"path": "/x"}}]
    await c.as_node("POST", PODS, with_host, 201)


@in_loop
async def test_tokens_for_pods_of_the_node():
    c = await Cluster().fill()
    path = f"{ACCOUNTS}/default/token"
    pods = {name: (await c.plane.get(f"{PODS}/{name}")).json["metadata"] for name in ("on-a", "on-b")}

    def ask(pod: str, audiences: Any = (), **changes: Any) -> dict[str, Any]:
        ref = {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": pods[pod]["uid"], **changes}
        return {"spec": {"audiences": list(audiences), "boundObjectRef": ref}}

    await c.refused("node requested token not bound to a pod", "POST", path, {"spec": {"audiences": []}})
    await c.refused("node requested token with a pod binding without a uid", "POST", path, ask("on-a", uid=""))
    await c.refused("node requested token bound to a pod scheduled on a different node", "POST", path, ask("on-b"))
    await c.refused("node may only request 0 or 1 audiences", "POST", path, ask("on-a", ("x", "y")))
    told = (
        'audience "x" not found in pod spec volume, system:node:a is not authorized to request tokens for this audience'
    )
    await c.refused(told, "POST", path, ask("on-a", ("x",)))
    uid = pods["on-b"]["uid"]
    told = f"the UID in the bound object reference ({uid}) does not match the UID in record. "
    await c.refused(told + "The object might have been deleted and then recreated", "POST", path, ask("on-a", uid=uid))
    await c.as_node("POST", path, ask("on-a"), 201)  # of the volume that every pod has
    await c.as_node("POST", path, ask("on-a", ("vault",)), 201)


@in_loop
async def test_leases_csi_nodes_slices_and_claims():
    c = await Cluster().fill()
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    await c.as_node("POST", leases, {"metadata": {"name": "a"}}, 201)
    told = "can only access node lease with the same name as the requesting node"
    await c.refused(told, "POST", leases, {"metadata": {"name": "b"}})
    csi = "/apis/storage.k8s.io/v1/csinodes"
    await c.as_node("POST", csi, {"metadata": {"name": "a"}, "spec": {"drivers": []}}, 201)
    told = "can only access CSINode with the same name as the requesting node"
    await c.refused(told, "POST", csi, {"metadata": {"name": "b"}, "spec": {"drivers": []}})
    slices = "/apis/resource.k8s.io/v1/resourceslices"
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    made = {"spec": {"driver": "d.example", "nodeName": "a", "pool": pool, "devices": []}}
    await c.as_node("POST", slices, {"metadata": {"name": "sa"}, **made}, 201)
    told = "can only create ResourceSlice with the same NodeName as the requesting node"
    theirs = {"metadata": {"name": "sb"}, "spec": {**made["spec"], "nodeName": "b"}}
    await c.refused(told, "POST", slices, theirs)
    await c.plane.post(slices, theirs)
    await c.as_node("DELETE", f"{slices}?fieldSelector=spec.nodeName%3Da")
    assert [s["metadata"]["name"] for s in (await c.plane.get(slices)).json["items"]] == ["sb"]
    claims = "/api/v1/namespaces/default/persistentvolumeclaims"
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await c.plane.post(claims, {"metadata": {"name": "c"}, "spec": spec})
    pod = c.pod("uses", "a")
    pod["spec"]["volumes"].append({"name": "c", "persistentVolumeClaim": {"claimName": "c"}})
    await c.plane.post(PODS, pod)
    size = {"status": {"capacity": {"storage": "2Gi"}}}
    await c.as_node("PATCH", f"{claims}/c/status", size, **MERGE)
    labels = {"metadata": {"labels": {"a": "b"}}}
    said = await c.as_node("PATCH", f"{claims}/c/status", labels, 403, **MERGE)
    assert "is not allowed to update fields other than status.quantity and status.conditions" in said["message"]


def request_for(name: str) -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(
        [x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes"), x509.NameAttribute(NameOID.COMMON_NAME, name)]
    )
    made = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    return base64.b64encode(made.public_bytes(serialization.Encoding.PEM)).decode()


@in_loop
async def test_certificates_for_itself():
    c = await Cluster().fill()
    path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"

    def ask(name: str) -> dict[str, Any]:
        usages = ["digital signature", "client auth"]
        signer = "kubernetes.io/kube-apiserver-client-kubelet"
        return {
            "metadata": {"name": "r"},
            "spec": {"request": request_for(name), "signerName": signer, "usages": usages},
        }

    await c.refused("can only create a node CSR with CN=system:node:a", "POST", path, ask("system:node:b"))
    await c.as_node("POST", path, ask("system:node:a"), 201)


@in_loop
async def test_nobody_else_is_concerned():
    c = await Cluster().fill()
    for user in ({}, {"impersonate_user": "system:node:a", "impersonate_group": "system:masters"}):
        body = {"metadata": {"labels": {"kubernetes.io/role": "m"}}}
        await c.plane.ask("PATCH", f"{NODES}/b", body, 200, **MERGE, **user)
