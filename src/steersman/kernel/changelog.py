"""The change log: recent events, for watches that continue where they stopped.

Bounded in events and in bytes. A revision that fell off is `Gone`: whoever asks for it must list again (410).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from typing import Final

from .effect import GK, Event
from .object import Object

MAX_EVENTS: Final = 100_000
"""Events kept: at a thousand writes a second a watch may be away for more than a minute and a half."""
MAX_BYTES: Final = 256 << 20
"""Bytes of sections kept alive only by the log, estimated; a burst of large objects must not fill memory."""
OBJECT_COST: Final = 1_500
"""Estimated bytes of an old version that the log alone keeps alive, beside its own status."""


class Gone(LookupError):
    """The log does not reach back to the revision asked for; list again and watch from there."""


class ChangeLog:
    """Events by kind, in revision order."""

    __slots__ = ("_by_kind", "_bytes", "_order", "max_bytes", "max_events", "oldest", "start")

    def __init__(self, oldest: int = 0, max_events: int = MAX_EVENTS, max_bytes: int = MAX_BYTES) -> None:
        self.start = oldest
        """No kind can be watched from before this revision: the log began here."""
        self.oldest = oldest
        """Every kind can be watched from this revision or later."""
        self.max_events = max_events
        self.max_bytes = max_bytes
        self._bytes = 0
        self._order: deque[tuple[int, GK, int]] = deque()
        self._by_kind: dict[GK, _Events] = {}

    def append(self, event: Event) -> None:
        """Adds the newest event, and lets the oldest go over the limits."""
        gk = (event.key.group, event.key.kind)
        events = self._by_kind.get(gk)
        if events is None:
            events = self._by_kind[gk] = _Events()
        cost = _cost(event.old) + _cost(event.new)
        events.append(event)
        self._order.append((event.rev, gk, cost))
        self._bytes += cost
        while len(self._order) > self.max_events or (self._bytes > self.max_bytes and len(self._order) > 1):
            self.oldest, old_gk, freed = self._order.popleft()
            self._by_kind[old_gk].drop_first()
            self._bytes -= freed

    def since(self, rev: int, gk: GK) -> list[Event]:
        """Events of a kind after a revision, oldest first. Raises `Gone`.

        A kind loses a revision only when an event of its own is dropped: a watch of a quiet kind goes on however
        busy the others are.
        """
        events = self._by_kind.get(gk)
        oldest = self.start if events is None else max(self.start, events.dropped)
        if rev < oldest:
            raise Gone(f"revision {rev} is older than {oldest}, the oldest one that is kept")
        return [] if events is None else events.after(rev)

    def __len__(self) -> int:
        return len(self._order)


class _Events:
    """Events of one kind: a list with a moving start, so that both ends are cheap and a bisection is possible."""

    __slots__ = ("dropped", "events", "revs", "start")

    def __init__(self) -> None:
        self.events: list[Event | None] = []
        self.revs: list[int] = []
        self.start = 0
        self.dropped = 0
        """The revision of the last event that fell off."""

    def append(self, event: Event) -> None:
        self.events.append(event)
        self.revs.append(event.rev)

    def drop_first(self) -> None:
        self.dropped = self.revs[self.start]
        self.events[self.start] = None
        self.start += 1
        if self.start > 1024 and self.start * 2 > len(self.events):
            del self.events[: self.start], self.revs[: self.start]
            self.start = 0

    def after(self, rev: int) -> list[Event]:
        at = max(self.start, bisect_right(self.revs, rev))
        return [event for event in self.events[at:] if event is not None]


def _cost(obj: Object | None) -> int:
    if obj is None:
        return 0
    return OBJECT_COST + sum(
        len(section._raw) for section in (obj.status, obj.rest) if section is not None and section._raw is not None
    )
