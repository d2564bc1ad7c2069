"""Addresses and ports that a Service gets from the cluster: clusterIPs, ipFamilies, nodePorts, healthCheckNodePort.

Kubernetes gives them out in the storage of Services, after ownership is noted and before the object is judged; here it
is the last mutating plugin. The blocks are those of the ServiceCIDRs that are ready, as far as there are any. An
IPAddress keeps its address from others; those of Services are made after them, by `controllers/addresses.py`. Which
address is drawn follows from the object's uid, and the next free one is taken when somebody has it: the index
`kernel.store.ADDRESSES` knows who. As in Kubernetes, the lower part of each range is given out last, and left to those
who ask for an address or a port by its number.

Source of the facts: Kubernetes 1.36, `pkg/registry/core/service/storage/alloc.go` and `storage.go`,
`pkg/registry/core/service/strategy.go`, `ipallocator` and `portallocator`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final

from xxhash import xxh3_64_intdigest

from steersman.api import errors, service_spec
from steersman.api.admission.edit import spec_of, with_part
from steersman.api.admission.plugin import CREATE, UPDATE, Answer, Attempt, Plugin
from steersman.api.service_spec import (
    ADDRESS,
    CIDR,
    DEFAULT_CIDR,
    HEADLESS,
    gives_node_ports,
    has_address,
    needs_health_check,
    type_of,
)
from steersman.kernel.object import Key, Object
from steersman.kernel.store import Store, used_address, used_port
from steersman.kernel.value import EMPTY, Frozen, FrozenList

SERVICE: Final = ("", "Service")
NETWORK: Final = "fd53:7465:6573::/112,10.96.0.0/12"
"""Where addresses of Services come from: the first block is of the family that virtual nodes give their pods, unique
local (RFC 4193); the second is kubeadm's default. Both together make a dual-stack cluster."""
PORTS: Final = (30_000, 32_767)
"""Node ports, first and last (kube-apiserver's default)."""
PORTS_LAST: Final = 86
"""Ports at the start of the range that are given out last."""
TRIES: Final = 4096
"""Addresses or ports looked at before the range is said to be full."""
Network = IPv4Network | IPv6Network


class ServiceAddresses(Plugin):
    """See the module's text. `network`: one block, or two of different families with a comma between them."""

    name = "ServiceAddresses"
    kinds = (SERVICE,)
    operations = (CREATE, UPDATE)

    def __init__(self, network: str = NETWORK) -> None:
        blocks: list[Network] = [ip_network(each) for each in network.split(",")]
        self.networks: Mapping[str, Network] = {f"IPv{block.version}": block for block in blocks}
        """Family → its first block; the order is that of preference."""

    def _blocks(self, store: Store, family: str) -> list[Network]:
        """The blocks of a family that addresses are given out of, the configured one first: it counts unless its own
        object says otherwise."""
        first = self.networks[family]
        found, is_listed = store.derived(CIDR, _ready_blocks) or ((), False)
        if not is_listed:
            found = (*found, first)
        mine = dict.fromkeys(block for block in found if block.version == first.version)
        return sorted(mine, key=lambda block: block != first)

    def mutate(self, attempt: Attempt) -> Answer:
        """Keeps what the Service has, drops what its type no longer has, and draws what is missing."""
        given = Frozen(spec_of(attempt))
        before: Mapping[str, Any] = EMPTY
        families = tuple(self.networks)
        if attempt.old is not None and attempt.old.spec is not None:
            before = attempt.old.spec.value
            spec = dict(service_spec.updated(attempt.old.spec.value, given, families))
        else:
            spec = dict(service_spec.created(given, families))
        draw = _Draw(attempt)
        if has_address(spec):
            _check_families(draw, spec, given, families)
            self._addresses(draw, before, spec)
        if type_of(spec) in service_spec.ON_NODES:
            _node_ports(draw, before, spec)
        if needs_health_check(spec) and not needs_health_check(before):
            _health_check(draw, spec)
        return None if spec == given else with_part(attempt, "spec", Frozen(spec))

    def _addresses(self, draw: _Draw, before: Mapping[str, Any], spec: dict[str, Any]) -> None:
        """An address of each family the Service has none of yet. One that is none is left to validation."""
        listed = list(spec.get("clusterIPs") or ())
        if listed and (listed[0] == HEADLESS or listed[0] != spec.get("clusterIP")):
            return
        held = list(before.get("clusterIPs") or ()) if has_address(before) else []
        if 0 < len(listed) < len(held):
            return  # one is given up
        for index, family in enumerate(spec.get("ipFamilies") or ()):
            if family not in self.networks:
                return
            if index >= len(listed):
                listed.append(_next_address(draw, self._blocks(draw.store, family)))
            elif listed[index] not in held:
                _claim(draw, self._blocks(draw.store, family), listed, index)
        if listed:
            spec["clusterIPs"], spec["clusterIP"] = FrozenList(listed), listed[0]


