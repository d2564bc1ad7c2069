"""Where a service's connections go: to its pods, through the nodes they are on, or to the addresses it names.

Source of the rules: kube-aggregator's service resolver, apiserver pkg/util/proxy/proxy.go, release 1.36.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from steersman.kernel.object import Key, Object
from steersman.kernel.ports import NodeStreams
from steersman.kernel.value import EMPTY
from steersman.serve.backend import Backend
from steersman.serve.streams.target import on_its_node
from steersman.serve.upstream.line import Line, dialed, tunnelled

SERVICE_NAME: Final = "kubernetes.io/service-name"
SLICE: Final = ("discovery.k8s.io", "EndpointSlice")


class Address(NamedTuple):
    """One place behind a service; `pod` is the pod there, if one is named."""

    host: str
    port: int
    pod: Object | None = None


def slices(backend: Backend, namespace: str, name: str) -> list[Mapping[str, Any]]:
    """The EndpointSlices of a service."""
    found = backend.store.list(SLICE, namespace)
    return [each.value for each in found if (each.metadata.get("labels") or EMPTY).get(SERVICE_NAME) == name]


def addresses(backend: Backend, namespace: str, name: str, port_name: str) -> list[Address]:
    """The ready addresses behind a service's port of that name."""
    out = []
    for each in slices(backend, namespace, name):
        numbers = [port["port"] for port in each.get("ports") or () if (port.get("name") or "") == port_name]
        for endpoint in each.get("endpoints") or () if numbers else ():
            if (endpoint.get("conditions") or EMPTY).get("ready") is False:
                continue
            ref = endpoint.get("targetRef") or EMPTY
            pod = None
            if ref.get("kind") == "Pod":
                pod = backend.store.get(Key("", "Pod", ref.get("namespace") or namespace, ref.get("name") or ""))
            out += [Address(host, numbers[0], pod) for host in endpoint.get("addresses") or ()]
    return out


async def reached(
    backend: Backend, streams: NodeStreams, address: Address, context: ssl.SSLContext, server: str
) -> Line:
    """A TLS connection to an address, whose certificate is for `server`. Raises ApiError, OSError, ssl.SSLError and
    TimeoutError."""
    if address.pod is not None and address.pod.node:
        tunnel = await streams.forward(on_its_node(backend, address.pod, ""), address.port)
        return await tunnelled(tunnel, context, server)
    return await dialed(address.host, address.port, context, server)
