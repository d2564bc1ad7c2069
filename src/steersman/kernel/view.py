"""Views: what one controller can see of one kind.

At lag 0 a view is the head and does not exist as a thing. A lagging view is the store as it was before the first event
that has not been delivered, and the events that are still on their way, in order. Only `deliver` moves it, one event at
a time, or `relist`, which jumps to the head.
"""

from __future__ import annotations

from typing import NamedTuple

from .effect import Event
from .store import Store


class View(NamedTuple):
    """A view behind the head. `waiting` is never empty: a view that caught up is dropped."""

    waiting: tuple[tuple[Event, Store], ...]
    """Undelivered events, each with the store as it was before it."""

    @property
    def store(self) -> Store:
        """What the controller reads."""
        return self.waiting[0][1]

    def behind(self, event: Event, before: Store) -> View:
        """The view once another event happened."""
        return View((*self.waiting, (event, before)))

    def delivered(self) -> tuple[Event, View | None]:
        """The oldest event, and the view after its delivery; None when it has caught up with the head."""
        event = self.waiting[0][0]
        rest = self.waiting[1:]
        return event, View(rest) if rest else None
