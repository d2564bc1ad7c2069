"""How long a pod ran, as a trace remembers it: Empty, then Running, then Finished."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class PodLife:
    """`start` and `end` in whole seconds since 1970; None where the pod has not got that far."""

    start: int | None = None
    end: int | None = None

    @property
    def empty(self) -> bool:
        """The pod never started."""
        return self.start is None

    @property
    def running(self) -> bool:
        """It started and has not ended."""
        return self.start is not None and self.end is None

    @property
    def finished(self) -> bool:
        """It started and ended."""
        return self.start is not None and self.end is not None

    @property
    def seconds(self) -> int | None:
        """How long the pod ran; None unless finished. A clock that went back gives 0."""
        if self.start is None or self.end is None:
            return None
        return max(0, self.end - self.start)

    def follows(self, older: PodLife) -> bool:
        """True if a pod last seen as `older` may be this far now: strictly further, same start.

        A container that restarts gets a new start time; the first one is the pod's.
        """
        if older.empty:
            return not self.empty
        return older.running and self.finished and self.start == older.start

    def clip(self, start: int, end: int) -> PodLife | None:
        """What [start, end) has to know of this life; None if nothing. Begins at `start` at least.

        A pod that began before the window and ended after it is kept (SimKube 2.7 loses it).
        """
        if self.start is None or self.start >= end or (self.end is not None and self.end < start):
            return None
        return PodLife(max(self.start, start), self.end)

    @classmethod
    def of(cls, pod: Mapping[str, Any]) -> PodLife:
        """From a pod's container statuses: first start of any, last end once all main ones ended.

        Times that cannot be read count as absent.
        """
        status = pod.get("status") or {}
        init = [_times(s) for s in status.get("initContainerStatuses") or ()]
        main = [_times(s) for s in status.get("containerStatuses") or ()]
        starts = [start for start, _ in init + main if start is not None]
        ends = [end for _, end in init + main if end is not None]
        if not starts:
            return cls()
        ended = sum(1 for _, end in main if end is not None)
        over = ended > 0 and ended == len((pod.get("spec") or {}).get("containers") or ())
        return cls(min(starts), max(ends) if over else None)

    def encode(self) -> str | dict[str, Any]:
        """As the file has it (a Rust enum): `"Empty"`, `{"Running": s}`, `{"Finished": [s, e]}`."""
        if self.start is None:
            return "Empty"
        return {"Running": self.start} if self.end is None else {"Finished": [self.start, self.end]}

    @classmethod
    def decode(cls, value: Any) -> PodLife:
        """Reverse of `encode`; ValueError for any other shape."""
        if value == "Empty":
            return cls()
        if isinstance(value, dict) and len(value) == 1:
            ((state, times),) = value.items()
            if state == "Running" and _is_time(times):
                return cls(times)
            if state == "Finished" and isinstance(times, list | tuple) and len(times) == 2:
                start, end = times
                if _is_time(start) and _is_time(end):
                    return cls(start, end)
        raise ValueError('expected "Empty", {"Running": start} or {"Finished": [start, end]}')


def _is_time(value: Any) -> bool:
    # 64 bits, signed: what Rust reads it into.
    return type(value) is int and -(2**63) <= value < 2**63


def _times(status: Mapping[str, Any]) -> tuple[int | None, int | None]:
    state = status.get("state") or {}
    terminated = state.get("terminated")
    if terminated:
        return _seconds(terminated.get("startedAt")), _seconds(terminated.get("finishedAt"))
    return _seconds((state.get("running") or {}).get("startedAt")), None


def _seconds(text: Any) -> int | None:
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp())
