"""Views: what one controller can see of one kind.

At lag 0 a view is the head and does not exist as a thing. A lagging view is the store as it was before the first event
that has not been delivered, and the events that are still on their way, in order. Only `deliver` moves it, one event at
a time; where a fault holds its watch, `merge` or `relist`, which jump to the head.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from .effect import GK, Event
from .object import Key
from .store import Store

STALLED: Final[GK] = ("", "*")
"""Stands for every kind: the view that a controller would get from an API server that has fallen behind."""
REWOUND: Final = "rewound"
ENDS: Final = {
    "slow": "merge",
    "miss": "merge",
    "lose-watch": "relist",
    "stall": "rewind",
    "": "deliver",
    REWOUND: "deliver",
}
"""What moves a view, by how it is held up."""


class View(NamedTuple):
    """A view behind the head. A view that caught up is dropped, unless its watch is held up."""

    waiting: tuple[tuple[Event, Store], ...] = ()
    """Undelivered events, each with the store as it was before it."""
    how: str = ""
    """"" where events are only late; `slow`, `miss`, `lose-watch`, `stall`: the fault that holds it up; `rewound`: a
    restart made it old, so that it may be any number of events behind."""

    def seen(self, head: Store) -> Store:
        """What the controller reads."""
        return self.waiting[0][1] if self.waiting else head

    def behind(self, event: Event, before: Store) -> View:
        """The view once another event happened."""
        return View((*self.waiting, (event, before)), self.how)

    def delivered(self) -> tuple[Event, View | None]:
        """The oldest event, and the view after its delivery; None when it has caught up with the head."""
        event = self.waiting[0][0]
        rest = self.waiting[1:]
        return event, View(rest, self.how) if rest else None

    @property
    def events(self) -> list[Event]:
        """What is still on its way."""
        return [event for event, _ in self.waiting]


def coalesced(events: Iterable[Event], across: bool) -> list[Event]:
    """Events as a watch shows them that missed some: consecutive updates of an object as one. `across`: also across its
    end and its beginning, so that a deletion and a creation are one update, and what was created and deleted was never
    there. In the order of the last event of each."""
    out: dict[tuple[Key, int], Event] = {}
    last: dict[Key, tuple[Key, int]] = {}
    for number, event in enumerate(events):
        place = last.get(event.key)
        earlier = out.get(place) if place is not None else None
        if place is not None and earlier is not None and (across or "MODIFIED" == event.type == earlier.type):
            del out[place]
            event = event._replace(old=earlier.old)
        place = last[event.key] = (event.key, number)
        out[place] = event
    return [event for event in out.values() if event.old is not None or event.new is not None]
