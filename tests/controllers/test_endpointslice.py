"""EndpointSlices: conditions, families, packing by a hundred, and that they always become what the pods are."""

import pytest

from steersman.controllers.endpointslice import EndpointSliceController
from steersman.kernel.object import Key
from tests.controllers.services import node, running, service, start
from tests.controllers.worlds import client, explore, make, objects, settle, user

KIND = "discovery.k8s.io/v1/EndpointSlice"

SINGLE = {"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4"]}


def world(*more, users=(), nodes=None, **options):
    return make([EndpointSliceController], [*([node()] if nodes is None else nodes), *more], users, **options)


def slices(w):
    return objects(w, KIND)


def pod_key(number):
    return Key("", "Pod", "default", f"p{number:03}")


def addresses(w):
    return sorted(each.addresses[0] for slice_ in slices(w) for each in slice_.endpoints)


def test_a_slice():
    w = world(service(), nodes=[node(zone="north")])
    start(w, 0)
    settle(w)
    (slice_,) = slices(w)
    assert slice_.metadata.name.startswith("web-") and slice_.metadata.generateName == "web-"
    assert slice_.metadata.labels == {
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    (owner,) = slice_.metadata.ownerReferences
    assert (owner.kind, owner.name, owner.controller, owner.blockOwnerDeletion) == ("Service", "web", True, True)
    assert slice_.addressType == "IPv4" and slice_.ports == [{"name": "", "port": 8080, "protocol": "TCP"}]
    (endpoint,) = slice_.endpoints
    assert endpoint.addresses == ["10.1.0.1"] and "hints" not in endpoint and "hostname" not in endpoint
    assert endpoint.conditions == {"ready": True, "serving": True, "terminating": False}
    assert (endpoint.nodeName, endpoint.zone, endpoint.targetRef.name) == ("node-1", "north", "p000")


def test_conditions():
    w = world(service())
    start(w, 0, 1)
    start(w, 2, ready=False)
    client(w).delete(pod_key(0))
    settle(w)
    conditions = [each.conditions for each in slices(w)[0].endpoints]
    assert [(each.ready, each.serving, each.terminating) for each in conditions] == [
        (False, True, True),
        (True, True, False),
        (False, False, False),
    ]
    client(w).patch(Key("", "Service", "default", "web"), {"spec": {"publishNotReadyAddresses": True}})
    settle(w)
    assert all(each.conditions.ready for each in slices(w)[0].endpoints)
    client(w).patch_status(pod_key(1), {"phase": "Succeeded"})
    settle(w)
    assert addresses(w) == ["10.1.0.1", "10.1.0.3"]


def test_both_families_have_slices():
    w = world(service(ipFamilies=["IPv4", "IPv6"], ipFamilyPolicy="RequireDualStack"))
    start(w, 0)
    settle(w)
    assert {each.addressType: each.endpoints[0].addresses[0] for each in slices(w)} == {
        "IPv4": "10.1.0.1",
        "IPv6": "fd00::1",
    }
    client(w).patch(Key("", "Service", "default", "web"), {"spec": SINGLE})
    settle(w)
    assert [each.addressType for each in slices(w)] == ["IPv4"]


def test_a_service_without_pods_has_one_empty_slice():
    w = settle(world(service()))
    (empty,) = slices(w)
    assert not empty.get("endpoints") and not empty.get("ports")
    start(w, 0)
    settle(w)
    (full,) = slices(w)
    assert full.metadata.uid == empty.metadata.uid and full.endpoints[0].addresses == ["10.1.0.1"]
    client(w).delete(pod_key(0), grace=0)
    settle(w)
    (again,) = slices(w)
    assert again.metadata.uid == empty.metadata.uid and not again.get("endpoints")


def test_pods_with_other_port_numbers_have_a_slice_of_their_own():
    w = world(service(ports=[{"name": "http", "port": 80, "targetPort": "web", "appProtocol": "http"}]))
    for number, port in enumerate((8080, 9090)):
        start(w, number, containers=[{"name": "c", "image": "i", "ports": [{"name": "web", "containerPort": port}]}])
    settle(w)
    found = {each.ports[0].port: [e.targetRef.name for e in each.endpoints] for each in slices(w)}
    assert found == {8080: ["p000"], 9090: ["p001"]} and slices(w)[0].ports[0].appProtocol == "http"


def test_a_hundred_in_a_slice_and_changes_touch_few():
    w = world(service(), persistent=False, atomic=True)
    start(w, *range(150))
    settle(w)
    assert sorted(len(each.endpoints) for each in slices(w)) == [50, 100]
    assert len(set(addresses(w))) == 150
    full = next(each for each in slices(w) if len(each.endpoints) == 100)
    start(w, 150)  # has room in the smaller one
    settle(w)
    assert sorted(len(each.endpoints) for each in slices(w)) == [51, 100]
    assert next(each for each in slices(w) if len(each.endpoints) == 100) == full
    start(w, *range(151, 260))
    settle(w)
    assert sorted(len(each.endpoints) for each in slices(w)) == [60, 100, 100]


def test_labels_of_the_service_and_headless():
    body = service(clusterIP="None", ports=None)
    body["metadata"]["labels"] = {"team": "a"}
    w = world(body)
    start(w, 0, hostname="db", subdomain="web")
    settle(w)
    (slice_,) = slices(w)
    assert slice_.metadata.labels["service.kubernetes.io/headless"] == "" and slice_.metadata.labels["team"] == "a"
    assert slice_.endpoints[0].hostname == "db" and not slice_.get("ports")
    client(w).patch(Key("", "Service", "default", "web"), {"metadata": {"labels": {"team": "b"}}})
    settle(w)
    assert slices(w)[0].metadata.labels["team"] == "b"


def test_a_pod_on_an_unknown_node_waits_for_it():
    w = world(service(), nodes=[])
    start(w, 0)
    settle_quietly(w)
    assert addresses(w) == []
    client(w).create(node())
    settle(w)
    assert addresses(w) == ["10.1.0.1"]


def settle_quietly(w):
    """What waits for a node is tried for ever."""
    with pytest.raises(AssertionError, match="still busy"):
        settle(w, limit=50)


def test_services_that_others_serve_are_left_alone_and_foreign_slices_too():
    w = world(service(selector=None), service("named", type="ExternalName", externalName="a.example", ports=None))
    labels = {"kubernetes.io/service-name": "web"}
    meta = {"name": "mine", "namespace": "default", "labels": labels}
    mine = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": meta, "addressType": "IPv4"}
    client(w).create({**mine, "endpoints": [{"addresses": ["10.9.9.9"]}]})
    settle(w)
    assert [each.metadata.name for each in slices(w)] == ["mine"]


def test_a_slice_that_somebody_deleted_or_changed_is_made_right_again():
    w = world(service())
    start(w, 0)
    settle(w)
    (slice_,) = slices(w)
    client(w).patch(slice_, {"endpoints": [{"addresses": ["10.66.6.6"]}]})
    settle(w)
    assert addresses(w) == ["10.1.0.1"]
    client(w).delete(slice_)
    settle(w)
    assert addresses(w) == ["10.1.0.1"]


@pytest.mark.parametrize(("lag", "budgets"), [(0, (1, 0)), (1, (0, 0))])
def test_every_order_ends_in_the_pods_as_they_are(lag, budgets):
    def world_of():
        steps = [
            user("not-ready", lambda c: c.patch_status(pod_key(0), running(0, ready=False))),
            user("relabel", lambda c: c.patch(pod_key(1), {"metadata": {"labels": {"app": "x"}}})),
        ]
        w = world(service(), users=steps, lag=lag, budgets=budgets)
        start(w, 0, 1)
        return w.fork()

    found = explore(world_of)
    assert found.states > 20 and found.terminal and not found.findings
    for w in found.terminal:
        (slice_,) = slices(w)
        assert [(e.addresses[0], e.conditions.ready) for e in slice_.endpoints] == [("10.1.0.1", False)]


@pytest.mark.parametrize(
    ("distribution", "notes", "hints"),
    [
        ("PreferSameZone", {}, {"forZones": [{"name": "a"}]}),
        ("PreferClose", {}, {"forZones": [{"name": "a"}]}),
        ("PreferSameNode", {}, {"forZones": [{"name": "a"}], "forNodes": [{"name": "node-1"}]}),
        ("PreferSameNode", {"service.kubernetes.io/topology-mode": "Auto"}, None),
        (None, {}, None),
    ],
)
def test_traffic_distribution_gives_hints_to_the_ready(distribution, notes, hints):
    body = service(**SINGLE, **({"trafficDistribution": distribution} if distribution else {}))
    body["metadata"]["annotations"] = notes
    w = world(body, nodes=[node(zone="a")])
    start(w, 0)
    start(w, 1, ready=False)
    settle(w)
    (found,) = slices(w)
    assert [each.get("hints") for each in found.endpoints] == [hints, None]
    client(w).patch(Key("", "Service", "default", "web"), {"spec": {"trafficDistribution": None}})
    settle(w)
    assert not any("hints" in each for slice_ in slices(w) for each in slice_.endpoints)
