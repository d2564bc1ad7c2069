"""Idempotent at rest: another reconcile of everything at rest writes nothing."""

from __future__ import annotations

from typing import Final

from steersman.check.properties.about import About
from steersman.check.properties.changes import changes, telling
from steersman.check.properties.probe import Probe, probe, rested
from steersman.check.rest import name_of
from steersman.kernel.world import World

ABOUT: Final = About(
    "idempotent at rest",
    "Where nothing changes any more, one more reconcile of anything changes nothing either, or only once (that is a "
    "missing watch).",
    "Every restart, resync and relist reconciles everything: a controller that writes each time makes each of them a "
    "wave of writes, and of restarts behind it.",
    "A patch toggles or appends; an object gets a new generated name each time; a counter counts passes.",
    "Make the write a function of what is wanted: compare first, and write only a difference.",
    "What is not the same because time has passed or a random number was drawn is not counted here.",
    (53, 97),
)


def wrong(world: World, done: Probe) -> str:
    """What a reconcile at rest writes again and again; "" when it does so once at most."""
    settled = rested(done.after)
    if settled is None:
        return ""
    loop, key = done.item
    if key not in settled.system.loops[loop].initial(settled.store):
        return ""
    again = settled if done.item in settled.wakes else probe(settled, done.item).after
    if again.contents == settled.contents:
        return ""
    who = world.system.loops[loop].name
    change = min(changes(who, done.events), key=telling, default=None)
    what = "what is outside" if change is None else f"{change.field} ({change.words})"
    return f"another reconcile of {name_of(key)} by {who} changes {what}, and the next one does so again"
