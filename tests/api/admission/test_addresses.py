"""Addresses and node ports that Services get."""

from ipaddress import ip_address, ip_network

import pytest

from steersman.api.admission.addresses import NETWORK, PORTS
from steersman.api.admission.standard import standard
from steersman.api.begin import Api
from steersman.api.errors import Invalid
from steersman.api.kinds import Kinds
from steersman.kernel.effect import Request
from steersman.kernel.object import Key
from steersman.serve.memory import MemoryBackend

FIRST = NETWORK.split(",")[0]


class Cluster:
    def __init__(self, network=NETWORK):
        self.backend = MemoryBackend(Api(Kinds.builtin(), admission=standard(controllers=(), network=network)))
        self.backend.bootstrap()

    def write(self, verb, name, body=None, **options):
        key = Key("", "Service", "default", name)
        return self.backend.write_now(Request(verb, key, body, actor="u", manager="m", options=options)).obj.value

    def create(self, name, **spec):
        body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}}
        return self.write("create", name, {**body, "spec": {"ports": [{"port": 80}], **spec}})["spec"]

    def patch(self, name, **spec):
        return self.write("patch", name, {"spec": spec}, patch="merge")["spec"]


@pytest.fixture
def cluster():
    return Cluster()


def test_every_service_has_an_address_of_its_own(cluster):
    given = [cluster.create(f"s{number}")["clusterIP"] for number in range(50)]
    assert len(set(given)) == 50 and all(ip_address(each) in ip_network(FIRST) for each in given)
    assert cluster.create("one")["ipFamilies"] == ["IPv6"]


def test_nobody_manages_what_the_cluster_gave(cluster):
    cluster.create("a", type="NodePort")
    (entry,) = cluster.backend.store.get(Key("", "Service", "default", "a")).managers
    assert "f:clusterIP" not in str(entry.fields.to_json())


def test_a_full_block_is_told():
    cluster = Cluster("192.0.2.0/30")
    assert {cluster.create(name)["clusterIP"] for name in "ab"} == {"192.0.2.1", "192.0.2.2"}
    with pytest.raises(Exception, match=r"failed to allocate a serviceIP: range is full"):
        cluster.create("c")


def test_what_is_asked_for_is_given_once(cluster):
    wanted = str(ip_network(FIRST)[77])
    assert cluster.create("a", clusterIP=wanted)["clusterIPs"] == [wanted]
    with pytest.raises(Invalid, match="provided IP is already allocated"):
        cluster.create("b", clusterIP=wanted)
    with pytest.raises(Invalid, match="does not match the current range"):
        cluster.create("c", clusterIP="fd00::1")


def test_headless_services_have_families_and_no_address(cluster):
    assert cluster.create("a", clusterIP="None", selector={"a": "b"})["ipFamilyPolicy"] == "SingleStack"
    assert cluster.create("b", clusterIP="None")["ipFamilies"] == ["IPv6", "IPv4"]


def test_a_cluster_of_one_family():
    cluster = Cluster("10.96.0.0/16")
    for spec, problem in (
        ({"ipFamilies": ["IPv6"]}, "not configured on this cluster"),
        ({"clusterIP": "fd00::1"}, "IPv6 is not configured on this cluster"),
        ({"ipFamilyPolicy": "RequireDualStack"}, "not configured for dual-stack services"),
    ):
        with pytest.raises(Invalid, match=problem):
            cluster.create("c", **spec)
    assert cluster.create("d", ipFamilyPolicy="PreferDualStack")["ipFamilies"] == ["IPv4"]
    assert cluster.create("e", clusterIP="None")["ipFamilies"] == ["IPv4", "IPv6"]


def test_both_families(cluster):
    spec = cluster.create("a", ipFamilyPolicy="RequireDualStack", ipFamilies=["IPv4"])
    assert spec["ipFamilies"] == ["IPv4", "IPv6"] and spec["clusterIP"] == spec["clusterIPs"][0]
    assert [ip_address(each).version for each in spec["clusterIPs"]] == [4, 6]


def test_up_to_both_families_and_down_again(cluster):
    made = cluster.create("a")
    dual = cluster.patch("a", ipFamilyPolicy="RequireDualStack")
    assert dual["ipFamilies"] == ["IPv6", "IPv4"] and dual["clusterIPs"][0] == made["clusterIP"]
    with pytest.raises(Invalid, match="must be 'SingleStack' to release the secondary cluster IP"):
        cluster.patch("a", clusterIPs=[made["clusterIP"]])
    single = cluster.patch("a", ipFamilyPolicy="SingleStack")
    assert single["clusterIPs"] == made["clusterIPs"] and single["ipFamilies"] == ["IPv6"]
    with pytest.raises(Invalid, match="may not change once set"):
        cluster.patch("a", clusterIP=str(ip_network(FIRST)[900]))


def test_ports_of_one_number_share_their_node_port(cluster):
    ports = [{"port": 53, "name": "t"}, {"port": 53, "protocol": "UDP", "name": "u"}]
    first, second = [port["nodePort"] for port in cluster.create("a", type="NodePort", ports=ports)["ports"]]
    assert first == second
    without = cluster.create("b", type="LoadBalancer", allocateLoadBalancerNodePorts=False)
    assert "nodePort" not in without["ports"][0]


