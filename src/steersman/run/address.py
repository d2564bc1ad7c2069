"""The address to listen on, as a person writes it."""

from __future__ import annotations

import ipaddress
import socket
from typing import Final, NamedTuple

from steersman.run.load import StartError

PORT: Final = 6443
"""Kubernetes' port for its API."""


class Address(NamedTuple):
    """A host (name or address, "" for all) and a port (0 for a free one)."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def everywhere(self) -> bool:
        """Whether it stands for every address of the machine."""
        return self.host in ("", "*", "0.0.0.0", "::")

    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        if self.everywhere:
            return False
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            pass
        try:
            # As for listening: without AI_PASSIVE some names that stand for every address are this machine's loopback.
            found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        except OSError:
            return False
        return all(ipaddress.ip_address(str(entry[4][0]).partition("%")[0]).is_loopback for entry in found)

    def names(self) -> list[str]:
        """Names and addresses beside localhost's under which clients may reach it, for its certificate."""
        if self.loopback():
            return []
        if not self.everywhere:
            return [self.host]
        names = {socket.gethostname()}
        try:
            entries = socket.getaddrinfo(socket.gethostname(), None, type=socket.SOCK_STREAM)
            names.update(str(entry[4][0]) for entry in entries if "%" not in str(entry[4][0]))
        except OSError:
            pass
        return sorted(names)


def parse_address(text: str) -> Address:
    """`HOST:PORT`, `[ADDRESS]:PORT`, `HOST`, `:PORT` (every address) or `PORT` (127.0.0.1). Raises `StartError`."""
    host, colon, port = text.strip().rpartition(":")
    if not colon and port.isascii() and port.isdigit():
        host = "127.0.0.1"
    elif not colon or (":" in host and not (host.startswith("[") and host.endswith("]"))):
        host, port = text.strip(), str(PORT)
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) < 65536):
        raise StartError(f"--listen {text}: {port!r} is not a port; write HOST:PORT, as in 127.0.0.1:{PORT}")
    if any(char.isspace() or char == "/" for char in host):
        raise StartError(f"--listen {text}: {host!r} is not a host; write HOST:PORT, as in 127.0.0.1:{PORT}")
    return Address(host.removeprefix("[").removesuffix("]"), int(port))
