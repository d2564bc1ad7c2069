"""What a simulation found, as text for people and as JSON of which equal runs give equal bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from steersman.api.times import time_text
from steersman.kernel.effect import MICRO
from steersman.sim.metrics import Group, percentile

PERCENTILES = (50, 90, 99)
MAX_GROUPS = 10
"""Reasons listed in the text; the JSON has all."""


@dataclass(frozen=True, slots=True)
class Share:
    """How much of one resource was requested by pods on nodes, as a share of what the nodes offer."""

    resource: str
    mean: float
    peak: float


@dataclass(frozen=True, slots=True)
class Left:
    """Something of the trace that the simulation could not do. `why` says what and, where there is one, the remedy."""

    what: str
    objects: int
    why: str


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of one simulation. Times are in virtual microseconds, `wall_seconds` alone is real.

    `waits`: how long each pod was without a node, sorted: until it got one, was deleted, or the simulation ended (so
    that pods which never got one count, too). `still_waiting`: those of the end, so far. `shares` are over the time of
    the trace. Everything but `wall_seconds` follows from the trace, the nodes, the seed and the version of Steersman.
    """

    trace: str
    seed: int
    nodes: int
    start: int
    trace_end: int
    end: int
    events: int
    pods: dict[str, int]
    """created, scheduled, succeeded, failed, deleted, running and pending: the last two at the end."""
    waits: tuple[int, ...]
    still_waiting: tuple[int, ...]
    most_waiting: int
    pending: tuple[Group, ...]
    shares: tuple[Share, ...]
    not_simulated: tuple[Left, ...]
    refused: tuple[Left, ...]
    notes: tuple[Left, ...]
    faults: tuple[Left, ...]
    steps: int
    writes: int
    store_digest: str
    schedule_digest: str
    stopped: str
    """Why the simulation ended before its time; empty if it did not."""
    wall_seconds: float

    @property
    def partial(self) -> bool:
        """It was stopped before its end."""
        return bool(self.stopped)

    @property
    def digest(self) -> str:
        """Equal for equal runs: the final state and every choice made on the way."""
        return f"{self.store_digest}-{self.schedule_digest}"

    def percentile(self, percent: int) -> float | None:
        """Seconds that `percent` % of the pods were without a node at most; None if there was no pod."""
        return percentile(list(self.waits), percent) / MICRO if self.waits else None

    def document(self, timing: bool = False) -> dict[str, Any]:
        """All of it as JSON values; with `timing` also what differs from run to run, under `wall`."""
        waits: dict[str, Any] = {f"p{percent}": self.percentile(percent) for percent in PERCENTILES}
        found: dict[str, Any] = {
            "trace": self.trace,
            "seed": self.seed,
            "nodes": self.nodes,
            "start": time_text(self.start // MICRO),
            "traceSeconds": (self.trace_end - self.start) / MICRO,
            "simulatedSeconds": (self.end - self.start) / MICRO,
            "events": self.events,
            "pods": self.pods,
            "pendingSeconds": {
                **waits,
                "max": self.percentile(100),
                "longestStillPending": max(self.still_waiting) / MICRO if self.still_waiting else None,
                "mostPodsAtOnce": self.most_waiting,
            },
            "pending": [{"message": g.message, "pods": g.pods, "example": g.example} for g in self.pending],
            "utilisation": {s.resource: {"mean": round(s.mean, 6), "peak": round(s.peak, 6)} for s in self.shares},
            "notSimulated": _lefts(self.not_simulated),
            "refused": _lefts(self.refused),
            "notes": _lefts(self.notes),
            "faults": _lefts(self.faults),
            "steps": self.steps,
            "writes": self.writes,
            "digest": {"store": self.store_digest, "schedule": self.schedule_digest},
            "partial": self.stopped or False,
        }
        if timing:
            found["wall"] = {"seconds": round(self.wall_seconds, 3), "speedup": round(self.speedup, 1)}
        return found

    def json(self, timing: bool = False) -> bytes:
        """`document` as bytes: keys sorted, two spaces, a closing newline."""
        options = orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
        return orjson.dumps(self.document(timing), option=options)

    @property
    def speedup(self) -> float:
        """How many times faster than the recorded cluster it ran."""
        return (self.end - self.start) / MICRO / max(self.wall_seconds, 1e-6)

    def text(self) -> str:
        """For a terminal."""
        return "\n".join(_lines(self)) + "\n"

    def __str__(self) -> str:
        return self.text()


def _lefts(lefts: tuple[Left, ...]) -> list[dict[str, Any]]:
    return [{"what": left.what, "objects": left.objects, "why": left.why} for left in lefts]


def _lines(report: Report) -> list[str]:
    span = duration(report.trace_end - report.start)
    nodes = f"{report.nodes} node{'' if report.nodes == 1 else 's'}"
    out = [f"{report.trace}: {span} from {time_text(report.start // MICRO)} on {nodes}"]
    if report.partial:
        out += ["", f"PARTIAL: {report.stopped}; what follows is the state at {_clock(report.end - report.start)}"]
    out += ["", *_table([("pods", *report.pods), ("", *[f"{n:,}" for n in report.pods.values()])])]
    if report.waits:
        names = [*[f"p{percent}" for percent in PERCENTILES], "max"]
        values = [report.percentile(percent) for percent in (*PERCENTILES, 100)]
        row = [seconds(value or 0.0) for value in values]
        out += ["", *_table([("pending time", *names, "most at once"), ("", *row, f"{report.most_waiting:,}")])]
    rows = [(share.resource, _percent(share.mean), _percent(share.peak)) for share in report.shares]
    out += ["", *_table([("requested", "mean", "peak"), *rows])]
    if report.pending:
        longest = seconds(max(report.still_waiting) / MICRO) if report.still_waiting else "0 s"
        out += ["", f"still pending at the end (up to {longest} so far)"]
        out += [f"  {g.pods:,} × {g.message}  (such as {g.example})" for g in report.pending[:MAX_GROUPS]]
        if len(report.pending) > MAX_GROUPS:
            out.append(f"  and {len(report.pending) - MAX_GROUPS} more reasons: --json has all")
    for title, lefts in (
        ("not simulated yet", report.not_simulated),
        ("refused by the API", report.refused),
        ("left out of account", report.notes),
        ("faults of controllers", report.faults),
    ):
        if lefts:
            out += ["", title, *[f"  {left.objects:,} × {left.what}: {left.why}" for left in lefts[:MAX_GROUPS]]]
            if len(lefts) > MAX_GROUPS:
                out.append(f"  and {len(lefts) - MAX_GROUPS} more: --json has all")
    took = f"{report.wall_seconds:.2f} s, {report.speedup:,.0f} times real time"
    simulated = duration(report.end - report.start)
    out += ["", f"{simulated} simulated in {took}: {report.steps:,} steps, {report.writes:,} writes"]
    out.append(f"seed {report.seed}, digest {report.digest}")
    return out


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    """Columns aligned: the first to the left, the others to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    widths[0] = max(widths[0], 12)

    def line(row: tuple[str, ...]) -> str:
        cells = [cell.rjust(max(width, 8)) for cell, width in zip(row[1:], widths[1:], strict=True)]
        return "  ".join([row[0].ljust(widths[0]), *cells]).rstrip()

    return [line(row) for row in rows]


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def seconds(value: float) -> str:
    """As people read it: `0 s`, `0.25 s`, `12.5 s`, `1,204 s`."""
    if value == int(value):
        return f"{int(value):,} s"
    return f"{value:,.2f} s" if value < 10 else f"{value:,.1f} s"


def duration(micros: int) -> str:
    """As people read it: `18m54s`, `2d03h`, `45s`."""
    whole = micros // MICRO
    days, hours, minutes, rest = whole // 86_400, whole // 3600 % 24, whole // 60 % 60, whole % 60
    if days:
        return f"{days}d{hours:02}h"
    if hours:
        return f"{hours}h{minutes:02}m"
    return f"{minutes}m{rest:02}s" if minutes else f"{rest}s"


def _clock(micros: int) -> str:
    whole = micros // MICRO
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02} of virtual time"
