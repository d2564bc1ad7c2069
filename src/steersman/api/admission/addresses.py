"""Addresses and ports that a Service gets from the cluster: clusterIPs, ipFamilies, nodePorts, healthCheckNodePort.

Kubernetes gives them out in the storage of Services, after ownership is noted and before the object is judged; here it
is the last mutating plugin. Which address is drawn follows from the object's uid, and the next free one is taken when
somebody has it: the index `kernel.store.ADDRESSES` knows who.

Source of the facts: Kubernetes 1.36, `pkg/registry/core/service/storage/alloc.go` and `storage.go`,
`pkg/registry/core/service/strategy.go`, `ipallocator` and `portallocator`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any, Final, NoReturn

from xxhash import xxh3_64_intdigest

from steersman.api import errors
from steersman.api.admission.edit import spec_of, with_part
from steersman.api.admission.plugin import CREATE, UPDATE, Answer, Attempt, Plugin
from steersman.kernel.store import used_address, used_port
from steersman.kernel.value import EMPTY, Frozen, FrozenList

SERVICE: Final = ("", "Service")
NETWORK: Final = "fd53:7465:6573::/112"
"""Where addresses of Services come from: of the family that virtual nodes give their pods, unique local (RFC 4193)."""
PORTS: Final = (30_000, 32_767)
"""Node ports, first and last (kube-apiserver's default)."""
HEADLESS: Final = "None"
TRIES: Final = 4096
"""Addresses or ports looked at before the range is said to be full."""
ADDRESS_FIELDS: Final = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")


class ServiceAddresses(Plugin):
    """See the module's text. `network` is one block of one family: such a cluster is single-stack."""

    name = "ServiceAddresses"
    kinds = (SERVICE,)
    operations = (CREATE, UPDATE)

    def __init__(self, network: str = NETWORK) -> None:
        self.network: IPv4Network | IPv6Network = ip_network(network)
        self.family = f"IPv{self.network.version}"

    def mutate(self, attempt: Attempt) -> Answer:
        """Keeps what the Service has, drops what its type no longer has, and draws what is missing."""
        spec = dict(spec_of(attempt))
        if attempt.old is not None and attempt.old.spec is not None:
            _keep(spec, attempt.old.spec.value)
        if _has_address(spec):
            self._address(attempt, spec)
        if _has_node_ports(spec):
            _node_ports(attempt, spec)
        if _has_health_port(spec) and not spec.get("healthCheckNodePort"):
            spec["healthCheckNodePort"] = _free_port(attempt, "health")
        return None if spec == spec_of(attempt) else with_part(attempt, "spec", Frozen(spec))

    def _address(self, attempt: Attempt, spec: dict[str, Any]) -> None:
        families = spec.get("ipFamilies") or ()
        other = "IPv4" if self.family == "IPv6" else "IPv6"
        headless = spec.get("clusterIP") == HEADLESS
        if headless and not spec.get("selector") and not families and not spec.get("ipFamilyPolicy"):
            spec.update(ipFamilyPolicy="RequireDualStack", ipFamilies=FrozenList([self.family, other]))
        elif not headless:
            if spec.get("ipFamilyPolicy") == "RequireDualStack":
                detail = "this cluster is not configured for dual-stack services"
                _invalid(attempt, "spec.ipFamilyPolicy", "RequireDualStack", detail)
            for index, family in enumerate(families):
                if family == other:
                    _invalid(attempt, f"spec.ipFamilies[{index}]", family, "not configured on this cluster")
        if not spec.get("ipFamilyPolicy"):
            spec["ipFamilyPolicy"] = "SingleStack"
        if not families and not spec.get("ipFamilies"):
            spec["ipFamilies"] = FrozenList([self.family])
        wanted = spec.get("clusterIP") or next(iter(spec.get("clusterIPs") or ()), "")
        if not wanted:
            wanted = self._free(attempt)
        elif not headless:
            self._claim(attempt, str(wanted))
        spec["clusterIP"] = wanted
        if not spec.get("clusterIPs"):
            spec["clusterIPs"] = FrozenList([wanted])

    def _claim(self, attempt: Attempt, wanted: str) -> None:
        """Raises 422 for an address that the Service cannot have; one that is none is left to validation."""
        old = attempt.old.spec.value if attempt.old is not None and attempt.old.spec is not None else EMPTY
        if old.get("clusterIP") == wanted:
            return
        try:
            inside = ip_address(wanted) in self.network
        except ValueError:
            return
        if not inside:
            detail = f"the provided IP ({wanted}) is not in the valid range. The range of valid IPs is {self.network}"
        elif _taken(attempt, used_address(wanted)):
            detail = "provided IP is already allocated"
        else:
            return
        _invalid(attempt, "spec.clusterIPs", [wanted], f"failed to allocate IP {wanted}: {detail}")

    def _free(self, attempt: Attempt) -> str:
        size = self.network.num_addresses
        for place in _draws(attempt, "address", size - 2):
            found = str(self.network[1 + place])
            if not _taken(attempt, used_address(found)):
                return found
        raise errors.internal(f"failed to allocate a serviceIP: range {self.network} is full")


def _has_address(spec: Any) -> bool:
    return (spec.get("type") or "ClusterIP") != "ExternalName"


def _has_node_ports(spec: Any) -> bool:
    kind = spec.get("type")
    return kind == "NodePort" or (kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is not False)


def _has_health_port(spec: Any) -> bool:
    return bool(spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local")


def _keep(spec: dict[str, Any], old: Frozen) -> None:
    """What an update left out stays; what it repeats, though its type no longer has it, goes."""
    if _has_address(old):
        if not _has_address(spec):
            for field in (*ADDRESS_FIELDS, "internalTrafficPolicy"):
                _drop(spec, old, field)
        else:
            if not spec.get("clusterIP"):
                spec["clusterIP"] = old.get("clusterIP", "")
            if spec["clusterIP"] == old.get("clusterIP"):
                for field in ADDRESS_FIELDS[1:]:
                    if not spec.get(field) and old.get(field):
                        spec[field] = old[field]
    ports = {_port_key(port): port.get("nodePort") for port in old.get("ports") or ()}
    if _has_node_ports(spec):
        _edit_ports(spec, lambda port: ports.get(_port_key(port)) if not port.get("nodePort") else port["nodePort"])
    elif _has_node_ports(old):
        held = set(ports.values())
        _edit_ports(spec, lambda port: None if port.get("nodePort") in held else port.get("nodePort"))
    if _has_health_port(old):
        if not _has_health_port(spec):
            _drop(spec, old, "healthCheckNodePort")
        elif not spec.get("healthCheckNodePort") and old.get("healthCheckNodePort"):
            spec["healthCheckNodePort"] = old["healthCheckNodePort"]
    if old.get("type") == "LoadBalancer" != spec.get("type"):
        for field in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
            _drop(spec, old, field)
    if spec.get("type") in ("ClusterIP", "ExternalName") and not spec.get("externalIPs"):
        _drop(spec, old, "externalTrafficPolicy")


def _drop(spec: dict[str, Any], old: Frozen, field: str) -> None:
    if spec.get(field) == old.get(field):
        spec.pop(field, None)


def _port_key(port: Any) -> tuple[Any, Any]:
    return port.get("protocol"), port.get("port")


def _edit_ports(spec: dict[str, Any], number: Callable[[Any], int | None]) -> None:
    """Gives every port the nodePort that `number` says; None: none."""
    made = []
    for port in spec.get("ports") or ():
        rest = {field: value for field, value in port.items() if field != "nodePort"}
        found = number(port)
        made.append(Frozen({**rest, "nodePort": found}) if found else Frozen(rest))
    if made and made != spec["ports"]:
        spec["ports"] = FrozenList(made)


def _node_ports(attempt: Attempt, spec: dict[str, Any]) -> None:
    """Draws the node ports that are missing and checks those that are asked for. Raises 422."""
    before = attempt.old.spec.value if attempt.old is not None and attempt.old.spec is not None else EMPTY
    own = {port.get("nodePort") for port in before.get("ports") or ()}
    given: set[int] = set()
    for index, port in enumerate(spec.get("ports") or ()):
        number = port.get("nodePort")
        if not number or number in own:
            continue
        where = f"spec.ports[{index}].nodePort"
        if not PORTS[0] <= number <= PORTS[1]:
            detail = f"provided port is not in the valid range. The range of valid ports is {PORTS[0]}-{PORTS[1]}"
            _invalid(attempt, where, number, detail)
        if number not in given and _taken(attempt, used_port(number)):
            _invalid(attempt, where, number, "provided port is already allocated")
        given.add(number)

    def number_of(port: Any) -> int | None:
        found = port.get("nodePort") or _free_port(attempt, f"{port.get('protocol')} {port.get('port')}", given)
        given.add(found)
        return int(found)

    _edit_ports(spec, number_of)


def _free_port(attempt: Attempt, what: str, given: set[int] | frozenset[int] = frozenset()) -> int:
    for place in _draws(attempt, what, PORTS[1] - PORTS[0] + 1):
        found = PORTS[0] + place
        if found not in given and not _taken(attempt, used_port(found)):
            return found
    raise errors.internal("failed to allocate a nodePort: range is full")


def _draws(attempt: Attempt, what: str, size: int) -> Iterator[int]:
    """Places in a range of that size, from one that the object's uid decides."""
    meta = (attempt.body or EMPTY).get("metadata") or EMPTY
    start = xxh3_64_intdigest(f"{meta.get('uid', '')} {what}".encode()) % size
    return ((start + step) % size for step in range(min(size, TRIES)))


def _taken(attempt: Attempt, value: str) -> bool:
    return any(found.key != attempt.key for found in attempt.store.find("addresses", value, SERVICE))


def _invalid(attempt: Attempt, field: str, value: Any, detail: str) -> NoReturn:
    raise errors.invalid("Service", attempt.key.name, [errors.Cause.invalid(field, value, detail)])
