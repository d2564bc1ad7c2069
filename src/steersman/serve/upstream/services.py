"""Where a service's connections go: to its pods, through the nodes they are on, or to the addresses it names.

Source of the rules: kube-aggregator's service resolver, apiserver pkg/util/proxy/proxy.go, release 1.36.
"""

from __future__ import annotations

import ssl

from steersman.api.endpoints import Endpoint
from steersman.kernel.ports import NodeStreams
from steersman.serve.backend import Backend
from steersman.serve.streams.target import on_its_node
from steersman.serve.upstream.line import Line, dialed, tunnelled


async def reached(
    backend: Backend, streams: NodeStreams, address: Endpoint, context: ssl.SSLContext, server: str
) -> Line:
    """A TLS connection to an address, whose certificate is for `server`. Raises ApiError, OSError, ssl.SSLError and
    TimeoutError."""
    pod = None if address.pod is None else backend.store.get(address.pod)
    if pod is not None and pod.node:
        tunnel = await streams.forward(on_its_node(backend, pod, ""), address.port)
        return await tunnelled(tunnel, context, server)
    return await dialed(address.host, address.port, context, server)
