"""What Kubernetes says about its fields for people to read: descriptions, and with them defaults and enums.

Nothing but an OpenAPI document needs a megabyte of text, so it is unpacked when a document is rendered, which is some
20 ms, and let go of afterwards. data/README.md says what the file holds and where it comes from.
"""

from __future__ import annotations

import hashlib
import importlib.resources
import lzma
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import orjson

NESTED: Final = ("items", "additionalProperties")
"""Keys whose value is one schema; `properties` has many."""
Node = dict[str, Any]


def _packed() -> bytes:
    return importlib.resources.files("steersman.serve").joinpath("data/openapi.json.xz").read_bytes()


def overlays() -> Mapping[str, Node]:
    """Definition name → what to lay over its schema."""
    found: Mapping[str, Node] = orjson.loads(lzma.decompress(_packed()))
    return found


@cache
def overlays_digest() -> bytes:
    """What stands for all of it in the hash of a document, so that a hash needs no text."""
    return hashlib.sha256(_packed()).digest()


def laid_over(node: Node, overlay: Node) -> Node:
    """The schema with what the overlay says: null removes a key, all else but a schema below it is put in its place. A
    reference cannot have anything beside it, and so becomes an `allOf` of one."""
    out: Node = {"allOf": [node]} if "$ref" in node and overlay else dict(node)
    for key, value in overlay.items():
        if value is None:
            out.pop(key, None)
        elif key == "properties":
            out[key] = {name: laid_over(child, value.get(name, {})) for name, child in out[key].items()}
        elif key in NESTED and key in out:
            out[key] = laid_over(out[key], value)
        else:
            out[key] = value
    return out
