"""URLs, IP addresses and networks."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_interface
from typing import Any, Final

from steersman.api.cel.faults import CelError
from steersman.api.cel.functions import Registry, functions
from steersman.api.cel.types import OPAQUE
from steersman.api.cel.values import Opaque

Address = IPv4Address | IPv6Address
_URL: Final = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.S)
_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_PATH: Final = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~!$&'()*+,;=:@/%[]")


class Url(Opaque):
    """A URL, in parts as they were written."""

    __slots__ = ("host", "path", "query", "scheme", "text")
    kind = OPAQUE["url"].name

    def __init__(self, text: str) -> None:
        if text == "":
            raise _bad_url(text, "empty url")
        if _CONTROL.search(text):
            raise _bad_url(text, "net/url: invalid control character in URL")
        match = _URL.fullmatch(text)
        assert match is not None
        scheme, host, self.path, self.query = match[1], match[2] or "", match[3], match[4] or ""
        if not scheme and not text.startswith("/"):
            first = text.partition("/")[0]
            missing = ":" in first
            raise _bad_url(
                text, "missing protocol scheme" if missing and first[0] == ":" else "invalid URI for request"
            )
        if scheme and match[2] is None and not self.path.startswith("/"):
            self.path = ""  # opaque, such as mailto:
        found = _PERCENT.search(self.path + host)
        if found:
            shown = (self.path + host)[found.start() : found.start() + 3]
            raise _bad_url(text, f'invalid URL escape "{shown}"')
        self.scheme = (scheme or "").lower()
        self.host = host.rpartition("@")[2]
        if not re.fullmatch(r"(\[[0-9A-Fa-f:.%A-Za-z]*\]|[^\[\]:\s]*)(:\d*)?", self.host):
            raise _bad_url(text, f'invalid port "{self.host[self.host.rfind(":") :]}" after host')
        self.text = text

    def cel_equal(self, other: Any) -> bool:
        """Equal as written."""
        return bool(self.text == other.text)

    def hostname(self) -> str:
        """The host without brackets and port."""
        if self.host.startswith("["):
            return self.host[1:].partition("]")[0]
        return self.host.partition(":")[0]

    def port(self) -> str:
        """The port, "" without one."""
        return self.host.rpartition(":")[2] if re.search(r":\d+$", self.host) else ""

    def escaped_path(self) -> str:
        """The path as it is sent."""
        raw = self.path.encode("utf-8", "surrogatepass")
        return "".join([chr(byte) if byte in _PATH else f"%{byte:02X}" for byte in raw])

    def parameters(self) -> dict[str, list[str]]:
        """The query: values by name, in order."""
        out: dict[str, list[str]] = {}
        for pair in self.query.split("&"):
            if pair and ";" not in pair and not _PERCENT.search(pair):
                name, _, value = pair.partition("=")
                out.setdefault(_decoded(name), []).append(_decoded(value))
        return out


def _decoded(text: str) -> str:
    raw = text.replace("+", " ").encode("utf-8", "surrogatepass")
    return re.sub(rb"%([0-9A-Fa-f]{2})", lambda m: bytes([int(m[1], 16)]), raw).decode("utf-8", "replace")


def _bad_url(text: str, why: str) -> CelError:
    return CelError(f'URL parse error during conversion from string: parse "{text}": {why}')


def _is_url(text: str) -> bool:
    try:
        Url(text)
    except CelError:
        return False
    return True


class Ip(Opaque):
    """An address."""

    __slots__ = ("address",)
    kind = OPAQUE["ip"].name

    def __init__(self, address: Address) -> None:
        self.address = address

    def __str__(self) -> str:
        return str(self.address)

    def cel_equal(self, other: Any) -> bool:
        """The same address."""
        return bool(self.address == other.address)


def to_ip(text: str) -> Ip:
    """The address. Raises `CelError`."""
    if "%" in text:
        raise CelError(f'IP address "{text}" with zone value is not allowed')
    try:
        found = ip_address(text)
    except ValueError:
        told = f'IP Address "{text}" parse error during conversion from string: ParseAddr("{text}"): unable to parse IP'
        raise CelError(told) from None
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        raise CelError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    return Ip(found)


def _is_ip(text: str) -> bool:
    try:
        to_ip(text)
    except CelError:
        return False
    return True


class Cidr(Opaque):
    """A prefix: an address and how many of its bits count."""

    __slots__ = ("address", "network")
    kind = OPAQUE["cidr"].name

    def __init__(self, address: Address, network: IPv4Network | IPv6Network) -> None:
        self.address = address
        self.network = network

    def __str__(self) -> str:
        return f"{self.address}/{self.network.prefixlen}"

    def cel_equal(self, other: Any) -> bool:
        """The same address and length."""
        return bool(self.address == other.address and self.network == other.network)

    def has(self, address: Address) -> bool:
        """Whether an address is within."""
        return address.version == self.network.version and address in self.network


def to_cidr(text: str) -> Cidr:
    """The prefix. Raises `CelError`."""
    head, slash, length = text.rpartition("/")
    fault = "" if slash else "no '/'"
    if not fault and not re.fullmatch(r"0|[1-9]\d{0,2}", length, re.ASCII):
        fault = "bad bits after slash"
    if not fault and "%" in head:
        fault = "IPv6 zones cannot be present in a prefix"
    try:
        found = ip_interface(text) if not fault else None
    except ValueError:
        found, fault = None, fault or "unable to parse IP"
    if found is None:
        raise CelError(
            f'network address parse error during conversion from string: netip.ParsePrefix("{text}"): {fault}'
        )
    address = ip_address(found.ip)
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise CelError(f'IPv4-mapped IPv6 address "{head}" is not allowed')
    return Cidr(address, found.network)


def _is_cidr(text: str) -> bool:
    try:
        to_cidr(text)
    except CelError:
        return False
    return True


def _contains_cidr(outer: Cidr, inner: Any) -> bool:
    other = to_cidr(inner) if isinstance(inner, str) else inner
    return outer.has(other.address) and outer.network.prefixlen <= other.network.prefixlen


def _global_unicast(ip: Ip) -> bool:
    address = ip.address
    if isinstance(address, IPv4Address) and int(address) == (1 << 32) - 1:
        return False
    plain = address.is_unspecified or address.is_loopback or address.is_multicast
    return not plain and not address.is_link_local


def net() -> Registry:
    """The library."""
    return functions(
        [
            ("url", "string -> url", Url),
            ("isURL", "string -> bool", _is_url),
            ("getScheme", ". url -> string", lambda url: url.scheme),
            ("getHost", ". url -> string", lambda url: url.host),
            ("getHostname", ". url -> string", Url.hostname),
            ("getPort", ". url -> string", Url.port),
            ("getEscapedPath", ". url -> string", Url.escaped_path),
            ("getQuery", ". url -> map(string,list(string))", Url.parameters),
            ("ip", "string -> ip", to_ip),
            ("isIP", "string -> bool", _is_ip),
            ("ip.isCanonical", "string -> bool", lambda text: str(to_ip(text).address) == text),
            ("family", ". ip -> int", lambda ip: ip.address.version),
            ("isUnspecified", ". ip -> bool", lambda ip: ip.address.is_unspecified),
            ("isLoopback", ". ip -> bool", lambda ip: ip.address.is_loopback),
            ("isLinkLocalMulticast", ". ip -> bool", _link_local_multicast),
            ("isLinkLocalUnicast", ". ip -> bool", lambda ip: ip.address.is_link_local),
            ("isGlobalUnicast", ". ip -> bool", _global_unicast),
            ("cidr", "string -> cidr", to_cidr),
            ("isCIDR", "string -> bool", _is_cidr),
            ("containsIP", ". cidr string -> bool", lambda cidr, text: cidr.has(to_ip(text).address)),
            ("containsIP", ". cidr ip -> bool", lambda cidr, ip: cidr.has(ip.address)),
            ("containsCIDR", ". cidr string -> bool", _contains_cidr),
            ("containsCIDR", ". cidr cidr -> bool", _contains_cidr),
            ("ip", ". cidr -> ip", lambda cidr: Ip(cidr.address)),
            ("prefixLength", ". cidr -> int", lambda cidr: cidr.network.prefixlen),
            ("masked", ". cidr -> cidr", lambda cidr: Cidr(cidr.network.network_address, cidr.network)),
        ]
    )


def _link_local_multicast(ip: Ip) -> bool:
    value = int(ip.address)
    if ip.address.version == 4:
        return value >> 8 == 0xE00000
    return value >> 120 == 0xFF and (value >> 112) & 0xF == 2
