"""Where a webhook is: a URL as it is given, or a service, found by its endpoints.

Kubernetes' API server connects to the address of the service, behind which kube-proxy chooses an endpoint; here nobody
translates service addresses, so whoever calls takes the ready endpoints in turn. What is asked for and what is checked
of the certificate is the same: SERVICE.NAMESPACE.svc. Source: Kubernetes 1.36, apiserver pkg/util/proxy/proxy.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from steersman.api.endpoints import Endpoint, endpoints
from steersman.kernel.object import Key
from steersman.kernel.store import Store
from steersman.kernel.value import EMPTY

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
        return Place(url, host, addresses=(str(Endpoint(str(spec.get("externalName")), port)),))
    if spec.get("clusterIP") == "None":
        return Place("", "", 'cannot route to service with ClusterIP "None"')
    entry = next((p for p in spec.get("ports") or () if p.get("port") == port), None)
    if entry is None:
        return Place("", "", f'no service port {port} found for service "{name}"')
    addresses = tuple([str(each) for each in endpoints(store, namespace, name, entry.get("name") or "")])
    if not addresses:
        return Place("", "", f'no endpoints available for service "{name}"')
    sticky = spec.get("sessionAffinity") == "ClientIP"  # and this server is always the same client
    return Place(url, host, addresses=addresses[:1] if sticky else addresses[:MAX_ADDRESSES])
