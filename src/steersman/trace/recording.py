"""A recording in memory: what was applied and deleted, when, and how long pods ran."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from steersman.trace.podlife import PodLife
from steersman.trace.tracked import Tracked

VERSION = 2  # of the format that is read and written


class TraceError(ValueError):
    """A trace that cannot be read, written or built. The text names the place and the remedy.

    `where` is the file; `place` the part of it, as in `events[3].applied_objs[0]`.
    """

    def __init__(self, where: str, place: str, problem: str, remedy: str) -> None:
        self.where, self.place, self.problem, self.remedy = where, place, problem, remedy
        super().__init__(": ".join(part for part in (where, place, problem) if part) + f". {remedy}")


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """Objects applied and objects deleted in one second. `ts` is in seconds since 1970."""

    ts: int
    applied: tuple[dict[str, Any], ...] = ()
    deleted: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """A recording. `events` are in order of `ts`; the first is the state at the start.

    `config`: kind (`apps/v1.Deployment`) to options. `index`: kind to `namespace/name` to the hash of
    the spec as recorded; it may name objects that no event has, and a transformed trace keeps the
    hashes from before. `lifecycles`: (kind, `namespace/name`) of an owner to pod hash to the lives of
    its pods in the order they began.
    """

    version: int = VERSION
    config: dict[str, Tracked] = field(default_factory=dict)
    events: tuple[TraceEvent, ...] = ()
    index: dict[str, dict[str, int]] = field(default_factory=dict)
    lifecycles: dict[tuple[str, str], dict[int, tuple[PodLife, ...]]] = field(default_factory=dict)

    @property
    def start(self) -> int | None:
        """Seconds since 1970 of the first event; None if there is none."""
        return self.events[0].ts if self.events else None

    @property
    def end(self) -> int | None:
        """Seconds since 1970 of the last event; None if there is none."""
        return self.events[-1].ts if self.events else None


def slot(obj: dict[str, Any]) -> str:
    """`namespace/name` of an object, or `name` alone where it has no namespace."""
    metadata = obj["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])
