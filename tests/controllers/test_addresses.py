"""ServiceCIDRs, and the IPAddresses of Services."""

import pytest

from steersman.controllers.addresses import IpAddresses
from steersman.controllers.service_cidr import FINALIZER, ServiceCidrs
from steersman.kernel.object import Key
from tests.controllers.services import service
from tests.controllers.worlds import client, explore, make, objects, one, settle, user

BOTH = (IpAddresses, ServiceCidrs)
WEB = Key("", "Service", "default", "web")
IP = "networking.k8s.io/v1/IPAddress"
CIDR = "networking.k8s.io/v1/ServiceCIDR"


def block(name="kubernetes", *cidrs):
    body = {"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": {"name": name}}
    return {**body, "spec": {"cidrs": list(cidrs) or ["10.96.0.0/12"]}}


def key(name, kind="ServiceCIDR"):
    return Key("networking.k8s.io", kind, "", name)


def world(*more, users=(), controllers=BOTH, **options):
    return make(controllers, more, users, **options)


def addresses(w):
    return {each.metadata.name: each.spec.parentRef.name for each in objects(w, IP)}


def test_a_service_has_an_address_object_for_as_long_as_it_has_the_address():
    w = settle(world(block(), service()))
    assert addresses(w) == {"10.96.0.9": "web"}
    made = objects(w, IP)[0]
    assert made.metadata.labels == {
        "ipaddress.kubernetes.io/ip-family": "IPv4",
        "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
    }
    assert made.spec.parentRef == {"resource": "services", "namespace": "default", "name": "web"}
    client(w).delete(WEB)
    settle(w)
    assert addresses(w) == {}


def test_both_addresses_of_a_service_of_both_families_have_objects():
    two = {"clusterIPs": ["10.96.0.9", "fd00::9"], "ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "RequireDualStack"}
    w = settle(world(block("kubernetes", "10.96.0.0/12", "fd00::/112"), service(**two)))
    assert addresses(w) == {"10.96.0.9": "web", "fd00::9": "web"}


def test_an_address_goes_on_to_the_next_service_that_has_it():
    w = world(block(), service())
    settle(w)
    c = client(w)
    c.delete(WEB)
    c.create(service("next"))
    settle(w)
    assert addresses(w) == {"10.96.0.9": "next"}


def test_what_somebody_changed_is_repaired():
    w = settle(world(block(), service()))
    c = client(w)
    c.delete(key("10.96.0.9", "IPAddress"))
    settle(w)
    assert addresses(w) == {"10.96.0.9": "web"}
    c.patch(key("10.96.0.9", "IPAddress"), {"metadata": {"labels": {"ipaddress.kubernetes.io/ip-family": None}}})
    settle(w)
    assert objects(w, IP)[0].metadata.labels["ipaddress.kubernetes.io/ip-family"] == "IPv4"


def test_a_leaked_address_goes_after_a_minute_and_one_of_others_never():
    labels = {"ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"}
    body = {"apiVersion": "networking.k8s.io/v1", "kind": "IPAddress"}
    spec = {"parentRef": {"resource": "services", "namespace": "default", "name": "gone"}}
    leaked = {**body, "metadata": {"name": "10.96.0.7", "labels": labels}, "spec": spec}
    other = {
        **body,
        "metadata": {"name": "10.96.0.8"},
        "spec": {"parentRef": {"resource": "gateways", "name": "g", "group": "x.io"}},
    }
    w = settle(world(block(), leaked, other))
    assert set(addresses(w)) == {"10.96.0.7", "10.96.0.8"}
    settle(w, timers=True)
    assert set(addresses(w)) == {"10.96.0.8"}


def test_a_block_is_made_ready_and_kept_while_it_is_needed():
    w = settle(world(block(), service()))
    found = one(w, CIDR, "kubernetes")
    (ready,) = found.status.conditions
    assert found.metadata.finalizers == [FINALIZER]
    assert (ready.type, ready.status, ready.message) == ("Ready", "True", "Kubernetes Service CIDR is ready")
    client(w).delete(key("kubernetes"))
    settle(w, timers=True)
    (ready,) = one(w, CIDR, "kubernetes").status.conditions
    assert (ready.status, ready.reason) == ("False", "Terminating")
    client(w).delete(WEB)
    settle(w)
    assert one(w, CIDR, "kubernetes")  # allocators may not have heard of it
    settle(w, timers=True)
    assert one(w, CIDR, "kubernetes") is None


def test_a_block_within_another_goes_whatever_is_in_use():
    w = settle(world(block(), service()))
    client(w).delete(key("kubernetes"))
    settle(w, timers=True)
    client(w).create(block("larger", "10.0.0.0/8"))
    settle(w, timers=True)
    assert [each.metadata.name for each in objects(w, CIDR)] == ["larger"]


@pytest.mark.parametrize(("lag", "budgets"), [(0, (1, 0)), (1, (0, 0))])
def test_every_order_ends_with_the_addresses_that_are_held(lag, budgets):
    def steps():
        yield user("go", lambda c: c.delete(WEB))
        yield user("take", lambda c: c.create(service("next")) if c.get(WEB) is None else None)

    found = explore(
        lambda: world(block(), service(), users=steps(), lag=lag, budgets=budgets, controllers=[IpAddresses]),
        limit=50_000,
    )
    assert found.states > 10 and found.terminal and not found.findings
    for w in found.terminal:
        held = {each.spec.clusterIP: each.metadata.name for each in objects(w, "v1/Service")}
        assert addresses(w) == held
