"""node-ipam: every node gets a block of addresses for its pods, of each family there are addresses of.

Which addresses there are is said when a control plane starts (`allocating`); nothing routes them. Source of the facts:
Kubernetes 1.36, pkg/controller/nodeipam (range_allocator.go, cidrset), with its default sizes. What differs: the lowest
block that is free is given, where Kubernetes goes on from the last one given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, ClassVar, Final

from steersman.api.client import Client, key_of
from steersman.api.controller import Controller, Find
from steersman.controllers.node_zones import ZONES
from steersman.kernel.effect import Event
from steersman.kernel.value import EMPTY

Network = IPv4Network | IPv6Network
SOURCE: Final = "cidrAllocator"
SIZES: Final = {4: 24, 6: 64}
"""Bits of a node's block that are its network's (--node-cidr-mask-size-ipv4 and -ipv6)."""
MOST_BITS: Final = 16
"""Blocks that an IPv6 network may hold, as a power of two: as in Kubernetes."""


class NodeIpam(Controller):
    """Gives blocks to nodes."""

    name = "node-ipam-controller"
    kind = "v1/Node"
    reads = ("networking.k8s.io/v1/ServiceCIDR",)
    networks: ClassVar[tuple[Network, ...]] = ()

    def map_event(self, event: Event, find: Find) -> Iterable[Any]:
        """One key for all nodes, so that no two get a block at the same time: for a node without one, and for one that
        leaves its own."""
        if not self.networks:
            return ()
        without = event.new is not None and not (event.new.spec_value or EMPTY).get("podCIDRs")
        return (ZONES,) if without or event.new is None else ()

    def reconcile(self, c: Client, key: Any) -> None:
        """Gives every node without blocks one of each network. Raises what the API refused."""
        nodes = c.list("v1/Node", fresh=True)
        taken = {text for node in nodes for text in node["spec"].get("podCIDRs") or ()}
        services = [
            ip_network(text)
            for block in c.list("networking.k8s.io/v1/ServiceCIDR")
            for text in block["spec"].get("cidrs") or ()
        ]
        free = [_free(network, taken, services) for network in self.networks]
        for node in nodes:
            if node["spec"].get("podCIDRs"):
                continue
            blocks = [next(left, "") for left in free]
            if not all(blocks):
                name = node["metadata"]["name"]
                c.event(node, "Normal", "CIDRNotAvailable", f"Node {name} status is now: CIDRNotAvailable", SOURCE)
                continue
            c.patch(key_of(node), {"spec": {"podCIDR": blocks[0], "podCIDRs": blocks}})


def allocating(blocks: Sequence[str]) -> type[NodeIpam]:
    """The controller for these networks: one, or one of each family. Raises `ValueError` with a text for people."""
    networks = []
    for text in blocks:
        try:
            network = ip_network(text)
        except ValueError as problem:
            raise ValueError(
                f"{text!r} is no network of addresses ({problem}); write 10.244.0.0/16 or fd00::/48"
            ) from None
        bits = SIZES[network.version] - network.prefixlen
        if bits < 0 or (network.version == 6 and bits > MOST_BITS):
            least = f"/{SIZES[6] - MOST_BITS} to " if network.version == 6 else ""
            raise ValueError(
                f"{text} cannot be shared out in blocks of /{SIZES[network.version]}; "
                f"give one of {least}/{SIZES[network.version]}"
            )
        networks.append(network)
    if len(networks) > 2 or len({network.version for network in networks}) < len(networks):
        raise ValueError(f"{', '.join(blocks)}: give one network, or one of IPv4 and one of IPv6")
    return type(NodeIpam.__name__, (NodeIpam,), {"networks": tuple(networks)})


def _free(network: Network, taken: set[str], services: Sequence[Network]) -> Iterator[str]:
    """The blocks that no node has and no Service may, the lowest first."""
    ours = [other for other in services if other.version == network.version]
    for block in network.subnets(new_prefix=SIZES[network.version]):
        if str(block) not in taken and not any(block.overlaps(other) for other in ours):
            yield str(block)
