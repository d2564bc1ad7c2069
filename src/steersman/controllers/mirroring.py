"""EndpointSlice mirroring: Endpoints that somebody keeps by hand for a Service without a selector, as slices.

Source of the facts: Kubernetes 1.36, pkg/controller/endpointslicemirroring. As there, one slice holds one subset of one
address family, of at most a thousand addresses. What differs: the endpoints of a slice are in the order of the
addresses, which Kubernetes takes out of a map.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from typing import Any, ClassVar, Final

from steersman.api.client import Client
from steersman.api.controller import Controller, Find
from steersman.api.endpoints import SERVICE_NAME
from steersman.api.service_spec import IPV4, IPV6, family_of
from steersman.controllers import owned, serving
from steersman.controllers.endpoints import ENDPOINTS, LEADER, packed
from steersman.controllers.endpointslice import (
    MANAGED_BY,
    SLICE,
    name_prefix,
    port_mark,
    remember,
    slice_woken,
    slot,
    with_made,
    write,
)
from steersman.controllers.trigger_time import TRIGGER_TIME
from steersman.kernel.effect import Event
from steersman.kernel.object import Key, Object
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
NAME: Final = "endpointslicemirroring-controller.k8s.io"
SOURCE: Final = "endpoint-slice-mirroring-controller"
SKIP: Final = "endpointslice.kubernetes.io/skip-mirror"
MAX_ADDRESSES: Final = 1000
"""Addresses mirrored of one subset (--mirroring-max-endpoints-per-subset)."""
NOT_COPIED: Final = (
    TRIGGER_TIME,
    "kubectl.kubernetes.io/last-applied-configuration",
)
Group = tuple[str, tuple[Any, ...]]
"""(address family, mark of the ports): what one slice is of."""


class EndpointSliceMirroring(Controller):
    """Keeps slices of Endpoints whose Service has no selector."""

    name = "endpointslice-mirroring-controller"
    kind = "v1/Endpoints"
    watches: ClassVar[Mapping[str, Any]] = {
        "v1/Service": lambda service: (),
        "discovery.k8s.io/v1/EndpointSlice": lambda slice_: (),
    }

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """Endpoints that are or were mirrored wake themselves, a slice the Endpoints it is of, and a Service those of
        its name when it begins or ends to have no selector."""
        if event.key.gk == SLICE:
            return slice_woken(event, NAME, ENDPOINTS)
        key = Key(*ENDPOINTS, event.key.namespace, event.key.name)
        if event.key.gk == serving.SERVICE:
            before, after = _is_unselected(event.old), _is_unselected(event.new)
            return (key,) if before != after else ()
        shown = [obj for obj in (event.old, event.new) if obj is not None]
        return (key,) if any(_is_mirrored(obj.meta.value) for obj in shown) else ()

    def reconcile(self, c: Client, key: Key) -> None:
        """Writes the slices of one Endpoints object. Raises what the API refused."""
        endpoints = c.get(key)
        service = c.get(Key(*serving.SERVICE, key.namespace, key.name))
        labels = {"matchLabels": {SERVICE_NAME: key.name, MANAGED_BY: NAME}}
        seen = c.list("discovery.k8s.io/v1/EndpointSlice", key.namespace, labels=labels)
        wanted = service is not None and "selector" not in service["spec"]
        if endpoints is None or not wanted or not _is_mirrored(endpoints["metadata"]):
            remember(c, f"{key.namespace}/{key.name}", ())
            for slice_ in seen:
                c.delete(slice_, uid=slice_["metadata"]["uid"])
            return
        known = [slice_ for slice_ in with_made(c, key, seen) if not owned.is_terminating(slice_)]
        creates, updates, deletes = _changes(endpoints, known, _wanted(c, endpoints))
        write(c, endpoints, () if owned.is_terminating(endpoints) else creates, updates, deletes)


def _is_unselected(service: Object | None) -> bool:
    return service is not None and "selector" not in (service.spec_value or EMPTY)


def _is_mirrored(meta: Json) -> bool:
    return (meta.get("labels") or EMPTY).get(SKIP) != "true" and LEADER not in (meta.get("annotations") or EMPTY)


def _wanted(c: Client, endpoints: Json) -> dict[Group, tuple[list[Any], dict[Any, Any]]]:
    """Group → (ports, mark of an endpoint → endpoint); tells of addresses that are left out."""
    out: dict[Group, tuple[list[Any], dict[Any, Any]]] = {}
    invalid = skipped = 0
    for subset in packed(endpoints.get("subsets") or ()):
        ports = [_port(port) for port in subset.get("ports") or ()]
        mark = port_mark(ports)
        for family in (IPV4, IPV6):
            out.setdefault((family, mark), (ports, {}))
        given = [(each, True) for each in subset.get("addresses") or ()]
        given += [(each, False) for each in subset.get("notReadyAddresses") or ()]
        taken = 0
        for address, ready in given:
            if taken >= MAX_ADDRESSES:
                break
            endpoint = _endpoint(address, ready)
            if endpoint is None:
                invalid += 1
                continue
            out[family_of(endpoint["addresses"][0]), mark][1][slot(endpoint)] = endpoint
            taken += 1
        skipped += len(given) - taken
    if invalid:
        text = f"Skipped {invalid} invalid IP addresses when mirroring to EndpointSlices"
        c.event(endpoints, "Warning", "InvalidIPAddress", text, SOURCE)
    if skipped > invalid:
        text = (
            f"A max of {MAX_ADDRESSES} addresses can be mirrored to EndpointSlices per Endpoints subset. "
            f"{skipped} addresses were skipped"
        )
        c.event(endpoints, "Warning", "TooManyAddressesToMirror", text, SOURCE)
    return out


def _port(port: Json) -> dict[str, Any]:
    shown = {"name": port.get("name", ""), "port": port["port"], "protocol": port.get("protocol", "TCP")}
    return {**shown, "appProtocol": port["appProtocol"]} if "appProtocol" in port else shown


def _endpoint(address: Json, ready: bool) -> dict[str, Any] | None:
    try:
        parsed = ip_address(address["ip"])
    except ValueError:
        return None
    out: dict[str, Any] = {"addresses": [str(parsed)], "conditions": {"ready": ready}}
    for field in ("nodeName", "hostname", "targetRef"):
        if address.get(field):
            out[field] = address[field]
    return out


def _changes(
    endpoints: Json, known: list[Any], wanted: Mapping[Group, tuple[list[Any], dict[Any, Any]]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[Any]]:
    """Slices to create, to update and to delete."""
    creates: list[dict[str, Any]] = []
    updates: list[dict[str, Any]] = []
    deletes: list[Any] = []
    by_group: dict[Group, list[Any]] = {}
    for slice_ in known:
        by_group.setdefault((slice_["addressType"], port_mark(slice_.get("ports") or ())), []).append(slice_)
    for group, (ports, listed) in wanted.items():
        here = by_group.pop(group, [])
        if not listed:
            deletes += here
            continue
        deletes += here[1:]
        if here and _is_right(endpoints, here[0], listed):
            continue
        body = _slice(endpoints, group[0], ports, list(listed.values())[:MAX_ADDRESSES])
        if here:
            updates.append(_named(body, here[0]))
        else:
            creates.append(body)
    deletes += [slice_ for here in by_group.values() for slice_ in here]
    for body in list(creates):  # a slice that would go takes what a new one of its family would hold
        spare = next((each for each in deletes if each["addressType"] == body["addressType"]), None)
        if spare is not None:
            creates.remove(body)
            deletes.remove(spare)
            updates.append(_named(body, spare))
    return creates, updates, deletes


def _is_right(endpoints: Json, slice_: Json, wanted: Mapping[Any, Any]) -> bool:
    meta, theirs = slice_["metadata"], endpoints["metadata"]
    for owner in meta.get("ownerReferences") or ():
        if owner["kind"] == "Endpoints" and owner["name"] == theirs["name"] and owner["uid"] != theirs["uid"]:
            return False
    have = {slot(each): each for each in slice_.get("endpoints") or ()}
    own = {
        name: value for name, value in (meta.get("labels") or EMPTY).items() if name not in (MANAGED_BY, SERVICE_NAME)
    }
    return (
        have == wanted
        and own == (theirs.get("labels") or EMPTY)
        and (meta.get("annotations") or EMPTY) == _notes(theirs)
    )


def _notes(meta: Json) -> dict[str, str]:
    return {name: value for name, value in (meta.get("annotations") or EMPTY).items() if name not in NOT_COPIED}


def _slice(endpoints: Json, family: str, ports: list[Any], listed: list[Any]) -> dict[str, Any]:
    meta = endpoints["metadata"]
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "generateName": name_prefix(meta["name"]),
            "namespace": meta["namespace"],
            "labels": {**(meta.get("labels") or EMPTY), SERVICE_NAME: meta["name"], MANAGED_BY: NAME},
            "annotations": _notes(meta),
            "ownerReferences": [owned.controller_ref(endpoints)],
        },
        "addressType": family,
        "endpoints": listed,
        "ports": ports,
    }


def _named(body: dict[str, Any], slice_: Json) -> dict[str, Any]:
    """The body as the next version of a slice there is."""
    meta = {field: value for field, value in body["metadata"].items() if field != "generateName"}
    return {**body, "metadata": {**meta, "name": slice_["metadata"]["name"]}}
