"""What a client sent, before anybody has judged it: nothing about its shape can be relied on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman.kernel.value import EMPTY


def meta_of(body: Any) -> Mapping[str, Any]:
    """The metadata of a body, or nothing where there is none or it is no object."""
    meta = body.get("metadata") if isinstance(body, dict) else None
    return meta if isinstance(meta, dict) else EMPTY
