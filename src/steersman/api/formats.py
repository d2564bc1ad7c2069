"""Formats of strings in custom schemas: those that kube-apiserver knows, and what each accepts.

A format it does not know says nothing (the definition gets a warning). Dashes in a format's name do not count. Sources:
apiextensions-apiserver 0.36, pkg/apiserver/validation/formats.go, for the names; the standards named there, and Go's
net, net/mail and time packages, for what they accept. `isbn`, `creditcard` and `ssn` are known and not checked.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, Final

from steersman.api.names import dns1123_label, dns1123_subdomain

_HEX: Final = "[0-9a-fA-F]"


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.ASCII)
    return lambda text: compiled.fullmatch(text) is not None


def _parses(parse: Callable[[str], Any]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            parse(text)
        except (ValueError, binascii.Error):
            return False
        return True

    return check


def _uuid(version: str) -> Callable[[str], bool]:
    variant = f"[89abAB]{_HEX}{{3}}" if version in ("4", "5") else f"{_HEX}{{4}}"
    third = f"{version}{_HEX}{{3}}" if version else f"{_HEX}{{4}}"
    return _matches(f"{_HEX}{{8}}-?{_HEX}{{4}}-?{third}-?{variant}-?{_HEX}{{12}}")


def _cidr(text: str) -> bool:
    address, slash, bits = text.partition("/")
    return bool(slash) and bits.isdigit() and _parses(lambda _: ipaddress.ip_network(text, strict=False))(address)


def _anything(_text: str) -> bool:
    return True


_LABEL: Final = r"[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?"
CHECKS: Final[Mapping[str, Callable[[str], bool]]] = {
    "bsonobjectid": _matches(f"{_HEX}{{24}}"),
    "byte": _parses(lambda text: base64.b64decode(text, validate=True)),
    "cidr": _cidr,
    "creditcard": _anything,
    "date": lambda text: _matches(r"\d{4}-\d\d-\d\d")(text) and _parses(date.fromisoformat)(text),
    "datetime": _anything,  # intake knows it
    "duration": _matches(
        r"[+-]?(\d+(\.\d*)?|\.\d+)\s*"
        r"(ns|us|µs|μs|ms|s|m|h|d|w|nanos?|nanoseconds?|micros?|microseconds?|millis?|milliseconds?|secs?|seconds?|"
        r"mins?|minutes?|hrs?|hours?|days?|wks?|weeks?)((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))*|0"
    ),
    "email": _matches(r"[^\s@<>()\[\],;:\\\"]+@[^\s@<>()\[\],;:\\\"]+"),
    "hexcolor": _matches(f"#?({_HEX}{{3}}|{_HEX}{{6}})"),
    "hostname": lambda text: len(text) <= 255 and _matches(rf"{_LABEL}(\.{_LABEL})*\.?")(text),
    "ipv4": _parses(ipaddress.IPv4Address),
    "ipv6": _parses(ipaddress.IPv6Address),
    "isbn": _anything,
    "isbn10": _anything,
    "isbn13": _anything,
    "k8slongname": lambda text: not dns1123_subdomain(text),
    "k8sshortname": lambda text: not dns1123_label(text),
    "mac": _matches(rf"{_HEX}{{2}}([:-]{_HEX}{{2}}){{5,19}}|{_HEX}{{4}}(\.{_HEX}{{4}}){{2,9}}"),
    "password": _anything,
    "rgbcolor": _matches(r"rgb\(\s*\d{1,3}\s*,\s*\d{1,3}\s*,\s*\d{1,3}\s*\)"),
    "ssn": _anything,
    "uri": _matches(r"([a-zA-Z][-+.a-zA-Z0-9]*:\S+|/\S*)"),
    "uuid": _uuid(""),
    "uuid3": _uuid("3"),
    "uuid4": _uuid("4"),
    "uuid5": _uuid("5"),
}
"""Format, without dashes → whether a string has it."""
NUMBERS: Final[Mapping[str, tuple[str, ...]]] = {"integer": ("int32", "int64"), "number": ("float", "double")}


def has_format(name: str, text: str) -> bool:
    """Whether a string has a format; True for formats that are not known."""
    check = CHECKS.get(name.replace("-", ""))
    return check is None or check(text)


def unknown(kind: str, name: str) -> bool:
    """Whether a schema of that type ("" for none) names a format that is not known."""
    if kind in ("", "string"):
        return name.replace("-", "") not in CHECKS
    return name not in NUMBERS.get(kind, ())
