"""The limits of the HTTP server."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Everything a client can make the server hold or wait for. Times are seconds."""

    # Request line. Long label selectors are the longest real targets, a few KiB; browsers stop at 64.
    target_bytes: int = 32 * 1024
    # All header lines. Bearer tokens with many groups reach 16 KiB; Go's 1 MiB default is no use here.
    header_bytes: int = 64 * 1024
    # Header lines, trailers included: 256 parts of an impersonation and what clients and proxies add. A line costs some
    # 200 bytes of memory, however short it is, and every look-up passes all of them.
    header_lines: int = 512
    # kube-apiserver's MaxRequestBodyBytes: twice etcd's 1.5 MiB, for patches larger than their object.
    body_bytes: int = 3 * 1024 * 1024
    # Bodies up to this size are read before anybody looks who sends them: most are smaller, and so need no second
    # look at the credentials. With every connection busy it is 512 MiB.
    unscreened_bytes: int = 64 * 1024
    # From the first byte of a request, or from a new connection, to the end of its headers. kube-apiserver
    # allows 32 s; a client on a working network needs one round trip.
    header_seconds: float = 15.0
    # From the end of the headers to the end of the body: kube-apiserver's 60 s for short requests.
    body_seconds: float = 60.0
    # A kept-alive connection without a request. Go clients close theirs after 90 s; closing later than the
    # client avoids the race in which it sends a request into a closing connection.
    idle_seconds: float = 100.0
    # A client that reads nothing while we have data for it. Longer than any sane network stall.
    stall_seconds: float = 60.0
    # A connection that was upgraded and over which nothing goes. The kubelet's --streaming-connection-idle-timeout.
    upgraded_idle_seconds: float = 4 * 3600.0
    # Connections at a time; further ones are told 503. Costs about 20 KB each, with TLS 100 KB.
    connections: int = 8192
    # Of these, such over which nobody has said yet who they are. When one more comes, the oldest of them has to go: so
    # a flood of strangers never keeps out who is known, and one becomes known with the first request.
    strangers: int = 4096
    # Time for requests in flight after the start of a shutdown; systemd and kubelet kill at 30 s and more.
    grace_seconds: float = 10.0