class _Draw:
    """What one Service is given while others have theirs."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self.store = attempt.store
        meta = (attempt.body or EMPTY).get("metadata") or EMPTY
        self._uid = meta.get("uid", "")
        self.dry_run = bool(attempt.request.options.get("dry_run"))
        """Kubernetes then looks at no port that is asked for by its number, and at its first block alone."""
        self.given: dict[str, None] = {}
        """Given in this very write."""

    def is_taken(self, value: str) -> bool:
        key = self._attempt.key
        return value in self.given or any(
            found.key != key for found in self._attempt.store.find("addresses", value, SERVICE)
        )

    def is_reserved(self, address: str) -> bool:
        """Whether there is an IPAddress: of another Service that still holds it, or of anything else."""
        found = self.store.get(Key(*ADDRESS, "", address))
        return found is not None and not service_spec.is_of_service(found.spec_value or EMPTY)

    def invalid(self, field: str, value: Any, detail: str) -> errors.ApiError:
        return errors.invalid("Service", self._attempt.key.name, [errors.Cause.invalid(field, value, detail)])

    def free(
        self,
        what: str,
        size: int,
        last: int,
        value: Callable[[int], str],
        reserved: Callable[[int], bool] = lambda place: False,
    ) -> int | None:
        """The first free place in a range from one that the object's uid decides; the `last` first ones last."""
        start = xxh3_64_intdigest(f"{self._uid} {what}".encode()) % (size - last)
        for step in range(min(size - last, TRIES)):
            place = last + (start + step) % (size - last)
            if not self.is_taken(value(place)) and not reserved(place):
                return place
        left = (place for place in range(last) if not self.is_taken(value(place)) and not reserved(place))
        return next(left, None)


def _check_families(draw: _Draw, spec: Mapping[str, Any], given: Mapping[str, Any], families: tuple[str, ...]) -> None:
    """Raises 422 for a family that the cluster has no addresses of."""
    listed = spec.get("clusterIPs") or ()
    if spec.get("clusterIP") == HEADLESS and not spec.get("selector"):
        return  # whoever names the endpoints of such a Service is free to
    missing = "not configured on this cluster"
    for index, family in enumerate(spec.get("ipFamilies") or ()):
        if family in families or family not in (service_spec.IPV4, service_spec.IPV6):
            continue
        if index >= len(given.get("ipFamilies") or ()) and index < len(listed):
            raise draw.invalid(f"spec.clusterIPs[{index}]", listed, f"{family} is {missing}")
        raise draw.invalid(f"spec.ipFamilies[{index}]", family, missing)
    if spec.get("ipFamilyPolicy") == service_spec.REQUIRE and len(families) < 2:
        detail = "this cluster is not configured for dual-stack services"
        raise draw.invalid("spec.ipFamilyPolicy", service_spec.REQUIRE, detail)


def _ready_blocks(objects: Iterable[Object]) -> tuple[tuple[Network, ...], bool]:
    """The blocks of the ServiceCIDRs that are ready; and whether the configured ones have an object, ready or not."""
    listed = tuple(objects)
    ready = [each.value for each in listed if _is_ready(each)]
    blocks = tuple([ip_network(text) for each in ready for text in each["spec"]["cidrs"]])
    return blocks, any(each.key.name == DEFAULT_CIDR for each in listed)


def _is_ready(block: Object) -> bool:
    """A block that nobody has said anything of yet is: the controller that would may not run."""
    if "deletionTimestamp" in block.meta.value:
        return False
    conditions = (block.status_value or EMPTY).get("conditions") or ()
    return all(each["status"] == "True" for each in conditions if each["type"] == "Ready")


