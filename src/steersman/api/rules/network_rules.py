"""What Ingresses, NetworkPolicies, Endpoints, EndpointSlices, IPAddresses, ServiceCIDRs and so on must look like.

Source of the facts: kubernetes `pkg/apis/networking/validation`, `pkg/apis/discovery/validation` and, of Endpoints,
`pkg/apis/core/validation`, release 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any, Final

from steersman.api import names
from steersman.api.errors import Cause
from steersman.api.rules import rules
from steersman.api.rules.pod_rules import ip
from steersman.api.rules.rules import Causes, Object, chosen
from steersman.kernel.value import EMPTY, EMPTY_LIST

PATH_TYPES: Final = ("Exact", "ImplementationSpecific", "Prefix")
POLICY_TYPES: Final = ("Egress", "Ingress")
ADDRESS_TYPES: Final = ("FQDN", "IPv4", "IPv6")
MAX_CONTROLLER: Final = 250  # bytes of the name of an ingress controller
MAX_ENDPOINTS: Final = 1000
MAX_ADDRESSES: Final = 100
MAX_PORTS: Final = 20_000
MAX_HINTS: Final = 8
_BAD_PATHS: Final = ("//", "/./", "/../", "%2f", "%2F")
_BAD_ENDS: Final = ("/..", "/.")
_NOT_A_NAME: Final = "must be a DNS name, not an IP address"
Network = IPv4Network | IPv6Network


def ingress(out: Causes, path: str, spec: Object) -> None:
    """The spec of an Ingress."""
    found = spec.get("rules") or EMPTY_LIST
    if not found and spec.get("defaultBackend") is None:
        detail = "either `defaultBackend` or `rules` must be specified"
        out.append(Cause.invalid(path, spec.get("rules"), detail))
    if spec.get("defaultBackend") is not None:
        _backend(out, f"{path}.defaultBackend", spec["defaultBackend"])
    for index, rule in enumerate(found):
        at = f"{path}.rules[{index}]"
        _host(out, f"{at}.host", rule.get("host"))
        if rule.get("http") is not None:
            _paths(out, f"{at}.http", rule["http"])
    for index, tls in enumerate(spec.get("tls") or ()):
        at = f"{path}.tls[{index}]"
        for place, host in enumerate(tls.get("hosts") or ()):
            _domain(out, f"{at}.hosts[{place}]", host)
        if tls.get("secretName"):
            rules.named(out, f"{at}.secretName", tls["secretName"], rules.dns_subdomain)
    if spec.get("ingressClassName") is not None:
        rules.named(out, f"{path}.ingressClassName", spec["ingressClassName"], rules.dns_subdomain)


def _host(out: Causes, path: str, host: str | None) -> None:
    if not host:
        return
    if _is_address(host):
        out.append(Cause.invalid(path, host, _NOT_A_NAME))
    _domain(out, path, host)


def _domain(out: Causes, path: str, host: str) -> None:
    """A DNS name; its first label may be a star."""
    rules.named(out, path, host, names.wildcard_subdomain if "*" in host else rules.dns_subdomain)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _paths(out: Causes, path: str, http: Object) -> None:
    if not http.get("paths"):
        out.append(Cause.required(f"{path}.paths"))
    for index, rule in enumerate(http.get("paths") or ()):
        at = f"{path}.paths[{index}]"
        kind, text = rule.get("pathType"), rule.get("path") or ""
        if kind is None:
            out.append(Cause.required(f"{at}.pathType", "pathType must be specified"))
            continue
        if kind not in PATH_TYPES:
            out.append(Cause.unsupported(f"{at}.pathType", kind, PATH_TYPES))
        elif not text.startswith("/") and (text or kind != "ImplementationSpecific"):
            out.append(Cause.invalid(f"{at}.path", text, "must be an absolute path"))
        if kind in ("Exact", "Prefix"):
            for bad in _BAD_PATHS:
                if bad in text:
                    out.append(Cause.invalid(f"{at}.path", text, f"must not contain '{bad}'"))
            for bad in _BAD_ENDS:
                if text.endswith(bad):
                    out.append(Cause.invalid(f"{at}.path", text, f"cannot end with '{bad}'"))
        _backend(out, f"{at}.backend", rule.get("backend") or EMPTY)


def _backend(out: Causes, path: str, backend: Object) -> None:
    resource, service = backend.get("resource"), backend.get("service")
    if resource is not None and service is not None:
        out.append(Cause.invalid(path, "", "cannot set both resource and service backends"))
    elif resource is not None:
        _reference(out, f"{path}.resource", resource)
    elif service is None:
        out.append(Cause.invalid(path, "", "resource or service backend is required"))
    else:
        _service(out, path, service)


def _service(out: Causes, path: str, service: Object) -> None:
    if not service.get("name"):
        out.append(Cause.required(f"{path}.service.name"))
    else:
        rules.named(out, f"{path}.service.name", service["name"], rules.dns_label)
    port = service.get("port") or EMPTY
    name, number = port.get("name"), port.get("number")
    if name and number:
        out.append(Cause.invalid(path, "", "cannot set both port name & port number"))
    elif name:
        rules.named(out, f"{path}.service.port.name", name, rules.port_name_problems)
    elif number:
        rules.port_number(out, f"{path}.service.port.number", number)
    else:
        out.append(Cause.required(path, "port name or number is required"))


def _reference(out: Causes, path: str, ref: Object) -> None:
    """The group, kind and name of an object."""
    if ref.get("apiGroup") is not None:
        rules.named(out, f"{path}.apiGroup", ref["apiGroup"], rules.dns_subdomain)
    rules.segments(out, path, ref, "kind", "name")


def ingress_class(out: Causes, path: str, spec: Object) -> None:
    """The spec of an IngressClass."""
    controller = spec.get("controller") or ""
    if len(controller) > MAX_CONTROLLER:
        out.append(Cause.too_long(f"{path}.controller", MAX_CONTROLLER))
    rules.domain_path(out, f"{path}.controller", controller)
    ref = spec.get("parameters")
    if ref is None:
        return
    at = f"{path}.parameters"
    _reference(out, at, ref)
    scope, namespace = ref.get("scope"), ref.get("namespace")
    if scope is None:
        out.append(Cause.required(f"{at}.scope"))
    elif scope not in ("Cluster", "Namespace"):
        out.append(Cause.unsupported(f"{at}.scope", scope, ("Cluster", "Namespace")))
    elif scope == "Cluster" and namespace is not None:
        out.append(Cause.forbidden(f"{at}.namespace", "`parameters.scope` is set to 'Cluster'"))
    elif scope == "Namespace" and namespace is None:
        out.append(Cause.required(f"{at}.namespace", "`parameters.scope` is set to 'Namespace'"))
    elif scope == "Namespace":
        rules.named(out, f"{at}.namespace", namespace, rules.dns_label)


def network_policy(out: Causes, path: str, spec: Object) -> None:
    """The spec of a NetworkPolicy."""
    rules.selector(out, f"{path}.podSelector", spec.get("podSelector") or EMPTY)
    for way, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(way) or ()):
            at = f"{path}.{way}[{index}]"
            for place, port in enumerate(rule.get("ports") or ()):
                _policy_port(out, f"{at}.ports[{place}]", port)
            for place, peer in enumerate(rule.get(peers) or ()):
                _peer(out, f"{at}.{peers}[{place}]", peer)
    types = spec.get("policyTypes") or ()
    if len(types) > len(POLICY_TYPES):
        out.append(Cause.invalid(f"{path}.policyTypes", types, "may not specify more than two policyTypes"))
        return
    for index, kind in enumerate(types):
        if kind not in POLICY_TYPES:
            out.append(Cause.unsupported(f"{path}.policyTypes[{index}]", kind, ("Ingress", "Egress")))


def _policy_port(out: Causes, path: str, port: Object) -> None:
    protocol, number, end = port.get("protocol"), port.get("port"), port.get("endPort")
    if protocol is not None and protocol not in rules.PROTOCOLS:
        out.append(Cause.unsupported(f"{path}.protocol", protocol, ("TCP", "UDP", "SCTP")))
    if number is None:
        if end is not None:
            out.append(Cause.invalid(f"{path}.endPort", end, "may not be specified when `port` is not specified"))
        return
    if isinstance(number, str) and end is not None:
        out.append(Cause.invalid(f"{path}.endPort", end, "may not be specified when `port` is non-numeric"))
    rules.port(out, f"{path}.port", number)
    if isinstance(number, int) and end is not None:
        if end < number:
            out.append(Cause.invalid(f"{path}.endPort", number, "must be greater than or equal to `port`"))
        rules.port_number(out, f"{path}.endPort", end)


def _peer(out: Causes, path: str, peer: Object) -> None:
    chosen_by = [field for field in ("podSelector", "namespaceSelector") if peer.get(field) is not None]
    for field in chosen_by:
        rules.selector(out, f"{path}.{field}", peer[field])
    block = peer.get("ipBlock")
    if block is not None:
        _block(out, f"{path}.ipBlock", block)
        if chosen_by:
            out.append(Cause.forbidden(path, "may not specify both ipBlock and another peer"))
    elif not chosen_by:
        out.append(Cause.required(path, "must specify a peer"))


def _block(out: Causes, path: str, block: Object) -> None:
    if not block.get("cidr"):
        out.append(Cause.required(f"{path}.cidr"))
        return
    whole = cidr(out, f"{path}.cidr", block["cidr"])
    for index, text in enumerate(block.get("except") or ()):
        part = cidr(out, f"{path}.except[{index}]", text)
        if whole is not None and part is not None and not _strictly_within(part, whole):
            out.append(Cause.invalid(f"{path}.except[{index}]", text, "must be a strict subset of `cidr`"))


def _strictly_within(part: Network, whole: Network) -> bool:
    if part.version != whole.version or part.prefixlen <= whole.prefixlen:
        return False
    return part.network_address in whole


def cidr(out: Causes, path: str, text: str) -> Network | None:
    """A block of addresses; None when it is none."""
    try:
        if "/" not in text:
            raise ValueError
        return ip_network(text, strict=False)
    except ValueError:
        detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
        out.append(Cause.invalid(path, text, detail))
        return None


def ip_address_spec(out: Causes, path: str, spec: Object) -> None:
    """The spec of an IPAddress."""
    ref = spec.get("parentRef")
    if ref is None:
        out.append(Cause.required(f"{path}.parentRef"))
        return
    at = f"{path}.parentRef"
    if ref.get("group"):
        rules.named(out, f"{at}.group", ref["group"], rules.dns_subdomain)
    rules.segments(out, at, ref, "resource", "name")
    if ref.get("namespace"):
        rules.named(out, f"{at}.namespace", ref["namespace"], names.path_segment)


def service_cidr(out: Causes, path: str, spec: Object) -> None:
    """The spec of a ServiceCIDR."""
    at, blocks = f"{path}.cidrs", spec.get("cidrs") or EMPTY_LIST
    if not blocks:
        out.append(Cause.required(at, "at least one CIDR required"))
    elif len(blocks) > 2:
        out.append(Cause.invalid(at, spec, "may only hold up to 2 values"))
    else:
        found = [cidr(out, f"{at}[{index}]", text) for index, text in enumerate(blocks)]
        versions = [block.version for block in found if block is not None]
        if len(versions) == 2 and versions[0] == versions[1]:
            detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
            out.append(Cause.invalid(at, blocks, detail))


def endpoint_slice(out: Causes, name: str, parts: Mapping[str, Any]) -> None:
    """What of an EndpointSlice depends on its type: the addresses, and what else an endpoint has."""
    kind = parts.get("addressType")
    endpoints: Sequence[Object] = parts.get("endpoints") or EMPTY_LIST
    if len(endpoints) > MAX_ENDPOINTS:
        out.append(Cause.too_many("endpoints", len(endpoints), MAX_ENDPOINTS))
        return
    for index, endpoint in enumerate(endpoints):
        at = f"endpoints[{index}]"
        addresses = endpoint.get("addresses") or EMPTY_LIST
        if not addresses:
            out.append(Cause.required(f"{at}.addresses", "must contain at least 1 address"))
        elif len(addresses) > MAX_ADDRESSES:
            out.append(Cause.too_many(f"{at}.addresses", len(addresses), MAX_ADDRESSES))
        for place, text in enumerate(addresses):
            _address(out, f"{at}.addresses", place, text, kind)
        if endpoint.get("nodeName") is not None:
            rules.named(out, f"{at}.nodeName", endpoint["nodeName"], rules.dns_subdomain)
        rules.labels(out, f"{at}.deprecatedTopology", endpoint.get("deprecatedTopology"))
        if endpoint.get("hostname") is not None:
            rules.named(out, f"{at}.hostname", endpoint["hostname"], rules.dns_label)
        _hints(out, f"{at}.hints", endpoint.get("hints") or EMPTY)


def _address(out: Causes, path: str, place: int, text: str, kind: Any) -> None:
    at = f"{path}[{place}]"
    if kind == "FQDN":
        rules.named(out, at, text, names.full_domain)
    elif kind in ("IPv4", "IPv6"):
        before = len(out)
        ip(out, at, text)
        if len(out) == before:
            if f"IPv{ip_address(text).version}" != kind:
                out.append(Cause.invalid(path, text, f"must be an {kind} address"))
            endpoint_ip(out, at, text)


def endpoint_ip(out: Causes, path: str, text: str) -> None:
    """An address that others can reach."""
    found = ip_address(text)
    if found.is_unspecified:
        out.append(Cause.invalid(path, text, f"may not be unspecified ({text})"))
    if found.is_loopback:
        out.append(Cause.invalid(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)"))
    if found.is_link_local:
        out.append(Cause.invalid(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"))
    if found.is_multicast and text.lower().startswith(("224.0.0.", "ff02:")):
        detail = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        out.append(Cause.invalid(path, text, detail))


def endpoint_subsets(out: Causes, path: str, subsets: Sequence[Object]) -> None:
    """The subsets of Endpoints. (What is no address at all is told twice, as Kubernetes does.)"""
    for index, subset in enumerate(subsets):
        at = f"{path}[{index}]"
        found = {field: subset.get(field) or EMPTY_LIST for field in ("addresses", "notReadyAddresses")}
        if not any(found.values()):
            out.append(Cause.required(at, "must specify `addresses` or `notReadyAddresses`"))
        for field, addresses in found.items():
            for place, address in enumerate(addresses):
                _endpoint(out, f"{at}.{field}[{place}]", address)
        ports = subset.get("ports") or EMPTY_LIST
        for place, port in enumerate(ports):
            _endpoint_port(out, f"{at}.ports[{place}]", port, len(ports) > 1)


def _endpoint(out: Causes, path: str, address: Object) -> None:
    before, text = len(out), address.get("ip") or ""
    ip(out, f"{path}.ip", text)
    valid = len(out) == before
    if address.get("hostname"):
        rules.named(out, f"{path}.hostname", address["hostname"], rules.dns_label)
    if address.get("nodeName") is not None:
        rules.named(out, f"{path}.nodeName", address["nodeName"], rules.dns_subdomain)
    if valid:
        endpoint_ip(out, f"{path}.ip", text)
    else:
        out.append(Cause.invalid(f"{path}.ip", text, "must be a valid IP address"))


def _endpoint_port(out: Causes, path: str, port: Object, named: bool) -> None:
    if port.get("name"):
        rules.named(out, f"{path}.name", port["name"], rules.dns_label)
    elif named:
        out.append(Cause.required(f"{path}.name"))
    rules.port_number(out, f"{path}.port", port.get("port", 0))
    chosen(out, f"{path}.protocol", port.get("protocol"), rules.PROTOCOLS)
    if port.get("appProtocol") is not None:
        rules.named(out, f"{path}.appProtocol", port["appProtocol"], rules.qualified_name)


def _hints(out: Causes, path: str, hints: Object) -> None:
    for field, check in (("forZones", rules.label_value), ("forNodes", rules.dns_subdomain)):
        listed = hints.get(field) or EMPTY_LIST
        if len(listed) > MAX_HINTS:
            out.append(Cause.too_many(f"{path}.{field}", len(listed), MAX_HINTS))
            return
        seen: set[str] = set()
        for index, hint in enumerate(listed):
            at, name = f"{path}.{field}[{index}].name", hint.get("name") or ""
            if name in seen:
                out.append(Cause.duplicate(at, name))
            seen.add(name)
            rules.named(out, at, name, check)


def endpoint_ports(out: Causes, path: str, ports: Sequence[Object]) -> None:
    """The ports of an EndpointSlice."""
    if len(ports) > MAX_PORTS:
        out.append(Cause.too_many(path, len(ports), MAX_PORTS))
        return
    seen: set[str] = set()
    for index, port in enumerate(ports):
        at, name = f"{path}[{index}]", port.get("name") or ""
        if name:
            rules.named(out, f"{at}.name", name, rules.dns_label)
        if name in seen:
            out.append(Cause.duplicate(f"{at}.name", name))
        seen.add(name)
        chosen(out, f"{at}.protocol", port.get("protocol"), rules.PROTOCOLS)
        if port.get("appProtocol") is not None:
            rules.named(out, f"{at}.appProtocol", port["appProtocol"], rules.qualified_name)


def address_type(out: Causes, path: str, kind: Any) -> None:
    """The type of the addresses of an EndpointSlice."""
    if not kind:
        out.append(Cause.required(path))
    elif kind not in ADDRESS_TYPES:
        out.append(Cause.unsupported(path, kind, ADDRESS_TYPES))
