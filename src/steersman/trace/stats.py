"""A trace in figures."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from steersman.trace.gvk import GVK
from steersman.trace.recording import Trace, slot


@dataclass(frozen=True, slots=True)
class KindStats:
    """Of one kind: applications, deletions, and how many different objects these are."""

    applied: int = 0
    deleted: int = 0
    objects: int = 0


@dataclass(frozen=True, slots=True)
class Stats:
    """`start` and `end` in seconds since 1970, None without events; `longest` in seconds, of finished pods."""

    start: int | None
    end: int | None
    events: int
    kinds: dict[str, KindStats]
    namespaces: dict[str, int]
    owners: int
    pods: dict[str, int]
    longest: int

    @property
    def seconds(self) -> int:
        """From the first event to the last."""
        return 0 if self.start is None or self.end is None else self.end - self.start

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return {**asdict(self), "seconds": self.seconds}


def stats(trace: Trace) -> Stats:
    """Counts what is in `trace`. `namespaces` counts applications; `pods` lives by their state."""
    applied: Counter[str] = Counter()
    deleted: Counter[str] = Counter()
    namespaces: Counter[str] = Counter()
    objects: dict[str, set[str]] = {}
    for event in trace.events:
        for obj in event.applied:
            applied[str(GVK.of(obj))] += 1
            namespaces[obj["metadata"].get("namespace") or ""] += 1
        for obj in event.deleted:
            deleted[str(GVK.of(obj))] += 1
        for obj in (*event.applied, *event.deleted):
            objects.setdefault(str(GVK.of(obj)), set()).add(slot(obj))
    lives = [life for by_hash in trace.lifecycles.values() for each in by_hash.values() for life in each]
    return Stats(
        start=trace.start,
        end=trace.end,
        events=len(trace.events),
        kinds={kind: KindStats(applied[kind], deleted[kind], len(objects[kind])) for kind in sorted(objects)},
        namespaces=dict(sorted(namespaces.items())),
        owners=len(trace.lifecycles),
        pods={
            "empty": sum(life.empty for life in lives),
            "running": sum(life.running for life in lives),
            "finished": sum(life.finished for life in lives),
        },
        longest=max((life.seconds or 0 for life in lives), default=0),
    )
