"""Answers compressed with gzip, for clients that ask for it and answers that are large.

As in kube-apiserver: from 128 KiB on, at the fastest level, never a watch. Large answers are compressed in pieces, so
that others get their turn. Unlike there, clients on the same machine get them as they are: a loopback moves a gigabyte
in the time that gzip needs for 40 MB, and then the client has to unpack them.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from functools import lru_cache
from ipaddress import ip_address
from typing import Final

from steersman.serve.message import Request, Response

FROM_BYTES: Final = 128 * 1024
PIECE: Final = 256 * 1024
"""Bytes compressed in one go, some 2 ms."""
GZIP_WINDOW: Final = 31
"""zlib's number for a gzip header with the largest window."""


@lru_cache(maxsize=256)
def takes_gzip(accept: str) -> bool:
    """Whether an Accept-Encoding header allows gzip (RFC 9110 §12.5.3)."""
    for clause in accept.split(","):
        coding, *params = (part.strip().lower() for part in clause.split(";"))
        if coding == "gzip":
            return not any(param.replace(" ", "") in ("q=0", "q=0.0", "q=0.00", "q=0.000") for param in params)
    return False


@lru_cache(maxsize=256)
def is_local(address: str) -> bool:
    """Whether a peer is on this machine."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return (mapped or found).is_loopback


def compressed(request: Request, response: Response) -> Response:
    """The response, compressed when that is worth it."""
    body = response.body
    if isinstance(body, bytes):
        if len(body) < FROM_BYTES:
            return response
    elif response.endless:
        return response
    if response.status != 200 or (request.peer is not None and is_local(request.peer[0])):
        return response
    if not takes_gzip(request.headers.get("accept-encoding")[:1000]):
        return response
    pairs = response.headers.items() if hasattr(response.headers, "items") else response.headers
    headers = (*pairs, ("content-encoding", "gzip"), ("vary", "Accept-Encoding"))
    pieces = _slices(body) if isinstance(body, bytes) else body
    return Response(response.status, headers, _gzip(pieces), endless=False)


async def _slices(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), PIECE):
        yield body[start : start + PIECE]
        await asyncio.sleep(0)


async def _gzip(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    packer = zlib.compressobj(1, zlib.DEFLATED, GZIP_WINDOW)
    try:
        async for piece in pieces:
            if packed := packer.compress(piece):
                yield packed
        yield packer.flush()
    finally:
        await pieces.aclose()  # type: ignore[attr-defined]
