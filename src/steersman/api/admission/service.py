"""Where a webhook is: a URL as it is given, or a service, found by its endpoints.

Kubernetes' API server connects to the address of the service, behind which kube-proxy chooses an endpoint; here nobody
translates service addresses, so whoever calls takes the ready endpoints in turn. What is asked for and what is checked
of the certificate is the same: SERVICE.NAMESPACE.svc. Source: Kubernetes 1.36, apiserver pkg/util/proxy/proxy.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from steersman.kernel.effect import ListQuery
from steersman.kernel.object import Key
from steersman.kernel.store import Store
from steersman.kernel.value import EMPTY

SLICE: Final = ("discovery.k8s.io", "EndpointSlice")
SERVICE_LABEL: Final = "kubernetes.io/service-name"
HTTPS: Final = 443
MAX_ADDRESSES: Final = 100
"""Endpoints among which is chosen: as many as a slice has by default."""
_URL: Final = re.compile(r"https://(\[[0-9A-Fa-f:.]+\]|[^/?#@:\s]+)(?::(\d{1,5}))?(/[^?#\s]*)?")


class Place(NamedTuple):
    """An address, or why there is none."""

    url: str
    host: str
    fault: str = ""
    addresses: tuple[str, ...] = ()
    """HOST:PORT of the endpoints that answer for the URL, any of them; (): the URL's own host does."""


def place_of(store: Store, client: Mapping[str, Any]) -> Place:
    """The place a clientConfig means."""
    url = client.get("url")
    if url:
        match = _URL.fullmatch(url)
        if match is None:
            return Place("", "", f"{url!r} cannot be called; write https://HOST:PORT/PATH")
        return Place(url, match[1].strip("[]"))
    service = client.get("service")
    if not service:
        return Place("", "", "webhook configuration must have either service or URL")
    return _service_place(store, service)


def _service_place(store: Store, given: Mapping[str, Any]) -> Place:
    namespace, name = given.get("namespace") or "", given.get("name") or ""
    port = given.get("port") or HTTPS
    found = store.get(Key("", "Service", namespace, name))
    if found is None:
        return Place("", "", f'service "{name}" not found')
    spec = found.spec_value or EMPTY
    host, path = f"{name}.{namespace}.svc", given.get("path") or "/"
    path = path if path.startswith("/") else f"/{path}"
    url = f"https://{host}:{port}{path}"
    if spec.get("type") == "ExternalName":
        return Place(url, host, addresses=(_joined(str(spec.get("externalName")), port),))
    if spec.get("clusterIP") == "None":
        return Place("", "", 'cannot route to service with ClusterIP "None"')
    entry = next((p for p in spec.get("ports") or () if p.get("port") == port), None)
    if entry is None:
        return Place("", "", f'no service port {port} found for service "{name}"')
    addresses = _endpoints(store, namespace, name, entry)
    if not addresses:
        return Place("", "", f'no endpoints available for service "{name}"')
    sticky = spec.get("sessionAffinity") == "ClientIP"  # and this server is always the same client
    return Place(url, host, addresses=addresses[:1] if sticky else addresses[:MAX_ADDRESSES])


def _endpoints(store: Store, namespace: str, name: str, entry: Mapping[str, Any]) -> tuple[str, ...]:
    """HOST:PORT of the ready endpoints by the slices, else of those that still serve while they end, else by the
    Endpoints; each once, in order."""
    wanted = entry.get("name") or ""
    ready: dict[str, None] = {}
    ending: dict[str, None] = {}
    for obj in store.query(ListQuery(SLICE, namespace)):
        if (obj.meta.value.get("labels") or EMPTY).get(SERVICE_LABEL) != name:
            continue
        value = obj.value
        number = _port(value.get("ports") or (), wanted)
        for endpoint in value.get("endpoints") or () if number else ():
            conditions = endpoint.get("conditions") or EMPTY
            for address in (endpoint.get("addresses") or ())[:1]:
                if conditions.get("ready") is not False:
                    ready[_joined(address, number)] = None
                elif conditions.get("serving") and conditions.get("terminating"):
                    ending[_joined(address, number)] = None
    if ready or ending:
        return tuple(ready or ending)
    old = store.get(Key("", "Endpoints", namespace, name))
    for subset in () if old is None else old.value.get("subsets") or ():
        number = _port(subset.get("ports") or (), wanted)
        for address in subset.get("addresses") or () if number else ():
            ready[_joined(address["ip"], number)] = None
    return tuple(ready)


def _port(ports: Any, wanted: str) -> int:
    return next((p.get("port") or 0 for p in ports if (p.get("name") or "") == wanted), 0)


def _joined(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
