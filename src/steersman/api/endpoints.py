"""Who answers for a service: the endpoints behind one of its ports.

Source of the rules: Kubernetes 1.36, apiserver pkg/util/proxy/proxy.go, kube-aggregator's service resolver, and
kube-proxy (an endpoint that ends, and still serves, is used where no other is ready).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from steersman.kernel.object import Key
from steersman.kernel.store import Store
from steersman.kernel.value import EMPTY

SLICE: Final = ("discovery.k8s.io", "EndpointSlice")
SERVICE_NAME: Final = "kubernetes.io/service-name"


class Endpoint(NamedTuple):
    """One place behind a service."""

    host: str
    port: int
    pod: Key | None = None
    """The pod there, if one is named."""

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def slices(store: Store, namespace: str, name: str) -> Iterator[Mapping[str, Any]]:
    """The EndpointSlices of a service."""
    for obj in store.list(SLICE, namespace):
        if (obj.meta.value.get("labels") or EMPTY).get(SERVICE_NAME) == name:
            yield obj.value


def endpoints(store: Store, namespace: str, name: str, port: str) -> tuple[Endpoint, ...]:
    """The ready endpoints behind a service's port of that name, else those that still serve while they end, else what
    its Endpoints say; each once, in order."""
    ready: dict[Endpoint, None] = {}
    ending: dict[Endpoint, None] = {}
    for each in slices(store, namespace, name):
        number = _port(each.get("ports") or (), port)
        for endpoint in each.get("endpoints") or () if number else ():
            conditions = endpoint.get("conditions") or EMPTY
            for host in (endpoint.get("addresses") or ())[:1]:  # any of them will do
                found = Endpoint(host, number, _pod(endpoint.get("targetRef") or EMPTY, namespace))
                if conditions.get("ready") is not False:
                    ready[found] = None
                elif conditions.get("serving") and conditions.get("terminating"):
                    ending[found] = None
    if ready or ending:
        return tuple(ready or ending)
    old = store.get(Key("", "Endpoints", namespace, name))
    for subset in () if old is None else old.value.get("subsets") or ():
        number = _port(subset.get("ports") or (), port)
        for address in subset.get("addresses") or () if number else ():
            ready[Endpoint(address["ip"], number, _pod(address.get("targetRef") or EMPTY, namespace))] = None
    return tuple(ready)


def _port(ports: Any, wanted: str) -> int:
    return next((p.get("port") or 0 for p in ports if (p.get("name") or "") == wanted), 0)


def _pod(ref: Mapping[str, Any], namespace: str) -> Key | None:
    if ref.get("kind") != "Pod":
        return None
    return Key("", "Pod", ref.get("namespace") or namespace, ref.get("name") or "")
