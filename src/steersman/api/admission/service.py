"""Where a webhook is: a URL as it is given, or a service, found by its endpoints.

Kubernetes' API server connects to the address of the service; here nobody translates service addresses, so the first
ready endpoint is taken. What is checked of the certificate is the same: the name SERVICE.NAMESPACE.svc.
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
_URL: Final = re.compile(r"https://(\[[0-9A-Fa-f:.]+\]|[^/?#@:\s]+)(?::(\d{1,5}))?(/[^?#\s]*)?")


class Place(NamedTuple):
    """An address, or why there is none."""

    url: str
    host: str
    fault: str = ""


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
    if spec.get("type") == "ExternalName":
        return Place(f"https://{spec.get('externalName')}:{port}{path}", host)
    entry = next((p for p in spec.get("ports") or () if p.get("port") == port), None)
    if entry is None:
        return Place("", "", f'no service port {port} found for service "{name}"')
    address = _endpoint(store, namespace, name, entry)
    if address is None:
        return Place("", "", f'no endpoints available for service "{name}"')
    return Place(f"https://{address}{path}", host)


def _endpoint(store: Store, namespace: str, name: str, entry: Mapping[str, Any]) -> str | None:
    """HOST:PORT of the first ready endpoint, by its slices or its Endpoints."""
    wanted = entry.get("name") or ""
    for obj in store.query(ListQuery(SLICE, namespace)):
        if (obj.meta.value.get("labels") or EMPTY).get(SERVICE_LABEL) != name:
            continue
        value = obj.value
        for endpoint in value.get("endpoints") or ():
            ready = (endpoint.get("conditions") or EMPTY).get("ready")
            if ready is not False and endpoint.get("addresses"):
                number = _port(value.get("ports") or (), wanted)
                if number:
                    return _joined(endpoint["addresses"][0], number)
    old = store.get(Key("", "Endpoints", namespace, name))
    for subset in () if old is None else old.value.get("subsets") or ():
        number = _port(subset.get("ports") or (), wanted)
        if subset.get("addresses") and number:
            return _joined(subset["addresses"][0]["ip"], number)
    return None


def _port(ports: Any, wanted: str) -> int:
    return next((p.get("port") or 0 for p in ports if (p.get("name") or "") == wanted), 0)


def _joined(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
