"""What Services must look like, as far as it does not depend on the addresses the cluster gives out.

Source of the facts: kubernetes `pkg/apis/core/validation/validation.go`, release 1.36.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from steersman.api.errors import Cause
from steersman.api.rules import internal, rules
from steersman.api.rules.pod_rules import ip
from steersman.api.rules.rules import Causes, Object, chosen
from steersman.kernel.value import EMPTY, EMPTY_LIST

TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
AFFINITIES: Final = ("ClientIP", "None")
TRAFFIC: Final = ("Cluster", "Local")
FAMILIES: Final = ("IPv4", "IPv6")
FAMILY_POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")
DISTRIBUTIONS: Final = ("PreferClose", "PreferSameZone", "PreferSameNode")
KUBELET_PORT: Final = 10250
MAX_AFFINITY: Final = 86_400  # seconds, a day
HEADLESS: Final = "None"
MAX_ADDRESSES: Final = 2
"""One of each family."""


def service(out: Causes, path: str, spec: Object) -> None:
    """The spec of a Service."""
    kind = spec.get("type") or "ClusterIP"
    ports = spec.get("ports") or EMPTY_LIST
    headless = spec.get("clusterIP") == HEADLESS
    if not ports and not headless and kind != "ExternalName":
        out.append(Cause.required(f"{path}.ports"))
    _kind(out, path, spec, kind, headless)
    seen: set[str] = set()
    for index, port in enumerate(ports):
        _port(out, f"{path}.ports[{index}]", port, len(ports) > 1, seen)
    rules.labels(out, f"{path}.selector", spec.get("selector"))
    _affinity(out, path, spec)
    _addresses(out, path, spec)
    chosen(out, f"{path}.type", kind, TYPES)
    _distinct(out, f"{path}.ports", ports, kind)
    if kind != "LoadBalancer":
        detail = "may only be used when `type` is 'LoadBalancer'"
        for field in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
            if spec.get(field) is not None:
                out.append(Cause.forbidden(f"{path}.{field}", detail))
        if spec.get("loadBalancerSourceRanges"):
            out.append(Cause.forbidden(f"{path}.LoadBalancerSourceRanges", detail))
    _traffic(out, path, spec, kind)


def _kind(out: Causes, path: str, spec: Object, kind: str, headless: bool) -> None:
    if kind in ("LoadBalancer", "NodePort"):
        if headless:
            detail = f"may not be set to 'None' for {kind} services"
            out.append(Cause.invalid(f"{path}.clusterIPs[0]", HEADLESS, detail))
        for index, port in enumerate(spec.get("ports") or ()):
            if kind == "LoadBalancer" and port.get("port") == KUBELET_PORT:
                detail = f"may not expose port {KUBELET_PORT} externally since it is used by kubelet"
                out.append(Cause.invalid(f"{path}.ports[{index}]", KUBELET_PORT, detail))
    if kind == "ExternalName":
        for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if spec.get(field):
                detail = "may not be set for ExternalName services"
                out.append(Cause.forbidden(f"{path}.{field}", detail))
        name = (spec.get("externalName") or "").removesuffix(".")
        if name:
            rules.named(out, f"{path}.externalName", name, rules.dns_subdomain)
        else:
            out.append(Cause.required(f"{path}.externalName"))


def _port(out: Causes, path: str, port: Object, several: bool, seen: set[str]) -> None:
    name = port.get("name")
    if name:
        rules.named(out, f"{path}.name", name, rules.dns_label)
        if name in seen:
            out.append(Cause.duplicate(f"{path}.name", name))
        seen.add(name)
    elif several:
        out.append(Cause.required(f"{path}.name"))
    rules.port_number(out, f"{path}.port", port.get("port", 0))
    chosen(out, f"{path}.protocol", port.get("protocol"), rules.PROTOCOLS)
    if "targetPort" in port:
        rules.port(out, f"{path}.targetPort", port["targetPort"])
    if port.get("appProtocol") is not None:
        rules.named(out, f"{path}.appProtocol", port["appProtocol"], rules.qualified_name)


def _affinity(out: Causes, path: str, spec: Object) -> None:
    kind, config = spec.get("sessionAffinity"), spec.get("sessionAffinityConfig")
    chosen(out, f"{path}.sessionAffinity", kind, AFFINITIES)
    at = f"{path}.sessionAffinityConfig"
    if kind == "ClientIP":
        seconds = ((config or EMPTY).get("clientIP") or EMPTY).get("timeoutSeconds")
        if seconds is None:
            out.append(Cause.required(at, "when session affinity type is ClientIP"))
        elif not 0 < seconds <= MAX_AFFINITY:
            detail = f"must be greater than 0 and less than {MAX_AFFINITY}"
            out.append(Cause.invalid(f"{at}.clientIP.timeoutSeconds", seconds, detail))
    elif kind == "None" and config is not None:
        out.append(Cause.forbidden(at, "must not be set when session affinity is None"))


def _addresses(out: Causes, path: str, spec: Object) -> None:
    if spec.get("type") != "ExternalName":
        _families(out, path, spec)
        _cluster_addresses(out, path, spec)
    for index, address in enumerate(spec.get("externalIPs") or ()):
        ip(out, f"{path}.externalIPs[{index}]", address)


def _families(out: Causes, path: str, spec: Object) -> None:
    families, policy = spec.get("ipFamilies") or (), spec.get("ipFamilyPolicy")
    for index, family in enumerate(families):
        chosen(out, f"{path}.ipFamilies[{index}]", family, FAMILIES)
        if family in families[:index]:
            out.append(Cause.duplicate(f"{path}.ipFamilies[{index}]", family))
    chosen(out, f"{path}.ipFamilyPolicy", policy, FAMILY_POLICIES)
    if policy == "SingleStack":
        detail = "must be 'RequireDualStack' or 'PreferDualStack' when multiple {} are specified"
        if len(spec.get("clusterIPs") or ()) == 2:
            out.append(Cause.invalid(f"{path}.ipFamilyPolicy", policy, detail.format("cluster IPs")))
        if len(families) == 2:
            out.append(Cause.invalid(f"{path}.ipFamilyPolicy", policy, detail.format("IP families")))


def _cluster_addresses(out: Causes, path: str, spec: Object) -> None:
    at, one = f"{path}.clusterIPs", spec.get("clusterIP")
    listed: list[str] = list(spec.get("clusterIPs") or ([one] if one else ()))
    if one and listed[0] != one:
        out.append(Cause.invalid(at, listed, "first value must match `clusterIP`"))
    elif not one and listed:
        out.append(Cause.invalid(at, listed, "must be empty when `clusterIP` is not specified"))
    wrong = len(out)
    for index, address in enumerate(listed):
        if index or address != HEADLESS:
            ip(out, f"{at}[{index}]", address)
        elif len(listed) > 1:
            out.append(Cause.invalid(at, listed, "'None' must be the first and only value"))
    if len(listed) > MAX_ADDRESSES:
        out.append(Cause.invalid(at, listed, f"may only hold up to {MAX_ADDRESSES} values"))
    if len(out) > wrong or not listed or listed[0] == HEADLESS:
        return
    kinds = ["IPv6" if ":" in address else "IPv4" for address in listed]
    if len(kinds) > 1 and len({*kinds}) < len(kinds):
        out.append(Cause.invalid(at, listed, "may specify no more than one IP for each IP family"))
    families = spec.get("ipFamilies") or ()
    for index, (kind, family) in enumerate(zip(kinds, families, strict=False)):
        if family in FAMILIES and kind != family:
            detail = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            out.append(Cause.invalid(f"{at}[{index}]", listed[index], detail))


def _distinct(out: Causes, path: str, ports: Sequence[Object], kind: str) -> None:
    taken: set[tuple[str, int]] = set()
    used: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        protocol, number, node = port.get("protocol", "TCP"), port.get("port", 0), port.get("nodePort", 0)
        if node and kind == "ClusterIP":
            detail = "may not be used when `type` is 'ClusterIP'"
            out.append(Cause.forbidden(f"{path}[{index}].nodePort", detail))
        if node and (protocol, node) in taken:
            out.append(Cause.duplicate(f"{path}[{index}].nodePort", node))
        taken.add((protocol, node))
        if (protocol, number) in used:
            twin = internal.shown({"protocol": protocol, "port": number}, internal.SERVICE_PORT)
            out.append(Cause.duplicate(f"{path}[{index}]", twin))
        used.add((protocol, number))


def _traffic(out: Causes, path: str, spec: Object, kind: str) -> None:
    outside = kind in ("NodePort", "LoadBalancer") or (kind == "ClusterIP" and spec.get("externalIPs"))
    policy = spec.get("externalTrafficPolicy")
    if outside:
        chosen(out, f"{path}.externalTrafficPolicy", policy, TRAFFIC)
    elif policy:
        detail = "may only be set for externally-accessible services"
        out.append(Cause.invalid(f"{path}.externalTrafficPolicy", policy, detail))
    check = spec.get("healthCheckNodePort")
    if check and not (kind == "LoadBalancer" and policy == "Local"):
        detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        out.append(Cause.invalid(f"{path}.healthCheckNodePort", check, detail))
    chosen(out, f"{path}.internalTrafficPolicy", spec.get("internalTrafficPolicy"), TRAFFIC)
    chosen(out, f"{path}.trafficDistribution", spec.get("trafficDistribution"), DISTRIBUTIONS)
