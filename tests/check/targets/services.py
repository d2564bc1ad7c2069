"""Controllers of Services: endpoints follow pods and hands."""

from __future__ import annotations

from typing import Any

import steersman as sm
from steersman.controllers.builtin import builtin
from steersman.kernel.object import Key
from tests.check.targets.making import named, web_pod
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
    return [(each.addresses[0], each.conditions.ready) for one in s.list(SLICES) for each in one.get("endpoints") or ()]


def endpoints() -> sm.Scenario:
    w = _served("endpoints-controller")

    def follows(s: sm.State) -> bool:
        subsets = s[HAND].subsets or ()
        return len(subsets) == 1 and not subsets[0].get("addresses") and len(subsets[0].notReadyAddresses) == 1

    return w.converges(follows)


def endpointslice() -> sm.Scenario:
    w = _served("endpointslice-controller")
    return w.converges(lambda s: _ready(s) == [("10.1.0.1", False)])


def mirroring() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("endpointslice-mirroring-controller"))
    w.apply(named("v1", "Service", spec={**service()["spec"], "selector": None}))
    subset = {"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80}]}
    w.apply(named("v1", "Endpoints", subsets=[subset]))
    w.user("move", lambda c: c.patch(HAND, {"subsets": [{**subset, "addresses": [{"ip": "10.1.2.4"}]}]}))
    return w.converges(lambda s: _ready(s) == [("10.1.2.4", True)])


def _block(name: str = "kubernetes", block: str = "10.96.0.0/12") -> dict[str, Any]:
    return named("networking.k8s.io/v1", "ServiceCIDR", name, "", spec={"cidrs": [block]})


def service_cidr() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("service-cidr-controller"))
    kept = w.apply(_block())
    more = w.apply(_block("more", "10.8.0.0/16"))
    w.user("delete", lambda c: c.delete(more))
    return w.converges(lambda s: not s[more] and [each.status for each in s[kept].status.conditions or ()] == ["True"])


def addresses() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("ipallocator-repair-controller"))
    w.apply(_block())
    w.apply(service())
    w.apply(service("kept", clusterIP="10.96.0.10", clusterIPs=["10.96.0.10"]))
    w.user("delete", lambda c: c.delete(WEB))

    def of_those_there(s: sm.State) -> bool:
        return [each.metadata.name for each in s.list("networking.k8s.io/v1/IPAddress")] == ["10.96.0.10"]

    return w.converges(of_those_there)


TARGETS = {
    "endpoints-controller": endpoints,
    "endpointslice-controller": endpointslice,
    "endpointslice-mirroring-controller": mirroring,
    "service-cidr-controller": service_cidr,
    "ipallocator-repair-controller": addresses,
}
