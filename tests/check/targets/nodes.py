"""Controllers of nodes, and of the pods that cannot stay on them."""

from __future__ import annotations

from typing import Any

import steersman as sm
from steersman.controllers.builtin import builtin
from steersman.controllers.node_ipam import allocating
from steersman.kernel.object import Key
from steersman.nodes.node import node_object
from tests.check.targets.making import gone, holds, web_pod
from tests.controllers import test_device_eviction as devices

NODE, POD = Key("", "Node", "", "node-1"), Key("", "Pod", "default", "web")
TAINT = {"key": "a", "value": "b", "effect": "NoExecute"}


def _nodes(controller: str) -> sm.Scenario:
    w = sm.Scenario().run(*builtin(controller))
    w.apply(node_object("node-1"))
    w.apply(node_object("spare"))  # what fails is not everything
    return w


def _fails(c: Any) -> None:
    """The node's kubelet says that it is not ready."""
    node = c.get(NODE)
    if node is not None:
        said = node.status.conditions
        conditions = [{**each, "status": "False"} if each["type"] == "Ready" else each for each in said]
        c.patch_status(NODE, {"conditions": conditions})


def lifecycle() -> sm.Scenario:
    w = _nodes("node-lifecycle-controller")
    w.user("fail", _fails)
    w.user("cordon", lambda c: c.patch(NODE, {"spec": {"unschedulable": True}}))
    said = {"True": set(), "False": {"node.kubernetes.io/not-ready"}}

    def tainted(s: sm.State) -> bool:
        """As its kubelet says, and as somebody wants it."""
        wanted = said.get(holds(s[NODE], "Ready"), {"node.kubernetes.io/unreachable"})
        if s[NODE].spec.unschedulable:
            wanted = wanted | {"node.kubernetes.io/unschedulable"}
        return gone(s, NODE) or {each.key for each in s[NODE].spec.taints or ()} == wanted

    return w.converges(tainted)


def events() -> sm.Scenario:
    w = _nodes("node-events")
    w.user("delete", lambda c: c.delete(NODE))
    return w.converges()


def node_ttl() -> sm.Scenario:
    w = _nodes("ttl-controller")
    w.user("forget", lambda c: c.patch(NODE, {"metadata": {"annotations": {"node.alpha.kubernetes.io/ttl": None}}}))
    return w.converges(lambda s: gone(s, NODE) or s[NODE].metadata.annotations["node.alpha.kubernetes.io/ttl"] == "0")


def ipam() -> sm.Scenario:
    w = sm.Scenario().run(allocating(["10.244.0.0/23"]))
    for name in ("a", "b"):
        w.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    w.user("come", lambda c: c.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "c"}}))
    w.user("leave", lambda c: c.delete(Key("", "Node", "", "a")))

    def blocks(s: sm.State) -> list[str]:
        return [each.spec.podCIDR for each in s.list("v1/Node") if each.spec.podCIDR]

    w.always("no block twice", lambda s: len(blocks(s)) == len(set(blocks(s))))
    return w.converges(lambda s: len(blocks(s)) == min(2, s.count("v1/Node")))


def eviction() -> sm.Scenario:
    w = _nodes("taint-eviction-controller")
    tolerated = {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    w.apply(web_pod())
    w.apply(web_pod("later", tolerations=[tolerated]))
    w.user("taint", lambda c: c.patch(NODE, {"spec": {"taints": [TAINT]}}))

    def left(s: sm.State) -> bool:
        """Whoever stays tolerates the taint for ever."""
        staying = [each for each in s.list("v1/Pod") if "deletionTimestamp" not in each.metadata]
        patient = [
            {"key": "a", "operator": "Exists", "effect": "NoExecute"} in each.spec.tolerations for each in staying
        ]
        return gone(s, NODE) or not s[NODE].spec.taints or all(patient)

    return w.converges(left)


def podgc() -> sm.Scenario:
    w = _nodes("pod-garbage-collector")
    w.apply(web_pod())
    w.user("remove", lambda c: c.delete(NODE))
    return w.converges(lambda s: bool(s[NODE]) or s.count("v1/Pod") == 0)


def device_eviction() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("device-taint-eviction-controller"))
    for each in (devices.rack(), devices.claim(), devices.claim("other"), devices.holder(), devices.holder(1, "other")):
        w.apply(each)
    w.user("hold", devices.hold)
    w.user("hold other", lambda c: devices.hold(c, 1, "other", tolerationSeconds=5))
    w.user("taint", lambda c: devices.taint(c, devices.TAINT))

    def left(s: sm.State) -> bool:
        """Whoever holds a tainted device goes."""
        held = {each.uid for claim in s.list(devices.CLAIMS) for each in claim.status.reservedFor or ()}
        staying = {each.metadata.uid for each in s.list("v1/Pod") if "deletionTimestamp" not in each.metadata}
        tainted = s[devices.SLICE] and s[devices.SLICE].spec.devices[0].taints
        return not tainted or held.isdisjoint(staying)

    return w.converges(left)


TARGETS = {
    "node-lifecycle-controller": lifecycle,
    "node-events": events,
    "ttl-controller": node_ttl,
    "node-ipam-controller": ipam,
    "taint-eviction-controller": eviction,
    "device-taint-eviction-controller": device_eviction,
    "pod-garbage-collector": podgc,
}
