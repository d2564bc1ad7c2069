"""Where the server is, told in the store: the ServiceCIDR `kubernetes`, the Service of that name in `default` with the
server's address behind it, and cluster-info in `kube-public`.

As kube-apiserver does, the machine's own address is named even where the server listens on loopback only: Kubernetes
allows no loopback address there. Source of the facts: Kubernetes 1.36, pkg/controlplane/controller/kubernetesservice,
defaultservicecidr and pkg/controlplane/reconcilers.
"""

from __future__ import annotations

import base64
import contextlib
import ipaddress
import socket
from collections.abc import Mapping
from typing import Any, Final

from steersman.api.access.bootstrap import CLUSTER_INFO, KUBECONFIG
from steersman.api.admission.addresses import NETWORK
from steersman.api.errors import ApiError
from steersman.api.service_spec import CIDR, DEFAULT_CIDR
from steersman.api.times import MICRO, time_text
from steersman.kernel.effect import Request
from steersman.kernel.object import Key
from steersman.kernel.value import Frozen
from steersman.run.address import Address
from steersman.run.head import Heads
from steersman.serve.memory import APISERVER

NAME: Final = "kubernetes"
PORT: Final = 443
ELSEWHERE: Final = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}
"""Addresses for documentation (RFC 5737, RFC 3849): the way to them tells the machine's own; nothing is sent."""


async def announce(heads: Heads, address: Address, port: int) -> None:
    """Writes the Service, its Endpoints and its EndpointSlice, as far as they are not there or say something else."""
    await _default_block(heads)
    host = _host(address)
    version = 6 if host is None else ipaddress.ip_address(host).version
    block = next((each for each in map(ipaddress.ip_network, NETWORK.split(",")) if each.version == version), None)
    meta = {"name": NAME, "namespace": "default"}
    labels = {"component": "apiserver", "provider": "kubernetes"}
    spec = {
        "ports": [{"name": "https", "port": PORT, "protocol": "TCP", "targetPort": port}],
        "ipFamilyPolicy": "SingleStack",
        "sessionAffinity": "None",
        "type": "ClusterIP",
    }
    first = {} if block is None else {"clusterIP": str(block[1])}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {**meta, "labels": labels}}
    key = Key("", "Service", "default", NAME)
    if heads.store.get(key) is None:
        try:
            await _write(heads, "create", key, {**service, "spec": {**spec, **first}})
        except ApiError:  # somebody has had the first address since before there was this Service
            await _write(heads, "create", key, {**service, "spec": spec})
    if host is None:
        return
    ports = [{"name": "https", "port": port, "protocol": "TCP"}]
    skip = {**meta, "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}
    subsets = [{"addresses": [{"ip": host}], "ports": ports}]
    await _keep(
        heads,
        Key("", "Endpoints", "default", NAME),
        {"apiVersion": "v1", "kind": "Endpoints", "metadata": skip, "subsets": subsets},
    )
    slice_ = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {**meta, "labels": {"kubernetes.io/service-name": NAME}},
        "addressType": f"IPv{version}",
        "endpoints": [{"addresses": [host], "conditions": {"ready": True}}],
        "ports": ports,
    }
    await _keep(heads, Key("discovery.k8s.io", "EndpointSlice", "default", NAME), slice_)


async def _default_block(heads: Heads) -> None:
    """Where addresses of Services come from; ready at once, as the controller that says so would find it."""
    key = Key(*CIDR, "", DEFAULT_CIDR)
    if heads.store.get(key) is not None:
        return
    body = {"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": {"name": DEFAULT_CIDR}}
    await _write(heads, "create", key, {**body, "spec": {"cidrs": NETWORK.split(",")}})
    ready = {"type": "Ready", "status": "True", "reason": "", "message": "Kubernetes default Service CIDR is ready"}
    ready["lastTransitionTime"] = time_text(heads.now() // MICRO)
    request = Request("apply", key, {**body, "status": {"conditions": [ready]}}, "status", actor=APISERVER)
    await heads.write(request._replace(manager="kubernetes-service-cidr-controller", options=Frozen({"force": True})))


async def publish(heads: Heads, url: str, authority: bytes) -> None:
    """Writes cluster-info: what a machine that joins needs to know of the cluster, as kubeadm writes it."""
    ca = base64.b64encode(authority).decode("ascii")
    text = (
        f"apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: {ca}\n    server: {url}\n"
        '  name: ""\ncontexts: null\ncurrent-context: ""\nkind: Config\npreferences: {}\nusers: null\n'
    )
    found = heads.store.get(CLUSTER_INFO)
    if found is None:
        meta = {"name": CLUSTER_INFO.name, "namespace": CLUSTER_INFO.namespace}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {KUBECONFIG: text}}
        await _write(heads, "create", CLUSTER_INFO, body)
    elif (found.value.get("data") or {}).get(KUBECONFIG) != text:
        await _write(heads, "patch", CLUSTER_INFO, {"data": {KUBECONFIG: text}})


async def _keep(heads: Heads, key: Key, body: Mapping[str, Any]) -> None:
    """Makes the object that is missing, and makes anew one that says something else."""
    found = heads.store.get(key)
    if found is not None:
        told = found.value
        if all(told.get(part) == body[part] for part in body if part not in ("apiVersion", "kind", "metadata")):
            return
        await _write(heads, "delete", key, None)
    await _write(heads, "create", key, body)


async def _write(heads: Heads, verb: str, key: Key, body: Any) -> None:
    await heads.write(Request(verb, key, body, actor=APISERVER, manager="kube-apiserver", options=Frozen({})))


def _host(address: Address) -> str | None:
    """The address of this machine that others would use; None when it has none but loopback."""
    if not address.everywhere and not address.loopback():
        with contextlib.suppress(ValueError):
            return str(ipaddress.ip_address(address.host))
    for family, target in ELSEWHERE.items():
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((target, PORT))
            own = str(probe.getsockname()[0])
            if not ipaddress.ip_address(own.partition("%")[0]).is_loopback:
                return own.partition("%")[0]
    return None
