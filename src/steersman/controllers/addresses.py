"""IPAddresses: one object for each address that a Service holds, kept as the Services are.

In Kubernetes it is written by the API server with the Service, and a repair loop makes it right where that failed; here
the Services themselves are what addresses are given out by (`api/admission/addresses.py`), and this loop does both: it
makes the object when a Service has an address, takes it away when the Service lets go, and tells only of what somebody
else changed. Source of the facts: Kubernetes 1.36, pkg/registry/core/service/ipallocator/controller (repairip.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import ip_address, ip_network
from typing import Any, ClassVar, Final

from steersman.api.client import Client
from steersman.api.controller import Controller, Find
from steersman.api.errors import AlreadyExists
from steersman.api.service_spec import ADDRESS, HEADLESS, family_of, is_of_service, used_address
from steersman.controllers.service_cidr import ALLOCATOR, MANAGED_BY
from steersman.controllers.serving import SERVICE
from steersman.kernel.effect import Event
from steersman.kernel.object import Key, Object
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
SOURCE: Final = "ipallocator-repair-controller"
FAMILY: Final = "ipaddress.kubernetes.io/ip-family"
CIDRS: Final = "networking.k8s.io/v1/ServiceCIDR"
LET_GO: Final = "let go"
"""In the namespace of a key (addresses have none): the Service that held the address does so no longer."""
LEAKED: Final = 60
"""Seconds after which an address that no Service ever held is cleaned up."""
YOUNG: Final = 5
"""Seconds that an address of a Service which does not show it yet is left alone."""


class IpAddresses(Controller):
    """Makes, repairs and deletes the IPAddresses of Services."""

    name = "ipallocator-repair-controller"
    kind = "v1/Service"
    reads = ("networking.k8s.io/v1/ServiceCIDR",)
    watches: ClassVar[Mapping[str, Any]] = {"networking.k8s.io/v1/IPAddress": lambda address: ()}

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """A Service whose addresses changed wakes itself, and those it let go; an address itself, one that is gone only
        where a Service holds it."""
        if event.key.gk == ADDRESS:
            held = event.new is not None or any(find("addresses", used_address(event.key.name)))
            return (event.key,) if held else ()
        before, after = _held(event.old), _held(event.new)
        if before == after:
            return ()
        gone = [Key(*ADDRESS, LET_GO, address) for address in before if address not in after]
        return gone if event.new is None else [event.key, *gone]

    def reconcile(self, c: Client, key: Key) -> None:
        """Raises what the API refused."""
        if key.gk == SERVICE:
            service = c.get(key)
            for text in () if service is None else _addresses(service["spec"]):
                _keep(c, service, text)
            return
        found = c.get(Key(*ADDRESS, "", key.name), fresh=True)
        if found is None:
            _restore(c, key.name)
        elif key.namespace == LET_GO:
            _let_go(c, found)
        elif (found["metadata"].get("labels") or EMPTY).get(MANAGED_BY) == ALLOCATOR:
            _judge(c, found)


def _held(service: Object | None) -> tuple[str, ...]:
    return () if service is None else _addresses(service.spec_value or EMPTY)


def _addresses(spec: Json) -> tuple[str, ...]:
    return tuple([text for text in spec.get("clusterIPs") or () if text != HEADLESS])


def _keep(c: Client, service: Json, text: str) -> None:
    """The object of one address of a Service is there, and names it."""
    family, meta = family_of(text), service["metadata"]
    blocks = [block for each in c.list(CIDRS) for block in each["spec"]["cidrs"]]
    if blocks and not any(ip_address(text) in ip_network(block) for block in blocks):
        detail = f"Cluster IP [{family}]: {text} is not within any configured Service CIDR; please recreate service"
        c.event(service, "Warning", "ClusterIPOutOfRange", detail, SOURCE)
        return
    found = c.get(Key(*ADDRESS, "", text), fresh=True)
    if found is None:
        _make(c, service, text)
        return
    ref = found["spec"].get("parentRef") or EMPTY
    place = f"{meta['namespace']}/{meta['name']}"
    wrong = f"the ClusterIP [{family}]: {text} for Service {place} has a wrong reference; repairing"
    if not is_of_service(found["spec"]):
        c.event(service, "Warning", "ClusterIPNotAllocated", wrong, SOURCE)
        _make(c, service, text, found)
    elif (ref.get("namespace"), ref.get("name")) != (meta["namespace"], meta["name"]):
        other = c.get(Key(*SERVICE, ref.get("namespace", ""), ref["name"]), fresh=True)
        if other is not None and text in _addresses(other["spec"]):
            detail = f"Cluster IP [{family}]:{text} was assigned to multiple services; please recreate service"
            c.event(service, "Warning", "ClusterIPAlreadyAllocated", detail, SOURCE)
        else:  # its last holder let it go a moment ago
            _make(c, service, text, found)
    elif not _labels(text).items() <= (found["metadata"].get("labels") or EMPTY).items():
        _make(c, service, text, found)


def _labels(text: str) -> dict[str, str]:
    return {FAMILY: family_of(text), MANAGED_BY: ALLOCATOR}


def _make(c: Client, service: Json, text: str, old: Json | None = None) -> None:
    if old is not None:
        c.delete(Key(*ADDRESS, "", text), uid=old["metadata"]["uid"])
    meta = service["metadata"]
    ref = {"resource": "services", "namespace": meta["namespace"], "name": meta["name"]}
    body = {"apiVersion": "networking.k8s.io/v1", "kind": "IPAddress"}
    try:
        c.create({**body, "metadata": {"name": text, "labels": _labels(text)}, "spec": {"parentRef": ref}})
    except AlreadyExists:  # its event wakes it
        return


def _restore(c: Client, text: str) -> None:
    """An address that somebody deleted while a Service holds it."""
    for service in c.list("v1/Service", fresh=True):
        if text in _addresses(service["spec"]):
            detail = f"Cluster IP [{family_of(text)}]: {text} is not allocated; repairing"
            c.event(service, "Warning", "ClusterIPNotAllocated", detail, SOURCE)
            _make(c, service, text)


def _let_go(c: Client, found: Json) -> None:
    """Deletes the object, unless a Service of its name holds the address again."""
    ref = found["spec"].get("parentRef") or EMPTY
    if not is_of_service(found["spec"]):
        return
    service = c.get(Key(*SERVICE, ref.get("namespace", ""), ref.get("name", "")), fresh=True)
    if service is None or found["metadata"]["name"] not in _addresses(service["spec"]):
        c.delete(Key(*ADDRESS, "", found["metadata"]["name"]), uid=found["metadata"]["uid"])


def _judge(c: Client, found: Json) -> None:
    """An address that says it is a Service's: cleaned up where it is not."""
    meta, ref = found["metadata"], found["spec"].get("parentRef") or EMPTY
    text = meta["name"]
    if not is_of_service(found["spec"]):
        detail = f"IPAddress {text} appears to have been modified, not referencing a Service {dict(ref)}: cleaning up"
        _clean_up(c, found, "IPAddressNotAllocated", detail)
        return
    place = f"{ref.get('namespace')}/{ref.get('name')}"
    service = c.get(Key(*SERVICE, ref.get("namespace", ""), ref.get("name", "")), fresh=True)
    if service is None:
        if c.after(meta["creationTimestamp"], LEAKED):
            detail = f"IPAddress: {text} for Service {place} appears to have leaked: cleaning up"
            _clean_up(c, found, "IPAddressNotAllocated", detail)
        return
    if text in _addresses(service["spec"]):
        if not _labels(text).items() <= (meta.get("labels") or EMPTY).items():
            _make(c, service, text, found)
        return
    if service["spec"].get("type") == "ExternalName" and not c.after(meta["creationTimestamp"], LEAKED):
        return
    newer = meta["creationTimestamp"] > service["metadata"]["creationTimestamp"]
    if newer and not c.after(meta["creationTimestamp"], YOUNG):
        return
    detail = f"IPAddress: {text} for Service {place} has a wrong reference; cleaning up"
    _clean_up(c, found, "IPAddressWrongReference", detail)


def _clean_up(c: Client, found: Json, reason: str, detail: str) -> None:
    c.event(found, "Warning", reason, detail, SOURCE)
    c.delete(Key(*ADDRESS, "", found["metadata"]["name"]), uid=found["metadata"]["uid"])
