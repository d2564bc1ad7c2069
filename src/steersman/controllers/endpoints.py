"""The Endpoints controller: one object for a Service, with the addresses of its pods packed into subsets.

Source of the facts: Kubernetes 1.36, pkg/controller/endpoint and pkg/api/v1/endpoints (RepackSubsets). What differs:
subsets and ports are in the order of their contents, which Kubernetes sorts by a hash of Go's representation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil
from typing import Any, ClassVar, Final

from steersman.api.client import Client
from steersman.api.controller import Controller, Find
from steersman.api.errors import ApiError
from steersman.api.eviction import is_ready
from steersman.controllers import owned, serving, trigger_time
from steersman.kernel.effect import Event
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"
NAME: Final = "endpoint-controller"
OVER_CAPACITY: Final = "endpoints.kubernetes.io/over-capacity"
TRUNCATED: Final = "truncated"
MAX_ADDRESSES: Final = 1000
"""Addresses in one object; more are left out, those that are not ready first."""
LEADER: Final = "control-plane.alpha.kubernetes.io/leader"
"""An Endpoints object with this annotation is somebody's lock, not a Service's."""
ENDPOINTS: Final = ("", "Endpoints")


class EndpointsController(Controller):
    """Keeps the Endpoints of Services that have a selector."""

    name = "endpoints-controller"
    kind = "v1/Service"
    watches: ClassVar[Mapping[str, Any]] = {"v1/Pod": lambda pod: (), "v1/Endpoints": lambda endpoints: ()}

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """A Service wakes itself, a pod those that select it, Endpoints that came or went the Service of their name."""
        if event.key.gk != ENDPOINTS:
            return serving.woken(event, find)
        here = event.new is not None and event.old is not None
        return () if here else (Key("", "Service", event.key.namespace, event.key.name),)

    def reconcile(self, c: Client, key: Key) -> None:
        """Writes the Endpoints of one Service. Raises what the API refused."""
        service = c.get(key)
        place = Key(*ENDPOINTS, key.namespace, key.name)
        current = c.get(place)
        if service is None:
            if current is not None and LEADER not in (current["metadata"].get("annotations") or EMPTY):
                c.delete(place, uid=current["metadata"]["uid"])
            return
        if not serving.is_served(service):
            return
        listed = c.list("v1/Pod", key.namespace, labels={"matchLabels": service["spec"]["selector"]})
        pods = [pod for pod in listed if serving.may_serve(pod) and not owned.is_terminating(pod)]
        subsets = packed(_subsets(service, pods))
        wanted = _labels(service)
        left = truncated(subsets)
        if current is not None and _same(current, left, wanted, left is not subsets):
            return
        since = trigger_time.since(service, pods, None if current is None else _written(current))
        notes = trigger_time.noted(None if current is None else current["metadata"].get("annotations"), since)
        notes.pop(OVER_CAPACITY, None)
        if left is not subsets:
            notes[OVER_CAPACITY] = TRUNCATED
        meta: dict[str, Any] = {} if current is None else dict(current["metadata"])
        meta |= {"name": key.name, "namespace": key.namespace, "labels": wanted, "annotations": notes}
        meta.pop("managedFields", None)
        _write(c, current, {"apiVersion": "v1", "kind": "Endpoints", "metadata": meta, "subsets": left})


def _write(c: Client, current: Json | None, body: dict[str, Any]) -> None:
    try:
        if current is None:
            c.create(body)
        else:
            c.update(body)
    except ApiError as refused:
        if current is None and serving.namespace_goes(refused):
            return
        verb, meta = ("create", body["metadata"]) if current is None else ("update", body["metadata"])
        place = f"{meta['namespace']}/{meta['name']}"
        told = (
            f"Failed to create endpoint for service {place}"
            if current is None
            else f"Failed to update endpoint {place}"
        )
        c.event(body, "Warning", f"FailedTo{verb.capitalize()}Endpoint", f"{told}: {refused.message}", NAME)
        raise


def _written(current: Json) -> dict[str, bool]:
    """The pods there are addresses of, by uid, and which of them are said to be ready."""
    return {
        (address.get("targetRef") or EMPTY).get("uid", ""): field == "addresses"
        for subset in current.get("subsets") or ()
        for field in ("addresses", "notReadyAddresses")
        for address in subset.get(field) or ()
    }


def _labels(service: Json) -> dict[str, str]:
    labels = dict(service["metadata"].get("labels") or EMPTY)
    labels.pop(serving.HEADLESS_LABEL, None)
    if not serving.has_address(service):
        labels[serving.HEADLESS_LABEL] = ""
    return {**labels, MANAGED_BY: NAME}


def _same(current: Json, subsets: list[Any], labels: Mapping[str, str], over: bool) -> bool:
    meta = current["metadata"]
    marked = (meta.get("annotations") or EMPTY).get(OVER_CAPACITY) == TRUNCATED
    same_labels = (meta.get("labels") or EMPTY) == labels
    return same_labels and marked == over and packed(current.get("subsets") or ()) == subsets


def _subsets(service: Json, pods: Iterable[Json]) -> list[Any]:
    """One subset for each pod and port, not packed."""
    spec = service["spec"]
    out = []
    for pod in pods:
        address = _address(service, pod)
        if address is None:
            continue
        at = "addresses" if spec.get("publishNotReadyAddresses") or is_ready(pod) else "notReadyAddresses"
        if not spec.get("ports"):
            if spec.get("clusterIP") == serving.HEADLESS:
                out.append({at: [address]})
            continue
        for port in spec["ports"]:
            number = serving.port_of(pod, port)
            if number:
                kept = {field: port[field] for field in ("name", "protocol", "appProtocol") if port.get(field)}
                out.append({at: [address], "ports": [{**kept, "port": number}]})
    return out


def _address(service: Json, pod: Json) -> dict[str, Any] | None:
    """The pod's address of the Service's first family; None: it has none."""
    family = serving.families(service)[0]
    listed = serving.addresses(pod, family)
    if not listed:
        return None
    out = {"ip": listed[0], "nodeName": pod["spec"].get("nodeName", ""), "targetRef": serving.target(pod)}
    if serving.is_named(pod, service):
        out["hostname"] = pod["spec"]["hostname"]
    return out


def packed(subsets: Iterable[Json]) -> list[Any]:
    """The canonical form: ports that are offered by the very same addresses, equally ready, share a subset."""
    known: dict[tuple[str, str], Json] = {}
    offered: dict[tuple[Any, ...], dict[tuple[str, str], bool]] = {}
    ports: dict[tuple[Any, ...], Json | None] = {}
    for subset in subsets:
        for port in subset.get("ports") or (None,):
            mark = () if port is None else tuple(sorted(port.items()))
            ports[mark] = port
            here = offered.setdefault(mark, {})
            for field, ready in (("addresses", True), ("notReadyAddresses", False)):
                for address in subset.get(field) or ():
                    key = (address["ip"], (address.get("targetRef") or EMPTY).get("uid", ""))
                    known.setdefault(key, address)
                    here[key] = ready and here.get(key, True)  # not ready anywhere is not ready
    groups: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for mark, here in offered.items():
        groups.setdefault(tuple(sorted(here.items())), []).append(mark)
    out = []
    for members, marks in sorted(groups.items(), key=lambda item: (sorted(map(repr, item[1])), item[0])):
        subset = {}
        for field, wanted in (("addresses", True), ("notReadyAddresses", False)):
            found = [known[key] for key, ready in members if ready is wanted]
            if found:
                subset[field] = found
        listed = [ports[mark] for mark in sorted(marks, key=repr) if mark]
        out.append({**subset, "ports": listed} if listed else subset)
    return out


def truncated(subsets: list[Any]) -> list[Any]:
    """At most MAX_ADDRESSES of all addresses, each subset in proportion; the same list when all have room."""
    ready = sum(len(subset.get("addresses") or ()) for subset in subsets)
    unready = sum(len(subset.get("notReadyAddresses") or ()) for subset in subsets)
    if ready + unready <= MAX_ADDRESSES:
        return subsets
    cut = "addresses" if ready > MAX_ADDRESSES else "notReadyAddresses"
    room, total = (MAX_ADDRESSES, ready) if cut == "addresses" else (MAX_ADDRESSES - ready, unready)
    left, out = room, []
    for subset in subsets:
        share = min(ceil(len(subset.get(cut) or ()) / total * room), left)
        left -= share
        kept = {**subset, cut: list(subset.get(cut) or ())[:share]}
        if cut == "addresses":
            kept["notReadyAddresses"] = []
        out.append({field: value for field, value in kept.items() if value})
    return out
