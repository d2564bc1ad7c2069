"""What the server makes of a Service's spec by itself: address families, and what clients leave out of an update.

Pure and object-local; the addresses themselves are drawn by `admission.addresses`, which sees the other Services.
Source of the facts: Kubernetes 1.36, pkg/registry/core/service (strategy.go, storage/alloc.go, storage/storage.go).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from steersman.kernel.store import used_address as used_address
from steersman.kernel.value import EMPTY, Frozen, FrozenList

HEADLESS: Final = "None"
IPV4: Final = "IPv4"
IPV6: Final = "IPv6"
SINGLE: Final = "SingleStack"
PREFER: Final = "PreferDualStack"
REQUIRE: Final = "RequireDualStack"
DUAL: Final = (PREFER, REQUIRE)
ON_NODES: Final = ("NodePort", "LoadBalancer")
CIDR: Final = ("networking.k8s.io", "ServiceCIDR")
DEFAULT_CIDR: Final = "kubernetes"
"""The ServiceCIDR of the configured blocks: kube-apiserver makes it, and makes it again (`pkg/controlplane/controller/
defaultservicecidr`, 1.36)."""
ADDRESS: Final = ("networking.k8s.io", "IPAddress")
Spec = Mapping[str, Any]


def family_of(address: str) -> str:
    """The family of an address, of which nobody says yet that it is one."""
    return IPV6 if ":" in address else IPV4


def is_of_service(address: Spec) -> bool:
    """Whether the spec of an IPAddress says that a Service holds it."""
    ref = address.get("parentRef") or EMPTY
    return (ref.get("group", ""), ref.get("resource")) == ("", "services")


def type_of(spec: Spec) -> str:
    """The type; ClusterIP where none is given."""
    return spec.get("type") or "ClusterIP"


def has_address(spec: Spec) -> bool:
    """Whether a Service of this type has an address, or says that it wants none."""
    return type_of(spec) != "ExternalName"


def gives_node_ports(spec: Spec) -> bool:
    """Whether ports on nodes are given to it."""
    kind = type_of(spec)
    return kind == "NodePort" or (kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is not False)


def needs_health_check(spec: Spec) -> bool:
    """Whether a load balancer asks nodes if they have an endpoint."""
    return type_of(spec) == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def outside(spec: Spec) -> bool:
    """Whether it can be reached from outside of the cluster."""
    return type_of(spec) in ON_NODES or (type_of(spec) == "ClusterIP" and bool(spec.get("externalIPs")))


def created(spec: Frozen, cluster: Sequence[str]) -> Frozen:
    """The spec of a new Service, with its address families. `cluster`: those of the cluster, the first one first."""
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec = Frozen({**spec, "clusterIPs": FrozenList([spec["clusterIP"]])})
    return _with_families(None, spec, cluster)


def updated(old: Frozen, new: Frozen, cluster: Sequence[str]) -> Frozen:
    """The next spec: what was given and is left out stays, and what the new type has no use for goes."""
    spec: dict[str, Any] = dict(new)
    _keep_given(old, spec)
    _align_addresses(old, spec)
    settled = dict(_with_families(old, Frozen(spec), cluster))
    _drop_useless(old, settled)
    return new if settled == new else Frozen(settled)


def _keep_given(old: Spec, spec: dict[str, Any]) -> None:
    if has_address(old) and has_address(spec):
        for field in ("clusterIP", "clusterIPs"):
            if not spec.get(field) and old.get(field):
                spec[field] = old[field]
    if gives_node_ports(old) and gives_node_ports(spec):
        _keep_node_ports(old, spec)
    if needs_health_check(old) and needs_health_check(spec) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = old.get("healthCheckNodePort", 0)


def _keep_node_ports(old: Spec, spec: dict[str, Any]) -> None:
    """Ports are known by their names: the client may have changed all else."""
    before = {port.get("name", ""): port.get("nodePort", 0) for port in old.get("ports") or ()}
    used = {port.get("nodePort", 0) for port in spec.get("ports") or ()}
    ports = []
    for port in spec.get("ports") or ():
        known = before.get(port.get("name", ""), 0)
        lacks = not port.get("nodePort") and known and known not in used
        ports.append(Frozen({**port, "nodePort": known}) if lacks else port)
    if "ports" in spec:
        spec["ports"] = FrozenList(ports)


def _align_addresses(old: Spec, spec: dict[str, Any]) -> None:
    """clusterIP and clusterIPs[0] are one thing that old clients write by its first name only."""
    before, after = old.get("clusterIP") or "", spec.get("clusterIP") or ""
    same = (old.get("clusterIPs") or []) == (spec.get("clusterIPs") or [])
    if before == after or not same:
        return
    if before and not after:
        spec.pop("clusterIPs", None)
    else:
        spec["clusterIPs"] = FrozenList([after])


def _with_families(old: Spec | None, spec: Frozen, cluster: Sequence[str]) -> Frozen:
    """The spec with policy and families decided. What cannot be decided stays, for the validation to refuse."""
    if not has_address(spec) or (old is not None and _stays_dual(old, spec)):
        return spec
    addresses, families = list(spec.get("clusterIPs") or ()), list(spec.get("ipFamilies") or ())
    bare = spec.get("clusterIP") == HEADLESS and not spec.get("selector")
    policy = spec.get("ipFamilyPolicy") or (old or EMPTY).get("ipFamilyPolicy") or (REQUIRE if bare else SINGLE)
    if old is not None and policy == SINGLE:  # to say so is to give the second one up
        if addresses == list(old.get("clusterIPs") or ()):
            addresses = addresses[:1]
        if families == list(old.get("ipFamilies") or ()):
            families = families[:1]
    for index, address in enumerate(addresses):
        if address == HEADLESS:
            break
        if index >= len(families):
            families.append(family_of(address))
    families = families or [cluster[0]]
    if policy in DUAL and len(families) == 1 and (bare or len(cluster) > 1):
        families.append(IPV4 if families[0] == IPV6 else IPV6)
    decided = {**spec, "ipFamilyPolicy": policy, "ipFamilies": FrozenList(families)}
    if addresses:
        decided["clusterIPs"] = FrozenList(addresses)
    return Frozen(decided)


def _stays_dual(old: Spec, spec: Spec) -> bool:
    """Whether neither version says anything new about families: then none is added or taken."""
    if type_of(old) != type_of(spec) or spec.get("ipFamilyPolicy") != PREFER:
        return False
    if old.get("ipFamilyPolicy") not in (None, PREFER):
        return False
    return all((old.get(field) or []) == (spec.get(field) or []) for field in ("clusterIPs", "ipFamilies"))


def _drop_useless(old: Spec, spec: dict[str, Any]) -> None:
    """What a type that was left had, unless the client changed it at the same time: that is an error to be told."""

    def same(*fields: str) -> bool:
        return all((old.get(field) or None) == (spec.get(field) or None) for field in fields)

    if has_address(old) and not has_address(spec):
        if same("clusterIP", "clusterIPs"):
            spec.pop("clusterIP", None)
            spec.pop("clusterIPs", None)
        for field in ("ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"):
            if same(field):
                spec.pop(field, None)
    if type_of(old) in ON_NODES and type_of(spec) not in ON_NODES and _node_ports(spec) <= _node_ports(old):
        without = [Frozen({k: v for k, v in port.items() if k != "nodePort"}) for port in spec.get("ports") or ()]
        if "ports" in spec:
            spec["ports"] = FrozenList(without)
    if needs_health_check(old) and not needs_health_check(spec) and same("healthCheckNodePort"):
        spec.pop("healthCheckNodePort", None)
    if type_of(old) == "LoadBalancer" != type_of(spec):
        if old.get("allocateLoadBalancerNodePorts") == spec.get("allocateLoadBalancerNodePorts"):
            spec.pop("allocateLoadBalancerNodePorts", None)
        if same("loadBalancerClass"):
            spec.pop("loadBalancerClass", None)
    if outside(old) and not outside(spec) and same("externalTrafficPolicy"):
        spec.pop("externalTrafficPolicy", None)


def _node_ports(spec: Spec) -> set[int]:
    return {port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")}
