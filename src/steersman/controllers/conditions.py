"""Lists of conditions in a status. Pure. Source: Kubernetes 1.36, pkg/controller/deployment/util (SetCondition)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Json = Mapping[str, Any]


def find(conditions: Iterable[Json], type_: str) -> Json | None:
    """The condition of a type."""
    for each in conditions:
        if each["type"] == type_:
            return each
    return None


def without(conditions: Iterable[Json], type_: str) -> list[Json]:
    """All conditions but one."""
    return [each for each in conditions if each["type"] != type_]


def condition(type_: str, status: str, reason: str, message: str, time: str) -> dict[str, Any]:
    """A condition that changed at `time` (RFC 3339)."""
    return {"type": type_, "status": status, "lastTransitionTime": time, "reason": reason, "message": message}
