"""Continue tokens: where the next page of a list starts."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import orjson

from steersman.api import errors


def write_token(namespace: str, name: str, rev: int) -> str:
    """Where the next page starts, and the revision of the first: a watch from there misses nothing, since later pages
    show the newest state."""
    return base64.urlsafe_b64encode(orjson.dumps([1, namespace, name, rev])).decode().rstrip("=")


def read_token(token: Any) -> tuple[tuple[str, str], int]:
    """(namespace, name) of the last object, and the revision, of `write_token`. Raises ApiError 400."""
    try:
        read = orjson.loads(base64.urlsafe_b64decode(str(token) + "=" * (-len(str(token)) % 4)))
        version, namespace, name, rev = read
        if version == 1 and isinstance(namespace, str) and isinstance(name, str) and type(rev) is int:
            return (namespace, name), rev
    except (ValueError, binascii.Error, TypeError):
        pass
    raise errors.bad_request("the continue token is not one of this server; start the list again without it")
