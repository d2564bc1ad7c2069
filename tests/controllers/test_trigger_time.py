"""The annotation that tells since when endpoints should be as they are."""

import pytest

from steersman.controllers.endpoints import EndpointsController
from steersman.controllers.endpointslice import EndpointSliceController
from steersman.controllers.trigger_time import TRIGGER_TIME
from steersman.kernel.effect import MICRO
from steersman.kernel.object import Key
from tests.controllers.services import node, running, service, start
from tests.controllers.worlds import client, explore, make, objects, settle, user

KINDS = {EndpointsController: "v1/Endpoints", EndpointSliceController: "discovery.k8s.io/v1/EndpointSlice"}
SINGLE = {"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4"]}


def became(w, number, ready, at):
    """A pod's readiness changed at a time."""
    status = running(number, ready)
    status["conditions"][0]["lastTransitionTime"] = at
    client(w).patch_status(Key("", "Pod", "default", f"p{number:03}"), status)
    settle(w)


@pytest.mark.parametrize("controller", KINDS)
def test_it_is_the_services_age_then_the_earliest_change_of_a_pod_and_then_not_there(controller):
    def told():
        (found,) = objects(w, KINDS[controller])
        return (found.metadata.get("annotations") or {}).get(TRIGGER_TIME)

    w = make([controller], [node(), service(**SINGLE)])
    w.now += 60 * MICRO
    start(w, 0, 1, ready=False)
    settle(w)
    assert told() == "2026-01-01T00:00:00Z"
    became(w, 0, True, "2026-01-01T00:01:05Z")
    assert told() == "2026-01-01T00:01:05Z"
    became(w, 1, True, "2026-01-01T00:01:04Z")
    assert told() == "2026-01-01T00:01:04Z"
    client(w).delete(Key("", "Pod", "default", "p001"), grace=0)
    settle(w)
    assert told() is None


@pytest.mark.parametrize("controller", KINDS)
def test_whether_it_is_there_makes_no_two_ends_of_one(controller):
    def world():
        pods = [user("fail", lambda c: c.patch_status(Key("", "Pod", "default", "p000"), running(0, False)))]
        w = make([controller], [node(), service(**SINGLE)], pods, lag=1)
        start(w, 0)
        return w

    found = explore(world)
    assert len({w.store.sum_canonical for w in found.terminal}) == 1 and not found.findings
