"""What the server counts, and `/metrics`: the Prometheus text of it.

Names and labels are those of kube-apiserver, so that existing dashboards read them. The number of series is bounded:
labels come from the served kinds, never from what a client wrote, and beyond MAX_SERIES everything is counted in one.
Format: Prometheus exposition format 0.0.4.
"""

from __future__ import annotations

import asyncio
import bisect
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from steersman.kernel.store import Store

MAX_SERIES: Final = 4096
"""Distinct (verb, resource, …, code): 60 kinds with 9 verbs and a few codes each come to some 2000."""
BOUNDS: Final = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0)
"""Upper bounds of the duration buckets, in seconds: the finer half of kube-apiserver's."""
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class Asked(NamedTuple):
    """The labels of a request. All empty: a path that is no resource."""

    verb: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    part: str = ""
    scope: str = ""

    def labels(self) -> str:
        """As they stand between the braces."""
        names = ("verb", "group", "version", "resource", "subresource", "scope")
        return ",".join(f'{name}="{text}"' for name, text in zip(names, self, strict=True))


OTHER: Final = Asked("other")


class Durations:
    """A histogram."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        """Counts one."""
        self.counts[bisect.bisect_left(BOUNDS, seconds)] += 1
        self.total += seconds


class Telemetry:
    """The counters of one server."""

    def __init__(self) -> None:
        self.started = time.time()
        self.watches: dict[Asked, int] = {}
        self._codes: dict[tuple[Asked, int], int] = {}
        self._durations: dict[Asked, Durations] = {}

    def answered(self, asked: Asked, code: int, seconds: float) -> None:
        """Counts a request that was answered after `seconds`."""
        key = (asked, code)
        known = self._codes.get(key)
        if known is None and len(self._codes) >= MAX_SERIES:
            asked, key = OTHER, (OTHER, code)
            known = self._codes.get(key)
        self._codes[key] = (known or 0) + 1
        found = self._durations.get(asked)
        if found is None:
            found = self._durations[asked] = Durations()
        found.add(seconds)

    @contextmanager
    def watching(self, asked: Asked) -> Iterator[None]:
        """Counts a watch while it is open."""
        self.watches[asked] = self.watches.get(asked, 0) + 1
        try:
            yield
        finally:
            self.watches[asked] -= 1

    def text(self, store: Store, extra: Iterable[tuple[str, str, float]] = ()) -> str:
        """Everything, as Prometheus reads it. `extra` are (name, type, value) of single numbers."""
        lines: list[str] = []
        lines += _family("apiserver_request_total", "counter", "Requests by verb, resource and code.")
        for (asked, code), count in sorted(self._codes.items()):
            lines.append(f'apiserver_request_total{{{asked.labels()},code="{code}"}} {count}')
        lines += _family("apiserver_request_duration_seconds", "histogram", "Seconds from a request to its answer.")
        for asked, found in sorted(self._durations.items()):
            lines += _histogram("apiserver_request_duration_seconds", asked.labels(), found)
        lines += _family("apiserver_longrunning_requests", "gauge", "Watches that are open.")
        for asked, count in sorted(self.watches.items()):
            lines.append(f"apiserver_longrunning_requests{{{asked.labels()}}} {count}")
        lines += _family("apiserver_storage_objects", "gauge", "Objects in the store.")
        for group, kind in store.kinds():
            lines.append(f'apiserver_storage_objects{{group="{group}",kind="{kind}"}} {store.count((group, kind))}')
        for name, form, value in [("steersman_store_revision", "counter", float(store.rev)), *self._process(), *extra]:
            lines += [f"# TYPE {name} {form}", f"{name} {value:.17g}"]
        return "\n".join(lines) + "\n"

    def _process(self) -> Iterator[tuple[str, str, float]]:
        yield "process_start_time_seconds", "gauge", self.started
        yield "process_cpu_seconds_total", "counter", time.process_time()
        yield "steersman_tasks", "gauge", float(len(asyncio.all_tasks()))


def _family(name: str, form: str, text: str) -> list[str]:
    return [f"# HELP {name} {text}", f"# TYPE {name} {form}"]


def _histogram(name: str, labels: str, found: Durations) -> Iterator[str]:
    below = 0
    for bound, count in zip((*BOUNDS, float("inf")), found.counts, strict=True):
        below += count
        shown = "+Inf" if bound == float("inf") else f"{bound:g}"
        yield f'{name}_bucket{{{labels},le="{shown}"}} {below}'
    yield f"{name}_sum{{{labels}}} {found.total:.6f}"
    yield f"{name}_count{{{labels}}} {below}"
