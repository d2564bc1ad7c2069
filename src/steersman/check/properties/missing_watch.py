"""Missing watch: at rest, a reconcile would change something, but nothing wakes it."""

from __future__ import annotations

from typing import Final

from steersman.check.properties.about import About
from steersman.check.properties.changes import changes, telling
from steersman.check.properties.probe import Probe, unheard
from steersman.check.rest import name_of
from steersman.kernel.world import World

ABOUT: Final = About(
    "missing watch",
    "Where nothing changes any more, no reconcile would change anything if somebody asked for it. If one would, the "
    "report says what it would do and what it looked at without being woken by it.",
    "What was changed, or edited by hand, stays as it is until something else happens to wake the controller, or until "
    "it is restarted: it works in a test and fails on a quiet day.",
    "A controller reads a kind that it neither owns nor watches (a ConfigMap, a Secret, its own output), or its watch "
    "maps events to too few keys, or an event filter drops the change.",
    "Add the kind to `owns` or `watches`, or map its events to every key that reads it.",
    "Keys that have a timer are looked at again by it and are not counted; keys whose object is gone neither.",
    (67, 70, 74, 92, 102),
)


def wrong(world: World, done: Probe) -> str:
    """What a reconcile would do, and why it does not come; `done` changed something."""
    loop, key = done.item
    who = world.system.loops[loop].name
    change = min(changes(who, done.events), key=telling, default=None)
    what = "change what is outside" if change is None else f"change {change.field} ({change.words})"
    looked = unheard(world, done)
    why = f": it looks at {' and '.join(looked)} without being woken when they change" if looked else ""
    return f"a reconcile of {name_of(key)} by {who} would {what}, but nothing wakes it{why}"
