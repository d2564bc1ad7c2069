"""Endpoints kept by hand, as slices."""

import pytest

from steersman.controllers.mirroring import MAX_ADDRESSES, NAME, EndpointSliceMirroring
from steersman.kernel.object import Key
from tests.controllers.services import service
from tests.controllers.worlds import client, explore, make, objects, settle, user

KEY = Key("", "Endpoints", "default", "web")
BY_HAND = service(selector=None)


def endpoints(*addresses, **meta):
    subset = {"addresses": [{"ip": each} for each in addresses], "ports": [{"name": "http", "port": 80}]}
    meta = {"name": "web", "namespace": "default", **meta}
    return {"apiVersion": "v1", "kind": "Endpoints", "metadata": meta, "subsets": [subset] if addresses else []}


def world(*more, users=(), **options):
    return make([EndpointSliceMirroring], more, users, **options)


def slices(w):
    return objects(w, "discovery.k8s.io/v1/EndpointSlice")


def test_a_slice_for_each_family_with_the_marks_of_the_endpoints():
    last = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "team": "a"}
    body = endpoints("10.0.0.1", "fd00::1", labels={"app": "x"}, annotations=last)
    body["subsets"][0]["notReadyAddresses"] = [{"ip": "10.0.0.2", "hostname": "b", "nodeName": "n"}]
    w = settle(world(BY_HAND, body))
    found = {each.addressType: each for each in slices(w)}
    four = found["IPv4"]
    assert four.metadata.labels == {
        "app": "x",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": NAME,
    }
    assert four.metadata.annotations == {"team": "a"} and four.metadata.generateName == "web-"
    (owner,) = four.metadata.ownerReferences
    assert (owner.kind, owner.controller, owner.blockOwnerDeletion) == ("Endpoints", True, True)
    assert four.ports == [{"name": "http", "port": 80, "protocol": "TCP"}]
    assert [(each.addresses, each.conditions.ready) for each in four.endpoints] == [
        (["10.0.0.1"], True),
        (["10.0.0.2"], False),
    ]
    assert (four.endpoints[1].hostname, four.endpoints[1].nodeName) == ("b", "n")
    assert [each.addresses for each in found["IPv6"].endpoints] == [["fd00::1"]]


def test_a_slice_changes_in_place_and_goes_with_its_endpoints():
    w = settle(world(BY_HAND, endpoints("10.0.0.1")))
    (first,) = slices(w)
    client(w).update(endpoints("10.0.0.2"))
    settle(w)
    (second,) = slices(w)
    assert second.metadata.uid == first.metadata.uid and second.endpoints[0].addresses == ["10.0.0.2"]
    client(w).delete(KEY)
    settle(w)
    assert slices(w) == []


@pytest.mark.parametrize(
    ("its_service", "meta"),
    [
        (service(), {}),
        (None, {}),
        (BY_HAND, {"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}),
        (BY_HAND, {"annotations": {"control-plane.alpha.kubernetes.io/leader": "{}"}}),
    ],
)
def test_what_is_not_mirrored(its_service, meta):
    w = settle(world(*([its_service] if its_service else []), endpoints("10.0.0.1", **meta)))
    assert slices(w) == []


def test_a_service_that_gets_a_selector_has_its_mirrored_slices_taken():
    w = settle(world(BY_HAND, endpoints("10.0.0.1")))
    client(w).patch(Key("", "Service", "default", "web"), {"spec": {"selector": {"app": "web"}}})
    settle(w)
    assert slices(w) == []
    client(w).patch(Key("", "Service", "default", "web"), {"spec": {"selector": None}})
    settle(w)
    assert len(slices(w)) == 1


def test_of_too_many_addresses_the_first_are_mirrored():
    body = endpoints(*[f"10.0.{number // 250}.{number % 250 + 1}" for number in range(MAX_ADDRESSES + 5)])
    w = settle(world(BY_HAND, body, persistent=False, atomic=True))
    assert [len(each.endpoints) for each in slices(w)] == [MAX_ADDRESSES]


@pytest.mark.parametrize(("lag", "budgets"), [(0, (1, 0)), (1, (0, 0))])
def test_every_order_ends_in_what_the_endpoints_say(lag, budgets):
    def steps():
        yield user("move", lambda c: c.update(endpoints("10.0.0.2")))
        yield user(
            "spoil", lambda c: [c.delete(each) for each in c.list("discovery.k8s.io/v1/EndpointSlice", "default")]
        )

    found = explore(lambda: world(BY_HAND, endpoints("10.0.0.1"), users=steps(), lag=lag, budgets=budgets))
    assert found.states > 10 and found.terminal and not found.findings
    for w in found.terminal:
        assert [each.endpoints[0].addresses for each in slices(w)] == [["10.0.0.2"]]
