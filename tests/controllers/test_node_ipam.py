"""Blocks of addresses for nodes."""

import pytest

from steersman.controllers.node_ipam import NodeIpam, allocating
from steersman.kernel.object import Key
from steersman.run.daemon import sharing_out
from steersman.run.load import StartError
from tests.controllers.services import node
from tests.controllers.worlds import client, make, objects, settle


def blocks(w):
    return {each.metadata.name: list(each.spec.get("podCIDRs") or ()) for each in objects(w, "v1/Node")}


def test_every_node_gets_one_of_each_family_and_what_is_free_is_given_again():
    w = settle(make([allocating(["10.244.0.0/16", "fd00::/48"])], [node("a"), node("b")]))
    assert blocks(w) == {"a": ["10.244.0.0/24", "fd00::/64"], "b": ["10.244.1.0/24", "fd00:0:0:1::/64"]}
    assert objects(w, "v1/Node")[0].spec.podCIDR == "10.244.0.0/24"
    client(w).delete(Key("", "Node", "", "a"))
    client(w).create(node("c"))
    assert blocks(settle(w))["c"] == ["10.244.0.0/24", "fd00::/64"]


def test_who_comes_too_late_waits_for_one_to_leave_and_services_keep_theirs():
    services = {"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": {"name": "kubernetes"}}
    services["spec"] = {"cidrs": ["10.244.0.0/24"]}
    w = settle(make([allocating(["10.244.0.0/23"])], [services, node("a"), node("b")]))
    assert blocks(w) == {"a": ["10.244.1.0/24"], "b": []}
    client(w).delete(Key("", "Node", "", "a"))
    assert blocks(settle(w)) == {"b": ["10.244.1.0/24"]}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("10.244.0.0", "10.244.0.0 cannot be shared out in blocks of /24"),
        ("10.244.0.0/33", "'10.244.0.0/33' is no network of addresses"),
        ("fd00::/40", "fd00::/40 cannot be shared out in blocks of /64; give one of /48 to /64"),
        ("10.0.0.0/16,10.1.0.0/16", "give one network, or one of IPv4 and one of IPv6"),
    ],
)
def test_what_cannot_be_shared_out_is_told(text, told):
    with pytest.raises(StartError, match=r"^--cluster-cidr: ") as refused:
        sharing_out([NodeIpam], text)
    assert told in str(refused.value)
    with pytest.raises(StartError, match="somebody else runs"):
        sharing_out([], text)
