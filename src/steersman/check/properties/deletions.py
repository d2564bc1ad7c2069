"""Nothing is deleted more often than in the run without faults."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from steersman.check.properties.about import About
from steersman.check.properties.changes import Slot
from steersman.check.properties.probe import MAX_STEPS, rested
from steersman.check.verdict import plural
from steersman.kernel.action import Action
from steersman.kernel.transition import enabled, step
from steersman.kernel.world import World

if TYPE_CHECKING:
    from steersman.check.properties.judge import Search

ABOUT: Final = About(
    "no extra deletion",
    "On no path is an object deleted more often than on any path without lag and faults, unless whoever deletes it "
    "would do so with a fresh look too.",
    "A delete cannot be undone: a volume or a Secret that a stale read condemned is gone, even if a new one of that "
    "name comes and the end looks right.",
    "A decision to delete rests on a stale cache: an old deletionTimestamp, an old spec, a live object taken for one "
    "of its deleted namesake's.",
    "Delete with the uid and the resourceVersion that were read as preconditions, or read fresh before a delete.",
    "Judged where something may go wrong (lag, crashes, conflicts) and the search without it comes to an end; objects "
    "with generated names count together. A deletion that a fresh look would make as well is meant: a crash between "
    "making a child and noting its name makes another child, and one of them goes; a lock or a temporary object is "
    "made and deleted once more by whoever starts again.",
    (1, 6, 9, 13, 15, 27, 31, 33, 39, 40, 43, 85),
)


MAX_LOOKED_AT: Final = 200
"""Deletions of one object that are looked at."""


def wrong(search: Search, calm: Search) -> tuple[str, tuple[Action, ...]]:
    """What is deleted more often than in the search without faults (`calm`) and should not be, and on which path; ""
    when nothing is."""
    for slot in search.removed.slots():
        allowed = calm.removed.counted(calm.graph, slot).most
        for path in islice(search.removed.counted(search.graph, slot).beyond(allowed), MAX_LOOKED_AT):
            way = search.unfolded(path, False)
            if way[-1].op in ("run", "cont") and _should_stay(search, way, slot):
                often = "it never is" if not allowed else f"at most {plural(allowed, 'time')}"
                text = f"{slot} is deleted more often than without lag and faults ({often}), and should have stayed: "
                return f"{text}{way[-1].who} would have left it, had it looked at what is true", way
    return "", ()


def _should_stay(search: Search, way: tuple[Action, ...], slot: Slot) -> bool:
    """Whether what the last action deletes stays if whoever deletes it looks at what is true, both when its reconcile
    begins (else something has changed meanwhile, as it may without faults) and when it deletes."""
    last = way[-1]
    begun = max([at for at, action in enumerate(way) if (action.op, action.who, action.key) == ("run", *last[1:3])])
    return all(_is_kept(search.world_at(way[:at]), last, slot) for at in (begun, len(way) - 1))


def _is_kept(world: World, action: Action, slot: Slot) -> bool:
    """Whether an object stays there if a reconcile begins anew, with fresh caches."""
    item = (world.system.loop_index(action.who), action.key)
    fresh = world.fork()
    fresh.flights.pop(item, None)
    for _ in range(MAX_STEPS):
        news = next((each for each in enabled(fresh) if (each.op, each.who) == ("deliver", action.who)), None)
        if news is None:
            break
        step(fresh, news)
    fresh.enqueue(*item)
    settled = rested(fresh)
    return settled is not None and not any(e.new is None and Slot.of(e.obj) == slot for e in settled.events)
