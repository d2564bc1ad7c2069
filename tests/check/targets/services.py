"""Controllers of Services: endpoints follow pods and hands."""

from __future__ import annotations

from typing import Any

import steersman as sm
from steersman.controllers.builtin import builtin
from steersman.kernel.object import Key
from tests.check.targets.making import PODS, gone, holds, named, web_pod
from tests.controllers.services import node, running, service

SLICES = "discovery.k8s.io/v1/EndpointSlice"
WEB, POD = Key("", "Service", "default", "web"), Key("", "Pod", "default", "web")
HAND = Key("", "Endpoints", "default", "web")


def _served(controller: str) -> sm.Scenario:
    """A Service, and a pod that becomes unready."""
    w = sm.Scenario().run(*builtin(controller))
    w.apply(node())
    w.apply(service())
    w.apply(web_pod(status=running(0)))
    w.user("fail", lambda c: c.patch_status(POD, running(0, ready=False)))
    return w


def _ready(s: sm.State) -> Any:
    """The readiness of the endpoints in all slices."""
    slices = s.list(SLICES, namespace="default")
    return [(each.addresses[0], each.conditions.ready) for one in slices for each in one.get("endpoints") or ()]


def _serving(s: sm.State, slices: bool) -> list[tuple[str, bool]]:
    """(address, whether it is ready) of the pods of the Service that there is. Slices have those that are going too,
    and none on a node that is not there."""
    if gone(s, WEB) or not s[WEB].spec.selector:
        return []
    found = s.list(PODS, labels=s[WEB].spec.selector)
    running = [pod for pod in found if pod.status.podIP and pod.status.phase == "Running"]
    going = {pod.metadata.name for pod in running if "deletionTimestamp" in pod.metadata}
    nodes = {each.metadata.name for each in s.list("v1/Node")}
    left = [pod for pod in running if (pod.spec.nodeName in nodes if slices else pod.metadata.name not in going)]
    return [(pod.status.podIP, holds(pod, "Ready") == "True" and pod.metadata.name not in going) for pod in left]


def endpoints() -> sm.Scenario:
    w = _served("endpoints-controller")

    def follows(s: sm.State) -> bool:
        if s[WEB] and not s[WEB].spec.selector:
            return True
        subsets = s[HAND].subsets or ()
        ready = [(each.ip, True) for one in subsets for each in one.addresses or ()]
        return ready + [(each.ip, False) for one in subsets for each in one.notReadyAddresses or ()] == _serving(
            s, False
        )

    return w.converges(follows)


def endpointslice() -> sm.Scenario:
    w = _served("endpointslice-controller")
    return w.converges(lambda s: not s[WEB].spec.selector or _ready(s) == _serving(s, True))


def mirroring() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("endpointslice-mirroring-controller"))
    w.apply(named("v1", "Service", spec={**service()["spec"], "selector": None}))
    subset = {"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80}]}
    w.apply(named("v1", "Endpoints", subsets=[subset]))
    w.user("move", lambda c: c.patch(HAND, {"subsets": [{**subset, "addresses": [{"ip": "10.1.2.4"}]}]}))

    def mirrored(s: sm.State) -> bool:
        """What the hand says; the slices of Endpoints that are gone are the garbage collector's."""
        said = [(each.ip, True) for one in s[HAND].subsets or () for each in one.addresses or ()]
        return gone(s, HAND) or _ready(s) == ([] if gone(s, WEB) else said)

    return w.converges(mirrored)


def _block(name: str = "kubernetes", block: str = "10.96.0.0/12") -> dict[str, Any]:
    return named("networking.k8s.io/v1", "ServiceCIDR", name, "", spec={"cidrs": [block]})


def service_cidr() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("service-cidr-controller"))
    w.apply(_block())
    more = w.apply(_block("more", "10.8.0.0/16"))
    w.user("delete", lambda c: c.delete(more))

    def ready(s: sm.State) -> bool:
        """Those there are; what is deleted goes away."""
        there = s.list("networking.k8s.io/v1/ServiceCIDR")
        return all(holds(each, "Ready") == "True" and "deletionTimestamp" not in each.metadata for each in there)

    return w.converges(ready)


def addresses() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("ipallocator-repair-controller"))
    w.apply(_block())
    w.apply(service())
    w.apply(service("kept", clusterIP="10.96.0.10", clusterIPs=["10.96.0.10"]))
    w.user("delete", lambda c: c.delete(WEB))

    def of_those_there(s: sm.State) -> bool:
        held = sorted(each.spec.clusterIP for each in s.list("v1/Service") if each.spec.clusterIP)
        return [each.metadata.name for each in s.list("networking.k8s.io/v1/IPAddress")] == held

    return w.converges(of_those_there)


TARGETS = {
    "endpoints-controller": endpoints,
    "endpointslice-controller": endpointslice,
    "endpointslice-mirroring-controller": mirroring,
    "service-cidr-controller": service_cidr,
    "ipallocator-repair-controller": addresses,
}