def test_a_put_that_leaves_out_what_was_given_keeps_it(cluster):
    made = cluster.create("a", type="NodePort")
    body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}
    again = cluster.write("update", "a", {**body, "spec": {"type": "NodePort", "ports": [{"port": 81}]}})["spec"]
    assert again["clusterIPs"] == made["clusterIPs"] and again["ipFamilies"] == made["ipFamilies"]
    assert again["ports"][0]["nodePort"] == made["ports"][0]["nodePort"] and again["ports"][0]["port"] == 81


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"ipFamilies": ["IPv4", "IPv6"]}, "when multiple IP families are specified"),
        ({"ipFamilies": ["IPv4", "IPv4"], "ipFamilyPolicy": "PreferDualStack"}, "Duplicate value"),
        ({"clusterIP": "10.96.1.1", "ipFamilies": ["IPv6"]}, "expected an IPv6 value as indicated by"),
        ({"clusterIPs": ["10.96.1.1"]}, "must be empty when `clusterIP` is not specified"),
        ({"clusterIP": "None", "clusterIPs": ["None", "10.96.1.1"]}, "'None' must be the first and only value"),
    ],
)  # fmt: skip
def test_what_does_not_go_together(cluster, spec, problem):
    with pytest.raises(Invalid, match=problem):
        cluster.create("a", **spec)


def test_node_ports_come_and_go_with_the_type(cluster):
    before = cluster.create("a")
    after = cluster.patch("a", type="NodePort")
    port = after["ports"][0]["nodePort"]
    assert PORTS[0] <= port <= PORTS[1] and after["clusterIP"] == before["clusterIP"]
    assert cluster.patch("a", ports=[{"port": 80, "name": "x"}])["ports"][0]["nodePort"] == port
    with pytest.raises(Invalid, match="provided port is already allocated"):
        cluster.create("b", type="NodePort", ports=[{"port": 80, "nodePort": port}])
    last = cluster.patch("a", type="ClusterIP")
    assert "nodePort" not in last["ports"][0] and "externalTrafficPolicy" not in last


def test_a_mere_name_has_no_address(cluster):
    cluster.create("a")
    spec = cluster.patch("a", type="ExternalName", externalName="x.example.com")
    assert not {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"} & set(spec)


def test_a_health_port_is_drawn_for_local_traffic(cluster):
    spec = cluster.create("a", type="LoadBalancer", externalTrafficPolicy="Local")
    assert spec["healthCheckNodePort"] != spec["ports"][0]["nodePort"]


def block(cluster, name, cidr, ready="True"):
    body = {"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": {"name": name}}
    key = Key("networking.k8s.io", "ServiceCIDR", "", name)
    said = {"type": "Ready", "status": ready, "reason": "", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}

    def write(verb, body, subresource=""):
        request = Request(verb, key, body, subresource, actor="u", manager="m", options={"force": True})
        cluster.backend.write_now(request)

    write("create", {**body, "spec": {"cidrs": [cidr]}})
    if ready is not None:
        write("apply", {**body, "status": {"conditions": [said]}}, "status")


def test_addresses_come_out_of_every_block_that_is_ready():
    cluster = Cluster("192.0.2.0/30")
    block(cluster, "kubernetes", "192.0.2.0/30")
    assert {cluster.create(name)["clusterIP"] for name in "ab"} == {"192.0.2.1", "192.0.2.2"}
    block(cluster, "late", "198.51.100.0/24", ready="False")
    with pytest.raises(Exception, match="range is full"):
        cluster.create("c")
    with pytest.raises(Invalid, match="does not match the current range"):
        cluster.create("c", clusterIP="198.51.100.9")
    block(cluster, "more", "203.0.113.0/24")
    assert ip_address(cluster.create("c")["clusterIP"]) in ip_network("203.0.113.0/24")
    assert cluster.create("d", clusterIP="203.0.113.9")["clusterIP"] == "203.0.113.9"
    for end in (0, 255):
        with pytest.raises(Invalid, match="does not match the current range"):
            cluster.create("e", clusterIP=f"203.0.113.{end}")


def test_a_block_is_ready_until_somebody_says_that_it_is_not():
    cluster = Cluster("192.0.2.0/30")
    block(cluster, "new", "203.0.113.0/24", ready=None)
    assert {cluster.create(name)["clusterIP"] for name in "bc"} == {"192.0.2.1", "192.0.2.2"}, (
        "the configured one counts"
    )
    assert ip_address(cluster.create("a")["clusterIP"]) in ip_network("203.0.113.0/24")


def test_an_address_object_of_something_else_keeps_its_address():
    cluster = Cluster("192.0.2.0/30")
    key = Key("networking.k8s.io", "IPAddress", "", "192.0.2.1")
    body = {"apiVersion": "networking.k8s.io/v1", "kind": "IPAddress", "metadata": {"name": key.name}}
    ref = {"group": "x.io", "resource": "gateways", "name": "g"}
    cluster.backend.write_now(Request("create", key, {**body, "spec": {"parentRef": ref}}, actor="u", manager="m"))
    with pytest.raises(Invalid, match="already allocated"):
        cluster.create("a", clusterIP="192.0.2.1")
    assert cluster.create("a")["clusterIP"] == "192.0.2.2"
