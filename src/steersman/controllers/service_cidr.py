"""ServiceCIDRs: the blocks that Services get their addresses from are made ready, and kept while they are needed.

A block that is being deleted goes when all of its addresses in use are in other blocks as well, ten seconds later at
the earliest. Source of the facts: Kubernetes 1.36, pkg/controller/servicecidrs and pkg/api/servicecidr.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, ClassVar, Final

from steersman.api.client import Client, key_of
from steersman.api.controller import Controller, Find
from steersman.api.service_spec import CIDR
from steersman.controllers import owned
from steersman.controllers.conditions import find as condition_of
from steersman.kernel.effect import Event
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
FINALIZER: Final = "networking.k8s.io/service-cidr-finalizer"
MANAGED_BY: Final = "ipaddress.kubernetes.io/managed-by"
ALLOCATOR: Final = "ipallocator.k8s.io"
GRACE: Final = 10
"""Seconds that a block stays after the request to delete it: allocators hear of it in the meantime."""
EVERY_BLOCK: Final = Key(*CIDR, "", "")
"""Stands for every block that is being deleted: an address or another block came or went."""
READY: Final = ("True", "", "Kubernetes Service CIDR is ready")
IN_USE: Final = (
    "False",
    "Terminating",
    "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR",
)
"""(status, reason, message) of the condition Ready."""


class ServiceCidrs(Controller):
    """Keeps finalizers and conditions of ServiceCIDRs."""

    name = "service-cidr-controller"
    kind = "networking.k8s.io/v1/ServiceCIDR"
    watches: ClassVar[Mapping[str, Any]] = {"networking.k8s.io/v1/IPAddress": lambda address: ()}

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """A block wakes itself, and one that came those that go; so does an address that came or went."""
        changed = event.old is not None and event.new is not None
        if event.key.gk == CIDR:
            return (event.key,) if changed else (event.key, EVERY_BLOCK)
        return () if changed else (EVERY_BLOCK,)

    def reconcile(self, c: Client, key: Key) -> None:
        if key == EVERY_BLOCK:
            for block in c.list(self.kind):
                if owned.is_terminating(block):
                    _release(c, block)
            return
        block = c.get(key)
        if block is None:
            return
        if owned.is_terminating(block):
            _release(c, block)
            return
        finalizers = list(block["metadata"].get("finalizers") or ())
        if FINALIZER not in finalizers:
            patch = {"metadata": {"finalizers": [*finalizers, FINALIZER]}}
            block = c.patch(key, patch, rv=block["metadata"]["resourceVersion"])
        _tell(c, block, READY)


def _release(c: Client, block: Json) -> None:
    """Lets a block go that nobody needs."""
    meta = block["metadata"]
    finalizers = list(meta.get("finalizers") or ())
    if FINALIZER not in finalizers:
        return
    if not _is_free(c, block):
        _tell(c, block, IN_USE)
    elif c.after(meta["deletionTimestamp"], GRACE):
        finalizers.remove(FINALIZER)
        c.patch(key_of(block), {"metadata": {"finalizers": finalizers or None}}, rv=meta["resourceVersion"])


def _is_free(c: Client, block: Json) -> bool:
    """Whether others have all of a block, or at least the addresses of it that are in use."""
    others = [
        ip_network(text)
        for other in c.list("networking.k8s.io/v1/ServiceCIDR", fresh=True)
        if other["metadata"]["name"] != block["metadata"]["name"]
        for text in other["spec"]["cidrs"]
    ]
    mine = [ip_network(text) for text in block["spec"]["cidrs"]]
    if all(any(_contains(other, each) for other in others) for each in mine):
        return True
    labels = {"matchLabels": {MANAGED_BY: ALLOCATOR}}
    for found in c.list("networking.k8s.io/v1/IPAddress", labels=labels, fresh=True):
        address = ip_address(found["metadata"]["name"])
        if _within(address, mine) and not _within(address, others):
            return False
    return True


def _contains(outer: IPv4Network | IPv6Network, inner: IPv4Network | IPv6Network) -> bool:
    return outer.version == inner.version and inner.subnet_of(outer)  # type: ignore[arg-type]


def _within(address: IPv4Address | IPv6Address, blocks: list[IPv4Network | IPv6Network]) -> bool:
    return any(address in block for block in blocks)


def _tell(c: Client, block: Json, said: tuple[str, str, str]) -> None:
    status, reason, message = said
    have = condition_of((block.get("status") or EMPTY).get("conditions") or (), "Ready") or EMPTY
    if (have.get("status"), have.get("reason", ""), have.get("message", "")) == said:
        return
    ready = {"type": "Ready", "status": status, "reason": reason, "message": message}
    ready["lastTransitionTime"] = c.timestamp()
    body = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": {"name": block["metadata"]["name"]},
    }
    c.apply({**body, "status": {"conditions": [ready]}}, force=True, subresource="status")
