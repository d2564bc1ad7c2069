"""Endpoints: which pods are in them, how they are packed, and that they always become what the pods are."""

import pytest

from steersman.controllers.endpoints import MAX_ADDRESSES, EndpointsController, packed, truncated
from steersman.kernel.object import Key
from tests.controllers.services import node, pod, running, service, start
from tests.controllers.worlds import client, explore, make, one, settle, user


def world(*more, users=(), **options):
    return make([EndpointsController], [node(), *more], users, **options)


def of(w, name="web"):
    """(ready, not ready, ports) of each subset."""
    found = one(w, "v1/Endpoints", name)
    return [
        (
            [each.ip for each in subset.get("addresses", ())],
            [each.ip for each in subset.get("notReadyAddresses", ())],
            [(port.get("name"), port.port, port.protocol) for port in subset.get("ports", ())],
        )
        for subset in found.get("subsets", ())
    ]


def test_ready_pods_are_addresses_and_others_are_not_ready():
    w = world(service())
    start(w, 0, 1)
    start(w, 2, ready=False)
    settle(w)
    assert of(w) == [(["10.1.0.1", "10.1.0.2"], ["10.1.0.3"], [(None, 8080, "TCP")])]
    found = one(w, "v1/Endpoints")
    address = found.subsets[0].addresses[0]
    assert (address.nodeName, address.targetRef.kind, address.targetRef.name) == ("node-1", "Pod", "p000")
    assert found.metadata.labels == {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}


def test_who_is_left_out():
    w = world(service())
    start(w, 0, 1, 2)
    c = client(w)
    c.create(pod(3))  # without an address yet
    c.patch_status(Key("", "Pod", "default", "p000"), {"phase": "Failed"})
    c.delete(Key("", "Pod", "default", "p001"))  # it is ending
    c.patch(Key("", "Pod", "default", "p002"), {"metadata": {"labels": {"app": "other"}}})
    settle(w)
    assert of(w) == []


def test_publish_not_ready_addresses():
    w = world(service(publishNotReadyAddresses=True))
    start(w, 0, ready=False)
    settle(w)
    assert of(w) == [(["10.1.0.1"], [], [(None, 8080, "TCP")])]


def test_named_ports_make_several_subsets():
    ports = [{"name": "http", "port": 80, "targetPort": "web"}, {"name": "dns", "port": 53, "protocol": "UDP"}]
    w = world(service(ports=ports))

    def serving(number):
        return [{"name": "web", "image": "i", "ports": [{"name": "web", "containerPort": number}]}]

    start(w, 0, containers=serving(8080))
    start(w, 1, containers=serving(9090))
    start(w, 2)  # has no port of that name
    settle(w)
    assert of(w) == [
        (["10.1.0.1", "10.1.0.2", "10.1.0.3"], [], [("dns", 53, "UDP")]),
        (["10.1.0.1"], [], [("http", 8080, "TCP")]),
        (["10.1.0.2"], [], [("http", 9090, "TCP")]),
    ]


@pytest.mark.parametrize(("families", "first"), [(["IPv4"], "10.1.0.1"), (["IPv6"], "fd00::1")])
def test_the_first_family_counts(families, first):
    w = world(service(ipFamilies=families))
    start(w, 0)
    settle(w)
    assert of(w)[0][0] == [first]


def test_headless_services_without_ports_and_host_names():
    w = world(service(clusterIP="None", ports=None))
    start(w, 0, hostname="a", subdomain="web")
    settle(w)
    found = one(w, "v1/Endpoints")
    assert "service.kubernetes.io/headless" in found.metadata.labels and "ports" not in found.subsets[0]
    assert found.subsets[0].addresses[0].hostname == "a"


def test_services_that_others_serve_are_left_alone():
    plain = service(selector=None)
    named = {**service("named", type="ExternalName", externalName="example.com", ports=None)}
    w = settle(world(plain, named))
    assert one(w, "v1/Endpoints") is None and one(w, "v1/Endpoints", "named") is None


def test_endpoints_go_with_their_service_and_come_back_when_deleted():
    w = world(service())
    start(w, 0)
    settle(w)
    client(w).delete(Key("", "Endpoints", "default", "web"))
    settle(w)
    assert of(w)[0][0] == ["10.1.0.1"]
    client(w).delete(Key("", "Service", "default", "web"))
    settle(w)
    assert one(w, "v1/Endpoints") is None


def test_a_look_that_finds_nothing_new_writes_nothing():
    w = world(service())
    start(w, 0, 1)
    settle(w)
    before = one(w, "v1/Endpoints").metadata.resourceVersion
    client(w).patch(Key("", "Pod", "default", "p000"), {"metadata": {"annotations": {"a": "b"}}})
    client(w).patch(Key("", "Service", "default", "web"), {"metadata": {"annotations": {"a": "b"}}})
    settle(w)
    assert one(w, "v1/Endpoints").metadata.resourceVersion == before


def test_packing():
    a, b = {"ip": "1.1.1.1"}, {"ip": "2.2.2.2"}
    p, q = {"port": 1, "protocol": "TCP"}, {"port": 2, "protocol": "TCP"}
    loose = [{"addresses": [b], "ports": [p]}, {"addresses": [a], "ports": [p]}]
    loose += [{"addresses": [a], "ports": [q]}, {"addresses": [b], "ports": [q]}]
    assert packed(loose) == [{"addresses": [a, b], "ports": [p, q]}] == packed(packed(loose))
    assert packed([{"addresses": [a], "ports": [p]}, {"notReadyAddresses": [a], "ports": [p]}]) == [
        {"notReadyAddresses": [a], "ports": [p]}
    ]


def test_more_than_a_thousand_are_cut():
    def many(start, count):
        return [{"ip": f"10.{n >> 8}.{n & 255}.1"} for n in range(start, start + count)]

    few = [{"addresses": many(0, 10)}]
    assert truncated(few) is few
    cut = truncated([{"addresses": many(0, 900), "notReadyAddresses": many(900, 300)}])
    assert [len(cut[0]["addresses"]), len(cut[0]["notReadyAddresses"])] == [900, 100]
    cut = truncated([{"addresses": many(0, 900)}, {"addresses": many(900, 300), "notReadyAddresses": many(1200, 5)}])
    assert [len(each["addresses"]) for each in cut] == [750, 250] and sum([750, 250]) == MAX_ADDRESSES
    assert "notReadyAddresses" not in cut[1]


def explored(lag):
    def world_of():
        key = Key("", "Pod", "default", "p000")
        steps = [
            user("not-ready", lambda c: c.patch_status(key, running(0, ready=False))),
            user(
                "relabel", lambda c: c.patch(Key("", "Pod", "default", "p001"), {"metadata": {"labels": {"app": "x"}}})
            ),
        ]
        w = world(service(), users=steps, lag=lag, budgets=(1, 0))
        start(w, 0, 1)
        return w.fork()

    return explore(world_of)


def test_every_order_ends_in_the_pods_as_they_are():
    found = explored(lag=1)
    assert found.states > 20 and found.terminal and not found.findings
    for w in found.terminal:
        assert of(w) == [([], ["10.1.0.1"], [(None, 8080, "TCP")])]
