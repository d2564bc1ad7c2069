"""The EndpointSlice controller: the endpoints of a Service in slices of up to a hundred, by address family and ports.

Source of the facts: Kubernetes 1.36, pkg/controller/endpointslice and staging/src/k8s.io/endpointslice
(reconciler.go, utils.go). As there, slices are changed as little as possible: what is no longer wanted goes, what is
new fills slices that change anyhow, then one unchanged slice that has room, then new ones. What differs: the topology
annotation gives no hints (it shares endpoints out by the CPUs of zones; trafficDistribution has taken its place).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from steersman.api.client import Client
from steersman.api.controller import Controller, Find
from steersman.api.endpoints import SERVICE_NAME
from steersman.api.errors import ApiError
from steersman.api.eviction import is_ready
from steersman.api.rules.service_rules import DISTRIBUTIONS
from steersman.controllers import owned, serving, trigger_time
from steersman.kernel.effect import GK, Event
from steersman.kernel.object import Key, Object
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
NAME: Final = "endpointslice-controller.k8s.io"
RESERVED: Final = (SERVICE_NAME, MANAGED_BY, serving.HEADLESS_LABEL)
ZONE: Final = "topology.kubernetes.io/zone"
HINTS: Final = "service.kubernetes.io/topology-aware-hints"
MODE: Final = "service.kubernetes.io/topology-mode"
SAME_NODE: Final = "PreferSameNode"
MAX_ENDPOINTS: Final = 100
"""Endpoints in one slice."""
MAX_NAME: Final = 253
SLICE: Final = ("discovery.k8s.io", "EndpointSlice")
NODE: Final = ("", "Node")


class NodeMissing(ApiError):
    """Pods are on nodes that are not there (yet): the slices are written without them, and looked at again. A refusal,
    as any missing object is one: no fault of the controller."""


class EndpointSliceController(Controller):
    """Keeps the EndpointSlices of Services that have a selector."""

    name = "endpointslice-controller"
    kind = "v1/Service"
    watches: ClassVar[Mapping[str, Any]] = {
        "v1/Pod": lambda pod: (),
        "v1/Node": lambda node: (),
        "discovery.k8s.io/v1/EndpointSlice": lambda slice_: (),
    }

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """A Service wakes itself, a pod those that select it, a slice its Service, and a node that came or changed its
        zone those that select a pod on it."""
        if event.key.gk == SLICE:
            return slice_woken(event, NAME, serving.SERVICE)
        if event.key.gk == NODE:
            return _node_woken(event, find)
        return serving.woken(event, find)

    def reconcile(self, c: Client, key: Key) -> None:
        """Writes the slices of one Service. Raises `NodeMissing`, and what the API refused."""
        service = c.get(key)
        if service is None:
            remember(c, f"{key.namespace}/{key.name}", ())  # the garbage collector has the slices
        if service is None or not serving.is_served(service):
            return
        selector = {"matchLabels": service["spec"]["selector"]}
        pods = [pod for pod in c.list("v1/Pod", key.namespace, labels=selector) if serving.may_serve(pod)]
        mine = {"matchLabels": {SERVICE_NAME: key.name, MANAGED_BY: NAME}}
        found = c.list("discovery.k8s.io/v1/EndpointSlice", key.namespace, labels=mine)
        known = [slice_ for slice_ in with_made(c, key, found) if not owned.is_terminating(slice_)]
        families = serving.families(service)
        since = trigger_time.since(service, pods, _written(known) if known else None)
        missing: dict[str, None] = {}
        names = dict.fromkeys(pod["spec"].get("nodeName") or "" for pod in pods)
        nodes = {name: c.get(Key(*NODE, "", name)) for name in names}
        for family in families:
            _Family(c, service, family, known, since).reconcile(pods, nodes, missing)
        for slice_ in known:
            if slice_["addressType"] not in families:
                c.delete(slice_, uid=slice_["metadata"]["uid"])
        if missing:
            text = f"Service {key.namespace}/{key.name}: no node for pods {', '.join(missing)}"
            raise NodeMissing(404, "NotFound", text)


def _written(slices: Iterable[Json]) -> dict[str, bool]:
    """The pods there are endpoints of, by uid, and which of them are said to serve."""
    return {
        (endpoint.get("targetRef") or EMPTY).get("uid", ""): bool((endpoint.get("conditions") or EMPTY).get("serving"))
        for slice_ in slices
        for endpoint in slice_.get("endpoints") or ()
    }


def slice_woken(event: Event, manager: str, owner: GK) -> Iterable[Key]:
    """What a slice that `manager` keeps wakes: the object of kind `owner` that it is named after."""
    keys: dict[Key, None] = {}
    for slice_ in (event.old, event.new):
        labels = (EMPTY if slice_ is None else slice_.meta.value.get("labels")) or EMPTY
        if labels.get(MANAGED_BY) == manager and labels.get(SERVICE_NAME):
            keys[Key(*owner, event.key.namespace, labels[SERVICE_NAME])] = None
    return keys


def _node_woken(event: Event, find: Find) -> Iterable[Key]:
    if event.old is not None and event.new is not None and _zone(event.old) == _zone(event.new):
        return ()
    keys: dict[Key, None] = {}
    for pod in find("node", event.key.name):
        for service in find("services", pod.key.namespace):
            if serving.selects({"spec": service.spec_value}, pod.meta.value.get("labels")):
                keys[service.key] = None
    return keys


def _zone(node: Object) -> str:
    return str((node.meta.value.get("labels") or EMPTY).get(ZONE) or "")


def with_made(c: Client, key: Key, seen: list[Any]) -> list[Any]:
    """The slices seen, but those that this controller wrote lately as they are now: the view may be behind."""
    place = f"{key.namespace}/{key.name}"
    out = {slice_["metadata"]["name"]: slice_ for slice_ in seen}
    written = c.memory.get(place) or ()
    behind = []
    for name in written:
        live = c.get(Key(*SLICE, key.namespace, name), fresh=True)
        if live is None:
            out.pop(name, None)
        elif live != out.get(name):
            out[name] = live
            behind.append(name)
    if written:
        remember(c, place, behind)
    return [out[name] for name in sorted(out)]


def remember(c: Client, place: str, written: Iterable[str]) -> None:
    """Notes which slices of a Service were written: `with_made` reads these live."""
    names = sorted(set(written))
    if names:
        c.memory[place] = names
    elif place in c.memory:
        del c.memory[place]


class _Family:
    """The slices of one Service and address family."""

    def __init__(self, c: Client, service: Json, family: str, known: list[Any], since: str) -> None:
        self.c, self.service, self.family, self.since = c, service, family, since
        here = [slice_ for slice_ in known if slice_["addressType"] == family]
        uid = service["metadata"]["uid"]
        self.mine = [s for s in here if any(o["uid"] == uid for o in s["metadata"].get("ownerReferences") or ())]
        self.strangers = [slice_ for slice_ in here if slice_ not in self.mine]
        self.creates: list[dict[str, Any]] = []
        self.updates: list[dict[str, Any]] = []
        self.deletes: list[Any] = []

    def reconcile(self, pods: list[Any], nodes: Mapping[str, Any], missing: dict[str, None]) -> None:
        """Brings the slices to what the pods ask for; `missing`: pods without a node, added to."""
        wanted = self._wanted(pods, nodes, missing)
        for ports, (shown, endpoints) in wanted.items():
            here = [slice_ for slice_ in self.mine if port_mark(slice_.get("ports") or ()) == ports]
            self._pack(here, shown, endpoints)
        stale = [slice_ for slice_ in self.mine if port_mark(slice_.get("ports") or ()) not in wanted]
        self.deletes += stale
        if len(self.deletes) == len(self.mine) and not self.creates:
            self._leave_one()
        self._write()

    def _wanted(
        self, pods: list[Any], nodes: Mapping[str, Any], missing: dict[str, None]
    ) -> dict[Any, tuple[list[Any], dict[Any, Any]]]:
        """Port mark → (ports, mark of an endpoint → endpoint)."""
        out: dict[Any, tuple[list[Any], dict[Any, Any]]] = {}
        public = self.service["spec"].get("publishNotReadyAddresses")
        for pod in pods:
            ports = _ports(self.service, pod)
            group = out.setdefault(port_mark(ports), (ports, {}))[1]
            node = nodes[pod["spec"].get("nodeName") or ""]
            if node is None and not public:
                missing[pod["metadata"]["name"]] = None
                continue
            endpoint = _endpoint(pod, node, self.service, self.family)
            if endpoint["addresses"]:
                group[slot(endpoint)] = endpoint
        return out

    def _pack(self, here: list[Any], ports: list[Any], wanted: dict[Any, Any]) -> None:
        """Fits the endpoints of one set of ports into slices."""
        changed, unchanged = {}, {}
        labels = _labels(self.service)
        for slice_ in here:
            before = list(slice_.get("endpoints") or ())
            kept = [wanted.pop(slot(each)) for each in before if slot(each) in wanted]
            name = slice_["metadata"]["name"]
            if kept != before and not kept:
                self.deletes.append(slice_)
            elif kept != before or (slice_["metadata"].get("labels") or EMPTY) != labels:
                changed[name] = (slice_, kept)
            else:
                unchanged[name] = (slice_, kept)
        left = list(wanted.values())
        for _, kept in sorted(changed.values(), key=lambda item: -len(item[1])):
            while left and len(kept) < MAX_ENDPOINTS:
                kept.append(left.pop(0))
        while left:
            name = _with_room(unchanged, len(left))
            if name:
                changed[name] = unchanged.pop(name)
                changed[name][1].extend(left)
                break
            self.creates.append(self._new(ports, left[:MAX_ENDPOINTS]))
            left = left[MAX_ENDPOINTS:]
        for slice_, endpoints in changed.values():
            self.updates.append(self._next(slice_, slice_.get("ports") or [], endpoints))

    def _leave_one(self) -> None:
        """A Service without endpoints has one slice that says so."""
        blank = self._new([], [])
        only = self.deletes[0] if len(self.deletes) == 1 else None
        same = only is not None and not only.get("endpoints") and not only.get("ports")
        if same and (only["metadata"].get("labels") or EMPTY) == blank["metadata"]["labels"]:  # type: ignore[index]
            self.deletes = []
        else:
            self.creates.append(blank)

    def _new(self, ports: list[Any], endpoints: list[Any]) -> dict[str, Any]:
        meta = self.service["metadata"]
        return {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "generateName": name_prefix(meta["name"]),
                "namespace": meta["namespace"],
                "labels": _labels(self.service),
                "annotations": trigger_time.noted(None, self.since),
                "ownerReferences": [owned.controller_ref({**self.service, "apiVersion": "v1", "kind": "Service"})],
            },
            "addressType": self.family,
            "endpoints": endpoints,
            "ports": ports,
        }

    def _next(self, slice_: Any, ports: Any, endpoints: list[Any]) -> dict[str, Any]:
        meta = {**slice_["metadata"], "labels": _labels(self.service)}
        meta["annotations"] = trigger_time.noted(meta.get("annotations"), self.since)
        meta.pop("managedFields", None)
        return {**slice_, "metadata": meta, "ports": ports, "endpoints": endpoints}

    def _write(self) -> None:
        while self.creates and self.deletes:  # a slice that would go takes what a new one would hold
            made, slice_ = self.creates.pop(), self.deletes.pop(0)
            self.updates.append(self._next(slice_, made["ports"], made["endpoints"]))
        creates = () if serving.is_going(self.service) else self.creates
        write(self.c, self.service, creates, self.updates, (*self.deletes, *self.strangers))


def write(c: Client, owner: Json, creates: Iterable[Json], updates: Iterable[Json], deletes: Iterable[Json]) -> None:
    """Writes the slices of `owner`, and remembers which. A namespace that goes takes none: then that is all."""
    place = f"{owner['metadata']['namespace']}/{owner['metadata']['name']}"

    def note(written: Json) -> None:
        remember(c, place, [*(c.memory.get(place) or ()), written["metadata"]["name"]])

    for body in creates:
        try:
            note(c.create(body))
        except ApiError as refused:
            if serving.namespace_goes(refused):
                return
            raise
    for body in updates:
        note(c.update(body))
    for slice_ in deletes:
        c.delete(slice_, uid=slice_["metadata"]["uid"])


def name_prefix(name: str) -> str:
    """What the names of the slices of a Service begin with."""
    return f"{name}-" if len(name) < MAX_NAME else name


def _with_room(slices: Mapping[str, tuple[Any, list[Any]]], count: int) -> str:
    """The slice that `count` more endpoints fill best; "" if none has the room."""
    best, least = "", MAX_ENDPOINTS
    for name, (_, endpoints) in slices.items():
        room = MAX_ENDPOINTS - len(endpoints) - count
        if 0 <= room < least:
            best, least = name, room
    return best


def _labels(service: Json) -> dict[str, str]:
    labels = service["metadata"].get("labels") or EMPTY
    out = {name: value for name, value in labels.items() if name not in RESERVED}
    if not serving.has_address(service):
        out[serving.HEADLESS_LABEL] = ""
    return {**out, SERVICE_NAME: service["metadata"]["name"], MANAGED_BY: NAME}


def _ports(service: Json, pod: Json) -> list[Any]:
    out = []
    for port in service["spec"].get("ports") or ():
        number = serving.port_of(pod, port)
        if number:
            shown = {"name": port.get("name", ""), "port": number, "protocol": port.get("protocol", "TCP")}
            if port.get("appProtocol"):
                shown["appProtocol"] = port["appProtocol"]
            out.append(shown)
    return sorted(out, key=lambda each: sorted(map(str, each.items())))


def port_mark(ports: Iterable[Json]) -> tuple[Any, ...]:
    """What makes two lists of ports the same, whatever their order."""
    return tuple(sorted(tuple(sorted(map(str, port.items()))) for port in ports))


def slot(endpoint: Json) -> tuple[Any, ...]:
    """What makes two endpoints the same one, however ready they are."""
    ref = endpoint.get("targetRef") or EMPTY
    return (
        *sorted(endpoint.get("addresses") or ()),
        endpoint.get("hostname", ""),
        ref.get("namespace"),
        ref.get("name"),
    )


def _endpoint(pod: Json, node: Json | None, service: Json, family: str) -> dict[str, Any]:
    serves, goes = is_ready(pod), owned.is_terminating(pod)
    ready = bool(service["spec"].get("publishNotReadyAddresses")) or (serves and not goes)
    out: dict[str, Any] = {
        "addresses": serving.addresses(pod, family),
        "conditions": {"ready": ready, "serving": serves, "terminating": goes},
        "targetRef": serving.target(pod),
    }
    if pod["spec"].get("nodeName"):
        out["nodeName"] = pod["spec"]["nodeName"]
    zone = (EMPTY if node is None else node["metadata"].get("labels") or EMPTY).get(ZONE)
    if zone:
        out["zone"] = zone
    if serving.is_named(pod, service):
        out["hostname"] = pod["spec"]["hostname"]
    hints = _hints(service, out)
    return {**out, "hints": hints} if hints else out


def _hints(service: Json, endpoint: Json) -> dict[str, Any]:
    """Who the endpoint is for: those in its zone, or on its node, as the Service's trafficDistribution says."""
    wanted = service["spec"].get("trafficDistribution")
    notes = service["metadata"].get("annotations") or EMPTY
    by_topology = notes.get(HINTS, notes.get(MODE)) in ("Auto", "auto")
    if wanted not in DISTRIBUTIONS or by_topology or not endpoint["conditions"]["ready"]:
        return {}
    out: dict[str, Any] = {}
    if endpoint.get("zone"):
        out["forZones"] = [{"name": endpoint["zone"]}]
    if endpoint.get("nodeName") and wanted == SAME_NODE:
        out["forNodes"] = [{"name": endpoint["nodeName"]}]
    return out