def _next_address(draw: _Draw, blocks: list[Network]) -> str:
    """A free address of the first block that has one."""
    for network in blocks:
        size = network.num_addresses - (2 if network.version == 4 else 1)  # neither the block's own nor its broadcast
        last = 0 if size < 16 else min(max(16, size // 16), 256)
        first = int(network.network_address) + 1
        kind: Callable[[int], Any] = IPv4Address if network.version == 4 else IPv6Address
        what = f"address {network.version}" if network == blocks[0] else f"address {network}"

        def named(place: int, kind: Callable[[int], Any] = kind, first: int = first) -> str:
            return str(kind(first + place))

        place = draw.free(
            what, size, last, lambda place: used_address(named(place)), lambda place: draw.is_reserved(named(place))
        )
        if place is not None:
            found = named(place)
            draw.given[used_address(found)] = None
            return found
    raise errors.internal("failed to allocate a serviceIP: range is full")


def _claim(draw: _Draw, blocks: list[Network], listed: list[str], index: int) -> None:
    """Raises 422 for an address that the Service cannot have."""
    try:
        wanted = ip_address(listed[index])
    except ValueError:
        return
    if blocks and wanted.version != blocks[0].version:
        return
    if not any(_gives(block, wanted) for block in blocks):
        detail = "the provided network does not match the current range"
        if draw.dry_run and blocks:
            valid = f"The range of valid IPs is {blocks[0]}"
            detail = f"the provided IP ({listed[index]}) is not in the valid range. {valid}"
    elif draw.is_taken(used_address(str(wanted))) or draw.is_reserved(str(wanted)):
        detail = "provided IP is already allocated"
    else:
        return
    raise draw.invalid("spec.clusterIPs", listed, f"failed to allocate IP {listed[index]}: {detail}")


def _gives(block: Network, address: IPv4Address | IPv6Address) -> bool:
    """Whether a block has an address to give: neither its own, nor its broadcast one."""
    ends = (block.network_address, block.broadcast_address if block.version == 4 else None)
    return address in block and address not in ends


def _node_ports(draw: _Draw, before: Mapping[str, Any], spec: dict[str, Any]) -> None:
    """A port on nodes for each port that has none; in a new Service, two of one number (TCP and UDP) share it."""
    held = {port.get("nodePort") for port in before.get("ports") or ()}
    wanted = {port.get("port"): port["nodePort"] for port in reversed(spec.get("ports") or ()) if port.get("nodePort")}
    shared: dict[Any, int] = {}
    ports = []
    for index, port in enumerate(spec.get("ports") or ()):
        asked = port.get("nodePort") or 0
        if not asked and not gives_node_ports(spec):
            ports.append(port)
            continue
        at = port.get("port")
        number = asked or (0 if before else shared.get(at) or wanted.get(at, 0))
        if not number:
            number = _next_port(draw, f"{port.get('protocol')} {at}", "a nodePort")
        elif number not in held and number not in shared.values():
            problem = "" if draw.dry_run else _port_problem(draw, number)
            if problem:
                raise draw.invalid(f"spec.ports[{index}].nodePort", number, problem)
        draw.given[used_port(number)] = None
        shared.setdefault(at, number)
        ports.append(port if asked else Frozen({**port, "nodePort": number}))
    if ports:
        spec["ports"] = FrozenList(ports)


def _next_port(draw: _Draw, label: str, what: str) -> int:
    size = PORTS[1] - PORTS[0] + 1
    place = draw.free(label, size, PORTS_LAST, lambda number: used_port(PORTS[0] + number))
    if place is None:
        raise errors.internal(f"failed to allocate {what}: range is full")
    return PORTS[0] + place


def _port_problem(draw: _Draw, number: int) -> str:
    if not PORTS[0] <= number <= PORTS[1]:
        return f"provided port is not in the valid range. The range of valid ports is {PORTS[0]}-{PORTS[1]}"
    return "provided port is already allocated" if draw.is_taken(used_port(number)) else ""


def _health_check(draw: _Draw, spec: dict[str, Any]) -> None:
    asked = spec.get("healthCheckNodePort")
    if not asked:
        spec["healthCheckNodePort"] = _next_port(draw, "health", "a HealthCheck NodePort 0")
    elif problem := _port_problem(draw, asked):
        raise errors.internal(f"failed to allocate requested HealthCheck NodePort {asked}: {problem}")
